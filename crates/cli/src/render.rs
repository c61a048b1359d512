//! Output formats of reports.

mod answer;
mod file;
mod heat;
mod json;
mod output;
mod picture;
mod plot;
mod table;

pub(crate) use answer::Answer;
pub(crate) use file::{check_files, check_folder, write_file, write_folder, write_or_print};
pub(crate) use heat::{Heat, Links};
pub(crate) use json::{
    Bandwidth, Bounds, Crossover, Head, PartlyPriced, Rejected, Seconds, Unsearched, VERSION,
};
pub(crate) use output::{height, print, print_beside, print_text};
pub(crate) use picture::{check_picture, write_picture};
pub(crate) use plot::{Axes, Curve, Plot, Stroke};
pub(crate) use table::{Field, Table, facts, table, width};
pub(crate) use topocoll_report::number::{
    Blocks, bandwidth, blocks, bytes, duration, named, parameters, seconds,
};
