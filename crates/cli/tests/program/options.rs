//! Options that a request uses, others, and those of printed commands.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

fn topocoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_topocoll")).args(arguments).output().unwrap()
}

#[test]
fn the_printed_proof_is_of_the_same_exchange() {
    for (line, ranks) in [
        ("select fat-tree:16,2,2*32 --ranks 0-1023 --bandwidth 24GB/s", 1024),
        ("select fat-tree:16,2*64 --ranks 0-1023,4096-5119 --injection 1GB/s,40GB/s", 2048),
        ("select torus:64x64 --ranks 0-2047 --ports 2 --op allgather --startup 2us", 2048),
        ("select full:2048 --block 9", 2048),
    ] {
        let said = topocoll(&line.split(' ').chain(["--why"]).collect::<Vec<_>>());
        let text = String::from_utf8(said.stdout).unwrap();
        let printed = text.lines().find_map(|line| line.strip_prefix("Proof: topocoll "));
        let printed = printed.unwrap_or_else(|| panic!("{line}: {text}"));
        let arguments: Vec<_> = printed.split(' ').chain(["--json"]).collect();
        let proof = topocoll(&arguments);
        let error = String::from_utf8_lossy(&proof.stderr);
        assert_eq!(proof.status.code(), Some(0), "{printed}: {error}");
        let proof: serde_json::Value = serde_json::from_slice(&proof.stdout).unwrap();
        assert_eq!((&proof["delivered"], &proof["ranks"]), (&true.into(), &ranks.into()));
        let bound = proof["bounds"]["steps"].to_string();
        assert!(text.contains(&format!(" {bound} steps, volume ")), "{printed}: {text}");
    }
}

/// Two values of an option are those of a machine file with the same list.
#[test]
fn values_intra_and_inter_node_are_those_of_a_machine_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.toml");
    let mut random = fastrand::Rng::with_seed(56);
    for _ in 0..12 {
        let (nodes, size) = (random.u32(2..6), random.u32(2..5));
        let shapes = [
            format!("cluster:{nodes}*{size}"),
            format!("torus:{nodes}x2*{size}"),
            format!("fat-tree:{nodes},2*{size}"),
        ];
        let shape = &shapes[random.usize(0..3)];
        let [startup, per_byte] =
            [["us", "\u{b5}s", "\u{3bc}s"], ["GB/s", "Gb/s", "GiB/s"]].map(|units| {
                [0; 2].map(|_| format!("{}{}", random.u32(1..500), random.choice(units).unwrap()))
            });
        let entry =
            |name: &str, value: &str| format!("{name} = {{ value = {value}, source = \"x\" }}\n");
        let list = |name: &str, values: &[String; 2]| entry(name, &format!("{values:?}"));
        let text = [
            "title = \"x\"\n".to_owned(),
            entry("shape", &format!("{shape:?}")),
            entry("ports", "1"),
            "[timing]\n".to_owned(),
            list("startup", &startup),
            list("per_byte", &per_byte),
            entry("per_hop", "\"50ns\""),
            entry("rearrangement", "\"0\""),
            entry("barrier", "\"0\""),
        ];
        std::fs::write(&file, text.concat()).unwrap();
        let times = |arguments: &[&str]| {
            let simulate = ["simulate", "--algorithm", "node-aware", "--json"];
            let output = topocoll(&[&simulate[..], arguments].concat());
            let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
                panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr))
            });
            ["time_seconds", "startup_seconds", "transmission_seconds"]
                .map(|name| said[name].clone())
        };
        let (startup, per_byte) = (startup.join(","), per_byte.join(","));
        let given = times(&[shape, "--startup", &startup, "--bandwidth", &per_byte]);
        assert_eq!(given, times(&[file.to_str().unwrap()]), "{shape} {startup} {per_byte}");
    }
}

/// The arguments of a choice for a torus or mesh without some of its nodes and links.
fn on_broken(random: &mut fastrand::Rng) -> Vec<String> {
    let sides: Vec<u32> = (0..random.usize(1..=3)).map(|_| random.u32(2..=5)).collect();
    let joined = |numbers: &[u32], separator: &str| {
        numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
    };
    let form = ["torus", "mesh"][random.usize(0..2)];
    let mut machine = format!("{form}:{}", joined(&sides, "x"));
    for _ in 0..random.u32(1..=3) {
        let node: Vec<u32> = sides.iter().map(|&side| random.u32(0..side)).collect();
        machine += &format!("/{}", joined(&node, ","));
        if random.u32(0..3) > 0 {
            machine += &format!("+{}", random.usize(0..sides.len()));
        }
    }
    let (ports, block) = (random.u32(1..=4), 1u64 << random.u32(6..=20));
    let operation = if random.u32(0..4) == 0 { "allgather" } else { "alltoall" };
    let line = format!("select {machine} --ports {ports} --block {block} --op {operation} --json");
    line.split(' ').map(str::to_owned).collect()
}

