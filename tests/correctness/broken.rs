//! The verifier catches broken schedules: dropped, doubled, misrouted, early, late, swapped.

use common::{MEMORY, edited, schedule_of};
use proptest::prelude::*;
use topocoll::{
    Block, Collective, LocalCopy, Machine, Message, Method, Origin, Part, Problem, Rank, Recorder,
    Route, Schedule, SlotSet, Step, Strided, Violation, machine, verify,
};

/// One fault in a step of every rank that sends in it.
#[derive(Clone, Copy, Debug)]
enum How {
    DropSend,
    DropReceive,
    DropBoth,
    WrongPeer,
    WrongSlot,
    FewerSlots,
    WrongRoute,
    OutOfRange,
    SwapCopies,
    Overwrite,
}

const ALL: [How; 10] = [
    How::DropSend,
    How::DropReceive,
    How::DropBoth,
    How::WrongPeer,
    How::WrongSlot,
    How::FewerSlots,
    How::WrongRoute,
    How::OutOfRange,
    How::SwapCopies,
    How::Overwrite,
];

impl How {
    fn break_step(self, slots: u64, ranks: u32, out: &mut Step) {
        if out.sends.is_empty() {
            return;
        }
        let shifted = |set: &SlotSet| {
            let mut moved = set
                .runs()
                .iter()
                .map(|run| Strided { base: (run.slots.base + 1) % slots, ..run.slots });
            SlotSet::of(moved.next_back().unwrap())
        };
        match self {
            How::DropSend => out.sends.clear(),
            How::DropReceive => out.receives.clear(),
            How::DropBoth => out.clear(),
            How::WrongPeer => {
                out.sends[0].peer = Rank((out.sends[0].peer.0 + 1) % ranks);
            }
            How::WrongSlot => out.receives[0].slots = shifted(&out.receives[0].slots),
            How::FewerSlots => {
                let first = out.receives[0].slots.nth(0).unwrap();
                out.receives[0].slots =
                    SlotSet::of(Strided::contiguous(first, out.sends[0].slots.len() + 1));
            }
            How::WrongRoute => out.sends[0].route = Route::straight(0, 1),
            How::OutOfRange => {
                out.receives[0].slots =
                    SlotSet::of(Strided::contiguous(slots, out.sends[0].slots.len()));
            }
            How::SwapCopies => {
                let whole = SlotSet::of(Strided::contiguous(0, slots));
                out.copies.push(LocalCopy {
                    from: whole,
                    to: SlotSet::of(Strided::descending(slots - 1, slots)),
                });
            }
            How::Overwrite => {
                let sent = out.sends[0].slots.nth(0).unwrap();
                let kept =
                    (0..slots).find(|slot| out.sends[0].slots.position(*slot).is_none()).unwrap();
                out.copies.push(LocalCopy {
                    from: SlotSet::of(Strided::contiguous(sent, 1)),
                    to: SlotSet::of(Strided::contiguous(kept, 1)),
                });
            }
        }
    }
}

#[test]
fn every_way_to_break_a_step_is_caught_by_both_methods() {
    for (text, name) in [
        ("torus:8x8", "suh-shin"),
        ("torus:4x4x8", "suh-shin"),
        ("full:11", "bruck"),
        ("torus:8", "suh-shin"),
    ] {
        let machine = machine(text).unwrap();
        let problem = common::problem(&machine, Collective::AllToAll, 4);
        let sound = schedule_of(&machine, &problem, name, &Default::default()).unwrap();
        for step in 0..sound.rule().steps() {
            for how in ALL {
                if matches!(how, How::WrongRoute) && !text.starts_with("torus") {
                    continue;
                }
                let mut does = Step::default();
                sound.rule().step(Rank(0), step, &mut does);
                if does.sends.is_empty() {
                    continue;
                }
                // A route of one hop is right where the message goes one hop along dimension 0.
                if matches!(how, How::WrongRoute) && does.sends[0].route == Route::straight(0, 1) {
                    continue;
                }
                let slots = sound.rule().slots();
                let classes = sound.rule().classes();
                let broken = edited(&sound, classes, move |_, at, out| {
                    if at == step {
                        how.break_step(slots, problem.ranks, out);
                    }
                });
                for method in [Method::Replay, Method::Classes] {
                    let found = verify(&broken, &machine, Some(method), MEMORY).unwrap();
                    assert!(
                        found.violation.is_some(),
                        "{how:?} in step {step} of {name} on {text}, by {method:?}"
                    );
                }
            }
        }
    }
}

