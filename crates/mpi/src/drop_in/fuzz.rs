//! The file that `TOPOCOLL_TUNE` names, of arbitrary text: it is refused with a reason, or every rank
//! has a plan for each schedule that serves. `cargo fuzz` runs this on new inputs, the test on the
//! corpus and on alterations of it.

use topocoll::Collective;

use super::learned::{Run, results};
use super::ours::Subject;
use super::place::{Known, places};
use super::trial::Trial;
use super::vector::Sizes;

const RANKS: u32 = 4;

/// Reads a file and does what it says, as the first rank of four does.
///
/// # Panics
/// If a schedule serves and a rank has no plan for it.
pub fn tune_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok((found, _)) = results(text, &Run::new("node042", "Open MPI v4.1.4", RANKS)) else {
        return;
    };
    let known =
        Known { nodes: &[0, 0, 2, 2], grid: None, world: &[0, 1, 2, 3], given: None, groups: None };
    let places = places(&known);
    for result in found {
        let _turns = Trial::ended(result.schedules.len(), result.kept()).course();
        for operation in [Collective::AllToAll, Collective::AllGather] {
            for (vector, sizes) in [(false, Sizes::Equal(6)), (true, Sizes::Own)] {
                let subject = Subject { operation, vector, sizes };
                if result.serves(subject, &places).is_err() {
                    continue;
                }
                for ours in &result.schedules {
                    for rank in 0..RANKS {
                        let plan = ours.plan(Subject { vector: false, ..subject }, rank);
                        assert!(plan.is_ok(), "bug: {ours} serves, but not rank {rank}");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_the_corpus_and_altered_ones_are_refused_or_serve() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/tune");
        let mut files: Vec<_> =
            fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut random = fastrand::Rng::with_seed(1);
        let mut accepted = 0;
        for file in files {
            let input = fs::read_to_string(&file).unwrap();
            tune_file(input.as_bytes());
            let digits: Vec<_> = input.match_indices(|c: char| c.is_ascii_digit()).collect();
            for _ in 0..2000 {
                let mut text = input.clone();
                let (at, _) = digits[random.usize(..digits.len())];
                let number =
                    [random.usize(..10), random.usize(..1 << 31), usize::MAX][random.usize(..3)];
                text.replace_range(at..=at, &number.to_string());
                let run = Run::new("node042", "Open MPI v4.1.4", RANKS);
                accepted += usize::from(results(&text, &run).is_ok());
                tune_file(text.as_bytes());
                let mut bytes = text.into_bytes();
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..128);
                tune_file(&bytes);
            }
        }
        assert!(accepted > 100, "{accepted}");
    }
}