/// A machine is no faster with failures than without. Drawn machines that fall apart are not counted.
fn check_failures(seed: u64, machines: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut checked = 0;
    while checked < machines {
        let arguments = on_broken(&mut random);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = topocoll(&words);
        if output.status.code() == Some(2) {
            continue;
        }
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        if let Some(ratio) = said["whole"]["best"]["time_ratio"].as_f64() {
            assert!(ratio >= 1.0, "{}: {ratio}", words.join(" "));
            checked += 1;
        }
    }
}

#[test]
fn failures_make_no_exchange_faster() {
    check_failures(53, 12);
}

#[test]
#[ignore = "a minute"]
fn failures_make_no_exchange_of_many_machines_faster() {
    check_failures(54, 176);
}

/// Values of options that change a result; those of one option, separated by `|`, are tried one by one.
const VALUES: [&str; 30] = [
    "--op allgather",
    "--block 200",
    "--ports 2|--ports 1",
    "--timing sp1-64",
    "--startup 3us",
    "--bandwidth 3GB/s",
    "--injection 0.5GB/s",
    "--per-hop 300ns",
    "--rearrangement 1GB/s",
    "--barrier 5us|--barrier 5us --sync barrier",
    "--set vcs=6|--set vcs=4",
    "--set buffer_flits=2",
    "--set flit_bytes=4|--set flit_bytes=4 --set hop_cycles=3",
    "--set hop_cycles=9",
    "--set dateline=crossing|--set dateline=crossing --set vcs=4",
    "--set window=1|--set window=2",
    "--set packet_bytes=64|--set packet_bytes=64 --set packet_overhead=90ns",
    "--set packet_overhead=100ns",
    "--set message_overhead=1us",
    "--set order=farthest-first|--set order=random:3 --set window=1",
    "--set interleave=off|--set interleave=off --set window=4",
    "--routing adaptive|--routing adaptive --set vcs=6",
    "--ties balanced",
    "--sync barrier",
    "--conflicts 1",
    "--cycles 77",
    "--demand uniform:3",
    "--ranks 0-5",
    "--budget 0.000001",
    "--published",
];

/// Requests that use the same options, together.
fn requests() -> Vec<Vec<String>> {
    let sent: [&[&str]; 5] = [
        &[
            "--algorithm bruck --set radix=2",
            "--algorithm suh-shin",
            "--algorithm direct",
            "--algorithm direct --ports 3",
            "--algorithm direct --ports 3 --set packet_bytes=64",
            "",
        ],
        &["--traffic alltoall"],
        &["--traffic tornado", "--traffic transpose --block 300"],
        &["--traffic uniform:0.4 --cycles 300"],
        &[
            "--algorithm bruck --demand uniform:1",
            "--algorithm direct --ports 3 --demand uniform:1",
            "--algorithm direct --ports 3 --set packet_bytes=64 --demand uniform:1",
        ],
    ];
    let mut lines: Vec<Vec<String>> = Vec::new();
    for model in ["steps", "wormhole", "flit", "fluid"] {
        for sent in sent {
            let line = |sent: &&str| format!("simulate M --model {model} {sent} ");
            lines.push(sent.iter().map(line).collect());
        }
        lines.push(vec![format!("select M --model {model} ")]);
        lines.push(vec![format!("sweep M --model {model} --blocks 64,4096 --algorithm bruck ")]);
    }
    for line in
        ["bounds M ", "algorithms M ", "algorithms ", "sweep M --front ", "tune M --for openmpi "]
    {
        lines.push(vec![line.to_owned()]);
    }
    let on = |line: String| {
        let machines = ["torus:4x4", "mesh:4x4*2", "torus:8x8"];
        // Worms that are longer than buffers stand in crowds.
        let machines = &machines[..if line.contains("tornado") { 3 } else { 2 }];
        let on = |machine: &&str| line.replace(" M ", &format!(" {machine} "));
        machines.iter().map(on).collect::<Vec<_>>()
    };
    lines.into_iter().map(|lines| lines.into_iter().flat_map(on).collect()).collect()
}

/// The numbers of a result, without the values that it repeats.
fn result(line: &str) -> Result<String, String> {
    fn numbers(value: Value) -> Value {
        let repeated =
            ["timing", "ports", "model_parameters", "endpoint", "routing", "sync", "demand"];
        match value {
            Value::Object(fields) => (fields.into_iter())
                .filter(|(name, _)| !repeated.contains(&&**name))
                .map(|(name, value)| (name, numbers(value)))
                .collect(),
            Value::Array(values) => values.into_iter().map(numbers).collect(),
            other => other,
        }
    }
    let said = topocoll(&line.split_whitespace().chain(["--json"]).collect::<Vec<_>>());
    match said.status.code() {
        Some(0 | 1) => {
            let value = serde_json::from_slice(&said.stdout).unwrap();
            Ok(numbers(value).to_string())
        }
        Some(2) => Err(String::from_utf8(said.stderr).unwrap()),
        other => panic!("{line}: {other:?}"),
    }
}

