//! The machine that this runs on, as a machine file: GPUs or cores of the node, the nodes of a Slurm job, the
//! slice of a TPU. Needs no privileges and no network.

use std::env;
use std::path::Path;

use anyhow::Context;
use topocoll::spec::{self, Reading, SpecError, write_file};
use topocoll::text::printable;
use topocoll::{Error, Machine, PerClass, Rank, files, machine};

use crate::error::say;
use crate::programs::output;
use crate::render::{check_files, write_or_print};
use crate::{Outcome, args};

/// Programs that list what is in a node: the first whose output is read.
const PROGRAMS: [(&str, &[&str]); 3] =
    [("nvidia-smi", &["topo", "-m"]), ("rocm-smi", &["--showtopo"]), ("lstopo", &["--of", "xml"])];

/// Beginnings of TPU_ACCELERATOR_TYPE, the shipped machine with the timing, and the ranks of a chip.
const TPUS: [(&str, &str, &str); 4] = [
    ("v4", "tpu-v4-4x4x4", ""),
    ("v5p", "tpu-v5p-8x8x8", ""),
    ("v5lite", "tpu-v5e-16x16", ""),
    ("tpu7x", "tpu7x-4x4x4", "*2"),
];

/// What fits values to times that were measured between accelerators.
const COMPARE: &str = "topocoll compare MACHINE FILE, with the times of a benchmark";

/// Where Linux lists InfiniBand adapters.
const ADAPTERS: &str = "/sys/class/infiniband";

pub(super) fn run(args: &args::Detect) -> anyhow::Result<Outcome> {
    check_files(&[("--out", args.out.as_deref())])?;
    let (mut machine, measure) = match slice()? {
        Some(slice) => (slice, COMPARE.to_owned()),
        None => job(node()?)?,
    };
    for key in ["ports", "startup", "per_byte", "per_hop", "rearrangement", "barrier"] {
        if machine.source(key).is_none() {
            machine.cite(key, format!("assumed; measure it: {measure}"));
        }
    }
    write_or_print(args.out.as_deref(), &write_file(&machine).map_err(Error::ShortForm)?)?;
    Ok(Outcome::Fine)
}

/// A variable of the environment, if it is not empty.
fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// The machine that a program lists, if it is installed; a note says what is wrong with its output.
fn listed(program: &str, arguments: &[&str]) -> Option<Machine> {
    let command = format!("{program} {}", arguments.join(" "));
    let read = match output(program, arguments) {
        Ok(None) => return None,
        Ok(Some(text)) => files::read_in(Path::new(&command), &text, &Reading::default())
            .map_err(|error| error.message),
        Err(why) => Err(why),
    };
    read.map_err(|why| say(&format!("note: {command}: {}", printable(&why)))).ok()
}

/// The GPUs of this node, or its cores, and the command that measures what is unknown.
fn node() -> anyhow::Result<(Machine, String)> {
    let calibrate = |ranks: u32| format!("topocoll calibrate --ranks {}", ranks.clamp(2, 256));
    for (program, arguments) in PROGRAMS {
        if let Some(node) = listed(program, arguments) {
            // Only GPUs have links, or a limit, of their own.
            let has = |key| node.source(key).is_some();
            let is_cores = program == "lstopo" && !has("network") && !has("injection");
            let measure = if is_cores { calibrate(node.ranks()) } else { COMPARE.to_owned() };
            return Ok((node, measure));
        }
    }
    let cores = crate::host::cores();
    let mut node = machine(&format!("full:{cores}"))?;
    node.cite("title", "this computer".to_owned());
    node.cite("shape", format!("{cores} threads run at once"));
    Ok((node, calibrate(cores as u32)))
}

