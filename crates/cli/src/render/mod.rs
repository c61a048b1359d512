//! How reports look.

mod json;
mod number;
mod output;
mod table;

pub(crate) use json::{Blocks, Head, Seconds};
pub(crate) use number::{blocks, bytes, parameters, seconds, time_unit};
pub(crate) use output::print;
pub(crate) use table::{facts, table};
