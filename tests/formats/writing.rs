//! Files for other programs hold the messages of the schedule. Small readers of each format read them
//! back, and SimGrid itself does.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::process::Command;

use common::{reach, schedule_of};
use topocoll::contention::{MODELS, Request, Scheduled, Share, Traffic, in_seconds, simulate};
use topocoll::formats::{FORMATS, Source, Writer};
use topocoll::{
    AnalysisError, Collective, Machine, Parameters, PerClass, Problem, Rank, Schedule, Setting,
    count, machine,
};

const MEMORY: u128 = 1 << 30;

/// A schedule on a machine where every action costs time.
fn written_by(name: &str, algorithm: &str, radix: Option<u64>) -> (Schedule, Machine) {
    let mut machine = machine(name).unwrap();
    machine.timing.rearrangement_per_byte = 1e-10;
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1024).unwrap();
    let parameters: Parameters =
        radix.map(|radix| ("radix".to_owned(), Setting::Integer(radix))).into_iter().collect();
    (schedule_of(&machine, &problem, algorithm, &parameters).unwrap(), machine)
}

fn cases() -> Vec<(Schedule, Machine)> {
    [
        ("full:7", "bruck", Some(2)),
        ("full:8", "direct", None),
        ("torus:8x8", "suh-shin", None),
        ("torus:5x3", "coloured-rings", None),
        ("torus:4x4", "neighbour-rings", None),
        ("mesh:4x6", "suh-shin", None),
        ("cluster:3,1,2", "clustered-factor", None),
    ]
    .map(|(machine, algorithm, radix)| written_by(machine, algorithm, radix))
    .into()
}

fn source<'a>((schedule, machine): &'a (Schedule, Machine)) -> Source<'a> {
    Source::new(schedule, machine, MEMORY)
}

fn text(name: &str, source: &Source<'_>) -> Result<String, AnalysisError> {
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    let Writer::File(write) = format.writer else { panic!("{name} writes a folder") };
    let mut out = Vec::new();
    write(source, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn comma_separated_values_have_every_message_and_byte() {
    for case in &cases() {
        let text = text("csv", &source(case)).unwrap();
        let counts = count(&case.0, &case.1, None, MEMORY).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("step,from,to,bytes,packed,route"));
        let (mut messages, mut largest) = (0, HashMap::new());
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let [step, _, _, bytes, packed] =
                [0, 1, 2, 3, 4].map(|i| fields[i].parse::<u128>().unwrap());
            let of_step: &mut [u128; 2] = largest.entry(step).or_default();
            *of_step = [of_step[0].max(bytes), of_step[1].max(packed)];
            messages += 1;
        }
        let sum = |i: usize| largest.values().map(|of_step| of_step[i]).sum::<u128>();
        assert_eq!(
            (messages, sum(0), sum(1)),
            (counts.messages, counts.bytes, counts.packed_bytes)
        );
    }
}

#[test]
fn one_rank_is_written_by_itself() {
    let case = &cases()[2];
    let all = text("csv", &source(case)).unwrap();
    let mut only = source(case);
    only.only = Some(topocoll::Rank(9));
    let expected: Vec<&str> = (all.lines().enumerate())
        .filter(|(i, line)| *i == 0 || line.split(',').nth(1) == Some("9"))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(text("csv", &only).unwrap().lines().collect::<Vec<_>>(), expected);
}

