//! The table of all calls, printed when MPI is finalized.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::course::Calls;
use crate::failed::locked;
use crate::protocol::Sample;

/// The calls of one subject on communicators of one shape.
#[derive(Clone, Default, Debug)]
struct Row {
    bytes: u128,
    /// Calls and their nanoseconds: of schedules and of the library; outside trials and in trials.
    made: [[(u64, u64); 2]; 2],
    /// Nanoseconds of the timed calls of the library.
    timed: Vec<u64>,
    by: String,
}

/// By shape and calls.
static ROWS: Mutex<BTreeMap<(String, String), Row>> = Mutex::new(BTreeMap::new());

/// Timed calls that a row keeps.
const TIMED: usize = 1 << 10;

/// Counts a call.
pub(crate) fn count(shape: &str, calls: &str, turn: Calls, sample: Sample) {
    let mut rows = locked(&ROWS);
    let row = rows.entry((shape.to_owned(), calls.to_owned())).or_default();
    let is_library = turn.candidate == 0;
    let made = &mut row.made[usize::from(is_library)][usize::from(turn.timed)];
    *made = (made.0 + 1, made.1 + sample.nanoseconds);
    row.bytes += u128::from(sample.bytes);
    if is_library && turn.timed && row.timed.len() < TIMED {
        row.timed.push(sample.nanoseconds);
    }
}

/// Says who performs the calls.
pub(crate) fn performs(shape: &str, calls: &str, by: &str) {
    let mut rows = locked(&ROWS);
    by.clone_into(&mut rows.entry((shape.to_owned(), calls.to_owned())).or_default().by);
}

impl Row {
    /// Nanoseconds of one of the library's calls.
    fn median(&self) -> Option<u64> {
        let mut timed = self.timed.clone();
        timed.sort_unstable();
        timed.get(timed.len() / 2).copied()
    }

    fn cells(&self, (shape, calls): &(String, String)) -> [String; 9] {
        let milliseconds = |nanoseconds: f64| format!("{:.3}", nanoseconds / 1e6);
        let estimate = |nanoseconds: f64, calls: u64| match self.median() {
            _ if calls == 0 => Some(nanoseconds),
            median => median.map(|median| nanoseconds + median as f64 * calls as f64),
        };
        let [ours, library] =
            self.made.map(|[usual, tried]| (usual.0 + tried.0, (usual.1 + tried.1) as f64));
        let (own, tried) = (ours.1 + library.1, self.made[0][1]);
        let by_library = estimate(library.1, ours.0);
        let trying = estimate(0.0, tried.0).map(|library| tried.1 as f64 - library);
        let unknown = || "-".to_owned();
        [
            shape.clone(),
            calls.clone(),
            (ours.0 + library.0).to_string(),
            self.bytes.to_string(),
            milliseconds(own),
            by_library.map_or_else(unknown, milliseconds),
            by_library.map_or_else(unknown, |library| milliseconds(library - own)),
            trying.map_or_else(unknown, milliseconds),
            self.by.clone(),
        ]
    }
}

/// The table; `None` without calls.
pub(crate) fn table() -> Option<String> {
    let rows = locked(&ROWS);
    let head = [
        "shape",
        "calls",
        "count",
        "bytes",
        "time [ms]",
        "library [ms]",
        "gain [ms]",
        "trying [ms]",
        "performed by",
    ]
    .map(str::to_owned);
    let rows: Vec<_> = rows.iter().map(|(key, row)| row.cells(key)).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let width = |column: usize| all().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    let line = |cells: &[String; 9]| {
        let cells = cells.iter().zip(widths).enumerate().map(|(i, (cell, width))| match i {
            0 | 1 => format!("{cell:width$}"),
            8 => cell.clone(),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    (!rows.is_empty()).then(|| all().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_s_time_is_estimated_from_its_timed_calls() {
        let mut row = Row { by: "direct".to_owned(), ..Row::default() };
        let key = ("full:4".to_owned(), "alltoall of 1 B".to_owned());
        assert_eq!(row.cells(&key)[4..8], ["0.000", "0.000", "0.000", "0.000"]);
        // Four calls of ours, one of them in a trial, of half the library's time.
        row.timed = vec![2_000_000, 9_000_000, 2_000_000];
        row.made = [[(3, 3_000_000), (1, 1_000_000)], [(0, 0), (3, 13_000_000)]];
        assert_eq!(row.cells(&key)[4..8], ["17.000", "21.000", "4.000", "-1.000"]);
        row.timed.clear();
        assert_eq!(row.cells(&key)[5..8], ["-", "-", "-"]);
    }
}
