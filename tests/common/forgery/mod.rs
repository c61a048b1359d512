//! A forger alters certificates, lists the counts that the checker finds and seals them again. A
//! certificate that the checker accepts must be true for an expander that shares no code with it.

mod expander;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use expander::TOO_LONG;
pub use expander::expand;
use fastrand::Rng;
use topocoll_certificate::{Fault, check};

use crate::sealed;

/// Refusals of certificates that may be true: limits, and forms that no writer uses.
const FORMS: [&str; 4] = [
    "too much",
    "a run of slots is of several pieces",
    "a step's number",
    "a run has slots, and lies within them",
];

pub struct Forger {
    random: Rng,
    /// Texts given to the checker.
    pub tried: usize,
    /// Texts that are true, and accepted.
    pub accepted: usize,
    /// Texts that may be true and are refused, by form.
    pub forms: BTreeMap<&'static str, usize>,
    /// The first words of the lines that were altered.
    pub fields: BTreeSet<String>,
}

impl Forger {
    pub fn new(seed: u64) -> Self {
        let random = Rng::with_seed(seed);
        Self { random, tried: 0, accepted: 0, forms: BTreeMap::new(), fields: BTreeSet::new() }
    }

    /// Alters a certificate without its digest a number of times, and judges each alteration.
    pub fn forge(&mut self, body: &str, times: usize) {
        self.judge(body, "unaltered");
        for _ in 0..times {
            let (mut forged, mut how) = (body.to_owned(), String::new());
            for _ in 0..self.random.u32(1..=3) {
                let (name, alter) = ALTERATIONS[self.random.usize(..ALTERATIONS.len())];
                if let Some(altered) = alter(&forged, &mut self.random) {
                    forged = altered;
                    how += &format!("{name}, ");
                }
            }
            if body.lines().count() == forged.lines().count() {
                let lines = body.lines().zip(forged.lines()).filter(|(old, new)| old != new);
                let words = lines.filter_map(|(old, _)| old.split(' ').next());
                self.fields.extend(words.map(str::to_owned));
            }
            self.judge(&forged, &how);
        }
    }

    /// Compares the checker with the expander on this text, and on the texts that list the counts
    /// found.
    fn judge(&mut self, body: &str, how: &str) {
        let mut body = body.to_owned();
        loop {
            let text = sealed(&body);
            let expanded = expand(&text);
            // The checker follows it to its end, for minutes.
            if expanded == Err(TOO_LONG) {
                return;
            }
            let checked = check(text.as_bytes());
            self.tried += 1;
            match (&checked, &expanded) {
                (Ok(_), Ok(())) => self.accepted += 1,
                (Ok(_), Err(why)) => panic!("accepted, and not true ({how}{why}):\n{text}"),
                (Err(fault), Ok(())) => {
                    let form = form(fault);
                    let form = FORMS.into_iter().find(|known| *known == form);
                    let form = form.unwrap_or_else(|| panic!("true ({how}{fault}):\n{text}"));
                    *self.forms.entry(form).or_default() += 1;
                }
                (Err(_), Err(_)) => {}
            }
            body = match checked {
                Err(
                    Fault::Count { name, listed, found } | Fault::Bound { name, listed, found },
                ) => {
                    let head = if matches!(checked, Err(Fault::Count { .. })) {
                        "counts "
                    } else {
                        "bounds "
                    };
                    relisted(&body, head, name, listed, found)
                }
                _ => return,
            };
        }
    }
}

impl fmt::Display for Forger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, accepted, forms, fields, .. } = self;
        write!(f, "{tried} tried, {accepted} true, refused by form: {forms:?}, altered: {fields:?}")
    }
}

/// The form that refuses a certificate, as in [`FORMS`].
fn form(fault: &Fault) -> &'static str {
    match fault {
        Fault::TooMuch { .. } => "too much",
        Fault::Line { text, .. } if text.starts_with("step ") => "a step's number",
        Fault::Line { rule, .. } | Fault::Step { rule, .. } | Fault::Layout { rule, .. } => rule,
        _ => "a count, a bound or a block",
    }
}

/// The text with another value of a count or a bound.
fn relisted(body: &str, head: &str, name: &str, listed: u128, found: u128) -> String {
    let value = |word: &str| match word.split_once('=') {
        Some((of, value)) if of == name && value.parse() == Ok(listed) => format!("{of}={found}"),
        _ => word.to_owned(),
    };
    let line = |line: &str| match line.starts_with(head) {
        true => line.split(' ').map(value).collect::<Vec<_>>().join(" "),
        false => line.to_owned(),
    };
    body.lines().map(line).map(|line| line + "\n").collect()
}

