//! Checks certificates: files that prove that a schedule delivers every block, and that its counts
//! are right.
//!
//! This crate depends on the format below and on no other crate of ours. It is meant to be read in
//! one sitting: [`check`] parses a certificate (`parse.rs`, `certificate.rs`), moves the blocks of one
//! rank of each class (`follow.rs`), counts links, ports and bytes (`count.rs`) on the machine
//! (`machine.rs`) and its links (`lines.rs` for grids, `graph.rs` for listed links), and compares the
//! counts with those listed and with lower bounds (`bounds.rs`).
//!
//! # What is proved
//! The certificate is the schedule: it lists every step of one rank of each class, its
//! representative. Every other rank performs the same steps, translated. Ranks are coordinates in a
//! mixed radix, row-major. Two ranks are of one class if their coordinates differ by multiples of
//! the periods, counted around the sides. So it is enough to follow the blocks of representatives,
//! each identified by its initial place and its displacement: a block that a representative
//! receives is, translated, a block of the representative of the sender's class. Nothing is
//! sampled. The proof relies only on this definition of the file.
//!
//! The check proves: Every rank starts with one block for each rank (in an all-gather, with one
//! block), and ends with the block of every rank at the place that the certificate gives. No place
//! is written twice in a step, and no empty place is sent. Every message sent is received, and its
//! route over the links of the machine leads to the node of its receiver. The counts and bounds
//! listed are those found. If no ports are exceeded, no count is below its bound; those of links and
//! hops never are. Rearrangements before the first message and after the last are part of the
//! layouts, and rearrangements are not counted.
//!
//! Ports and links are counted for one rank of each class only where the translations of classes
//! keep the links: on complete networks; and on grids whose nodes are equal, if classes are
//! translations along sides that wrap, or shifts of all ranks or nodes in order and rows wrap around
//! (then some rows are counted). Else, and wherever links are listed, they are counted for every
//! rank.
//!
//! # Format
//! Lines of printable ASCII, words separated by single spaces:
//!
//! ```text
//! topocoll certificate 1
//! machine grid 16~x16~            (~: the side wraps) or: complete 64; cluster 32*4,1*2 (nodes
//!                                 times the ranks on each); grid 8~x6 balanced (see below); graph
//!                                 8+4 (nodes and switches); and of grids and graphs with several
//!                                 ranks on each node: grid 4x4 nodes 16*2
//! vertex 0 4 5:1 - 6*1/2          of a graph, for each node and then each switch, by port: the
//!                                 vertex that the link leads to, its capacity if not 1, its length
//!                                 if not 0, or - without a link
//! next 1*4 0/1*2 2 0              the ports by which messages to each node leave this vertex, if the
//!                                 machine has routes: to the first four nodes port 1, then 0 or 1
//! operation alltoall              or: allgather
//! ports 1                         messages sent, and received, in a step: by a rank, and where
//!                                 nodes hold several ranks by a node from and to others
//! node_ports 8                    those of a node, if not the same
//! block 1024                      bytes
//! algorithm suh-shin ways=one     name and parameters; not checked
//! ranks 16x16 by 4x4              sides of the mixed radix, and periods; 4+2x8 by 1x1: a turn
//!                                 around the first side leads 2 along each of the longest
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
//! send 64 0:4 128,128,1           displacement of the receiver, its route, the slots
//! receive 192 128,128,1
//! sha256 4f727710da561dd4b7c022f750c97694533647dc2a00c4b9986339a2c6393f38
//! ```
//!
//! A displacement is the rank that rank 0 is displaced to; displacements are added coordinate by
//! coordinate, around the sides. If a side is twisted, all periods are 1. Slots are runs separated by
//! `;`: a slot; or a first slot, count and stride; or a first slot, and the count and stride of an
//! outer index and then of an inner one. Piece p of slot s is place p * slots + s.
//!
//! A route is `own`, the machine's own, or `dimension:hops` separated by `;`, and on a graph
//! `port:hops`: a number of links, each leaving by this port. It leads from node to node; ranks of
//! one node need no links. Own routes on a grid correct dimension 0 first, in the nearer direction.
//! At half a ring they go upwards, and on a `balanced` grid downwards from odd coordinates. On a
//! graph `next` gives them link by link: of c ports a message takes number (source node + destination
//! node) mod c, counted from 0.
//!
//! # Bounds
//! A rank and a node must receive what they need through their ports, and blocks spread from rank to
//! rank and from node to node by them; the links of a node, those
//! across the middle of a grid's side, and the diameter give bounds too. The steps in which a block
//! moves, each with its port, fix where it ends: that bounds the bytes of an all-to-all in as many
//! steps (`bounds.rs`). On a graph, lengths of links
//! bound an all-to-all: the routes of all blocks are together at least as long as the distances of
//! their ends, and at most the sum of all lengths times capacities if the busiest link carries one
//! byte for each unit of its capacity. All lengths give a true bound; `topocoll` lists good ones.
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
//! counts steps=1 messages=2 bytes=64 link_bytes=64 hops=0 link_conflicts=0 max_link_sharing=0 contended_steps=0 contention_free_steps=1 port_violations=0 inter_node_steps=0
//! bounds steps=1 link_bytes=64
//! class 0
//! start 0,0,2,1,1
//! finish 0,0,2,1,1
//! step 0
//! send 1 own 1
//! receive 1 1
//! sha256 3f8a182dae72de35cfa80430669f5bdca589c0352353d9cc6f3aed3f066c40f6
//! ";
//! let proved = topocoll_certificate::check(swap.as_bytes())?;
//! assert_eq!((proved.ranks, proved.counts.steps), (2, 1));
//!
//! let longer = swap.replace("block 64", "block 65");
//! assert!(topocoll_certificate::check(longer.as_bytes()).is_err());
//! # Ok::<(), topocoll_certificate::Fault>(())
//! ```
#![forbid(unsafe_code)]

