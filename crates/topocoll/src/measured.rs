//! Measured times of exchanges, as benchmarks print them, and what machine would fit them.
//!
//! Each benchmark is a line of `BENCHMARKS`. The kind of a text is told by its content.

use std::ops::Range;

use topocoll_analysis::Time;
use topocoll_schedule::Collective;
use topocoll_topology::spec::SpecError;

use crate::calibrate::nonnegative;

/// A benchmark of collectives whose output is read.
struct Benchmark {
    name: &'static str,
    /// What its sizes are.
    size: &'static str,
    /// The test that a line names, for the tables below it.
    test: fn(&str) -> Option<&str>,
    /// How the line above a table begins, and what divides its columns.
    columns: [&'static str; 2],
    /// Columns of times in microseconds; the first that there is.
    times: &'static [&'static str],
    /// The most columns that rows leave out, before that of the times.
    left_out: usize,
    /// Bytes of a block in a row.
    block: fn(&[&str]) -> Option<u64>,
    /// Whether a size is that of a block for each rank.
    whole: bool,
}

/// Every benchmark. The first whose columns are in a text reads it.
const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "OSU",
        size: "bytes from a rank to each other",
        test: |line| line.strip_prefix("OSU ")?.split(" Latency Test").next(),
        columns: ["Size  ", "  "],
        times: &["Max Latency(us)", "Avg Latency(us)", "Pure Comm.(us)"],
        left_out: 0,
        block: |row| row[0].parse().ok(),
        whole: false,
    },
    Benchmark {
        name: "IMB",
        size: "bytes from a rank to each other",
        test: |line| line.strip_prefix("Benchmarking "),
        columns: ["bytes ", " "],
        times: &["t_max[usec]", "t_pure[usec]"],
        left_out: 0,
        block: |row| row[0].parse().ok(),
        whole: false,
    },
    Benchmark {
        name: "nccl-tests",
        size: "bytes of the whole buffer of a rank: a block for each rank",
        test: |line| {
            let words = line.split_whitespace();
            words.filter_map(|word| word.rsplit('/').next()).find(|word| word.ends_with("_perf"))
        },
        columns: ["size  ", " "],
        times: &["time"],
        // An operation of reductions, and a root.
        left_out: 2,
        block: |row| row[1].parse::<u64>().ok()?.checked_mul(width(row[2])?),
        whole: true,
    },
];

impl Benchmark {
    /// The columns in a line above a table; none in other lines.
    fn columns<'l>(&self, line: &'l str) -> Vec<&'l str> {
        let [begins, divider] = self.columns;
        let columns = line.split(divider).map(str::trim).filter(|name| !name.is_empty());
        columns.take_while(|_| line.starts_with(begins)).collect()
    }
}

/// Bytes of a number of NCCL.
fn width(kind: &str) -> Option<u64> {
    Some(match kind {
        "int8" | "uint8" | "char" | "fp8_e4m3" | "fp8_e5m2" | "f8e4m3" | "f8e5m2" => 1,
        "half" | "bfloat16" => 2,
        "float" | "int32" | "uint32" | "int" => 4,
        "double" | "int64" | "uint64" => 8,
        _ => return None,
    })
}

/// The operation that a test measures, if it is ours: an exchange among neighbours is not.
fn operation(test: &str) -> Option<Collective> {
    let letters: String = test.chars().filter(char::is_ascii_alphabetic).collect();
    match letters.to_lowercase() {
        name if name.contains("neighbor") => None,
        name if name.contains("alltoall") => Some(Collective::AllToAll),
        name if name.contains("allgather") => Some(Collective::AllGather),
        _ => None,
    }
}

