//! The page that `report` writes: its data, as JSON, and the HTML around them.
//!
//! `page/` holds one HTML file with placeholders for the styles, the scripts and the data. None of
//! them refers to another file or a network address.

mod data;
mod page;
mod play;
mod scene;

pub(crate) use data::{PARTS, gather};
pub(crate) use page::page;