/// Goes through GOAL text as LogGOPSim would, without time: the messages that arrive.
fn run_goal(text: &str) -> Vec<(usize, usize, u64, u32)> {
    #[derive(Debug)]
    enum Does {
        Calc,
        Send(u64, usize, u32),
        Receive(u64, usize, u32),
    }
    let mut ranks: Vec<HashMap<&str, (Does, Vec<&str>)>> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("// "));
    let number: usize = lines.next().unwrap().strip_prefix("num_ranks ").unwrap().parse().unwrap();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["rank", rank, "{"] => {
                assert_eq!(rank.parse::<usize>().unwrap(), ranks.len());
                ranks.push(HashMap::new());
            }
            ["}"] => {}
            [label, "requires", before] => {
                ranks.last_mut().unwrap().get_mut(label).unwrap().1.push(before);
            }
            [label, kind, ref rest @ ..] => {
                let bytes = || rest[0].strip_suffix('b').unwrap().parse().unwrap();
                let end = || (rest[2].parse().unwrap(), rest[4].parse().unwrap());
                let does = match kind {
                    "calc" => {
                        let _: u64 = rest[0].parse().unwrap();
                        Does::Calc
                    }
                    "send" => Does::Send(bytes(), end().0, end().1),
                    "recv" => Does::Receive(bytes(), end().0, end().1),
                    _ => panic!("{line}"),
                };
                let label = label.strip_suffix(':').unwrap();
                assert!(ranks.last_mut().unwrap().insert(label, (does, Vec::new())).is_none());
            }
            _ => panic!("{line}"),
        }
    }
    assert_eq!(ranks.len(), number);
    let (mut done, mut under_way, mut arrived) =
        (vec![HashSet::new(); number], HashMap::<_, u32>::new(), Vec::new());
    loop {
        let before = done.iter().map(HashSet::len).sum::<usize>();
        for (rank, lines) in ranks.iter().enumerate() {
            for (label, (does, needs)) in lines {
                if done[rank].contains(label) || !needs.iter().all(|n| done[rank].contains(n)) {
                    continue;
                }
                match *does {
                    Does::Calc => {}
                    Does::Send(bytes, to, tag) => {
                        *under_way.entry((rank, to, bytes, tag)).or_default() += 1;
                    }
                    Does::Receive(bytes, from, tag) => {
                        let message = (from, rank, bytes, tag);
                        let Some(left) = under_way.get_mut(&message).filter(|left| **left > 0)
                        else {
                            continue;
                        };
                        *left -= 1;
                        arrived.push(message);
                    }
                }
                done[rank].insert(*label);
            }
        }
        if done.iter().map(HashSet::len).sum::<usize>() == before {
            break;
        }
    }
    for (done, lines) in done.iter().zip(&ranks) {
        assert_eq!(done.len(), lines.len(), "what never begins");
    }
    assert!(under_way.values().all(|&left| left == 0), "messages that nobody receives");
    arrived
}

#[test]
fn goal_text_finishes_with_every_message() {
    for case in &cases() {
        let mut arrived = run_goal(&text("goal", &source(case)).unwrap());
        let listed = text("csv", &source(case)).unwrap();
        let mut expected: Vec<(usize, usize, u64, u32)> = (listed.lines().skip(1))
            .map(|line| {
                let f: Vec<&str> = line.split(',').collect();
                let [step, from, to, bytes] = [0, 1, 2, 3].map(|i| f[i].parse::<u64>().unwrap());
                (from as usize, to as usize, bytes, step as u32)
            })
            .collect();
        arrived.sort_unstable();
        expected.sort_unstable();
        assert_eq!(arrived, expected);
    }
}

/// The value of an attribute of a tag.
fn value<'t>(tag: &'t str, name: &str) -> &'t str {
    let after = tag.split(&format!(" {name}=\"")).nth(1).unwrap_or_else(|| panic!("{name}: {tag}"));
    after.split('"').next().unwrap()
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(tag: &str, name: &str) -> T {
    value(tag, name).parse().unwrap()
}

/// A thread block of a program for GPUs: its peers and its steps.
type ThreadBlock<'t> = (i64, i64, Vec<&'t str>);

/// The initial chunks of a buffer, by GPU and number.
type Chunks = Vec<Option<(usize, usize)>>;

