//! What the papers' closed forms say, and what the readers count, are the same.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use topocoll::{
    Collective, Counts, Machine, Method, Parameters, Problem, Setting, Violation, machine, plan,
    verify,
};

fn problem(machine: &Machine) -> Problem {
    Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, 1).unwrap()
}

fn check(
    text: &str,
    algorithm: &str,
    parameters: &Parameters,
    method: Method,
) -> Result<Counts, Violation> {
    let machine = machine(text).unwrap();
    let schedule = plan(&machine, &problem(&machine), algorithm, parameters).unwrap();
    let report = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
    report.violation.map_or(Ok(report.counts), Err)
}

fn set(name: &str, value: u64) -> Parameters {
    Parameters::from([(name.to_owned(), Setting::Integer(value))])
}

/// Machine, steps, blocks, hops, rearrangements.
const SUH_SHIN: [(&str, u64, u128, u128, u64); 12] = [
    ("torus:4x4", 4, 32, 6, 1),
    ("torus:8x8", 6, 192, 14, 3),
    ("torus:8x12", 8, 384, 22, 3),
    ("torus:12x8", 8, 384, 22, 3),
    ("torus:12x12", 8, 576, 22, 3),
    ("torus:16x16", 10, 1280, 30, 3),
    ("torus:8x8x4", 9, 1152, 21, 4),
    ("torus:4x8x8", 9, 1152, 21, 4),
    ("torus:8x8x16", 15, 7680, 45, 4),
    ("torus:12x12x12", 12, 10368, 33, 4),
    ("torus:8x8x8x8", 12, 24576, 28, 5),
    ("torus:12", 6, 36, 11, 1),
];

#[test]
fn suh_shin_counts_are_the_papers() {
    for (text, steps, blocks, hops, rearrangements) in SUH_SHIN {
        for method in [Method::Replay, Method::Classes] {
            let counts = check(text, "suh-shin", &Parameters::new(), method).unwrap();
            assert_eq!((counts.steps, counts.bytes, counts.hops), (steps, blocks, hops), "{text}");
            assert_eq!(
                (counts.rearrangements, counts.link_conflicts, counts.port_violations),
                (rearrangements, 0, 0)
            );
            assert_eq!(counts.link_bytes, counts.bytes);
            let fixed =
                Parameters::from([("layout".to_owned(), Setting::Text("fixed".to_owned()))]);
            let counts = check(text, "suh-shin", &fixed, method).unwrap();
            assert_eq!(
                (counts.steps, counts.bytes, counts.hops, counts.rearrangements),
                (steps, blocks, hops, 0)
            );
        }
    }
}

#[test]
fn bruck_counts_are_the_exact_sums() {
    for n in 1..=24u64 {
        for k in 1..=4 {
            for r in 2..=n.max(2) {
                let mut machine = machine(&format!("full:{n}")).unwrap();
                machine.set_ports(k);
                let k = machine.ports;
                let problem = problem(&machine);
                let schedule = plan(&machine, &problem, "bruck", &set("radix", r)).unwrap();
                for method in [Method::Replay, Method::Classes] {
                    let report = verify(&schedule, &machine, Some(method), 1 << 33).unwrap();
                    assert_eq!(report.violation, None, "n {n} r {r} k {k}");
                    let (steps, blocks) = bruck_sums(n, r, k.into());
                    assert_eq!(
                        (report.counts.steps, report.counts.bytes),
                        (steps, blocks),
                        "n {n} r {r} k {k}"
                    );
                    assert_eq!(report.counts.port_violations, 0);
                }
            }
        }
    }
}

/// C1 and C2 of the index algorithm by listing every digit of every block.
fn bruck_sums(n: u64, r: u64, k: u64) -> (u64, u128) {
    let (mut steps, mut blocks, mut weight) = (0, 0, 1);
    while weight < n {
        let values: Vec<u64> = (1..r).filter(|z| z * weight < n).collect();
        for group in values.chunks(k as usize) {
            let size = |z: &u64| (0..n).filter(|j| j / weight % r == *z).count();
            blocks += group.iter().map(size).max().unwrap() as u128;
            steps += 1;
        }
        weight *= r;
    }
    (steps, blocks)
}

#[test]
fn pairwise_exchange_on_a_mesh_is_the_papers_figure_1() {
    let counts = check("mesh:2x4", "pairwise-xor", &Parameters::new(), Method::Replay).unwrap();
    assert_eq!((counts.steps, counts.contended_steps, counts.contention_free_steps), (7, 4, 11));
}

#[test]
fn clustered_factor_takes_as_many_steps_as_the_paper_says() {
    let steps = |text| check(text, "clustered-factor", &Parameters::new(), Method::Replay).unwrap();
    assert_eq!(steps("cluster:1,2,3").steps, 15);
    assert_eq!(steps("cluster:3,1,2").port_violations, 0);
}