mod bounds;
mod certificate;
mod count;
mod fault;
mod follow;
mod graph;
mod lines;
mod machine;
mod parse;
mod radix;

use bounds::Bounds;
use sha2::{Digest as _, Sha256};

pub use count::Counts;
pub use fault::{Fault, Found};

/// The facts that a certificate proves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Proved {
    /// The machine.
    pub machine: String,
    /// Its ranks.
    pub ranks: u32,
    /// `alltoall` or `allgather`.
    pub operation: String,
    /// Messages that a rank sends and receives in a step.
    pub ports: u64,
    /// Messages that a node sends to others, and receives from them, in a step.
    pub node_ports: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The algorithm named in the certificate, which is not checked.
    pub algorithm: String,
    /// Classes of ranks whose representatives were followed.
    pub classes: u32,
    /// The counts.
    pub counts: Counts,
    /// The least steps of a schedule that exceeds no ports.
    pub least_steps: u64,
    /// The least sum over steps of the largest message of such a schedule, in bytes.
    pub least_bytes: u128,
    /// The least sum over steps of its largest message or link load, in bytes.
    pub least_link_bytes: u128,
    /// The same of schedules of at most as many steps; `None` of an all-gather, and if ports are
    /// exceeded.
    pub tradeoff_link_bytes: Option<u128>,
    /// The certificate's digest, in hexadecimal.
    pub digest: String,
}

/// Checks a certificate.
///
/// Time is proportional to the slots that representatives move, and the links that messages take.
/// Memory is 16 bytes for each slot of each class, and 16 for each slot that moves in one step.
///
/// # Errors
/// The first line that is not valid, or fact that does not hold.
pub fn check(text: &[u8]) -> Result<Proved, Fault> {
    let (body, digest) = sealed(text)?;
    let certificate = parse::parse(body)?;
    let counted = count::Counted::of(&certificate)?;
    follow::follow(&certificate)?;
    let counts = count::count(&certificate, &counted)?;
    counts.compare(&certificate.counts)?;
    let bounds = Bounds::of(&certificate);
    for (name, listed, found) in [
        ("steps", certificate.bounds.0.into(), bounds.steps.into()),
        ("link_bytes", certificate.bounds.1, bounds.link_bytes()),
    ] {
        if listed != found {
            return Err(Fault::Bound { name, listed, found });
        }
    }
    bounds.hold(&counts)?;
    Ok(Proved {
        machine: certificate.machine.name(),
        ranks: certificate.radix.ranks(),
        operation: if certificate.gathers { "allgather" } else { "alltoall" }.to_owned(),
        ports: certificate.ports,
        node_ports: certificate.node_ports,
        block_bytes: certificate.pieces.iter().sum(),
        algorithm: certificate.algorithm,
        classes: certificate.radix.classes(),
        counts,
        least_steps: bounds.steps,
        least_bytes: bounds.bytes,
        least_link_bytes: bounds.link_bytes(),
        tradeoff_link_bytes: (!certificate.gathers && counts.port_violations == 0)
            .then(|| bounds.bytes_in(counts.steps).max(bounds.link_bytes())),
        digest,
    })
}

/// Reads a certificate, and checks that [`check`] takes at most some minutes and bounded memory.
///
/// # Errors
/// An invalid line, or a limit exceeded.
pub fn check_limits(text: &[u8]) -> Result<(), Fault> {
    let (body, _) = sealed(text)?;
    count::Counted::of(&parse::parse(body)?).map(drop)
}

/// The text before the digest, and the digest, which is checked.
fn sealed(text: &[u8]) -> Result<(&str, String), Fault> {
    const FIRST: &[u8] = b"topocoll certificate 1\n";
    if !text.starts_with(FIRST) {
        return Err(version(text).map_or(Fault::NoCertificate, Fault::Version));
    }
    let lines = text.strip_suffix(b"\n").ok_or(Fault::Cut)?;
    let last = lines.iter().rposition(|&byte| byte == b'\n').ok_or(Fault::Cut)? + 1;
    let listed = lines[last..].strip_prefix(b"sha256 ").ok_or(Fault::Cut)?;
    let body = &text[..last];
    let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    if listed != digest.as_bytes() {
        return Err(Fault::Altered {
            listed: listed.escape_ascii().map(char::from).take(digest.len()).collect(),
            digest,
        });
    }
    let body = std::str::from_utf8(&body[FIRST.len()..]).map_err(|_| Fault::NotAscii)?;
    let printable = |byte: u8| byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
    if body.bytes().all(printable) { Ok((body, digest)) } else { Err(Fault::NotAscii) }
}

/// The number of the format's version in line 1.
fn version(text: &[u8]) -> Option<u32> {
    let line = text.strip_prefix(b"topocoll certificate ")?.split(|&byte| byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok().filter(|&version| version != 1)
}
