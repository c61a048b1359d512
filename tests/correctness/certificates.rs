//! Certificates: every schedule has one that holds, and every altered one is refused.

use common::{Forger, MEMORY, body, certificate_of, find, schedule_of, sealed, serving};
use topocoll::{Collective, Parameters, Problem, count, machine, write_certificate};
use topocoll_certificate::{Fault, Found, check};

/// The certificate of an algorithm's schedule.
fn certificate(machine_name: &str, algorithm: &str) -> String {
    let machine = machine(machine_name).unwrap();
    let operation = find(algorithm).unwrap().info().operation;
    let problem = Problem::new(operation, machine.ranks(), machine.ports, 100).unwrap();
    let schedule = schedule_of(&machine, &problem, algorithm, &Parameters::new()).unwrap();
    certificate_of(&schedule, &machine)
}

/// The routes of a table are listed for every message, others once.
#[test]
fn routes_of_a_graph_are_listed() {
    let path = |name| format!("{}/machines/{name}", env!("CARGO_MANIFEST_DIR"));
    for (name, listed) in
        [(path("pod-file.toml"), false), (format!("graph:{}*2", path("pod.csv")), true)]
    {
        let machine = machine(&name).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 100);
        let schedule = schedule_of(&machine, &problem, "node-aware", &Parameters::new()).unwrap();
        let text = certificate_of(&schedule, &machine);
        let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        let found = (lines("next ") > 0, lines(" 0:1;") > 0);
        assert_eq!(found, (listed, !listed), "{text}");
    }
}

#[test]
fn a_large_graph_is_refused_by_its_ranks() {
    let refused = |name: &str| {
        let mut machine = machine(name).unwrap();
        machine.set_ports(2);
        let problem = common::problem(&machine, Collective::AllGather, 100);
        let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
        let (counts, mut out) = (topocoll::Counts::default(), Vec::new());
        let refused = write_certificate(&schedule, &machine, &counts, &mut out).err();
        assert_eq!(refused.is_some(), out.is_empty(), "{name}");
        refused.map(|error| error.to_string())
    };
    let rule = "this format does not support more than 4,096 ranks on a network of listed links";
    for name in ["hypercube:13", "hypercube:12*2", "twisted-torus:16x16x32"] {
        assert_eq!(refused(name).as_deref(), Some(rule), "{name}");
    }
    assert_eq!(refused("hypercube:12"), None);
}

/// Two nodes and a switch between them, and a link from the first node to the second.
const BETWEEN: &str = "graph 2+1\nvertex 0 2 1\nnext 0*2\nvertex 1 - 2\nnext 1*2\n\
                       vertex 2 0 1\nnext 0 1";

/// The largest machine with failures.
#[test]
fn a_certificate_of_4096_nodes_with_a_failed_link_holds() {
    let proved = check(certificate("torus:16x16x16/0,0,0+0", "bruck").as_bytes()).unwrap();
    assert_eq!((proved.ranks, proved.counts.port_violations), (4096, 0));
}

#[test]
fn a_route_over_listed_links_leads_from_node_to_node() {
    let text = body(&certificate("full:2", "direct"))
        .replace("complete 2", BETWEEN)
        .replace("ranks 2 by 1", "ranks 2 by 2")
        .replace("hops=0", "hops=2")
        .replace("max_link_sharing=0", "max_link_sharing=1");
    let (head, class) = text.split_at(text.find("class 0").unwrap());
    let two = format!("{head}{class}{}", class.replace("class 0", "class 1"));
    let with = |from: &str, to: &str| {
        assert!(two.contains(from), "{from}");
        check(sealed(&two.replacen(from, to, 1)).as_bytes())
    };
    assert_eq!(with("hops=2", "hops=2").unwrap().counts.hops, 2);
    // Around by the switch, and straight on.
    let around = with("own", "0:1;0:1;0:1;1:1");
    assert!(matches!(around, Err(Fault::Count { name: "link_bytes", found: 200, .. })));
    assert!(with("own", "1:1").is_ok());
    let lost = Err(Fault::Step {
        step: 0,
        class: 0,
        rule: "a message's route does not lead to its receiver",
    });
    for (from, to) in [
        // To the switch, back, over no port, over no link, by no hops, and against a link.
        ("own", "0:1"),
        ("own", "0:1;0:1"),
        ("own", "2:1"),
        ("own", "1:2"),
        ("own", "0:1;1:1;0:1"),
        ("own", "0:0;1:1"),
        ("own", "1:1;1:-1"),
        ("own", "4000000000:1"),
        // To and fro for ever, over no port, over no link, and nowhere.
        ("next 0 1", "next 0*2"),
        ("next 0*2", "next 5*2"),
        ("vertex 2 0 1", "vertex 2 0 -"),
        ("next 0*2\n", ""),
    ] {
        assert_eq!(with(from, to).map(drop), lost, "{to}");
    }
    // Of two ports number (0 + 1) mod 2, where the direct link has half the capacity.
    for (ports, bytes) in [("0", 100), ("1", 200), ("0/1", 200), ("1/0", 100), ("1/1/0", 200)] {
        let next = format!("vertex 0 2 1*1/2\nnext {ports}*2");
        match with("vertex 0 2 1\nnext 0*2", &next) {
            Ok(proved) => assert_eq!(proved.counts.link_bytes, bytes, "{ports}"),
            Err(Fault::Count { name: "link_bytes", found, .. }) => assert_eq!(found, bytes),
            fault => panic!("{ports}: {fault:?}"),
        }
    }
    for (from, to, rule) in [
        ("vertex 1 - 2", "vertex 1 - 3", "a link leads to another vertex"),
        ("vertex 1 - 2", "vertex 1 - 1", "a link leads to another vertex"),
        ("vertex 1 - 2", "vertex 1 - 2*0", "a link has a capacity above 0"),
        ("vertex 1 - 2", "vertex 1 - 2*1/0", "a link has a capacity above 0"),
        ("vertex 1 - 2", "vertex 1 - 2:16777217", "a link has a length of at most 2^24"),
        ("vertex 1 - 2", "vertex 1 - 2:", "not a whole number, or too large"),
        ("vertex 1", "vertex 2", "vertices are numbered from 0"),
        ("vertex 2 0 1", "noise", "the next vertex is to be listed here"),
        ("next 0*2", "next 0*3", "the next links are listed for each node once"),
        ("next 0*2", "next 0", "the next links are listed for each node once"),
        ("graph 2+1", "graph 2", "a graph has nodes+switches"),
        ("graph 2+1", "graph 2+1 nodes 1*2", "the network has as many nodes as have ranks"),
        ("graph 2+1", "graph 0+0", "a machine has 1 to 2^32 - 1 ranks"),
    ] {
        let found = with(from, to);
        assert!(matches!(found, Err(Fault::Line { rule: told, .. }) if told == rule), "{found:?}");
    }
}

