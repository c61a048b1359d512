//! MSCCL XML: an all-to-all among GPUs, a block a chunk.
//!
//! Slots of a rank are chunks 0 .. S-1 of its scratch buffer. Chunks received, or copied from slot
//! to slot, pass through chunks S .. 2S-1, since a step reads everything before it writes. Thread
//! block 0 copies. There is one more thread block for every peer sent to, and for every peer
//! received from. They wait for the copies before them, and block 0 waits for them.

use std::io::Write;

use topocoll_schedule::{Collective, SlotSet, Step};
use topocoll_topology::Rank;

use super::{Listing, Source, check, failed};
use crate::{AnalysisError, Progress, check_named, check_of_all, replay};

/// Why programs are not read: thread blocks move single chunks in an order that is not fixed, so a
/// program does not define steps and messages.
pub(super) const WHY: &str =
    "a program for GPUs does not say which chunks move together in one step";

/// Bytes of a step's line, and lines of a block that is sent, about.
const LINE: u128 = 130;
const LINES: u128 = 3;

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), AnalysisError> {
    let schedule = source.schedule;
    check_named(schedule)?;
    check_of_all(schedule)?;
    if schedule.problem.operation != Collective::AllToAll {
        let what = "all-gathers";
        return Err(AnalysisError::Unwritten { what });
    }
    if let Some(&cut) = schedule.rule().cuts().first() {
        return Err(AnalysisError::Split { cut });
    }
    let kept = 2 * u128::from(schedule.problem.ranks) * u128::from(schedule.rule().slots());
    check((Listing::of(schedule, None).blocks * LINES + kept) * LINE)?;
    // A schedule that sends an empty slot would send a chunk that is not set.
    let (held, _) = replay::run(schedule, source.machine, source.memory, &Progress::UNHEARD)?;
    held.map_err(AnalysisError::Broken)?;
    algorithm(source, out).map_err(failed)
}

