//! Tuning files for MPI libraries: a library's own algorithm for each range of block sizes. Each
//! library has a file here and a line of [`LIBRARIES`].
//!
//! An algorithm of a library has the price of the schedule that sends the same messages
//! ([`unaware`]), or a measured time. Algorithms without an equivalent schedule are never chosen.

mod mpich;
mod open_mpi;

use serde::{Deserialize, Serialize};
use topocoll_analysis::{Time, check_counting_work, count_steps};
use topocoll_schedule::{Collective, Parameters, Problem, Setting};
use topocoll_topology::{Machine, Ports, Rank, Shape, Subset};

use crate::envelope::{TimeLine, envelope};
use crate::{Budget, Choice, Error, Exchange, Price, Priced};

pub use crate::error::TuneError;

/// An MPI library that reads a tuning file.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Its name on the command line.
    pub name: &'static str,
    /// The file written for it, in a line.
    pub about: &'static str,
    /// The command that uses the file; `{file}` is replaced by its name.
    pub using: &'static str,
    /// Its algorithms with an equivalent schedule; at equal prices, the first is chosen.
    pub own: &'static [Own],
    /// The environment variables that force an algorithm for all sizes.
    force: fn(&Own) -> Vec<(String, String)>,
    write: fn(&Tuning, &Given<'_>) -> Result<String, TuneError>,
}

/// Every library.
#[rustfmt::skip]
pub const LIBRARIES: &[Library] = &[
    Library { name: "openmpi", about: "dynamic rules of Open MPI's tuned component", using: open_mpi::USING, own: &open_mpi::OWN, force: open_mpi::force, write: open_mpi::write },
    Library { name: "mpich", about: "MPICH's selection tree, changed in a full one of its version (--base)", using: mpich::USING, own: &mpich::OWN, force: mpich::force, write: mpich::write },
];

/// An algorithm of a library.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// The operation it performs.
    pub operation: Collective,
    /// The library's name for it.
    pub name: &'static str,
    /// Its name in the tuning file.
    key: &'static str,
    /// The schedule that sends the same messages between a number of ranks; `None` if the library
    /// uses another algorithm instead.
    schedule: fn(u32) -> Option<&'static str>,
    /// Whether all messages are under way at once, rather than one after the other.
    at_once: bool,
}

/// From this block size on, up to the next, an algorithm is used.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Turn {
    /// The first block size, in bytes; the first of all is 1.
    pub block_bytes: u64,
    /// The algorithm.
    pub own: &'static Own,
}

/// The algorithms for communicators of a number of ranks.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The ranks.
    pub ranks: u32,
    /// By operation, ascending in the block size.
    pub turns: Vec<(Collective, Vec<Turn>)>,
}

/// The chosen algorithms of a library.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Ascending in the ranks, each for the same operations; the library decides for all other
    /// communicators.
    pub rules: Vec<Rules>,
    /// Its purpose, in a comment.
    pub origin: String,
}

/// The target of a file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Given<'a> {
    /// The library's version.
    pub release: Option<&'a str>,
    /// A file to start from.
    pub base: Option<&'a [u8]>,
}

impl Library {
    /// The tuning file.
    ///
    /// # Errors
    /// An invalid version or base.
    pub fn write(&self, tuning: &Tuning, given: &Given<'_>) -> Result<String, TuneError> {
        (self.write)(tuning, given)
    }

    /// The algorithms that apply to an operation between `ranks`.
    pub fn serving(
        &self,
        operation: Collective,
        ranks: u32,
    ) -> impl Iterator<Item = &'static Own> + use<> {
        let serves =
            move |own: &&Own| own.operation == operation && (own.schedule)(ranks).is_some();
        self.own.iter().filter(serves)
    }

    /// The environment variables that force an algorithm for all sizes.
    #[must_use]
    pub fn force(&self, own: &Own) -> Vec<(String, String)> {
        (self.force)(own)
    }
}

/// The measured times of a library's algorithm.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// The ranks that exchanged.
    pub ranks: u32,
    /// The started ranks; the last of them may have waited.
    pub started: u32,
    /// Block sizes in bytes, ascending, and seconds.
    pub seconds: Vec<(u64, f64)>,
}

