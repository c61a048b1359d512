//! The messages of a schedule of which every block's path is listed.

use topocoll_schedule::{Block, Message, Part, Problem, Recorder};
use topocoll_topology::Rank;

use super::connections::{Connection, Connections};
use super::follow::pieces_of;
use super::paths::Piece;

/// The messages of the steps that are used.
pub(super) fn messages(
    connections: &Connections,
    used: &[usize],
    parts: &[Part],
    pieces: &[Piece],
) -> Vec<Message> {
    let mut carried = vec![Vec::new(); connections.all.len()];
    for Piece { from, to, part, path, .. } in pieces {
        let block = Block { from: Rank(*from), to: Rank(*to) };
        path.iter().for_each(|&one| carried[one as usize].push((block, parts[*part])));
    }
    let mut messages = Vec::new();
    for (step, &of) in (0..).zip(used) {
        for one in connections.of_step(of) {
            let mut blocks: Vec<(Block, Part)> = std::mem::take(&mut carried[one]);
            if !blocks.is_empty() {
                blocks.sort_by_key(|(block, _)| (block.to, block.from));
                let Connection { from, to, route, .. } = &connections.all[one];
                let (from, to, route) = (Rank(*from), Rank(*to), Some(route.clone()));
                messages.push(Message { step, from, to, route, blocks });
            }
        }
    }
    messages
}

/// Messages whose blocks have the second parts instead of the first, and the sum over steps of the largest in bytes.
pub(super) fn recorded(
    messages: &[Message],
    [old, new]: &[Vec<Part>; 2],
    problem: Problem,
) -> (Recorder, u128) {
    let mut recorder = Recorder::new(problem);
    let mut bytes = 0;
    for step in messages.chunk_by(|one, next| one.step == next.step) {
        let mut largest = 0;
        for message in step {
            let mut sized = message.clone();
            for (_, part) in &mut sized.blocks {
                *part = new[pieces_of(old, *part).start];
            }
            let parts = sized.blocks.iter().map(|(_, part)| part.bytes(problem.block_bytes));
            largest = largest.max(parts.map(u128::from).sum());
            recorder.push(&sized);
        }
        bytes += largest;
    }
    (recorder, bytes)
}
