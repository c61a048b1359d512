#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| topocoll_mpi::fuzz::tune_file(data));
