//! The limits of docs/src/limits.md: a value at the limit is accepted, and one more is refused with the rule.

use std::io::Read;

use common::{Script, reach, schedule_of};
use sha2::{Digest as _, Sha256};
use topocoll::contention::{Settings, Sync, simulate};
use topocoll::exec::Plan;
use topocoll::formats::{FORMATS, Reader, Target};
use topocoll::{
    AnalysisError, Block, Catalogue, Collective, Coordinates, Demand, Graph, Grid, MAX_BLOCK_BYTES,
    Machine, Measured, Method, MixedRadix, NotApplicable, Origin, Parameters, Problem, Rank,
    RankClasses, Request, Route, Rule, Schedule, Setting, Shape, Slot, SlotSet, Step, Strided,
    check_demand_work, files, load_file, machine, spec, verify,
};
use topocoll_certificate::check;

/// A limit: its subject, its value, the result at the limit, and a part of the refusal of one more.
/// Some limits are too large to try: then the attempt is refused for another reason, or not made.
type Row = (&'static str, u64, fn(u64) -> Result<(), String>, &'static str);

const ROWS: [Row; 47] = [
    ("ranks of a machine", u32::MAX as u64, ranks, "not a whole number from 1 to 4294967295"),
    ("sides of a grid", 32, sides, "more than 32 sides"),
    ("nodes of a twisted torus", 1 << 20, twisted, "a twisted torus has at most 1048576"),
    (
        "nodes of a grid on another one",
        1 << 20,
        placed,
        "a grid on another one has at most 1048576",
    ),
    (
        "ranks with a list of their nodes",
        1 << 20,
        on_nodes,
        "ranks with listed nodes: a machine has at most",
    ),
    ("dimensions of a hypercube", 20, dimensions, "cannot have 21 dimensions: it has 1 to 20"),
    ("nodes of a HyperX, fat tree or dragonfly", 1 << 20, family, "nodes: the limit is 1048576"),
    ("directed links of a HyperX or dragonfly", 1 << 26, family_links, "the limit is 67108864"),
    ("vertices of a graph from a file", 1 << 15, vertices, "more than 32768 vertices"),
    (
        "pairs of a node and a vertex of a graph from a file, unless it is a tree",
        1 << 27,
        pairs,
        "134225920 pairs of a node and a vertex: a machine has at most 134217728",
    ),
    ("directed links of a graph from a file", 1 << 22, links, "more than 4194304 directed links"),
    ("bytes of a file of links", 1 << 26, file_of_links, "longer than 67108864 bytes"),
    ("nodes of a machine with a table of routes", 4096, table, "table of routes has at most 4096"),
    ("nodes of a machine with failed nodes or links", 4096, faulty, "has at most 4096"),
    ("ports of a machine file", u32::MAX as u64, ports, "ports is 4294967296: not a whole number"),
    ("ranks of a machine that is replayed", 65_535, replayed, "at most 65535 ranks"),
    ("bytes of a block", MAX_BLOCK_BYTES, block, "between 1 and 1099511627776"),
    ("bytes of a block in a list of sizes", MAX_BLOCK_BYTES, listed, "from 0 to 1099511627776"),
    ("bytes of a machine file", 1 << 20, machine_file, "longer than 1048576 bytes"),
    (
        "bytes of a machine in a file of another program",
        1 << 26,
        other_file,
        "longer than 67108864 bytes",
    ),
    ("hosts of a host file", 1 << 20, hosts, "more than 1048576 hosts"),
    ("characters of a host in a list", 64, host, "is not a host list"),
    (
        "elements of a machine file within each other",
        256,
        elements,
        "more than 256 nested elements",
    ),
    ("rows of measured times", 1000, rows_of_times, "more than 1000 rows"),
    ("ranks of a schedule that is read", 65_535, ranks_read, "at most 65535 are read"),
    ("bytes of a message that is read", MAX_BLOCK_BYTES, message, "at most 1099511627776"),
    (
        "bytes of a line that is read, with what ends it",
        64 << 20,
        line,
        "longer than 67108864 bytes",
    ),
    ("slots of a plan and ranks together", 1 << 30, slots, "at most 1073741824"),
    ("steps of a plan", (1 << 31) - 3, steps, "at most 2147483645"),
    ("ranks of demand-matchings and node-matchings", 2048, demand, "at most 2048 ranks"),
    ("ranks of tokens that experts receive", 1024, tokens_of_ranks, "at most 1024"),
    ("experts of all tokens of all ranks", 1 << 26, tokens, "are at most 67108864"),
    ("ranks of link-matchings", 4096, matched, "at most 4096 ranks"),
    (
        "links on the routes of all messages of link-matchings",
        1 << 26,
        routed,
        "a network of at most 67108864 links on all routes",
    ),
    ("ranks of store-and-forward", 1024, forwarded, "at most 1024 ranks"),
    ("ranks of store-and-forward on a torus", 1 << 14, forwarded_on_tori, "at most 16384 ranks"),
    ("ranks of gossip", 4096, gossiped, "at most 4096 ranks"),
    (
        "ranks of gossip with fewer ports than links",
        512,
        gossiped_by_few_ports,
        "at most 512 ranks, or a port for each link",
    ),
    ("ranks of repair", 512, repaired, "at most 512 ranks"),
    (
        "ranks of a machine on which unequal blocks are ranked",
        32_768,
        ranked,
        "more than the limit of 1073741824",
    ),
    ("virtual channels of a link", 16, channels, "a whole number from 1 to 16"),
    (
        "virtual channels into a router of the flit model",
        128,
        router,
        "129 virtual channels into each router: the flit model has at most 128",
    ),
    ("sides of a certificate's ranks", 32, certified_sides, "at most 32 are checked"),
    (
        "ranks of a certificate's graph",
        1 << 12,
        certified_graph,
        "ranks of a graph: 4097, and at most 4096 are checked",
    ),
    (
        "vertices of a certificate's graph",
        1 << 16,
        certified_vertices,
        "vertices of a graph: 65537, and at most 65536 are checked",
    ),
    ("slots of a certificate", 1 << 27, certified_slots, "at most 134217728 are checked"),
    ("steps of a certificate", (1 << 30) + 1, certified_steps, "numbered from 0 to 2^30"),
];

