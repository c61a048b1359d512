//! Certificates of schedules.

use sha2::{Digest as _, Sha256};
use topocoll::{Counts, Machine, Schedule, best_bounds, count, write_certificate};
use topocoll_certificate::{Proved, check};

use crate::{Case, MEMORY, expand, without_classes};

/// The certificate of a schedule.
pub fn certificate_of(schedule: &Schedule, machine: &Machine) -> String {
    let counts = count(schedule, machine, None, MEMORY).unwrap();
    let mut out = Vec::new();
    write_certificate(schedule, machine, &counts, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text with its digest.
pub fn sealed(body: &str) -> String {
    let digest = Sha256::digest(body);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{body}sha256 {digest}\n")
}

/// The text of a certificate above its digest.
pub fn body(certificate: &str) -> &str {
    &certificate[..certificate.rfind("sha256 ").unwrap()]
}

/// Checks the certificates of a schedule: by its classes, and with every rank as its own class.
pub fn check_certificate(case: &Case<'_>, counts: &Counts) {
    let Case { machine, problem, place, .. } = case;
    let in_blocks = |bytes: u128| bytes as f64 / problem.block_bytes as f64;
    for schedule in [&without_classes(case.schedule()), case.schedule()] {
        let text = certificate_of(schedule, machine);
        let found: Proved =
            check(text.as_bytes()).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        let expected = [
            counts.steps.into(),
            counts.messages,
            counts.bytes,
            counts.link_bytes,
            counts.hops,
            counts.link_conflicts,
            counts.link_contention.into(),
            counts.contended_steps.into(),
            counts.contention_free_steps,
            counts.port_violations.into(),
            counts.inter_node_steps.into(),
        ];
        assert_eq!(found.counts.named().map(|(_, count)| count), expected, "{place}");
        let best = best_bounds(problem, machine, None);
        assert_eq!(found.least_steps, best.steps, "{place}");
        for (bytes, blocks) in
            [(found.least_bytes, best.blocks), (found.least_link_bytes, best.link_blocks)]
        {
            let more = in_blocks(bytes) - blocks;
            assert!(more > -1e-6 && more < 1.0, "{place}: {bytes} bytes");
        }
        let traded = best.link_blocks_in(counts.steps).filter(|_| counts.port_violations == 0);
        assert_eq!(found.tradeoff_link_bytes.is_some(), traded.is_some(), "{place}");
        if let (Some(bytes), Some(blocks)) = (found.tradeoff_link_bytes, traded) {
            let more = in_blocks(bytes) - blocks;
            assert!(more > -1e-6 && more < 1.0, "{place}: {bytes} bytes in as many steps");
        }
        if machine.ranks() <= 16 {
            assert_eq!(expand(&text), Ok(()), "{place}");
        }
    }
}
