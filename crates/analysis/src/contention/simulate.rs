use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use topocoll_schedule::{RankClasses, Sync};
use topocoll_topology::{Machine, Shape, parallel};

use super::classes::ChannelClasses;
use super::clock::{Clock, within};
use super::closed::{Shares, closed};
use super::fold::Fold;
use super::models::{Of, check_model, limited};
use super::network::{Contents, Interval, LinkUse, Network};
use super::ranks::{Ranks, Simulated};
use super::run::{Outcome, run};
use super::settings::{Dateline, MAX_VCS, Routing, Settings};
use super::simulation::{Request, Simulation};
use super::survey::{Survey, survey};
use super::timeline::RankStep;
use super::total::Total;
use crate::AnalysisError;
use crate::error::{check_memory, check_ranks, check_work};
use crate::symmetry::Equivalent;
use crate::traffic::Posted;
use crate::visit::Source;

/// Simulates traffic on a machine.
///
/// Time is proportional to the hops of all messages (wormhole), the hops of all flits (flit), or
/// messages times concurrent flows times hops (fluid). Memory is proportional to the links, and to
/// the hops of the messages in flight.
///
/// # Errors
/// Settings out of range, traffic of another machine, too many messages or bytes, times out of
/// range, routes that require more virtual channels, or a schedule in which a rank waits for
/// a message that is not sent. All but the last are found before the simulation starts.
pub fn simulate(request: &Request<'_>) -> Result<Simulation, AnalysisError> {
    let machine = &limited(request.model, request.machine);
    let request = &Request { machine, ..*request };
    let Request { traffic, model, mut settings, .. } = *request;
    settings.check()?;
    check_ranks(traffic.nodes(), machine)?;
    check_model(model, machine, &settings)?;
    let clock = Clock::new(machine, &settings, traffic.block_bytes());
    if clock.cycle == 0 && model.needs_links {
        return Err(AnalysisError::Time { what: "a flit takes less than a picosecond".to_owned() });
    }
    let equivalent = equivalent(Source::of(traffic), &traffic.classes(), machine, &settings);
    let classes = &equivalent.classes;
    let progress = &request.control.progress;
    (progress.starting)("building messages", 0);
    let survey = survey(traffic, machine, &clock, classes)?;
    if settings.routing == Routing::Adaptive && model.needs_links && survey.turns_back {
        return Err(AnalysisError::Routing {
            rule: "the schedule gives routes that are not in dimension order: adaptive routing in the \
                   flit model requires it of given routes"
                .to_owned(),
        });
    }
    let ranks = simulated(request, &equivalent)?;
    let closed = closed(request, &clock, &survey, classes)?;
    check(request, &survey, &closed.steps, &clock, &ranks)?;
    let dateline = settings.dateline.unwrap_or(match survey.goes_far {
        true => Dateline::Crossing,
        false => Dateline::Entry,
    });
    let simulated = !closed.steps.iter().all(|&closed| closed);
    let classed = classed(request, &survey) && simulated;
    let own = OnceLock::new();
    let channels = classed.then(|| {
        (progress.starting)("assigning virtual channels", 0);
        let find = || Arc::new(ChannelClasses::fewest(traffic, machine, settings.vcs));
        Arc::clone(request.channels.unwrap_or(&own).get_or_init(find))
    });
    let count = channels.as_ref().map_or(0, |classes| classes.count());
    let most = if request.vcs_as_required { MAX_VCS } else { settings.vcs };
    if count > most {
        return Err(ChannelClasses::too_many(machine, count, most));
    }
    settings.vcs = settings.vcs.max(count);
    let make = || {
        let channels = channels.clone();
        let of = Of { dateline, channels, ranks: ranks.ranks(), records: request.records };
        (model.make)(machine, &settings, &clock, of)
    };
    let messages = u64::try_from(survey.messages).unwrap_or(u64::MAX);
    (progress.starting)("simulating messages", messages);
    let mut total = Total::new(&clock, settings.vcs);
    total.link_seconds = closed.link_seconds;
    match request.sync {
        Sync::Free => {
            total.closed = closed.first.steps.len() as u32;
            total.add(closed.first, 0);
            let steps = total.closed..traffic.steps();
            if !steps.is_empty() {
                let mut network = make();
                let start = |rank| closed.starts[classes.class_of(rank) as usize];
                let control = &request.control;
                let start = (&start as &dyn Fn(_) -> _, request.timeline);
                let out = run(traffic, &clock, &ranks, &mut *network, steps, start, control)?;
                total.add(out, 0);
                total.use_links(&mut *network);
            }
        }
        Sync::Barrier => {
            apart(request, &survey, &closed.steps, (&clock, &ranks, classes), &make, &mut total)?;
        }
    }
    let fold = Fold::new(machine, &settings, ranks.ranks());
    Ok(total.close(&clock.kinds, &ranks, &fold))
}