/// Every step touches this number of slots from 1 on; ranks this period apart are equivalent.
struct Touching {
    touched: u64,
    steps: u32,
    period: u32,
}

impl Rule for Touching {
    fn steps(&self) -> u32 {
        self.steps
    }
    fn step(&self, _rank: Rank, _step: u32, out: &mut Step) {
        out.clear();
        out.send(Rank(0), SlotSet::of(Strided::contiguous(1, self.touched)), Route::default());
    }
    fn slots(&self) -> u64 {
        8192
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: Rank(slot as u32) })
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: Rank(slot as u32), to: rank })
    }
    fn classes(&self) -> RankClasses {
        RankClasses::translations(
            MixedRadix::new(&[8192]).unwrap(),
            Coordinates::from_slice(&[self.period]),
        )
    }
}

/// The slots that every step of every rank or class touches, without a requested method.
#[test]
fn verifying_is_refused_by_estimated_work() {
    let machine = machine("full:8192").unwrap();
    let problem = Problem::new(Collective::AllToAll, 8192, 1, 1).unwrap();
    let verified = |touching| {
        let origin = Origin { algorithm: "none".to_owned(), parameters: Parameters::new() };
        let schedule = Schedule::new(problem, origin, touching);
        verify(&schedule, &machine, None, u128::MAX)
    };
    for (steps, period, by) in
        [(400, 8192, "a full replay"), (12_800, 256, "following every class")]
    {
        let refused = verified(Touching { touched: 7000, steps, period }).unwrap_err();
        let AnalysisError::Work { what, needed, .. } = refused else { panic!("{refused}") };
        let visits = u128::from(period) * (u128::from(steps) * 7000 + 8192);
        assert_eq!((what, needed), (by, visits));
        assert!(verified(Touching { touched: 1, steps: 1, period }).unwrap().violation.is_some());
    }
}

#[test]
fn limits_equal_the_table_and_one_more_is_refused() {
    let text = include_str!("../../docs/src/limits.md");
    let rows: Vec<String> =
        text.lines().filter(|line| line.starts_with("| ")).skip(1).map(str::to_owned).collect();
    assert_eq!(rows, ROWS.map(|(what, most, ..)| format!("| {what} | {most} |")));
    for (what, most, with, rule) in ROWS {
        if most <= reach(1 << 20, u64::MAX) {
            assert_eq!(with(most), Ok(()), "{what}: {most}");
        }
        let said = with(most + 1).expect_err(what);
        assert!(said.contains(rule), "{what}: {said}");
    }
}

