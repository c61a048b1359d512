//! What options say of a file, ranks on its nodes, and what is said of the rest.

use super::*;
use crate::Topology;

/// A switch joins NVLinks as it is said, or as it is likely.
#[test]
fn a_switch_of_nvlinks_may_be_said() {
    let table = |gpus: usize, links: &dyn Fn(usize, usize) -> usize| {
        let names: Vec<_> = (0..gpus).map(|gpu| format!("GPU{gpu}")).collect();
        let row = |from: usize| {
            let cell =
                |to| if to == from { "X".to_owned() } else { format!("NV{}", links(from, to)) };
            format!("GPU{from}\t{}\n", (0..gpus).map(cell).collect::<Vec<_>>().join("\t"))
        };
        format!("\t{}\n{}", names.join("\t"), (0..gpus).map(row).collect::<String>())
    };
    let with = |text: &str, nvlink_switch| {
        let reading = Reading { nvlink_switch, ..Reading::default() };
        let machine = read_in(Path::new("some"), text, &reading);
        machine.map(|machine| (machine.topology.short_form(), machine.topology.links()))
    };
    let cluster = |gpus: u32| Ok((format!("cluster:{gpus}"), 0));
    let network = |links: u64| Ok(("network".to_owned(), links));
    for (gpus, each, likely) in [(2, 3, false), (4, 3, false), (4, 8, true), (8, 2, true)] {
        let text = table(gpus, &|_, _| each);
        let (one, direct) = (cluster(gpus as u32), network((gpus * (gpus - 1) * each) as u64));
        assert_eq!(with(&text, Some(true)), one);
        assert_eq!(with(&text, Some(false)), direct);
        assert_eq!(with(&text, None), if likely { one } else { direct });
    }
    let unequal = table(4, &|from, to| 1 + (from + to) % 2);
    assert_eq!(with(&unequal, None), with(&unequal, Some(false)));
    let refused = with(&unequal, Some(true)).unwrap_err().message;
    assert!(refused.contains("all pairs of GPUs have equally many"), "{refused}");
    let refused = with(NCCL, Some(false)).unwrap_err().message;
    assert!(refused.contains("the file lists NVLinks to a switch"), "{refused}");
    let refused = with(ROCM, Some(true)).unwrap_err().message;
    assert!(refused.contains("the GPUs have XGMI links"), "{refused}");
    assert!(with(TOML, Some(true)).unwrap_err().message.contains("--nvlink-switch are of links"));
}

/// Counted by hand: two rings of four GPUs, each on its own processor.
#[test]
fn xgmi_links_are_those_of_weight_15() {
    let ring = |one: usize, other: usize| match (one % 4).abs_diff(other % 4) {
        1 | 3 => 15,
        _ => 30,
    };
    let together = |one: usize, other: usize| one / 4 == other / 4;
    type Cell = Box<dyn Fn(usize, usize) -> String>;
    let tables: [(&str, Cell); 3] = [
        (
            rocm_smi::TABLES[0],
            Box::new(move |a, b| if together(a, b) { ring(a, b) } else { 72 }.to_string()),
        ),
        (
            rocm_smi::TABLES[1],
            Box::new(move |a, b| if together(a, b) { "1" } else { "3" }.to_owned()),
        ),
        (
            rocm_smi::TABLES[2],
            Box::new(move |a, b| if together(a, b) { "XGMI" } else { "PCIE" }.to_owned()),
        ),
    ];
    let written = |gpus: usize, tables: &[(&str, Cell)]| {
        let names: Vec<_> = (0..gpus).map(|gpu| format!("GPU{gpu}")).collect();
        let row = |from: usize, cell: &Cell| {
            let cells =
                (0..gpus).map(|to| if from == to { "0".to_owned() } else { cell(from, to) });
            format!("GPU{from} {}\n", cells.collect::<Vec<_>>().join(" "))
        };
        let table = |(title, cell): &(&str, Cell)| {
            let rows: String = (0..gpus).map(|from| row(from, cell)).collect();
            format!("==== {title} ====\n {}\n{rows}\n", names.join(" "))
        };
        tables.iter().map(table).collect::<String>()
    };
    let four = read("four", &written(4, &tables)).unwrap();
    assert_eq!((four.ranks(), four.topology.links(), four.ports.rank), (4, 8, 2));
    assert!((four.timing.per_byte.of(0) * 50e9 - 1.0).abs() < 1e-9);
    let said = four.assumed.unwrap();
    assert!(
        said.contains("50 GB/s an XGMI link (--nvlink)") && said.contains("a path over other GPUs")
    );
    // Both rings, and a switch between the processors with a link each way to each GPU.
    let eight = read("eight", &written(8, &tables)).unwrap();
    assert_eq!((eight.ranks(), eight.topology.links()), (8, 16 + 16));
    assert_eq!(eight.topology.link_classes(), ["XGMI link", "SYS"]);
    let alone = read("types", &written(4, &tables[2..])).unwrap();
    assert_eq!(alone.topology.links(), 12);
    let given = Reading { nvlink: Some(64e9), ..Reading::default() };
    let given = read_in(Path::new("some"), &written(8, &tables[2..]), &given).unwrap();
    assert!((given.timing.per_byte.of(0) * 64e9 - 1.0).abs() < 1e-9);
}