/// Loads are divided by capacities, and rounded up link by link.
#[test]
fn capacities_of_listed_links_are_charged() {
    let text = certificate("full:2", "direct");
    let charged = |capacity: &str| {
        let machine = format!("graph 2+0\nvertex 0 1{capacity}\nnext 0*2\nvertex 1 0\nnext 0*2");
        let body = body(&text)
            .replace("complete 2", &machine)
            .replace("hops=0", "hops=1")
            .replace("max_link_sharing=0", "max_link_sharing=1");
        match check(sealed(&body).as_bytes()) {
            Ok(proved) => proved.counts.link_bytes,
            Err(Fault::Count { name: "link_bytes", found, .. }) => found,
            fault => panic!("{capacity}: {fault:?}"),
        }
    };
    for (capacity, bytes) in [
        ("", 100),
        ("*1", 100),
        ("*7/7", 100),
        ("*2", 100),
        ("*1/2", 200),
        ("*2/3", 150),
        ("*3/4", 134),
        ("*1/4294967295", 429_496_729_500),
    ] {
        assert_eq!(charged(capacity), bytes, "{capacity}");
    }
}

/// Any lengths of links give a true bound; the certificate lists the one of its lengths.
#[test]
fn lengths_bound_an_all_to_all() {
    let text = certificate("hypercube:3", "direct");
    let listed = body(&text).lines().find(|line| line.starts_with("bounds")).unwrap();
    assert_eq!(listed, "bounds steps=3 link_bytes=700");
    let with = |length: &str| {
        let words = |line: &str| match line.strip_prefix("vertex ") {
            Some(rest) => {
                let (vertex, links) = rest.split_once(' ').unwrap();
                let links = links.split(' ').map(|link| link.split(':').next().unwrap());
                let links: Vec<_> = links.map(|link| format!("{link}{length}")).collect();
                format!("vertex {vertex} {}\n", links.join(" "))
            }
            None => format!("{line}\n"),
        };
        let body: String = body(&text).replace("ports 1", "ports 7").lines().map(words).collect();
        match check(sealed(&body.replace(" steps=3 ", " steps=1 ")).as_bytes()) {
            Err(Fault::Bound { name: "link_bytes", listed: 700, found }) => found,
            found => panic!("{found:?}"),
        }
    };
    // 7 blocks over the three links of a node; 12 hops of each node's blocks over these.
    assert_eq!([with(""), with(":0"), with(":1"), with(":9")], [234, 234, 400, 400]);
}

#[test]
fn a_million_ranks_on_the_nodes_of_a_torus_are_counted_by_rows() {
    let mut machine = machine("torus:256x256*16").unwrap();
    machine.set_ports(16);
    let problem = common::problem(&machine, Collective::AllGather, 100);
    let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
    let text = certificate_of(&schedule, &machine);
    assert!(text.len() < 1 << 14, "{} bytes", text.len());
    let proved = check(text.as_bytes()).unwrap();
    assert_eq!((proved.classes, proved.counts.steps, proved.ranks), (1, 20, 1 << 20));
}

/// A certificate in which every rank sends each block straight to its receiver, step by step.
fn straight(machine: &str, sides: &[u32], periods: &[u32]) -> String {
    let ranks: u32 = sides.iter().product();
    let back = |rank: u32| {
        let (mut rest, mut back, mut stride) = (rank, 0, 1);
        for side in sides.iter().rev() {
            back += (side - rest % side) % side * stride;
            (rest, stride) = (rest / side, stride * side);
        }
        back
    };
    let rows = |of: &dyn Fn(u32) -> u32| -> String {
        (0..ranks).map(|slot| format!(" {slot},{}", of(slot))).collect()
    };
    let (start, finish) = (rows(&|slot| slot), rows(&back));
    let steps: String = (1..ranks)
        .map(|to| format!("step {to}\nsend {to} own {to}\nreceive {} {to}\n", back(to)))
        .collect();
    let classes: u32 = periods.iter().product();
    let classes: String = (0..classes)
        .map(|class| format!("class {class}\nstart{start}\nfinish{finish}\n{steps}"))
        .collect();
    let joined =
        |numbers: &[u32]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let counts: Vec<_> =
        topocoll_certificate::Counts::default().named().map(|(name, _)| format!("{name}=0")).into();
    format!(
        "topocoll certificate 1\nmachine {machine}\noperation alltoall\nports 1\nblock 100\n\
         algorithm straight\nranks {} by {}\nslots {ranks}\npieces 100\ncounts {}\nbounds steps=0 \
         link_bytes=0\n{classes}",
        joined(sides),
        joined(periods),
        counts.join(" "),
    )
}

