//! Each violation is named with its step, ranks and slot, for whole blocks and for blocks in two pieces,
//! by replay and by classes.

use common::{MEMORY, edited, schedule_of};
use topocoll::{
    Block, Collective, Counts, LocalCopy, Method, Origin, Parameters, Part, Problem, Rank,
    RankClasses, Route, Rule, Schedule, Setting, Slot, SlotSet, Step, Strided, Violation, machine,
    verify, write_certificate,
};

const RANKS: u32 = 4;

/// Blocks to the ranks, blocks from the ranks, and two to spare.
const SLOTS: u64 = 10;
const SPARE: Slot = 8;

type Alter = fn(Rank, u32, &mut Step);

/// The block in a slot of a rank.
type Layout = fn(Rank, Slot) -> Option<Block>;

/// An all-to-all on a ring of four, every block straight in step s to the rank s + 1 further, altered.
#[derive(Clone)]
struct Altered {
    how: Alter,
    start: Layout,
    finish: Layout,
    cuts: &'static [u64],
}

fn one(slot: Slot) -> SlotSet {
    SlotSet::of(Strided::contiguous(slot, 1))
}

fn starts(rank: Rank, slot: Slot) -> Option<Block> {
    (slot < 4).then_some(Block { from: rank, to: Rank(slot as u32) })
}

fn finishes(rank: Rank, slot: Slot) -> Option<Block> {
    (4..8).contains(&slot).then(|| Block { from: Rank(slot as u32 - 4), to: rank })
}

impl Rule for Altered {
    fn steps(&self) -> u32 {
        RANKS - 1
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (to, from) = ((rank.0 + step + 1) % RANKS, (rank.0 + 3 * (step + 1)) % RANKS);
        if step == 0 {
            out.copies
                .push(LocalCopy { from: one(rank.0.into()), to: one(4 + Slot::from(rank.0)) });
        }
        let hops = if step == 2 { -1 } else { i64::from(step) + 1 };
        out.send(Rank(to), one(to.into()), Route::straight(0, hops));
        out.receive(Rank(from), one(4 + Slot::from(from)));
        (self.how)(rank, step, out);
    }
    fn slots(&self) -> u64 {
        SLOTS
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (self.start)(rank, slot)
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (self.finish)(rank, slot)
    }
    fn cuts(&self) -> &[u64] {
        self.cuts
    }
}

const SOUND: Altered = Altered { how: |_, _, _| (), start: starts, finish: finishes, cuts: &[] };

fn found(rule: &Altered, method: Method) -> Option<Violation> {
    let machine = machine("torus:4").unwrap();
    let problem = Problem::new(Collective::AllToAll, RANKS, 2, 4).unwrap();
    let origin = Origin { algorithm: "by hand".into(), parameters: Parameters::new() };
    let schedule = Schedule::new(problem, origin, rule.clone());
    verify(&schedule, &machine, Some(method), MEMORY).unwrap().violation
}

fn is_named(what: &str, rule: &Altered, expected: Option<&Violation>) {
    for cuts in [&[][..], &[2][..]] {
        let rule = Altered { cuts, ..rule.clone() };
        assert_eq!(found(&rule, Method::Replay).as_ref(), expected, "{what}, replayed, {cuts:?}");
    }
    // Classes follow whole blocks, so they refuse more. The reported violation does not depend on
    // threads.
    let by_classes = found(rule, Method::Classes);
    for _ in 0..20 {
        assert_eq!(found(rule, Method::Classes), by_classes, "{what}, once more");
    }
    match expected {
        Some(Violation::OutOfRange { .. }) => assert_eq!(by_classes.as_ref(), expected, "{what}"),
        _ => assert!(by_classes.is_some() || expected.is_none(), "{what}, by classes"),
    }
}

/// Adds a message from a rank to another, in step 1.
fn extra(rank: Rank, step: u32, out: &mut Step, [from, to]: [u32; 2], sent: SlotSet, got: SlotSet) {
    let hops = (i64::from(to) - i64::from(from)).rem_euclid(4);
    if (rank.0, step) == (from, 1) {
        out.send(Rank(to), sent, Route::straight(0, hops));
    }
    if (rank.0, step) == (to, 1) {
        out.receive(Rank(from), got);
    }
}

