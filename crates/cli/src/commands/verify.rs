use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use topocoll::contention::Scheduled;
use topocoll::{
    BestBounds, Claims, ConflictReport, Counts, Exchange, Machine, Method, Parameters, Schedule,
    Shape, Verification, Violation, check_certifiable, check_counting_work, count, verify_watched,
    write_certificate,
};
use topocoll_certificate::check_limits;

use super::heading::about_schedule;
use super::whole::Whole;
use super::{IN_TURN, conflicts, plural};
use crate::bar::{PROGRESS, starting};
use crate::error::say;
use crate::host::memory;
use crate::machine::{Named, exchange, machine, schedule};
use crate::render::{Answer, Blocks, Bounds, Head, blocks, check_files, print, table, write_file};
use crate::{Outcome, args};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    head: Head,
    algorithm: String,
    parameters: Parameters,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<u32>,
    /// None for message sizes without blocks: delivery is unknown.
    delivered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claims_hold: Option<bool>,
    steps: u64,
    blocks: Blocks,
    bytes: u128,
    link_blocks: Blocks,
    hops: u128,
    rearrangements: u64,
    rearranged_blocks: Blocks,
    packed_blocks: Blocks,
    link_conflicts: u128,
    max_link_sharing: u64,
    contended_steps: u64,
    contention_free_steps: u128,
    port_violations: u64,
    /// None unless replay followed all blocks of an all-to-all.
    #[serde(skip_serializing_if = "Option::is_none")]
    resent_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inter_node_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Vec<conflicts::Entry>>,
    /// The digest of the certificate written.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
}

pub(crate) fn run(args: &args::Verify) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    check_files(&[("--certificate", args.certificate.as_deref())])?;
    let whole = machine(&args.common.machine, options)?;
    let exchange = exchange(&whole, options, &args.part)?;
    let mut machine = exchange.machine().clone();
    if let Some(path) = &args.certificate {
        let able = check_certifiable(&machine).map_err(topocoll::Error::from);
        able.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let Named { schedule, name } = schedule(&exchange, &mut machine, options, &args.subject)?;
    let method = args.method.map(|method| match method {
        args::Method::Replay => Method::Replay,
        args::Method::Classes => Method::Classes,
    });
    let mut found = find(&exchange, &schedule, &machine, method)?;
    let mut claims = match args.subject.schedule {
        None => {
            let (exchange, origin) =
                (Exchange::new(&machine, &schedule.problem)?, &schedule.origin);
            Some(exchange.solve(&origin.algorithm, &origin.parameters)?.claims)
        }
        Some(_) => None,
    };
    let broken = claims.map_or(Vec::new(), |claims| broken(&claims, &found.counts));
    starting("computing bounds", 0);
    let placed = exchange.placed(&schedule)?;
    let exceeded =
        found.proof.as_ref().map_or(found.counts.port_violations, |proof| proof.exceeded);
    // Claims are of the machine that a subset forms, and counts of the links of the whole machine.
    let (network, bounds) = match placed {
        Cow::Owned(_) => {
            (found.counts, claims) = (exchange.count(&schedule)?, None);
            (&whole, exchange.bounds())
        }
        Cow::Borrowed(_) => {
            let of_file = Exchange::new(&machine, &schedule.problem)?;
            let of_file = match schedule.groups() {
                Some(groups) => of_file.groups(groups)?,
                None => of_file,
            };
            (&machine, of_file.bounds())
        }
    };
    let fails = found.delivered() != Some(true) || exceeded > 0 || !broken.is_empty();
    let named = match found.counts.link_conflicts {
        0 => Ok(ConflictReport::default()),
        _ => conflicts::find(&Scheduled::new(&placed, network), network, args.conflicts)?,
    };
    let claims_hold = claims.map(|_| broken.is_empty());
    let mut report = report((&machine, &args.part), &schedule, &found, claims_hold, bounds);
    report.conflicts = conflicts::entries(&named, network, None);
    if let Some(path) = args.certificate.as_deref().filter(|_| !fails) {
        report.certificate = Some(certify(path, &schedule, &machine, &found.counts)?);
    }
    print(options.json, &report, || {
        let certificate = report.certificate.as_ref();
        let digest = certificate.map_or(String::new(), |digest| format!("certificate {digest}"));
        let found = (&found, exceeded);
        let answer = text(&machine, (&schedule, &name), found, claims.as_ref(), &report);
        conflicts::add(answer, &named, report.conflicts.as_deref()).notes(digest)
    })?;
    if found.proof.is_none() {
        say("error: nothing is proved: the file has message sizes but no blocks");
    }
    for broken in broken {
        say(&format!("error: claim broken: {broken}"));
    }
    Ok(if fails { Outcome::Failed } else { Outcome::Fine })
}

