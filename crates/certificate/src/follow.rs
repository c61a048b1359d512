//! Follows the blocks that representatives hold, step by step.

use crate::Fault;
use crate::certificate::{Certificate, LayoutRow, Slots, Step};
use crate::fault::Found;

/// A block: its initial class and slot as one number, and its displacement so far.
#[derive(Clone, Copy)]
struct Held {
    block: u32,
    travelled: u32,
}

const NOTHING: Held = Held { block: u32::MAX, travelled: 0 };

struct Follower<'c> {
    certificate: &'c Certificate,
    /// Places of one rank.
    places: usize,
    /// By class and place.
    held: Vec<Held>,
    /// The time of the last write to a place, to find two writes at once.
    written: Vec<u32>,
    /// Blocks in flight: a place by class, and its new block.
    moving: Vec<(usize, Held)>,
}

/// One end of a message: the class of its sender, its displacement, the class of its receiver, and
/// the slots at this end.
struct MessageEnd<'c> {
    sender: u32,
    by: u32,
    receiver: u32,
    slots: &'c Slots,
}

impl MessageEnd<'_> {
    /// The key that both ends of a message share.
    fn message(&self) -> (u32, u32) {
        (self.sender, self.by)
    }
}

const TWICE: &str = "a slot is written twice at once";

/// Moves the blocks of every representative and checks where they end.
pub(crate) fn follow(certificate: &Certificate) -> Result<(), Fault> {
    let places = certificate.slots as usize * certificate.pieces.len();
    let all = places * certificate.radix.classes() as usize;
    let mut follower = Follower {
        certificate,
        places,
        held: vec![NOTHING; all],
        written: vec![0; all],
        moving: Vec::new(),
    };
    let goals = follower.start()?;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for step in certificate.in_order() {
        follower.step(step, &mut sent, &mut received)?;
    }
    follower.finish(&goals)
}

/// Calls `each` with the slots of a layout and their displacements. Checks that it has each
/// displacement below `wanted` once, and no slot twice.
fn laid_out(
    certificate: &Certificate,
    class: u32,
    rows: &[LayoutRow],
    wanted: u32,
    mut each: impl FnMut(u64, u32) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let is = |rule| Fault::Layout { class, rule };
    if rows.iter().map(|row| u128::from(row.count())).sum::<u128>() != wanted.into() {
        return Err(is("a layout has more or fewer blocks than a rank"));
    }
    let mut listed = vec![false; wanted as usize];
    let mut taken = vec![false; certificate.slots as usize];
    for row in rows {
        row.each(&certificate.radix, &mut |slot, displacement| {
            if displacement >= wanted {
                return Err(is("a layout has a block that a rank does not"));
            }
            if std::mem::replace(&mut listed[displacement as usize], true) {
                return Err(is("a layout has a block twice"));
            }
            if std::mem::replace(&mut taken[slot as usize], true) {
                return Err(is("a layout has a slot twice"));
            }
            each(slot, displacement)
        })?;
    }
    Ok(())
}

impl<'c> Follower<'c> {
    /// Sets the initial layout. Returns, by block, the displacement it has to travel.
    fn start(&mut self) -> Result<Vec<u32>, Fault> {
        let certificate = self.certificate;
        let slots = certificate.slots;
        let blocks = if certificate.gathers { 1 } else { certificate.radix.ranks() };
        let mut goals = vec![0; slots as usize * certificate.layouts.len()];
        for (class, rows) in (0..).zip(certificate.layouts.iter().map(|layout| &layout.start)) {
            laid_out(certificate, class, rows, blocks, |slot, displacement| {
                let block = u64::from(class) * slots + slot;
                goals[block as usize] = displacement;
                for piece in 0..certificate.pieces.len() {
                    let place = piece * slots as usize + slot as usize;
                    let held = Held { block: block as u32, travelled: 0 };
                    self.held[class as usize * self.places + place] = held;
                }
                Ok(())
            })?;
        }
        Ok(goals)
    }