/// An altered text; none if nothing can be altered.
type Alteration = fn(&str, &mut Rng) -> Option<String>;

const ALTERATIONS: [(&str, Alteration); 17] = [
    ("a byte", a_byte),
    ("a number", a_number),
    ("a number as another", a_number_as_another),
    ("a line", a_line),
    ("the machine", the_machine),
    ("the nodes", the_nodes),
    ("the ports", the_ports),
    ("the radix", the_radix),
    ("the operation", the_operation),
    ("a way", a_way),
    ("no ways", no_ways),
    ("the pieces", the_pieces),
    ("runs exchanged", runs_exchanged),
    ("a block twice", a_block_twice),
    ("steps at once", steps_at_once),
    ("steps exchanged", steps_exchanged),
    ("a message at another time", a_message_at_another_time),
];

fn a_byte(body: &str, random: &mut Rng) -> Option<String> {
    const BYTES: [&str; 12] = ["", " ", "\n", "\r", "\t", "\u{1b}", "0", "-", ";", ",", "x", "~"];
    let mut out = body.to_owned();
    let at = random.usize(..body.len());
    out.replace_range(at..at + usize::from(random.bool()), any(&BYTES, random)?);
    Some(out)
}

fn any<T: Clone>(of: &[T], random: &mut Rng) -> Option<T> {
    (!of.is_empty()).then(|| of[random.usize(..of.len())].clone())
}

/// The place of a number: first a kind of line, then a line, then a number of it.
fn place(body: &str, random: &mut Rng) -> Option<std::ops::Range<usize>> {
    let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut at = 0;
    for line in body.lines() {
        lines.entry(line.split(' ').next()?).or_default().push(at);
        at += line.len() + 1;
    }
    let kinds: Vec<_> = lines.into_values().collect();
    let first = any(&any(&kinds, random)?, random)?;
    let line = &body[first..first + body[first..].find('\n')?];
    let is_digit = |at: usize| line.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let starts: Vec<usize> =
        (0..line.len()).filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1))).collect();
    let start = any(&starts, random)?;
    let end = (start..).find(|&at| !is_digit(at))?;
    Some(first + start..first + end)
}

fn a_number(body: &str, random: &mut Rng) -> Option<String> {
    let place = place(body, random)?;
    let value: i128 = body[place.clone()].parse().ok()?;
    let others = [0, 1, 2, value + 1, value - 1, value * 2, value / 2, -value];
    let large =
        [1 << 16, 1 << 27, (1 << 30) + 1, u32::MAX.into(), i64::MAX.into(), u64::MAX.into()];
    let other = if random.u8(..8) == 0 { any(&large, random) } else { any(&others, random) }?;
    let mut out = body.to_owned();
    out.replace_range(place, &other.to_string());
    Some(out)
}

fn a_number_as_another(body: &str, random: &mut Rng) -> Option<String> {
    let (place, other) = (place(body, random)?, place(body, random)?);
    let mut out = body.to_owned();
    out.replace_range(place, &body[other]);
    Some(out)
}

/// A line removed, doubled, moved up, or replaced by another of its kind.
fn a_line(body: &str, random: &mut Rng) -> Option<String> {
    let mut lines: Vec<&str> = body.lines().collect();
    let at = random.usize(1..lines.len());
    match random.u8(..4) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at]),
        2 => lines.swap(at - 1, at),
        _ => {
            let kind = |line: &str| line.split(' ').next().map(str::to_owned);
            let alike: Vec<_> =
                lines.iter().copied().filter(|line| kind(line) == kind(lines[at])).collect();
            lines[at] = any(&alike, random)?;
        }
    }
    Some(lines.join("\n") + "\n")
}

/// The text after the first word of a line of the head.
fn head<'t>(body: &'t str, word: &str) -> Option<&'t str> {
    body.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
}

/// The text with another line of the head.
fn with_head(body: &str, word: &str, text: &str) -> Option<String> {
    let line = format!("\n{word} {}\n", head(body, word)?);
    Some(body.replacen(&line, &format!("\n{word} {text}\n"), 1))
}

fn ranks(body: &str) -> Option<u32> {
    let (sides, _) = head(body, "ranks")?.split_once(" by ")?;
    let sides = sides.split('x').map(|side| side.split('+').next()?.parse::<u32>().ok());
    let sides = sides.collect::<Option<Vec<u32>>>()?;
    sides.iter().try_fold(1u32, |ranks, side| ranks.checked_mul(*side)).filter(|ranks| *ranks <= 64)
}