/// A file may be multiplied: each node then holds as many ranks.
#[test]
fn nodes_of_a_file_may_hold_several_ranks() {
    let csv = "#undirected\nfrom,to,bandwidth\nswitch,s\na,s,25GB/s\nb,s,50GB/s\nc,s,50GB/s\n";
    let machine = read("links", csv).unwrap();
    let times = |sizes: &str| crate::spec::with_ranks_on_nodes(&machine, sizes);
    for (sizes, form, ranks) in
        [("8", "network*8", 24), ("4,1,2", "network*4,1,2", 7), ("1", "network", 3)]
    {
        let of = times(sizes).unwrap();
        assert_eq!((of.topology.short_form(), of.ranks()), (form.to_owned(), ranks));
        assert_eq!((of.topology.links(), of.name), (6, format!("links*{sizes}")));
        let classes = of.topology.link_classes().len();
        assert_eq!(of.timing.per_byte.of(classes - 1), 1.0 / 50e9);
        assert_eq!(of.assumed.is_some(), sizes != "1");
    }
    for (sizes, rule) in
        [("0", "ranks on each node is `0`"), ("2,2", "2 sizes for 3 nodes"), ("", "is ``")]
    {
        let refused = times(sizes).unwrap_err().message;
        assert!(refused.contains(rule), "{refused}");
    }
    let refused = crate::spec::with_ranks_on_nodes(&times("2").unwrap(), "2").unwrap_err().message;
    assert!(
        refused.contains("`*2`: the nodes of network*2 have several ranks already"),
        "{refused}"
    );
    let node =
        read("node", "<topology>\n<object type='Core'/>\n<object type='Core'/>\n</topology>")
            .unwrap();
    let refused = crate::spec::with_ranks_on_nodes(&node, "4").unwrap_err().message;
    assert!(refused.ends_with("; for 4 of it: cluster:4*2 --timing FILE"), "{refused}");
    // A node has the injection of its rank before.
    let mut torus = read("four", TOML).unwrap();
    torus.timing.injection = crate::Injection { rank: 1e-10, node: 0.0 };
    let of = crate::spec::with_ranks_on_nodes(&torus, "2").unwrap();
    assert_eq!(of.timing.injection, crate::Injection { rank: 1e-10, node: 1e-10 });
    assert_eq!(of.topology.short_form(), "torus:4*2");
}