/// One table of a benchmark's output: times of one exchange by block size.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Measured {
    /// The benchmark.
    pub benchmark: &'static str,
    /// What its sizes are.
    pub size: &'static str,
    /// Its test; empty if the text does not name it.
    pub test: String,
    /// The column of the times.
    pub column: &'static str,
    /// The ranks, if the text tells them.
    pub ranks: Option<u32>,
    /// Bytes by the benchmark's measure, bytes of a block, and seconds, in the order of the text. Sizes of
    /// no bytes are left out.
    pub rows: Vec<(u64, u64, f64)>,
    /// The line of its columns, from 1.
    pub line: usize,
}

/// The most rows of a text.
const MAX_ROWS: usize = 1000;

impl Measured {
    /// The table of an operation on some ranks in the output of OSU's micro-benchmarks, IMB or nccl-tests, and
    /// the names of the other tables. Without an operation, the one that the text has.
    ///
    /// # Errors
    /// A text of another kind, a wrong row, no such table or several.
    pub fn read(
        text: &str,
        asked: Option<Collective>,
        ranks: u32,
    ) -> Result<(Self, Vec<String>), SpecError> {
        let tables = tables(text)?;
        let named = |table: &Self| {
            let test = if table.test.is_empty() { "a test without a name" } else { &table.test };
            let ranks = table.ranks.map_or(String::new(), |ranks| format!(" of {ranks} ranks"));
            format!("{test}{ranks} (line {})", table.line)
        };
        let all = match &tables[..] {
            [] => "no row has a size and a time".to_owned(),
            some => some.iter().map(named).collect::<Vec<_>>().join(", "),
        };
        if asked.is_none() && tables.iter().any(|table| table.test.is_empty()) {
            return Err("no line names the test: give --op alltoall or --op allgather".into());
        }
        let fits = |table: &&Self| match operation(&table.test) {
            None => table.test.is_empty(),
            own => asked.is_none_or(|asked| own == Some(asked)),
        };
        let of_operation: Vec<_> = tables.iter().filter(fits).collect();
        let is_of = |table: &&&Self| table.ranks.is_none_or(|own| own == ranks);
        match of_operation.iter().filter(is_of).collect::<Vec<_>>()[..] {
            [one] => {
                let others = tables.iter().filter(|table| table != one).map(named);
                Ok(((*one).clone(), others.collect()))
            }
            [] if of_operation.is_empty() => {
                let wanted = asked.map_or("alltoall or allgather", Collective::name);
                Err(format!("no table of {wanted}: {all}").into())
            }
            [] => Err(format!("no table is of {ranks} ranks, as the machine: {all}").into()),
            _ => Err(format!("several tables fit: keep one, or give --op: {all}").into()),
        }
    }

    /// The operation of its test.
    #[must_use]
    pub fn operation(&self) -> Option<Collective> {
        operation(&self.test)
    }
}