/// Runs MSCCL's thread blocks in an order drawn from a seed: the output chunks of every GPU, chunk c
/// of GPU g being (g, c) at first.
fn run_msccl(text: &str, seed: u64) -> Vec<Chunks> {
    let mut gpus: Vec<Vec<ThreadBlock<'_>>> = Vec::new();
    let mut buffers: Vec<HashMap<&str, Chunks>> = Vec::new();
    let number_of_gpus: i64 = number(text.lines().next().unwrap(), "ngpus");
    for tag in text.lines().map(str::trim) {
        if tag.starts_with("<gpu ") {
            let gpu = gpus.len();
            assert_eq!(number::<usize>(tag, "id"), gpu);
            let input = (0..number(tag, "i_chunks")).map(|chunk| Some((gpu, chunk)));
            let [out, scratch] = ["o_chunks", "s_chunks"].map(|name| vec![None; number(tag, name)]);
            buffers.push(HashMap::from([("i", input.collect()), ("o", out), ("s", scratch)]));
            gpus.push(Vec::new());
        } else if tag.starts_with("<tb ") {
            let blocks = gpus.last_mut().unwrap();
            assert_eq!(number::<usize>(tag, "id"), blocks.len());
            let (send, recv) = (number(tag, "send"), number(tag, "recv"));
            // A block sends, receives, or copies.
            let peers = [send, recv].map(|peer: i64| (0..number_of_gpus).contains(&peer));
            assert!(send >= -1 && recv >= -1 && peers != [true; 2], "{tag}");
            assert_eq!(peers == [false; 2], blocks.is_empty(), "{tag}");
            blocks.push((send, recv, Vec::new()));
        } else if tag.starts_with("<step ") {
            gpus.last_mut().unwrap().last_mut().unwrap().2.push(tag);
        }
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut done: Vec<Vec<usize>> = gpus.iter().map(|blocks| vec![0; blocks.len()]).collect();
    let mut channels: HashMap<(i64, i64), VecDeque<_>> = HashMap::new();
    loop {
        let mut ready = Vec::new();
        for (g, blocks) in gpus.iter().enumerate() {
            for (b, (_, from, steps)) in blocks.iter().enumerate() {
                let Some(tag) = steps.get(done[g][b]) else { continue };
                let (id, step): (i64, i64) = (number(tag, "depid"), number(tag, "deps"));
                assert!((id, step) == (-1, -1) || id >= 0 && step >= 0, "{tag}");
                if id >= 0 {
                    assert_eq!(value(gpus[g][id as usize].2[step as usize], "hasdep"), "1");
                }
                let waits = id >= 0 && done[g][id as usize] as i64 <= step;
                let empty = || channels.get(&(*from, g as i64)).is_none_or(VecDeque::is_empty);
                if !waits && (value(tag, "type") != "r" || !empty()) {
                    ready.push((g, b, *tag));
                }
            }
        }
        if ready.is_empty() {
            break;
        }
        let (g, b, tag) = ready[random.usize(..ready.len())];
        done[g][b] += 1;
        let (send, recv, _) = gpus[g][b];
        let read = || buffers[g][value(tag, "srcbuf")][number::<usize>(tag, "srcoff")];
        let chunk = match value(tag, "type") {
            "s" => {
                channels.entry((g as i64, send)).or_default().push_back(read().unwrap());
                continue;
            }
            "r" => channels.get_mut(&(recv, g as i64)).unwrap().pop_front(),
            "cpy" => read(),
            "nop" => continue,
            kind => panic!("{kind}"),
        };
        let buffer = buffers[g].get_mut(value(tag, "dstbuf")).unwrap();
        buffer[number::<usize>(tag, "dstoff")] = chunk;
    }
    for (done, blocks) in done.iter().zip(&gpus) {
        assert!(done.iter().zip(blocks).all(|(&done, block)| done == block.2.len()), "it stops");
    }
    buffers.into_iter().map(|mut buffers| buffers.remove("o").unwrap()).collect()
}

#[test]
fn programs_for_gpus_transpose_the_chunks_in_any_order() {
    for case in cases().iter().filter(|(_, machine)| machine.ranks() <= reach(16, 24)) {
        let text = text("msccl", &source(case)).unwrap();
        for seed in 0..4 {
            let ranks = case.1.ranks() as usize;
            for (to, chunks) in run_msccl(&text, seed).into_iter().enumerate() {
                let expected: Vec<_> = (0..ranks).map(|from| Some((from, to))).collect();
                assert_eq!(chunks, expected, "{} {to}", case.1.name);
            }
        }
    }
}

/// About three lines for a block that is sent, and one for each slot at the start and at the end.
#[test]
fn programs_for_gpus_of_many_bytes_are_refused() {
    let (schedule, machine) = written_by("full:5000", "direct", None);
    let slots = 5000 * u128::from(schedule.rule().slots());
    let bytes = (3 * 5000 * 4999 + 2 * slots) * 130;
    let refused = text("msccl", &source(&(schedule, machine)));
    assert_eq!(refused, Err(AnalysisError::Listing { bytes, limit: 4 << 30 }));
}

#[test]
fn msccl_has_no_all_gather() {
    let mut machine = machine("full:14").unwrap();
    machine.set_ports(3);
    let problem = Problem::new(Collective::AllGather, 14, 3, 3).unwrap();
    let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
    let refused = text("msccl", &source(&(schedule, machine))).unwrap_err().to_string();
    assert!(refused.contains("all-gathers"), "{refused}");
}

#[test]
fn pictures_have_an_edge_for_each_message() {
    for case in &cases() {
        let text = text("dot", &source(case)).unwrap();
        let counts = count(&case.0, &case.1, None, MEMORY).unwrap();
        assert_eq!(text.lines().filter(|l| l.contains(" -> ")).count() as u128, counts.messages);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
    for name in ["torus:2x4", "twisted-torus:2x4"] {
        let plane = text("dot", &source(&written_by(name, "direct", None))).unwrap();
        let places: Vec<_> = plane.lines().filter(|line| line.contains("[pos=")).collect();
        assert_eq!(places.len(), 8);
        assert_eq!(places[5].trim(), r#"5 [pos="90,-90"];"#);
    }
    for name in ["mesh:3x4x2", "mesh:3x4x2/1,1,1"] {
        let space = text("dot", &source(&written_by(name, "direct", None))).unwrap();
        assert!(!space.contains("pos="), "{space}");
    }
    let large = written_by("torus:32x32", "direct", None);
    let refused = text("dot", &source(&large)).unwrap_err().to_string();
    assert!(refused.contains("1047552") && refused.contains("20000"), "{refused}");
}

fn simgrid(case: &(Schedule, Machine), folder: &Path) -> Result<(), AnalysisError> {
    let format = FORMATS.iter().find(|format| format.name == "simgrid").unwrap();
    let Writer::Folder(write) = format.writer else { panic!("simgrid reads a folder") };
    write(&source(case), folder, &|_| ())
}

/// The seconds of the traces of a folder on a platform, in SimGrid without factors.
fn replayed(folder: &Path, platform: &Path, ranks: u32) -> f64 {
    let mut smpirun = Command::new("smpirun");
    smpirun.current_dir(folder).args(["-np", &ranks.to_string(), "-hostfile", "hostfile"]);
    smpirun.arg("-platform").arg(platform);
    for option in [
        "network/model:CM02",
        "network/latency-factor:1",
        "network/bandwidth-factor:1",
        "network/weight-S:0",
        "network/crosstraffic:0",
        "smpi/async-small-thresh:0",
        "smpi/send-is-detached-thresh:0",
    ] {
        smpirun.arg(format!("--cfg={option}"));
    }
    let output = smpirun.args(["-replay", "traces.txt"]).output();
    let output = output.expect("smpirun runs (Debian: simgrid)");
    let said = String::from_utf8_lossy(&output.stderr);
    let time = said.split("Simulation time ").nth(1).unwrap_or_else(|| panic!("{said}"));
    time.split_whitespace().next().unwrap().parse().unwrap()
}

/// The seconds of the fluid model.
fn simulated(case: &(Schedule, Machine)) -> f64 {
    let traffic = Scheduled::new(&case.0, &case.1);
    let model = MODELS.iter().find(|known| known.name == "fluid").unwrap();
    let simulation = simulate(&Request::new(&traffic, &case.1, model, MEMORY));
    in_seconds(simulation.unwrap().time)
}

/// SimGrid gives flows over links of long latency less of a link that they share, and its torus corrects
/// dimensions in the other order.
#[test]
fn a_platform_takes_as_long_in_simgrid() {
    for (name, within) in [
        ("inputs/flat-cluster.xml", 0.001),
        ("machines/zones.xml", 0.08),
        ("machines/torus.xml", 0.05),
    ] {
        let platform = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let case = written_by(platform.to_str().unwrap(), "direct", None);
        let folder = tempfile::tempdir().unwrap();
        simgrid(&case, folder.path()).unwrap();
        let text = std::fs::read_to_string(&platform).unwrap();
        let listed = text.contains("topology=");
        let id = |rank| if listed { format!("n{rank}") } else { case.1.topology.vertex_name(rank) };
        let hosts: Vec<String> = (0..case.1.ranks()).map(id).collect();
        std::fs::write(folder.path().join("hostfile"), hosts.join("\n") + "\n").unwrap();
        let theirs = replayed(folder.path(), &platform, case.1.ranks());
        let ours = simulated(&case);
        assert!((theirs - ours).abs() < within * ours + 1e-6, "{name}: {theirs}, {ours}");
    }
}

#[test]
fn simgrid_takes_as_long_as_the_fluid_model() {
    for (name, algorithm) in [
        ("torus:8x8", "suh-shin"),
        ("torus:16x16", "suh-shin"),
        (reach("torus:8x8", "torus:16x16"), "direct"),
        ("torus:4x4x4", "neighbour-rings"),
        ("full:16", "direct"),
    ] {
        let case = written_by(name, algorithm, None);
        let folder = tempfile::tempdir().unwrap();
        simgrid(&case, folder.path()).unwrap();
        let theirs = replayed(folder.path(), Path::new("platform.xml"), case.1.ranks());
        let ours = simulated(&case);
        // SimGrid prints microseconds.
        assert!((theirs - ours).abs() < 0.02 * ours + 1e-6, "{name} {algorithm}: {theirs}, {ours}");
    }
}

/// In some steps of gathering and broadcasting a rank sends, receives, or does nothing.
#[test]
fn traces_wait_once_in_each_step_of_their_rank() {
    let machine = machine("full:6").unwrap();
    let problem = Problem::new(Collective::AllGather, 6, 1, 64).unwrap();
    let schedule = schedule_of(&machine, &problem, "gather-broadcast", &Parameters::new()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    simgrid(&(schedule.clone(), machine), folder.path()).unwrap();
    for rank in (0..6).map(Rank) {
        let mut does = topocoll::Step::default();
        let busy = (0..schedule.rule().steps()).filter(|&step| {
            schedule.rule().step(rank, step, &mut does);
            !does.sends.is_empty() || !does.receives.is_empty()
        });
        let busy = busy.count();
        let traces = std::fs::read_to_string(folder.path().join("traces.txt")).unwrap();
        let name = traces.lines().nth(rank.index()).unwrap();
        let trace = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let waits = trace.lines().filter(|line| line.ends_with(" waitall")).count();
        assert_eq!(waits, busy, "{trace}");
    }
}

/// In a step a rank computes until the last message is sent: what is copied, then packed, then begun.
#[test]
fn traces_compute_until_the_last_message_of_a_step_begins() {
    let machine = {
        let mut machine = machine("full:14").unwrap();
        machine.set_ports(3);
        machine.timing.rearrangement_per_byte = 1e-10;
        machine
    };
    let problem = Problem::new(Collective::AllToAll, 14, 3, 1024).unwrap();
    let radix = [("radix".to_owned(), Setting::Integer(4))].into_iter().collect();
    let schedule = schedule_of(&machine, &problem, "bruck", &radix).unwrap();
    let traffic = Scheduled::new(&schedule, &machine);
    let folder = tempfile::tempdir().unwrap();
    simgrid(&(schedule.clone(), machine.clone()), folder.path()).unwrap();
    let mut packs = 0;
    for rank in 0..14 {
        let trace =
            std::fs::read_to_string(folder.path().join(format!("rank-{rank}.txt"))).unwrap();
        let computes = trace.lines().filter_map(|line| line.split_once(" compute "));
        let computed: f64 = computes.map(|(_, time)| time.parse::<f64>().unwrap()).sum();
        let (mut expected, mut share) = (0.0, Share::default());
        for step in 0..traffic.steps() {
            traffic.share(Rank(rank), step, &mut share);
            let packed: Vec<u64> = share.sends.iter().map(|send| send.packed).collect();
            let startup = if packed.is_empty() { 0.0 } else { 1000.0 };
            let longest = packed.iter().copied().max().unwrap_or(0);
            expected += 0.1 * (share.copied + u128::from(longest)) as f64 + startup;
            packs += usize::from(packed.iter().any(|&packed| packed < longest));
        }
        assert!((computed - expected).abs() < 1.0, "rank {rank}: {computed}, not {expected}");
    }
    assert!(packs > 0, "no step in which messages begin one after the other");
}

#[test]
fn goal_text_packs_only_what_is_packed() {
    for case in cases() {
        let text = text("goal", &source(&case)).unwrap();
        let packs = text.lines().filter(|line| line.starts_with('p') && line.contains(": calc"));
        let nothing = packs.clone().filter(|line| line.ends_with("calc 0")).count();
        assert_eq!(nothing, 0, "{:?}", case.0);
        assert!(case.0.origin.algorithm != "direct" || packs.count() == 0);
    }
}

/// Where copies cost nothing, nothing is computed for them.
#[test]
fn goal_text_computes_nothing_that_costs_nothing() {
    for (schedule, mut machine) in cases() {
        machine.timing.rearrangement_per_byte = 0.0;
        let text = text("goal", &source(&(schedule, machine))).unwrap();
        let computed = text.lines().filter(|line| line.contains(": calc"));
        for line in computed {
            assert!(line.starts_with('b') && line.ends_with(": calc 0"), "{line}");
        }
    }
}

#[test]
fn a_pair_with_two_routes_is_named() {
    let case = written_by("torus:8x8", "coloured-rings", None);
    let folder = tempfile::tempdir().unwrap();
    let refused = simgrid(&case, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("rank 0 sends to rank 32 by another route"), "{refused}");
}

/// At 0.1 ns a byte that is copied or packed.
#[test]
fn goal_text_computes_as_long_as_bytes_are_copied_and_packed() {
    let nanoseconds = |bytes: u128| (bytes as f64 * 0.1).round() as u64;
    let mut packs = 0;
    for case in &cases() {
        let (text, traffic) =
            (text("goal", &source(case)).unwrap(), Scheduled::new(&case.0, &case.1));
        for (rank, part) in (0..).zip(text.split("\nrank ").skip(1)) {
            let (mut begins, mut packed) = (Vec::new(), Vec::new());
            for (label, time) in part.lines().filter_map(|line| line.split_once(": calc ")) {
                let times = if label.starts_with('b') { &mut begins } else { &mut packed };
                times.push(time.parse::<u64>().unwrap());
            }
            let (mut copied, mut sent, mut share) = (Vec::new(), Vec::new(), Share::default());
            for step in 0..traffic.steps() {
                traffic.share(Rank(rank), step, &mut share);
                let does = share.copied > 0 || share.receives > 0 || !share.sends.is_empty();
                copied.extend(does.then(|| nanoseconds(share.copied)));
                let sends = share.sends.iter().filter(|send| send.packed > 0);
                sent.extend(sends.map(|send| nanoseconds(send.packed.into())));
            }
            packed.sort_unstable();
            sent.sort_unstable();
            packs += packed.len();
            assert_eq!((begins, packed), (copied, sent), "{:?}, rank {rank}", case.0);
        }
    }
    assert!(packs > 0);
}

#[test]
fn platforms_have_the_links_of_the_machine() {
    for name in ["mesh:5", "torus:2x3", "torus:2x3x4", "mesh:3x3/1,1"] {
        let case = written_by(name, "direct", None);
        let folder = tempfile::tempdir().unwrap();
        simgrid(&case, folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("platform.xml")).unwrap();
        assert_eq!(text.matches("<link id=").count() as u64, case.1.topology.links(), "{name}");
    }
}

#[test]
fn links_of_a_cluster_are_intra_node_for_ranks_and_inter_node_for_nodes() {
    let (schedule, mut machine) = written_by("cluster:3,1,2", "clustered-factor", None);
    machine.timing.per_byte = PerClass::each(&[0.125, 0.5]);
    let case = (schedule, machine);
    let folder = tempfile::tempdir().unwrap();
    simgrid(&case, folder.path()).unwrap();
    let text = std::fs::read_to_string(folder.path().join("platform.xml")).unwrap();
    for (kind, places, bandwidth) in [("", 6, "8Bps"), ("node-", 3, "2Bps")] {
        for (place, way) in (0..places).flat_map(|place| [(place, "out"), (place, "in")]) {
            let tag = format!(r#"<link id="{kind}{way}{place}" bandwidth="{bandwidth}""#);
            assert!(text.contains(&tag), "{tag}");
        }
    }
    let node = |rank: usize| [0, 0, 0, 1, 2, 2][rank];
    let routes: Vec<_> = text.lines().filter(|line| line.starts_with("<route")).collect();
    assert_eq!(routes.len(), 30);
    for route in routes {
        let [from, to] = ["src", "dst"].map(|end| value(route, end)[1..].parse().unwrap());
        let expected = match (node(from), node(to)) {
            (a, b) if a == b => [format!("out{from}"), format!("in{to}")],
            (a, b) => [format!("node-out{a}"), format!("node-in{b}")],
        };
        let taken: Vec<_> = route.split("<link_ctn").skip(1).map(|tag| value(tag, "id")).collect();
        assert_eq!(taken, expected, "{route}");
    }
}

/// The blocks of one rank are traced back: in the step of bit k of radix 2, a rank holds, of the blocks
/// that go j further, those of the rank behind it by the lower bits of j.
#[test]
fn blocks_of_one_rank_equal_the_formula() {
    let (schedule, machine) = written_by("full:4100", "bruck", Some(2));
    for rank in [0, 1234, 4099u64] {
        let mut source = Source::new(&schedule, &machine, MEMORY);
        source.only = Some(Rank(rank as u32));
        let listed = text("jsonl", &source).unwrap();
        let mut bits = HashSet::new();
        for line in listed.lines().skip(1) {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |value: &serde_json::Value| value.as_u64().unwrap();
            assert_eq!(number(&message["from"]), rank);
            let further = |to: u64, from: u64| (to + 4100 - from) % 4100;
            let bit = further(number(&message["to"]), rank);
            assert!(bit.is_power_of_two() && bits.insert(bit), "{bit}");
            let mut moved = HashSet::new();
            for block in message["blocks"].as_array().unwrap() {
                let [from, to] = [number(&block[0]), number(&block[1])];
                let (steps, behind) = (further(to, from), further(rank, from));
                assert_eq!((steps & bit, steps & (bit - 1)), (bit, behind), "{block}");
                assert!(moved.insert(steps));
            }
            assert_eq!(moved.len(), (0..4100).filter(|j| j & bit > 0).count());
        }
        assert_eq!(bits.len(), 13);
    }
}