/// Classes of ranks on the nodes of grids, as an expander counts every rank.
#[test]
fn no_count_depends_on_classes_of_nodes() {
    let mut forger = Forger::new(2);
    for (machine, sides, periods) in [
        // Places, and the ranks of a node.
        ("grid 4~ nodes 4*2", &[4, 2][..], &[1, 1][..]),
        ("grid 4~ nodes 4*2", &[4, 2], &[1, 2]),
        ("grid 4~ nodes 4*4", &[4, 4], &[2, 2]),
        ("grid 3~x2~ nodes 6*2", &[3, 2, 2], &[1, 1, 1]),
        ("grid 3~x2 nodes 6*2", &[3, 2, 2], &[1, 2, 1]),
        ("grid 3~x2 nodes 6*2", &[3, 2, 2], &[1, 1, 1]),
        // Nodes and ranks in order, by rows.
        ("grid 3~x2 nodes 6*2", &[6, 2], &[2, 1]),
        ("grid 3~x2 nodes 6*2", &[6, 2], &[3, 2]),
        ("grid 4~x3~ nodes 12*1", &[12], &[2]),
        ("grid 3~x2 nodes 6*2", &[12], &[1]),
        ("grid 4~x2 nodes 8*2", &[16], &[8]),
        ("grid 4~x2 nodes 8*2", &[8, 2], &[4, 1]),
        ("grid 3x2~ nodes 6*2", &[12], &[4]),
        // Half a ring upwards from every second node.
        ("grid 4~ balanced nodes 4*2", &[4, 2], &[1, 1]),
        ("grid 4~ balanced nodes 4*2", &[4, 2], &[2, 1]),
        ("grid 3~x4~ balanced", &[3, 4], &[1, 2]),
        ("grid 6~x2 balanced", &[6, 2], &[1, 2]),
        ("grid 6~x2 balanced", &[6, 2], &[2, 2]),
        ("grid 6~x2 balanced", &[12], &[2]),
        ("grid 3~x4~ balanced", &[12], &[4]),
        ("grid 2~x2~ balanced nodes 4*2", &[8], &[1]),
        // Other sides.
        ("grid 3~x2 nodes 6*2", &[4, 3], &[1, 1]),
        ("grid 2~x4~ nodes 8*2", &[8, 2], &[1, 1]),
        ("grid 3~ nodes 1*1,1*3,1*2", &[6], &[1]),
        ("grid 3~ nodes 1*1,1*3,1*2", &[3, 2], &[1, 2]),
    ] {
        let accepted = forger.accepted;
        forger.forge(&straight(machine, sides, periods), 4);
        assert!(forger.accepted > accepted, "{machine} {sides:?} by {periods:?}");
    }
}

#[test]
fn classes_of_a_large_torus_make_a_small_certificate() {
    let text = certificate("torus:256x256", "suh-shin");
    assert!(text.len() < 1 << 18, "{} bytes", text.len());
    let proved = check(text.as_bytes()).unwrap();
    assert_eq!((proved.classes, proved.counts.steps, proved.ranks), (16, 130, 65_536));
}

#[test]
fn no_byte_can_be_altered() {
    let text = certificate("torus:4x4", "suh-shin").into_bytes();
    for at in 0..text.len() {
        let mut altered = text.clone();
        altered[at] ^= 1;
        assert!(check(&altered).is_err(), "byte {at}");
        assert!(check(&text[..at]).is_err(), "cut at {at}");
    }
}

/// A mutation of a line of a class; none where it does not apply.
type Mutation = fn(&str) -> Option<String>;

/// A number of a line, increased by one.
fn more(line: &str, word: usize, number: usize) -> Option<String> {
    let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let mut numbers: Vec<_> = words.get(word)?.split(',').map(str::to_owned).collect();
    let value: i64 = numbers.get(number)?.parse().ok()?;
    numbers[number] = (value + 1).to_string();
    words[word] = numbers.join(",");
    Some(words.join(" "))
}

/// A line that lists nothing equals a missing line.
#[rustfmt::skip]
const MUTATIONS: [(&str, Mutation); 10] = [
    ("a message lost", |line| line.starts_with("send").then(String::new)),
    ("a message not awaited", |line| line.starts_with("receive").then(String::new)),
    ("a message twice", |line| line.starts_with("send").then(|| format!("{line}\n{line}"))),
    ("a message to another rank", |line| line.starts_with("send").then(|| more(line, 1, 0)).flatten()),
    ("a message from another rank", |line| line.starts_with("receive").then(|| more(line, 1, 0)).flatten()),
    ("the wrong way", |line| line.starts_with("send").then(|| line.replacen(":4", ":-3", 1).replacen(":-4", ":3", 1)).filter(|other| other != line)),
    ("other slots sent", |line| line.starts_with("send").then(|| more(line, 3, 0)).flatten()),
    ("landing elsewhere", |line| line.starts_with("receive").then(|| more(line, 2, 0)).flatten()),
    ("a block elsewhere at first", |line| line.starts_with("start").then(|| more(line, 1, 1)).flatten()),
    ("a block elsewhere at the end", |line| line.starts_with("finish").then(|| more(line, 1, 1)).flatten()),
];