    fn step(
        &mut self,
        step: &'c [Step],
        sent: &mut Vec<MessageEnd<'c>>,
        received: &mut Vec<MessageEnd<'c>>,
    ) -> Result<(), Fault> {
        let radix = &self.certificate.radix;
        let number = step[0].number;
        for does in step {
            for (from, to) in &does.copies {
                self.take(number, (does.class, from), (does.class, to), 0)?;
            }
        }
        self.put(number, 2 * number + 1)?;
        sent.clear();
        received.clear();
        for does in step {
            let rank = radix.representative(does.class);
            let peer = |displacement| radix.class_of(radix.sum(rank, displacement));
            sent.extend(does.sends.iter().map(|send| MessageEnd {
                sender: does.class,
                by: send.to,
                receiver: peer(send.to),
                slots: &send.slots,
            }));
            received.extend(does.receives.iter().map(|(from, slots)| MessageEnd {
                sender: peer(*from),
                by: radix.back(*from),
                receiver: does.class,
                slots,
            }));
        }
        // Messages from one rank to another are received in the order in which they are sent.
        sent.sort_by_key(MessageEnd::message);
        received.sort_by_key(MessageEnd::message);
        for i in 0..sent.len().max(received.len()) {
            let (class, rule) = match (sent.get(i), received.get(i)) {
                (Some(sent), Some(received)) if sent.message() == received.message() => {
                    let to = (received.receiver, received.slots);
                    self.take(number, (sent.sender, sent.slots), to, sent.by)?;
                    continue;
                }
                (Some(sent), next) if next.is_none_or(|next| sent.message() < next.message()) => {
                    (sent.sender, "a message is sent that nobody receives")
                }
                (_, received) => {
                    let receiver = received.expect("bug: neither end").receiver;
                    (receiver, "a message is received that nobody sends")
                }
            };
            return Err(Fault::Step { step: number, class, rule });
        }
        self.put(number, 2 * number + 2)
    }

    /// Moves the blocks of one rank's slots to those of another rank, `by` further.
    fn take(
        &mut self,
        step: u32,
        (from, taken): (u32, &Slots),
        (to, put): (u32, &Slots),
        by: u32,
    ) -> Result<(), Fault> {
        let is = |class, rule| Fault::Step { step, class, rule };
        if taken.count() != put.count() {
            return Err(is(to, "the two ends of a message have equally many slots"));
        }
        if self.moving.len() as u64 + put.count() > self.held.len() as u64 {
            return Err(is(to, TWICE));
        }
        let radix = &self.certificate.radix;
        let (by, slots) = (radix.shift(by), self.certificate.slots as usize);
        let whole = self.certificate.pieces.len() == 1;
        let (from_base, to_base) = (from as usize * self.places, to as usize * self.places);
        for (at, to_at) in taken.each().zip(put.each()) {
            let Held { block, travelled } = self.held[from_base + at];
            if block == NOTHING.block {
                return Err(is(from, "an empty slot is sent or copied"));
            }
            if !whole && at / slots != to_at / slots {
                return Err(is(to, "a piece of a block lands as another"));
            }
            let held = Held { block, travelled: by.apply(travelled) };
            self.moving.push((to_base + to_at, held));
        }
        Ok(())
    }

    /// Writes all blocks in flight at once.
    fn put(&mut self, step: u32, time: u32) -> Result<(), Fault> {
        for (place, held) in self.moving.drain(..) {
            if std::mem::replace(&mut self.written[place], time) == time {
                let class = (place / self.places) as u32;
                return Err(Fault::Step { step, class, rule: TWICE });
            }
            self.held[place] = held;
        }
        Ok(())
    }

    /// Checks that every block is at its place.
    fn finish(&self, goals: &[u32]) -> Result<(), Fault> {
        let certificate = self.certificate;
        let radix = &certificate.radix;
        for (class, rows) in (0..).zip(certificate.layouts.iter().map(|layout| &layout.finish)) {
            laid_out(certificate, class, rows, radix.ranks(), |slot, displacement| {
                let travelled = radix.back(displacement);
                for piece in 0..certificate.pieces.len() as u64 {
                    let place = (piece * certificate.slots + slot) as usize;
                    let held = self.held[class as usize * self.places + place];
                    let found = match held {
                        Held { block: u32::MAX, .. } => Found::Nothing,
                        Held { travelled: by, .. } if by != travelled => Found::Travelled(by),
                        Held { block, .. }
                            if !certificate.gathers && goals[block as usize] != travelled =>
                        {
                            Found::Another
                        }
                        _ => continue,
                    };
                    return Err(Fault::Undelivered { class, slot, displacement, found });
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