/// An all-gather whose last step overwrites, at every rank, a block that had arrived.
fn clobbered(sound: &Schedule) -> Schedule {
    let steps = sound.rule().steps();
    edited(sound, sound.rule().classes(), move |_, step, out| {
        if step + 1 == steps {
            let (next, previous) = (out.sends[0].peer, out.receives[0].peer);
            out.send(next, SlotSet::of(Strided::contiguous(0, 1)), Route::default());
            out.receive(previous, SlotSet::of(Strided::contiguous(2, 1)));
        }
    })
}

#[test]
fn a_block_overwritten_after_it_arrived_is_caught_by_both_methods() {
    let machine = machine("full:7").unwrap();
    let problem = common::problem(&machine, Collective::AllGather, 4);
    let sound = schedule_of(&machine, &problem, "ring", &Default::default()).unwrap();
    let broken = clobbered(&sound);
    for method in [Method::Replay, Method::Classes] {
        assert_eq!(verify(&sound, &machine, Some(method), MEMORY).unwrap().violation, None);
        assert!(
            verify(&broken, &machine, Some(method), MEMORY).unwrap().violation.is_some(),
            "{method:?}"
        );
    }
}

fn messages(schedule: &Schedule) -> Vec<Message> {
    let mut out = Vec::new();
    let mut does = Step::default();
    for step in 0..schedule.rule().steps() {
        for from in (0..schedule.problem.ranks).map(Rank) {
            schedule.rule().step(from, step, &mut does);
            for send in &does.sends {
                let block = (Block { from, to: send.peer }, Part::Whole);
                out.push(Message { step, from, to: send.peer, route: None, blocks: vec![block] });
            }
        }
    }
    out
}

fn recorded(problem: Problem, messages: &[Message]) -> Schedule {
    let origin = Origin { algorithm: "by hand".to_owned(), parameters: Default::default() };
    let mut recorder = Recorder::new(problem);
    messages.iter().for_each(|message| recorder.push(message));
    Schedule::new(problem, origin, recorder.finish())
}

fn direct() -> (Machine, Problem, Vec<Message>) {
    let machine = machine("full:6").unwrap();
    let problem = common::problem(&machine, Collective::AllToAll, 8);
    let schedule = schedule_of(&machine, &problem, "direct", &Default::default()).unwrap();
    (machine, problem, messages(&schedule))
}

proptest! {
    #[test]
    fn a_missing_message_is_an_undelivered_block(pick in any::<prop::sample::Index>()) {
        let (machine, problem, mut messages) = direct();
        messages.remove(pick.index(messages.len()));
        let found = verify(&recorded(problem, &messages), &machine, None, MEMORY).unwrap();
        let undelivered = matches!(found.violation, Some(Violation::NoPlace { .. }));
        prop_assert!(undelivered);
    }

    #[test]
    fn a_missing_byte_is_an_undelivered_block(pick in any::<prop::sample::Index>(), cut in 1u64..8, head in any::<bool>()) {
        let (machine, problem, mut messages) = direct();
        let i = pick.index(messages.len());
        messages[i].blocks[0].1 = if head { Part::Bytes { first: 0, end: cut } } else { Part::Bytes { first: cut, end: 8 } };
        let broken = verify(&recorded(problem, &messages), &machine, None, MEMORY).unwrap();
        prop_assert!(broken.violation.is_some());
        // The rest in another message makes it whole.
        let mut rest = messages[i].clone();
        rest.blocks[0].1 = if head { Part::Bytes { first: cut, end: 8 } } else { Part::Bytes { first: 0, end: cut } };
        rest.step = messages.last().unwrap().step + 1;
        messages.push(rest);
        let mended = verify(&recorded(problem, &messages), &machine, None, MEMORY).unwrap();
        prop_assert_eq!(mended.violation, None);
        prop_assert_eq!(mended.counts.bytes, 5 * 8 + if head { 8 - u128::from(cut) } else { u128::from(cut) });
    }

    #[test]
    fn a_message_sent_before_its_block_arrives_is_caught(pick in any::<prop::sample::Index>()) {
        let (machine, problem, mut messages) = direct();
        // A rank forwards a block that it never had.
        let i = pick.index(messages.len());
        let block = messages[i].blocks[0].0;
        messages[i].blocks[0].0 = Block { from: block.to, to: block.from };
        let found = verify(&recorded(problem, &messages), &machine, None, MEMORY).unwrap();
        prop_assert!(found.violation.is_some());
    }
}

