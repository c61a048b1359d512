//! The program answers every command line, writes its files whole, and helps at the prompt.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod arguments;
mod detect;
mod fft;
mod files;
mod floors;
mod gains;
mod help;
mod long;
mod old_files;
mod options;
mod steps;
mod style;
