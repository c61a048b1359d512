//! The notes beneath the table: why the best wins, its proof, the winners by block size, and what is left out.

use topocoll::contention::Settings;
use topocoll::{Choice, Priced};
use topocoll_report::names::Row;

use super::super::reason;
use super::Told;
use crate::commands::sweep::not_searched;
use crate::commands::within::two_digits;
use crate::commands::{command_line, of_operation, plural};
use crate::render::{self, Field, Table, blocks, bytes, seconds, table};

impl Told<'_> {
    /// Why the best wins, the bounds, and the proof.
    pub(super) fn notes(&self) -> String {
        let mut out = match &self.report.simulated {
            None if !self.is_tied() => {
                reason(self.selection, |choice| choice.algorithm.clone()) + ".\n"
            }
            _ => String::new(),
        };
        if let Some(simulated) = self.report.simulated.as_ref().filter(|s| !s.order.is_empty()) {
            out += &match simulated.order.first() {
                Some(&first) if first != 0 => format!(
                    "The steps model puts {} first.\n",
                    self.named(&self.selection.choices[0])
                ),
                _ if simulated.order_differs => {
                    "The steps model has the same first choice and another order after it.\n"
                        .to_owned()
                }
                _ => "The steps model has the same order.\n".to_owned(),
            };
        }
        out += &self.without_barriers();
        let by = if self.report.simulated.is_some() { " of the steps model" } else { "" };
        let bound = &self.selection.bound;
        out += &format!(
            "Lower bounds{by}: {}, {} step{}, volume {} and charged volume {} (in blocks).\n",
            seconds(bound.seconds),
            bound.steps,
            plural(bound.steps as usize),
            blocks(bound.blocks),
            blocks(bound.link_blocks),
        );
        if let Some(whole) = &self.report.whole {
            out += &whole.text(self.report.bound, None);
        }
        out += &self.proof();
        if self.sizes.is_some() {
            out += &format!(
                "Each message counts with its own bytes; both ends know the sizes. A block is the mean size, rounded up: {}.\n",
                bytes(self.exchange.problem().block_bytes)
            );
        }
        out
    }

    /// What keeping in step would win, what a program without a schedule does, and what the simulations need.
    fn without_barriers(&self) -> String {
        let mut out = String::new();
        if let Some(found) = self.selection.in_step() {
            out += &format!(
                "{} would win if a barrier cost less than {}.\n",
                self.named(&self.selection.choices[found.choice]),
                seconds(found.barrier)
            );
        }
        if let Some(time) = self.selection.all_at_once {
            out += &format!("All at once: {} by fluid with all ports.\n", seconds(time));
        }
        let several = self.rows.iter().filter_map(|row| {
            let run = row.choice.free_running?;
            let needs = run.virtual_channels > Settings::default().vcs;
            needs.then(|| format!("{} for {}", run.virtual_channels, self.named(row.choice)))
        });
        let several: Vec<_> = several.collect();
        if !several.is_empty() {
            let some = several.join(", ");
            out += &format!("Virtual channels of a link, as the routes require them: {some}.\n");
        }
        out
    }

    /// A line for each row that stands for other algorithms too.
    pub(super) fn equal(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let mut others: Vec<&Choice> = Vec::new();
            for &other in row.others.iter().filter(|other| other.algorithm != row.choice.algorithm)
            {
                if others.iter().all(|known| known.algorithm != other.algorithm) {
                    others.push(other);
                }
            }
            let names: Vec<_> = others.into_iter().map(|other| self.named(other)).collect();
            if let [first @ .., last] = &names[..] {
                let names = match first {
                    [] => last.clone(),
                    first => format!("{} and {last}", first.join(", ")),
                };
                out += &format!("{} costs the same as {names}.\n", self.named(row.choice));
            }
        }
        out
    }

    /// Whether another algorithm costs as much as the best. True if no algorithm applies.
    pub(super) fn is_tied(&self) -> bool {
        self.selection.best().is_none_or(|best| {
            let row = Row::new(best, best.ranked_seconds());
            (self.selection.choices.iter())
                .filter(|other| other.algorithm != best.algorithm)
                .any(|other| row.costs_as(other, other.ranked_seconds()))
        })
    }

    /// The proof that the best choice delivers, or the command that proves it.
    fn proof(&self) -> String {
        let Some(best) = &self.report.recommended else { return String::new() };
        match self.report.best_delivers {
            Some(true) => {
                "Proof: its schedule was replayed, and every block of every rank arrives.\n"
                    .to_owned()
            }
            Some(false) => "Its schedule was replayed and does NOT deliver.\n".to_owned(),
            None => {
                let (name, setting) = (&*best.algorithm, &best.parameters);
                let verify = command_line("verify", &self.args.common, Some(name), setting);
                format!("Proof: {verify}{}\n", self.args.part)
            }
        }
    }

    /// The winners by block size around this one: a size, the choice from there on, its time.
    pub(super) fn winners(&self) -> Option<Table> {
        let (all, own_bytes) = (&self.selection.crossovers, self.exchange.problem().block_bytes);
        if all.len() < 2 || self.winners == 0 {
            return None;
        }
        let current = all.partition_point(|one| one.block_bytes <= own_bytes).saturating_sub(1);
        let first = (current + 1).saturating_sub(self.winners / 2).min(all.len() - self.winners);
        let undecided = |from: u64| [bytes(from), "undecided".to_owned(), String::new()];
        let least = all.first().filter(|one| first == 0 && one.block_bytes > 1);
        let shown = (first..).zip(&all[first..first + self.winners]);
        let rows = shown.flat_map(|(place, one)| {
            let (name, parameters) = (&one.algorithm, &one.parameters);
            let name = match self.args.all {
                true => render::named(name, parameters),
                false => render::named(name, &self.names.complete(name, parameters)),
            };
            let mark = if one.changes.is_empty() || self.is_brief() { "" } else { "*" };
            let own = [bytes(one.block_bytes), name + mark, seconds(one.seconds)];
            let open = one.to_bytes.map(|last| undecided(last + 1));
            // The block that is asked for may be decided where others are not.
            let asked = self.selection.best().filter(|best| {
                let is_open = one.to_bytes.is_some_and(|last| last < own_bytes);
                let is_next = all.get(place + 1).is_none_or(|next| own_bytes < next.block_bytes);
                is_open
                    && is_next
                    && best.price.priced != Priced::AtLeast
                    && self.ranking.undecided == 0
            });
            let asked = asked
                .map(|best| [bytes(own_bytes), self.named(best), seconds(best.price.time.total())]);
            let beyond = asked.is_some().then(|| undecided(own_bytes + 1));
            [Some(own), open, asked, beyond].into_iter().flatten()
        });
        let rows = least.map(|_| undecided(1)).into_iter().chain(rows);
        let rows =
            rows.map(|[from, name, time]| vec![from.into(), Field::Prose(name), time.into()]);
        let header = match (&self.report.simulated, &self.selection.without_barriers) {
            (Some(_), _) => "fastest in the steps model",
            (None, Some(_)) => "fastest in step",
            (None, None) => "fastest",
        };
        Some(table(&["from", header, "time"], 2, rows))
    }

    /// That the schedule does not deliver.
    pub(super) fn failures(&self) -> String {
        if self.report.best_delivers == Some(false) { self.proof() } else { String::new() }
    }

    /// The options that show more, in a line.
    pub(super) fn more(&self) -> String {
        let mut parts = vec![
            format!("--all shows {} choices", self.selection.choices.len()),
            "--why says why".to_owned(),
        ];
        let searches = &self.selection.unsearched;
        if let Some(most) = searches.iter().map(|one| one.seconds).max_by(f64::total_cmp) {
            let names: Vec<_> = searches.iter().map(|one| &*one.algorithm).collect();
            parts.push(format!(
                "--budget {}s searches {}, which may be faster",
                two_digits(most, f64::ceil),
                names.join(" and ")
            ));
        }
        format!("{}.\n", parts.join("; "))
    }

    /// What the winners by block size do not say, and with `--all` where the settings of one algorithm cross.
    pub(super) fn about_sizes(&self) -> String {
        let mut out = self.changes();
        let crossovers = &self.selection.crossovers;
        let splits = |name: &&String| crossovers.iter().any(|one| one.algorithm == **name);
        for name in self.selection.split.iter().filter(splits) {
            out += &format!(
                "{name} splits blocks: its sizes there are exact to the bytes of a part.\n"
            );
        }
        for extremes in self.selection.extremes.iter().filter(|_| self.args.all) {
            out += &format!(
                "{} and {} cross at a block of {}.\n",
                self.named(&self.selection.choices[extremes.fewest_steps]),
                self.named(&self.selection.choices[extremes.least_volume]),
                bytes(extremes.block_bytes),
            );
        }
        out
    }

    /// The sizes at which another choice is the best of what runs.
    fn changes(&self) -> String {
        let Some(found) = &self.selection.without_barriers else { return String::new() };
        let changes = self.selection.crossovers.iter().flat_map(|one| &one.changes);
        let changes: Vec<u64> = changes.copied().collect();
        if changes.is_empty() {
            return match found.up_to.filter(|_| self.args.all) {
                Some(last) => {
                    format!("Winners by block size above {} were not simulated.\n", bytes(last))
                }
                None => String::new(),
            };
        }
        // Successive powers of 2 are a range.
        let ranges = changes.chunk_by(|&size, &next| next == 2 * size).map(|range| match range {
            [first, .., last] => format!("{} to {}", bytes(*first), bytes(*last)),
            one => bytes(one[0]),
        });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        let more = found.up_to.map_or("", |_| " (larger sizes were not simulated)");
        format!("* Free-running, another choice is the best: {ranges}{more}.\n")
    }

    /// What the text leaves out, and the options that show it.
    pub(super) fn left_out(&self) -> String {
        let mut out = String::new();
        for partly in &self.selection.partly_priced {
            out += &format!(
                "Of the {} settings of {}, {} were counted: those that trade steps for blocks best.\n",
                partly.settings, partly.algorithm, partly.priced
            );
        }
        out += &not_searched(&self.selection.unsearched);
        if self.args.all && self.narrow() {
            out += "Terms of each time: 100 columns have room for them, or --json.\n";
        }
        let mut parts = Vec::new();
        if self.hidden > 0 {
            parts.push(format!("--all shows {} choices", self.selection.choices.len()));
        }
        let refused = of_operation(self.exchange, &self.selection.rejected).count();
        if !self.args.why && refused > 0 {
            let plural = if refused == 1 { " does" } else { "s do" };
            parts.push(format!("--why says why {refused} algorithm{plural} not apply"));
        }
        if !parts.is_empty() {
            out += &format!("{}.\n", parts.join("; "));
        }
        out
    }
}
