//! The header equals the code's, and C programs that use it run without a leak, an invalid access or undefined
//! behaviour.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `HEADER=overwrite cargo test -p topocoll-capi --test c` writes the header.
#[test]
fn the_header_is_that_of_the_code() {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).unwrap();
    let source = here().join("src/lib.rs");
    let bindings = cbindgen::Builder::new().with_src(source).with_config(config).generate();
    let mut generated = Vec::new();
    bindings.unwrap().write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    let path = here().join("include/topocoll.h");
    if std::env::var_os("HEADER").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &generated).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), generated, "include/topocoll.h is stale");
}

/// Cargo puts the static and the shared library beside the test or one folder above.
fn libraries() -> PathBuf {
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let above = beside.parent().unwrap().to_owned();
    let both = |folder: &PathBuf| {
        ["libtopocoll_c.a", "libtopocoll_c.so"].iter().all(|name| folder.join(name).exists())
    };
    [beside, above].into_iter().find(both).expect("cargo builds both libraries with the tests")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The library as a user installs it, in a prefix.
struct Installed(tempfile::TempDir);

impl Installed {
    fn new() -> Self {
        let installed = Self(tempfile::tempdir().unwrap());
        run(installed.make("install").arg(format!("BUILT={}", libraries().display())));
        installed
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn make(&self, target: &str) -> Command {
        let mut make = Command::new("make");
        make.arg("-C").arg(here()).args(["--silent", target]);
        make.arg(format!("PREFIX={}", self.0.path().display()));
        make
    }

    /// Compiles a program of the repository with the flags of pkg-config.
    fn compile(&self, cc: &str, source: &str, linked: &[&str], checks: &[&str]) -> PathBuf {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", self.at("lib/pkgconfig"));
        let flags = run(pkg_config.args(["--cflags", "--libs"]).args(linked).arg("topocoll"));
        let archive = self.at("lib/libtopocoll_c.a").to_str().unwrap().to_owned();
        let is_ours = |flag: &str| flag == "-ltopocoll_c" && !linked.is_empty();
        let flags = flags.split_whitespace();
        let flags = flags.map(|flag| if is_ours(flag) { &*archive } else { flag });
        let program = self.at("program");
        let source = here().join("../..").join(source);
        let mut cc = Command::new(cc);
        cc.args(["-std=gnu11", "-g"]).args(checks).arg(source).args(flags);
        run(cc.arg("-o").arg(&program));
        program
    }

    /// Runs a program, perhaps below another one.
    fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new(words[0]);
        command.env("ASAN_OPTIONS", "detect_leaks=0");
        run(command.args(&words[1..]).env("LD_LIBRARY_PATH", self.at("lib")))
    }
}

const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Installs into a prefix as a user does, compiles the examples and runs them with the sanitizers of
/// addresses, leaks and undefined behaviour, and under valgrind.
#[test]
fn the_examples_compile_run_and_leak_nothing() {
    let installed = Installed::new();
    let abi = topocoll_c::TOPOCOLL_ABI_VERSION;
    let blocks = |ranks: u32| (0..ranks).map(|from| format!("2:{from}->3 ")).collect::<String>();
    for (example, expected) in [
        ("exchange", format!("{}\n", blocks(8))),
        ("sockets", format!("clustered-matchings, predicted a time\n{}\n", blocks(6))),
        ("regions", "aaaaaaabbbbbccccccdddd\n".to_owned()),
    ] {
        let source = format!("examples/{example}.c");
        let both = [&[][..], &["--static"][..]];
        for linked in &both[..if example == "exchange" { 2 } else { 1 }] {
            let checks = [&WARNINGS[..], &SANITIZERS].concat();
            let program = installed.compile("cc", &source, linked, &checks);
            let mut sanitized = Command::new(&program);
            sanitized.env("LD_LIBRARY_PATH", installed.at("lib"));
            assert_eq!(run(&mut sanitized), expected, "{example} {linked:?}");
            installed.compile("cc", &source, linked, &WARNINGS);
            if linked.is_empty() {
                // The name of the interface's version, not the one that the linker was given.
                let needed = run(Command::new("readelf").arg("-d").arg(&program));
                assert!(needed.contains(&format!("[libtopocoll_c.so.{abi}]")), "{needed}");
            }
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
            valgrind
                .args(["--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite"]);
            valgrind.env("LD_LIBRARY_PATH", installed.at("lib")).arg(&program);
            assert_eq!(run(&mut valgrind), expected, "{example} {linked:?}");
        }
    }
    std::fs::remove_file(installed.at("program")).unwrap();
    run(&mut installed.make("uninstall"));
    let files = run(Command::new("find").arg(installed.0.path()).args(["!", "-type", "d"]));
    assert_eq!(files, "", "files that stay");
}

/// The example of a loop over MPI, with the library that the tests of the workspace take.
#[test]
fn a_plan_drives_messages_of_mpi() {
    let installed = Installed::new();
    let program = installed.compile("mpicc.openmpi", "examples/over_mpi.c", &[], &WARNINGS);
    let program = program.to_str().unwrap();
    let root = ["--allow-run-as-root", "--oversubscribe", "-np", "5", program];
    for in_step in [&[][..], &["barrier"]] {
        let said = installed.run(&[&["mpirun.openmpi"], &root[..], in_step].concat());
        assert_eq!(said, "every rank has its blocks, 100 times\n");
    }
}

/// Programs of people who embedded the library, with misuse of all kinds: see each program's text.
#[test]
fn programs_of_users_end_well() {
    let installed = Installed::new();
    let checks = [&["-w", "-pthread"][..], &SANITIZERS].concat();
    let said = |program: &str, words: &[&str]| {
        let source = format!("tests/inputs/embed/{program}.c");
        let program = installed.compile("cc", &source, &[], &checks);
        installed.run(&[&[program.to_str().unwrap()], words].concat())
    };
    // A child process works though the threads of its parent are gone.
    let forked = said("fork", &["torus:8x8"]);
    assert!(forked.ends_with("child 0 suh-shin\nchild status 0 (signal 0)\n"), "{forked}");
    let next = said("next", &[]);
    assert!(
        next.contains("next before start: 1") && !next.contains("start(2^64-1): kind"),
        "{next}"
    );
    assert!(next.contains("99 received: 2"), "{next}");
    let different = said("v", &[]);
    assert!(different.lines().count() == 15 && !different.contains("rank"), "{different}");
    let misused = said("misuse", &[]);
    assert!(misused.ends_with("88 tried, 0 BAD\n"), "{misused}");
    for words in [["direct", "full:4"], ["bruck", "torus:2x2"]] {
        assert!(said("four", &words).ends_with(": ok\n"), "{words:?}");
    }
}

/// Sequences of exchanges of equal and of different blocks among four processes, with every algorithm,
/// for as long as asked; in some of them a rank dies, and the others end.
#[test]
#[ignore = "takes minutes"]
fn processes_exchange_for_minutes() {
    let minutes = std::env::var("TOPOCOLL_SOAK_MINUTES");
    let minutes: f64 = minutes.map_or(1.0, |minutes| minutes.parse().expect("minutes"));
    let installed = Installed::new();
    let checks = [&["-w"][..], &SANITIZERS].concat();
    let program = installed.compile("cc", "tests/inputs/embed/four.c", &[], &checks);
    let (start, mut turn) = (std::time::Instant::now(), 0usize);
    while start.elapsed().as_secs_f64() < 60.0 * minutes {
        for name in ["full:4", "torus:2x2", "mesh:4", "cluster:2,2", "cluster:1,3", "hypercube:2"] {
            let machine = topocoll::machine(name).unwrap();
            let exchange = topocoll::Exchange::all_to_all(&machine).unwrap();
            for solution in exchange.block_bytes(64).unwrap().solutions() {
                let dies =
                    (turn % 5).checked_sub(1).map_or("-1".to_owned(), |rank| rank.to_string());
                let mut timed = Command::new("timeout");
                timed.args(["60"]).arg(&program);
                timed.args([&*solution.schedule.origin.algorithm, name, &*dies]);
                let output = timed.env("LD_LIBRARY_PATH", installed.at("lib")).output().unwrap();
                let (status, said) =
                    (output.status.code(), String::from_utf8_lossy(&output.stderr));
                assert!(
                    !said.contains("WRONG") && status == Some(i32::from(dies != "-1")),
                    "{timed:?}: {said}"
                );
                turn += 1;
            }
        }
    }
    eprintln!("{turn} sequences of 100 exchanges");
}
