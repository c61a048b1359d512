//! How reports look.

mod bar;
mod file;
mod json;
mod number;
mod output;
mod plot;
mod table;

pub(crate) use bar::Bar;
pub(crate) use file::{write_file, write_folder};
pub(crate) use json::{Blocks, Head, Seconds};
pub(crate) use number::{blocks, bytes, parameters, seconds, time_unit};
pub(crate) use output::print;
pub(crate) use plot::{Axes, Curve, Plot};
pub(crate) use table::{facts, table};
