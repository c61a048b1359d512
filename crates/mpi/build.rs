//! Says which MPI it is: `open_mpi`, and `large_counts` where there are `_c` forms. Compiles the
//! constants of the drop-in.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(open_mpi, large_counts)");
    println!("cargo::rerun-if-changed=src/flavour.c");
    println!("cargo::rerun-if-changed=src/constants.c");
    println!("cargo::rerun-if-env-changed=MPICC");
    // Without an MPI the build of mpi-sys has ended before, with the reasons.
    let mpi = build_probe_mpi::probe().expect("mpi-sys has found an MPI");
    let mut build = cc::Build::new();
    build.includes(&mpi.include_paths);
    if let Some(mpicc) = &mpi.mpicc {
        build.compiler(mpicc);
    }
    if std::env::var_os("CARGO_FEATURE_DROP_IN").is_some() {
        build.clone().file("src/constants.c").compile("topocoll_constants");
    }
    let text = build.file("src/flavour.c").cargo_metadata(false).expand();
    let text = String::from_utf8_lossy(&text).into_owned();
    if text.lines().any(|line| line == "topocoll_open_mpi") {
        println!("cargo::rustc-cfg=open_mpi");
    }
    let version = text.lines().find_map(|line| line.strip_prefix("topocoll_mpi_version "));
    if version.is_some_and(|version| version.trim().parse::<u32>().is_ok_and(|major| major >= 4)) {
        println!("cargo::rustc-cfg=large_counts");
    }
}