#[test]
fn no_broken_schedule_is_proved() {
    for (machine_name, algorithm) in [
        ("torus:8x8", "suh-shin"),
        ("mesh:4x4", "coloured-rings"),
        ("full:12", "bruck"),
        ("cluster:2,3,1", "clustered-factor"),
        ("full:9", "concat"),
    ] {
        let text = certificate(machine_name, algorithm);
        let lines: Vec<&str> = body(&text).lines().collect();
        for (name, mutate) in MUTATIONS {
            let mut broken = 0;
            for (at, line) in lines.iter().enumerate() {
                let Some(other) = mutate(line) else { continue };
                let mut lines = lines.clone();
                lines[at] = &other;
                lines.retain(|line| !line.is_empty());
                let found = check(sealed(&(lines.join("\n") + "\n")).as_bytes());
                let place = format!("{algorithm} on {machine_name}, {name}, line {}", at + 1);
                assert!(found.is_err(), "{place}: {line}");
                broken += 1;
            }
            assert!(broken > 0 || name == "the wrong way", "{algorithm} has no line for: {name}");
        }
    }
}

#[test]
fn a_wrong_final_slot_is_reported_with_its_block() {
    for (found, end) in [
        (Found::Nothing, "ends with nothing"),
        (Found::Travelled(3), "ends with one that has travelled by 3"),
        (Found::Another, "ends with one for another rank"),
    ] {
        let fault = Fault::Undelivered { class: 0, slot: 4, displacement: 2, found };
        let told = "class 0: slot 4 should end with the block displaced by 2, and ";
        assert_eq!(fault.to_string(), format!("{told}{end}"));
    }
}

#[test]
fn a_step_moved_earlier_or_later_is_refused() {
    let text = certificate("torus:8x8", "suh-shin");
    for (from, to) in [("\nstep 1\n", "\nstep 9\n"), ("\nstep 1\n", "\nstep 0\n")] {
        let swapped = body(&text).replacen(from, to, 1);
        assert!(check(sealed(&swapped).as_bytes()).is_err());
    }
    // Two steps of every class change places.
    let swapped = body(&text)
        .replace("\nstep 1\n", "\nstep x\n")
        .replace("\nstep 2\n", "\nstep 1\n")
        .replace("\nstep x\n", "\nstep 2\n");
    assert!(matches!(check(sealed(&swapped).as_bytes()), Err(Fault::Line { .. })));
}

