//! The header equals the code's, and a C program that uses it runs without a leak.
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

/// Installs the libraries, the header and the pkg-config file as a package would. Compiles the example
/// with the flags of pkg-config and runs it under valgrind.
#[test]
fn the_example_compiles_runs_and_leaks_nothing() {
    let prefix = tempfile::tempdir().unwrap();
    let at = |name: &str| prefix.path().join(name);
    for folder in ["lib/pkgconfig", "include"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    for name in ["libtopocoll_c.a", "libtopocoll_c.so"] {
        std::fs::copy(libraries().join(name), at("lib").join(name)).unwrap();
    }
    std::fs::copy(here().join("include/topocoll.h"), at("include/topocoll.h")).unwrap();
    let template = std::fs::read_to_string(here().join("topocoll.pc.in")).unwrap();
    let written = template
        .replace("@prefix@", prefix.path().to_str().unwrap())
        .replace("@version@", env!("CARGO_PKG_VERSION"));
    std::fs::write(at("lib/pkgconfig/topocoll.pc"), written).unwrap();

    let source = here().join("../../examples/exchange.c");
    for (name, linked) in [("shared", &[][..]), ("static", &["--static"][..])] {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", at("lib/pkgconfig"));
        let flags = run(pkg_config.args(["--cflags", "--libs"]).args(linked).arg("topocoll"));
        let mut flags: Vec<_> = flags.split_whitespace().map(str::to_owned).collect();
        if name == "static" {
            let archive = at("lib/libtopocoll_c.a").to_str().unwrap().to_owned();
            flags.iter_mut().filter(|flag| *flag == "-ltopocoll_c").for_each(|flag| {
                archive.clone_into(flag);
            });
        }
        let program = at(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"]).arg(&source);
        run(cc.args(&flags).arg("-o").arg(&program));
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        valgrind.args(["--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite"]);
        valgrind.env("LD_LIBRARY_PATH", at("lib")).arg(&program);
        let expected: String = (0..8).map(|from| format!("{from}->3 ")).collect();
        assert_eq!(run(&mut valgrind), format!("{expected}\n"), "{name}");
    }
}
