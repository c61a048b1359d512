//! The machine, the problem and the schedule that a command line names.

use std::fs::{File, Metadata};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use topocoll::formats::{self, ReadError, Target};
use topocoll::spec::Reading;
use topocoll::text::printable;
use topocoll::{
    Barrier, Budget, Catalogue, Collective, Endpoint, Error, Exchange, GivenSchedule, Groups,
    Machine, Origin, Parameters, PerClass, Ports, Problem, STEPS, Schedule, Selection, Setting,
    Shape, Solution, Subset, Timing, Topology, files, spec,
};
use topocoll_report::names::resolved;

use crate::args::{Open, Options, Part, Subject};
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::host::{check_fits, memory};
use crate::render::named;
use crate::values::{Given, PerNode, RankList};

/// The most bytes of a machine file on standard input.
const MOST_INPUT: u64 = 1 << 26;

/// The most bytes of a file of groups.
const LARGEST_GROUPS: u64 = 1 << 26;

/// Default bytes of a block.
const DEFAULT_BLOCK: u64 = 1024;

/// The machine, with the ports and timing of the options.
pub(crate) fn machine(name: &str, options: &Options) -> anyhow::Result<Machine> {
    starting("building the machine", 0);
    let mut machine = named_machine(name, &options.open)?;
    if let Some(ports) = options.ports {
        machine.set_ports(ports);
        say_reduced(&machine, ports);
        if ports.node != u32::MAX {
            warn_of_shared_links(&machine);
        }
    }
    match options.timing.as_deref() {
        Some("generic") => {
            (machine.timing, machine.endpoint) = (Timing::generic(), Endpoint::default());
        }
        Some(name) => {
            let other = topocoll::machine(name)?;
            other.timing.fits(&*other.topology, &*machine.topology)?;
            (machine.timing, machine.endpoint) = (other.timing, other.endpoint);
        }
        None => {}
    }
    note_on_ring(&machine);
    let on = |option: &str, given: Option<&Given<PerNode>>| {
        let values = given.map(|given| given.on(&*machine.topology)).transpose();
        values.map_err(Error::from).with_context(|| format!("--{option}"))
    };
    let startup = on("startup", options.startup.as_ref())?;
    let bandwidth = on("bandwidth", options.bandwidth.as_ref())?;
    let timing = &mut machine.timing;
    let mut overridden = Vec::new();
    if let Some(startup) = startup {
        timing.startup = startup;
        overridden.push("startup");
    }
    if let Some(bandwidth) = bandwidth {
        timing.per_byte = bandwidth;
        overridden.push("bandwidth");
    }
    let mut set = |name: &'static str, value: Option<f64>, apply: &mut dyn FnMut(f64)| {
        if let Some(value) = value {
            apply(value);
            overridden.push(name);
        }
    };
    if let Some(injection) = options.injection.as_deref().copied() {
        set("injection", Some(injection.rank), &mut |_| timing.injection = injection);
    }
    set("per hop", options.per_hop.as_deref().copied(), &mut |value| {
        timing.per_hop = PerClass::uniform(value);
    });
    set("rearrangement", options.rearrangement.as_deref().copied(), &mut |value| {
        timing.rearrangement_per_byte = value;
    });
    set("barrier", options.barrier.as_deref().copied(), &mut |value| {
        timing.barrier = Barrier { fixed: value, per_doubling: 0.0 }
    });
    if !overridden.is_empty() {
        timing.name = format!("{} with {} given", timing.name, overridden.join(", "));
    }
    Ok(machine.with_values_of_links())
}

/// The machine of a name or a file, as it is read, with ranks on the hosts that are given.
pub(crate) fn named_machine(name: &str, open: &Open) -> anyhow::Result<Machine> {
    let machine = match name.trim_start().split_at_checked(1) {
        Some(("-", "")) => given_as_input(&open.reading())?,
        Some(("-", sizes)) if sizes.starts_with('*') => {
            let machine = given_as_input(&open.reading())?;
            spec::with_ranks_on_nodes(&machine, &sizes[1..]).map_err(Error::ShortForm)?
        }
        _ => topocoll::machine_with(name, &open.reading())?,
    };
    let Some(hosts) = &open.hosts else { return Ok(machine) };
    let path = hosts.display().to_string();
    let text = read_text(hosts, MOST_INPUT, "host files")?;
    let text = text.trim_start_matches('\u{feff}').to_owned();
    let placed = files::place(&machine, &text);
    Ok(placed.map_err(|error| Error::File { path, text, error })?)
}

