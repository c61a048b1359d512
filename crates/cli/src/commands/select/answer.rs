//! The text of `select`: the answer, its assumptions, the best rows, the winners by block size.

mod notes;
mod ranking;
mod rows;

use topocoll::text::printable;
use topocoll::{
    Catalogue, Choice, Exchange, FullyConnected, Priced, Request, Selection, Shape,
    check_counting_work,
};
use topocoll_report::names::{Names, Row, SHOWN};
use topocoll_report::words::rate;

use self::ranking::{Ranking, Unsimulated};
use super::{Report, in_full, over};
use crate::args;
use crate::commands::gains::faster;
use crate::commands::heading::{about_demand, assumed_by};
use crate::commands::whole::Whole;
use crate::commands::within::{about, heading};
use crate::commands::{command_line, of_operation, refused};
use crate::demand::Named;
use crate::render::{Answer, height, seconds};

/// The fewest rows of the table, where the answer would have too many lines.
const FEWEST: usize = 2;

/// Lines of an answer without `--all` and `--why`, without what an MPI library would gain.
const LINES: usize = 12;

/// Above this ratio to the bound, the answer says whether the best algorithm is made for the
/// machine's shape.
const FAR: f64 = 1.5;

/// What was asked, found and is shown.
struct Told<'a> {
    args: &'a args::Select,
    exchange: &'a Exchange<'a>,
    sizes: Option<&'a Named>,
    catalogue: &'a Catalogue,
    selection: &'a Selection,
    report: &'a Report,
    ranking: Ranking<'a>,
    rows: Vec<Row<'a>>,
    names: Names<'a>,
    /// Rows that are left out.
    hidden: usize,
    /// Winners by block size that are shown, if not all.
    winners: usize,
}

pub(super) fn answer(
    args: &args::Select,
    exchange: &Exchange<'_>,
    sizes: Option<&Named>,
    catalogue: &Catalogue,
    selection: &Selection,
    report: &Report,
) -> Answer {
    let ranking = Ranking::new(selection, report.simulated.as_ref());
    // Given schedules always have rows of their own.
    let (given, others): (Vec<_>, Vec<_>) =
        ranking.choices.iter().copied().partition(|(choice, _)| is_given(args, choice));
    let alone = |&(choice, time): &(_, _)| Row::new(choice, time);
    let mut rows: Vec<_> = match args.all {
        true => others.iter().map(alone).collect(),
        false => Row::all(others),
    };
    let distinct = rows.len() + given.len();
    rows.truncate(if args.all { distinct } else { SHOWN.saturating_sub(given.len()).max(1) });
    if !given.is_empty() {
        rows.extend(given.iter().map(alone));
        let place = |row: &Row<'_>| {
            ranking.choices.iter().position(|(choice, _)| std::ptr::eq(*choice, row.choice))
        };
        rows.sort_by_cached_key(place);
    }
    let told = if args.all { ranking.left.len() } else { SHOWN };
    let left = ranking.left.iter().take(told).map(|left| left.choice);
    let names = Names::of_rows(catalogue, selection, &rows, left);
    let names = if names_steps(args) { names.resolved_by(selection) } else { names };
    let hidden = distinct - rows.len();
    let winners = selection.crossovers.len();
    let mut told = Told {
        args,
        exchange,
        sizes,
        catalogue,
        selection,
        report,
        ranking,
        rows,
        names,
        hidden,
        winners,
    };
    loop {
        let text = told.text();
        let lines = report.library.as_ref().map_or(LINES, |_| usize::MAX);
        if !told.is_brief() || height(&text) <= lines {
            break text;
        }
        let last = told.rows.iter().rposition(|row| !is_given(args, row.choice));
        match last {
            Some(last) if told.rows.len() > FEWEST && told.rows.len() >= told.winners => {
                told.rows.remove(last);
                told.hidden += 1;
            }
            _ if told.winners > 0 => told.winners -= 1,
            _ => {
                // The others say little that the answer does not.
                told.rows.retain(|row| is_given(args, row.choice));
                break told.text();
            }
        }
    }
}

/// Whether a choice is a schedule from a file.
fn is_given(args: &args::Select, choice: &Choice) -> bool {
    args.schedule.iter().any(|path| printable(&path.to_string_lossy()) == choice.algorithm)
}

/// Whether other commands resolve numbers of steps by the same ranking, and names are to be short.
fn names_steps(args: &args::Select) -> bool {
    let is_default = args.model.is_none() && args.sync.is_none() && args.budget.is_none();
    is_default && args.schedule.is_empty() && args.part.is_whole() && !args.why
}