/// Sides whose product is the number of ranks.
fn sides(ranks: u32) -> Vec<Vec<u32>> {
    let divisors = || (1..=ranks).filter(move |side| ranks % side == 0);
    let two = divisors().map(|side| vec![side, ranks / side]);
    two.chain([vec![ranks]]).collect()
}

/// Another machine with the same number of ranks.
fn machines(ranks: u32) -> Vec<String> {
    let mut machines = vec![format!("complete {ranks}")];
    let grids = |ranks| {
        let mut grids = Vec::new();
        for sides in sides(ranks) {
            for wraps in 0..1 << sides.len() {
                let side =
                    |(u, side)| format!("{side}{}", if wraps >> u & 1 == 1 { "~" } else { "" });
                let words: Vec<_> = sides.iter().enumerate().map(side).collect();
                grids.push(format!("grid {}", words.join("x")));
                grids.push(format!("grid {} balanced", words.join("x")));
            }
        }
        grids
    };
    machines.extend(grids(ranks));
    for (nodes, several) in several(ranks) {
        machines.push(format!("cluster {several}"));
        machines.extend(grids(nodes).into_iter().map(|grid| format!("{grid} nodes {several}")));
    }
    machines
}

/// Numbers of nodes that hold these ranks, equal and unequal.
fn several(ranks: u32) -> Vec<(u32, String)> {
    let mut all = Vec::new();
    for size in 1..=ranks {
        if ranks % size == 0 {
            all.push((ranks / size, format!("{}*{size}", ranks / size)));
        }
        for rest in 1..=ranks - size {
            if (ranks - size) % rest == 0 {
                let others = (ranks - size) / rest;
                all.push((others + 1, format!("1*{size},{others}*{rest}")));
            }
        }
    }
    all
}

/// Other ranks on the nodes of a network.
fn the_nodes(body: &str, random: &mut Rng) -> Option<String> {
    let machine = head(body, "machine")?;
    let (network, nodes) = machine.split_once(" nodes ").unwrap_or((machine, ""));
    let size = |group: &str| group.split_once('*')?.0.parse::<u32>().ok();
    let nodes = match nodes {
        "" => ranks(body)?,
        nodes => nodes.split(',').map(size).collect::<Option<Vec<_>>>()?.iter().sum(),
    };
    let mut all = several(ranks(body)?);
    all.retain(|(others, _)| *others == nodes);
    let (_, groups) = any(&all, random)?;
    let groups = if random.bool() { format!(" nodes {groups}") } else { String::new() };
    with_head(body, "machine", &format!("{network}{groups}"))
}

/// Two ports of a vertex of a graph exchanged, or one removed, or another vertex's links.
fn the_ports(body: &str, random: &mut Rng) -> Option<String> {
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let is_vertex = |at: &usize| lines[*at].starts_with("vertex ");
    let vertices: Vec<usize> = (0..lines.len()).filter(is_vertex).collect();
    let at = any(&vertices, random)?;
    let mut words: Vec<String> = lines[at].split(' ').map(str::to_owned).collect();
    let (a, b) = (random.usize(2..words.len()), random.usize(2..words.len()));
    match random.u8(..4) {
        0 => words.swap(a, b),
        1 => words[a] = "-".to_owned(),
        2 => words[a] += any(&[":1", ":7", "*1/2", "*3/2", "*3"], random)?,
        _ => {
            let other = any(&vertices, random)?;
            words.truncate(2);
            words.extend(lines[other].split(' ').skip(2).map(str::to_owned));
        }
    }
    lines[at] = words.join(" ");
    Some(lines.join("\n") + "\n")
}

fn the_machine(body: &str, random: &mut Rng) -> Option<String> {
    with_head(body, "machine", &any(&machines(ranks(body)?), random)?)
}

/// The ranks as other coordinates, or in classes of other periods.
fn the_radix(body: &str, random: &mut Rng) -> Option<String> {
    let classes = body.lines().filter(|line| line.starts_with("class ")).count();
    let sides = any(&sides(ranks(body)?), random)?;
    let periods: Vec<u32> = sides
        .iter()
        .map(|side| {
            let divisors: Vec<u32> = (1..=*side).filter(|period| side % period == 0).collect();
            any(&divisors, random)
        })
        .collect::<Option<_>>()?;
    // The listed number of classes, if a radix of one side has it.
    let (sides, periods) = match periods.iter().product::<u32>() as usize == classes {
        true => (sides, periods),
        false => (vec![ranks(body)?], vec![classes as u32]),
    };
    let joined =
        |numbers: &[u32]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let twisted = random.u8(..4) == 0;
    let twist = |side: &u32| match twisted {
        true => format!("{side}+{}", random.u32(..*side)),
        false => side.to_string(),
    };
    let sides: Vec<String> = sides.iter().map(twist).collect();
    with_head(body, "ranks", &format!("{} by {}", sides.join("x"), joined(&periods)))
}