fn text<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn ranks(ranks: u64) -> Result<(), String> {
    text(machine(&format!("full:{ranks}")))
}

/// This number of nodes, or one row more.
fn on_nodes(ranks: u64) -> Result<(), String> {
    let text = format!("a:{}\nb\na\n", ranks - 2);
    self::text(files::read("hosts", &text))
}

fn placed(nodes: u64) -> Result<(), String> {
    let rows = nodes.div_ceil(512);
    text(machine(&format!("mesh:{}@{rows}x512", 512 * rows)))
}

fn twisted(nodes: u64) -> Result<(), String> {
    text(machine(&format!("twisted-torus:512x{}", nodes.div_ceil(512))))
}

fn dimensions(dimensions: u64) -> Result<(), String> {
    text(machine(&format!("hypercube:{dimensions}")))
}

/// This number of nodes, or the next that each family can have.
fn family(nodes: u64) -> Result<(), String> {
    let arity = 1024 + nodes % 1024;
    let forms = [
        format!("hyperx:{}x2", nodes.div_ceil(2)),
        format!("fat-tree:{arity},2"),
        format!("dragonfly:{nodes},1,1,1"),
    ];
    let [hyperx, tree, dragonfly] = forms.map(|form| text(machine(&form)));
    // The links of this HyperX are too many.
    let hyperx = hyperx.or_else(|said| if said.contains("nodes") { Err(said) } else { Ok(()) });
    assert!(hyperx.is_err() == tree.is_err() && tree.is_err() == dragonfly.is_err());
    hyperx.and(tree).and(dragonfly)
}

/// This number of links, or more: `32 * 31 * 65536` and `side * (side - 1)` are the nearest below.
fn family_links(links: u64) -> Result<(), String> {
    let side = if links > 1 << 26 { 8193 } else { 8192 };
    let dragonfly = text(machine(&format!("dragonfly:1,{},1,1", side - 1)));
    text(machine(&format!("hyperx:{side}"))).and(dragonfly)
}

/// The graph of a file with these links.
fn graph(links: &str) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), links).unwrap();
    text(machine(&format!("graph:{}", file.path().display())))
}

/// A switch with other vertices around it, of which two nodes are joined too: routes of a tree are not kept.
fn star(nodes: u64, switches: u64) -> Result<(), String> {
    let nodes = (0..nodes).map(|node| format!("n{node},hub\n"));
    let switches = (1..switches).map(|switch| format!("s{switch},hub\nswitch,s{switch}\n"));
    let links: String = nodes.chain(switches).collect();
    graph(&format!("#undirected\nfrom,to\nswitch,hub\n{links}n0,n1\n"))
}

fn vertices(vertices: u64) -> Result<(), String> {
    star(2, vertices - 2)
}

/// This number of pairs, or those of one more switch.
fn pairs(pairs: u64) -> Result<(), String> {
    star(8192, pairs.div_ceil(8192) - 8192)
}

fn links(links: u64) -> Result<(), String> {
    graph(&format!("from,to,count\na,b,{}\nb,a,1\n", links - 1))
}

fn file_of_links(bytes: u64) -> Result<(), String> {
    let links = "from,to\na,b\nb,a\n#";
    graph(&format!("{links}{}", ".".repeat(bytes as usize - links.len())))
}

/// A table of no routes. At the limit the first route is missing.
fn table(nodes: u64) -> Result<(), String> {
    let machine = machine(&format!("fat-tree:{nodes},1")).unwrap();
    let Shape::Graph(graph) = machine.topology.shape() else { panic!("a graph") };
    let (_, said) = graph.with_route_table(&mut &b"source,destination,vertices\n"[..]).unwrap_err();
    if said == "no route from 0 to 1" { Ok(()) } else { Err(said) }
}

fn faulty(nodes: u64) -> Result<(), String> {
    text(machine(&format!("torus:{nodes}/0")))?;
    let mesh = Grid::mesh(&[nodes as u32]).unwrap();
    text(Graph::of_grid(&mesh, &[]))
}

fn sides(sides: u64) -> Result<(), String> {
    text(machine(&format!("torus:{}", vec!["1"; sides as usize].join("x"))))
}