/// Messages of rank 0 on full:3, as (step, from, to, part of block 0 -> 1), added to an exchange that
/// delivers after step 1, and the number of resent blocks.
#[test]
fn resent_blocks_are_counted_and_not_refused() {
    let machine = machine("full:3").unwrap();
    let problem = common::problem(&machine, Collective::AllToAll, 8);
    let whole = Part::Whole;
    let [low, high] = [(0, 4), (4, 8)].map(|(first, end)| Part::Bytes { first, end });
    let exchange = schedule_of(&machine, &problem, "direct", &Default::default()).unwrap();
    type Extra = (u32, u32, u32, Part);
    let cases: [(&[Extra], u64); 8] = [
        (&[], 0),
        // The first of these was delivered in step 0.
        (&[(2, 0, 1, whole)], 1),
        (&[(2, 0, 1, whole), (3, 0, 1, whole)], 2),
        (&[(2, 0, 1, low), (2, 0, 2, high)], 2),
        // In the same step, too.
        (&[(0, 0, 2, whole)], 1),
        (&[(0, 0, 2, low), (1, 0, 2, high)], 2),
        // A block that moves there and back is not resent, and neither is one that moves on.
        (&[(2, 1, 0, whole), (3, 0, 2, whole), (4, 2, 1, whole)], 0),
        // Rank 2 forwards the block, and no longer has it.
        (&[(2, 1, 2, whole), (3, 2, 1, whole), (4, 2, 0, low)], 1),
    ];
    for (extra, resent) in cases {
        let mut messages = messages(&exchange);
        messages.extend(extra.iter().map(|&(step, from, to, part)| Message {
            step,
            from: Rank(from),
            to: Rank(to),
            route: None,
            blocks: vec![(Block { from: Rank(0), to: Rank(1) }, part)],
        }));
        messages.sort_by_key(|message| message.step);
        let schedule = recorded(problem, &messages);
        let found = verify(&schedule, &machine, Some(Method::Replay), MEMORY).unwrap();
        assert_eq!((found.violation, found.resent_blocks), (None, Some(resent)), "{extra:?}");
    }
    // An all-gather makes copies. Classes, and a replay that breaks off, do not count them.
    let gather = common::problem(&machine, Collective::AllGather, 8);
    let ring = schedule_of(&machine, &gather, "ring", &Default::default()).unwrap();
    let resent = |schedule: &Schedule, method| {
        verify(schedule, &machine, Some(method), MEMORY).unwrap().resent_blocks
    };
    assert_eq!(resent(&ring, Method::Replay), None);
    assert_eq!(resent(&exchange, Method::Classes), None);
    let mut unheld = messages(&exchange);
    unheld[0].blocks[0].0 = Block { from: Rank(1), to: Rank(0) };
    assert_eq!(resent(&recorded(problem, &unheld), Method::Replay), None);
}

#[test]
fn two_messages_through_one_port_are_counted() {
    let (machine, problem, mut messages) = direct();
    for message in &mut messages {
        message.step /= 2;
    }
    messages.sort_by_key(|message| message.step);
    let found = verify(&recorded(problem, &messages), &machine, None, MEMORY).unwrap();
    assert_eq!(found.violation, None);
    // Rounds 0 and 1 share a step, so do 2 and 3: each of 6 ranks sends and receives twice.
    assert_eq!(found.counts.port_violations, 2 * 6 * 2);
}