fn algorithm(source: &Source<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let (schedule, ranks) = (source.schedule, source.schedule.problem.ranks);
    let name = &schedule.origin.algorithm;
    let name = name.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    writeln!(
        out,
        r#"<algo name="{name}" proto="Simple" nchannels="1" nchunksperloop="{ranks}" ngpus="{ranks}" coll="alltoall" inplace="0">"#
    )?;
    let slots = schedule.rule().slots();
    for rank in (0..ranks).map(Rank) {
        let gpu = Gpu::of(source, rank);
        writeln!(
            out,
            r#"  <gpu id="{rank}" i_chunks="{ranks}" o_chunks="{ranks}" s_chunks="{}">"#,
            2 * slots
        )?;
        for (id, block) in gpu.blocks.iter().enumerate() {
            let peer = |wanted| if block.sends == wanted { i64::from(block.peer) } else { -1 };
            let (send, recv) = (peer(Some(true)), peer(Some(false)));
            writeln!(out, r#"    <tb id="{id}" send="{send}" recv="{recv}" chan="0">"#)?;
            for (s, does) in block.does.iter().enumerate() {
                let Does { kind, from: (from, at), to: (to, there), waits, awaited } = does;
                let (id, step) = waits.map_or((-1, -1), |(id, step)| (id as i64, step as i64));
                let awaited = u8::from(*awaited);
                writeln!(
                    out,
                    r#"      <step s="{s}" type="{kind}" srcbuf="{from}" srcoff="{at}" dstbuf="{to}" dstoff="{there}" cnt="1" depid="{id}" deps="{step}" hasdep="{awaited}"/>"#
                )?;
            }
            writeln!(out, "    </tb>")?;
        }
        writeln!(out, "  </gpu>")?;
    }
    writeln!(out, "</algo>")?;
    out.flush()
}

/// A buffer's name and a chunk of it.
type Chunk = (char, u64);

struct Does {
    kind: &'static str,
    from: Chunk,
    to: Chunk,
    /// The block and step that it waits for.
    waits: Option<(usize, usize)>,
    /// Whether another step waits for it.
    awaited: bool,
}

struct ThreadBlock {
    /// Whether it sends (`true`) or receives.
    sends: Option<bool>,
    peer: u32,
    does: Vec<Does>,
}

struct Gpu {
    blocks: Vec<ThreadBlock>,
}

impl Gpu {
    fn of(source: &Source<'_>, rank: Rank) -> Self {
        let rule = source.schedule.rule();
        let slots = rule.slots();
        let mut gpu = Self { blocks: vec![ThreadBlock { sends: None, peer: 0, does: Vec::new() }] };
        let mut layout = Vec::new();
        rule.initial_layout(rank, &mut layout);
        for (slot, block) in (0..).zip(&layout) {
            if let Some(block) = block {
                gpu.copy(('i', block.to.0.into()), ('s', slot));
            }
        }
        let mut does = Step::default();
        for step in 0..rule.steps() {
            rule.step(rank, step, &mut does);
            let chunks = |set: &SlotSet| set.slots().map(|(slot, _)| slot).collect::<Vec<_>>();
            let (mut read, mut written) = (Vec::new(), Vec::new());
            for copy in &does.copies {
                read.extend(chunks(&copy.from));
                written.extend(chunks(&copy.to));
            }
            for &from in &read {
                gpu.copy(('s', from), ('s', slots + from));
            }
            for (&from, &to) in read.iter().zip(&written) {
                gpu.copy(('s', slots + from), ('s', to));
            }
            let copied = gpu.blocks[0].does.len().checked_sub(1);
            let mut arrived = Vec::new();
            for send in &does.sends {
                // The receiver gives the destination.
                let sent = chunks(&send.slots).into_iter().map(|slot| (('s', slot), ('o', 0)));
                gpu.message(true, send.peer, sent, copied);
            }
            for receive in &does.receives {
                arrived.extend(chunks(&receive.slots));
                let received = chunks(&receive.slots).into_iter();
                let received = received.map(|slot| (('i', 0), ('s', slots + slot)));
                gpu.message(false, receive.peer, received, copied);
            }
            let peers = does.sends.iter().map(|send| (true, send.peer));
            for (sends, peer) in peers.chain(does.receives.iter().map(|r| (false, r.peer))) {
                let id = gpu.block(sends, peer);
                let last = gpu.blocks[id].does.len() - 1;
                gpu.blocks[id].does[last].awaited = true;
                gpu.blocks[0].does.push(Does {
                    kind: "nop",
                    from: ('i', 0),
                    to: ('o', 0),
                    waits: Some((id, last)),
                    awaited: false,
                });
            }
            for slot in arrived {
                gpu.copy(('s', slots + slot), ('s', slot));
            }
        }
        rule.final_layout(rank, &mut layout);
        for (slot, block) in (0..).zip(&layout) {
            if let Some(block) = block {
                gpu.copy(('s', slot), ('o', block.from.0.into()));
            }
        }
        gpu
    }

    fn copy(&mut self, from: Chunk, to: Chunk) {
        self.blocks[0].does.push(Does { kind: "cpy", from, to, waits: None, awaited: false });
    }

    /// The thread block that sends to a peer, or receives from it.
    fn block(&mut self, sends: bool, peer: Rank) -> usize {
        let serves = |block: &ThreadBlock| (block.sends, block.peer) == (Some(sends), peer.0);
        self.blocks.iter().position(serves).unwrap_or_else(|| {
            self.blocks.push(ThreadBlock { sends: Some(sends), peer: peer.0, does: Vec::new() });
            self.blocks.len() - 1
        })
    }

    /// The chunks of a message, after the copies so far.
    fn message(
        &mut self,
        sends: bool,
        peer: Rank,
        chunks: impl Iterator<Item = (Chunk, Chunk)>,
        copied: Option<usize>,
    ) {
        let id = self.block(sends, peer);
        let mut waits = copied.map(|last| (0, last));
        if let Some(last) = copied {
            self.blocks[0].does[last].awaited = true;
        }
        for (from, to) in chunks {
            let kind = if sends { "s" } else { "r" };
            let waits = waits.take();
            self.blocks[id].does.push(Does { kind, from, to, waits, awaited: false });
        }
    }
}