#[test]
fn every_violation_is_named_with_its_place() {
    is_named("nothing altered", &SOUND, None);
    let harmless: Alter = |rank, step, out| extra(rank, step, out, [1, 2], one(5), one(SPARE));
    is_named("a message more", &Altered { how: harmless, ..SOUND }, None);

    let (first, second, third) = (Rank(1), Rank(2), Rank(3));
    let cases: [(&str, Alter, Violation); 13] = [
        (
            "a message that nobody receives",
            |rank, step, out| {
                if (rank.0, step) == (1, 1) {
                    out.send(Rank(2), one(5), Route::straight(0, 1));
                }
            },
            Violation::NoReceive { step: 1, from: first, to: second },
        ),
        (
            "a second message to who receives one",
            |rank, step, out| {
                if (rank.0, step) == (1, 1) {
                    out.send(Rank(3), one(5), Route::straight(0, 2));
                }
            },
            Violation::NoReceive { step: 1, from: first, to: third },
        ),
        (
            "a message to a rank that is none",
            |rank, step, out| {
                if (rank.0, step) == (1, 1) {
                    out.send(Rank(4), one(5), Route::straight(0, 3));
                }
            },
            Violation::NoReceive { step: 1, from: first, to: Rank(4) },
        ),
        (
            "a message to itself",
            |rank, step, out| extra(rank, step, out, [1, 1], one(5), one(SPARE)),
            Violation::NoReceive { step: 1, from: first, to: first },
        ),
        (
            "a receive that nobody sends",
            |rank, step, out| {
                if (rank.0, step) == (1, 1) {
                    out.receive(Rank(2), one(SPARE));
                }
            },
            Violation::NoSend { step: 1, from: second, to: first },
        ),
        (
            "a route to another rank",
            |rank, step, out| {
                if (rank.0, step) == (1, 1) {
                    out.sends[0].route = Route::straight(0, 1);
                }
            },
            Violation::Misrouted { step: 1, from: first, to: third },
        ),
        (
            "the second of two slots is empty",
            |rank, step, out| {
                let two = |slot| SlotSet::of(Strided::contiguous(slot, 2));
                extra(rank, step, out, [1, 2], two(5), two(SPARE));
            },
            Violation::Empty { step: 1, rank: first, slot: 6 },
        ),
        (
            "a slot past the last",
            |rank, step, out| extra(rank, step, out, [1, 2], one(5), one(SLOTS)),
            Violation::OutOfRange { step: 1, rank: second, slot: 10, slots: SLOTS },
        ),
        (
            "all slots and one past the last",
            |rank, step, out| {
                let more = || SlotSet::of(Strided::contiguous(0, SLOTS + 1));
                extra(rank, step, out, [1, 2], more(), more());
            },
            Violation::OutOfRange { step: 1, rank: first, slot: 10, slots: SLOTS },
        ),
        (
            "a slot before the first",
            |rank, step, out| {
                let below = SlotSet::of(Strided::descending(0, 2));
                let two = SlotSet::of(Strided::contiguous(SPARE, 2));
                extra(rank, step, out, [1, 2], below, two);
            },
            Violation::OutOfRange { step: 1, rank: first, slot: -1, slots: SLOTS },
        ),
        (
            "more slots than were sent",
            |rank, step, out| {
                let two = SlotSet::of(Strided::contiguous(SPARE, 2));
                extra(rank, step, out, [1, 2], one(5), two);
            },
            Violation::Sizes { step: 1, from: first, to: second },
        ),
        (
            "two messages into one slot",
            |rank, step, out| {
                extra(rank, step, out, [1, 2], one(5), one(SPARE));
                extra(rank, step, out, [3, 2], one(7), one(SPARE));
            },
            Violation::WrittenTwice { step: 1, rank: second, slot: SPARE },
        ),
        (
            "another's block at the end",
            |rank, step, out| {
                if (rank.0, step) == (1, 2) {
                    out.copies.push(LocalCopy { from: one(5), to: one(4) });
                }
            },
            Violation::Undelivered {
                rank: first,
                slot: 4,
                expected: Block { from: Rank(0), to: first },
                found: Some(Block { from: first, to: first }),
                written: Some((2, first)),
            },
        ),
    ];
    for (what, how, expected) in cases {
        is_named(what, &Altered { how, ..SOUND }, Some(&expected));
    }
}

#[test]
fn initial_and_final_layouts_are_checked() {
    let own = Block { from: Rank(1), to: Rank(3) };
    let cases: [(&str, Layout, u32); 2] = [
        ("none", |rank, slot| starts(rank, slot).filter(|_| (rank.0, slot) != (1, 3)), 0),
        (
            "twice",
            |rank, slot| starts(rank, if slot == SPARE && rank.0 == 1 { 3 } else { slot }),
            2,
        ),
    ];
    for (what, start, times) in cases {
        let expected = Violation::Start { rank: Rank(1), block: own, times };
        is_named(what, &Altered { start, ..SOUND }, Some(&expected));
    }
    let finish = |rank, slot| finishes(rank, slot).filter(|_| (rank, slot) != (Rank(1), 7));
    let block = Block { from: Rank(3), to: Rank(1) };
    let expected = Violation::NoPlace { rank: Rank(1), block };
    is_named("no place", &Altered { finish, ..SOUND }, Some(&expected));
}

