//! The first rank's decisions, and every rank's plans to follow them.

use std::ffi::c_int;

use serde::{Deserialize, Serialize};
use topocoll::exec::Endpoint;

use super::course::Calls;
use super::decision::{Rules, decide};
use super::library::loaded;
use super::ours::{Ours, Subject};
use super::place::Place;
use super::process::{learned, once, say, settings, warn, world};
use super::report;
use super::settings::{Tune, Wish};
use super::trial::{Kept, News, Trial};
use super::vector::Exchange;
use crate::failed::{Failed, locked};
use crate::symbols as mpi;
use crate::window::Window;
use crate::words::Decides;

/// Agreement on a subject decides it.
pub(crate) const UNDECIDED: Failed = Failed(mpi::MPI_ERR_INTERN as c_int);

/// The first rank's decision, as it tells the others.
#[derive(Serialize, Deserialize)]
struct Told {
    /// Schedules, the first time.
    schedules: Option<Vec<Ours>>,
    turns: Vec<Calls>,
}

/// A call in which the first rank decides about a subject.
pub(crate) struct Deciding<'a> {
    pub(crate) subject: Subject,
    pub(crate) places: &'a [Place],
    pub(crate) label: &'a str,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// The private communicator.
    pub(crate) comm: mpi::MPI_Comm,
    pub(crate) window: &'a mut Option<Window>,
    /// The key of a window, if the communicator may have one: it stays until MPI is finalized.
    pub(crate) key: Option<(Vec<c_int>, i64)>,
    /// On the first rank, the trial under way.
    pub(crate) trial: Option<(Trial, Vec<Ours>)>,
    /// This rank's plans.
    pub(crate) schedules: Option<Vec<Exchange>>,
    /// The reason for a missing plan.
    pub(crate) refused: Option<String>,
    pub(crate) turns: Vec<Calls>,
}

impl Deciding<'_> {
    /// Decides about a new subject.
    fn first(&mut self) -> Told {
        let (wish, tune) = (settings().wish(self.subject.operation), &settings().tune);
        let (shape, number) = (self.places[0].shape(), self.subject.number());
        let known = match (wish, tune) {
            (Wish::Fastest, Tune::On | Tune::File(_)) => {
                locked(learned()).of(&shape, number).cloned()
            }
            _ => None,
        };
        let may_run = |schedule: &Ours| {
            (self.key.is_some() || !schedule.window)
                && settings().sync.is_none_or(|sync| schedule.sync == sync)
        };
        let known = known.filter(|known| known.schedules.iter().all(may_run));
        let known = known.and_then(|known| match known.serves(self.subject, self.places) {
            Ok(()) => Some(known),
            Err(reason) => {
                warn("TOPOCOLL_TUNE", &format!(": {shape}, {}: {reason}", self.subject));
                None
            }
        });
        if let Some(known) = known {
            let (kept, schedules) = (known.kept(), known.schedules);
            let by = by(kept.candidate, &schedules);
            self.trace(&format!("{by}, as measured before"));
            return self.tell(Trial::ended(schedules.len(), kept), schedules);
        }
        let tries = *tune != Tune::Off;
        let (has_window, sync) = (self.key.is_some(), settings().sync);
        let rules = Rules { wish, tries, has_window, sync };
        let decision = decide(self.places, rules, loaded(), self.subject);
        if let Some(warning) = decision.warning
            && world().0 == 0
        {
            once(&warning);
        }
        self.trace(&decision.reason);
        let schedules = decision.ours;
        if decision.tries {
            return self.tell(Trial::new(schedules.len()), schedules);
        }
        let turns = vec![Calls::always(schedules.len().min(1))];
        Told { schedules: (!schedules.is_empty()).then_some(schedules), turns }
    }

    /// Begins a trial of schedules.
    fn tell(&mut self, mut trial: Trial, schedules: Vec<Ours>) -> Told {
        let turns = trial.course();
        self.trial = Some((trial, schedules.clone()));
        Told { schedules: Some(schedules), turns }
    }

    fn trace(&self, reason: &str) {
        trace(self.places, self.label, self.subject, reason);
    }

    fn learn(&self, kept: Kept, schedules: &[Ours]) {
        let (shape, number) = (self.places[0].shape(), self.subject.number());
        locked(learned()).learn(&shape, number, &self.subject.to_string(), schedules, kept);
    }

    /// What a trial has found out.
    fn news(&self, news: &News, schedules: &[Ours]) {
        let us = |nanoseconds: u64| format!("{:.1} us", nanoseconds as f64 / 1e3);
        let by = |candidate| by(candidate, schedules);
        let reason = match news {
            News::Slower(kept, now) => {
                let (by, before) = (by(kept.candidate), us(kept.own));
                format!("{by} now takes {} instead of {before}: tries again", us(*now))
            }
            News::Doubted(kept, replaced, now) => {
                self.learn(*kept, schedules);
                let (library, replaced, now) = (us(kept.library), by(*replaced), us(*now));
                format!("the library, as measured later: {library}, {replaced} {now}")
            }
            News::Kept(kept, tried) => {
                self.learn(*kept, schedules);
                let each = tried.iter().enumerate().map(|(i, &(median, runs))| match runs {
                    0 => format!("{} was far slower", by(i)),
                    1 => format!("{} {} (1 run)", by(i), us(median)),
                    _ => format!("{} {} ({runs} runs)", by(i), us(median)),
                });
                let each: Vec<_> = each.collect();
                format!("{}, as measured: {}", by(kept.candidate), each.join(", "))
            }
        };
        self.trace(&reason);
    }
}

