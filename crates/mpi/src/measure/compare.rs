//! `topocoll-mpi compare`: in one run the library's own choice, each of its algorithms that it can force by a control
//! variable of MPI's tool interface, and the schedules that the drop-in would try, in turn.

use std::collections::BTreeSet;
use std::ffi::{CString, c_int};

use mpi_sys as mpi;
use topocoll::Collective;
use topocoll::tune::Library;
use topocoll_mpi::{Compared, Proposals};

use crate::group::Group;
use crate::{MOST, Outcome, ROUNDS, rounds};

/// Block sizes: powers of two from 1 B to the largest, at equal factors.
const SIZES: u32 = 12;

/// The name of the library's own choice.
const DEFAULT: &str = "default";

pub(crate) struct Asked {
    operations: Vec<Collective>,
    rounds: usize,
    json: bool,
    out: Option<String>,
}

impl Asked {
    pub(crate) fn read(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self { operations: Vec::new(), rounds: ROUNDS, json: false, out: None };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} requires a value"));
            match word {
                "--json" => asked.json = true,
                "--rounds" => asked.rounds = rounds(value()?)?,
                "--out" => asked.out = Some((*value()?).to_owned()),
                _ => {
                    let rule = "alltoall, allgather, --rounds N, --json or --out FILE";
                    let operation = word.parse().map_err(|_| format!("`{word}`: not {rule}"))?;
                    asked.operations.push(operation);
                }
            }
        }
        if asked.operations.is_empty() {
            asked.operations = vec![Collective::AllToAll, Collective::AllGather];
        }
        Ok(asked)
    }
}

/// An algorithm of the library, forced in a communicator of its own.
struct Forced {
    name: &'static str,
    force: String,
    variable: mpi::MPI_T_cvar_handle,
    value: c_int,
    group: Group,
}

/// Compares between all ranks; each calls it. The first rank's text is for the user.
pub(crate) fn compared(world: &Group, asked: &Asked) -> Outcome<String> {
    // SAFETY: places for the answers; `finish` ends what this begins.
    unsafe {
        let mut provided = 0;
        ended(mpi::MPI_T_init_thread(mpi::MPI_THREAD_SINGLE as c_int, &raw mut provided))?;
    }
    // SAFETY: MPI is initialized, and this is dropped before its end.
    let mut proposals = unsafe { Proposals::new(world.comm)? };
    let ((library, version), machine) = (proposals.library(), proposals.machine());
    let version = version.split(',').flat_map(str::split_whitespace).take(3);
    let (mpi, ranks, rounds) = (version.collect::<Vec<_>>().join(" "), world.ranks, asked.rounds);
    let (mut compared, mut text) = (Vec::new(), String::new());
    for &operation in &asked.operations {
        let forced = match library {
            Some(library) => forced(world, library, operation)?,
            None => Vec::new(),
        };
        let (what, first, second) = (operation.name(), "library's fastest", "fastest schedule");
        text += &format!(
            "{what}, {ranks} ranks on {machine}, {mpi}: us, median and quartiles of {rounds} rounds\n\
             {:>10}  {DEFAULT:32}  {first:48}  {second:48}  {:>6}  winner\n",
            "block [B]", "gain"
        );
        let largest = (MOST / u64::from(ranks)).max(1).ilog2();
        let mut exponents: Vec<u32> = (0..SIZES).map(|i| i * largest / (SIZES - 1)).collect();
        exponents.dedup();
        for block_bytes in exponents.into_iter().map(|exponent| 1 << exponent) {
            let all = at_size(world, rounds, operation, block_bytes, &forced, &mut proposals)?;
            text += &line(&all);
            compared.extend(all);
        }
    }
    text += "A winner's third quartile is less than the default's first. What forces one for all sizes:";
    let forces = compared.iter().filter(|by| by.wins && !by.force.is_empty());
    let forces = forces.map(|by| format!("\n  {}: {}", by.name, by.force));
    text.extend(forces.collect::<BTreeSet<_>>());
    if asked.json {
        text = serde_json::json!({
            "version": 2, "mpi": mpi, "machine": machine, "ranks": ranks, "rounds": rounds, "compared": compared
        })
        .to_string();
    }
    if let Some(path) = asked.out.as_ref().filter(|_| world.rank == 0) {
        proposals.write(path, compared)?;
    }
    // SAFETY: no variable is used afterwards.
    unsafe { ended(mpi::MPI_T_finalize())? };
    Ok(text)
}

