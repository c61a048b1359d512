//! The page that `report` writes: what it shows, as JSON, and the page around it.
//!
//! `page/` holds the page itself: one HTML file with places for the styles, the scripts and the
//! data, none of which names anything outside.

mod data;
mod page;
mod play;
mod scene;

pub(crate) use data::{PARTS, gather};
pub(crate) use page::page;
