//! The first rank's decisions, and every rank's plans to follow them.

use serde::{Deserialize, Serialize};
use topocoll::exec::Endpoint;

use super::super::course::{Calls, Course};
use super::super::decision::{Rules, decide};
use super::super::library::loaded;
use super::super::ours::{Ours, Subject};
use super::super::process::{learned, once, say, settings, warn, world};
use super::super::report;
use super::super::settings::{Tune, Wish};
use super::super::trial::{Kept, News, Trial};
use super::super::vector::Exchange;
use super::{Communicator, UNDECIDED};
use crate::failed::{Failed, locked};
use crate::protocol::Stage;
use crate::window::Window;

/// The first rank's decision, as it tells the others.
#[derive(Serialize, Deserialize)]
struct Told {
    /// Schedules, the first time.
    schedules: Option<Vec<Ours>>,
    turns: Vec<Calls>,
}

/// What the first rank tells, and its trial.
type Decision = (Told, Option<(Trial, Vec<Ours>)>);

impl Communicator {
    /// Goes through a call that has begun, up to an exchange or the library's call: whether the ranks follow a
    /// decision. A call about a subject decides it.
    ///
    /// # Errors
    /// This rank or another fails.
    pub(super) fn follows(&mut self, subject: Subject) -> Result<bool, Failed> {
        let (mut own_trial, mut told) = (None, None);
        loop {
            match self.channel.words.next()? {
                Stage::Decide => {
                    let (told, trial) = self.decision(subject);
                    own_trial = trial;
                    let text = serde_json::to_string(&told);
                    let text = text.expect("bug: a decision that is not text");
                    self.channel.words.protocol.decided(text);
                }
                Stage::Plan(text) => {
                    let Told { schedules, turns } =
                        serde_json::from_str(&text).map_err(|_| UNDECIDED)?;
                    let planned = schedules.map(|ours| self.planned(subject, ours));
                    self.channel.words.protocol.planned(planned.as_ref().map(Result::is_ok));
                    told = Some((planned.transpose(), turns));
                }
                stage => {
                    let follows = stage == Stage::Follow;
                    let told = told.filter(|_| !self.channel.words.protocol.is_lost());
                    let Some((planned, turns)) = told else { return Ok(follows) };
                    if !follows && self.rank == 0 {
                        let other = || "another rank has no plan".to_owned();
                        let reason = planned.as_ref().err().cloned().unwrap_or_else(other);
                        self.trace(subject, &format!("forwarded, {reason}"));
                    }
                    let decided = self.decided.entry(subject.number()).or_default();
                    if follows {
                        (decided.course, decided.trial) = (Course::new(&turns), own_trial);
                        decided.schedules.extend(planned.ok().flatten().unwrap_or_default());
                    }
                    return Ok(follows);
                }
            }
        }
    }

    /// The first rank's decision, with the reports of all ranks.
    fn decision(&mut self, subject: Subject) -> Decision {
        if let Some(decided) = self.decided.get_mut(&subject.number())
            && let Some((mut trial, schedules)) = decided.trial.take()
        {
            let others = self.channel.words.protocol.reports();
            let reports: Vec<_> = std::iter::once(decided.course.samples()).chain(others).collect();
            if let Some(news) = trial.settle(&reports) {
                self.news(subject, &news, &schedules);
            }
            return (Told { schedules: None, turns: trial.course() }, Some((trial, schedules)));
        }
        let (wish, tune) = (settings().wish(subject.operation), &settings().tune);
        let (shape, has_window) = (self.shape(), self.name.is_kept);
        let known = match (wish, tune) {
            (Wish::Fastest, Tune::On | Tune::File(_)) => {
                locked(learned()).of(&shape, subject.number()).cloned()
            }
            _ => None,
        };
        let may_run = |schedule: &Ours| {
            (has_window || !schedule.window)
                && settings().sync.is_none_or(|sync| schedule.sync == sync)
        };
        let known = known.filter(|known| known.schedules.iter().all(may_run));
        let known = known.and_then(|known| match known.serves(subject, &self.places) {
            Ok(()) => Some(known),
            Err(reason) => {
                warn("TOPOCOLL_TUNE", &format!(": {shape}, {subject}: {reason}"));
                None
            }
        });
        if let Some(known) = known {
            let (kept, schedules) = (known.kept(), known.schedules);
            let by = by(kept.candidate, &schedules);
            self.trace(subject, &format!("{by}, as measured before"));
            return begun(Trial::ended(schedules.len(), kept), schedules);
        }
        let rules = Rules { wish, tries: *tune != Tune::Off, has_window, sync: settings().sync };
        let decision = decide(&self.places, rules, loaded(), subject);
        if let Some(warning) = decision.warning
            && world().0 == 0
        {
            once(&warning);
        }
        self.trace(subject, &decision.reason);
        let schedules = decision.ours;
        if decision.tries {
            return begun(Trial::new(schedules.len()), schedules);
        }
        let turns = vec![Calls::always(schedules.len().min(1))];
        (Told { schedules: (!schedules.is_empty()).then_some(schedules), turns }, None)
    }

