//! The page of an exchange: its data, as JSON, and the HTML around them. Also the words and numbers of all reports.
//!
//! `page/` holds one HTML file with placeholders for the styles, the scripts and the data. None of
//! them refers to another file or a network address.
//!
//! The page reads schedules too: it holds the rule's messages for one rank of each class and moves them to the
//! others itself, so it plays the schedule that is proved. Its shared links are those that `verify` counts. It
//! follows a block by replay, and inserts text only as text nodes; `tests/browser` uses it in Chromium.

#![forbid(unsafe_code)]

mod data;
mod layout;
mod network;
pub mod number;
mod page;
mod play;
mod scene;
pub mod words;

use topocoll::{Error, Exchange, Parameters};

pub use data::PARTS;

/// A page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// One self-contained HTML file.
    pub html: String,
    /// The algorithms of the ranked choices, best first.
    pub ranked: Vec<String>,
    /// Schedules to watch.
    pub played: usize,
}

/// The page of an exchange; a requested algorithm is played first. `command` makes the page again, and `done` is
/// called after each of [`PARTS`]. Schedules that need more than `memory` bytes are not played.
///
/// # Errors
/// The exchange cannot be ranked.
pub fn report(
    exchange: &Exchange<'_>,
    asked: Option<(&str, &Parameters)>,
    command: String,
    memory: u128,
    done: &dyn Fn(),
) -> Result<Page, Error> {
    let data = data::gather(exchange, asked, command, memory, done)?;
    Ok(Page {
        html: page::page(&data.title, &data),
        ranked: data.ranking.iter().map(|ranked| ranked.algorithm.clone()).collect(),
        played: data.plays.len(),
    })
}