#[test]
fn classes_report_a_block_overwritten_by_another() {
    // Rank 1 takes the block from rank 3 where it holds its own for rank 0.
    let how: Alter = |rank, step, out| {
        if (rank.0, step) == (1, 1) {
            out.receives[0].slots = one(0);
        }
    };
    // The block of rank 1 is lost and that of rank 3 arrives in a wrong slot: rank 1 is reported first.
    let rank = Rank(1);
    let lost = Violation::Overwritten { step: 1, rank, slot: 0, from: rank, start: 0 };
    for _ in 0..100 {
        let found = found(&Altered { how, ..SOUND }, Method::Classes);
        assert_eq!(found.as_ref(), Some(&lost));
    }
}

/// A rank sends and receives in the same slots, except for one extra message that it receives.
#[test]
fn classes_report_a_block_lost_under_an_extra_message() {
    let full = machine("full:4").unwrap();
    let problem = Problem::new(Collective::AllToAll, 4, 1, 4).unwrap();
    let radix = [("radix".to_owned(), Setting::Integer(2))].into_iter().collect();
    let bruck = schedule_of(&full, &problem, "bruck", &radix).unwrap();
    let altered = edited(&bruck, RankClasses::distinct(4), |rank, step, out| {
        let (messages, peer) = match (rank.0, step) {
            (3, 1) => (&mut out.sends, Rank(1)),
            (1, 1) => (&mut out.receives, Rank(3)),
            _ => return,
        };
        let mut more = messages[0].clone();
        (more.peer, more.slots) = (peer, one(1));
        messages.push(more);
    });
    // Rank 1 had received the block there from rank 0, and receives one from rank 2, which is lost too.
    let found = verify(&altered, &full, Some(Method::Classes), MEMORY).unwrap().violation;
    let lost = Violation::Overwritten { step: 1, rank: Rank(1), slot: 1, from: Rank(0), start: 1 };
    assert_eq!(found, Some(lost));
}

/// A ring's all-gather in which every rank keeps one block twice, then another.
struct Keeping(Schedule);

impl Rule for Keeping {
    fn steps(&self) -> u32 {
        self.0.rule().steps()
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        self.0.rule().step(rank, step, out);
        if step > 0 {
            let spare = one(Slot::from(RANKS));
            out.copies.push(LocalCopy { from: one(Slot::from(step) - 1), to: spare });
        }
    }
    fn slots(&self) -> u64 {
        self.0.rule().slots() + 1
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.rule().initial_block(rank, slot)
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.0.rule().final_block(rank, slot).filter(|_| slot < Slot::from(RANKS))
    }
    fn classes(&self) -> RankClasses {
        self.0.rule().classes()
    }
}

#[test]
fn in_an_all_gather_a_copy_may_be_lost() {
    let machine = machine("full:4").unwrap();
    let problem = Problem::new(Collective::AllGather, RANKS, 1, 4).unwrap();
    let ring = schedule_of(&machine, &problem, "ring", &Parameters::new()).unwrap();
    let keeping = Schedule::new(problem, ring.origin.clone(), Keeping(ring));
    for method in [Method::Replay, Method::Classes] {
        let found = verify(&keeping, &machine, Some(method), MEMORY).unwrap();
        assert_eq!(found.violation, None, "{}", method.name());
    }
}

/// A sent block stays, and an arrival in its slot overwrites it.
#[test]
fn in_an_all_gather_an_arrival_in_a_slot_being_sent_is_reported() {
    let machine = machine("full:4").unwrap();
    let problem = Problem::new(Collective::AllGather, RANKS, 1, 4).unwrap();
    let ring = schedule_of(&machine, &problem, "ring", &Parameters::new()).unwrap();
    let over = edited(&ring, ring.rule().classes(), |_, step, out| {
        if step == 2 {
            out.receives[0].slots = out.sends[0].slots.clone();
        }
    });
    let found = verify(&over, &machine, Some(Method::Classes), MEMORY).unwrap().violation;
    // The block of rank 0 is lost at rank 2, and does not reach rank 3.
    let (rank, block) = (Rank(2), Block::of(Rank(0)));
    assert_eq!(found, Some(Violation::NoPlace { rank, block }));
}