/// Whether virtual channels have classes by the routes of the traffic: on graphs, and on grids for routes that
/// are not in dimension order, unless datelines are asked for.
fn classed(request: &Request<'_>, survey: &Survey) -> bool {
    request.model.virtual_channels
        && match request.machine.topology.network() {
            Shape::Graph(_) => true,
            Shape::Grid(_) => survey.turns_back && request.settings.dateline.is_none(),
            Shape::Complete | Shape::Clustered(_) => false,
        }
}

/// The equivalent ranks of messages with these classes. Which of several shortest routes are taken depends on
/// the order of links, which only a numbering keeps.
pub(super) fn equivalent(
    source: Source<'_>,
    classes: &RankClasses,
    machine: &Machine,
    settings: &Settings,
) -> Equivalent {
    match settings.routing {
        Routing::DimensionOrder => source.equivalent(classes, &*machine.topology),
        Routing::Adaptive => Equivalent::by_numbering(classes, &*machine.topology),
    }
}

/// The ranks to simulate.
fn simulated(request: &Request<'_>, ranks: &Equivalent) -> Result<Simulated, AnalysisError> {
    let every =
        || Ok(Simulated::of(Equivalent::every(&*request.machine.topology), request.machine));
    let refuse = |rule| Err(AnalysisError::Classes { model: request.model.name, rule });
    match request.ranks {
        Some(Ranks::Classes) if !request.model.folds => refuse(
            "its datelines and its order of simultaneous requests depend on the ranks' numbers",
        ),
        Some(Ranks::Classes) if request.records => {
            refuse("a trace or a table of links has every rank")
        }
        None if !request.model.folds || request.records => every(),
        Some(Ranks::Every) => every(),
        None | Some(Ranks::Classes) => Ok(Simulated::of(ranks.clone(), request.machine)),
    }
}

/// Checks that a run fits in memory and in the clock.
fn check(
    request: &Request<'_>,
    survey: &Survey,
    closed: &[bool],
    clock: &Clock<'_>,
    ranks: &Simulated,
) -> Result<(), AnalysisError> {
    /// The most messages of a run: hours.
    const MESSAGES: u128 = 1 << 30;
    let nodes = u128::from(ranks.count());
    let equivalent = u128::from(ranks.equivalent);
    let mut latest = 0u128;
    let (mut simulated, mut largest) = (0u128, 0);
    for (step, &closed) in survey.steps.iter().zip(closed) {
        latest += u128::from(clock.barrier());
        latest += u128::from(step.alone);
        let messages = if closed { 0 } else { u128::from(step.messages) / equivalent };
        (simulated, largest) = (simulated + messages, messages.max(largest));
    }
    within(latest)?;
    check_work("simulating", simulated, MESSAGES)?;
    let outstanding = survey.sends.min(clock.window());
    let live = (nodes * outstanding as u128).min(survey.messages / equivalent);
    let waiting_sends = nodes * (survey.sends - outstanding) as u128;
    // Networks at once, the messages of each, and the number of copies of the links.
    let (networks, messages, kept) = match (request.sync, simulated) {
        (_, 0) => (0, 0, 0),
        (Sync::Free, _) => (1, simulated, 1),
        (Sync::Barrier, _) => (parallel::threads() as u128, largest, waiting() as u128),
    };
    let contents = Contents { live, hops: survey.hops, messages };
    let fold = Fold::new(request.machine, &request.settings, ranks.ranks());
    let links = fold.links() as u128 * size_of::<LinkUse>() as u128;
    let needed = networks
        * ((request.model.memory)(request.machine, &request.settings, ranks.ranks(), &contents)
            + nodes * 96
            + waiting_sends * 2 * size_of::<Posted>() as u128)
        + kept * links
        + match classed(request, survey) && networks > 0 {
            true => {
                ChannelClasses::memory(request.machine, MAX_VCS, survey.messages, survey.all_hops)
            }
            false => 0,
        }
        + survey.steps.len() as u128 * 64
        + if request.records { survey.all_hops * size_of::<Interval>() as u128 } else { 0 }
        + if request.timeline {
            nodes * (survey.steps.len() * size_of::<RankStep>()) as u128
        } else {
            0
        };
    let what = "the network, the messages in flight and the records";
    check_memory(what, needed, request.memory)?;
    // Channels of links, ports and injection are numbered in 32 bits.
    let numbered = match simulated {
        0 => 0,
        _ if request.model.folds => fold.count(),
        _ => fold.channels.pools().max(fold.channels.shared()),
    };
    check_work(
        "numbering the channels of all links and ports",
        u128::from(numbered).saturating_sub(1),
        u32::MAX.into(),
    )
}