/// Ranks are on the hosts of a host file, in its order.
#[test]
fn hosts_hold_the_ranks() {
    let conf = "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=m[0-3]\nSwitchName=c Nodes=x\n\
                SwitchName=top Switches=a,b,c\n";
    let tree = read("conf", conf).unwrap();
    let names = |machine: &Machine| {
        let Shape::Graph(graph) = machine.topology.network() else { panic!("a graph") };
        (0..graph.vertices()).map(|vertex| graph.vertex_name(vertex)).collect::<Vec<_>>().join(" ")
    };
    for (text, vertices, form) in [
        ("n2 slots=4\nm1 slots=2\nn0\n", "n2 m1 n0 a b top", "network*4,2,1"),
        ("rank 1=n3 slot=0\nrank 0=n1 slot=1\n", "n1 n3 a", "network"),
        ("m3\nm3\nm0\nm0\n", "m3 m0 b", "network*2"),
        ("x:3\nn1:3\n^n1\n", "x", "network*3"),
    ] {
        let placed = place(&tree, text).unwrap();
        assert_eq!(
            (names(&placed), placed.topology.short_form()),
            (vertices.to_owned(), form.to_owned())
        );
        let unused = 9 - placed.topology.nodes();
        assert!(
            placed.assumed.as_ref().unwrap().contains(&format!("{unused} nodes hold no ranks"))
        );
        let written = crate::spec::write_file(&placed).unwrap();
        assert_eq!(names(&read("again", &written).unwrap()), vertices);
    }
    // Ranks are where lines list hosts, in turn or in any other order.
    for (text, nodes) in [
        ("n1\nm1\nn1\nm1\n", [0, 1, 0, 1]),
        ("n1\nm1:2\nn1\n", [0, 1, 1, 0]),
        ("x:3\nn1\nm1\nx\nn1\nm1\n^x", [0, 1, 0, 1]),
        ("rank 0=n1\nrank 2=n1\nrank 1=m1\nrank 3=m1\n", [0, 1, 0, 1]),
    ] {
        let (placed, alone) = (place(&tree, text).unwrap(), read("hosts", text).unwrap());
        assert_eq!(links(&placed), links(&place(&tree, "n1:2\nm1:2\n").unwrap()));
        assert_eq!(alone.topology.short_form(), "cluster:2*2 placed");
        assert!(alone.source("placement").is_some_and(|source| source.contains("line")));
        for machine in [placed, alone] {
            let again = read("again", &crate::spec::write_file(&machine).unwrap()).unwrap();
            for machine in [machine, again] {
                assert_eq!([0, 1, 2, 3].map(|r| machine.topology.node_of(crate::Rank(r))), nodes);
            }
        }
    }
    let filled = read("hosts", "n1 slots=1\nm1\nn1 slots=1\nm1\n").unwrap();
    assert_eq!(filled.topology.short_form(), "cluster:2*2");
    assert!(
        filled.assumed.unwrap().contains("slots of a host are filled before those of the next")
    );
    let long = "a:4294967290\nb\na\n";
    assert!(read("long", long).unwrap_err().message.contains("ranks with listed nodes"));
    let grid = read("four", &TOML.replace("torus:4\"", "torus:4*2\"")).unwrap();
    let placed = crate::spec::with_placement(&grid, &[0, 1, 2, 3, 0, 1, 2, 3].map(crate::Rank));
    let refused = crate::spec::with_faults(&placed.unwrap(), ["1"]).unwrap_err().message;
    assert_eq!(refused, "the ranks of four are placed already");
    // All hosts in the order of the file are the machine itself.
    let all: String = names(&tree).split(' ').take(9).map(|host| format!("{host}\n")).collect();
    assert_eq!(links(&place(&tree, &all).unwrap()), links(&tree));
    let pairs = crate::spec::with_ranks_on_nodes(&tree, "2").unwrap();
    let placed = place(&pairs, "n1 slots=2\nm1 slots=1\n").unwrap();
    assert_eq!(placed.topology.short_form(), "network*2,1");
    for (machine, text, rule) in [
        (&tree, "n1\nn9\n", "n9 is not a node of conf"),
        (&pairs, "n1 slots=2\nm1 slots=3\n", "m1 has 3 slots, and 2 ranks in conf*2"),
        (&tree, "n1 slots=0\n", "`0` is not a number of ranks"),
        (&tree, "# none\n", "no hosts"),
        (&tree, "n1\n^n1\n", "no hosts"),
    ] {
        let refused = place(machine, text).unwrap_err();
        assert!(refused.message.contains(rule), "{refused}");
        assert!(refused.span.is_none_or(|at| text.get(at).is_some()));
    }
    let torus = read("four", TOML).unwrap();
    assert!(place(&torus, "n1\n").unwrap_err().message.contains("torus:4 has none"));
    let twice = read(
        "twice",
        "switchguid=1\nSwitch 9 \"S-0\" # \"leaf\"\n[1] \"H-1\"[1] # \"a b\" lid 1 4xHDR\n",
    )
    .unwrap();
    assert_eq!(place(&twice, "a slots=2\n").unwrap().ranks(), 2);
}

