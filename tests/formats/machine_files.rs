//! Machine files of other programs.

use std::collections::BTreeMap;
use std::path::Path;

use topocoll::spec::Reading;
use topocoll::{
    LinkId, Machine, Rank, Route, files, load_file, machine, machine_with, shipped, spec,
};

fn path(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    folder.join(name).display().to_string()
}

#[test]
fn the_kind_of_a_file_is_found_by_its_content() {
    for (name, shape) in [
        ("torus.xml", "torus:4x8@simgrid"),
        ("fat-tree.xml", "network"),
        ("two-packages.xml", "cluster:2*3"),
        ("topology.conf", "network"),
        ("leaves.conf", "cluster:2*4"),
        ("units.xml", "cluster:2,3"),
        ("disallowed.xml", "cluster:2"),
        ("openmpi-hosts", "cluster:2*4,1"),
        ("max-slots-hosts", "cluster:3*4"),
        ("mpich-hosts", "cluster:3,2"),
    ] {
        let machine = machine(&path(name)).unwrap();
        assert_eq!(machine.topology.short_form(), shape, "{name}");
        assert_eq!(
            (machine.name.as_str(), machine.ports.rank),
            (name.split('.').next().unwrap(), 1)
        );
    }
}

/// Ranks, directed links, and a part of what is assumed, of files as people have them.
#[test]
fn files_from_the_field_are_read() {
    for (name, ranks, links, assumed) in [
        ("bom.hosts", 8, 0, ""),
        ("bom.conf", 8, 20, "do not block"),
        ("bom.xml", 16, 64, "no effect: core, speed"),
        ("comment-first-line.hosts", 8, 0, ""),
        ("max_slots.hosts", 12, 0, "max_slots of hosts have no effect"),
        ("user_comment.hosts", 8, 0, "user@ of hosts have no effect"),
        ("user.hosts", 8, 0, "user@ of hosts have no effect"),
        ("mpich_binding.hosts", 8, 0, "binding of hosts have no effect"),
        ("cpu.hosts", 8, 0, ""),
        ("torque.nodes", 16, 0, "gpus of hosts have no effect"),
        ("rankfile", 2, 0, "slot of hosts have no effect"),
        ("leaves-only.conf", 37, 0, "each host has a link of its own"),
        ("blocksizes-first.conf", 4, 0, "each host has a link of its own"),
        ("continuation.conf", 8, 0, "each host has a link of its own"),
        ("scontrol-show-topology.txt", 8, 20, "do not block"),
        ("scontrol-show-block.txt", 36, 0, "each host has a link of its own"),
        ("topology.yaml", 4, 12, "do not block"),
        ("lstopo-disallowed.xml", 2, 0, ""),
        ("rocm-smi-topo.txt", 4, 8, "50 GB/s an XGMI link"),
        ("net.dot", 3, 4, ""),
        ("flat-cluster.xml", 16, 33, "no effect: speed"),
        ("limiter.xml", 16, 64, "limiter_link limits what a host sends"),
    ] {
        let machine = machine(&path(&format!("../inputs/{name}"))).unwrap();
        assert_eq!((machine.ranks(), machine.topology.links()), (ranks, links), "{name}");
        let said = machine.assumed.unwrap_or_default();
        assert!(said.contains(assumed) && assumed.is_empty() == said.is_empty(), "{name}: {said}");
    }
    for (name, message) in [
        ("one-word.txt", "a host file says how many"),
        ("duplicate-node.conf", "n2 is listed twice"),
        ("forest.conf", "no switch is above the 2 roots b, d"),
        ("astra.yml", "ASTRA-sim's network is not read"),
        ("anynet", "BookSim's anynet is not read"),
        ("node-type-switch.json", "has `type`"),
        (
            "unknown-attributes.json",
            "a link has `bandwith`, `bw`, `capacity`, `latencey`, `weight`",
        ),
    ] {
        let refused = machine(&path(&format!("../inputs/{name}"))).unwrap_err().to_string();
        assert!(refused.contains(message), "{name}: {refused}");
    }
    let leaves = machine(&path("../inputs/leaves-only.conf")).unwrap();
    assert_eq!((leaves.ports.rank, leaves.ports.node), (1, 36));
}

