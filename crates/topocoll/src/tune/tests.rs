use super::*;
use crate::machine;

fn library(name: &str) -> &'static Library {
    LIBRARIES.iter().find(|library| library.name == name).unwrap()
}

fn tuning(name: &str, on: &str, asked: &[u32], operation: Collective) -> Tuning {
    let machine = machine(on).unwrap();
    let sizes = communicators(&machine, asked).unwrap();
    by_model(library(name), &machine, &sizes, &[operation]).unwrap().0
}

fn chosen(name: &str, on: &str, operation: Collective) -> Vec<(u64, &'static str)> {
    let tuning = tuning(name, on, &[], operation);
    tuning.rules[0].turns[0].1.iter().map(|turn| (turn.block_bytes, turn.own.name)).collect()
}

#[test]
fn blocks_are_combined_as_long_as_it_pays() {
    // 3 startups of 1 us and 12 blocks against 7 and 7, at 1 ns a byte: equal at 800 bytes.
    let found = chosen("openmpi", "full:8", Collective::AllToAll);
    assert_eq!(found, [(1, "bruck"), (800, "linear")]);
    assert_eq!(chosen("mpich", "full:8", Collective::AllToAll)[1], (800, "scattered"));
    assert_eq!(chosen("openmpi", "full:8", Collective::AllGather), [(1, "bruck")]);
    assert_eq!(communicators(&machine("full:1").unwrap(), &[]), Err(TuneError::Alone));
}

/// Each size of communicators has its own rules; communicators of other sizes use the
/// library's.
#[test]
fn communicators_of_several_sizes_have_their_own_rules() {
    let found = tuning("openmpi", "full:8", &[8, 4, 5, 4], Collective::AllToAll);
    let file = library("openmpi").write(&found, &Given::default()).unwrap();
    let numbers: Vec<_> = file.lines().filter_map(|line| line.split('#').next()).collect();
    let numbers: Vec<u32> =
        numbers.iter().flat_map(|line| line.split_whitespace()).flat_map(str::parse).collect();
    // 2 startups and 4 blocks against 3 and 3, 3 and 5 against 4 and 4, 3 and 12 against 7 and
    // 7: equal at 1000, 1000 and 800 bytes, but for the last bit of the first.
    #[rustfmt::skip]
    assert_eq!(numbers, [
        1, 3, 6,
        0, 1, 0, 0, 0, 0,
        4, 2, 0, 3, 0, 0, 4 * 1001, 1, 0, 0,
        5, 2, 0, 3, 0, 0, 5 * 1000, 1, 0, 0,
        6, 1, 0, 0, 0, 0,
        8, 2, 0, 3, 0, 0, 8 * 800, 1, 0, 0,
        9, 1, 0, 0, 0, 0,
    ]);
    let refused = |asked| communicators(&machine("full:8").unwrap(), &[4, asked]).unwrap_err();
    assert_eq!(refused(9), TuneError::Communicator { asked: 9, ranks: 8 });
    assert_eq!(refused(1), TuneError::Communicator { asked: 1, ranks: 8 });
}

/// Two nodes of four ranks with one port per node: in the middle step of a direct exchange, all
/// ranks of a node send to the other node, one rank fewer in the neighbouring steps, and so on.
#[test]
fn messages_of_a_node_take_turns_at_its_ports() {
    let seconds = |on: &str, ports: Ports| {
        let mut machine = machine(on).unwrap();
        machine.set_ports(ports);
        let ranks = machine.ranks();
        let problem = Problem::new(Collective::AllToAll, ranks, machine.ports, 1000).unwrap();
        unaware(&Exchange::new(&machine, &problem).unwrap(), "direct").unwrap().price.time.total()
    };
    let one = 1e-6 + 1e-6;
    for (ports, turns) in [
        (Ports::from(1), 1 + 2 + 3 + 4 + 3 + 2 + 1),
        (Ports { rank: 1, node: 2 }, 1 + 1 + 2 + 2 + 2 + 1 + 1),
        (Ports { rank: 1, node: 4 }, 7),
        (Ports::from(2), 2 + 4 + 3 + 1),
        (Ports::ALL, 1),
    ] {
        let found = seconds("cluster:4,4", ports);
        assert!((found / (f64::from(turns) * one) - 1.0).abs() < 1e-9, "{ports}: {found}");
    }
    assert!((seconds("full:8", Ports::from(7)) / one - 1.0).abs() < 1e-9);
    // The link of a node, or its injection, is charged for the messages of all turns together.
    let transmission = |on: &str, injection: f64| {
        let mut machine = machine(on).unwrap();
        machine.timing.injection.node = injection;
        let problem = Problem::new(Collective::AllToAll, 12, machine.ports, 1000).unwrap();
        let exchange = Exchange::new(&machine, &problem).unwrap();
        ["direct", "bruck"].map(|name| unaware(&exchange, name).unwrap().price.time.transmission)
    };
    let queued = transmission("cluster:4*3", 0.0);
    for found in [transmission("fat-tree:4,1*3", 0.0), transmission("cluster:4*3", 1e-9)] {
        let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-9;
        assert!(found.iter().zip(&queued).all(near), "{found:?} {queued:?}");
    }
}

