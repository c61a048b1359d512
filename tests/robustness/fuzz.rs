//! The corpora of `fuzz/`, the files of other tests, and alterations of them, through every parser. None
//! panics, and each takes bounded time and memory.

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use targets::TARGETS;

/// Folders of other tests whose files are inputs too.
const SEEDS: [(&str, &[&str]); 8] = [
    (
        "machine",
        &["topologies", "tests/errors", "tests/inputs", "tests/machines", "tests/machines/refused"],
    ),
    ("schedule", &["tests/schedules"]),
    ("traces", &[]),
    ("certificate", &["tests/certificates"]),
    ("demand", &["tests/demands"]),
    ("placement", &["tests/placements"]),
    ("settings", &[]),
    ("measured", &["tests/measured"]),
];

/// Alterations of each input.
const ALTERED: usize = 30;

/// No input takes longer, on a busy machine and without optimisation.
const LONG: Duration = Duration::from_secs(20);

/// The most resident memory of the process.
const MEMORY: u64 = 2 << 30;

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (_, seeds) = SEEDS.iter().find(|(name, _)| *name == target).unwrap();
    let corpus = format!("fuzz/corpus/{target}");
    let folders = seeds.iter().copied().chain([&*corpus]);
    let mut files: Vec<_> = folders
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Some bytes flipped, removed, doubled or moved.
fn altered(input: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..9)).min(bytes.len());
        match random.u8(..5) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            2 => bytes.insert(at, random.u8(..)),
            3 => bytes.splice(at..end, random.u64(..).to_string().bytes()).for_each(drop),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
        }
    }
    bytes
}

/// The peak of resident memory.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

#[test]
fn corpora_and_altered_inputs_are_read_or_refused() {
    for (name, target) in TARGETS {
        let (mut random, inputs) = (fastrand::Rng::with_seed(7), inputs(name));
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in &inputs {
            for number in 0..=ALTERED {
                let bytes = if number == 0 { input.clone() } else { altered(input, &mut random) };
                let start = Instant::now();
                target(&bytes);
                let (taken, shown) = (start.elapsed(), String::from_utf8_lossy(&bytes));
                assert!(taken < LONG, "{name}: {taken:?} for {shown}");
                assert!(peak() < MEMORY, "{name}: {} bytes in memory for {shown}", peak());
            }
        }
    }
}