/// Directed links by their ends, and the bytes a second of each, of a graph.
fn links(machine: &Machine) -> BTreeMap<String, Vec<f64>> {
    let mut links = BTreeMap::<_, Vec<f64>>::new();
    for link in (0..machine.topology.links()).map(LinkId) {
        let name = machine.topology.link_name(link);
        let ends = name.split(" #").next().unwrap().to_owned();
        links.entry(ends).or_default().push(1.0 / machine.seconds_per_byte(link));
    }
    links
}

fn input(name: &str) -> Machine {
    machine(&path(&format!("../inputs/{name}"))).unwrap()
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected * 1e-9
}

/// Every machine that is read has a machine file, which reads back to the same.
#[test]
fn machines_of_files_are_written_as_machine_files() {
    let mut count = 0;
    for folder in [".", "../inputs", "../errors"] {
        for entry in std::fs::read_dir(path(folder)).unwrap() {
            let file = entry.unwrap().path();
            let Ok(machine) = load_file(&file) else { continue };
            let shown = file.display();
            let text = spec::write_file(&machine).unwrap_or_else(|e| panic!("{shown}: {e}"));
            let again =
                files::read("again", &text).unwrap_or_else(|e| panic!("{shown}: {e}\n{text}"));
            let all = |machine: &Machine| {
                let Machine { topology, ports, timing, endpoint, .. } = machine;
                let values = [&timing.startup, &timing.per_byte, &timing.per_hop].map(|values| {
                    (0..topology.link_classes().len())
                        .map(|class| values.of(class))
                        .collect::<Vec<_>>()
                });
                let others = (timing.rearrangement_per_byte, timing.barrier, timing.injection);
                let mut loads: Vec<_> = links(machine).into_values().collect();
                loads.iter_mut().for_each(|of| of.sort_by(f64::total_cmp));
                loads.sort_by(|one, other| one.partial_cmp(other).unwrap());
                (topology.ranks(), topology.nodes(), *ports, *endpoint, values, others, loads)
            };
            assert_eq!(all(&again), all(&machine), "{shown}: {text}");
            let cited = |key: &str| again.source(key).is_some_and(|source| !source.is_empty());
            assert!(
                ["shape", "ports", "startup", "barrier"].iter().all(|key| cited(key)),
                "{shown}"
            );
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// Counted by hand.
#[test]
fn gpus_are_joined_as_their_table_says() {
    let four = input("nvidia-smi-topo.txt");
    let counts: Vec<_> = links(&four).into_iter().map(|(ends, of)| (ends, of.len())).collect();
    let pairs =
        [("GPU0", "GPU1", 2), ("GPU0", "GPU2", 1), ("GPU1", "GPU3", 1), ("GPU2", "GPU3", 2)];
    let mut expected: Vec<_> = (pairs.iter())
        .flat_map(|(a, b, n)| [(format!("{a} -> {b}"), *n), (format!("{b} -> {a}"), *n)])
        .collect();
    expected.sort();
    assert_eq!((four.ranks(), counts), (4, expected));
    assert!(links(&four).values().flatten().all(|&bandwidth| near(bandwidth, 25e9)));
    assert_eq!(four.ports.rank, 3);
    let assumed = four.assumed.unwrap();
    assert!(
        assumed.contains("25 GB/s an NVLink") && assumed.contains("PCIe is not used"),
        "{assumed}"
    );

    // Hybrid cube mesh: six NVLinks of each of 8 GPUs.
    let mesh = input("dgx1-topo.txt");
    assert_eq!((mesh.ranks(), mesh.topology.links(), mesh.ports.rank), (8, 48, 6));
    assert_eq!(links(&mesh)["GPU0 -> GPU3"].len(), 2);
    let assumed = mesh.assumed.unwrap();
    assert!(assumed.contains("network interfaces have no effect within a node"), "{assumed}");

    // 18 NVLinks of each GPU to NVSwitches.
    let h100 = input("h100-topo.txt");
    assert_eq!((h100.topology.short_form(), h100.ports.rank), ("cluster:8".to_owned(), 7));
    assert!(near(1.0 / h100.timing.injection.rank, 450e9));
    assert!(near(1.0 / h100.timing.per_byte.of(0), 450e9));
    assert!(h100.assumed.unwrap().contains("18 NVLinks of each GPU lead to a switch"));
    let given = Reading { nvlink: Some(50e9), ..Reading::default() };
    let given = machine_with(&path("../inputs/h100-topo.txt"), &given).unwrap();
    assert!(near(1.0 / given.timing.injection.rank, 900e9));
    assert!(!given.assumed.unwrap().contains("GB/s an NVLink"));

    // GPUs 0 and 1 below a PCIe switch, 2 at their host bridge, 3 at another socket.
    let pcie = input("pcie-topo.txt");
    let found = links(&pcie);
    let tree = [
        ("GPU0", "PIX GPU0", 24e9),
        ("GPU1", "PIX GPU0", 24e9),
        ("PIX GPU0", "PHB GPU0", 20e9),
        ("GPU2", "PHB GPU0", 20e9),
        ("PHB GPU0", "SYS GPU0", 10e9),
        ("GPU3", "SYS GPU0", 10e9),
    ];
    for (a, b, bandwidth) in tree {
        assert!(near(found[&format!("{a} -> {b}")][0], bandwidth), "{a} {b}");
    }
    assert_eq!((found.len(), pcie.topology.link_classes().len(), pcie.ports.rank), (12, 3, 1));
    let given = Reading { nvlink: Some(50e9), ..Reading::default() };
    let refused = machine_with(&path("../inputs/pcie-topo.txt"), &given).unwrap_err().to_string();
    assert!(refused.contains("--nvlink and --nvlink-switch are of links"), "{refused}");
    assert!(pcie.assumed.unwrap().contains("PIX 24 GB/s, PXB 24 GB/s, PHB 20 GB/s"));
}

#[test]
fn ncclxml_has_links_slots_and_interfaces() {
    // Two NVLinks to a switch, and 100 Gbit/s.
    let one = input("nccl-topo.xml");
    assert_eq!((one.ranks(), one.topology.short_form()), (1, "cluster:1".to_owned()));
    assert!(near(1.0 / one.timing.injection.rank, 50e9));
    assert!(near(1.0 / one.timing.injection.node, 12.5e9));
    let three = input("nccl-hgx.xml");
    let counts: Vec<_> = links(&three).into_iter().map(|(ends, of)| (ends, of.len())).collect();
    let expected = [("0 -> GPU1", 4), ("0 -> GPU2", 2), ("1 -> GPU0", 4), ("2 -> GPU0", 2)];
    assert_eq!(counts, expected.map(|(ends, count)| (format!("GPU{ends}"), count)));
    // Without NVLinks: 32 GT/s and 16 GT/s, 16 lanes, 128 of 130 bits.
    let text = std::fs::read_to_string(path("../inputs/nccl-hgx.xml")).unwrap();
    let text: String = text
        .lines()
        .filter(|line| !line.contains("nvlink"))
        .map(|line| format!("{line}\n"))
        .collect();
    let pcie = files::read("pcie", &text).unwrap();
    let found = links(&pcie);
    for (ends, bandwidth) in [
        ("GPU0 -> PIX GPU0", 64e9 * 128.0 / 130.0),
        ("GPU1 -> PIX GPU0", 64e9 * 128.0 / 130.0),
        ("PIX GPU0 -> SYS GPU0", 10e9),
        ("GPU2 -> SYS GPU0", 32e9 * 128.0 / 130.0),
    ] {
        assert!(near(found[ends][0], bandwidth), "{ends}: {found:?}");
    }
}

/// Four GPUs of two packages, whose PCIe devices are below a host bridge of each.
const NVLINKS: &str = include_str!("../inputs/lstopo-nvlink.xml");

#[test]
fn a_matrix_of_hwloc_lists_nvlinks() {
    let machine = files::read("node", NVLINKS).unwrap();
    // Two links within a package, one between 0 and 2, and 1 and 3.
    let found: Vec<_> = links(&machine).into_iter().map(|(ends, of)| (ends, of.len())).collect();
    let half = [("nvml0 -> nvml1", 2), ("nvml0 -> nvml2", 1), ("nvml1 -> nvml0", 2)];
    assert_eq!(found[..3], half.map(|(ends, count)| (ends.to_owned(), count)));
    assert_eq!((machine.ranks(), machine.topology.links(), machine.ports.rank), (4, 12, 3));
    assert!(near(1.0 / machine.seconds_per_byte(LinkId(0)), 25e9));
    let source = "NVLinkBandwidth: 25 GB/s an NVLink";
    assert_eq!(machine.source("per_byte"), Some(source));
    let assumed = machine.assumed.unwrap();
    assert!(assumed.contains("cores, memory, other devices of the file have no effect"));
    assert!(!assumed.contains("25 GB/s"), "{assumed}");
    // All of the first version; one not; no links between packages.
    let early = NVLINKS.replace("50000", "40000").replace("25000", "20000");
    let early = files::read("node", &early).unwrap();
    assert!(near(1.0 / early.seconds_per_byte(LinkId(0)), 20e9));
    let pairs = files::read("node", &NVLINKS.replace("25000", "0")).unwrap();
    assert_eq!(pairs.topology.link_classes(), ["NVLink", "SYS"]);
    let across = files::read("node", &NVLINKS.replace("50000", "0")).unwrap();
    assert_eq!(across.topology.link_classes(), ["NVLink", "PHB", "SYS"]);
    // All joined by a switch, which is a device.
    let switch = NVLINKS
        .replace("distances2 type=\"OSDev\"", "distances2hetero")
        .replace("</distances2>", "</distances2hetero>")
        .replace("40 41 42 43", "OSDev:40 OSDev:41 PCIDev:32")
        .replace("gp_index=\"32\"", "gp_index=\"32\" subtype=\"NVSwitch\"");
    let first = switch.find("<u64values").unwrap();
    let last = switch.find("</distances2hetero>").unwrap();
    let values = "<u64values>9 0 150000 0 9 150000 150000 150000 9</u64values>";
    let switch = format!("{}{values}{}", &switch[..first], &switch[last..]);
    let switch = files::read("node", &switch).unwrap();
    assert_eq!((switch.ranks(), switch.topology.links()), (2, 0));
    assert!(near(1.0 / switch.timing.injection.rank, 150e9));
    assert!(switch.assumed.unwrap().contains("6 NVLinks of each GPU lead to a switch"));
}

#[test]
fn a_wrong_matrix_of_hwloc_is_refused_at_its_place() {
    for (from, to, rule, place) in [
        ("40 41 42 43 ", "40 41 42", "16 values for 3 devices", "<distances2"),
        ("40 41", "40 99", "`99` is not the gp_index of an object", "<indexes"),
        ("40 41", "40 OSDev:", "`OSDev:` is not the gp_index of an object", "<indexes"),
        ("50000", "many", "a bandwidth is `many`, not a whole number", "<u64values"),
        ("50000", "-1", "a bandwidth is `-1`, not a whole number", "<u64values"),
        ("50000", "99999999999", "a bandwidth is `99999999999`", "<u64values"),
        ("50000", "NaN", "a bandwidth is `NaN`, not a whole number", "<u64values"),
        ("50000", "30000", "not all multiples of 25000, or of 20000", "<distances2"),
        ("50000", "500000", "`NV20` is not NV1 to NV18", "<distances2"),
        ("1000000 50000", "1000000 25000", "have another path back", "<distances2"),
        ("40 41 42 43", "3 4 5 6", "0 GPUs: a node has 1 to 256", "<distances2"),
        ("name=\"nvml1\" ", "", "<object> has no name", "<object type=\"OSDev\" gp_index=\"41\""),
        (
            "</topology>",
            "<distances2 name=\"NVLinkBandwidth\"/></topology>",
            "a second",
            "<distances2 name",
        ),
    ] {
        let text = NVLINKS.replace(from, to);
        assert_ne!(text, NVLINKS, "{from}");
        let refused = files::read("node", &text).unwrap_err();
        assert!(refused.message.contains(rule), "{from} {to}: {refused}");
        assert!(text[refused.span.unwrap()].starts_with(place), "{from} {to}");
    }
    let given = Reading { nvlink: Some(50e9), ..Reading::default() };
    let refused =
        files::read_in(Path::new("node"), &NVLINKS.replace("NVLinkB", "B"), &given).unwrap_err();
    assert!(refused.message.contains("in XML of NCCL or lstopo"), "{refused}");
    let fast = files::read_in(Path::new("node"), NVLINKS, &given).unwrap();
    assert!(near(1.0 / fast.seconds_per_byte(LinkId(0)), 50e9));
}

#[test]
fn an_infiniband_network_has_its_cables_and_rates() {
    let small = input("ibnetdiscover.txt");
    let ends: Vec<_> = links(&small).into_keys().collect();
    assert_eq!(
        ends,
        ["leaf-1 -> node01", "leaf-1 -> spine-1", "node01 -> leaf-1", "spine-1 -> leaf-1"]
    );
    assert!(links(&small).values().flatten().all(|&bandwidth| near(bandwidth, 25e9)));
    assert_eq!((small.ranks(), small.topology.link_classes().len()), (1, 2));

    let tree = input("ibnetdiscover-tree.txt");
    let found = links(&tree);
    let (leaf, other, spine) =
        ("MF0;leaf-1:MQM8700/U1", "MF0;leaf-2:MQM8700/U1", "MF0;spine-1:MQM8700/U1");
    // node03 has two adapters; two cables lead from the first leaf to the spine, one from the second.
    for (from, to, bandwidths) in [
        ("node01", leaf, &[25e9][..]),
        ("node02", leaf, &[12.5e9]),
        ("node03", other, &[25e9, 25e9]),
        (leaf, spine, &[25e9, 25e9]),
        (spine, other, &[25e9]),
    ] {
        for ends in [format!("{from} -> {to}"), format!("{to} -> {from}")] {
            let of = &found[&ends];
            let equal = of.len() == bandwidths.len();
            assert!(
                equal && of.iter().zip(bandwidths).all(|(a, b)| near(*a, *b)),
                "{ends}: {of:?}"
            );
        }
    }
    assert_eq!((tree.ranks(), tree.topology.links(), found.len()), (3, 14, 10));
    assert!(tree.assumed.unwrap().contains("left out: Aggregation Node (1)"));
}

#[test]
fn a_torus_of_simgrid_has_its_timing_and_its_ranks() {
    let machine = machine(&path("torus.xml")).unwrap();
    // Its hosts 0 and 1 are neighbours along the side of 8, its first.
    assert_eq!([1, 8].map(|rank| machine.topology.vertex_name(rank)), ["(1,0)", "(0,1)"]);
    let timing = &machine.timing;
    assert_eq!((timing.per_byte.of(0), timing.per_hop.of(1)), (1e-9, 1e-6));
    assert_eq!((timing.startup.of(0), timing.rearrangement_per_byte), (0.0, 0.0));
}

/// Link by link, between any two hosts of a torus of 3x4x2.
#[test]
fn routes_on_a_torus_are_those_that_simgrid_takes() {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    let torus = machine(&inputs.join("simgrid-torus.xml").display().to_string()).unwrap();
    let text = std::fs::read_to_string(inputs.join("simgrid-torus-routes.txt")).unwrap();
    let mut route = Route::default();
    for line in text.lines() {
        let mut words = line.split(' ').map(|word| word.parse().map(Rank));
        let [from, to] = [(); 2].map(|()| words.next().unwrap().unwrap());
        let mut found = format!("{from} {to}");
        torus.topology.route(from, to, &mut route);
        torus.topology.for_each_link(from, &route, &mut |link| {
            let link = torus.topology.link(link).unwrap();
            found += &match link.direction {
                1 => format!(" {}_to_{}_UP", link.from, link.to),
                _ => format!(" {}_to_{}_DOWN", link.to, link.from),
            };
        });
        assert_eq!(found, line);
    }
    assert_eq!(text.lines().count(), 24 * 23);
}

#[test]
fn a_network_in_a_machine_file_equals_the_one_in_a_file_of_links() {
    let (inline, file) =
        (machine(&path("pod.toml")).unwrap(), machine(&path("pod-file.toml")).unwrap());
    let listed = machine(&format!("graph:{}*2", path("pod.csv"))).unwrap();
    assert_eq!(inline.topology.link_classes(), ["intra-node", "node", "uplink"]);
    assert_eq!(inline.topology.short_form(), "network*2");
    assert_eq!(file.topology.short_form(), "network*2");
    assert_eq!(inline.sources[2].0, "network");
    assert_eq!(file.sources[2].0, "routes");
    let (mut route, mut other) = (Route::default(), Route::default());
    for machine in [&file, &listed] {
        assert_eq!((machine.ranks(), machine.topology.links()), (8, 16));
        for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (Rank(from), Rank(to)))) {
            inline.topology.route(from, to, &mut route);
            machine.topology.route(from, to, &mut other);
            assert_eq!(route, other, "{from} {to}");
        }
    }
    for link in (0..16).map(LinkId) {
        let bandwidth = if inline.topology.link_name(link).contains("spine") { 25e9 } else { 50e9 };
        assert_eq!(inline.seconds_per_byte(link), 1.0 / bandwidth);
        assert_eq!(file.seconds_per_byte(link), 1.0 / bandwidth);
    }
}

#[test]
fn networks_of_machine_files_are_refused_at_their_place() {
    let text = std::fs::read_to_string(path("pod.toml")).unwrap();
    for (from, to, rule, line) in [
        ("network*2", "network*0", "ranks on each node is `0`", 2),
        ("network*2", "network*2,2", "2 sizes for 4 nodes", 2),
        ("network*2", "torus:4", "[network] needs the shape `network`, not `torus:4`", 2),
        ("[network]", "[other]", "unknown field `other`", 5),
        ("count = 2 },\n]", "count = 0 },\n]", "count is `0`", 14),
        ("\"n3\", to = \"leaf1\"", "\"leaf1\", to = \"leaf1\"", "from `leaf1` to itself", 12),
        ("class = \"uplink\"", "bandwidth = \"0B/s\"", "`0B/s` is out of range", 13),
        ("class = \"uplink\"", "speed = 4", "unknown field `speed`", 13),
        ("\"n3\", to = \"leaf1\"", "\"n3\", to = \"n4\"", "not connected: node n3 cannot", 6),
        ("\"spine\"]", "\"spine\", \"spine\"]", "`spine` is declared twice", 7),
        ("\"spine\"]", "\"spine\", \"root\"]", "switch `root` has no links", 7),
        ("25GB/s\"]", "25GB/s\", \"1GB/s\"]", "4 values for 3 link", 19),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        let error = spec::parse_file("pod", &text).unwrap_err();
        assert!(error.message.contains(rule), "{from} -> {to}: {error}");
        let at = error.span.unwrap().start;
        assert_eq!(text[..at].matches('\n').count() + 1, line, "{from} -> {to}");
    }
    let text = std::fs::read_to_string(path("pod-file.toml")).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    for (from, to, rule) in [
        ("pod-routes.csv", "none.csv", "none.csv: No such file"),
        ("pod-routes.csv", "refused", "refused: not a regular file"),
        ("pod-routes.csv", "pod.csv", "pod.csv:2: header `from,to,class,count`: it is source,"),
        ("pod-routes.csv", "refused/short-routes.csv", "no route from n3 to n2"),
        ("graph:pod.csv*2", "torus:4x4", "torus:4x4 has routes of its own"),
        ("graph:pod.csv*2", "graph:refused/loop.csv", "loop.csv:3: a link from `b` to itself"),
        ("graph:pod.csv*2", "network", "shape `network` needs the table [network]"),
    ] {
        let error = spec::parse_file_in(
            &folder,
            "pod",
            &text.replacen(from, to, 1),
            &spec::Reading::default(),
        )
        .unwrap_err();
        assert!(error.message.contains(rule), "{from} -> {to}: {error}");
        assert!(error.span.is_some());
    }
}

#[test]
fn a_wrong_value_is_refused_at_its_place() {
    for (name, rule, place) in [
        ("bomb.xml", "declares entities", 2),
        ("entity.xml", "boom", 2),
        ("radical.xml", "radical names 32 hosts, but torus:5x8@simgrid has 40", 3),
        ("ring.xml", "topology RING is not supported: use FLAT, TORUS, FAT_TREE or DRAGONFLY", 2),
        ("truncated.xml", "", 0),
        ("picture.xml", "not a known kind of machine file", 1),
        ("twice.conf", "tux3 is listed twice", 2),
        ("huge.conf", "more than 1048576 nodes", 1),
        ("none-hosts", "`0` is not a number of ranks", 1),
        ("slots-hosts", "a second number of ranks", 2),
        ("key-hosts", "`colour` is not one of slots", 2),
        ("peer.xml", "<peer> is not supported", 2),
    ] {
        let path = path(&format!("refused/{name}"));
        let text = std::fs::read_to_string(&path).unwrap();
        let error = files::read(name, &text).unwrap_err();
        assert!(error.message.contains(rule), "{name}: {error}");
        let at = error.span.unwrap().start;
        let line = text[..at].lines().count() + usize::from(text[..at].ends_with('\n') || at == 0);
        assert!(place == 0 || line == place, "{name}: line {line}");
        assert!(load_file(Path::new(&path)).is_err());
    }
}

#[test]
fn hostile_files_are_refused_without_a_panic() {
    let deep = format!("<topology>{}", "<object type='Group'>".repeat(40_000));
    let refused = files::read("deep", &deep).unwrap_err();
    assert!(refused.message.contains("more than 256 nested elements"), "{refused}");
    let wide = format!(
        "<topology><object {}/></topology>",
        (0..100_000).map(|i| format!("a{i}='' ")).collect::<String>()
    );
    let refused = files::read("wide", &wide).unwrap_err();
    assert!(refused.message.contains("more than 64 attributes"), "{refused}");
    let list = format!("SwitchName=a Nodes={}", "a[0-1]".repeat(60_000));
    assert!(files::read("list", &list).unwrap_err().message.contains("more than"));
    // Two switches give the same machine as one.
    let two = "SwitchName=a Nodes=a[1-1048576]\nSwitchName=b Nodes=b[1-2]\n";
    assert!(files::read("two", two).unwrap_err().message.contains("more than 1048576 nodes"));
    let many = "node slots=4294967295\nnode slots=1\n";
    assert!(files::read("many", many).unwrap_err().message.contains("too many ranks"));
    for name in [
        "torus.xml",
        "fat-tree.xml",
        "two-packages.xml",
        "topology.conf",
        "openmpi-hosts",
        "mpich-hosts",
    ] {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = files::read("cut", &text[..end]);
            let mut bytes = text.clone().into_bytes();
            bytes[end] = random.u8(..128);
            let _ = files::read("changed", &String::from_utf8(bytes).unwrap());
        }
    }
}

#[test]
fn the_kind_of_a_machine_file_is_found_without_its_name() {
    for (name, text) in shipped() {
        assert_eq!(
            files::read(name, text).unwrap().topology.ranks(),
            machine(name).unwrap().ranks()
        );
    }
}
