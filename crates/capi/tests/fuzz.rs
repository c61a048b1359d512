//! The calls of the fuzzing corpus, and alterations of them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../fuzz/src/capi.rs"]
mod capi;

use std::fs;

#[test]
fn calls_of_the_corpus_and_altered_ones_return_a_code() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capi");
    let mut files: Vec<_> =
        fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    // The linear congruential generator of Knuth's MMIX.
    let mut word = 1u64;
    let mut random = |below: usize| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) as usize % below
    };
    for file in files {
        let input = fs::read(&file).unwrap();
        capi::calls(&input);
        for _ in 0..50 {
            let mut bytes = input.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                bytes[at] = random(256) as u8;
            }
            bytes.truncate(1 + random(bytes.len()));
            capi::calls(&bytes);
        }
    }
}