    /// What a trial has found out.
    fn news(&self, subject: Subject, news: &News, schedules: &[Ours]) {
        let us = |nanoseconds: u64| format!("{:.1} us", nanoseconds as f64 / 1e3);
        let by = |candidate| by(candidate, schedules);
        let learn = |kept: &Kept| {
            let (shape, number) = (self.shape(), subject.number());
            locked(learned()).learn(&shape, number, &subject.to_string(), schedules, *kept);
        };
        let reason = match news {
            News::Slower(kept, now) => {
                let (by, before) = (by(kept.candidate), us(kept.own));
                format!("{by} now takes {} instead of {before}: tries again", us(*now))
            }
            News::Doubted(kept, replaced, now) => {
                learn(kept);
                let (library, replaced, now) = (us(kept.library), by(*replaced), us(*now));
                format!("the library, as measured later: {library}, {replaced} {now}")
            }
            News::Kept(kept, tried) => {
                learn(kept);
                let each = tried.iter().enumerate().map(|(i, &(median, runs))| match runs {
                    0 => format!("{} was far slower", by(i)),
                    1 => format!("{} {} (1 run)", by(i), us(median)),
                    _ => format!("{} {} ({runs} runs)", by(i), us(median)),
                });
                let each: Vec<_> = each.collect();
                format!("{}, as measured: {}", by(kept.candidate), each.join(", "))
            }
        };
        self.trace(subject, &reason);
    }

    /// This rank's plans.
    ///
    /// # Errors
    /// The reason for a missing plan.
    fn planned(&mut self, subject: Subject, ours: Vec<Ours>) -> Result<Vec<Exchange>, String> {
        if self.window.is_none() && ours.iter().any(|ours| ours.window) {
            let window = Window::new(self.comm(), self.rank, self.ranks);
            let why = |Failed(code)| format!("no shared window: MPI's error {code}");
            self.window = Some(window.map_err(why)?);
        }
        let planned = ours.into_iter().map(|ours| {
            let (window, sync) = (ours.window, ours.sync);
            let place = ours.order.iter().flatten().position(|&rank| rank == self.rank);
            let rank = place.map_or(self.rank, |place| place as u32);
            let plan = ours.plan(subject, rank)?;
            Ok(Exchange { endpoint: Endpoint::new(plan, 0u64), order: ours.order, window, sync })
        });
        planned.collect::<Result<_, topocoll::Error>>().map_err(|error| error.to_string())
    }

    /// With tracing, the first rank prints a decision and its reason.
    fn trace(&self, subject: Subject, reason: &str) {
        if settings().trace {
            say(&format!("{}, {} ranks, {subject}: {reason}", self.label, self.ranks));
            // The table has the performer without the reason.
            let by = reason.split(", ").next().and_then(|by| by.split(" on ").next());
            report::performs(&self.shape(), &subject.to_string(), by.unwrap_or_default());
        }
    }
}

/// The begin of a trial of schedules.
fn begun(mut trial: Trial, schedules: Vec<Ours>) -> Decision {
    let (turns, told) = (trial.course(), Some(schedules.clone()));
    (Told { schedules: told, turns }, Some((trial, schedules)))
}

/// The performer of calls.
fn by(candidate: usize, schedules: &[Ours]) -> String {
    match candidate.checked_sub(1).and_then(|i| schedules.get(i)) {
        Some(ours) => ours.to_string(),
        None => "the library".to_owned(),
    }
}
