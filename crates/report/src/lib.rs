//! The page of an exchange: its data, as JSON, and the HTML around them; a page of bars without scripts. Also the words
//! and numbers of all reports.
//!
//! `page/` holds one HTML file with placeholders for the styles, the scripts and the data. None of
//! them refers to another file or a network address.
//!
//! The page reads schedules too: it holds the rule's messages for one rank of each class and moves them to the
//! others itself, so it plays the schedule that is proved. Its shared links are those that `verify` counts. It
//! follows a block by replay, and inserts text only as text nodes; `tests/browser` uses it in Chromium.

#![forbid(unsafe_code)]

mod bars;
mod data;
mod demand;
mod gains;
mod interned;
mod layout;
pub mod names;
mod network;
pub mod number;
mod packed;
mod page;
mod play;
mod scene;
mod settings;
mod times;
pub mod words;

use topocoll::tune::{Library, Modelled, Release};
use topocoll::{Catalogue, Error, Exchange, Parameters, Progress};

pub use bars::{Bar, Bars};
pub use times::Model;

/// What a page is asked for.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The algorithms of the exchange.
    pub catalogue: &'a Catalogue,
    /// The name of the demand matrix, if blocks differ.
    pub demand: Option<&'a str>,
    /// The algorithm and the setting that the page is about; without one, the best.
    pub algorithm: Option<(&'a str, &'a Parameters)>,
    /// A contention model, whose times the page has beside those of the steps model.
    pub model: Option<Model>,
    /// An MPI library to compare with.
    pub against: Option<Baseline>,
    /// The command that makes the page again.
    pub command: String,
    /// Schedules that need more bytes are not played.
    pub memory: u128,
}

/// An MPI library, whose default algorithms a page compares with the schedules.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The library.
    pub library: &'static Library,
    /// Its release.
    pub release: &'static Release,
    /// The times of its algorithms on the machine.
    pub modelled: Modelled,
}

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

/// The page of an exchange. Progress of the exchange's own work goes to its budget.
///
/// # Errors
/// The exchange cannot be ranked.
pub fn report(
    exchange: &Exchange<'_>,
    asked: &Asked<'_>,
    progress: &Progress<'_>,
) -> Result<Page, Error> {
    let data = data::gather(exchange, asked, progress)?;
    Ok(Page {
        html: page::page(&data.title, &data),
        ranked: data.ranking.iter().map(|ranked| ranked.algorithm.clone()).collect(),
        played: data.plays.len(),
    })
}
