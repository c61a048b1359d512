//! GOAL text, which `txt2bin` of LogGOPSim reads (Hoefler, Schneider, Lumsdaine 2010).
//!
//! Comments contain the JSON lines of the schedule, which are read back. Message costs are
//! parameters of the simulator. Copies and packing are a `calc`, in nanoseconds. A step begins at a
//! rank when its last step has ended, at a `calc 0`. Tags are steps.
//!
//! In files of other programs, sends and receives match by ranks and tag in the order written, and
//! steps follow from `requires` and `irequires`. `calc`, `cpu` and `nic` are ignored. Wildcards and
//! operations of later dialects (`put`, `append`, ..) are not supported.

use std::io::{BufRead, Write};

use hashbrown::HashMap;
use topocoll_schedule::Schedule;
use topocoll_topology::Rank;

use super::ends::{Ends, MessageEnd, Named};
use super::jsonl::{self, List, Listed};
use super::lines::Lines;
use super::local::Local;
use super::messages::{check_ranks, ends, rank};
use super::order::{self, Order, Point};
use super::{Listing, ReadError, Source, Target, failed};
use crate::AnalysisError;

/// The beginning of a JSON line.
const COMMENT: &str = "// ";

/// Bytes of the lines of a message at both ends, about.
const MESSAGE: u128 = 160;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    Listing::check_messages(source, MESSAGE)?;
    if source.schedule.rule().names_blocks() {
        jsonl::write(source, &mut Commented { out, begins: true })?;
    }
    lines(source, out).map_err(failed)
}

fn lines(source: &Source<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let problem = &source.schedule.problem;
    let per_byte = source.machine.timing.rearrangement_per_byte * 1e9;
    let nanoseconds = |bytes: f64| (bytes * per_byte).round() as u64;
    writeln!(out, "num_ranks {}", problem.ranks)?;
    let mut local = Local::new(source);
    for rank in (0..problem.ranks).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        // Labels that the next step waits for.
        let mut before: Vec<String> = Vec::new();
        for step in 0..source.schedule.rule().steps() {
            local.look(rank, step);
            if local.is_idle() {
                continue;
            }
            let copied = (local.copies as f64 / 1e3).round() as u64;
            let begin = format!("b{step}");
            writeln!(out, "{begin}: calc {copied}")?;
            for label in before.drain(..) {
                writeln!(out, "{begin} requires {label}")?;
            }
            for (i, (from, bytes)) in local.receives.iter().enumerate() {
                let label = format!("r{step}_{i}");
                writeln!(out, "{label}: recv {bytes}b from {from} tag {step}")?;
                writeln!(out, "{label} requires {begin}")?;
                before.push(label);
            }
            for (i, sent) in local.sends.iter().enumerate() {
                let (label, mut ready) = (format!("s{step}_{i}"), begin.clone());
                if sent.packed > 0 && per_byte > 0.0 {
                    ready = format!("p{step}_{i}");
                    writeln!(out, "{ready}: calc {}", nanoseconds(sent.packed as f64))?;
                    writeln!(out, "{ready} requires {begin}")?;
                }
                writeln!(out, "{label}: send {}b to {} tag {step}", sent.bytes, sent.to)?;
                writeln!(out, "{label} requires {ready}")?;
                before.push(label);
            }
            if before.is_empty() {
                before.push(begin);
            }
        }
        writeln!(out, "}}")?;
    }
    out.flush()
}

/// Writes every line as a comment.
struct Commented<'a> {
    out: &'a mut dyn Write,
    /// Whether a line begins.
    begins: bool,
}