/// The machine whose file is standard input.
fn given_as_input(reading: &Reading) -> anyhow::Result<Machine> {
    let (path, mut bytes) = ("stdin".to_owned(), Vec::new());
    let whole = std::io::stdin().take(MOST_INPUT + 1).read_to_end(&mut bytes);
    whole.context("cannot read standard input")?;
    anyhow::ensure!(
        bytes.len() as u64 <= MOST_INPUT,
        "standard input is longer than {MOST_INPUT} bytes, the limit of files"
    );
    let text = String::from_utf8(bytes).context("standard input is not text")?;
    let machine = files::read_in(Path::new(&path), &text, reading);
    Ok(machine.map_err(|error| Error::File { path, text, error })?)
}

/// Says what `torus:16*16` is, as it may be meant as `torus:16x16`.
fn note_on_ring(machine: &Machine) {
    let (Shape::Clustered(nodes), Shape::Grid(grid)) =
        (machine.topology.shape(), machine.topology.network())
    else {
        return;
    };
    if let (&[side], Some(size), Some((kind, _))) =
        (grid.sides(), nodes.equal_size(), machine.name.split_once(':'))
    {
        say(&format!(
            "note: {} has {side} nodes of {size} ranks; {kind}:{side}x{size} has {side} x {size} nodes",
            machine.name
        ));
    }
}

/// Says which of the given numbers of ports are more than a rank or a node can use.
fn say_reduced(machine: &Machine, given: Ports) {
    let (granted, others) = (machine.ports, machine.ranks() - 1);
    let single = match machine.topology.shape() {
        Shape::Clustered(nodes) => nodes.largest() == 1,
        _ => true,
    };
    let alone = machine.topology.nodes() == 1;
    let less = |given: u32, granted: u32| granted < given && given != u32::MAX;
    let mut why = Vec::new();
    if given.rank > others && given.rank != u32::MAX {
        why.push(format!("a rank has {others} peer{}", if others == 1 { "" } else { "s" }));
    }
    if alone && given.rank != given.node {
        why.push("there are no other nodes".to_owned());
    } else if single && given.rank != given.node {
        why.push("a node has one rank".to_owned());
    } else if !single && less(given.node, granted.node) && granted.node != granted.rank {
        why.push(format!("a node has {} messages for other nodes", granted.node));
    }
    if !why.is_empty() {
        say(&format!("note: --ports {given} is reduced to {granted}: {}", why.join(", and ")));
    }
}

/// Warns of more ports than a node has links: `--ports` counts messages, not links.
fn warn_of_shared_links(machine: &Machine) {
    let (topology, ports) = (&machine.topology, machine.ports.node);
    let links = topology.most_links_out();
    if links > 0 && u64::from(ports) > links {
        let each = topology.links() == links * u64::from(topology.nodes());
        let most = if each { "" } else { "at most " };
        let plural = if links == 1 { "" } else { "s" };
        say(&format!(
            "warning: --ports {ports}: a node of {} has {most}{links} link{plural}, so {ports} messages share {}",
            machine.name,
            if links == 1 { "it" } else { "them" },
        ));
    }
}

/// The problem on that machine.
pub(crate) fn problem(machine: &Machine, options: &Options) -> anyhow::Result<Problem> {
    Ok(Problem::new(
        options.op.unwrap_or(Collective::AllToAll),
        machine.ranks(),
        machine.ports,
        options.block.unwrap_or(DEFAULT_BLOCK),
    )
    .map_err(Error::from)?)
}

/// A schedule and its name in texts.
pub(crate) struct Named {
    pub(crate) schedule: Schedule,
    pub(crate) name: String,
}