/// The performer of calls.
fn by(candidate: usize, schedules: &[Ours]) -> String {
    match candidate.checked_sub(1).and_then(|i| schedules.get(i)) {
        Some(ours) => ours.to_string(),
        None => "the library".to_owned(),
    }
}

impl Decides for Deciding<'_> {
    fn decide(&mut self, reports: &[&[u8]]) -> String {
        let told = match self.trial.take() {
            None => self.first(),
            Some((mut trial, schedules)) => {
                if let Some(news) = trial.settle(reports) {
                    self.news(&news, &schedules);
                }
                let turns = trial.course();
                self.trial = Some((trial, schedules));
                Told { schedules: None, turns }
            }
        };
        serde_json::to_string(&told).expect("bug: a decision that is not text")
    }

    fn plan(&mut self, text: &[u8]) -> Result<Option<bool>, Failed> {
        let told: Told = serde_json::from_slice(text).map_err(|_| UNDECIDED)?;
        self.turns = told.turns;
        let Some(ours) = told.schedules else { return Ok(None) };
        if ours.iter().any(|ours| ours.window)
            && let (None, Some(key)) = (&self.window, &self.key)
        {
            match Window::new(self.comm, self.rank, self.ranks, key.clone()) {
                Ok(window) => *self.window = Some(window),
                Err(Failed(code)) => {
                    self.refused = Some(format!("no shared window: MPI's error {code}"));
                    return Ok(Some(false));
                }
            }
        }
        let planned = ours.into_iter().map(|ours| {
            let (window, sync) = (ours.window, ours.sync);
            let place = ours.order.iter().flatten().position(|&rank| rank == self.rank);
            let rank = place.map_or(self.rank, |place| place as u32);
            let plan = ours.plan(self.subject, rank)?;
            Ok(Exchange { endpoint: Endpoint::new(plan, 0u64), order: ours.order, window, sync })
        });
        match planned.collect() {
            Ok(planned) => self.schedules = Some(planned),
            Err(error) => self.refused = Some(topocoll::Error::to_string(&error)),
        }
        Ok(Some(self.schedules.is_some()))
    }
}

/// With tracing, the first rank prints a decision and its reason.
pub(crate) fn trace(places: &[Place], label: &str, subject: Subject, reason: &str) {
    if settings().trace {
        let machine = &places[0].machine;
        say(&format!("{label}, {} ranks, {subject}: {reason}", machine.ranks()));
        // The table has the performer without the reason.
        let by = reason.split(", ").next().and_then(|by| by.split(" on ").next());
        let by = by.unwrap_or_default();
        report::performs(&places[0].shape(), &subject.to_string(), by);
    }
}