/// Writes the certificate if `check` accepts it, and returns its digest.
fn certify(
    path: &Path,
    schedule: &Schedule,
    machine: &Machine,
    counts: &Counts,
) -> anyhow::Result<String> {
    starting("writing the certificate", 0);
    let mut digest = String::new();
    write_file(path, |file| {
        let mut text = Vec::new();
        digest = write_certificate(schedule, machine, counts, &mut text)
            .map_err(topocoll::Error::from)?;
        check_limits(&text).context("`check` would refuse the certificate")?;
        Ok(file.write_all(&text)?)
    })?;
    Ok(digest)
}

/// Findings about a schedule.
struct Found {
    /// None for message sizes without blocks.
    proof: Option<Proof>,
    counts: Counts,
}

struct Proof {
    method: Method,
    classes: u32,
    violation: Option<Violation>,
    exceeded: u64,
    resent_blocks: Option<u64>,
}

impl Found {
    fn delivered(&self) -> Option<bool> {
        self.proof.as_ref().map(|proof| proof.violation.is_none())
    }
}

fn find(
    exchange: &Exchange<'_>,
    schedule: &Schedule,
    machine: &Machine,
    method: Option<Method>,
) -> anyhow::Result<Found> {
    if schedule.rule().names_blocks() {
        let found = match exchange.grouped() {
            // Those of groups that form other machines, too.
            Some(_) => exchange.verify(schedule, method)?,
            None => verify_watched(schedule, machine, method, memory(), &PROGRESS)
                .map_err(topocoll::Error::from)?,
        };
        let Verification { method, classes, violation, counts, exceeded, resent_blocks, .. } =
            found;
        let proof = Proof { method, classes, violation, exceeded, resent_blocks };
        return Ok(Found { proof: Some(proof), counts });
    }
    starting("counting messages", 0);
    let counts = check_counting_work(schedule, machine)
        .and_then(|()| count(schedule, machine, None, memory()))
        .map_err(topocoll::Error::from)?;
    Ok(Found { proof: None, counts })
}

/// The claims that the counts contradict.
fn broken(claims: &Claims, counts: &Counts) -> Vec<String> {
    let claimed = [
        ("steps", Some(u128::from(claims.steps)), u128::from(counts.steps)),
        ("bytes", Some(claims.bytes), counts.bytes),
        ("hops", claims.hops, counts.hops),
        (
            "rearrangements",
            claims.rearrangements.map(u128::from),
            u128::from(counts.rearrangements),
        ),
        ("link conflicts", claims.contention_free.then_some(0), counts.link_conflicts),
    ];
    (claimed.into_iter())
        .filter_map(|(name, claimed, counted)| Some((name, claimed?, counted)))
        .filter(|(_, claimed, counted)| claimed != counted)
        .map(|(name, claimed, counted)| format!("{counted} {name}, {claimed} claimed"))
        .collect()
}

fn report(
    (machine, part): (&Machine, &args::Part),
    schedule: &Schedule,
    found: &Found,
    claims_hold: Option<bool>,
    bounds: BestBounds,
) -> Report {
    let counts = &found.counts;
    let proof = found.proof.as_ref();
    // Bounds need blocks, not message sizes.
    let bounds = proof.map(|_| bounds);
    let in_blocks = |bytes| Blocks(counts.in_blocks(bytes));
    let clustered = matches!(machine.topology.shape(), Shape::Clustered(_));
    Report {
        head: Head::of_schedule(machine, schedule).in_groups(part),
        algorithm: schedule.origin.algorithm.clone(),
        parameters: schedule.origin.parameters.clone(),
        method: proof.map_or("counts", |proof| proof.method.name()),
        classes: proof.filter(|p| p.method == Method::Classes).map(|proof| proof.classes),
        delivered: found.delivered(),
        violation: proof.and_then(|proof| proof.violation.as_ref()).map(ToString::to_string),
        claims_hold,
        steps: counts.steps,
        blocks: in_blocks(counts.bytes),
        bytes: counts.bytes,
        link_blocks: in_blocks(counts.link_bytes),
        hops: counts.hops,
        rearrangements: counts.rearrangements,
        rearranged_blocks: in_blocks(counts.rearranged_bytes),
        packed_blocks: in_blocks(counts.packed_bytes),
        link_conflicts: counts.link_conflicts,
        max_link_sharing: counts.link_contention,
        contended_steps: counts.contended_steps,
        contention_free_steps: counts.contention_free_steps,
        port_violations: counts.port_violations,
        resent_blocks: proof.and_then(|proof| proof.resent_blocks),
        inter_node_steps: clustered.then_some(counts.inter_node_steps),
        whole: bounds
            .filter(|_| schedule.groups().is_none())
            .and_then(|_| Whole::of(machine, &schedule.problem)),
        bounds: bounds.map(|bounds| match counts.port_violations {
            0 => Bounds::in_steps(bounds, counts.steps),
            _ => bounds.into(),
        }),
        conflicts: None,
        certificate: None,
    }
}

