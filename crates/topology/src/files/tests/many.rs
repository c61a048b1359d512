//! Files of many lines of each kind, and texts that are no file of any.

use std::time::{Duration, Instant};

use super::*;

/// A text of about as many lines of each kind.
fn long(lines: usize) -> Vec<(&'static str, String)> {
    let all = |line: &dyn Fn(usize) -> String| (0..lines).map(line).collect::<String>();
    let node = |line: usize| line % 30_000;
    let xml = |begins: &str, line: &dyn Fn(usize) -> String, ends: &str| {
        format!("{begins}\n{}{ends}", all(&|number| line(number) + "\n"))
    };
    let nodes = "0-1,2-3,".repeat(lines / 4) + "9";
    vec![
        ("TOML", TOML.replace('\n', " # x\n") + &all(&|_| "# comment\n".to_owned())),
        (
            "CSV",
            format!("#undirected\nswitch,s\nfrom,to\n{}", all(&|l| format!("n{},s\n", node(l)))),
        ),
        (
            "JSON",
            xml(
                "{\"directed\": false, \"nodes\": [{\"id\": -1, \"switch\": true},",
                &|l| format!("{{\"id\": {l}}},"),
                "{\"id\": -2}], \"links\": []}",
            ),
        ),
        (
            "GraphML",
            "<graphml><graph edgedefault='undirected'>\n<node id='s'/>\n".to_owned()
                + &all(&|l| match l % 2 {
                    0 => format!("<node id='n{}'/>\n", l / 2),
                    _ => format!("<edge source='n{}' target='s'/>\n", l / 2),
                })
                + "</graph></graphml>",
        ),
        (
            "GML",
            "graph [\nnode [ id 0 ]\n".to_owned()
                + &all(&|l| match l % 2 {
                    0 => format!("node [ id {} ]\n", 1 + l / 2),
                    _ => format!("edge [ source {} target 0 ]\n", 1 + l / 2),
                })
                + "]",
        ),
        ("DOT", format!("graph {{\n{}}}", all(&|l| format!("n{l} -- s\n")))),
        ("DOT", format!("graph {{\n{}}}", all(&|_| "node [switch=false]\n".to_owned()))),
        ("edges", all(&|l| format!("n{l} s {{'count': 1}}\n"))),
        (
            "SimGrid",
            "<platform><zone id='z' routing='Cluster'>\n".to_owned()
                + &all(&|l| match l % 3 {
                    0 => format!("<host id='h{}'/>\n", l / 3),
                    1 => format!("<link id='l{}' bandwidth='1GBps'/>\n", l / 3),
                    _ => format!("<host_link id='h{0}' up='l{0}' down='l{0}'/>\n", l / 3),
                })
                + "</zone></platform>",
        ),
        ("SimGrid", PLATFORM.replace("<platform", &("<!-- x -->\n".repeat(lines) + "<platform"))),
        (
            "hwloc",
            xml("<topology>", &|_| "<object type='PU' cpuset='0x1'/>".to_owned(), "</topology>"),
        ),
        (
            "NCCL",
            xml(
                "<system><cpu numaid='0'><pci busid='0'><gpu/></pci><nic>",
                &|_| "<net speed='100'/>".to_owned(),
                "</nic></cpu></system>",
            ),
        ),
        ("NCCL", xml("<system>", &|l| format!("<cpu numaid='{l}'/>"), "</system>")),
        (
            "nvidia-smi",
            "\tGPU0\nGPU0\tX\n".to_owned() + &all(&|_| "# x\n".to_owned()) + "GPU1\tX\n",
        ),
        ("nvidia-smi", "\tGPU0\tGPU1\n".to_owned() + &all(&|_| "GPU0\tX\tNV2\n".to_owned())),
        ("rocm-smi", ROCM.to_owned() + &all(&|l| format!("== {l} ==\n"))),
        (
            "ibnetdiscover",
            "vendid=1\nSwitch 9 \"S-1\" # \"leaf\"\n".to_owned()
                + &all(&|l| format!("[{l}] \"H-{l}\"[1] # \"n{l} x\" lid 1 4xHDR\n")),
        ),
        (
            "topology.conf",
            all(&|l| format!("SwitchName=s{l} Nodes=n{l}\n"))
                + &format!("SwitchName=top Switches=s[0-{}]\n", lines - 1),
        ),
        (
            "topology.conf",
            all(&|l| format!("SwitchName=s{} Switches=s{l}\n", l + 1)) + "SwitchName=s0 Nodes=n\n",
        ),
        ("topology.conf", all(&|l| format!("BlockName=s{l} Nodes=n[{}-{}]\n", 2 * l, 2 * l + 1))),
        ("topology.conf", format!("SwitchName=s Nodes=n[{}]\n", nodes)),
        (
            "topology.conf",
            "SwitchName=s \\\n".to_owned() + &all(&|_| "\\\n".to_owned()) + "Nodes=n",
        ),
        (
            "topology.yaml",
            "- topology: t\n  tree:\n    switches:\n".to_owned()
                + &all(&|l| format!("      - switch: s{l}\n        nodes: n{l}\n")),
        ),
        ("rankfile", all(&|l| format!("rank {l}=n{} slot=0\n", l / 100))),
        ("host file", all(&|l| format!("n{l} slots={}\n", 1 + l % 3))),
        ("host file", all(&|l| format!("n{l}:2 user=a\n^n{}\n", l / 2))),
    ]
}