#[test]
fn every_count_and_bound_is_recomputed() {
    let text = certificate("torus:8x8", "suh-shin");
    let mut seen = 0;
    for line in
        body(&text).lines().filter(|line| line.starts_with("counts") || line.starts_with("bounds"))
    {
        for word in line.split(' ').skip(1) {
            let (name, value) = word.split_once('=').unwrap();
            let other = format!("{name}={}", value.parse::<u64>().unwrap() + 1);
            let altered = body(&text).replace(line, &line.replace(word, &other));
            let found = check(sealed(&altered).as_bytes());
            assert!(matches!(found, Err(Fault::Count { .. } | Fault::Bound { .. })), "{found:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 13);
}

#[test]
fn absurd_certificates_are_refused_at_once() {
    let text = certificate("torus:4x4", "suh-shin");
    for (from, to) in [
        ("slots 16", "slots 99999999999999"),
        ("slots 16", "slots 8388609"),
        ("slots 16", "slots 0"),
        ("grid 4~x4~", "complete 0"),
        ("step 1\n", "step 0\n"),
        ("start 0,0,2,8,8", "start 0,0,2,8"),
        ("send 8 0:2 8,8,1", "send 0 0:2 8,8,1"),
        ("ranks 4x4 by 4x4", "ranks 4x4 by 0x4"),
        ("ranks 4x4 by 4x4", "ranks 4x4 by 3x4"),
        ("ranks 4x4 by 4x4", "ranks 65536x65536 by 1x1"),
        ("grid 4~x4~", "grid 4000000000~x4000000000~"),
        ("grid 4~x4~", "grid 0x4"),
        ("grid 4~x4~", "cluster 4*0"),
        ("ports 1", "ports 0"),
        ("block 100", "block 18446744073709551616"),
        ("pieces 100", "pieces 99"),
        ("operation alltoall", "operation scatter"),
        ("step 0", "step 4000000000"),
        ("class 0", "class 1"),
        ("class 0", "noise"),
        ("start 0,0,2,8,8", "start 0,0,3,8,8"),
        ("start 0,0,2,8,8", "start 0,0,0,8,8"),
        ("start 0,0,2,8,8", "start 0,16,2,8,8"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,8,2"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,8,-2"),
        ("send 8 0:2 8,8,1", "send 8 0:2 9,8,1"),
        ("send 8 0:2 8,8,1", "send 8 0:2 -1,8,1"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,0,1"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,-8,1"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,17,0"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,0,0,8,1"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,8"),
        ("send 8 0:2 8,8,1", "send 8 0:2 8,9223372036854775807,9223372036854775807"),
        ("send 8 0:2 8,8,1", "send 16 0:2 8,8,1"),
    ] {
        let altered = body(&text).replacen(from, to, 1);
        assert_ne!(altered, body(&text), "{from}");
        let found = check(sealed(&altered).as_bytes());
        assert!(
            matches!(found, Err(Fault::Line { .. } | Fault::TooMuch { .. })),
            "{to}: {found:?}"
        );
    }
    for nothing in ["", "topocoll certificate 1\n", "topocoll certificate 2\n", "\u{e9}"] {
        assert!(check(nothing.as_bytes()).is_err());
    }
}

#[test]
fn unmatched_messages_are_reported_by_their_one_end() {
    let text = certificate("full:5", "direct");
    let first = "step 0\nsend 1 own 1\nreceive 4 1\n";
    assert!(text.contains(first), "{text}");
    // A rank that sends to the rank 2 further receives from the rank 1 or 4 further.
    for (from, rule) in [
        (4, "a message is received that nobody sends"),
        (1, "a message is sent that nobody receives"),
    ] {
        let other = format!("step 0\nsend 2 own 1\nreceive {from} 1\n");
        let found = check(sealed(&body(&text).replace(first, &other)).as_bytes());
        assert_eq!(found, Err(Fault::Step { step: 0, class: 0, rule }));
    }
}

#[test]
fn slots_are_reported_by_class_and_content() {
    let text = certificate("full:2", "direct");
    let pair = "class 0\nstart 0,0,2,1,1\nfinish 0,0,2,1,1\n";
    let begin = &text[..text.find(pair).unwrap()];
    let altered = |begin: &str, end: &str| check(sealed(&(begin.to_owned() + end)).as_bytes());
    // The second of two classes copies two blocks to one slot.
    let two = begin.replace("by 1", "by 2").replace("slots 2\n", "slots 3\n");
    let twice = format!("{pair}{}step 0\ncopy 0;1 2;2\n", pair.replace("class 0", "class 1"));
    let rule = "a slot is written twice at once";
    assert_eq!(altered(&two, &twice), Err(Fault::Step { step: 0, class: 1, rule }));
    let alone = begin.replace("complete 2", "complete 1").replace("2 by 1", "1 by 1");
    let empty = altered(&alone, "class 0\nstart 0,0\nfinish 1,0\n");
    let found = Found::Nothing;
    assert_eq!(empty, Err(Fault::Undelivered { class: 0, slot: 1, displacement: 0, found }));
}

#[test]
fn control_characters_are_neither_written_nor_read() {
    let machine = machine("full:2").unwrap();
    let problem = common::problem(&machine, Collective::AllToAll, 100);
    let mut schedule = schedule_of(&machine, &problem, "direct", &Parameters::new()).unwrap();
    schedule.origin.algorithm = "a\nports 2\u{1b}[2J\u{e9}".to_owned();
    let text = certificate_of(&schedule, &machine);
    let proved = check(text.as_bytes()).unwrap();
    assert_eq!(proved.algorithm, r"a\nports 2\u{1b}[2J\u{e9}");
    for control in ["\r", "\t", "\u{1b}[2J", "\u{7f}", "\0"] {
        let altered = body(&text).replace("\nranks", &format!("{control}\nranks"));
        assert_eq!(check(sealed(&altered).as_bytes()), Err(Fault::NotAscii), "{control:?}");
        let listed = text.replace("sha256 ", &format!("sha256 {control}"));
        let Err(Fault::Altered { listed, .. }) = check(listed.as_bytes()) else { panic!() };
        assert!(listed.len() == 64 && !listed.contains(control), "{listed:?}");
    }
}

/// Runs that go backwards, of pieces of different sizes.
#[test]
fn runs_lie_within_their_piece() {
    let text = certificate("full:2", "direct");
    let (_, steps) = text.split_once("step 0\n").unwrap();
    assert!(steps.starts_with("send 1 own 1\nreceive 1 1\n"), "{text}");
    let backwards = "2,2,-1;6,2,-1";
    let pieces = body(&text)
        .replace("slots 2\npieces 100\n", "slots 4\npieces 30;70\n")
        .replace("bytes=100", "bytes=200")
        .replace("bounds steps=1 link_bytes=200", "bounds steps=1 link_bytes=100");
    let copied = |copies: &str, slots: &str| {
        let message = format!("copy {copies}\nsend 1 own {slots}\nreceive 1 {slots}\n");
        let text = pieces.replace("send 1 own 1\nreceive 1 1\n", &message);
        check(sealed(&text).as_bytes())
    };
    let sent = |slots: &str| copied("1;5 2;6", slots);
    assert_eq!(sent(backwards).unwrap().counts.bytes, 200);
    assert_eq!(sent("2,2,-1;5,2,1").unwrap().counts.bytes, 200);
    assert_eq!(sent("1,2,1;6,2,-1").unwrap().counts.bytes, 200);
    let rule = "a run of slots is of several pieces";
    for across in ["2,2,3;1;6", "5,2,-3;1;6"] {
        assert_eq!(sent(across), Err(Fault::Step { step: 0, class: 0, rule }));
    }
    // Up to the last slot of a piece, and down from it.
    assert_eq!(copied("1;5 3;7", "1,2,2;7,2,-2").unwrap().counts.bytes, 200);
    let both = copied("1;1;5;5 2;3;6;7", "2,2,1;1;6,2,1;5");
    assert!(matches!(both, Err(Fault::Count { name: "bytes", found: 300, .. })), "{both:?}");
}

/// Two ranks whose blocks are split in two pieces, and one message of these slots.
#[test]
fn pieces_of_a_block_are_distinguished() {
    let text = certificate("full:2", "direct");
    let split = body(&text).replace("pieces 100\n", "pieces 30;70\n");
    let sent = |from: &str, to: &str| {
        let message = format!("send 1 own {from}\nreceive 1 {to}\n");
        check(sealed(&split.replace("send 1 own 1\nreceive 1 1\n", &message)).as_bytes())
    };
    assert_eq!(sent("1;3", "1;3").unwrap().counts.bytes, 100);
    let rule = "a piece of a block lands as another";
    assert_eq!(sent("1;3", "3;1"), Err(Fault::Step { step: 0, class: 0, rule }));
    // The slot for the other rank's block still holds its initial block.
    let kept = Found::Travelled(0);
    let fault = Fault::Undelivered { class: 0, slot: 1, displacement: 1, found: kept };
    assert_eq!(sent("1", "1"), Err(fault.clone()));
    assert_eq!(sent("3", "3"), Err(fault));
}

#[test]
fn a_route_stays_on_the_machine_and_never_circles_a_side() {
    let rule = "a message's route does not lead to its receiver";
    for (machine, from, rounds) in [
        ("torus:4x4", " 0:2 ", [" 0:4;0:-2 ", " 0:-4;0:2 ", " 0:5;0:-3 ", " 0:-5;0:3 "]),
        ("mesh:4x4", " 0:2 ", [" 0:4;0:2 ", " 0:-1;0:3 ", " 0:5;0:-3 ", " 0:-4;0:6 "]),
    ] {
        let text = certificate(machine, "suh-shin");
        let sends = |text: &str| text.contains(&format!("send 8{from}"));
        assert!(sends(&text), "{text}");
        for round in rounds {
            let other =
                body(&text).replacen(&format!("send 8{from}"), &format!("send 8{round}"), 1);
            let found = check(sealed(&other).as_bytes());
            assert!(
                matches!(found, Err(Fault::Step { rule: told, .. }) if told == rule),
                "{machine},{round}: {found:?}"
            );
        }
        // Another route on the machine.
        let other = body(&text).replace(&format!("send 8{from}"), "send 8 0:1;0:1 ");
        assert_eq!(check(sealed(&other).as_bytes()).map(drop), Ok(()), "{machine}");
    }
}

/// The certificate of two ranks, for another number of ranks and of classes on another machine.
fn of_many(machine: &str, ranks: &str, periods: &str) -> String {
    body(&certificate("full:2", "direct"))
        .replace("complete 2\n", &format!("{machine}\n"))
        .replace("ranks 2 by 1\n", &format!("ranks {ranks} by {periods}\n"))
}

/// Where the classes keep the links one rank of each is checked, and elsewhere every rank.
#[test]
fn equivalent_ranks_are_not_checked_one_by_one() {
    let ranks = (1 << 24) + 2;
    let half = ranks / 2;
    let one_by_one = |machine: &str| {
        let (sides, periods) = match machine.contains('x') || machine.contains("nodes") {
            true => (format!("{half}x2"), "1x1"),
            false => (ranks.to_string(), "1"),
        };
        let text = of_many(machine, &sides, periods);
        let (what, most) = ("ranks one by one", 1 << 24);
        check(sealed(&text).as_bytes()) == Err(Fault::TooMuch { what, count: ranks, most })
    };
    assert!(!one_by_one(&format!("complete {ranks}")));
    assert!(!one_by_one(&format!("grid {ranks}~")));
    assert!(!one_by_one(&format!("grid {half}~x2~")));
    assert!(!one_by_one(&format!("grid {half}~ nodes {half}*2")));
    assert!(one_by_one(&format!("grid {half}~x2")));
    assert!(one_by_one(&format!("grid {half} nodes {half}*2")));
    assert!(one_by_one(&format!("grid {half}~ nodes 1*1,1*3,{}*2", half - 2)));
    assert!(one_by_one(&format!("grid {ranks}")));
    assert!(one_by_one(&format!("cluster {ranks}*1")));
}

#[test]
fn an_exceeded_limit_is_refused_with_its_count() {
    let too_much = |text: &str| match check(sealed(text).as_bytes()) {
        Err(Fault::TooMuch { what, count, .. }) => (what, count),
        found => panic!("{found:?}"),
    };
    // Two links for each of three sides.
    let links = of_many("grid 11184811x1x1", "11184811x1x1", "1x1x1");
    assert_eq!(too_much(&links), ("links", 6 * 11_184_811));
    // Every second rank sends a message over twenty sides, in each of 400 steps: a segment counts as
    // sixteen links, and at most one link per hop is visited.
    let sides = vec!["2"; 20].join("x");
    let halves = "1x".repeat(19) + "2";
    let steps: String =
        (0..400).map(|step| format!("step {step}\nsend 1 own 1\nreceive 1 1\n")).collect();
    let text = of_many(&format!("grid {sides}"), &sides, &halves);
    let (head, _) = text.split_once("class 0\n").unwrap();
    let layout = "start 0,0,2,1,1\nfinish 0,0,2,1,1\n";
    let classes = format!("class 0\n{layout}{steps}class 1\n{layout}");
    let each = (1 << 19) * (16 * 20 + 2 * 20);
    assert_eq!(too_much(&format!("{head}{classes}")), ("links visited", 400 * each));
    // The blocks of a class that are sent, and those that are copied.
    let text = of_many("complete 1048576", "1048576", "1").replace("slots 2\n", "slots 1048576\n");
    let message = "send 1 own 0,1048576,1\nreceive 1 0,1048576,1\n";
    let copy = "copy 0,1048576,1 0,1048576,1\n";
    let steps: String = (0..40_000).map(|step| format!("step {step}\n{copy}{message}")).collect();
    let (head, _) = text.split_once("step 0\n").unwrap();
    assert_eq!(too_much(&format!("{head}{steps}")), ("blocks moved", 40_000 << 21));
}

#[test]
fn an_invalid_line_is_refused_by_its_number_and_rule() {
    let text = certificate("torus:4x4", "suh-shin");
    let axes = |axes| format!("start 0,0{}", ",1,1,1".repeat(axes));
    for (from, to, line, rule) in [
        ("ports 1", "ports 0", 4, "there is at least one port"),
        ("grid 4~x4~", "complete 0", 2, "a machine has 1 to 2^32 - 1 ranks"),
        (
            "start 0,0,2,8,8,2,1,4,4,2,1",
            &*axes(33),
            13,
            "a row lies within the slots, and its displacements are ranks",
        ),
    ] {
        let altered = body(&text).replacen(from, to, 1);
        let found = check(sealed(&altered).as_bytes());
        let Err(Fault::Line { line: told, rule: given, .. }) = &found else { panic!("{found:?}") };
        assert_eq!((*told, &**given), (line, rule));
    }
    // The largest number of axes.
    let altered = body(&text).replacen("start 0,0,2,8,8,2,1,4,4,2,1", &axes(32), 1);
    let found = check(sealed(&altered).as_bytes());
    assert!(!matches!(found, Err(Fault::Line { .. })), "{found:?}");
}

#[test]
fn more_messages_than_ports_are_counted_by_rank() {
    let mut machine = machine("full:5").unwrap();
    machine.set_ports(2);
    let problem = common::problem(&machine, Collective::AllToAll, 100);
    let schedule = schedule_of(&machine, &problem, "direct", &Parameters::new()).unwrap();
    // A port carries the two messages of 100 bytes in turn, in each of two steps.
    let on_one_port = |text: &str| {
        let ports = body(text).replace("ports 2", "ports 1").replace(" bytes=200 ", " bytes=400 ");
        check(sealed(&ports.replace(" link_bytes=200 ", " link_bytes=400 ")).as_bytes())
    };
    let text = certificate_of(&schedule, &machine);
    let found = on_one_port(&text);
    let (listed, found_there) = (0, 2 * 2 * 5);
    let fault = Fault::Count { name: "port_violations", listed, found: found_there };
    assert_eq!(found, Err(fault.clone()));
    // On a line every rank is checked, although all are in one class.
    let mut line = topocoll::machine("mesh:5").unwrap();
    line.set_ports(2);
    let text = certificate_of(&schedule, &line);
    let bounds = body(&text).lines().find(|line| line.starts_with("bounds")).unwrap();
    assert!(text.contains("\nranks 5 by 1\n") && bounds.starts_with("bounds steps=2 "), "{text}");
    let found = on_one_port(&text);
    assert_eq!(found, Err(fault));
}

/// Certificates of some megabytes that would take hours or fill the memory.
#[test]
fn certificates_that_would_take_hours_are_refused_at_once() {
    let text = certificate("full:2", "direct");
    let message = ["send 1 own 1\n", "receive 1 1\n"];
    let many = message.map(|end| end.repeat(200_000));
    let rule = |text: &str| match check(sealed(text).as_bytes()) {
        Err(Fault::Step { step: 0, rule, .. }) => rule,
        found => panic!("{found:?}"),
    };
    let between = |ends: [&str; 2]| body(&text).replace(&message.concat(), &ends.concat());
    assert_eq!(rule(&between([&many[0], &many[1]])), "a slot is written twice at once");
    assert_eq!(rule(&between([&many[0], message[1]])), "a message is sent that nobody receives");
    assert_eq!(rule(&between([message[0], &many[1]])), "a message is received that nobody sends");
    // 2^31 blocks are copied to one slot.
    let copies = "copy 0,1048576,0 0,1048576,0\n".repeat(2048);
    let copied = between([&copies, ""]).replace("slots 2\n", "slots 1048576\n");
    assert_eq!(rule(&copied), "a slot is written twice at once");
    // Each of 2^20 ranks sends a message to and fro.
    let long = format!("send 1 {}0:1 1\n", "0:1;0:-1;".repeat(3000));
    let ways = between([&long, message[1]])
        .replace("complete 2\n", "grid 1048576\n")
        .replace("ranks 2 by 1\n", "ranks 1048576 by 1\n")
        .replace("slots 2\n", "slots 1048576\n");
    let found = check(sealed(&ways).as_bytes());
    assert!(matches!(found, Err(Fault::TooMuch { what: "links visited", .. })), "{found:?}");
}

#[test]
fn a_truncated_certificate_is_refused_at_its_last_line() {
    let text = certificate("torus:4x4", "suh-shin");
    let lines: Vec<&str> = body(&text).lines().collect();
    // The title alone is refused; the text is complete with its last line.
    for kept in 1..lines.len() {
        let cut = sealed(&(lines[..kept].join("\n") + "\n"));
        let found = check(cut.as_bytes()).unwrap_err();
        if let Fault::Line { line, text, .. } = &found {
            assert!(*line <= kept + 1, "{found}");
            assert_eq!(*line == kept + 1, text == "the end", "{found}");
        }
        // The head is read in order, then at least one class.
        let head = lines.iter().position(|line| line.starts_with("class")).unwrap();
        let at_the_end = matches!(found, Fault::Line { line, .. } if line == kept + 1);
        assert!(kept > head || at_the_end, "{found:?}");
    }
    let noise = body(&text).replace("operation", "nothing");
    let found = check(sealed(&noise).as_bytes()).unwrap_err();
    assert!(matches!(&found, Fault::Line { line: 3, text, .. } if text == "nothing alltoall"));
}

#[test]
fn pieces_keep_their_own_sizes() {
    let split = (5..40).find_map(|ranks| {
        let mut machine = machine(&format!("full:{ranks}")).unwrap();
        machine.set_ports(3);
        let problem = Problem::new(Collective::AllGather, ranks, 3, 100).unwrap();
        let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
        (schedule.rule().cuts().len() > 1).then(|| certificate_of(&schedule, &machine))
    });
    let text = split.expect("some concatenation splits blocks");
    check(text.as_bytes()).unwrap();
    let line = text.lines().find(|line| line.starts_with("pieces")).unwrap();
    let mut bytes: Vec<u64> =
        line["pieces ".len()..].split(';').map(|word| word.parse().unwrap()).collect();
    bytes[0] += 10;
    *bytes.last_mut().unwrap() -= 10;
    let words: Vec<_> = bytes.iter().map(ToString::to_string).collect();
    let other = body(&text).replace(line, &format!("pieces {}", words.join(";")));
    assert!(matches!(check(sealed(&other).as_bytes()), Err(Fault::Count { .. })));
}

/// Compares both counts where messages exceed the ports.
#[test]
fn port_violations_of_ranks_and_nodes_equal_those_of_verify() {
    let mut exceeded = 0;
    for text in [
        "cluster:2*2",
        "cluster:1,3",
        "cluster:6",
        "cluster:6*1",
        "cluster:3*2",
        "cluster:1,2,3",
        "full:6",
        "torus:3x2",
        "mesh:6",
        "torus:3*2",
        "mesh:2x1*2,4",
        "grid:3~x2*1",
        "fat-tree:2,1*3",
        "twisted-torus:2x3*1",
        "hyperx:3*1,2,3",
    ] {
        let machine = machine(text).unwrap();
        for planned in 1..machine.ranks() {
            let mut alike = topocoll::machine(&format!("full:{}", machine.ranks())).unwrap();
            alike.set_ports(planned);
            for (algorithm, problem, setting) in serving(&alike, 60) {
                let mut schedule =
                    schedule_of(&alike, &problem, &algorithm.info().name, &setting).unwrap();
                for ports in 1..=planned {
                    schedule.problem.ports = ports;
                    let counts = count(&schedule, &machine, None, MEMORY).unwrap();
                    let proved = check(certificate_of(&schedule, &machine).as_bytes()).unwrap();
                    let place =
                        format!("{} on {text}, {ports} of {planned} ports", algorithm.info().name);
                    let found = proved.counts.port_violations;
                    assert_eq!(found, counts.port_violations.into(), "{place}");
                    exceeded += u32::from(found > 0);
                }
            }
        }
    }
    assert!(exceeded > 500, "{exceeded}");
}

/// Every rank of a node sends to all others in one step, within the ports that the forger lists.
#[test]
fn ranks_of_one_node_have_ports() {
    let messages = |line: fn(u32) -> String| (1..8).map(line).collect::<String>();
    let sends = messages(|to| format!("send {to} own {to}\n"));
    let receives = messages(|from| format!("receive {from} {}\n", 8 - from));
    let forged = |violations: u32| {
        let body = format!(
            "topocoll certificate 1\nmachine cluster 1*8\noperation alltoall\nports 1\nblock 100\n\
             algorithm direct\nranks 8 by 1\nslots 8\npieces 100\ncounts steps=1 messages=56 \
             bytes=700 link_bytes=700 hops=0 link_conflicts=0 max_link_sharing=0 contended_steps=0 \
             contention_free_steps=1 port_violations={violations} inter_node_steps=0\n\
             bounds steps=3 link_bytes=700\n\
             class 0\nstart 0,0,8,1,1\nfinish 0,0,8,1,7\nstep 0\n{sends}{receives}"
        );
        check(sealed(&body).as_bytes())
    };
    let fault = Fault::Count { name: "port_violations", listed: 0, found: 16 };
    assert_eq!(forged(0), Err(fault));
    assert_eq!(forged(16).unwrap().counts.port_violations, 16);
}

/// `FORGERIES=1000` sets the number of forgeries of each certificate.
#[test]
fn a_forged_certificate_is_true_or_refused() {
    const MACHINES: [&str; 25] = [
        "full:1",
        "full:2",
        "full:5",
        "full:8",
        "torus:3x3",
        "torus:4x2",
        "torus:6",
        "mesh:3x2",
        "mesh:5",
        "grid:4~x2",
        "grid:3x2~",
        "cluster:8",
        "cluster:2*4",
        "cluster:4*2",
        "cluster:1,2,3",
        "cluster:4*1",
        "torus:2x2*2",
        "torus:3*1",
        "mesh:3x1*1,2,1",
        "twisted-torus:2x4",
        "torus:3x2/0,0+0",
        "hypercube:2",
        "hyperx:3*1,2,1",
        "fat-tree:2,2,2",
        "dragonfly:1,2,1*1",
    ];
    let times = std::env::var("FORGERIES").map_or(6, |times| times.parse().unwrap());
    let mut forger = Forger::new(1);
    for (text, ports) in MACHINES.into_iter().flat_map(|text| [1, 2, 4].map(|ports| (text, ports)))
    {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let mut algorithms = serving(&machine, 30);
        // One setting of each algorithm.
        algorithms.dedup_by_key(|(algorithm, ..)| &algorithm.info().name);
        for (algorithm, problem, setting) in algorithms {
            let schedule =
                schedule_of(&machine, &problem, &algorithm.info().name, &setting).unwrap();
            forger.forge(body(&certificate_of(&schedule, &machine)), times);
        }
    }
    println!("{forger}");
    // Some forgeries are accepted, and every field is altered.
    assert!(forger.accepted > forger.tried / 10 && forger.tried > 400 * times, "{forger}");
    assert_eq!(forger.fields.len(), 21, "{forger}");
    assert!(forger.forms.values().sum::<usize>() < forger.tried / 1000, "{forger}");
}