fn ports(ports: u64) -> Result<(), String> {
    let shipped = topocoll::shipped().next().unwrap().1;
    let lines = shipped.lines().map(|line| match line.starts_with("ports") {
        true => format!("ports = {{ value = {ports}, source = \"assumed\" }}\n"),
        false => format!("{line}\n"),
    });
    text(spec::parse_file("many", &lines.collect::<String>()))
}

/// A rule with these numbers of slots and steps that does nothing.
struct Idle {
    ranks: u32,
    slots: u64,
    steps: u32,
}

impl Rule for Idle {
    fn steps(&self) -> u32 {
        self.steps
    }
    fn step(&self, _: Rank, _: u32, out: &mut Step) {
        out.clear();
    }
    fn slots(&self) -> u64 {
        self.slots
    }
    fn initial_block(&self, _: Rank, _: Slot) -> Option<Block> {
        None
    }
    fn final_block(&self, _: Rank, _: Slot) -> Option<Block> {
        None
    }
    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.ranks)
    }
}

fn idle(ranks: u32, slots: u64, steps: u32) -> Schedule {
    let problem = Problem::new(Collective::AllToAll, ranks, 1, 1).unwrap();
    let origin = Origin { algorithm: "none".to_owned(), parameters: Parameters::new() };
    Schedule::new(problem, origin, Idle { ranks, slots, steps })
}

fn replayed(ranks: u64) -> Result<(), String> {
    let machine = machine(&format!("full:{ranks}")).unwrap();
    text(verify(&idle(machine.ranks(), 1, 0), &machine, Some(Method::Replay), 1 << 30))
}

fn block(bytes: u64) -> Result<(), String> {
    text(Problem::new(Collective::AllToAll, 2, 1, bytes))
}

fn listed(bytes: u64) -> Result<(), String> {
    let problem = Problem::new(Collective::AllGather, 2, 1, 1).unwrap();
    text(Demand::read(&problem, format!("1\n{bytes}\n").as_bytes()))
}

fn machine_file(bytes: u64) -> Result<(), String> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let mut contents = topocoll::shipped().next().unwrap().1.to_owned();
    contents.push('#');
    contents.extend(std::iter::repeat_n('.', bytes as usize - contents.len()));
    std::fs::write(file.path(), contents).unwrap();
    text(load_file(file.path()))
}

fn other_file(bytes: u64) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut contents = "n1 slots=2\n#".to_owned();
    contents.extend(std::iter::repeat_n('.', bytes as usize - contents.len()));
    std::fs::write(file.path(), contents).unwrap();
    text(load_file(file.path()))
}

fn host(characters: u64) -> Result<(), String> {
    let name = "n".repeat(characters as usize);
    text(files::read("named", &format!("SwitchName=s Nodes={name}\n")))
}

fn rows_of_times(count: u64) -> Result<(), String> {
    let rows = "8  1.5\n".repeat(count as usize);
    let text = format!("# OSU MPI Allgather Latency Test v7\n# Size       Avg Latency(us)\n{rows}");
    Measured::read(&text, None, 4).map(drop).map_err(|error| error.to_string())
}

fn hosts(hosts: u64) -> Result<(), String> {
    let hosts: String = (0..hosts).map(|host| format!("n{host}\n")).collect();
    text(files::read("many", &hosts))
}

fn elements(depth: u64) -> Result<(), String> {
    let torus = "<platform><cluster topology=\"TORUS\" topo_parameters=\"2,2\" radical=\"0-3\" \
                 bw=\"1GBps\" lat=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>";
    let within = depth as usize - 1;
    let file = format!("{torus}{}{}</platform>", "<prop>".repeat(within), "</prop>".repeat(within));
    text(files::read("deep", &file))
}

/// Reads a schedule of some format.
fn read(format: &str, machine: &Machine, file: &mut dyn Read) -> Result<(), String> {
    let format = FORMATS.iter().find(|known| known.name == format).unwrap();
    let Reader::File(read) = format.reader else { panic!("a format of one file") };
    text(read(&mut std::io::BufReader::new(file), &Target::new(machine, 1 << 30)))
}

fn ranks_read(ranks: u64) -> Result<(), String> {
    let machine = machine(&format!("full:{ranks}")).unwrap();
    read("csv", &machine, &mut "step,from,to,bytes\n0,0,1,1\n".as_bytes())
}

fn message(bytes: u64) -> Result<(), String> {
    let file = format!("step,from,to,bytes\n0,0,1,{bytes}\n");
    read("csv", &machine("full:2").unwrap(), &mut file.as_bytes())
}

