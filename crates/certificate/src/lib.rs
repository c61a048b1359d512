//! Checks certificates: proofs, on paper as it were, that a schedule delivers what it should and
//! costs what is said.
//!
//! This crate knows the format below and nothing of the programs that write it. It is meant to be
//! read in one sitting: [`check`] parses a certificate (`parse.rs`), moves the blocks of one rank of
//! each class (`follow.rs`), counts links, ports and bytes (`count.rs`) on the machine
//! (`machine.rs`), and compares with what the certificate lists.
//!
//! # What is proved
//! The certificate is the schedule: what one rank of each class, its representative, does in every
//! step. Every other rank does the same, translated. Ranks are read as coordinates in a mixed
//! radix, row-major, and two ranks are of one class if their coordinates differ by multiples of the
//! periods, counted around the sides. So it is enough to follow what representatives hold, each
//! block known by where it started and how far it has travelled: a block that a representative
//! receives is, translated, one that the representative of the sender's class holds. Nothing is
//! sampled and nothing is taken on trust but this reading of the file.
//!
//! Proved are: every rank starts with one block for each rank (in an all-gather, with one), and ends
//! with the block of every rank at the place where the certificate says; no place is written twice
//! in a step, and nothing is sent from an empty one; every message that is sent is received, and
//! along its way on the machine; the counts listed are the counts found, and so are the bounds.
//! Links are counted for one rank of each class where the translations keep them, for some rows of
//! ranks where the classes are shifts of all ranks in order and rows wrap around, and else for every
//! rank. Rearrangements within a rank before the first message and after the last are not told apart
//! from the caller's own order, and none are counted.
//!
//! # Format
//! Lines of ASCII, words apart by single spaces:
//!
//! ```text
//! topocoll certificate 1
//! machine grid 16~x16~            (~: the side wraps) or: complete 64, or: cluster 32*4,1*2
//! operation alltoall              or: allgather
//! ports 1                         messages sent, and received, by a rank (a node) in a step
//! block 1024                      bytes
//! algorithm suh-shin ways=one     who wrote it; not checked
//! ranks 16x16 by 4x4              sides of the mixed radix, and periods
//! slots 256                       places of a rank for whole blocks
//! pieces 1024                     bytes of the pieces of a block, where it is split: 1000;24
//! counts steps=10 bytes=...       as counted by `topocoll verify`
//! bounds steps=8 link_bytes=...   the least that any schedule needs
//! class 0                         then, of its representative:
//! start 0,0,16,16,16,16,1,1       rows apart by spaces: a slot, the displacement of its block's
//!                                 destination, and for each axis, the slowest first, how many
//!                                 there are, how far apart the slots and how far the destinations
//! finish 0,0,256,1,1              the same of the sources at the end
//! step 0                          in order; steps in which nothing happens are left out
//! copy 0,4,1 4,4,1                from and to, all at once
//! send 64 0:4 128,128,1           displacement of the receiver, its way, the slots
//! receive 192 128,128,1
//! sha256 0a1b...                  of everything above
//! ```
//!
//! A displacement is the rank that rank 0 is displaced to; displacements are added coordinate by
//! coordinate, around the sides. Slots are runs apart by `;`: a slot, or a
//! first slot, count and stride, or the count and stride of an outer index and then of an inner one.
//! Piece p of slot s is place p * slots + s. A way is `own`, the machine's own (dimension 0 first,
//! the nearer way, upwards at half a ring), or `dimension:hops` apart by `;`.
//!
//! # Example
//! Two ranks that swap a block of 64 bytes:
//!
//! ```
//! let swap = "\
//! topocoll certificate 1
//! machine complete 2
//! operation alltoall
//! ports 1
//! block 64
//! algorithm direct
//! ranks 2 by 1
//! slots 2
//! pieces 64
//! counts steps=1 messages=2 bytes=64 link_bytes=64 hops=0 link_conflicts=0 max_link_sharing=1 contended_steps=0 contention_free_steps=1 port_violations=0 inter_node_steps=0
//! bounds steps=1 link_bytes=64
//! class 0
//! start 0,0,2,1,1
//! finish 0,0,2,1,1
//! step 0
//! send 1 own 1
//! receive 1 1
//! sha256 88f7a2d6ea6cae96d0719db22eb53bca10b19190fc606f62a2bb7c4e631e7eab
//! ";
//! let proved = topocoll_certificate::check(swap.as_bytes())?;
//! assert_eq!((proved.ranks, proved.counts.steps), (2, 1));
//!
//! let longer = swap.replace("block 64", "block 65");
//! assert!(topocoll_certificate::check(longer.as_bytes()).is_err());
//! # Ok::<(), topocoll_certificate::Fault>(())
//! ```
#![forbid(unsafe_code)]

