//! What an MPI library would gain, by block size: the algorithm that its own rules choose, its fastest
//! algorithm and the options that force it, and the best schedule here.

use serde::Serialize;
use topocoll::tune::{Gain, LIBRARIES, Library, Modelled, Release};
use topocoll::{Choice, Error, Exchange, Selection};
use topocoll_report::words::not_compared;

use crate::render::{Answer, bytes, seconds, table};

/// Block sizes of the table, besides the requested one.
const SIZES: [u64; 7] = [8, 64, 512, 1 << 12, 1 << 15, 1 << 18, 1 << 21];

/// Times within this share are equal.
const EQUAL: f64 = 1.00005;

#[derive(Serialize)]
pub(super) struct Gains {
    name: &'static str,
    release: &'static str,
    /// The file of the library's repository that has its rules, and the versions with these rules.
    rules: String,
    /// At the requested block size.
    #[serde(flatten)]
    asked: Gain,
    by_block: Vec<Gain>,
    #[serde(skip)]
    title: String,
    /// Says so where the best schedule also has a time without barriers.
    #[serde(skip)]
    in_step: &'static str,
    #[serde(skip)]
    notes: String,
}

/// The library of a name that the arguments accept.
pub(super) fn library(name: &str) -> &'static Library {
    let found = LIBRARIES.iter().find(|library| library.name == name);
    found.expect("bug: arguments have known libraries")
}

/// The library and the release of `--against` and `--release`.
pub(super) fn compared(
    against: Option<&str>,
    release: Option<&str>,
) -> anyhow::Result<Option<(&'static Library, &'static Release)>> {
    let Some(name) = against else { return Ok(None) };
    let library = library(name);
    let release = library.release(release).map_err(Error::from)?;
    Ok(Some((library, release)))
}

/// `1.80x faster than`, if something takes this many times as long as something else; two that take no time are
/// as fast.
pub(super) fn faster(ratio: f64) -> String {
    match ratio {
        ratio if ratio.is_nan() => "as fast as".to_owned(),
        ratio if ratio < 1.0 / EQUAL => format!("{:.2}x slower than", 1.0 / ratio),
        ratio if ratio < EQUAL => "as fast as".to_owned(),
        ratio if ratio < 1.01 => format!("{:.2} % faster than", 100.0 * (ratio - 1.0)),
        ratio => format!("{ratio:.2}x faster than"),
    }
}

impl Gains {
    pub(super) fn new(
        library: &'static Library,
        release: &'static Release,
        modelled: &Modelled,
        exchange: &Exchange<'_>,
        selection: &Selection,
    ) -> Self {
        let asked = exchange.problem().block_bytes;
        let row = |block_bytes| modelled.gain(release, block_bytes, (selection, asked));
        let mut sizes = [&SIZES[..], &[asked]].concat();
        sizes.sort_unstable();
        sizes.dedup();
        Self {
            name: library.name,
            release: release.name,
            rules: format!("{}, {}", release.file, release.tags),
            asked: row(asked),
            by_block: sizes.into_iter().map(row).collect(),
            in_step: selection.best().and_then(|best| best.free_running).map_or("", |_| " in step"),
            title: format!("{} {}", library.title, release.name),
            notes: not_compared(library, release, modelled.operation(), exchange.machine()),
        }
    }

    /// `1.80x faster than Open MPI 4.1's default (linear_sync)`, of a choice's time in step.
    pub(super) fn over_default(&self, choice: &Choice) -> String {
        let Gain { algorithm, time_seconds, .. } = &self.asked;
        let faster = faster(time_seconds / choice.price.time.total());
        format!("{faster} {}'s default ({algorithm}){}", self.title, self.in_step)
    }

    /// Adds the table, the options that force algorithms, and the source of the rules.
    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        let gain = |row: &Gain, time: f64| format!("{:.2}x", row.time_seconds / time);
        let rows = self.by_block.iter().map(|row| {
            let (best, best_gain) = match row.force.is_empty() {
                true => ("-".to_owned(), "-".to_owned()),
                false => (row.best_algorithm.to_owned(), gain(row, row.best_seconds)),
            };
            let (ours, our_gain) = match &row.schedule {
                None => ("?".to_owned(), "?".to_owned()),
                Some(best) => (best.algorithm.clone(), gain(row, best.time_seconds)),
            };
            let time = seconds(row.time_seconds);
            vec![
                bytes(row.block_bytes),
                row.algorithm.to_owned(),
                time,
                best,
                best_gain,
                ours,
                our_gain,
            ]
        });
        let header = ["block", "default", "time", "forced", "gain", "schedule", "gain"];
        let mut forced: Vec<_> = self.by_block.iter().filter(|row| !row.force.is_empty()).collect();
        forced.sort_by_key(|row| &row.force);
        forced.dedup_by_key(|row| &row.force);
        let forced = forced.iter().map(|row| format!("  {}: {}\n", row.best_algorithm, row.force));
        answer
            .notes(format!("What {} would gain, by block size (times in step):", self.title))
            .table(&table(&header, 2, rows))
            .list(
                "To force one for all sizes (topocoll tune writes a file by size):",
                forced.collect::<String>(),
            )
            .notes(format!("Its defaults: {}.\n{}", self.rules, self.notes))
    }
}
