mod hostile;
mod many;
mod options;

use super::*;
use crate::LinkId;

/// Files of every kind, by a word of its name, and the short form of the machine.
const READ: &[(&str, &str, &str)] = &[
    ("TOML", TOML, "torus:4"),
    ("CSV", "from,to\na,b\nb,a\n", "network"),
    ("CSV", "#undirected\nswitch,s\nfrom,to\na,s\n", "network"),
    (
        "JSON",
        "{\"nodes\": [{\"id\": 0}, {\"id\": 1}],\n\"links\": [{\"source\": 0, \"target\": 1}]}",
        "network",
    ),
    ("GraphML", GRAPHML, "network"),
    (
        "GML",
        "Creator \"x\"\ngraph [\nnode [ id 0 ]\nnode [ id 1 ]\nedge [ source 0 target 1 ]\n]\n",
        "network",
    ),
    ("DOT", "/* x */\nstrict graph \"g\" {\n h1 -- leaf1;\n}\n", "network"),
    ("edges", "h1 h2 {'count': 2}\nh2 h3 {}\n", "network"),
    ("edges", "0 1\n1 2\n0 2\n", "network"),
    ("SimGrid", PLATFORM, "torus:2x2@simgrid"),
    ("hwloc", "<?xml version='1.0'?>\n<topology>\n<object type='Core'/>\n</topology>", "cluster:1"),
    ("topology.conf", "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=m\n", "cluster:4,1"),
    (
        "topology.conf",
        "BlockSizes=2,4\nBlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\n",
        "cluster:2*2",
    ),
    (
        "topology.conf",
        "SwitchName=a \\\n  Nodes=n[0-3],\\\n  m\nSwitchName=b Switches=a",
        "network",
    ),
    (
        "topology.conf",
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[0-3]\n\
      SwitchName=c Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=a,b\n\
      SwitchName=b Level=0 LinkSpeed=1 Nodes=n[4-7]\n",
        "network",
    ),
    (
        "topology.conf",
        "BlockName=a BlockIndex=0 Nodes=n[0-1] BlockSize=1\n\
      BlockName=b BlockIndex=1 Nodes=m[0-1] BlockSize=1\n\
      AggregatedBlock=ab BlockIndex=2 Nodes=n[0-1],m[0-1] BlockSize=2\n",
        "cluster:2*2",
    ),
    (
        "nvidia-smi",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-3\nGPU1\tNV2\t X \t0-3\n\nLegend:\n x",
        "network",
    ),
    ("rocm-smi", ROCM, "network"),
    ("NCCL", NCCL, "cluster:1"),
    ("ibnetdiscover", FABRIC, "network"),
    ("topology.yaml", YAML, "network"),
    ("rankfile", "rank 1=b slot=0:0\nrank 0=a slot=0:0\n", "cluster:2*1"),
    ("host file", "node1 slots=4 # rack 1\nnode2 slots=4\n", "cluster:2*4"),
    ("host file", "aa slots=4 max_slots=4\nbb  max_slots=4\ncc slots=4\n", "cluster:3*4"),
    ("host file", "user@n1 slots=4 # login node\nn2 count=4\n^n3\n", "cluster:2*4"),
    ("host file", "h1:4\nh2:4:binding=user:0,1,2,3\nh3\nh3\n^h1\n", "cluster:4,2"),
    ("host file", "n1 np=8 gpus=4 big\nn2 np=8\n", "cluster:2*8"),
    ("host file", "login\nlogin\nlogin\n", "cluster:3"),
    ("host file", "10.0.0.1\n10.0.0.2\n", "cluster:2*1"),
];

const TOML: &str = r#"title = "four"
shape = { value = "torus:4", source = "x" }
ports = { value = 1, source = "x" }
[timing]
startup = { value = "1us", source = "x" }
per_byte = { value = "1GB/s", source = "x" }
per_hop = { value = "0", source = "x" }
rearrangement = { value = "0", source = "x" }
barrier = { value = "0", source = "x" }
"#;

const YAML: &str = "---
- topology: blocks
  block:
    block_sizes:
      - 2
      - 4
    blocks:
      - block: a
        nodes: n[1-2]
- topology: 'tree'
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: \"node[03-04]\"
";