/// A line of comment in a program of no messages.
fn line(bytes: u64) -> Result<(), String> {
    let comment = std::io::repeat(b'.').take(bytes - 3);
    let begins = "num_ranks 1\n//".as_bytes();
    let mut file = begins.chain(comment).chain("\nrank 0 {\n}\n".as_bytes());
    read("goal", &machine("full:1").unwrap(), &mut file)
}

/// The most slots of a plan, or one more. A plan of the most slots does not fit in memory, so a refusal
/// for another reason is enough.
fn slots(both: u64) -> Result<(), String> {
    let refused = |slots| Plan::new(&idle(1, slots, 0), Rank(0)).unwrap_err().to_string();
    match both > 1 << 30 {
        true => Err(refused(both - 1)),
        false => {
            assert!(!refused(1).contains("together"));
            Ok(())
        }
    }
}

/// The same for steps.
fn steps(steps: u64) -> Result<(), String> {
    let refused = |steps| Plan::new(&idle(1, 1, steps), Rank(0)).unwrap_err().to_string();
    match steps > (1 << 31) - 3 {
        true => Err(refused(steps as u32)),
        false => {
            assert!(!refused(1).contains("numbers at most"));
            Ok(())
        }
    }
}

fn demand(ranks: u64) -> Result<(), String> {
    for (form, name) in [
        (format!("full:{ranks}"), "demand-matchings"),
        (format!("cluster:{},1", ranks - 1), "node-matchings"),
    ] {
        let machine = machine(&form).unwrap();
        let problem = Problem::new(Collective::AllToAll, machine.ranks(), 1, 1).unwrap();
        let refused = schedule_of(&machine, &problem, name, &Parameters::new()).unwrap_err();
        // Otherwise the demand matrix is missing.
        let refused = Some(refused.to_string()).filter(|refused| !refused.contains("(--demand)"));
        refused.map_or(Ok(()), Err)?;
    }
    Ok(())
}

fn routed_to(ranks: u64, tokens: u64) -> Result<(), String> {
    let words = format!("zipf:1,tokens={tokens},hidden=1,dtype=fp8,experts=1,top=1,seed=1");
    let problem = Problem::new(Collective::AllToAll, ranks as u32, 1, 1).unwrap();
    text(Demand::routed(&problem, &words.parse().unwrap()))
}

fn tokens_of_ranks(ranks: u64) -> Result<(), String> {
    routed_to(ranks, 1)
}

fn tokens(experts: u64) -> Result<(), String> {
    routed_to(experts.div_ceil(1 << 20), 1 << 20)
}

/// Whether an algorithm applies; if it is only too slow for rankings, it does.
fn applies(name: &str, machine: &Machine, ports: u32) -> Result<(), String> {
    let catalogue = Catalogue::standard();
    let algorithm = catalogue.find(name).unwrap();
    let problem = Problem::new(algorithm.info().operation, machine.ranks(), ports, 1).unwrap();
    let request = Request::new(&problem, &*machine.topology);
    match request.candidates(algorithm) {
        Err(NotApplicable::Unranked { .. }) => Ok(()),
        found => text(found),
    }
}

fn matchings(machine: &Machine) -> Result<(), String> {
    applies("link-matchings", machine, 1)
}

fn matched(ranks: u64) -> Result<(), String> {
    let text = if ranks == 4096 { "fat-tree:64,2".to_owned() } else { format!("torus:{ranks}") };
    matchings(&machine(&text).unwrap())
}

fn forwarded(ranks: u64) -> Result<(), String> {
    searched("store-and-forward", (format!("mesh:{ranks}"), 2), "link_blocks", "from 1 to")
}

fn forwarded_on_tori(ranks: u64) -> Result<(), String> {
    searched("store-and-forward", (format!("torus:{ranks}"), 2), "link_blocks", "from 1 to")
}

fn gossiped(ranks: u64) -> Result<(), String> {
    searched("gossip", (format!("torus:{ranks}"), 2), "target", "not a whole number from")
}

fn gossiped_by_few_ports(ranks: u64) -> Result<(), String> {
    searched("gossip", (format!("torus:{ranks}"), 1), "target", "not a whole number from")
}

fn repaired(ranks: u64) -> Result<(), String> {
    searched("repair", (format!("torus:{}/0", ranks + 1), 1), "steps", "from 1 to 4096")
}

