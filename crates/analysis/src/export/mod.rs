//! Schedules written out for others to read, one file per format.

pub mod jsonl;