impl Named {
    /// Names a schedule by its parameters, or by the number of steps that resolves to it.
    fn new(schedule: Schedule, steps: Option<u64>) -> Self {
        let Origin { algorithm, parameters } = &schedule.origin;
        let name = match steps {
            Some(steps) => resolved(&Catalogue::standard(), algorithm, parameters, steps),
            None => named(algorithm, parameters),
        };
        Self { schedule, name }
    }
}

/// The schedule of an algorithm for an exchange, or of a file for the machine of its ranks, which states its own
/// problem.
pub(crate) fn schedule(
    exchange: &Exchange<'_>,
    machine: &mut Machine,
    options: &Options,
    subject: &Subject,
) -> anyhow::Result<Named> {
    let Some(path) = &subject.schedule else { return written(exchange, subject) };
    let topology = Arc::clone(&machine.topology);
    let schedule = read_schedule(machine, options, path, &*topology)?;
    machine.set_ports(schedule.problem.both_ports());
    Ok(Named::new(schedule, None))
}

/// The schedule of the named algorithm, or of the choice of `select`, which a note names.
pub(crate) fn written(exchange: &Exchange<'_>, subject: &Subject) -> anyhow::Result<Named> {
    if let Some(name) = &subject.algorithm {
        starting("building the schedule", 0);
        let given = parameters(&subject.set)?;
        let Solution { schedule, claims, .. } = exchange.solve(name, &given)?;
        let is_resolved = given.keys().eq([STEPS.name]);
        return Ok(Named::new(schedule, is_resolved.then_some(claims.steps)));
    }
    let selection = ranked(exchange, None)?;
    let Some(best) = selection.best() else {
        let machine = printable(&exchange.machine().name);
        anyhow::bail!(
            "no algorithm serves this exchange: `topocoll select {machine} --why` says why"
        );
    };
    let undecided = match selection.undecided() {
        [] => "",
        _ => ", though others may be faster",
    };
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    let found = Named::new(schedule, Some(best.price.steps));
    say(&format!("note: no --algorithm: {}, the choice of select{undecided}", found.name));
    Ok(found)
}

/// The parameters of the options `--set`.
pub(crate) fn parameters(set: &[(String, Setting)]) -> anyhow::Result<Parameters> {
    let mut parameters = Parameters::new();
    for (key, value) in set {
        if parameters.insert(key.clone(), value.clone()).is_some() {
            anyhow::bail!("parameter `{key}` is set twice");
        }
    }
    Ok(parameters)
}

/// The schedule of a file for `topology`, in any supported format.
pub(crate) fn read_schedule(
    machine: &Machine,
    options: &Options,
    path: &Path,
    topology: &dyn Topology,
) -> anyhow::Result<Schedule> {
    let shown = path.display();
    // The size of a folder is unknown.
    let file = std::fs::metadata(path).ok().filter(Metadata::is_file);
    starting("reading bytes", file.map_or(0, |file| file.len()));
    let mut target = Target::new(machine, memory());
    (target.topology, target.seen) = (topology, PROGRESS.done);
    let schedule = match formats::read(path, &target) {
        Err(error @ ReadError::File { .. }) => return Err(Error::from(error).into()),
        read => read.map_err(Error::from).with_context(|| format!("{shown}"))?,
    };
    check_header(machine, options, &schedule).with_context(|| format!("{shown}"))?;
    Ok(schedule)
}

/// Opens a regular file for reading.
pub(crate) fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = files::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(BufReader::new(file))
}

