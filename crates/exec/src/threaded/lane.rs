//! One rank among threads: its memory, and its messages under way.

use std::collections::VecDeque;

use super::Shared;
use crate::{
    Buffer, Endpoint, EndpointMessage, ExecError, Memory, MemoryCopy, Region, Storage as _, Token,
};

/// One rank during an exchange.
pub(super) struct Lane<'m> {
    /// Its place among the plans.
    pub(super) own: usize,
    pub(super) endpoint: &'m mut Endpoint,
    pub(super) memory: Memory<'m>,
    pub(super) desk: &'m mut Desk,
}

/// The messages of one rank, in order: usually the first is the next one needed.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// Receives that have been started.
    pub(super) posted: VecDeque<EndpointMessage>,
    /// Messages that arrived before their receive was started.
    pub(super) early: VecDeque<Envelope>,
    /// Packed messages before they are sent, and received ones before they are unpacked.
    held: VecDeque<(Token, Payload)>,
}

#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) from: usize,
    pub(super) tag: u32,
    pub(super) payload: Payload,
}

#[derive(Debug)]
pub(super) enum Payload {
    /// A region of the sender's input.
    Lent(usize, Region),
    Packed(Vec<u8>),
}

impl Desk {
    pub(super) fn clear(&mut self) {
        self.posted.clear();
        self.early.clear();
        self.held.clear();
    }
}

impl Lane<'_> {
    pub(super) fn take_held(&mut self, token: Token) -> Payload {
        let at = self.desk.held.iter().position(|(held, _)| *held == token);
        let held = at.and_then(|at| self.desk.held.remove(at));
        held.expect("bug: no such staged message").1
    }

    pub(super) fn copy(&mut self, copy: MemoryCopy, shared: &Shared<'_>, spare: &mut Vec<Vec<u8>>) {
        match copy {
            MemoryCopy::Keep | MemoryCopy::Local => {
                let memory = &mut self.memory;
                let held = memory.work.len() as u64;
                // Only while it is copied is a block behind the registers.
                let behind =
                    |region: Region| region.buffer == Buffer::Work && region.offset >= held;
                let mut scratch = spare.pop().unwrap_or_default();
                self.endpoint.pieces(copy, |from, to| {
                    // A block of no bytes is nowhere.
                    if from.bytes == 0 {
                        return;
                    }
                    if behind(to) {
                        scratch.extend_from_slice(memory.bytes(from));
                    } else if behind(from) {
                        let first = (from.offset - held) as usize;
                        memory.write(to, &scratch[first..first + from.bytes as usize]);
                    } else {
                        memory.copy(from, to);
                    }
                });
                keep(scratch, spare);
            }
            MemoryCopy::Pack(message) => {
                let mut packed = spare.pop().unwrap_or_default();
                packed.reserve_exact(message.region.bytes as usize);
                let memory = &self.memory;
                self.endpoint.pieces(copy, |from, _| packed.extend_from_slice(memory.bytes(from)));
                self.desk.held.push_back((message.token, Payload::Packed(packed)));
            }
            MemoryCopy::Unpack(message) => {
                let payload = self.take_held(message.token);
                let bytes = shared.bytes(&payload);
                self.endpoint.pieces(copy, |from, to| {
                    let first = (from.offset - message.region.offset) as usize;
                    self.memory.write(to, &bytes[first..first + from.bytes as usize]);
                });
                shared.arrived(payload, spare);
            }
        }
    }

    /// Completes started receives whose messages have arrived; whether there were any.
    pub(super) fn receive(
        &mut self,
        shared: &Shared<'_>,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<bool, ExecError> {
        let mut any = false;
        let mut i = 0;
        while i < self.desk.posted.len() {
            let message = self.desk.posted[i];
            let from = self.endpoint.plan().place_of(message.peer, self.own);
            let fits = |envelope: &Envelope| (envelope.from, envelope.tag) == (from, message.tag);
            let at = self.desk.early.iter().position(fits);
            let Some(Envelope { payload, .. }) = at.and_then(|at| self.desk.early.remove(at))
            else {
                i += 1;
                continue;
            };
            any = true;
            self.desk.posted.remove(i);
            let bytes = shared.bytes(&payload);
            self.endpoint.complete(message.token, bytes.len() as u64)?;
            if message.staged {
                self.desk.held.push_back((message.token, payload));
            } else {
                self.memory.write(message.region, bytes);
                shared.arrived(payload, spare);
            }
        }
        Ok(any)
    }
}

/// Buffers that a thread keeps for messages to come.
const MOST_SPARE: usize = 64;

/// Keeps a buffer for messages to come.
pub(super) fn keep(mut buffer: Vec<u8>, spare: &mut Vec<Vec<u8>>) {
    if spare.len() < MOST_SPARE {
        buffer.clear();
        spare.push(buffer);
    }
}
