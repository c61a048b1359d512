//! Host lists of Slurm, such as `login,dev[0-5,08-11]x[0-1]`.

use super::{MAX_NODES, shown};

/// The most characters of a host name, as in `HOST_NAME_MAX`.
const LONGEST: usize = 64;

/// The hosts of a list, at most `most`.
pub(super) fn expand(list: &str, most: usize) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut depth = 0;
    let items = list.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    for item in items {
        all.extend(hosts(item, most - all.len())?);
    }
    Ok(all)
}

/// The hosts of one item.
fn hosts(item: &str, most: usize) -> Result<Vec<String>, String> {
    let bad = || format!("`{}` is not a host list such as dev[0-5],login", shown(item));
    let too_many = || format!("more than {MAX_NODES} nodes");
    let mut hosts = vec![String::new()];
    let (mut rest, mut length) = (item, 0);
    if item.is_empty() {
        return Err(bad());
    }
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']').ok_or_else(bad)?;
        let mut numbers: Vec<String> = Vec::new();
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if length + before.len() + first.len() > LONGEST {
                return Err(bad());
            }
            let value = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
            let (from, to) = value(first).zip(value(last)).ok_or_else(bad)?;
            if from > to {
                return Err(bad());
            }
            let count = (to - from) as usize + 1;
            if numbers.len().saturating_add(count).saturating_mul(hosts.len()) > most {
                return Err(too_many());
            }
            // Numbers keep leading zeros.
            let width = first.len();
            numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
        }
        length += before.len() + numbers.iter().map(String::len).max().unwrap_or(0);
        hosts = (hosts.iter())
            .flat_map(|host| numbers.iter().map(move |number| format!("{host}{before}{number}")))
            .collect();
        rest = after;
    }
    if rest.contains(']') || length + rest.len() > LONGEST {
        return Err(bad());
    }
    if hosts.len() > most {
        return Err(too_many());
    }
    hosts.iter_mut().for_each(|host| host.push_str(rest));
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_at_most_the_given_number_of_hosts() {
        let lists = [("a", 1), ("a,b", 2), ("a[1-4]", 4), ("a[1-2]x[1-3]", 6), ("a[1-2,5-6],c", 5)];
        for (list, hosts) in lists {
            assert_eq!(expand(list, hosts).map(|all| all.len()), Ok(hosts), "{list}");
            assert!(expand(list, hosts - 1).is_err(), "{list}");
        }
    }

    #[test]
    fn host_lists_are_those_of_slurm() {
        let all = |list: &str| expand(list, 100);
        assert_eq!(all("login,dev[8-10]").unwrap(), ["login", "dev8", "dev9", "dev10"]);
        let longest = format!("{}[08]", "a".repeat(62));
        assert_eq!(all(&longest).unwrap(), [longest.replace(['[', ']'], "")]);
        assert_eq!(all("n[08-10,3]").unwrap(), ["n08", "n09", "n10", "n3"]);
        assert_eq!(all("r[0-1]n[0-1]x").unwrap(), ["r0n0x", "r0n1x", "r1n0x", "r1n1x"]);
        for bad in [
            "",
            "a,",
            "a[",
            "a]",
            "a[]",
            "a[1-]",
            "a[2-1]",
            "a[0-4294967295]",
            "a[0-9]b[0-9]c[0-9]",
            &"a".repeat(65),
            &format!("{}[1]", "a".repeat(64)),
            &format!("a[{}]", "0".repeat(70_000)),
            &"a[0]".repeat(70_000),
        ] {
            assert!(all(bad).is_err(), "{bad}");
        }
    }
}