/// Each is a machine or an error in the time; its machine file is one, or is refused.
fn all_are_fast(lines: usize, most: Duration) {
    for (name, text) in long(lines) {
        assert!(kind(&text).is_some_and(|kind| kind.contains(name)), "{name}: {}", shown(&text));
        let start = Instant::now();
        let machine = read("some", &text);
        let taken = start.elapsed();
        println!("{name:14} {:8} lines {taken:9.3?}", text.lines().count());
        let of = machine.as_ref().map_err(ToString::to_string).map(Machine::ranks);
        assert!(taken < most, "{name} {}: {taken:?}, {of:?}", shown(&text));
        let hosts = machine.as_ref().map(|machine| place(machine, "n1 slots=3\n").is_ok());
        let written = machine.as_ref().map(crate::spec::write_file);
        assert!(start.elapsed() < 3 * most, "{name} {}: {of:?}, {hosts:?}", shown(&text));
        if let Ok(Ok(text)) = written {
            read("again", &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn thousands_of_lines_take_no_time() {
    all_are_fast(4_000, Duration::from_secs(1));
}

#[test]
#[ignore = "long"]
fn a_hundred_thousand_lines_take_a_second() {
    all_are_fast(100_000, Duration::from_secs(1));
}

/// Texts made of the pieces of files of all kinds are read or refused, at once.
#[test]
fn mixed_up_texts_are_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(57);
    let pieces: Vec<&str> =
        READ.iter().flat_map(|(_, text, _)| text.split_inclusive('\n')).collect();
    let odd = [
        "\u{feff}",
        "\0",
        "NaN",
        "1e999",
        "-1",
        "\u{e9}",
        "\u{2028}",
        "[",
        "=",
        "\\",
        "\"",
        "<!--",
        "99999999999",
    ];
    for _ in 0..4_000 {
        let mut text = READ[random.usize(..READ.len())].1.to_owned();
        for _ in 0..random.usize(1..5) {
            let at = text.floor_char_boundary(random.usize(..=text.len()));
            let end = text.floor_char_boundary(text.len().min(at + random.usize(..30)));
            match random.u8(..5) {
                0 => text.insert_str(at, pieces[random.usize(..pieces.len())]),
                1 => text.insert_str(at, odd[random.usize(..odd.len())]),
                2 => drop(text.drain(at..end)),
                3 => text.truncate(at),
                _ => text.insert_str(at, &text[at..end].repeat(random.usize(1..9))),
            }
        }
        let start = Instant::now();
        match read("some", &text) {
            Ok(machine) => {
                if let Ok(written) = crate::spec::write_file(&machine) {
                    let again = read("again", &written);
                    let again = again.unwrap_or_else(|error| panic!("{error}: {text}\n{written}"));
                    assert_eq!(
                        again.topology.short_form(),
                        machine.topology.short_form(),
                        "{text}"
                    );
                    if let Shape::Graph(_) = machine.topology.network() {
                        assert_eq!(links(&again), links(&machine), "{text}");
                    }
                }
                let _ = place(&machine, "n1 slots=2\nb\n");
            }
            Err(error) => assert!(error.span.is_none_or(|at| text.get(at).is_some()), "{text}"),
        }
        assert!(start.elapsed() < Duration::from_secs(2), "{text}");
    }
}