/// The tables of a text. Those of other operations have no rows.
fn tables(text: &str) -> Result<Vec<Measured>, SpecError> {
    let bare =
        |line: &'_ str| line.trim_matches(['\u{feff}', '#', ' ', '\t', '\r', '\n']).to_owned();
    let benchmark = BENCHMARKS
        .iter()
        .find(|of| text.lines().any(|line| !of.columns(&bare(line)).is_empty()))
        .ok_or("not the output of OSU's micro-benchmarks, IMB or nccl-tests: no line has their columns")?;
    let mut tables: Vec<Measured> = Vec::new();
    let (mut test, mut ranks, mut width, mut place) = (String::new(), None, 0, 0);
    let (mut at, mut count) = (0, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let refuse = |message: String| wrong(span.clone(), message);
        let is_row = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let Some(table) = tables.last_mut().filter(|_| is_row) else {
            let line = bare(line);
            if let Some(named) = (benchmark.test)(&line) {
                (test, ranks) = (named.trim().to_owned(), None);
            }
            if let Some((_, named)) = line.split_once("processes = ") {
                let named = named.split_whitespace().next().unwrap_or_default();
                let rule = |_| refuse(format!("`{named}` processes: not a whole number"));
                ranks = Some(named.parse().map_err(rule)?);
            }
            let columns = benchmark.columns(&line);
            if columns.is_empty() {
                continue;
            }
            let found = benchmark
                .times
                .iter()
                .find_map(|time| Some((*time, columns.iter().position(|column| column == time)?)));
            let Some((column, found)) = found.or(is_other(&test).then_some(("", 0))) else {
                let known = benchmark.times.join(", ");
                return Err(refuse(format!("no column of times: not one of {known}")));
            };
            (width, place) = (columns.len(), found);
            let (benchmark, size, test) = (benchmark.name, benchmark.size, test.clone());
            let rows = Vec::new();
            tables.push(Measured { benchmark, size, test, column, ranks, rows, line: number });
            continue;
        };
        if is_other(&table.test) {
            continue;
        }
        let row: Vec<&str> = line.split_whitespace().collect();
        let missing = width.checked_sub(row.len()).filter(|few| *few <= benchmark.left_out);
        let missing = missing.ok_or_else(|| {
            refuse(format!("{} columns, where the line above the table has {width}", row.len()))
        })?;
        let rule = || refuse("no size, or no count and type of this size".to_owned());
        let size: u64 = row[0].parse().map_err(|_| rule())?;
        if size == 0 {
            continue;
        }
        let divides = |block: &u64| *block > 0 && size % block == 0;
        let block = (benchmark.block)(&row).filter(divides).ok_or_else(rule)?;
        let own = benchmark.whole.then(|| u32::try_from(size / block).unwrap_or(u32::MAX));
        let time = row[place - missing];
        let seconds = time.parse().map_or(f64::NAN, |us: f64| us / 1e6);
        if !(seconds > 0.0 && seconds.is_finite()) {
            let rule = "not a time in microseconds above 0";
            return Err(refuse(format!("{} is `{time}`, {rule}", table.column)));
        }
        if let (Some(own), Some(above)) = (own, table.ranks.filter(|above| own != Some(*above))) {
            return Err(refuse(format!("a buffer of {own} blocks, and of {above} in rows above")));
        }
        table.ranks = table.ranks.or(own);
        table.rows.push((size, block, seconds));
        count += 1;
        if count > MAX_ROWS {
            return Err(refuse(format!("more than {MAX_ROWS} rows")));
        }
    }
    tables.retain(|table| !table.rows.is_empty() || is_other(&table.test));
    Ok(tables)
}

/// Whether a test is known and of neither operation.
fn is_other(test: &str) -> bool {
    !test.is_empty() && operation(test).is_none()
}

fn wrong(span: Range<usize>, message: String) -> SpecError {
    let mut error = SpecError::from(message);
    error.span = Some(span);
    error
}

/// The factors by which startups and transmissions of a machine are multiplied to fit measured times.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Scaling {
    /// Of all startups; `None` where they take no time.
    pub startup: Option<f64>,
    /// Of the time of each byte, on links and in injection; `None` where bytes take no time.
    pub per_byte: Option<f64>,
    /// Root of the mean square of the relative errors that remain.
    pub error: f64,
}

impl Scaling {
    /// Fits by the least squares of relative errors; `times` has predicted terms and measured seconds. The other
    /// terms stay.
    ///
    /// # Panics
    /// No times.
    #[must_use]
    pub fn fit(times: &[(Time, f64)]) -> Self {
        let rows = times.iter().map(|(time, seconds)| {
            let fixed = time.total() - time.startup - time.transmission;
            ([time.startup, time.transmission].map(|term| term / seconds), 1.0 - fixed / seconds)
        });
        let values = nonnegative(rows.clone());
        let square = |(terms, target): ([f64; 2], f64)| {
            (terms[0] * values[0] + terms[1] * values[1] - target).powi(2)
        };
        let is_there = |term: fn(&Time) -> f64| times.iter().any(|(time, _)| term(time) > 0.0);
        Self {
            startup: is_there(|time| time.startup).then_some(values[0]),
            per_byte: is_there(|time| time.transmission).then_some(values[1]),
            error: (rows.map(square).sum::<f64>() / times.len() as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests;