impl Write for Commented<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if std::mem::replace(&mut self.begins, line.ends_with(b"\n")) {
                self.out.write_all(COMMENT.as_bytes())?;
            }
            self.out.write_all(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

pub(super) fn read(input: &mut dyn BufRead, target: &Target<'_>) -> Result<Schedule, ReadError> {
    let mut lines = Lines::new(input, target.seen);
    let mut program = Program::new(target);
    while let Some(text) = lines.next()? {
        // The borrow of the text ends before the line is named.
        let number = program.line + 1;
        program.line = number;
        let read = program.read_line(text);
        read.map_err(|message| lines.error(message))?;
    }
    let ended = program.check_end();
    ended.map_err(|message| lines.error(message))?;
    let messages = program.listed;
    let named = program.list.map(|list| Named { schedule: list.schedule(), messages });
    (program.ends.schedule("goal", program.order, named))
        .map_err(|(_, line, message)| lines.error_at(line, message))
}

/// The state of the reader.
struct Program<'a> {
    target: &'a Target<'a>,
    line: usize,
    /// Whether a comment of several lines is open.
    in_comment: bool,
    list: Option<List<'a>>,
    listed: Vec<Listed>,
    ranks: Option<u32>,
    /// The number of ranks whose programs have begun.
    begun: u32,
    /// Whether the last program is open.
    open: bool,
    /// By label, the points before and after an operation of this rank.
    labels: HashMap<String, (Point, Point)>,
    order: Order,
    ends: Ends<'a>,
}

impl<'a> Program<'a> {
    fn new(target: &'a Target<'a>) -> Self {
        Self {
            target,
            line: 0,
            in_comment: false,
            list: None,
            listed: Vec::new(),
            ranks: None,
            begun: 0,
            open: false,
            labels: HashMap::new(),
            order: Order::default(),
            ends: Ends::new(target),
        }
    }

    fn read_line(&mut self, text: &str) -> Result<(), String> {
        let mut words = Words { rest: text };
        loop {
            if self.in_comment {
                let Some((_, rest)) = words.rest.split_once("*/") else { return Ok(()) };
                (words.rest, self.in_comment) = (rest, false);
            }
            if let Some(comment) = words.after("//") {
                return self.comment(comment);
            }
            if let Some(rest) = words.after("/*") {
                (words.rest, self.in_comment) = (rest, true);
                continue;
            }
            match words.next() {
                None => return Ok(()),
                Some("num_ranks") if self.ranks.is_none() => {
                    let ranks = words.number("num_ranks")?;
                    check_ranks(ranks, self.target.topology)?;
                    self.ranks = Some(ranks);
                }
                Some("rank") if !self.open => self.begin(&mut words)?,
                Some("}") if self.open => {
                    self.open = false;
                    self.labels.clear();
                }
                Some(word) if self.open => {
                    self.statement(word, &mut words)?;
                    if let Some(more) = words.next() {
                        return Err(format!("`{}` after the end of a statement", shown(more)));
                    }
                }
                Some(word) => {
                    let next = if self.ranks.is_none() { "num_ranks" } else { "rank" };
                    return Err(format!("`{}` where `{next}` is expected", shown(word)));
                }
            }
        }
    }

    /// A comment may be a line of JSON.
    fn comment(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if let Some(list) = &mut self.list {
            if text.starts_with('{') {
                self.listed.push(list.push(text)?);
                self.ends.take(2 * size_of::<Listed>() as u128)?;
            }
            return Ok(());
        }
        if text.starts_with("{\"kind\":\"header\"") {
            if self.ranks.is_some() {
                return Err("JSON lines must come before `num_ranks`".to_owned());
            }
            self.list = Some(List::new(text, self.target)?);
        }
        Ok(())
    }

    fn begin(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let ranks = self.ranks.ok_or("`rank` before `num_ranks`")?;
        let number: u32 = words.number("rank")?;
        if number != self.begun || number >= ranks {
            return Err(format!("rank {number}: ranks are 0 to {} in order", ranks - 1));
        }
        words.expect("{")?;
        self.begun += 1;
        self.open = true;
        Ok(())
    }

