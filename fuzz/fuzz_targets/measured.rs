#![no_main]

#[allow(dead_code, reason = "each program takes one")]
#[path = "../src/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::measured(data));