#[test]
fn the_quickest_measured_is_used() {
    let library = library("openmpi");
    let own: Vec<_> = library.serving(Collective::AllToAll, 6).collect();
    let times = |seconds: [f64; 3]| Times {
        ranks: 6,
        started: 6,
        seconds: [16, 64, 256].into_iter().zip(seconds).collect(),
    };
    let measured = [(own[1], times([3.0, 2.0, 1.0])), (own[3], times([2.0, 1.0, 2.0]))];
    let turns = by_times(&measured).unwrap();
    let turns: Vec<_> = turns.iter().map(|turn| (turn.block_bytes, turn.own.name)).collect();
    assert_eq!(turns, [(1, "bruck"), (256, "linear")]);
    assert!(by_times(&[]).is_err());
    let forced = library.force(own[3], 0);
    assert_eq!(forced[1], ("OMPI_MCA_coll_tuned_alltoall_algorithm".into(), "3".into()));
    // Recursive doubling requires powers of two.
    let gathers = |ranks| library.serving(Collective::AllGather, ranks).count();
    assert_eq!((gathers(6), gathers(8)), (3, 4));
}

/// A rank with several ports, fewer than messages, has as many requests under way. With one port, or enough,
/// limiting them gains nothing.
#[test]
fn requests_are_limited_where_ports_are() {
    let turns = |ports: u32| {
        let mut machine = machine("full:16").unwrap();
        machine.set_ports(Ports::from(ports));
        let operations = [Collective::AllToAll];
        let found = by_model(library("openmpi"), &machine, &[16], &operations).unwrap().0;
        let file = library("openmpi").write(&found, &Given::default()).unwrap();
        let turns = found.rules[0].turns[0].1.iter().map(|turn| (turn.own.name, turn.requests));
        (turns.collect::<Vec<_>>(), file)
    };
    let (four, file) = turns(4);
    assert_eq!(four, [("linear_sync", 4)]);
    assert!(file.contains("4 requests (coll_tuned_alltoall_algorithm_max_requests 4)"), "{file}");
    assert_eq!(turns(1).0, [("bruck", 0), ("linear", 0)]);
    assert_eq!(turns(15).0, [("linear", 0)]);
    let own = library("openmpi").serving(Collective::AllToAll, 16).next().unwrap();
    let turn = |own, requests| Turn { block_bytes: 1, own, requests, seconds: 1.0 };
    let timed = turn(own, 4);
    let [older, newer] = [None, Some("5.0")].map(|name| library("openmpi").release(name).unwrap());
    let forcing = library("openmpi").forcing(older, &timed);
    let options = "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_alltoall_algorithm 4 \
                   --mca coll_tuned_alltoall_algorithm_max_requests 4";
    assert_eq!(forcing, options);
    // Of all-gathers only, another component comes first.
    assert_eq!(library("openmpi").forcing(newer, &timed), options);
    let ring = library("openmpi").serving(Collective::AllGather, 16).nth(2).unwrap();
    let timed = turn(ring, 0);
    let forcing = library("openmpi").forcing(newer, &timed);
    assert!(
        forcing.starts_with("--mca coll ^han ") && forcing.ends_with("_algorithm 4"),
        "{forcing}"
    );
    let own = library("mpich").serving(Collective::AllToAll, 16).nth(2).unwrap();
    let forcing = library("mpich").forcing(older, &turn(own, 0));
    assert_eq!(forcing, "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM=brucks");
}

