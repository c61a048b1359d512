//! What every schedule promises: it delivers, costs what its algorithm claims, and beats no bound.

use topocoll::{
    Algorithm, Collective, Counts, Machine, Measure, Method, NotApplicable, Parameters, Problem,
    Request, Schedule, Solution, best_bounds, bounds, verify,
};

use crate::MEMORY;

/// A solved setting of an algorithm on a machine.
pub struct Case<'m> {
    pub machine: &'m Machine,
    pub algorithm: &'m dyn Algorithm,
    pub problem: Problem,
    pub solution: Solution,
    /// Its name, in messages.
    pub place: String,
}

impl<'m> Case<'m> {
    /// # Errors
    /// The algorithm or the setting does not apply.
    pub fn solve(
        machine: &'m Machine,
        algorithm: &'m dyn Algorithm,
        problem: &Problem,
        setting: &Parameters,
    ) -> Result<Self, NotApplicable> {
        let solution = Request::new(problem, &*machine.topology).solve(algorithm, setting)?;
        let (name, ports) = (&algorithm.info().name, machine.ports);
        let place = format!("{name} {setting:?} on {} with {ports} ports", machine.name);
        Ok(Self { machine, algorithm, problem: *problem, solution, place })
    }

    pub fn schedule(&self) -> &Schedule {
        &self.solution.schedule
    }

    /// Whether no two ranks are equivalent.
    pub fn is_of_distinct_ranks(&self) -> bool {
        self.schedule().rule().classes().count() == self.machine.ranks()
    }
}

/// Checks that every block arrives within the ports; returns the counts.
pub fn check_delivery(case: &Case<'_>, method: Method) -> Counts {
    let Case { machine, problem, place, .. } = case;
    let splits = !case.schedule().rule().cuts().is_empty();
    let method = if splits { Method::Replay } else { method };
    let found = verify(case.schedule(), machine, Some(method), MEMORY).unwrap();
    assert_eq!(found.violation, None, "{place}");
    let moves = method == Method::Replay && problem.operation == Collective::AllToAll;
    assert_eq!(found.resent_blocks, moves.then_some(0), "{place}");
    assert_eq!(found.counts.port_violations, 0, "{place}");
    found.counts
}

/// Checks the closed forms of an algorithm against the counts.
pub fn check_claims(case: &Case<'_>, counts: &Counts) {
    let (claims, place) = (&case.solution.claims, &case.place);
    assert_eq!((counts.steps, counts.bytes), (claims.steps, claims.bytes), "{place}");
    assert!(claims.hops.is_none_or(|hops| hops == counts.hops), "{place}: {} hops", counts.hops);
    assert!(
        claims.rearrangements.is_none_or(|times| u64::from(times) == counts.rearrangements),
        "{place}"
    );
    let copied = counts.rearranged_bytes + counts.packed_bytes;
    assert!(claims.copied_bytes.is_none_or(|bytes| bytes == copied), "{place}: {copied}");
    assert!(!claims.contention_free || counts.link_conflicts == 0, "{place}");
    assert!(
        counts.link_bytes >= claims.link_bytes_floor,
        "{place}: {} link bytes",
        counts.link_bytes
    );
    assert!(counts.hops >= claims.hops_floor, "{place}: {} hops", counts.hops);
}

/// Checks that the counts are at or above every lower bound.
pub fn check_bounds(case: &Case<'_>, counts: &Counts) {
    let Case { machine, algorithm, problem, place, .. } = case;
    let blocks = counts.in_blocks(counts.bytes);
    for bound in bounds(problem, machine) {
        let holds = match (bound.measure, bound.condition.as_str()) {
            (Measure::Steps, "") => counts.steps as f64 >= bound.value,
            // Theorem 2.6: schedules of exactly the least volume.
            (Measure::Steps, _) => {
                blocks * f64::from(problem.ports) > f64::from(machine.ranks() - 1)
                    || counts.steps as f64 >= bound.value
            }
            (Measure::Blocks, "") => blocks >= bound.value,
            // Theorem 2.5: schedules of exactly the fewest steps.
            (Measure::Blocks, condition) => {
                !condition.contains(&format!("exactly {} steps", counts.steps))
                    || blocks >= bound.value
            }
            (Measure::LinkBlocks, "") => counts.in_blocks(counts.link_bytes) >= bound.value,
            // Blocks straight to their destinations, by the machine's routes.
            (Measure::LinkBlocks, _) => {
                algorithm.info().name != "direct"
                    || case.schedule().origin.parameters.contains_key("seen")
                    || counts.in_blocks(counts.link_bytes) >= bound.value
            }
            (Measure::Hops, _) => counts.hops as f64 >= bound.value,
            (Measure::Seconds, _) => counts.time.transmission >= bound.value * (1.0 - 1e-9),
            _ => panic!("{place}: no count is compared with this bound: {bound:?}"),
        };
        assert!(holds, "{place}: {bound:?}");
    }
    let best = best_bounds(problem, machine, None);
    let traded = best.trade_off.map(|of| of.blocks(counts.steps).expect("too few steps"));
    assert!(traded.is_none_or(|least| blocks >= least - 1e-9), "{place}: {traded:?}");
    let time = counts.time.total();
    assert!(time >= best.seconds * (1.0 - 1e-9), "{place}: {time} s, bound {}", best.seconds);
}

/// Checks a complete setting: delivery, claims, bounds.
pub fn check_promises(
    machine: &Machine,
    algorithm: &dyn Algorithm,
    problem: &Problem,
    setting: &Parameters,
    method: Method,
) {
    let case = Case::solve(machine, algorithm, problem, setting).unwrap();
    assert_eq!(&case.schedule().origin.parameters, setting, "{}: not complete", case.place);
    let counts = check_delivery(&case, method);
    check_claims(&case, &counts);
    check_bounds(&case, &counts);
}