/// The fastest algorithms over the sizes at which all were measured. Each turn begins at the first
/// size at which its algorithm is the fastest.
///
/// # Errors
/// No measurements.
pub fn by_times(measured: &[(&'static Own, Times)]) -> Result<Vec<Turn>, TuneError> {
    let mut turns: Vec<Turn> = Vec::new();
    let sizes = measured.iter().map(|(_, times)| times.seconds.len()).min().unwrap_or(0);
    for i in 0..sizes {
        let at = |(_, times): &&(&'static Own, Times)| times.seconds[i].1;
        let best = measured.iter().min_by(|a, b| at(a).total_cmp(&at(b)));
        let (own, times) = best.expect("bug: sizes without times");
        if turns.last().is_none_or(|last| last.own.key != own.key) {
            let block_bytes = if i == 0 { 1 } else { times.seconds[i].0 };
            turns.push(Turn { block_bytes, own });
        }
    }
    if turns.is_empty() { Err(TuneError::Unmeasured) } else { Ok(turns) }
}

/// The requested communicators, in order; by default one of all ranks.
///
/// # Errors
/// A machine of one rank, or communicators larger than the machine.
pub fn communicators(machine: &Machine, asked: &[u32]) -> Result<Vec<u32>, TuneError> {
    let ranks = machine.ranks();
    if ranks < 2 {
        return Err(TuneError::Alone);
    }
    let mut sizes = if asked.is_empty() { vec![ranks] } else { asked.to_vec() };
    sizes.sort_unstable();
    sizes.dedup();
    match sizes.iter().find(|&size| !(2..=ranks).contains(size)) {
        Some(&asked) => Err(TuneError::Communicator { asked, ranks }),
        None => Ok(sizes),
    }
}

/// The fastest of a library's algorithms over block sizes, by the steps model, in communicators of
/// a machine's first ranks ([`communicators`]).
///
/// # Errors
/// A machine too large for counting.
pub fn by_model(
    library: &'static Library,
    machine: &Machine,
    communicators: &[u32],
    operations: &[Collective],
) -> Result<Tuning, Error> {
    let mut rules = Vec::new();
    for &ranks in communicators {
        let part;
        let machine = if ranks == machine.ranks() {
            machine
        } else {
            let members: Vec<Rank> = (0..ranks).map(Rank).collect();
            part = machine.subset(&Subset::new(&members, machine.ranks())?);
            &part
        };
        let mut turns = Vec::new();
        for &operation in operations {
            turns.push((operation, modelled(library, machine, operation)?));
        }
        rules.push(Rules { ranks, turns });
    }
    let (ports, timing) = (machine.ports, &machine.timing.name);
    let origin = format!("{}, ports {ports}, timing {timing}", machine.name);
    Ok(Tuning { rules, origin })
}

/// The turns between all ranks of a machine.
fn modelled(
    library: &'static Library,
    machine: &Machine,
    operation: Collective,
) -> Result<Vec<Turn>, Error> {
    let problem = Problem::new(operation, machine.ranks(), machine.ports, PRICED)?;
    let (mut own, mut choices) = (Vec::new(), Vec::new());
    for candidate in library.serving(operation, problem.ranks) {
        let name = (candidate.schedule)(problem.ranks).expect("bug: it applies");
        own.push(candidate);
        choices.push(price_of(machine, &problem, name, candidate.at_once)?);
    }
    let lines: Vec<_> = choices
        .iter()
        .map(|choice| TimeLine { seconds: choice.price.line(PRICED), least: 1 })
        .collect();
    let turns = envelope(&lines).into_iter();
    Ok(turns.map(|lowest| Turn { block_bytes: lowest.from, own: own[lowest.line] }).collect())
}

/// The block size of prices; those of all algorithms here grow with it.
const PRICED: u64 = 1 << 20;

/// The price of a schedule, with radix 2 if it has one, in a library whose messages are all under
/// way at once. The library is unaware of nodes, so all ranks of a node may send at once. If more
/// ranks than a node has ports send to other nodes, their messages take turns.
///
/// # Errors
/// A schedule that does not apply, or is too large to count.
pub fn unaware(machine: &Machine, problem: &Problem, name: &'static str) -> Result<Choice, Error> {
    price_of(machine, problem, name, true)
}

/// The same for a library whose messages are all under way at once, or one after the other.
fn price_of(
    machine: &Machine,
    problem: &Problem,
    name: &'static str,
    at_once: bool,
) -> Result<Choice, Error> {
    let mut alone = machine.clone();
    let rank = if at_once { machine.ports.rank } else { 1 };
    let node = match machine.topology.shape() {
        Shape::Clustered(_) => u32::MAX,
        _ => rank,
    };
    alone.set_ports(Ports { rank, node });
    let Problem { operation, ranks, block_bytes, .. } = *problem;
    let problem = Problem::new(operation, ranks, alone.ports, block_bytes)?;
    let mut parameters = Parameters::new();
    if name == "bruck" {
        parameters.insert("radix".to_owned(), Setting::Integer(2));
    }
    let schedule = Exchange::new(&alone, &problem)?.schedule(name, &parameters)?;
    check_counting_work(&schedule, &alone)?;
    let (mut startup, mut transmission) = (0.0, 0.0);
    let counts = count_steps(&schedule, &alone, None, Budget::default().memory, |_, step| {
        let turns = f64::from(step.inter_node.div_ceil(machine.ports.node).max(1));
        let time = step.time(&alone.timing);
        startup += turns * time.startup;
        transmission += turns * time.transmission;
    })?;
    let time = match machine.topology.shape() {
        Shape::Clustered(_) => Time { startup, transmission, ..counts.time },
        _ => counts.time,
    };
    let price = Price {
        priced: Priced::Exactly,
        time,
        steps: counts.steps,
        blocks: counts.in_blocks(counts.bytes),
        link_blocks: counts.in_blocks(counts.link_bytes),
        link_contention: counts.link_contention,
    };
    Ok(Choice::new(name, schedule.origin.parameters, price))
}

/// Recursive doubling, which requires powers of two.
fn of_powers(ranks: u32) -> Option<&'static str> {
    ranks.is_power_of_two().then_some("recursive-doubling")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;

    fn library(name: &str) -> &'static Library {
        LIBRARIES.iter().find(|library| library.name == name).unwrap()
    }

    fn tuning(name: &str, on: &str, asked: &[u32], operation: Collective) -> Tuning {
        let machine = machine(on).unwrap();
        let sizes = communicators(&machine, asked).unwrap();
        by_model(library(name), &machine, &sizes, &[operation]).unwrap()
    }

    fn chosen(name: &str, on: &str, operation: Collective) -> Vec<(u64, &'static str)> {
        let tuning = tuning(name, on, &[], operation);
        tuning.rules[0].turns[0].1.iter().map(|turn| (turn.block_bytes, turn.own.name)).collect()
    }

    #[test]
    fn blocks_are_combined_as_long_as_it_pays() {
        // 3 startups of 1 us and 12 blocks against 7 and 7, at 1 ns a byte: equal at 800 bytes.
        let found = chosen("openmpi", "full:8", Collective::AllToAll);
        assert_eq!(found, [(1, "bruck"), (800, "linear")]);
        assert_eq!(chosen("mpich", "full:8", Collective::AllToAll)[1], (800, "scattered"));
        assert_eq!(chosen("openmpi", "full:8", Collective::AllGather), [(1, "bruck")]);
        assert_eq!(communicators(&machine("full:1").unwrap(), &[]), Err(TuneError::Alone));
    }

    /// Each size of communicators has its own rules; communicators of other sizes use the
    /// library's.
    #[test]
    fn communicators_of_several_sizes_have_their_own_rules() {
        let found = tuning("openmpi", "full:8", &[8, 4, 5, 4], Collective::AllToAll);
        let file = library("openmpi").write(&found, &Given::default()).unwrap();
        let numbers: Vec<_> = file.lines().filter_map(|line| line.split('#').next()).collect();
        let numbers: Vec<u32> =
            numbers.iter().flat_map(|line| line.split_whitespace()).flat_map(str::parse).collect();
        // 2 startups and 4 blocks against 3 and 3, 3 and 5 against 4 and 4, 3 and 12 against 7 and
        // 7: equal at 1000, 1000 and 800 bytes, but for the last bit of the first.
        #[rustfmt::skip]
        assert_eq!(numbers, [
            1, 3, 6,
            0, 1, 0, 0, 0, 0,
            4, 2, 0, 3, 0, 0, 4 * 1001, 1, 0, 0,
            5, 2, 0, 3, 0, 0, 5 * 1000, 1, 0, 0,
            6, 1, 0, 0, 0, 0,
            8, 2, 0, 3, 0, 0, 8 * 800, 1, 0, 0,
            9, 1, 0, 0, 0, 0,
        ]);
        let refused = |asked| communicators(&machine("full:8").unwrap(), &[4, asked]).unwrap_err();
        assert_eq!(refused(9), TuneError::Communicator { asked: 9, ranks: 8 });
        assert_eq!(refused(1), TuneError::Communicator { asked: 1, ranks: 8 });
    }

    /// Two nodes of four ranks with one port per node: in the middle step of a direct exchange, all
    /// ranks of a node send to the other node, one rank fewer in the neighbouring steps, and so on.
    #[test]
    fn messages_of_a_node_take_turns_at_its_ports() {
        let seconds = |on: &str, ports: Ports| {
            let mut machine = machine(on).unwrap();
            machine.set_ports(ports);
            let ranks = machine.ranks();
            let problem = Problem::new(Collective::AllToAll, ranks, machine.ports, 1000).unwrap();
            unaware(&machine, &problem, "direct").unwrap().price.time.total()
        };
        let one = 1e-6 + 1e-6;
        for (ports, turns) in [
            (Ports::from(1), 1 + 2 + 3 + 4 + 3 + 2 + 1),
            (Ports { rank: 1, node: 2 }, 1 + 1 + 2 + 2 + 2 + 1 + 1),
            (Ports { rank: 1, node: 4 }, 7),
            (Ports::from(2), 2 + 4 + 3 + 1),
            (Ports::ALL, 1),
        ] {
            let found = seconds("cluster:4,4", ports);
            assert!((found / (f64::from(turns) * one) - 1.0).abs() < 1e-9, "{ports}: {found}");
        }
        assert!((seconds("full:8", Ports::from(7)) / one - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_quickest_measured_is_used() {
        let library = library("openmpi");
        let own: Vec<_> = library.serving(Collective::AllToAll, 6).collect();
        let times = |seconds: [f64; 3]| Times {
            ranks: 6,
            started: 6,
            seconds: [16, 64, 256].into_iter().zip(seconds).collect(),
        };
        let measured = [(own[0], times([3.0, 2.0, 1.0])), (own[2], times([2.0, 1.0, 2.0]))];
        let turns = by_times(&measured).unwrap();
        let turns: Vec<_> = turns.iter().map(|turn| (turn.block_bytes, turn.own.name)).collect();
        assert_eq!(turns, [(1, "bruck"), (256, "linear")]);
        assert!(by_times(&[]).is_err());
        let forced = library.force(own[2]);
        assert_eq!(forced[1], ("OMPI_MCA_coll_tuned_alltoall_algorithm".into(), "3".into()));
        // Recursive doubling requires powers of two.
        let gathers = |ranks| library.serving(Collective::AllGather, ranks).count();
        assert_eq!((gathers(6), gathers(8)), (2, 3));
    }

    #[test]
    fn only_whole_trees_are_changed() {
        let write = |asked: &[u32], base: Option<&str>| {
            let given = Given { release: None, base: base.map(str::as_bytes) };
            library("mpich").write(&tuning("mpich", "full:8", asked, Collective::AllToAll), &given)
        };
        let written = |base: Option<&str>| write(&[], base);
        assert_eq!(written(None), Err(TuneError::NoBase));
        let base = |text| match written(Some(text)) {
            Err(TuneError::Base { reason }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(base("{}"), "it is not complete: no `collective=allgather`");
        assert_eq!(base("nothing"), "neither a selection tree nor a library with one");
        let mut whole = String::from("{");
        for name in mpich::COLLECTIVES.iter().filter(|name| **name != "alltoall") {
            whole += &format!("\"collective={name}\":{{}},");
        }
        let tree = |algorithms: &str| {
            format!(
                "{whole}\"collective=alltoall\":{{\"comm_type=intra\":{{\"comm_size=any\":{{{algorithms}}}}}}}}}"
            )
        };
        assert_eq!(base(&tree("")), "it has no `algorithm=MPIR_Alltoall_intra_brucks`");
        let both = "\"algorithm=MPIR_Alltoall_intra_brucks\":{},\"algorithm=MPIR_Alltoall_intra_scattered\":{\"batch=3\":{}}";
        let out: String = written(Some(&tree(both))).unwrap().split_whitespace().collect();
        let ours = "\"comm_size<=8\":{\"avg_msg_size<800\":{\"algorithm=MPIR_Alltoall_intra_brucks\":{}},\
                    \"avg_msg_size=any\":{\"algorithm=MPIR_Alltoall_intra_scattered\":{\"batch=3\":{}}}}";
        assert!(out.contains(ours), "{out}");
        assert!(out.contains("\"comm_size<=7\":{\"comm_size=any\":"), "{out}");
        let out = write(&[8, 3, 4, 8], Some(&tree(both))).unwrap();
        let sizes: Vec<_> = out.matches("comm_size<=").collect();
        assert_eq!(sizes.len(), 5, "{out}");
        let at = |ranks| out.find(&format!("comm_size<={ranks}\"")).unwrap();
        assert!([2, 3, 4, 7, 8].map(at).is_sorted(), "{out}");
    }
}