const NCCL: &str = "<system version='1'>\n<cpu numaid='0'>\n<pci busid='0:1'>\n<gpu dev='0'>\n\
    <nvlink target='0:2' count='2' tclass='0x068000'/>\n</gpu>\n</pci>\n<nic>\n<net speed='100000'/>\n</nic>\n\
    </cpu>\n</system>";

const ROCM: &str = "
======================= ROCm System Management Interface =======================
=========================== Weight between two GPUs ============================
       GPU0         GPU1
GPU0   0            15
GPU1   15           0
============================ Hops between two GPUs =============================
       GPU0         GPU1
GPU0   0            1
GPU1   1            0
========================== Link Type between two GPUs ==========================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
================================== Numa Nodes ==================================
GPU[0]\t\t: (Topology) Numa Node: 0
============================= End of ROCm SMI Log ==============================
";

const FABRIC: &str = "vendid=0x2c9\nswitchguid=0x1\nSwitch 40 \"S-1\" # \"leaf-1\" port 0\n\
    [1] \"H-2\"[1](2) # \"node01 mlx5_0\" lid 5 4xHDR\n[2] \"S-3\"[1] # \"spine-1\" lid 2 4xEDR\n";

const GRAPHML: &str = "<graphml>\n<graph edgedefault='undirected'>\n<node id='a'/>\n<node id='b'/>\n\
    <edge source='a' target='b'/>\n</graph>\n</graphml>\n";

const PLATFORM: &str = "<!-- of SimGrid -->\n<platform version='4.1'>\n<cluster radical='0-3' \
    bw='1GBps' lat='1us' topology='TORUS'\n topo_parameters='2,2'/>\n</platform>\n";

/// Files of no kind, and a part of what is said of them.
const REFUSED: &[(&str, &str)] = &[
    ("", "the file is empty"),
    ("# only a comment\n", "the file is empty"),
    ("ready\n", "a host file says how many"),
    ("titel = \"x\"\n", "a machine file has title"),
    ("MACHINE=torus\n", "a machine file has title"),
    ("a,b\nb,a\n", "a list of links begins with `from,to`"),
    ("0,1\n1,0\n", "this is a demand matrix"),
    ("3\n4\n", "this is a demand matrix"),
    ("<svg>\n</svg>", "other XML is not read"),
    ("hello world\n", "not a known kind"),
    ("{\"kind\":\"header\"}\n", "--schedule FILE"),
    ("num_ranks 2\nrank 0 {\n", "--schedule FILE"),
    ("{ \"ranks\": 4 }\n", "node-link JSON has"),
    ("graph g\n h1 -- leaf1;\n", "DOT is `graph { a -- b }`"),
    ("router 0 node 0 node 1 router 1\n", "BookSim's anynet is not read"),
    ("topology: [ Ring, Switch ]\nnpus_count: [ 8, 2 ]\n", "ASTRA-sim's network is not read"),
    ("topology = torus;\nk = 8;\n", "BookSim's configuration is not read"),
    ("cloud.google.com/gke-tpu-topology: 4x4x4\n", "a short form such as torus:4x4x4"),
    ("{\n\"schema\": \"1.0.2-chakra.0.0.4\" }\n", "traces of collectives (Chakra, nsys)"),
    ("Time (%),Total Time (ns),Instances\n", "traces of collectives (Chakra, nsys)"),
    ("NodeName=n[1-4] CPUs=8\nPartitionName=all Nodes=ALL\n", "`scontrol show topology`"),
    ("ClusterName=x\n", "`scontrol show topology`"),
    ("Machine (31GB total)\n  Package L#0\n", "lstopo's text"),
    ("CA 'mlx5_0'\n\tCA type: MT4123\n", "ibnetdiscover lists the network"),
    ("Architecture:  x86_64\n", "see lstopo"),
    ("PARTITION AVAIL NODES\nall up 4\n", "see lstopo"),
    ("+-----+\n| NVIDIA-SMI 550.54 |\n", "`nvidia-smi topo -m`"),
    ("source,destination,vertices\na,b,a b\n", "a table of routes"),
    ("some/path slots=2\n", ""),
    (":3\n", ""),
    ("node 3\n", ""),
    ("It was a dark night.\n", ""),
];