fn the_operation(body: &str, _: &mut Rng) -> Option<String> {
    let gathers = head(body, "operation")? == "allgather";
    with_head(body, "operation", if gathers { "alltoall" } else { "allgather" })
}

/// The lines with the words of messages sent altered.
fn with_ways(body: &str, mut other: impl FnMut(&str) -> String) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["send", to, way, slots] => format!("send {to} {} {slots}\n", other(way)),
            _ => format!("{line}\n"),
        }
    };
    body.lines().map(line).collect()
}

fn a_way(body: &str, random: &mut Rng) -> Option<String> {
    let sends = body.lines().filter(|line| line.starts_with("send ")).count();
    let mut until = random.usize(..sends.max(1));
    let (u, hops) = (random.u8(..2), random.i32(-6..=6));
    // To and fro, or around a side.
    let turn =
        if random.bool() { format!("{u}:{hops};{u}:{}", -hops) } else { format!("{u}:{hops}") };
    let kind = random.u8(..4);
    Some(with_ways(body, |way| {
        let this = until == 0;
        until = until.wrapping_sub(1);
        match (this, kind) {
            (false, _) => way.to_owned(),
            (true, 0) => "own".to_owned(),
            (true, 1) => format!("{turn};{way}").replace(";own", ""),
            (true, 2) => format!("{way};{turn}").replace("own;", ""),
            (true, _) => way.split(';').rev().collect::<Vec<_>>().join(";"),
        }
    }))
}

fn no_ways(body: &str, _: &mut Rng) -> Option<String> {
    Some(with_ways(body, |_| "own".to_owned()))
}

/// Whole blocks split in two pieces, each sent as before.
fn the_pieces(body: &str, random: &mut Rng) -> Option<String> {
    let block: u64 = head(body, "pieces")?.parse().ok()?;
    let slots: i64 = head(body, "slots")?.parse().ok()?;
    let first = random.u64(..=block);
    let both = |set: &str| {
        let second = set.split(';').map(|run| {
            let (base, rest) = run.split_at(run.find(',').unwrap_or(run.len()));
            Some(format!(";{}{rest}", base.parse::<i64>().ok()?.checked_add(slots)?))
        });
        Some(set.to_owned() + &second.collect::<Option<String>>()?)
    };
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["copy", from, to] => format!("copy {} {}\n", both(from)?, both(to)?),
            ["send", to, way, set] => format!("send {to} {way} {}\n", both(set)?),
            ["receive", from, set] => format!("receive {from} {}\n", both(set)?),
            _ => format!("{line}\n"),
        })
    };
    let body = body.lines().map(line).collect::<Option<String>>()?;
    with_head(&body, "pieces", &format!("{first};{}", block - first))
}

/// The runs of a line in another order.
fn runs_exchanged(body: &str, random: &mut Rng) -> Option<String> {
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let several = |at: &usize| {
        ["copy ", "send ", "receive "].iter().any(|kind| lines[*at].starts_with(kind))
            && lines[*at].contains(';')
    };
    let places: Vec<usize> = (0..lines.len()).filter(several).collect();
    let at = any(&places, random)?;
    let (rest, set) = lines[at].rsplit_once(' ')?;
    let mut runs: Vec<&str> = set.split(';').collect();
    runs.reverse();
    lines[at] = format!("{rest} {}", runs.join(";"));
    Some(lines.join("\n") + "\n")
}

/// At the end one block twice: the second is copied to an extra slot, in place of another.
fn a_block_twice(body: &str, random: &mut Rng) -> Option<String> {
    let slots: u64 = head(body, "slots")?.parse().ok()?;
    let (sides, _) = head(body, "ranks")?.split_once(" by ")?;
    let ranks = sides.parse::<u64>().ok().filter(|ranks| (1..=64).contains(ranks))?;
    let _whole: u64 = head(body, "pieces")?.parse().ok()?;
    // After all others.
    let last = 1 << 20;
    let body = with_head(body, "slots", &slots.checked_add(1)?.to_string())?;
    let mut out = String::new();
    let mut copy = String::new();
    for line in body.lines() {
        let Some(rows) = line.strip_prefix("finish ") else {
            if line.starts_with("class ") {
                out += &std::mem::take(&mut copy);
            }
            out += &format!("{line}\n");
            continue;
        };
        let mut pairs = Vec::new();
        for row in rows.split(' ') {
            let numbers: Vec<u64> =
                row.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
            let mut row = vec![(*numbers.first()?, *numbers.get(1)?)];
            for axis in numbers[2..].chunks_exact(3) {
                let along = |i| {
                    move |(slot, by): &(u64, u64)| {
                        (
                            slot.wrapping_add(axis[1].wrapping_mul(i)),
                            (by % ranks + axis[2] % ranks * i) % ranks,
                        )
                    }
                };
                let count = axis[0].min(64);
                row =
                    (0..count).flat_map(|i| row.iter().map(along(i)).collect::<Vec<_>>()).collect();
            }
            pairs.append(&mut row);
        }
        if pairs.is_empty() {
            return None;
        }
        let (kept, lost) = (random.usize(..pairs.len()), random.usize(..pairs.len()));
        copy = format!("step {last}\ncopy {} {slots}\n", pairs[kept].0);
        pairs[lost] = (slots, pairs[kept].1);
        let rows: String = pairs.iter().map(|(slot, by)| format!(" {slot},{by}")).collect();
        out += &format!("finish{rows}\n");
    }
    Some(out + &copy)
}

