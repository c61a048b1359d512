use std::path::Path;

use super::*;

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/measured");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn refused(text: &str, asked: Option<Collective>, ranks: u32) -> String {
    Measured::read(text, asked, ranks).unwrap_err().message
}

const ALL_TO_ALL: Option<Collective> = Some(Collective::AllToAll);
const ALL_GATHER: Option<Collective> = Some(Collective::AllGather);

#[test]
fn sizes_of_mpi_benchmarks_are_blocks() {
    let (osu, others) = Measured::read(&file("osu_alltoall.txt"), None, 32).unwrap();
    assert_eq!((osu.operation(), osu.ranks, osu.rows.len()), (ALL_TO_ALL, None, 8));
    assert_eq!((osu.rows[3], osu.column), ((512, 512, 98.52 / 1e6), "Avg Latency(us)"));
    assert!(others.is_empty());
    // With options the slowest rank is printed too.
    let (osu, _) = Measured::read(&file("osu_allgather.txt"), None, 32).unwrap();
    assert_eq!((osu.operation(), osu.column), (ALL_GATHER, "Max Latency(us)"));
    assert_eq!(osu.rows[1], (1024, 1024, 6.40 / 1e6));
    let (imb, others) = Measured::read(&file("imb.txt"), None, 4).unwrap();
    assert_eq!((imb.operation(), imb.ranks, imb.rows.len()), (ALL_TO_ALL, Some(4), 3));
    assert_eq!((imb.rows[0], imb.column), ((1, 1, 10.02 / 1e6), "t_max[usec]"));
    assert_eq!(others, ["Alltoall of 2 ranks (line 6)", "Bcast of 4 ranks (line 26)"]);
    let (two, _) = Measured::read(&file("imb.txt"), ALL_TO_ALL, 2).unwrap();
    assert_eq!(two.rows[2].2, 110.50 / 1e6);
}

#[test]
fn sizes_of_nccl_are_whole_buffers() {
    let (nccl, _) = Measured::read(&file("alltoall_perf.txt"), None, 4).unwrap();
    assert_eq!((nccl.operation(), nccl.ranks, nccl.rows.len()), (ALL_TO_ALL, Some(4), 4));
    assert_eq!(nccl.rows[0], (65_536, 16_384, 14.10 / 1e6));
    assert_eq!(nccl.rows[3], (1 << 32, 1 << 30, 11_210.0 / 1e6));
    // Earlier versions name no test and print no root; of all-to-alls no reduction.
    let old = file("old-nccl.txt");
    assert!(refused(&old, None, 4).contains("--op"));
    let (nccl, _) = Measured::read(&old, ALL_TO_ALL, 4).unwrap();
    assert_eq!(nccl.rows[0], (268_435_456, 67_108_864, 520_935.0 / 1e6));
    let pasted = format!("$ mpirun -np 4 build/all_gather_perf -b 256M\n{old}");
    assert_eq!(Measured::read(&pasted, None, 4).unwrap().0.operation(), ALL_GATHER);
    assert!(refused(&pasted, ALL_TO_ALL, 4).contains("no table of alltoall: all_gather_perf of 4"));
    assert!(refused(&pasted, None, 8).contains("no table is of 8 ranks"));
}

#[test]
fn names_of_tests_tell_the_operation() {
    for (test, named) in [
        ("MPI All-to-All Personalized Exchange", ALL_TO_ALL),
        ("MPI-CUDA All-to-Allv Personalized Exchange", ALL_TO_ALL),
        ("MPI Non-blocking Allgather", ALL_GATHER),
        ("NCCL Allgather", ALL_GATHER),
        ("Ialltoall_pure", ALL_TO_ALL),
        ("all_gather_perf", ALL_GATHER),
        ("MPI Neighborhood Alltoall", None),
        ("all_reduce_perf", None),
        ("Allreduce", None),
        ("", None),
    ] {
        assert_eq!(operation(test), named, "{test}");
    }
}

#[test]
fn wrong_tables_are_refused_with_their_place() {
    let osu = "# OSU MPI Allgather Latency Test v7\n# Size       Avg Latency(us)\n";
    for (rows, rule) in [
        ("", "no row has a size and a time"),
        ("8\n", "1 columns, where the line above the table has 2"),
        ("8 1.0 Pass\n", "3 columns"),
        ("8 nan\n", "Avg Latency(us) is `nan`, not a time in microseconds above 0"),
        ("8 inf\n", "`inf`"),
        ("8 -1\n", "`-1`"),
        ("8 0.00\n", "`0.00`"),
        ("8e 1\n", "no size"),
        ("99999999999999999999 1\n", "no size"),
    ] {
        let text = format!("{osu}{rows}");
        let error = Measured::read(&text, None, 4).unwrap_err();
        assert!(error.message.contains(rule), "{rows:?}: {}", error.message);
        if let Some(span) = error.span {
            assert_eq!(&text[span], rows.trim());
        }
    }
    assert!(
        refused(&format!("{osu}{}", "8 1.0\n".repeat(1001)), None, 4).contains("more than 1000")
    );
    assert!(refused(&format!("{osu}8 1\n{osu}8 2\n"), None, 4).contains("several tables fit"));
    assert!(refused("", None, 4).contains("not the output of"));
    let nccl = file("alltoall_perf.txt");
    for (from, to, rule) in [
        ("65536          4096", "65536          4097", "no count and type of this size"),
        ("4096     float", "4096      text", "no count and type of this size"),
        (
            "65536          4096",
            "65536         16384",
            "a buffer of 4 blocks, and of 1 in rows above",
        ),
        ("14.10", "N/A", "time is `N/A`"),
        ("3.44    N/A", "3.44", "time is `-1`"),
        ("    time   algbw", "    span   algbw", "no column of times: not one of time"),
    ] {
        let error = refused(&nccl.replace(from, to), None, 4);
        assert!(error.contains(rule), "{to}: {error}");
    }
    let imb = file("imb.txt").replace("= 4", "= four");
    assert!(refused(&imb, None, 4).contains("`four` processes: not a whole number"));
}

/// Times that are twice the startups and half the transmission, beside a fixed term.
#[test]
fn a_fit_finds_the_factors_of_startup_and_transmission() {
    let time = |startup, transmission| Time {
        startup,
        transmission,
        rearrangement: 1e-6,
        ..Time::default()
    };
    let times: Vec<_> = [(1e-6, 1e-8), (1e-6, 1e-6), (2e-6, 1e-4), (5e-6, 1e-2)]
        .map(|(startup, bytes)| (time(startup, bytes), 2.0 * startup + 0.5 * bytes + 1e-6))
        .to_vec();
    let near = |value: Option<f64>, known: f64| (value.unwrap() / known - 1.0).abs() < 1e-6;
    let fit = Scaling::fit(&times);
    assert!(near(fit.startup, 2.0) && near(fit.per_byte, 0.5) && fit.error < 1e-6, "{fit:?}");
    let free: Vec<_> = times.iter().map(|(time, s)| (Time { startup: 0.0, ..*time }, *s)).collect();
    assert_eq!(Scaling::fit(&free).startup, None);
    // No term is negative, and the error says what remains.
    let fast = [(time(1e-6, 1e-6), 1e-7)];
    let fit = Scaling::fit(&fast);
    assert_eq!((fit.startup, fit.per_byte), (Some(0.0), Some(0.0)));
    assert!((fit.error - 9.0).abs() < 1e-9, "{fit:?}");
}
