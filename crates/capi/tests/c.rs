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

/// Installs into a prefix as a user does, compiles the examples with the flags of pkg-config and runs
/// them with the sanitizers of addresses, leaks and undefined behaviour, and under valgrind.
#[test]
fn the_examples_compile_run_and_leak_nothing() {
    let prefix = tempfile::tempdir().unwrap();
    let at = |name: &str| prefix.path().join(name);
    let mut make = Command::new("make");
    make.arg("-C").arg(here()).args(["--silent", "install"]);
    make.arg(format!("PREFIX={}", prefix.path().display()));
    run(make.arg(format!("BUILT={}", libraries().display())));
    let abi = topocoll_c::TOPOCOLL_ABI_VERSION;
    let blocks = |ranks: u32| (0..ranks).map(|from| format!("{from}->3 ")).collect::<String>();
    for (example, expected) in [
        ("exchange", format!("{}\n", blocks(8))),
        ("sockets", format!("clustered-matchings, predicted a time\n{}\n", blocks(6))),
        ("regions", "aaaaaabbbbcccccddd\n".to_owned()),
    ] {
        let source = here().join("../../examples").join(format!("{example}.c"));
        let both = [&[][..], &["--static"][..]];
        for linked in &both[..if example == "exchange" { 2 } else { 1 }] {
            let mut pkg_config = Command::new("pkg-config");
            pkg_config.env("PKG_CONFIG_PATH", at("lib/pkgconfig"));
            let flags = run(pkg_config.args(["--cflags", "--libs"]).args(*linked).arg("topocoll"));
            let mut flags: Vec<_> = flags.split_whitespace().map(str::to_owned).collect();
            if !linked.is_empty() {
                let archive = at("lib/libtopocoll_c.a").to_str().unwrap().to_owned();
                flags.iter_mut().filter(|flag| *flag == "-ltopocoll_c").for_each(|flag| {
                    archive.clone_into(flag);
                });
            }
            let program = at("program");
            let compile = |checks: &[&str]| {
                let mut cc = Command::new("cc");
                cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g"]).args(checks);
                run(cc.arg(&source).args(&flags).arg("-o").arg(&program));
            };
            let checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
            compile(&checks);
            let mut sanitized = Command::new(&program);
            sanitized.env("LD_LIBRARY_PATH", at("lib"));
            assert_eq!(run(&mut sanitized), expected, "{example} {linked:?}");
            compile(&[]);
            if linked.is_empty() {
                // The name of the interface's version, not the one that the linker was given.
                let needed = run(Command::new("readelf").arg("-d").arg(&program));
                assert!(needed.contains(&format!("[libtopocoll_c.so.{abi}]")), "{needed}");
            }
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
            valgrind
                .args(["--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite"]);
            valgrind.env("LD_LIBRARY_PATH", at("lib")).arg(&program);
            assert_eq!(run(&mut valgrind), expected, "{example} {linked:?}");
        }
    }
    let mut make = Command::new("make");
    make.arg("-C").arg(here()).args(["--silent", "uninstall"]);
    run(make.arg(format!("PREFIX={}", prefix.path().display())));
    std::fs::remove_file(at("program")).unwrap();
    let files = run(Command::new("find").arg(prefix.path()).args(["!", "-type", "d"]));
    assert_eq!(files, "", "files that stay");
}