/// Values name the lines where they stand, and what is assumed.
#[test]
fn sources_are_lines() {
    let rows = "#undirected\nswitch,s\nfrom,to,class,bandwidth,latency\na,s,up,25GB/s,2us\nb,s,up,50GB/s,\n\
                c,s,down,10GB/s,3us\nd,s,down,10GB/s,1us\n";
    for (text, key, source) in [
        (rows, "per_byte", Some("some lines 5, 6")),
        (rows, "per_hop", Some("some line 7")),
        (rows, "network", Some("some lines 2 to 7")),
        ("h1 h2 {'count': 2}\n# x\nh2 h3 {'bandwidth': '1GB/s'}\n", "per_byte", None),
        (
            "h1 h2 {'bandwidth': '1GB/s'}\n# x\nh2 h3 {'bandwidth': '2GB/s'}\n",
            "per_byte",
            Some("some line 3"),
        ),
        (FABRIC, "per_byte", Some("some lines 4, 5")),
        (NCCL, "per_byte", Some("assumed: 25 GB/s an NVLink")),
        (NCCL, "injection", Some("some line 9")),
        ("# two\na slots=2\nb slots=2\n", "shape", Some("some lines 2 to 3")),
    ] {
        let machine = read("some", text).unwrap();
        assert_eq!(machine.source(key), source, "{text}");
    }
}

/// What a reader leaves out is said.
#[test]
fn words_without_effect_are_said() {
    for (text, said) in [
        ("n1 slots=4 max_slots=8 port=22\n", "max_slots, port of hosts"),
        ("rank 0=a slot=0:0\n", "slot of hosts"),
        ("BlockSizes=2,4\nBlockName=a Nodes=n[1-2]\n", "BlockSizes of switches or blocks"),
        ("SwitchName=a Nodes=n[1-2] LinkSpeed=10\n", "LinkSpeed of leaf switches"),
        (
            "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\n",
            "Level, LinkSpeed of switches or blocks",
        ),
        (&YAML.replace("cluster_default: true", "cluster_default: false"), "block_sizes of blocks"),
        (NCCL, "gpu dev of the file"),
        (&NCCL.replace("0x068000", "0x068001"), "gpu dev, nvlink to a processor of the file"),
        (FABRIC, "switchguid, vendid of adapters and switches"),
        (ROCM, "Numa Nodes of the file"),
        (
            "<topology><info name='x'/><object type='Machine'><object type='L2Cache'/><object type='PU'/></object></topology>",
            "L2Cache, info of the file",
        ),
        (
            "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-3\nGPU1\tNV2\t X \t0-3\n",
            "affinities of GPUs",
        ),
    ] {
        let assumed = read("some", text).unwrap().assumed.unwrap_or_default();
        assert!(assumed.contains(&format!("{said} have no effect")), "{text}: {assumed}");
    }
}