#[test]
fn a_route_where_there_are_no_links_leads_nowhere() {
    for text in ["full:4", "cluster:2*2"] {
        let machine = machine(text).unwrap();
        let route = Route::straight(0, 1);
        assert_eq!(
            machine.topology.follow(Rank(1), &Route::default()),
            Ok(machine.topology.node_of(Rank(1))),
            "{text}"
        );
        assert_eq!(machine.topology.follow(Rank(1), &route), Err(route.segments()[0]), "{text}");
    }
}

/// The ranks whose class is false.
type Liars = fn(Rank) -> bool;

/// The last rank of a class, and some ranks spread over it, are compared with its representative. The
/// ends of the representative's own messages are checked before.
#[test]
fn false_classes_are_reported() {
    let torus = machine("torus:4x4").unwrap();
    let problem = common::problem(&torus, Collective::AllToAll, 4);
    let lies: [fn(&mut Step); 9] = [
        |_| (),
        |step| step.sends.clear(),
        |step| step.receives.clear(),
        |step| step.sends[0].peer.0 ^= 1,
        |step| step.receives[0].peer.0 ^= 1,
        |step| step.sends[0].slots = one(0),
        |step| step.receives[0].slots = one(0),
        |step| step.sends[0].route = Route::straight(0, 1),
        |step| step.copies.push(LocalCopy { from: one(0), to: one(0) }),
    ];
    let liars: [(u32, Liars); 2] =
        [(15, |rank| rank.0 == 15), (7, |rank| !matches!(rank.0, 0 | 3 | 13 | 15))];
    for (lie, how) in lies.into_iter().enumerate() {
        for (liar, lies) in liars {
            let direct = schedule_of(&torus, &problem, "direct", &Parameters::new()).unwrap();
            // In step 2 some ranks differ from their class.
            let lying = edited(&direct, direct.rule().classes(), move |rank, step, out| {
                if step == 2 && lies(rank) {
                    how(out);
                }
            });
            assert_eq!(lying.rule().classes().count(), 1);
            let found = verify(&lying, &torus, Some(Method::Classes), MEMORY).unwrap().violation;
            let (rank, representative) = (Rank(liar), Rank(0));
            let broken = Violation::ClassBroken { step: 2, rank, representative };
            assert_eq!(found, (lie > 0).then_some(broken), "lie {lie} of {liar}");
            // A certificate lists one rank for its class: every rank with a false class is its own
            // class.
            let mut certificate = Vec::new();
            let counts = Counts::default();
            write_certificate(&lying, &torus, &counts, &mut certificate).unwrap();
            let listed = if lie > 0 { "\nranks 16 by 16\n" } else { "\nranks 16 by 1\n" };
            assert!(String::from_utf8(certificate).unwrap().contains(listed), "lie {lie}");
        }
    }
}

/// Half of a block that is received as the other half.
#[test]
fn ends_that_disagree_on_the_part_are_reported() {
    let how: Alter = |rank, step, out| {
        let half = |slot: Slot, first, end| {
            let mut set = SlotSet::default();
            set.push_part(Strided::contiguous(slot, 1), Part::Bytes { first, end });
            set
        };
        if (rank.0, step) == (0, 1) {
            out.sends[0].slots = half(2, 0, 2);
        }
        if (rank.0, step) == (2, 1) {
            out.receives[0].slots = half(4, 2, 4);
        }
    };
    let altered = Altered { how, cuts: &[2], ..SOUND };
    let sizes = Violation::Sizes { step: 1, from: Rank(0), to: Rank(2) };
    assert_eq!(found(&altered, Method::Replay), Some(sizes));
}

/// The middle one of three pieces of a block.
#[test]
fn a_block_of_which_only_the_middle_arrives_is_reported() {
    let how: Alter = |rank, step, out| {
        let middle = |slot: Slot| {
            let mut set = SlotSet::default();
            set.push_part(Strided::contiguous(slot, 1), Part::Bytes { first: 1, end: 3 });
            set
        };
        if (rank.0, step) == (0, 1) {
            out.sends[0].slots = middle(2);
        }
        if (rank.0, step) == (2, 1) {
            out.receives[0].slots = middle(4);
        }
    };
    let altered = Altered { how, cuts: &[1, 3], ..SOUND };
    let violation = found(&altered, Method::Replay);
    let missing = matches!(violation, Some(Violation::Undelivered { rank: Rank(2), .. }));
    assert!(missing, "{violation:?}");
}