    fn statement(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), String> {
        if matches!(word, "send" | "recv" | "calc") {
            if word == "calc" {
                self.ends.take(order::MEMORY)?;
            }
            self.operation(word, words)?;
            return Ok(());
        }
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("`{}` is not a statement", shown(word)));
        }
        match words.next() {
            Some(":") => {
                let kind = words.next().unwrap_or_default();
                let place = self.operation(kind, words)?;
                self.ends.take(order::MEMORY + 2 * word.len() as u128)?;
                match self.labels.insert(word.to_owned(), place) {
                    Some(_) => Err(format!("label `{}` is defined twice in one rank", shown(word))),
                    None => Ok(()),
                }
            }
            Some(kind @ ("requires" | "irequires")) => {
                let other = words.next().unwrap_or_default();
                let place = |label: &str| {
                    let known = self.labels.get(label).copied();
                    known.ok_or_else(|| {
                        format!("label `{}` is not defined in this rank", shown(label))
                    })
                };
                let ((before, _), (started, ended)) = (place(word)?, place(other)?);
                self.ends.take(order::MEMORY)?;
                if self.list.is_none() {
                    self.order.after(before, if kind == "requires" { ended } else { started });
                }
                Ok(())
            }
            _ => Err(format!("`:`, `requires` or `irequires` is expected after `{}`", shown(word))),
        }
    }

    /// Reads an operation and returns the points before and after it.
    fn operation(&mut self, kind: &str, words: &mut Words<'_>) -> Result<(Point, Point), String> {
        let own = Rank(self.begun - 1);
        let before = self.order.point();
        if kind == "calc" {
            let _: u64 = words.number("calc")?;
            words.options(&["cpu", "nic"])?;
            return Ok((before, before));
        }
        let (sends, toward) = match kind {
            "send" => (true, "to"),
            "recv" => (false, "from"),
            _ => return Err(format!("`{}` is not one of send, recv, calc", shown(kind))),
        };
        let bytes = words.number(kind)?;
        words.expect("b")?;
        words.expect(toward)?;
        let peer = rank(toward, words.number(toward)?, self.ranks.unwrap_or(0))?;
        let [tag, _, _] = words.options(&["tag", "cpu", "nic"])?;
        let (from, to) = if sends { (own, peer) } else { (peer, own) };
        let (from, to) = ends(from.0.into(), to.0.into(), self.ranks.unwrap_or(0))?;
        let after = self.order.point();
        if self.list.is_none() {
            self.order.after(after, before);
        }
        let between = (before, after);
        self.ends.push(sends, MessageEnd { from, to, tag, bytes, line: self.line, between })?;
        Ok(between)
    }

    fn check_end(&self) -> Result<(), String> {
        match self.ranks {
            _ if self.in_comment => Err("the file ends in a comment".to_owned()),
            _ if self.open => Err(format!("the file ends in rank {}", self.begun - 1)),
            None => Err("the file ends before `num_ranks`".to_owned()),
            Some(ranks) if self.begun < ranks => {
                Err(format!("the file ends after {} of {ranks} ranks", self.begun))
            }
            Some(_) => Ok(()),
        }
    }
}

/// A line's words: names, numbers, and any other character by itself.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Option<&'t str> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        let end = if first.is_ascii_digit() {
            self.rest.find(|c: char| !c.is_ascii_digit())
        } else if first.is_ascii_alphabetic() {
            self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        } else {
            Some(first.len_utf8())
        };
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(word)
    }

    /// The text after these characters, if they come next.
    fn after(&mut self, begins: &str) -> Option<&'t str> {
        self.rest.trim_start().strip_prefix(begins)
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.next() {
            Some(next) if next == word => Ok(()),
            next => Err(format!("`{}` where `{word}` is expected", shown(next.unwrap_or("")))),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Result<T, String> {
        super::messages::number(name, self.next().unwrap_or_default())
    }

    /// The numbers of options in this order; an option that is absent is 0.
    fn options<const N: usize>(&mut self, names: &[&str; N]) -> Result<[u32; N], String> {
        let mut values = [0; N];
        for (name, value) in names.iter().zip(&mut values) {
            let mut ahead = Words { rest: self.rest };
            if ahead.next() == Some(name) {
                *value = ahead.number(name)?;
                self.rest = ahead.rest;
            }
        }
        Ok(values)
    }
}

/// The beginning of a word, short enough for an error.
fn shown(word: &str) -> &str {
    &word[..word.floor_char_boundary(40)]
}