fn kind(text: &str) -> Option<&'static str> {
    let begins = Beginning::of(text);
    FILES.iter().find(|(_, _, knows, _)| knows(&begins)).map(|(name, ..)| *name)
}

#[test]
fn the_kind_of_a_file_is_told_by_its_content() {
    for (name, text, form) in READ {
        assert!(kind(text).is_some_and(|kind| kind.contains(name)), "{text}: {:?}", kind(text));
        let machine = read("some", text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(machine.topology.short_form(), *form, "{text}");
    }
    for (text, said) in REFUSED {
        let refused = read("some", text).unwrap_err();
        assert!(
            refused.message.starts_with("not a known kind of machine file; known"),
            "{refused}"
        );
        assert!(refused.message.contains(said), "{text}: {refused}");
        assert!(!said.is_empty() || refused.message.ends_with("an MPI"), "{text}: {refused}");
    }
}

/// A byte order mark, other ends of lines, blanks after them and comments change nothing.
#[test]
fn how_a_text_is_written_does_not_matter() {
    let mut random = fastrand::Rng::with_seed(57);
    for (name, text, _) in READ {
        let known = read("some", text).unwrap();
        let xml = matches!(*name, "SimGrid" | "hwloc" | "NCCL" | "JSON" | "GraphML");
        for _ in 0..20 {
            let mut other = ["", "\u{feff}"][random.usize(..2)].to_owned();
            let begins = other.len();
            for line in text.lines() {
                let first = other.len() == begins;
                if random.bool() && !xml && !(first && line.starts_with('#')) {
                    other +=
                        ["# of ours\n", "\n", " \t\r\n", "  # SwitchName=x\r\n"][random.usize(..4)];
                }
                other += line;
                other += ["\n", "\r\n", "  \n", "\t\r\n"][random.usize(..4)];
            }
            let machine = read("some", &other).unwrap_or_else(|error| panic!("{other}: {error}"));
            assert_eq!(machine.topology.short_form(), known.topology.short_form(), "{other}");
            assert_eq!(machine.topology.link_classes(), known.topology.link_classes(), "{other}");
            assert_eq!(machine.timing, known.timing, "{other}");
        }
    }
}

#[test]
fn a_place_after_a_byte_order_mark_is_that_of_the_text() {
    let text = "\u{feff}n1 slots=0\n";
    assert_eq!(read("some", text).unwrap_err().span, Some(3..3 + "n1 slots=0".len()));
}

/// Hosts have the same ranks in every way of writing them.
#[test]
fn ways_of_writing_a_host_have_one_meaning() {
    let mut random = fastrand::Rng::with_seed(57);
    for _ in 0..300 {
        let (mut text, mut sizes) = (String::new(), Vec::new());
        for host in 0..random.u32(1..9) {
            let size = random.u32(1..6);
            let user = ["", "me@"][random.usize(..2)];
            let name = format!("{user}n{host}");
            text += &match random.u8(..9) {
                0 => format!("{name} slots={size}\n"),
                1 => format!("{name} cpu={size} max_slots=9\n"),
                2 => format!("{name} count={size} # {host}\n"),
                3 => format!("{name}:{size}\n"),
                4 => format!("{name}:{size}:binding=user:0,1\n"),
                5 => format!("{name} np={size} gpus=1 fast\n"),
                6 => format!("{name}\tmax-slots={size}\n"),
                7 => format!("^gone{host}\n{name} slots={size}\ngone{host} slots=3\n"),
                _ => format!("{name}\n").repeat(size as usize),
            };
            sizes.push(size);
        }
        let machine = read("some", &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = cluster("some", &sizes).unwrap().topology.short_form();
        assert_eq!(machine.topology.short_form(), expected, "{text}");
    }
}

/// The names of the ends of each link and its capacity, in order.
fn links(machine: &Machine) -> Vec<String> {
    let topology = &machine.topology;
    let mut links: Vec<_> = (0..topology.links())
        .map(|link| {
            let kind = topology.link_kinds()[topology.link_kind(LinkId(link))];
            let ends = topology.link_name(LinkId(link));
            format!("{} {} {:?}", ends.split(" #").next().unwrap(), kind.class, kind.capacity)
        })
        .collect();
    links.sort();
    links
}

/// A tree is the same in topology.conf, in any order of its lines and with continued lines, as printed by
/// scontrol, and in topology.yaml.
#[test]
fn ways_of_writing_a_tree_have_one_meaning() {
    let mut random = fastrand::Rng::with_seed(58);
    for _ in 0..60 {
        let leaves = random.u32(2..7);
        let mut lines = Vec::new();
        let (mut printed, mut yaml) = (Vec::new(), Vec::new());
        for leaf in 0..leaves {
            let last = random.u32(1..9);
            lines.push(format!("SwitchName=l{leaf} Nodes=h{leaf}x[0-{last}]\n"));
            printed
                .push(format!("SwitchName=l{leaf} Level=0 LinkSpeed=1 Nodes=h{leaf}x[0-{last}]\n"));
            yaml.push(format!("      - switch: l{leaf}\n        nodes: h{leaf}x[0-{last}]\n"));
        }
        lines.push(format!("SwitchName=top Switches=l[0-{}]\n", leaves - 1));
        let all = format!("Nodes=h0x[0-1] Switches=l[0-{}]", leaves - 1);
        printed.push(format!("SwitchName=top Level=1 LinkSpeed=1 {all}\n"));
        yaml.push(format!("      - switch: top\n        children: l[0-{}]\n", leaves - 1));
        for all in [&mut lines, &mut printed, &mut yaml] {
            random.shuffle(all);
        }
        lines
            .iter_mut()
            .filter(|_| random.bool())
            .for_each(|line| *line = line.replace(' ', " \\\n  "));
        let known = links(&read("conf", &lines.concat()).unwrap());
        let yaml = format!("- topology: t\n  tree:\n    switches:\n{}", yaml.concat());
        for text in [printed.concat(), yaml] {
            assert_eq!(links(&read("other", &text).unwrap()), known, "{text}");
        }
    }
}

/// A network of InfiniBand is the same if links are listed at one end or at both.
#[test]
fn links_listed_at_both_ends_are_counted_once() {
    let mut random = fastrand::Rng::with_seed(59);
    for _ in 0..60 {
        let (nodes, cables) = (random.u32(1..9), random.u32(1..4));
        let (mut below, mut top, mut adapters) = (String::new(), String::new(), String::new());
        for node in 0..nodes {
            let rate = ["4xEDR", "2xHDR", "4xNDR"][random.usize(..3)];
            below += &format!("[{node}] \"H-{node}\"[1](g) # \"n{node} mlx5_0\" lid 1 {rate}\n");
            adapters += &format!(
                "caguid=1\nCa 1 \"H-{node}\" # \"n{node} mlx5_0\"\n[1](g) \"S-0\"[{node}] # lid 1 \"leaf\" {rate}\n"
            );
        }
        for cable in 0..cables {
            below += &format!("[{}] \"S-1\"[{cable}] # \"top\" lid 1 4xHDR\n", nodes + cable);
            top += &format!("[{cable}] \"S-0\"[{}] # \"leaf\" lid 1 4xHDR\n", nodes + cable);
        }
        let one = format!("switchguid=1\nSwitch 9 \"S-0\" # \"leaf\"\n{below}");
        let both = format!("{adapters}switchguid=1\nSwitch 9 \"S-1\" # \"top\"\n{top}{one}");
        let (one, both) = (read("one", &one).unwrap(), read("both", &both).unwrap());
        assert_eq!(links(&one), links(&both));
        assert_eq!((one.ranks(), one.topology.links()), (nodes, 2 * u64::from(nodes + cables)));
    }
}

#[test]
fn keys_of_a_machine_file_may_have_quotes_and_blanks() {
    let written = |line: &str| match (line.strip_prefix('['), line.split_once('=')) {
        (Some(table), _) => format!("[ \"{}\" ] # table\n", table.trim_end_matches(']')),
        (None, Some((key, value))) => format!("\"{}\" = {value}\n", key.trim()),
        (None, None) => format!("{line}\n"),
    };
    let text: String = TOML.lines().map(written).collect();
    assert_eq!(read("four", &text).unwrap().topology.short_form(), "torus:4");
}
