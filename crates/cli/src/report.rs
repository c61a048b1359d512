//! The page that `report` writes: its data as JSON, and the HTML around it.
//!
//! `page/` holds the page itself: one self-contained HTML file with placeholders for the styles,
//! the scripts and the data.

mod data;
mod page;
mod play;
mod scene;

pub(crate) use data::{PARTS, gather};
pub(crate) use page::page;