/// The nodes of a Slurm job, each like this one; this node, if the job has no other.
fn job((node, measure): (Machine, String)) -> anyhow::Result<(Machine, String)> {
    const TASKS: &str = "SLURM_TASKS_PER_NODE";
    let Some(tasks) = variable(TASKS) else { return Ok((node, measure)) };
    let groups = tasks_of(&tasks);
    let rule = || format!("{TASKS} is `{}`, not such as 4(x2),3", printable(&tasks));
    let groups = groups.with_context(rule)?;
    if let [(1, 1..)] = groups[..] {
        return Ok((node, measure));
    }
    let form: Vec<_> = groups.iter().map(|(nodes, tasks)| format!("{nodes}*{tasks}")).collect();
    let mut job = machine(&format!("cluster:{}", form.join(","))).with_context(rule)?;
    let [number, nodes, distribution] =
        ["SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_DISTRIBUTION"]
            .map(|name| variable(name).unwrap_or_default());
    job = switches(&groups, &nodes).unwrap_or(job);
    if distribution.starts_with("cyclic") {
        let nodes = in_turn(&groups);
        if !nodes.is_sorted() {
            job = spec::with_placement(&job, &nodes)?;
            job.cite("placement", printable(&format!("SLURM_DISTRIBUTION={distribution}")));
        }
    }
    job.cite("title", printable(&format!("Slurm job {number}")));
    job.cite("shape", printable(&format!("{TASKS}={tasks} SLURM_JOB_NODELIST={nodes}")));
    let rates = rates(Path::new(ADAPTERS));
    let mut per_byte = [job.timing.per_byte.least(); 2];
    let mut sources = ["assumed".to_owned(), "assumed".to_owned()];
    let limits = &mut job.timing.injection;
    if let Some(fastest) = rates.iter().map(|(_, rate)| *rate).reduce(f64::max) {
        (per_byte[1], limits.node) =
            (1.0 / fastest, 1.0 / rates.iter().map(|(_, rate)| rate).sum::<f64>());
        sources[1] = rates.into_iter().map(|(file, _)| file).collect::<Vec<_>>().join(", ");
    }
    if node.topology.nodes() > 1 || node.topology.links() > 0 {
        say("note: links within a node are left out: `topocoll machines FILE` has them");
    } else if let Some(source) = node.source("per_byte") {
        (per_byte[0], limits.rank) = (node.timing.per_byte.least(), node.timing.injection.rank);
        sources[0] = source.to_owned();
    }
    if sources.iter().any(|source| source != "assumed") {
        job.timing.per_byte = match job.topology.nodes() < job.ranks() {
            true => PerClass::of_nodes(per_byte, &*job.topology).map_err(Error::from)?,
            false => PerClass::uniform(per_byte[1]),
        };
        let [inside, between] = sources;
        for key in ["per_byte", "injection"] {
            job.cite(key, format!("intra-node: {inside}; inter-node: {between}"));
        }
    }
    if node.ports.rank > 1 {
        job.set_ports(u32::MAX);
        job.cite("ports", "assumed: all at once, as in the node".to_owned());
    }
    let measure = format!("topocoll calibrate --mpi --launch 'mpirun -np {}'", job.ranks());
    Ok((job.with_values_of_links(), measure))
}

/// The nodes of a job and the switches above them, if these are listed.
fn switches(groups: &[(u32, u32)], nodes: &str) -> Option<Machine> {
    let tree = listed("scontrol", &["show", "topology"])?;
    let count: u64 = groups.iter().map(|(nodes, _)| u64::from(*nodes)).sum();
    let placed = files::host_list(nodes).and_then(|hosts| {
        if hosts.len() as u64 != count {
            return Err(format!("{} hosts in SLURM_JOB_NODELIST, of {count}", hosts.len()).into());
        }
        let lines = hosts
            .iter()
            .zip(tasks_of_nodes(groups))
            .map(|(host, tasks)| format!("{host}:{tasks}\n"));
        files::place(&tree, &lines.collect::<String>())
    });
    let refused = |why: &SpecError| {
        let why = printable(&why.message);
        say(&format!("note: scontrol show topology: {why}: links between nodes are not known"));
    };
    placed.inspect_err(refused).ok()
}

/// By node, its tasks.
fn tasks_of_nodes(groups: &[(u32, u32)]) -> impl Iterator<Item = u32> {
    groups.iter().flat_map(|&(nodes, tasks)| std::iter::repeat_n(tasks, nodes as usize))
}

/// The nodes of tasks that are on all nodes in turn; not of more than a list may have.
fn in_turn(groups: &[(u32, u32)]) -> Vec<Rank> {
    const MOST: usize = 1 << 21;
    let of_node = |(node, tasks)| (0..tasks).map(move |turn| (turn, Rank(node)));
    let mut turns: Vec<_> =
        (0..).zip(tasks_of_nodes(groups)).flat_map(of_node).take(MOST).collect();
    turns.sort_unstable();
    turns.into_iter().map(|(_, node)| node).collect()
}

/// Nodes and tasks of each, in order, of a text such as `4(x2),3`.
fn tasks_of(text: &str) -> Option<Vec<(u32, u32)>> {
    let group = |part: &str| match part.split_once("(x") {
        None => Some((1, part.parse().ok()?)),
        Some((tasks, nodes)) => Some((nodes.strip_suffix(')')?.parse().ok()?, tasks.parse().ok()?)),
    };
    text.split(',').map(group).collect()
}

