use std::borrow::Cow;

use topocoll_algorithms::{Algorithm, Claims, Info, NotApplicable, Request, Solution, Values};
use topocoll_schedule::Schedule;
use topocoll_topology::Machine;

use crate::{Error, Exchange};

/// A given schedule as an additional algorithm of a catalogue.
///
/// It applies to its own operation and ranks. If it moves whole blocks, it applies to blocks of
/// every size, otherwise only to blocks of its own size.
#[derive(Debug)]
pub struct GivenSchedule {
    info: Info,
    schedule: Schedule,
    claims: Claims,
}

impl GivenSchedule {
    /// A schedule for a machine, called `name`.
    ///
    /// # Errors
    /// The schedule names no blocks, does not deliver, exceeds ports, or is too large to verify.
    pub fn new(name: &str, schedule: Schedule, machine: &Machine) -> Result<Self, Error> {
        let refused = |reason: &dyn ToString| Error::GivenSchedule {
            name: name.to_owned(),
            reason: reason.to_string(),
        };
        if schedule.groups().is_some() {
            return Err(refused(&"its ranks exchange within groups, and these of all with all"));
        }
        let exchange = Exchange::new(machine, &schedule.problem)?;
        let found = exchange.verify(&schedule, None).map_err(|error| refused(&error))?;
        if let Some(violation) = found.violation {
            return Err(refused(&violation));
        }
        let counts = found.counts;
        if counts.port_violations > 0 {
            let cases = counts.port_violations;
            return Err(refused(&format!("ports are exceeded in {cases} cases")));
        }
        let mut info = Info::new("", "a given schedule", "").performing(schedule.problem.operation);
        info.name = Cow::Owned(name.to_owned());
        info.source = Cow::Owned(schedule.origin.algorithm.clone());
        Ok(Self { info, schedule, claims: Claims::new(counts.steps, counts.bytes) })
    }
}

impl Algorithm for GivenSchedule {
    fn info(&self) -> &Info {
        &self.info
    }

    fn solve(&self, request: &Request<'_>, _: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, own) = (&request.problem, &self.schedule.problem);
        if problem.ranks != own.ranks {
            let rule = "the ranks that the schedule is for";
            return Err(NotApplicable::Ranks { rule, ranks: problem.ranks });
        }
        let [theirs, ours] = [problem, own].map(|of| (of.ports, of.node_ports));
        for (ports, least) in [(theirs.0, ours.0), (theirs.1, ours.1)] {
            if ports < least {
                return Err(NotApplicable::FewPorts { least, ports });
            }
        }
        let mut claims = self.claims;
        if problem.block_bytes != own.block_bytes {
            if !self.schedule.rule().cuts().is_empty() {
                let (cut, asked) = (own.block_bytes, problem.block_bytes);
                return Err(NotApplicable::BlockBytes { cut, asked });
            }
            let blocks = claims.bytes / u128::from(own.block_bytes);
            claims = Claims::new(claims.steps, request.bytes(blocks));
        }
        let mut schedule = self.schedule.clone();
        schedule.problem = *problem;
        schedule.origin.algorithm = self.info.name.clone().into_owned();
        schedule.origin.parameters.clear();
        Ok(Solution::of(schedule, claims))
    }
}