mod count;
mod fault;
mod follow;
mod machine;
mod parse;
mod radix;

use sha2::{Digest as _, Sha256};

pub use count::Counts;
pub use fault::{Fault, Found};

/// What a certificate proves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Proved {
    /// The machine.
    pub machine: String,
    /// Its ranks.
    pub ranks: u32,
    /// `alltoall` or `allgather`.
    pub operation: String,
    /// Messages that a rank or node sends, and receives, in a step.
    pub ports: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Who wrote the schedule, by the certificate's own word.
    pub algorithm: String,
    /// Classes of ranks whose representatives were followed.
    pub classes: u32,
    /// What was counted.
    pub counts: Counts,
    /// Steps that any schedule needs.
    pub least_steps: u64,
    /// Bytes that any schedule moves through its busiest links, step by step.
    pub least_link_bytes: u128,
    /// The certificate's digest, in hexadecimal.
    pub digest: String,
}

/// Checks a certificate.
///
/// Takes time in proportion to the classes times the slots that their ranks move, and memory of 16
/// bytes for each slot of each class, and as many for each that moves in one step.
///
/// # Errors
/// The first thing that does not hold, or cannot be read.
pub fn check(text: &[u8]) -> Result<Proved, Fault> {
    let (body, digest) = sealed(text)?;
    let certificate = parse::parse(body)?;
    let counted = count::counted(&certificate)?;
    follow::follow(&certificate)?;
    let counts = count::count(&certificate, &counted)?;
    counts.compare(&certificate.counts)?;
    let (least_steps, least_link_bytes) = count::bounds(&certificate);
    for (name, listed, found) in [
        ("steps", certificate.bounds.0.into(), least_steps.into()),
        ("link_bytes", certificate.bounds.1, least_link_bytes),
    ] {
        if listed != found {
            return Err(Fault::Bound { name, listed, found });
        }
    }
    Ok(Proved {
        machine: certificate.machine.name(),
        ranks: certificate.radix.ranks(),
        operation: if certificate.gathers { "allgather" } else { "alltoall" }.to_owned(),
        ports: certificate.ports,
        block_bytes: certificate.pieces.iter().sum(),
        algorithm: certificate.algorithm,
        classes: certificate.radix.classes(),
        counts,
        least_steps,
        least_link_bytes,
        digest,
    })
}

/// Reads a certificate, and looks whether it is small enough to be checked, in some minutes and
/// bounded memory.
///
/// # Errors
/// What cannot be read, or is too much.
pub fn check_limits(text: &[u8]) -> Result<(), Fault> {
    let (body, _) = sealed(text)?;
    count::counted(&parse::parse(body)?).map(drop)
}

/// The text above its digest, which must be that of the text.
fn sealed(text: &[u8]) -> Result<(&str, String), Fault> {
    const FIRST: &[u8] = b"topocoll certificate 1\n";
    if !text.starts_with(FIRST) {
        return Err(Fault::NoCertificate);
    }
    let lines = text.strip_suffix(b"\n").ok_or(Fault::Cut)?;
    let last = lines.iter().rposition(|&byte| byte == b'\n').ok_or(Fault::Cut)? + 1;
    let listed = lines[last..].strip_prefix(b"sha256 ").ok_or(Fault::Cut)?;
    let body = &text[..last];
    let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    if listed != digest.as_bytes() {
        return Err(Fault::Altered {
            listed: String::from_utf8_lossy(listed).into_owned(),
            digest,
        });
    }
    let body = std::str::from_utf8(&body[FIRST.len()..]).map_err(|_| Fault::NotAscii)?;
    if body.is_ascii() { Ok((body, digest)) } else { Err(Fault::NotAscii) }
}