/// Some defaults, as the sources have them: `coll_tuned_decision_fixed.c` of Open MPI v4.1.8 and v5.0.10,
/// `generic.json` of MPICH v4.0.3 and v5.0.1.
#[test]
fn defaults_are_those_of_the_sources() {
    use Collective::{AllGather, AllToAll};
    #[rustfmt::skip]
    let open_mpi = [
        (AllToAll, 2, 1, "pairwise"), (AllToAll, 2, 2, "two_proc"), (AllToAll, 2, 262_143, "linear_sync"),
        (AllToAll, 7, 8191, "linear_sync"), (AllToAll, 7, 524_288, "pairwise"), (AllToAll, 15, 262_144, "linear"),
        (AllToAll, 24, 511, "bruck"), (AllToAll, 24, 512, "linear_sync"), (AllToAll, 32, 512, "linear"),
        (AllToAll, 64, 1 << 20, "pairwise"), (AllToAll, 512, 1024, "linear_sync"), (AllToAll, 576, 512, "linear_sync"),
        (AllToAll, 2048, 1023, "bruck"), (AllToAll, 1 << 20, 1 << 30, "linear_sync"),
        (AllGather, 2, 1, "two_proc"), (AllGather, 16, 1 << 20, "recursive doubling"),
        (AllGather, 24, 8, "bruck"), (AllGather, 64, 512, "neighbor"), (AllGather, 65, 512, "ring"),
        (AllGather, 256, 32, "bruck"), (AllGather, 512, 2048, "neighbor"), (AllGather, 100, 65_535, "neighbor"),
        (AllGather, 128, 524_287, "ring"), (AllGather, 4096, 1, "recursive doubling"),
    ];
    #[rustfmt::skip]
    let mpich = [
        (AllToAll, 8, 256, "scattered"), (AllToAll, 9, 256, "brucks"), (AllToAll, 9, 257, "scattered"),
        (AllToAll, 4096, 32_768, "scattered"), (AllToAll, 4, 32_769, "pairwise"),
        (AllGather, 16, 32_767, "recursive doubling"), (AllGather, 16, 32_768, "ring"),
        (AllGather, 10, 8191, "brucks"), (AllGather, 10, 8192, "ring"),
    ];
    for (name, defaults) in [("openmpi", &open_mpi[..]), ("mpich", &mpich)] {
        for &(operation, ranks, block_bytes, expected) in defaults {
            let found = library(name).default(operation, ranks, block_bytes).name;
            assert_eq!(found, expected, "{name}: {operation} of {block_bytes} B, {ranks} ranks");
        }
    }
    // The same number comes from the functions of Open MPI's file, compiled for v4.1.8 and for v5.0.10.
    let (mut digest, powers) = (0u64, (0..=21).map(|power| 1u64 << power));
    let sizes: Vec<u64> = powers.flat_map(|size| [size - 1, size, size + 1]).collect();
    for ranks in 2..=5000 {
        for &block_bytes in sizes.iter().filter(|&&size| size > 0) {
            let key = |operation| library("openmpi").default(operation, ranks, block_bytes).key;
            let [all_to_all, gather]: [u64; 2] =
                [AllToAll, AllGather].map(|operation| key(operation).parse().unwrap());
            digest = digest.wrapping_mul(31).wrapping_add(all_to_all * 8 + gather);
        }
    }
    assert_eq!(digest, 2_142_203_708_503_504_047);
    let unknown = library("openmpi").release(Some("6.0"));
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "release `6.0` of openmpi is not supported; supported: 4.1, 5.0"
    );
}

