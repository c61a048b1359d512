//! The page that `report` writes: its data, as JSON, and the HTML around them.
//!
//! `page/` holds one HTML file with placeholders for the styles, the scripts and the data. None of
//! them refers to another file or a network address.
//!
//! The page reads schedules too: it holds the rule's messages for one rank of each class and moves them to the
//! others itself, so it plays the schedule that is proved. Its shared links are those that `verify` counts. It
//! follows a block by replay, and inserts text only as text nodes; `tests/browser` uses it in Chromium.

mod data;
mod page;
mod play;
mod scene;

pub(crate) use data::{PARTS, gather};
pub(crate) use page::page;