/// Runs steps under barriers, several at once.
fn apart<'a>(
    request: &Request<'a>,
    survey: &Survey,
    closed: &[bool],
    (clock, ranks, classes): (&Clock<'_>, &Simulated, &RankClasses),
    make: &(dyn Fn() -> Box<dyn Network + 'a> + std::marker::Sync),
    total: &mut Total,
) -> Result<(), AnalysisError> {
    /// The number of pieces, each with its own network: enough for all threads.
    const PIECES: usize = 64;
    let steps: Vec<u32> = (0..request.traffic.steps()).collect();
    let piece = steps.len().div_ceil(PIECES).max(1);
    let run_piece = |steps: &[u32]| {
        let mut network: Option<Box<dyn Network + 'a>> = None;
        let mut outs = Vec::new();
        let (mut now, mut stopped) = (0, false);
        for &step in steps {
            stopped = (request.control.stop)();
            if stopped {
                break;
            }
            if closed[step as usize] {
                outs.push(None);
                continue;
            }
            let network = &mut **network.get_or_insert_with(make);
            let mut out = run(
                request.traffic,
                clock,
                ranks,
                network,
                step..step + 1,
                (&|_| now, false),
                &request.control,
            )?;
            out.rebase(now);
            now = within(u128::from(now) + u128::from(out.end))?;
            let ended = out.partial;
            let intervals = network.take_intervals();
            outs.push(Some((out, intervals, now)));
            if ended {
                break;
            }
        }
        Ok((outs, network.map(|network| network.links().to_vec()), stopped))
    };
    let mut shares = Shares::new(request, clock, classes);
    let mut starts = vec![0; classes.count() as usize];
    let mut step = 0;
    // Results of a piece are kept until earlier pieces are added.
    for some in steps.chunks(piece * waiting()) {
        let pieces = parallel::chunks(some, piece).map(run_piece);
        for piece in pieces.collect::<Vec<_>>() {
            let (outs, links, stopped) = piece?;
            for out in outs {
                let before = total.time;
                match out {
                    None => {
                        total.add_closed(survey.steps[step].alone);
                        let mut alone = Outcome::default();
                        starts.fill(0);
                        shares.step(step as u32, &mut starts, Some(&mut alone));
                        total.add_alone(&alone, before);
                    }
                    Some((out, intervals, ended)) => {
                        let began = ended - out.end;
                        total.intervals.extend(intervals.into_iter().map(|mut interval| {
                            interval.start = interval.start - began + before;
                            interval.end = interval.end - began + before;
                            interval
                        }));
                        total.add(out, before);
                    }
                }
                if total.out.partial {
                    break;
                }
                let moves = survey.steps[step].messages > 0;
                let later = survey.steps[step + 1..].iter().any(|step| step.messages > 0);
                if moves && later {
                    total.time += clock.barrier();
                    within(total.time.into())?;
                }
                step += 1;
            }
            if let Some(links) = links {
                total.merge_links(&links);
            }
            total.out.partial |= stopped;
            if total.out.partial {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The most pieces whose results wait to be added: enough to keep all threads busy.
fn waiting() -> usize {
    4 * parallel::threads()
}