/// Copies, sends and receives by step.
type Steps<'t> = BTreeMap<u64, [Vec<&'t str>; 3]>;

/// The lines of the head; then of each class, and of its steps.
struct Draft<'t> {
    head: Vec<&'t str>,
    classes: Vec<(Vec<&'t str>, Steps<'t>)>,
}

impl<'t> Draft<'t> {
    fn of(body: &'t str) -> Option<Self> {
        let mut draft = Self { head: Vec::new(), classes: Vec::new() };
        let mut step = 0;
        for line in body.lines() {
            let (word, rest) = line.split_once(' ')?;
            let kind = ["copy", "send", "receive"].iter().position(|kind| *kind == word);
            match (draft.classes.last_mut(), word, kind) {
                (_, "class", _) => draft.classes.push((vec![line], BTreeMap::new())),
                (None, ..) => draft.head.push(line),
                (Some(class), "step", _) => {
                    step = rest.parse().ok()?;
                    class.1.entry(step).or_default();
                }
                (Some(class), _, Some(kind)) => class.1.get_mut(&step)?[kind].push(line),
                (Some(class), ..) => class.0.push(line),
            }
        }
        Some(draft)
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = self.head.iter().map(ToString::to_string).collect();
        for (layouts, steps) in &self.classes {
            lines.extend(layouts.iter().map(ToString::to_string));
            for (step, does) in steps {
                lines.push(format!("step {step}"));
                lines.extend(does.iter().flatten().map(ToString::to_string));
            }
        }
        lines.join("\n") + "\n"
    }

    /// Two steps that some class takes.
    fn two(&self, random: &mut Rng) -> Option<(u64, u64)> {
        let steps: BTreeSet<u64> =
            self.classes.iter().flat_map(|class| class.1.keys().copied()).collect();
        let steps: Vec<u64> = steps.into_iter().collect();
        Some((any(&steps, random)?, any(&steps, random)?))
    }
}

/// All actions of one step, or of all steps, moved to another step.
fn steps_at_once(body: &str, random: &mut Rng) -> Option<String> {
    let mut draft = Draft::of(body)?;
    let (from, to) = draft.two(random)?;
    let all = random.bool();
    for (_, steps) in &mut draft.classes {
        let mut joined: [Vec<&str>; 3] = Default::default();
        steps.retain(|step, does| {
            let moves = all || *step == from || *step == to;
            if moves {
                joined.iter_mut().zip(does).for_each(|(joined, does)| joined.append(does));
            }
            !moves
        });
        steps.insert(to, joined);
    }
    Some(draft.text())
}

fn steps_exchanged(body: &str, random: &mut Rng) -> Option<String> {
    let mut draft = Draft::of(body)?;
    let (from, to) = draft.two(random)?;
    for (_, steps) in &mut draft.classes {
        let (one, other) = (steps.remove(&from), steps.remove(&to));
        steps.extend(one.map(|does| (to, does)));
        steps.extend(other.map(|does| (from, does)));
    }
    Some(draft.text())
}

/// The first message that each rank sends and receives in a step, moved to another.
fn a_message_at_another_time(body: &str, random: &mut Rng) -> Option<String> {
    let mut draft = Draft::of(body)?;
    let (from, to) = draft.two(random)?;
    let to = if random.bool() { to } else { to.checked_add(1)? };
    for (_, steps) in &mut draft.classes {
        for kind in [1, 2] {
            let lines = steps.get_mut(&from).map(|does| &mut does[kind]);
            if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
                let line = lines.remove(0);
                steps.entry(to).or_default()[kind].push(line);
            }
        }
    }
    Some(draft.text())
}