/// All of a file of at most `most` bytes.
pub(crate) fn read_whole(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let (name, mut bytes) = (path.display(), Vec::new());
    let read = open(path)?.take(most + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read `{name}`"))?;
    anyhow::ensure!(bytes.len() as u64 <= most, "`{name}` has more than {most} bytes");
    Ok(bytes)
}

/// The text of a file of at most `most` bytes; `what` names files with that limit.
pub(crate) fn read_text(path: &Path, most: u64, what: &str) -> anyhow::Result<String> {
    let unreadable = |reason| Error::Unreadable { path: path.display().to_string(), reason };
    Ok(files::text_of(path, most, what).map_err(unreadable)?)
}

/// Checks that the header of a schedule file agrees with the options. A header may raise the
/// default port of a short form, but not the ports of a machine file.
fn check_header(machine: &Machine, options: &Options, schedule: &Schedule) -> anyhow::Result<()> {
    let Problem { operation, block_bytes, .. } = schedule.problem;
    let (ports, granted) = (schedule.problem.both_ports(), machine.ports);
    if !schedule.rule().names_blocks() {
        anyhow::ensure!(
            options.op.is_none() && options.block.is_none(),
            "the file has message sizes only; --op and --block do not apply"
        );
        return Ok(());
    }
    anyhow::ensure!(
        options.op.is_none_or(|op| op == operation),
        "the schedule performs {operation}, not the given --op"
    );
    let block = options.block.unwrap_or(block_bytes);
    anyhow::ensure!(
        block == block_bytes,
        "the schedule has blocks of {block_bytes} bytes, not --block {block}"
    );
    anyhow::ensure!(
        options.ports.is_none() || granted.within(ports),
        "the schedule and its bounds are for --ports {ports}, not --ports {granted}"
    );
    let stated = options.ports.is_some() || machine.source("ports").is_some();
    anyhow::ensure!(
        !stated || ports.within(granted),
        "the schedule uses {ports} ports, and {} has {granted}",
        machine.name
    );
    Ok(())
}

/// The exchange of all ranks of a machine, or of the named groups or subset.
pub(crate) fn exchange<'m>(
    whole: &'m Machine,
    options: &Options,
    part: &Part,
) -> anyhow::Result<Exchange<'m>> {
    /// The index of a rank in schedules and demand matrices of the exchange.
    const PLACES: u128 = 16;
    let mut budget = Budget::default();
    (budget.memory, budget.progress) = (memory(), PROGRESS);
    let exchange = Exchange::new(whole, &problem(whole, options)?)?.budget(budget);
    let groups = match part {
        Part { groups: Some(name), .. } => groups(name, whole).context("--groups")?,
        Part { ranks: Some(RankList(ranks)), .. } => {
            let fits = check_fits("the places of all ranks", whole.ranks(), PLACES);
            fits.context("--ranks")?;
            let subset = Subset::new(ranks, whole.ranks());
            Groups::one(&subset.map_err(Error::from).context("--ranks")?)
        }
        Part { ranks: None, groups: None } => return Ok(exchange),
    };
    Ok(exchange.groups(&groups)?)
}

/// Groups by their name, or of a file with the ranks of a group in each line.
fn groups(name: &str, machine: &Machine) -> anyhow::Result<Groups> {
    let path = Path::new(name);
    if !path.is_file() {
        return Ok(Groups::named(name, machine).map_err(Error::from)?);
    }
    let text = read_text(path, LARGEST_GROUPS, "groups")?;
    let read = Groups::read(&text, machine).map_err(Error::from);
    read.with_context(|| format!("`{name}`"))
}

/// All algorithms, and the schedules of these files.
pub(crate) fn catalogue(
    machine: &Machine,
    options: &Options,
    files: &[PathBuf],
) -> anyhow::Result<Catalogue> {
    let mut catalogue = Catalogue::standard();
    // A file's schedule applies to its own operation and to any block size that it does not split.
    let options = Options { op: None, block: None, ..options.clone() };
    for path in files {
        let name = printable(&path.to_string_lossy());
        let schedule = read_schedule(machine, &options, path, &*machine.topology)?;
        let given = GivenSchedule::new(&name, schedule, machine)?;
        catalogue = catalogue.with(given).context("--schedule")?;
    }
    Ok(catalogue)
}

/// Ranks the choices, as far as memory and some seconds allow; `search` are those for searches, if given.
pub(crate) fn ranked(exchange: &Exchange<'_>, search: Option<f64>) -> Result<Selection, Error> {
    let mut budget = Budget::default();
    (budget.memory, budget.progress) = (memory(), PROGRESS);
    budget.search = search.unwrap_or(budget.search);
    exchange.clone().budget(budget).select()
}
