//! Tuning files for MPI libraries: a library's own algorithm for each range of block sizes. Each
//! library has a file here and a line of [`LIBRARIES`].
//!
//! An algorithm of a library has the price of the schedule that sends the same messages
//! ([`unaware`]), or a measured time. Algorithms without an equivalent schedule are never chosen.
//! [`Modelled`] compares them with the one that the library's own rules choose.

mod modelled;
mod mpich;
mod neighbor;
mod open_mpi;

use serde::{Deserialize, Serialize};
use topocoll_analysis::{Time, check_counting_work, count_steps};
use topocoll_schedule::{Collective, Parameters, Problem, Setting};
use topocoll_topology::{Machine, Ports, Rank, Shape, Subset};

use crate::{Budget, Choice, Error, Exchange, Price, Priced};

pub use self::modelled::{Best, Gain, Modelled};
pub use crate::error::TuneError;

/// An MPI library that reads a tuning file.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in text.
    pub title: &'static str,
    /// The file written for it, in a line.
    pub about: &'static str,
    /// The command that uses the file; `{file}` is replaced by its name.
    pub using: &'static str,
    /// Its algorithms with an equivalent schedule; at equal prices, the first is chosen.
    pub own: &'static [Own],
    /// Releases whose decision rules are known; the first is meant unless another is named.
    pub releases: &'static [Release],
    /// The key of the algorithm that these rules choose for an operation between ranks, by block size.
    decide: fn(Collective, u32, u64) -> &'static str,
    /// The environment variables that force an algorithm, with a number of requests, for all sizes.
    force: fn(&Own, u32) -> Vec<(String, String)>,
    write: fn(&Tuning, &Given<'_>) -> Result<String, TuneError>,
}

/// Every library.
#[rustfmt::skip]
pub const LIBRARIES: &[Library] = &[
    Library { name: "openmpi", title: "Open MPI", about: "dynamic rules of Open MPI's tuned component", using: open_mpi::USING, own: &open_mpi::OWN, releases: &open_mpi::DECIDED, decide: open_mpi::decide, force: open_mpi::force, write: open_mpi::write },
    Library { name: "mpich", title: "MPICH", about: "MPICH's selection tree, changed in a full one of its version (--base)", using: mpich::USING, own: &mpich::OWN, releases: &mpich::DECIDED, decide: mpich::decide, force: mpich::force, write: mpich::write },
];

/// A release of a library whose decision rules are known.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its name.
    pub name: &'static str,
    /// The versions with these rules, as the library's repository tags them.
    pub tags: &'static str,
    /// The file there that has the rules.
    pub file: &'static str,
    /// An operation for which another component of the library comes before these rules on several nodes.
    pub ahead: Option<(Collective, &'static str)>,
}

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
    /// The most messages of a rank that are under way at once.
    under_way: u32,
}

/// An environment variable as an option of `mpirun`, or before it.
fn on_command_line((name, value): &(String, String)) -> String {
    match name.strip_prefix("OMPI_MCA_") {
        Some(name) => format!("--mca {name} {value}"),
        None => format!("{name}={value}"),
    }
}

impl Own {
    /// Whether a parameter of the library limits its requests.
    fn limits(&self) -> bool {
        self.name == "linear_sync"
    }
}