/// An option changes the result of some request of its kind, or is refused by name with the requests that it
/// is for.
#[test]
fn every_option_changes_a_result_or_is_refused_by_name() {
    let (work, refused) = (Mutex::new(requests()), Mutex::new(BTreeSet::new()));
    let unused_options = Mutex::new(Vec::new());
    let check = |lines: &[String]| {
        let mut before = vec![None; lines.len()];
        'options: for values in VALUES {
            let option = values.split(['|', '=']).next().unwrap();
            let name = option.split(' ').next().unwrap();
            // It is given already, or it is the default.
            let given = lines[0].contains(name) && name != "--set";
            if given || name == "--sync" && lines[0].contains("--model steps") {
                continue;
            }
            let mut accepted = false;
            for (line, before) in lines.iter().zip(&mut before) {
                // A request that is refused uses nothing.
                let Ok(before) = before.get_or_insert_with(|| result(line)) else { continue };
                for value in values.split('|') {
                    match result(&format!("{line} {value}")) {
                        Err(error)
                            if error.starts_with(&format!("error: {name} is only for "))
                                || error.starts_with(&format!("error: {option} is only for ")) =>
                        {
                            refused.lock().unwrap().insert(option);
                            continue 'options;
                        }
                        Err(_) => {}
                        Ok(found) if found == *before => accepted = true,
                        Ok(_) => continue 'options,
                    }
                }
            }
            if accepted {
                let unused = format!("{}: {option} is accepted and changes nothing", lines[0]);
                unused_options.lock().unwrap().push(unused);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(lines) = work.lock().unwrap().pop() else { break };
                    check(&lines);
                }
            });
        }
    });
    let unused = unused_options.into_inner().unwrap();
    assert!(unused.is_empty(), "{unused:#?}");
    let refused = refused.into_inner().unwrap();
    assert!(refused.len() > 20, "{refused:?}");
}

#[test]
fn the_order_of_a_machine_file_is_refused_where_messages_have_their_own() {
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/inputs/ordered.toml");
    let code = |line: &str| {
        let said = topocoll(&line.replace('M', machine).split(' ').collect::<Vec<_>>());
        let error = String::from_utf8(said.stderr).unwrap();
        let refused = error.contains("endpoint.order = \"rotation\"")
            && error.contains("is only for --traffic alltoall");
        (said.status.code().unwrap(), refused)
    };
    for model in ["wormhole", "flit", "fluid"] {
        for line in ["simulate M --algorithm direct", "simulate M --traffic tornado", "select M"] {
            assert_eq!(code(&format!("{line} --model {model}")), (2, true), "{line} {model}");
        }
        assert_eq!(code(&format!("simulate M --traffic alltoall --model {model}")), (0, false));
    }
    // The steps model has no endpoints.
    assert_eq!(code("simulate M --algorithm direct"), (0, false));
}

/// The JSON object that a command prints.
fn object(line: &str) -> Value {
    let said = topocoll(&line.split_whitespace().chain(["--json"]).collect::<Vec<_>>());
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{line}: {said:?}"))
}

/// `--ranks` and `--demand` are those of `select` in `bounds` and `simulate`.
#[test]
fn ranks_and_demand_mean_the_same_in_every_command() {
    let mut random = fastrand::Rng::with_seed(56);
    for machine in ["torus:4x4", "mesh:3x5", "fat-tree:4,2", "cluster:4,4,2", "full:9"] {
        let (first, last) = (random.u32(0..3), random.u32(4..9));
        let (ranks, seed) = (format!("--ranks {first}-{last}"), random.u32(..));
        let demand = format!("--demand sparse:{seed}");
        for given in [ranks.clone(), demand.clone(), format!("{ranks} {demand}")] {
            let of = |command: &str| object(&format!("{command} {machine} {given}"));
            let selected = of("select");
            let bounds = of("bounds");
            assert_eq!(bounds["best"]["time_seconds"], selected["bound"]["time_seconds"]);
            assert_eq!(bounds["ranks"], selected["ranks"], "{machine} {given}");
            let best = &selected["choices"][0];
            let mut simulate =
                format!("simulate --algorithm {}", best["algorithm"].as_str().unwrap());
            for (key, value) in best["parameters"].as_object().unwrap() {
                simulate += &format!(" --set {key}={}", value.to_string().trim_matches('"'));
            }
            let found = of(&simulate);
            assert_eq!(found["ranks"], selected["ranks"], "{machine} {given}");
            let [one, other] = [&found, best].map(|of| of["time_seconds"].as_f64().unwrap());
            assert!((one - other).abs() <= 1e-9 * other, "{machine} {given}: {one} {other}");
        }
    }
    // All ranks in order are no subset, under any model.
    for model in ["steps", "wormhole", "flit", "fluid"] {
        let line = format!("simulate torus:3x3 --algorithm direct --model {model}");
        let time = |more: &str| object(&format!("{line}{more}"))["time_seconds"].as_f64().unwrap();
        assert_eq!(time(" --ranks 0-8"), time(""), "{model}");
        assert!(time(" --ranks 0-3") < time(""), "{model}");
    }
}