/// The active ports of InfiniBand adapters: the file of the rate, and bytes a second.
fn rates(folder: &Path) -> Vec<(String, f64)> {
    let inside = |folder: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let ports = inside(folder).into_iter().flat_map(|adapter| inside(&adapter.join("ports")));
    let rate = |port: std::path::PathBuf| {
        let read = |name| std::fs::read_to_string(port.join(name)).ok();
        // `4: ACTIVE` and `200 Gb/sec (4X HDR)`.
        let is_active = read("state").is_some_and(|state| state.contains("ACTIVE"));
        let text = read("rate").filter(|_| is_active)?;
        let gigabits: f64 = text.split_whitespace().next()?.parse().ok()?;
        let file = format!("{}: {}", port.join("rate").display(), text.trim());
        (gigabits > 0.0 && gigabits.is_finite()).then_some((printable(&file), gigabits * 1e9 / 8.0))
    };
    ports.filter_map(rate).collect()
}

/// The slice of a TPU, by the variables of its runtime.
fn slice() -> anyhow::Result<Option<Machine>> {
    const NAMES: [&str; 4] =
        ["TPU_TOPOLOGY", "TPU_TOPOLOGY_WRAP", "TPU_TOPOLOGY_ALT", "TPU_ACCELERATOR_TYPE"];
    let values = NAMES.map(variable);
    let [Some(sides), wraps, twisted, kind] = &values else { return Ok(None) };
    let said = NAMES.iter().zip(&values);
    let said: Vec<_> =
        said.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?))).collect();
    let said = printable(&said.join(" "));
    let known =
        TPUS.iter().find(|(begins, ..)| kind.as_ref().is_some_and(|kind| kind.starts_with(begins)));
    let mut wraps = wraps.iter().flat_map(|wraps| wraps.split(','));
    let each = sides.split('x').map(|side| match wraps.next() {
        Some("true") => format!("{side}~"),
        _ => side.to_owned(),
    });
    let each = each.collect::<Vec<_>>().join("x");
    let form = match twisted.as_deref() {
        Some("true") => format!("twisted-torus:{sides}"),
        _ => format!("grid:{each}"),
    };
    let mut slice =
        machine(&(form + known.map_or("", |(.., ranks)| ranks))).context(said.clone())?;
    if let Some((_, like, _)) = known {
        let shipped = machine(like)?;
        for key in ["startup", "per_byte", "per_hop", "rearrangement", "barrier"] {
            let source = shipped.source(key).unwrap_or("assumed");
            slice.cite(key, format!("as {like}: {source}"));
        }
        slice.timing = shipped.timing;
    }
    slice.set_ports(u32::try_from(slice.topology.most_links_out()).unwrap_or(u32::MAX).max(1));
    slice.cite("ports", "assumed: one port for each link of a chip".to_owned());
    slice.cite("title", format!("TPU {sides}"));
    slice.cite("shape", said);
    Ok(Some(slice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_ports_of_adapters_have_rates() {
        let folder = tempfile::tempdir().unwrap();
        for (port, state, rate) in [
            ("mlx5_0/ports/1", "4: ACTIVE\n", "200 Gb/sec (4X HDR)\n"),
            ("mlx5_1/ports/1", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n"),
            ("mlx5_2/ports/1", "1: DOWN\n", "10 Gb/sec (4X SDR)\n"),
            ("mlx5_3/ports/1", "4: ACTIVE\n", "\n"),
            ("mlx5_4/ports/1", "4: ACTIVE\n", "inf Gb/sec\n"),
            ("mlx5_5/ports/1", "4: ACTIVE\n", "-1 Gb/sec\n"),
        ] {
            let port = folder.path().join(port);
            std::fs::create_dir_all(&port).unwrap();
            std::fs::write(port.join("state"), state).unwrap();
            std::fs::write(port.join("rate"), rate).unwrap();
        }
        let found = rates(folder.path());
        assert_eq!(found.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [25e9, 50e9]);
        assert!(found[0].0.ends_with("mlx5_0/ports/1/rate: 200 Gb/sec (4X HDR)"), "{found:?}");
        assert!(rates(Path::new("/no/such/folder")).is_empty());
    }

    #[test]
    fn tasks_are_listed_by_node() {
        assert_eq!(tasks_of("2(x3),1"), Some(vec![(3, 2), (1, 1)]));
        assert_eq!(tasks_of("4"), Some(vec![(1, 4)]));
        for text in ["", "4(x2", "4(x)", "x", "4,", "-1", "99999999999", "2(x3)1"] {
            assert_eq!(tasks_of(text), None, "{text}");
        }
    }
}