/// From this block size on, up to the next, an algorithm is used.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Turn {
    /// The first block size, in bytes; the first of all is 1.
    pub block_bytes: u64,
    /// The algorithm.
    pub own: &'static Own,
    /// The most requests of a rank at a time, which a parameter of the library sets; 0 leaves it as it is.
    pub requests: u32,
    /// Seconds at the first block size, predicted or measured.
    pub seconds: f64,
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

    /// The environment variables that force an algorithm for all sizes, with a number of requests unless it
    /// is 0.
    #[must_use]
    pub fn force(&self, own: &Own, requests: u32) -> Vec<(String, String)> {
        (self.force)(own, requests)
    }

    /// The options, or variables, that force an algorithm on the command line of a release.
    #[must_use]
    pub fn forcing(&self, release: &Release, turn: &Turn) -> String {
        let mut variables = self.force(turn.own, turn.requests);
        if let Some((operation, component)) = release.ahead
            && operation == turn.own.operation
        {
            variables.insert(0, ("OMPI_MCA_coll".to_owned(), format!("^{component}")));
        }
        variables.iter().map(on_command_line).collect::<Vec<_>>().join(" ")
    }

    /// The option that limits the requests of a rank, if an algorithm has one.
    #[must_use]
    pub fn limiting(&self, requests: u32) -> Option<String> {
        let own = self.own.iter().find(|own| own.limits())?;
        self.force(own, requests).last().map(on_command_line)
    }

    /// The release of a name whose decision rules are known; without a name, the usual one.
    ///
    /// # Errors
    /// Another name.
    pub fn release(&self, name: Option<&str>) -> Result<&'static Release, TuneError> {
        let name = name.unwrap_or(self.releases[0].name);
        // 4.1.6 is one of 4.1.
        let is_of = |release: &&Release| {
            let rest = name.strip_prefix(release.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.releases.iter().find(is_of).ok_or_else(|| {
            let known: Vec<_> = self.releases.iter().map(|release| release.name).collect();
            let (library, release) = (self.name, name.to_owned());
            TuneError::Release { library, release, known: known.join(", ") }
        })
    }

    /// The algorithm that the rules of all [`releases`](Self::releases) choose.
    #[must_use]
    pub fn default(&self, operation: Collective, ranks: u32, block_bytes: u64) -> &'static Own {
        let key = (self.decide)(operation, ranks, block_bytes);
        let chosen = self.own.iter().find(|own| own.operation == operation && own.key == key);
        chosen.expect("bug: rules choose an algorithm that is not listed")
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
            turns.push(Turn { block_bytes, own, requests: 0, seconds: times.seconds[i].1 });
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
/// a machine's first ranks ([`communicators`]), and all prices between the ranks of the last of them.
///
/// # Errors
/// A machine too large for counting.
pub fn by_model(
    library: &'static Library,
    machine: &Machine,
    communicators: &[u32],
    operations: &[Collective],
) -> Result<(Tuning, Vec<Modelled>), Error> {
    let (mut rules, mut last) = (Vec::new(), Vec::new());
    for &ranks in communicators {
        let part;
        let machine = if ranks == machine.ranks() {
            machine
        } else {
            part = machine.subset(&first(machine, ranks)?);
            &part
        };
        let modelled =
            operations.iter().map(|&operation| Modelled::new(library, machine, operation));
        last = modelled.collect::<Result<Vec<_>, _>>()?;
        let turns = operations.iter().zip(&last).map(|(&operation, own)| (operation, own.turns()));
        rules.push(Rules { ranks, turns: turns.collect() });
    }
    let (ports, timing) = (machine.ports, &machine.timing.name);
    let origin = format!("{}, ports {ports}, timing {timing}", machine.name);
    Ok((Tuning { rules, origin }, last))
}

/// The first ranks of a machine.
///
/// # Errors
/// More ranks than it has.
pub fn first(machine: &Machine, ranks: u32) -> Result<Subset, Error> {
    let members: Vec<Rank> = (0..ranks).map(Rank).collect();
    Ok(Subset::new(&members, machine.ranks())?)
}

/// The block size of prices; those of all algorithms here grow with it.
const PRICED: u64 = 1 << 20;

/// The price of a schedule, with radix 2 if it has one, in a library whose messages are all under
/// way at once, those of other groups too. The library is unaware of nodes, so all ranks of a node may send at once. If more
/// ranks than a node has ports send to other nodes, their messages queue at the ports.
///
/// # Errors
/// A schedule that does not apply, or is too large to count.
pub fn unaware(exchange: &Exchange<'_>, name: &'static str) -> Result<Choice, Error> {
    price_of(exchange, name, u32::MAX)
}

/// The same for a library with at most that many messages of a rank under way.
fn price_of(exchange: &Exchange<'_>, name: &'static str, under_way: u32) -> Result<Choice, Error> {
    let machine = exchange.whole();
    let [mut alone, mut group] = [machine, exchange.machine()].map(Machine::clone);
    let rank = machine.ports.rank.min(under_way);
    let node = match machine.topology.shape() {
        Shape::Clustered(_) => u32::MAX,
        _ => rank,
    };
    alone.set_ports(Ports { rank, node });
    group.set_ports(Ports { rank, node });
    let Problem { operation, ranks, block_bytes, .. } = *exchange.problem();
    let problem = Problem::new(operation, ranks, alone.ports, block_bytes)?;
    let mut parameters = Parameters::new();
    if name == "bruck" {
        parameters.insert("radix".to_owned(), Setting::Integer(2));
    }
    let schedule = match name {
        neighbor::NAME => neighbor::schedule(&problem),
        name => Exchange::new(&group, &problem)?.schedule(name, &parameters)?,
    };
    let parameters = schedule.origin.parameters.clone();
    let mut schedule = exchange.placed(&schedule)?.into_owned();
    // Counting lets the messages of a port take turns; each turn has its own startup.
    schedule.problem.node_ports = machine.ports.node.min(node);
    check_counting_work(&schedule, &alone)?;
    let mut startup = 0.0;
    let counts = count_steps(&schedule, &alone, None, Budget::default().memory, |_, step| {
        let turns = f64::from(step.inter_node.div_ceil(machine.ports.node).max(1));
        startup += turns * step.time(&alone, block_bytes).startup;
    })?;
    let time = Time { startup, ..counts.time };
    let price = Price {
        priced: Priced::Exactly,
        time,
        steps: counts.steps,
        blocks: counts.in_blocks(counts.bytes),
        link_blocks: counts.in_blocks(counts.link_bytes),
        link_contention: counts.link_contention,
    };
    Ok(Choice::new(name, parameters, price))
}

/// Recursive doubling, which requires powers of two.
fn of_powers(ranks: u32) -> Option<&'static str> {
    ranks.is_power_of_two().then_some("recursive-doubling")
}

#[cfg(test)]
mod tests;