impl Told<'_> {
    /// Whether only the answer is asked for, and not all of it nor its reasons.
    fn is_brief(&self) -> bool {
        !self.args.all && !self.args.why && self.report.simulated.is_none()
    }

    fn text(&self) -> Answer {
        let (machine, problem) = (self.exchange.machine(), self.exchange.problem());
        let answer = match self.selection.choices.is_empty() {
            true => Answer::failed("No algorithm serves this exchange."),
            false => Answer::new(self.verdict()),
        };
        let assumed = assumed_by(machine, problem.both_ports(), &self.args.common.options);
        let (unsuited, assumed) = match self.is_brief() {
            true => (String::new(), assumed.trim_end().replace('\n', " ")),
            false => (self.unsuited(), assumed),
        };
        let whole = self.report.whole.as_ref().filter(|_| self.is_brief());
        let faults = whole.map_or(String::new(), Whole::brief);
        let mut answer = answer
            .about(unsuited)
            .about(about_demand(machine, problem, self.sizes) + "." + &faults)
            .assuming(assumed);
        if !self.rows.is_empty() {
            answer = answer.table(&self.table());
        }
        if let Some(gains) = &self.report.library {
            answer = gains.add_to(answer);
        }
        if let Some(winners) = self.winners() {
            answer = answer.also(&winners);
        }
        if self.is_brief() {
            return answer.about(self.failures() + &self.more());
        }
        answer =
            answer.notes(self.notes() + &self.equal() + &self.about_sizes() + &self.left_out());
        answer = answer.list(&self.not_simulated().0, self.not_simulated().1);
        if self.args.why {
            let rejected = of_operation(self.exchange, &self.selection.rejected);
            let rejected = rejected.map(|rejected| (&*rejected.algorithm, &*rejected.reason));
            answer = answer.list("Does not apply:", refused(rejected));
        }
        answer
    }

    /// The name of a choice with the parameters that matter, or with all parameters.
    fn named(&self, choice: &Choice) -> String {
        match self.args.all && self.names.steps(choice).is_none() {
            true => in_full(choice),
            false => self.names.of(choice),
        }
    }

    /// `Use X: 2.138 ms, 1.33x faster than Y, 1.02x the bound.`
    fn verdict(&self) -> String {
        if let Some(trace) = &self.report.trace {
            return over::verdict(trace);
        }
        if self.ranking.undecided > 0 {
            return self.undecided();
        }
        let open = self.ranking.open();
        let Some(&(best, time)) = self.ranking.choices.first() else {
            return self.none_simulated();
        };
        let mut parts = match (self.ranking.model, best.free_running) {
            (Some(model), _) => vec![format!("{} by the {model} model", seconds(time))],
            (None, None) => vec![seconds(time)],
            (None, Some(_)) if self.is_brief() => vec![seconds(time)],
            (None, Some(run)) => {
                let in_step = format!("{} in step", seconds(best.price.time.total()));
                vec![in_step, self.free_running(run.seconds)]
            }
        };
        let others = self.ranking.choices.iter();
        let others = others.filter(|(choice, _)| choice.algorithm != best.algorithm);
        if let Some(&(next, other)) = others.min_by(|a, b| a.1.total_cmp(&b.1)) {
            let faster = faster(other / time);
            let least = if next.price.priced == Priced::AtLeast { "at least " } else { "" };
            parts.push(format!("{least}{faster} {}", next.algorithm));
        }
        if let Some(gains) = self.report.library.as_ref()
            && best.price.priced != Priced::AtLeast
        {
            parts.push(gains.over_default(best));
        }
        if self.ranking.model.is_none() {
            parts.push(format!("{:.2}x the bound", self.ratio(best)));
        }
        let name = self.named(best);
        let mut parts = parts.join(", ");
        if time.is_finite() && time > 0.0 && self.sizes.is_none() {
            parts += &format!("; {}", rate(self.exchange.problem(), &self.selection.bound, time));
        }
        let choices = match open.len() {
            1 => "1 choice is".to_owned(),
            many => format!("{many} choices are"),
        };
        let predicted = |choice: &Choice| choice.price.time.total();
        match open.first() {
            None => format!("Use {name}: {parts}.{}", self.given()),
            Some(first) if predicted(first) < predicted(best) => format!(
                "Undecided: {name} takes {parts}; {choices} not simulated, and the steps model ranks {} higher.",
                self.named(first)
            ),
            Some(_) => format!("Use {name}: {parts}; {choices} not simulated, and may be faster."),
        }
    }

    /// ` mine.jsonl: 39.17 us, 1.26x slower than direct.`, of each given schedule that is not the best choice.
    fn given(&self) -> String {
        let Some((&(best, least), others)) = self.ranking.choices.split_first() else {
            return String::new();
        };
        let others = others.iter().filter(|(choice, _)| is_given(self.args, choice));
        let told = others.map(|&(choice, time)| {
            let slower = faster(least / time);
            format!(" {}: {}, {slower} {}.", choice.algorithm, seconds(time), best.algorithm)
        });
        told.collect()
    }

    /// The time over the bound, of the time by which choices are ranked.
    fn ratio(&self, choice: &Choice) -> f64 {
        match choice.free_running.is_some_and(|run| run.seconds.is_finite()) {
            true => choice.ranked_seconds() / self.selection.bound.seconds,
            false => choice.bound_ratio,
        }
    }

    /// `682.4 us free-running (wormhole)`, of the best choice.
    fn free_running(&self, time: f64) -> String {
        let Some(found) = &self.selection.without_barriers else { return String::new() };
        let other = found
            .otherwise
            .map_or(String::new(), |(model, time)| format!("; {} by {model}", seconds(time)));
        match time.is_finite() {
            true => format!("{} free-running ({}{other})", seconds(time), found.model),
            false => format!("a deadlock free-running ({}{other})", found.model),
        }
    }

    /// The answer if no choice is simulated.
    fn none_simulated(&self) -> String {
        let first = self.named(&self.selection.choices[0]);
        format!("Undecided: no choice is simulated. The steps model puts {first} first.")
    }

    /// The choices that are not simulated, with a heading.
    fn not_simulated(&self) -> (String, String) {
        let Some(simulated) = &self.report.simulated else { return Default::default() };
        let left = &self.ranking.left;
        let shown = if self.args.all { left.len() } else { SHOWN };
        let mut lines = String::new();
        let mut more = 0;
        for (i, Unsimulated { choice, estimate, reason }) in left.iter().enumerate() {
            if i < shown || is_given(self.args, choice) {
                lines += &format!("  {}: {}\n", self.named(choice), about(estimate, reason));
            } else {
                more += 1;
            }
        }
        if more > 0 {
            lines += &format!("  and {more} more, which --all lists\n");
        }
        (heading(simulated.budget_seconds, &simulated.raise), lines)
    }

    /// The choices that may be faster than the best, and the command that decides.
    fn undecided(&self) -> String {
        let (Some(best), [first, ..]) = (self.selection.best(), self.selection.undecided()) else {
            return String::new();
        };
        let least = |choice: &Choice| seconds(choice.price.time.total());
        let others = match self.selection.undecided().len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more such settings)"),
        };
        let exact = match best.price.priced {
            Priced::AtLeast => "no choice is priced exactly".to_owned(),
            _ => format!("{} takes {}", self.named(best), least(best)),
        };
        let (common, setting) = (&self.args.common, &first.parameters);
        let simulate = command_line("simulate", common, Some(&first.algorithm), setting);
        let counting = self
            .exchange
            .schedule(&first.algorithm, setting)
            .and_then(|schedule| Ok(check_counting_work(&schedule, self.exchange.machine())?));
        let settle = match counting {
            Ok(()) => format!("To decide: {simulate}"),
            Err(error) => format!("`{simulate}` is refused: {error}."),
        };
        format!(
            "Undecided: {exact}; {} takes at least {} and is not priced exactly{others}.\n{settle}\n",
            self.named(first),
            least(first),
        )
    }

    /// One sentence if the best choice is far from the bound and serves any machine of as many
    /// ranks: its algorithm is not made for this shape.
    fn unsuited(&self) -> String {
        let (machine, problem) = (self.exchange.machine(), self.exchange.problem());
        // The bound is of the steps model, and on a complete graph no algorithm ignores links.
        let asks =
            self.ranking.model.is_none() && !matches!(machine.topology.shape(), Shape::Complete);
        let Some(best) = self.selection.best().filter(|best| asks && best.bound_ratio > FAR) else {
            return String::new();
        };
        let Ok(anywhere) = FullyConnected::new(problem.ranks) else { return String::new() };
        let request = Request::new(problem, &anywhere).of(self.sizes.map(|sizes| &sizes.demand));
        let made_for = |choice: &&Choice| {
            let algorithm = self.catalogue.find(&choice.algorithm);
            algorithm.is_ok_and(|algorithm| request.solve(algorithm, &choice.parameters).is_err())
        };
        if made_for(&best) {
            return String::new();
        }
        let shared = match best.price.link_contention {
            0 | 1 => String::new(),
            most => format!(": up to {most} of its messages share a link"),
        };
        let nearest = self.ranking.choices.iter().map(|(choice, _)| *choice).find(made_for);
        match nearest {
            Some(nearest) => format!(
                "{} is not made for this shape{shared}. The nearest that is: {}, {}, {:.2}x the bound.",
                best.algorithm,
                self.named(nearest),
                seconds(nearest.price.time.total()),
                nearest.bound_ratio,
            ),
            None => format!("No algorithm here is made for this shape{shared}."),
        }
    }
}
