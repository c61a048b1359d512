//! Messages from programs of sends and receives.

use topocoll_schedule::{Recorder, Schedule, SizedMessage};
use topocoll_topology::Rank;

use super::Target;
use super::jsonl::Listed;
use super::messages::{Sized, size};
use super::order::{self, Order, Point};

/// A send or a receive.
#[derive(Clone, Debug)]
pub(super) struct MessageEnd {
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) tag: u32,
    pub(super) bytes: u64,
    /// Its line in the program of its rank.
    pub(super) line: usize,
    /// The points before and after it.
    pub(super) between: (Point, Point),
}

/// The sends and receives of all ranks.
pub(super) struct Ends<'a> {
    target: &'a Target<'a>,
    sends: Vec<MessageEnd>,
    receives: Vec<MessageEnd>,
    taken: u128,
}

/// The schedule in the JSON lines of the same file or folder.
pub(super) struct Named {
    pub(super) schedule: Schedule,
    pub(super) messages: Vec<Listed>,
}

/// An error: the rank of the program, the line, and the rule.
pub(super) type Wrong = (Rank, usize, String);

impl<'a> Ends<'a> {
    pub(super) fn new(target: &'a Target<'a>) -> Self {
        Self { target, sends: Vec::new(), receives: Vec::new(), taken: 0 }
    }

    pub(super) fn push(&mut self, sends: bool, end: MessageEnd) -> Result<(), String> {
        size(end.bytes)?;
        // Vectors have room for as much again.
        self.take(2 * size_of::<MessageEnd>() as u128 + Recorder::memory(1) / 2 + order::MEMORY)?;
        if sends { &mut self.sends } else { &mut self.receives }.push(end);
        Ok(())
    }

    /// Adds to the memory taken.
    pub(super) fn take(&mut self, bytes: u128) -> Result<(), String> {
        self.taken += bytes;
        self.target.check_memory(self.taken)
    }

    /// The schedule of these messages, with steps from their order; or the named schedule, if its
    /// messages are the same.
    ///
    /// As in MPI, the sends of one rank to another with one tag match its receives in order.
    pub(super) fn schedule(
        mut self,
        format: &str,
        order: Order,
        named: Option<Named>,
    ) -> Result<Schedule, Wrong> {
        for ends in [&mut self.sends, &mut self.receives] {
            ends.sort_by_key(|end| (end.from, end.to, end.tag));
        }
        self.check_pairs()?;
        match named {
            Some(named) => self.check_same(named.messages).map(|()| named.schedule),
            None => self.by_order(format, order),
        }
    }

    fn check_pairs(&self) -> Result<(), Wrong> {
        let mut receives = self.receives.iter().peekable();
        let key = |end: &MessageEnd| (end.from, end.to, end.tag);
        let never_sent = |receive: &MessageEnd| {
            let MessageEnd { from, to, tag, .. } = receive;
            (
                *to,
                receive.line,
                format!("rank {to} receives from rank {from} with tag {tag}, which is not sent"),
            )
        };
        for send in &self.sends {
            let MessageEnd { from, to, tag, bytes, line, .. } = send;
            match receives.next_if(|receive| key(receive) <= key(send)) {
                Some(receive) if key(receive) < key(send) => return Err(never_sent(receive)),
                Some(receive) if receive.bytes < *bytes => {
                    let (line, room) = (receive.line, receive.bytes);
                    return Err((
                        *to,
                        line,
                        format!("{room} bytes are received, but rank {from} sends {bytes}"),
                    ));
                }
                Some(_) => {}
                None => {
                    return Err((
                        *from,
                        *line,
                        format!(
                            "rank {from} sends to rank {to} with tag {tag}, which is not received"
                        ),
                    ));
                }
            }
        }
        receives.next().map_or(Ok(()), |receive| Err(never_sent(receive)))
    }

    /// Checks that the messages listed are the same, step by step, with one tag per step.
    fn check_same(mut self, mut listed: Vec<Listed>) -> Result<(), Wrong> {
        self.sends.sort_by_key(|end| (end.tag, end.from, end.to));
        listed.sort_by_key(|message| (message.step, message.from, message.to));
        let mut sends = self.sends.iter();
        let mut last: Option<(u32, u32)> = None;
        for Listed { step, from, to, bytes } in listed {
            let says = || format!("{bytes} bytes from rank {from} to {to} in step {step}");
            let Some(send) = sends.next() else {
                return Err((
                    from,
                    0,
                    format!("the JSON lines have {}, but the program does not", says()),
                ));
            };
            let same = (send.from, send.to, send.bytes) == (from, to, bytes);
            // Tags and steps change together.
            let together = last.is_none_or(|(tag, of)| (tag == send.tag) == (of == step));
            if !same || !together {
                let MessageEnd { from, to, tag, bytes, line, .. } = send;
                return Err((
                    *from,
                    *line,
                    format!(
                        "{bytes} bytes from rank {from} to {to} with tag {tag}, where the JSON lines have {}",
                        says()
                    ),
                ));
            }
            last = Some((send.tag, step));
        }
        sends.next().map_or(Ok(()), |send| {
            Err((send.from, send.line, "this message is not in the JSON lines".to_owned()))
        })
    }

    fn by_order(mut self, format: &str, mut order: Order) -> Result<Schedule, Wrong> {
        for (send, receive) in self.sends.iter().zip(&self.receives) {
            order.message(send.between, receive.between);
        }
        self.receives = Vec::new();
        let steps = order.steps().map_err(|stuck| {
            let send = &self.sends[stuck];
            (send.from, send.line, "this message waits for itself in a cycle".to_owned())
        })?;
        let mut by_step: Vec<usize> = (0..steps.len()).collect();
        by_step.sort_by_key(|&i| (steps[i], self.sends[i].from, self.sends[i].line));
        let wrong = |end: &MessageEnd, message| (end.from, end.line, message);
        let mut sized = Sized::new(self.target).map_err(|message| (Rank(0), 0, message))?;
        for i in by_step {
            let send = &self.sends[i];
            let step = steps[i];
            let &MessageEnd { from, to, bytes, .. } = send;
            let message = SizedMessage { step, from, to, route: None, bytes, packed: false };
            sized.push(&message).map_err(|message| wrong(send, message))?;
        }
        Ok(sized.schedule(format))
    }
}