/// The algorithms of the library that serve an operation and that a variable forces.
fn forced(world: &Group, library: &Library, operation: Collective) -> Outcome<Vec<Forced>> {
    let mut all = Vec::new();
    for own in library.serving(operation, world.ranks) {
        let variables = library.force(own, 0);
        let (name, value) = variables.last().ok_or("no variable forces an algorithm")?;
        let Some((variable, value)) = control(name.trim_start_matches("OMPI_MCA_"), value)? else {
            continue;
        };
        let force = variables.iter().map(|(name, value)| format!("{name}={value}"));
        let force = force.collect::<Vec<_>>().join(" ");
        let usual = exchanged(variable, value)?;
        // Open MPI reads the variable for a new communicator, MPICH in each call.
        let group = world.split(0);
        exchanged(variable, usual)?;
        all.push(Forced { name: own.name, force, variable, value, group });
    }
    Ok(all)
}

/// A control variable, and the number of a value that its description names; `None` if the library has no such.
fn control(name: &str, value: &str) -> Outcome<Option<(mpi::MPI_T_cvar_handle, c_int)>> {
    let (mut index, own) = (0, CString::new(name)?);
    // SAFETY: places for the answers; a text without room is not written, a text of `length` bytes is.
    unsafe {
        if mpi::MPI_T_cvar_get_index(own.as_ptr(), &raw mut index) != 0 {
            return Ok(None);
        }
        let [mut visible, mut bind, mut scope, mut count, mut no_name] = [0; 5];
        let (mut kind, mut of) = (mpi::RSMPI_DATATYPE_NULL, std::mem::zeroed());
        let mut text = vec![0u8; 1 << 14];
        let mut length = text.len() as c_int;
        let (no_text, to) = (std::ptr::null_mut(), text.as_mut_ptr().cast());
        let (visible, bind, scope) = (&raw mut visible, &raw mut bind, &raw mut scope);
        let (kind, of) = (&raw mut kind, &raw mut of);
        let (no_name, length) = (&raw mut no_name, &raw mut length);
        ended(mpi::MPI_T_cvar_get_info(
            index, no_text, no_name, visible, kind, of, to, length, bind, scope,
        ))?;
        let text = String::from_utf8_lossy(&text);
        let Some(number) = number(value, &text) else { return Ok(None) };
        let mut handle = std::mem::zeroed();
        ended(mpi::MPI_T_cvar_handle_alloc(
            index,
            std::ptr::null_mut(),
            &raw mut handle,
            &raw mut count,
        ))?;
        Ok(Some((handle, number)))
    }
}

/// The number of a value: itself, or its place among the values `NAME - ...` of a description, as MPICH counts them.
fn number(value: &str, description: &str) -> Option<c_int> {
    value.parse().ok().or_else(|| {
        let is_named = |at: &usize| description[at + value.len()..].trim_start().starts_with("- ");
        let at = description.match_indices(value).map(|(at, _)| at).find(is_named)?;
        c_int::try_from(description[..at].matches(" - ").count()).ok()
    })
}

/// Sets a variable; returns its last value.
fn exchanged(variable: mpi::MPI_T_cvar_handle, value: c_int) -> Outcome<c_int> {
    let mut last = 0;
    // SAFETY: a variable of one int, and a place for it.
    unsafe {
        ended(mpi::MPI_T_cvar_read(variable, (&raw mut last).cast()))?;
        ended(mpi::MPI_T_cvar_write(variable, (&raw const value).cast()))?;
    }
    Ok(last)
}

fn ended(code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(format!("MPI's tool interface: error {code}").into()) }
}

