//! What a file of no known kind most likely is.

use super::Beginning;

/// How files begin that are not machine files, or not read yet, and what to do. XML begins with its
/// first element.
const BEGINNINGS: &[(&[&str], &str)] = &[
    (&["<algo"], "MSCCL's algorithms are not read"),
    (&["<"], "other XML is not read"),
    (&["{\"kind\":", "{\"step\":", "num_ranks "], "this is a schedule: --schedule FILE"),
    (&["{", "["], "node-link JSON has `nodes` and `links`"),
    (&["graph", "digraph", "strict"], "DOT is `graph { a -- b }`, GML is `graph [ .. ]`"),
    (
        &["NodeName=", "PartitionName=", "ClusterName="],
        "this lists nodes: `scontrol show topology`",
    ),
    (&["Machine ("], "this is lstopo's text: `lstopo machine.xml` writes XML"),
    (&["CA 'mlx"], "this is ibstat's text: ibnetdiscover lists the network"),
    (
        &["Architecture:", "processor\t:", "PARTITION", "NODELIST"],
        "this lists no links: see lstopo",
    ),
    (&["+--", "| NVIDIA-SMI"], "this is nvidia-smi's text: `nvidia-smi topo -m`"),
    (&["source,destination,"], "this is a table of routes: a machine file names it"),
    (&["router "], "BookSim's anynet is not read: write a list of links"),
    (&["topology = "], "BookSim's configuration is not read: write a short form such as torus:8x8"),
    (
        &["cloud.google.com/", "gke-", "tpu-topology"],
        "GKE's topology strings are not read: write a short form such as torus:4x4x4",
    ),
    (&["topology:", "npus_count:"], "ASTRA-sim's network is not read: write a machine file"),
];

/// Words within files that are not machine files, and what to do: columns of measured times of OSU's
/// micro-benchmarks, IMB and nccl-tests; traces.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["Latency(us)", "t_avg[usec]", " algbw "],
        "these are measured times: topocoll compare MACHINE FILE",
    ),
    (
        &["chakra", "\"traceEvents\"", "Total Time (ns)"],
        "traces of collectives (Chakra, nsys) are not read: topocoll compare reads times of benchmarks",
    ),
];

/// What the file most likely is.
pub(super) fn of(begins: &Beginning<'_>) -> Option<&'static str> {
    let root = format!("<{}", begins.root);
    let first = if begins.root.is_empty() { begins.first() } else { &root };
    let is = |(words, _): &&(&[&str], _)| words.iter().any(|word| first.starts_with(word));
    let all = |is: fn(&str) -> bool| begins.lines.iter().all(|line| is(line));
    let is_number = |c: char| c.is_ascii_digit() || ".,; \t".contains(c);
    let has = |(words, _): &&(&[&str], _)| words.iter().any(|word| begins.text.contains(word));
    match WORDS.iter().find(has).or_else(|| BEGINNINGS.iter().find(is)) {
        Some((_, guess)) => Some(guess),
        None if first.is_empty() => Some("the file is empty"),
        None if is_value(first) => Some("a machine file has title, shape, ports and timing"),
        None if first.chars().all(is_number) => Some("this is a demand matrix: --demand FILE"),
        None if all(|line| line.contains(',')) => Some("a list of links begins with `from,to`"),
        None if all(super::hosts::is_host) => Some("a host file says how many: `node1 slots=1`"),
        None => None,
    }
}

/// Whether a line is `key = value`.
fn is_value(line: &str) -> bool {
    let (key, _) = line.split_once('=').unwrap_or_default();
    !key.is_empty() && key.trim().chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}