fn text(
    machine: &Machine,
    (schedule, name): (&Schedule, &str),
    (found, violations): (&Found, u64),
    claims: Option<&Claims>,
    report: &Report,
) -> Answer {
    let exceeded = match violations {
        0 => String::new(),
        cases => format!(", but ports are exceeded in {cases} cases"),
    };
    let sound = violations == 0 && report.claims_hold != Some(false);
    let answer = match found.proof.as_ref().map(|proof| &proof.violation) {
        Some(None) if sound => Answer::new(format!("Proved: {name} delivers every block.")),
        Some(None) => Answer::failed(format!("{name} delivers every block{exceeded}.")),
        Some(Some(violation)) => Answer::failed(format!("{name} is NOT delivered:\n{violation}")),
        None => Answer::failed(format!("{name} is counted, and delivery is unknown{exceeded}.")),
    };
    let method = match &found.proof {
        Some(Proof { method: Method::Replay, .. }) => {
            "Method: replay; every block of every rank is followed.".to_owned()
        }
        Some(Proof { classes, .. }) => format!(
            "Method: classes; every block of one rank of each of {classes} class{} of equivalent ranks is followed.",
            if *classes == 1 { "" } else { "es" }
        ),
        None => "Method: counts of sizes; a block is one byte.".to_owned(),
    };
    let claimed = |value: Option<u128>| value.map_or(String::new(), |value| value.to_string());
    let row = |name: &str, value: String, claim: String, bound: String| {
        vec![name.to_owned(), value, claim, bound]
    };
    let plain = |name: &str, value: String| row(name, value, String::new(), String::new());
    let counts = &found.counts;
    let in_blocks = |bytes| blocks(counts.in_blocks(bytes));
    let mut rows = vec![
        row(
            "steps",
            counts.steps.to_string(),
            claimed(claims.map(|c| c.steps.into())),
            report.bounds.as_ref().map_or(String::new(), |best| best.steps.to_string()),
        ),
        row(
            "volume [blocks]",
            in_blocks(counts.bytes),
            claims.map_or(String::new(), |c| in_blocks(c.bytes)),
            report.bounds.as_ref().map_or(String::new(), |best| blocks(best.blocks.0)),
        ),
        row(
            "charged volume [blocks]",
            in_blocks(counts.link_bytes),
            String::new(),
            report.bounds.as_ref().map_or(String::new(), |best| blocks(best.link_blocks.0)),
        ),
        row("hops", counts.hops.to_string(), claimed(claims.and_then(|c| c.hops)), String::new()),
        row(
            "rearrangements",
            counts.rearrangements.to_string(),
            claimed(claims.and_then(|c| c.rearrangements).map(u128::from)),
            String::new(),
        ),
        plain("rearranged blocks", in_blocks(counts.rearranged_bytes)),
        plain("packed blocks", in_blocks(counts.packed_bytes)),
        row(
            "link conflicts",
            counts.link_conflicts.to_string(),
            claimed(claims.filter(|c| c.contention_free).map(|_| 0)),
            String::new(),
        ),
        plain("link contention", counts.link_contention.to_string()),
        plain("contended steps", counts.contended_steps.to_string()),
        plain("contention-free steps", counts.contention_free_steps.to_string()),
        plain("port violations", counts.port_violations.to_string()),
    ];
    if let Some(steps) = report.inter_node_steps {
        rows.push(plain("inter-node steps", steps.to_string()));
    }
    let in_turn = match counts.port_violations {
        0 => String::new(),
        _ => format!("Where ports are exceeded, {IN_TURN}."),
    };
    let resent = match report.resent_blocks {
        None | Some(0) => String::new(),
        Some(count) => {
            rows.push(plain("resent blocks", count.to_string()));
            "Ranks send blocks again after they passed them on. A send leaves a copy, so this is allowed.".to_owned()
        }
    };
    let traded = match report.bounds.and_then(|bounds| bounds.tradeoff_link_blocks) {
        Some(Blocks(least)) if least > 0.0 => format!(
            "In {} step{} any schedule has a charged volume of at least {} blocks; this one has {:.2} times as much.",
            counts.steps,
            plural(counts.steps as usize),
            blocks(least),
            counts.in_blocks(counts.link_bytes) / least
        ),
        _ => String::new(),
    };
    let lost = match (&report.whole, &report.bounds) {
        (Some(whole), Some(bounds)) => {
            let carried = counts.in_blocks(counts.link_bytes);
            whole.text(*bounds, Some(carried))
        }
        _ => String::new(),
    };
    answer
        .about(about_schedule(machine, schedule) + ".")
        .assuming(method)
        .table(&table(&["count", "found", "claimed", "lower bound"], 1, rows))
        .notes(in_turn)
        .notes(resent)
        .notes(traded)
        .notes(lost)
}