/// Whether an algorithm takes a machine with these ports. A setting of 0 is refused with these words before the work,
/// but after the ranks.
fn searched(
    algorithm: &str,
    (text_of, ports): (String, u32),
    setting: &str,
    words: &str,
) -> Result<(), String> {
    let (machine, catalogue) = (machine(&text_of).unwrap(), Catalogue::standard());
    let algorithm = catalogue.find(algorithm).unwrap();
    let problem = Problem::new(algorithm.info().operation, machine.ranks(), ports, 1).unwrap();
    let request = Request::new(&problem, &*machine.topology);
    let setting = Parameters::from([(setting.to_owned(), Setting::Integer(0))]);
    let said = text(request.solve(algorithm, &setting)).unwrap_err();
    if said.contains(words) { Ok(()) } else { Err(said) }
}

/// Two switches of 256 nodes each, and more switches between them: as many as the links on routes
/// allow, or one more.
fn routed(hops: u64) -> Result<(), String> {
    let (each, near) = (256, 2 * 2 * 256 * 255);
    let across = (hops - near).div_ceil(2 * each * each) - 2 - u64::from(hops <= 1 << 26);
    let nodes = |switch| (0..each).map(move |node| format!("n{switch}-{node},s{switch}\n"));
    let chain = (0..across).map(|i| format!("switch,s{i}\ns{i},s{}\n", i + 1));
    let links: String = nodes(0).chain(nodes(across)).chain(chain).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    let links = format!("#undirected\nfrom,to\nswitch,s{across}\n{links}");
    std::fs::write(file.path(), links).unwrap();
    matchings(&machine(&format!("graph:{}", file.path().display())).unwrap())
}

fn ranked(ranks: u64) -> Result<(), String> {
    text(check_demand_work(&Problem::new(Collective::AllToAll, ranks as u32, 1, 1).unwrap()))
}

fn channels(vcs: u64) -> Result<(), String> {
    let given = Parameters::from([("vcs".to_owned(), Setting::Integer(vcs))]);
    text(Settings::from_parameters(&given))
}

/// A switch with a link of one channel from each node.
fn router(nodes: u64) -> Result<(), String> {
    let tree = machine(&format!("fat-tree:{nodes},1")).unwrap();
    let script = Script::posted(&tree, vec![(0, 1, 10)]);
    let settings = common::settings(1, 8, 16, None);
    text(simulate(&common::request(&script, &tree, "flit", settings, Sync::Free)))
}

/// The refusal of a certificate of one rank with another line; none if another fault comes first.
fn certified(from: &str, to: &str, limit: &str) -> Result<(), String> {
    let body = "topocoll certificate 1\nmachine complete 1\noperation alltoall\nports 1\nblock 1\n\
                algorithm none\nranks 1 by 1\nslots 1\npieces 1\ncounts steps=0 messages=0 bytes=0 \
                link_bytes=0 hops=0 link_conflicts=0 max_link_sharing=0 contended_steps=0 \
                contention_free_steps=0 port_violations=0 inter_node_steps=0\nbounds steps=0 \
                link_bytes=0\nclass 0\nstart 0,0\nfinish 0,0\nstep 0\n";
    let body = body.replacen(from, to, 1);
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let found = text(check(format!("{body}sha256 {digest}\n").as_bytes()));
    found.or_else(|said| if said.contains(limit) { Err(said) } else { Ok(()) })
}

fn certified_slots(slots: u64) -> Result<(), String> {
    // Pieces that do not add up to the block, refused before memory is taken.
    let pieces = if slots > 1 << 27 { "pieces 1" } else { "pieces 2" };
    certified("slots 1\npieces 1", &format!("slots {slots}\n{pieces}"), "checked")
}

fn certified_sides(sides: u64) -> Result<(), String> {
    let ones = vec!["1"; sides as usize].join("x");
    certified("ranks 1 by 1", &format!("ranks {ones} by {ones}"), "checked")
}

fn certified_graph(ranks: u64) -> Result<(), String> {
    certified("complete 1", &format!("graph {ranks}+0"), "checked")
}

fn certified_vertices(vertices: u64) -> Result<(), String> {
    certified("complete 1", &format!("graph 1+{}", vertices - 1), "checked")
}

fn certified_steps(steps: u64) -> Result<(), String> {
    certified("step 0", &format!("step {}", steps - 1), "numbered")
}