/// Measures all performers in turn: the default, the library's algorithms and schedules. Only on the first rank.
fn at_size(
    world: &Group,
    rounds: usize,
    operation: Collective,
    block_bytes: u64,
    forced: &[Forced],
    proposals: &mut Proposals,
) -> Outcome<Vec<Compared>> {
    let (count, proposed) = proposals.propose(operation, block_bytes)?;
    let bytes = (u64::from(world.ranks) * block_bytes) as usize;
    let sent = if operation == Collective::AllToAll { bytes } else { block_bytes as usize };
    let (input, mut output) = (vec![1u8; sent], vec![0u8; bytes]);
    let mut seconds = vec![Vec::new(); 1 + forced.len() + count];
    for _ in 0..rounds {
        let (library, ours) = seconds.split_at_mut(1 + forced.len());
        library[0].push(world.mean(|| world.library(operation, &input, &mut output))?);
        for (forced, seconds) in forced.iter().zip(&mut library[1..]) {
            let usual = exchanged(forced.variable, forced.value)?;
            let group = &forced.group;
            seconds.push(group.mean(|| group.library(operation, &input, &mut output))?);
            exchanged(forced.variable, usual)?;
        }
        for (i, seconds) in ours.iter_mut().enumerate() {
            seconds.push(world.mean(|| Ok(proposals.exchange(i, &input, &mut output)?))?);
        }
    }
    if world.rank != 0 {
        return Ok(Vec::new());
    }
    let seconds: Vec<[f64; 3]> = seconds.iter_mut().map(|seconds| quartiles(seconds)).collect();
    let nanoseconds = |i: usize| (1e9 * seconds[i][1]) as u64;
    let ours = fastest(&seconds, 1 + forced.len());
    proposals.learn(nanoseconds(0), ours.map(|i| (i - 1 - forced.len(), nanoseconds(i))));
    let best = fastest(&seconds, 1).unwrap_or(0);
    let names = std::iter::once((DEFAULT.to_owned(), String::new()))
        .chain(forced.iter().map(|forced| (forced.name.to_owned(), forced.force.clone())))
        .chain(proposed);
    let compared = names.zip(&seconds).enumerate().map(|(i, ((name, force), own))| Compared {
        operation: operation.to_string(),
        block_bytes,
        name,
        is_library: i <= forced.len(),
        force,
        seconds: *own,
        gain: seconds[0][1] / own[1],
        wins: i == best,
    });
    Ok(compared.collect())
}

/// The line of a size: the default, the library's fastest algorithm, the fastest schedule and the winner.
fn line(all: &[Compared]) -> String {
    let cell = |is_library: bool, is_default: bool| {
        let kind =
            all.iter().filter(|by| (by.is_library, by.name == DEFAULT) == (is_library, is_default));
        kind.min_by(|a, b| a.seconds[1].total_cmp(&b.seconds[1])).map_or("-".to_owned(), |by| {
            let [first, median, third] = by.seconds.map(|seconds| 1e6 * seconds);
            let name = if is_default { "" } else { &by.name };
            format!("{median:9.2} ({first:.2} to {third:.2}) {name}")
        })
    };
    let winner = all.iter().find(|by| by.wins);
    winner.map_or_else(String::new, |Compared { block_bytes, gain, name, .. }| {
        let [default, library, ours] = [cell(true, true), cell(true, false), cell(false, false)];
        format!("{block_bytes:>10}  {default:32}  {library:48}  {ours:48}  {gain:5.2}x  {name}\n")
    })
}

/// From the `from`-th performer on the fastest whose third quartile is less than the first one's first.
fn fastest(seconds: &[[f64; 3]], from: usize) -> Option<usize> {
    let faster = (from..seconds.len()).filter(|&i| seconds[i][2] < seconds[0][0]);
    faster.min_by(|&a, &b| seconds[a][1].total_cmp(&seconds[b][1]))
}

/// The first quartile, the median and the third quartile, to four digits.
fn quartiles(seconds: &mut [f64]) -> [f64; 3] {
    seconds.sort_by(f64::total_cmp);
    let four = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
    [1, 2, 3].map(|quarter| four(seconds[quarter * (seconds.len() - 1) / 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_a_description() {
        let text = "Variable to select alltoall algorithmauto - Internal algorithm selection \
                    (x_y)brucks                    - Force brucks algorithmnb    - Force nb\
                    pairwise                  - Force pairwise algorithmpairwise_sendrecv_replace \
                    - Force pairwise sendrecvscattered                 - Force scattered";
        let numbers =
            ["brucks", "pairwise", "scattered", "4", "ring"].map(|name| number(name, text));
        assert_eq!(numbers, [Some(1), Some(3), Some(5), Some(4), None]);
    }

    #[test]
    fn a_winner_is_faster_beyond_the_quartiles() {
        assert_eq!(quartiles(&mut [5.0, 1.0, 3.0, 2.0, 4.0]), [2.0, 3.0, 4.0]);
        let all = [[2.0, 3.0, 4.0], [1.0, 1.4, 2.5], [1.0, 1.6, 1.9], [1.0, 1.5, 1.8]];
        let found = [fastest(&all, 1), fastest(&all[..2], 1), fastest(&all[..3], 2)];
        assert_eq!(found, [Some(3), None, Some(2)]);
    }
}
