//! `detect` with programs that stand in for those of a cluster: recorded outputs, and programs that are missing,
//! fail, never end or print what no one expects.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use topocoll::{Machine, Rank, spec};

const INPUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/inputs");

/// A folder in which these programs run these lines of shell; it is the whole path.
fn with(programs: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, lines) in programs {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn recorded(input: &str) -> String {
    format!("exec /bin/cat {INPUTS}/{input}")
}

fn detect(path: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_topocoll"));
    command.arg("detect").env_clear().env("PATH", path).envs(variables.iter().copied());
    command.output().unwrap()
}

/// The machine of the file that `detect` writes, and the notes.
fn detected(programs: &[(&str, &str)], variables: &[(&str, &str)]) -> (Machine, String, String) {
    let folder = with(programs);
    let output = detect(folder.path(), variables);
    let [text, notes] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{notes}");
    let machine = spec::parse_file("detected", &text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (machine, text, notes)
}

#[test]
fn gpus_come_before_cores_and_each_value_has_a_source() {
    let gpus = recorded("h100-topo.txt");
    let cores = recorded("lstopo-disallowed.xml");
    let (machine, text, notes) = detected(&[("nvidia-smi", &gpus), ("lstopo", &cores)], &[]);
    assert_eq!((machine.ranks(), machine.timing.injection.rank), (8, 1.0 / 450e9));
    assert!(machine.source("per_byte").unwrap().contains("NVLink"), "{text}");
    assert!(machine.source("shape").unwrap().starts_with("nvidia-smi topo -m line"), "{text}");
    let startup = machine.source("startup").unwrap();
    assert!(startup.starts_with("assumed; measure it: topocoll compare"), "{startup}");
    assert_eq!(notes, "");
    // Direct links are listed.
    let (machine, text, _) = detected(&[("nvidia-smi", &recorded("nvidia-smi-topo.txt"))], &[]);
    assert_eq!((machine.ranks(), machine.topology.links()), (4, 12), "{text}");
    let (machine, text, _) = detected(&[("lstopo", &cores)], &[]);
    assert_eq!(machine.ranks(), 2);
    assert!(text.contains("measure it: topocoll calibrate --ranks 2"), "{text}");
    let (machine, text, _) = detected(&[], &[]);
    assert!(machine.source("shape").unwrap().contains("threads run at once"), "{text}");
}

#[test]
fn a_slurm_job_has_the_nodes_of_its_variables() {
    let job = [
        ("SLURM_JOB_ID", "77"),
        ("SLURM_JOB_NODELIST", "n[1-3]"),
        ("SLURM_TASKS_PER_NODE", "8(x2),4"),
    ];
    let gpus = recorded("h100-topo.txt");
    let tree = recorded("scontrol-show-topology.txt");
    let (machine, text, notes) = detected(&[("nvidia-smi", &gpus), ("scontrol", &tree)], &job);
    assert_eq!(machine.topology.short_form(), "network*8,8,4", "{text}");
    assert_eq!((machine.topology.links(), notes.as_str()), (6, ""), "{text}");
    assert!(text.contains("nodes = [\"n1\", \"n2\", \"n3\"]\nswitches = [\"s0\"]"), "{text}");
    assert!(machine.source("shape").unwrap().contains("SLURM_TASKS_PER_NODE=8(x2),4"), "{text}");
    let per_byte = machine.timing.per_byte.values();
    assert_eq!((per_byte[0], per_byte[1]), (1.0 / 450e9, 1e-9), "{text}");
    assert!(machine.source("per_byte").unwrap().ends_with("inter-node: assumed"), "{text}");
    assert!(text.contains("calibrate --mpi --launch 'mpirun -np 20'"), "{text}");
    let in_turn = [&job[..], &[("SLURM_DISTRIBUTION", "cyclic:block")]].concat();
    for (programs, shape) in
        [(&[][..], "cluster:2*8,4 placed"), (&[("scontrol", &*tree)], "network*8,8,4 placed")]
    {
        let (machine, text, _) = detected(programs, &in_turn);
        assert_eq!(machine.topology.short_form(), shape, "{text}");
        let nodes = [0, 1, 2, 11, 12, 13, 19].map(|rank| machine.topology.node_of(Rank(rank)));
        assert_eq!(nodes, [0, 1, 2, 2, 0, 1, 1], "{text}");
        assert!(machine.source("placement").unwrap().ends_with("=cyclic:block"), "{text}");
    }
    // The tree has no such hosts.
    let others = [job[0], ("SLURM_JOB_NODELIST", "m[1-3]"), job[2]];
    let (machine, text, notes) = detected(&[("nvidia-smi", &gpus), ("scontrol", &tree)], &others);
    assert_eq!(machine.topology.short_form(), "cluster:2*8,4", "{text}");
    assert!(notes.contains("m1 is not a node of"), "{notes}");
    // A node alone is what its programs list.
    let alone = [("SLURM_TASKS_PER_NODE", "8")];
    assert_eq!(detected(&[("nvidia-smi", &gpus)], &alone).0.topology.nodes(), 1);
    for tasks in ["8(x2", "0", "8(x99999999999)", "\u{1b}[2J", "4294967295,4294967295"] {
        let folder = with(&[]);
        let output = detect(folder.path(), &[("SLURM_TASKS_PER_NODE", tasks)]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{tasks}");
        assert!(
            error.contains("SLURM_TASKS_PER_NODE is `") && !error.contains('\u{1b}'),
            "{error}"
        );
    }
}

#[test]
fn a_slice_of_a_tpu_has_the_shape_of_its_variables() {
    for (sides, wrap, alt, kind, form) in [
        ("4x4x8", "true,true,true", "false", "v4-256", "torus:4x4x8"),
        ("4x4x8", "true,true,true", "true", "v4-256", "twisted-torus:4x4x8"),
        ("2x2x4", "false,false,true", "", "v5p-32", "grid:2x2x4~"),
        ("4x4", "false,false,false", "", "v5litepod-16", "mesh:4x4"),
        ("2x2x1", "", "", "tpu7x-8", "mesh:2x2x1*2"),
        ("4x4", "", "", "v9-16", "mesh:4x4"),
    ] {
        let variables = [
            ("TPU_TOPOLOGY", sides),
            ("TPU_TOPOLOGY_WRAP", wrap),
            ("TPU_TOPOLOGY_ALT", alt),
            ("TPU_ACCELERATOR_TYPE", kind),
        ];
        let (machine, text, _) = detected(&[], &variables);
        assert_eq!(machine.topology.short_form(), form, "{text}");
        assert!(machine.source("shape").unwrap().contains(kind), "{text}");
        let known = machine.source("per_byte").unwrap().starts_with("as tpu");
        assert_eq!(known, kind != "v9-16", "{text}");
    }
    for sides in ["0x4", "4,4", "4x4x", "\u{1b}"] {
        let output = detect(with(&[]).path(), &[("TPU_TOPOLOGY", sides)]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{sides}: {error}");
        assert!(error.contains("TPU_TOPOLOGY=") && !error.contains('\u{1b}'), "{error}");
    }
}

/// Every pair of what two programs do; the next one is asked, and a note says why.
#[test]
fn programs_that_fail_are_noted_and_the_next_one_is_asked() {
    let [gpus, cores] = ["h100-topo.txt", "lstopo-disallowed.xml"].map(recorded);
    let wrong: [(&str, &str); 8] = [
        ("exit 9", "ended with exit status: 9"),
        ("exec /bin/cat /dev/zero", "more than 16777216 bytes"),
        ("printf '\\377\\376'", "its output is not text"),
        ("echo No devices were found", "not a known kind of machine file"),
        ("exit 0", "the file is empty"),
        ("echo 'GPU0 GPU1'; echo 'GPU0 X NV99'", "`NV99`"),
        ("kill -SEGV $$", "ended with signal: 11"),
        ("printf '\\033[2Jx\\n'", "not a known kind of machine file"),
    ];
    for (first, why) in wrong {
        let (machine, _, notes) = detected(&[("nvidia-smi", first), ("lstopo", &cores)], &[]);
        assert_eq!(machine.ranks(), 2, "{first}");
        assert!(
            notes.contains("note: nvidia-smi topo -m: ") && notes.contains(why),
            "{first}: {notes}"
        );
        assert!(!notes.contains('\u{1b}'), "{first}: {notes}");
        let (machine, _, notes) = detected(&[("nvidia-smi", &gpus), ("lstopo", first)], &[]);
        assert_eq!((machine.ranks(), notes.as_str()), (8, ""), "{first}");
        let (machine, _, notes) = detected(&[("rocm-smi", first), ("lstopo", first)], &[]);
        assert!(machine.source("shape").unwrap().contains("threads run at once"), "{first}");
        assert_eq!(notes.matches("note: ").count(), 2, "{first}: {notes}");
        let job = [("SLURM_TASKS_PER_NODE", "2(x2)")];
        let (machine, _, notes) = detected(&[("lstopo", first), ("scontrol", first)], &job);
        assert_eq!(machine.topology.short_form(), "cluster:2*2", "{first}");
        assert!(notes.contains("note: scontrol show topology: "), "{first}: {notes}");
    }
    // A file that is no program.
    let folder = with(&[("nvidia-smi", "exit 0")]);
    fs::set_permissions(folder.path().join("nvidia-smi"), fs::Permissions::from_mode(0o644))
        .unwrap();
    let output = detect(folder.path(), &[]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start"), "{output:?}");
}

/// None is waited for longer than ten seconds, nor what it starts, which ends too.
#[test]
fn programs_that_do_not_end_are_ended() {
    let slow = [
        "exec /bin/sleep 600.5",
        "/bin/sleep 600.5 & exit 0",
        "/bin/sleep 600.5; echo late",
        "exec >&-; exec /bin/sleep 600.5",
    ];
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for lines in slow {
            scope.spawn(move || {
                let (_, _, notes) = detected(&[("nvidia-smi", lines)], &[]);
                assert!(
                    notes.contains("nvidia-smi topo -m: no end after 10 seconds"),
                    "{lines}: {notes}"
                );
            });
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        fs::read(process.path().join("cmdline"))
            .is_ok_and(|line| line == b"/bin/sleep\x00600.5\x00")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn select_takes_what_is_detected_here() {
    let folder = TempDir::new().unwrap();
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_topocoll");
        Command::new(program).current_dir(folder.path()).args(arguments).output().unwrap()
    };
    let output = run(&["detect", "--out", "here.toml"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let output = run(&["select", "here.toml"]);
    let one = fs::read_to_string(folder.path().join("here.toml")).unwrap();
    assert!(output.status.success() || one.contains("\"full:1\""), "{output:?} {one}");
}