/// On drawn machines every default applies, the best is no slower, no time beats the lower bound of the
/// machine's ports, and all times are those of schedules at that block size.
#[test]
fn gains_compare_three_times() {
    let mut seed = 1u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..if std::env::var_os("TOPOCOLL_SWEEP").is_some() { 2000 } else { 60 } {
        let (nodes, ranks) = (2 + draw(6), 1 + draw(4));
        let text = match draw(5) {
            0 => format!("full:{}", nodes * ranks),
            1 => format!("cluster:{nodes}*{ranks}"),
            2 => format!("cluster:{nodes},{ranks},1"),
            3 => format!("torus:{nodes}x2*{ranks}"),
            _ => format!("fat-tree:{nodes},1*{ranks}"),
        };
        let mut machine = machine(&text).unwrap();
        let [rank, node] =
            [draw(4), draw(4)].map(|ports| if ports == 0 { u32::MAX } else { ports as u32 });
        machine.set_ports(Ports { rank, node });
        if draw(2) == 0 {
            machine.timing.injection.node = 2e-9;
        }
        let operation = [Collective::AllToAll, Collective::AllGather][draw(2) as usize];
        let problem = Problem::new(operation, machine.ranks(), machine.ports, 1024).unwrap();
        let exchange = Exchange::new(&machine, &problem).unwrap();
        let selection = exchange.clone().sync(crate::Sync::Barrier).select().unwrap();
        let library = &LIBRARIES[draw(2) as usize];
        let modelled = Modelled::new(library, &machine, operation).unwrap();
        for block_bytes in [1, 1024, 1 << draw(20)] {
            let release = &library.releases[0];
            let gain = modelled.gain(release, block_bytes, (&selection, 1024));
            let own = library.default(operation, problem.ranks, block_bytes);
            assert_eq!(gain.algorithm, own.name, "{text}");
            assert!(gain.best_seconds <= gain.time_seconds, "{text}");
            assert_eq!(gain.force.is_empty(), gain.best_seconds == gain.time_seconds, "{text}");
            let exchange = exchange.clone().block_bytes(block_bytes).unwrap();
            let least = exchange.bounds().seconds * (1.0 - 1e-9);
            assert!(gain.best_seconds >= least, "{text} {}: {gain:?} {least}", machine.ports);
            let name = (own.schedule)(problem.ranks).unwrap();
            let choice = price_of(&exchange, name, own.under_way).unwrap();
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{text}: {a} {b}");
            near(choice.price.time.total(), gain.time_seconds);
            let best = gain.schedule.filter(|best| !selection.split.contains(&best.algorithm));
            if let Some(best) = best {
                let schedule = exchange.schedule(&best.algorithm, &best.parameters).unwrap();
                near(exchange.count(&schedule).unwrap().time.total(), best.time_seconds);
            }
        }
    }
    // Every rule has a time.
    let large = machine("cluster:32*128").unwrap();
    let turns = Modelled::new(library("openmpi"), &large, Collective::AllToAll).unwrap().turns();
    let times: Vec<_> = turns.iter().map(|turn| turn.seconds).collect();
    assert!(times.len() == 2 && times[0] > 0.0 && times.is_sorted(), "{times:?}");
    let alone = Modelled::new(library("mpich"), &machine("full:1").unwrap(), Collective::AllGather);
    assert_eq!(alone.unwrap_err(), TuneError::Alone.into());
}

#[test]
fn only_whole_trees_are_changed() {
    let write = |asked: &[u32], base: Option<&str>| {
        let given = Given { release: None, base: base.map(str::as_bytes) };
        library("mpich").write(&tuning("mpich", "full:8", asked, Collective::AllToAll), &given)
    };
    let written = |base: Option<&str>| write(&[], base);
    assert_eq!(written(None), Err(TuneError::NoBase));
    let base = |text| match written(Some(text)) {
        Err(TuneError::Base { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(base("{}"), "it is not complete: no `collective=allgather`");
    assert_eq!(base("nothing"), "neither a selection tree nor a library with one");
    let mut whole = String::from("{");
    for name in mpich::COLLECTIVES.iter().filter(|name| **name != "alltoall") {
        whole += &format!("\"collective={name}\":{{}},");
    }
    let tree = |algorithms: &str| {
        format!(
            "{whole}\"collective=alltoall\":{{\"comm_type=intra\":{{\"comm_size=any\":{{{algorithms}}}}}}}}}"
        )
    };
    assert_eq!(base(&tree("")), "it has no `algorithm=MPIR_Alltoall_intra_brucks`");
    let both = "\"algorithm=MPIR_Alltoall_intra_brucks\":{},\"algorithm=MPIR_Alltoall_intra_scattered\":{\"batch=3\":{}}";
    let out: String = written(Some(&tree(both))).unwrap().split_whitespace().collect();
    let ours = "\"comm_size<=8\":{\"avg_msg_size<800\":{\"algorithm=MPIR_Alltoall_intra_brucks\":{}},\
                \"avg_msg_size=any\":{\"algorithm=MPIR_Alltoall_intra_scattered\":{\"batch=3\":{}}}}";
    assert!(out.contains(ours), "{out}");
    assert!(out.contains("\"comm_size<=7\":{\"comm_size=any\":"), "{out}");
    let out = write(&[8, 3, 4, 8], Some(&tree(both))).unwrap();
    let sizes: Vec<_> = out.matches("comm_size<=").collect();
    assert_eq!(sizes.len(), 5, "{out}");
    let at = |ranks| out.find(&format!("comm_size<={ranks}\"")).unwrap();
    assert!([2, 3, 4, 7, 8].map(at).is_sorted(), "{out}");
}
