//! Transports that fail, delay, reorder or truncate. Each exchange returns the right bytes or an error
//! that names rank, step and peer. None hangs, and none allocates once a plan is made.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use topocoll_exec::{
    Action, Arrival, Driver, Endpoint, ExecError, Memory, Plan, StepFault, Transport,
};
use topocoll_schedule::{
    Block, Collective, Origin, Parameters, Problem, RankClasses, Rule, Schedule, Slot, SlotSet,
    Step, Strided, Sync,
};
use topocoll_topology::{Rank, Route};

const RANKS: u32 = 6;
const BLOCK: u64 = 3;

/// The direct exchange among [`RANKS`] ranks, in slots by peer.
struct Direct;

impl Rule for Direct {
    fn steps(&self) -> u32 {
        RANKS - 1
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (to, from) = ((rank.0 + step + 1) % RANKS, (rank.0 + RANKS - step - 1) % RANKS);
        let slot = |peer: u32| SlotSet::of(Strided::contiguous(peer.into(), 1));
        out.send(Rank(to), slot(to), Route::default());
        // Spare slots, so that a message never waits.
        out.receive(Rank(from), SlotSet::of(Strided::contiguous((RANKS + from).into(), 1)));
    }
    fn slots(&self) -> u64 {
        u64::from(2 * RANKS)
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        (slot < RANKS.into()).then_some(Block { from: rank, to: Rank(slot as u32) })
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        let from = Rank(slot as u32 % RANKS);
        let kept = slot < RANKS.into();
        (kept == (from == rank)).then_some(Block { from, to: rank })
    }
    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(RANKS)
    }
}

fn plan(rank: u32) -> Arc<Plan> {
    let problem = Problem::new(Collective::AllToAll, RANKS, 1, BLOCK).unwrap();
    let origin = Origin { algorithm: "direct".to_owned(), parameters: Parameters::new() };
    Arc::new(Plan::new(&Schedule::new(problem, origin, Direct), Rank(rank)).unwrap())
}

fn block(from: u32, to: u32) -> [u8; BLOCK as usize] {
    [from as u8, to as u8, 0xab]
}

/// Faults of a link for the messages of one rank.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// Delivers arrivals in the wrong order where that is allowed.
    Reorder,
    Delay,
    FailSend(u32),
    FailArrival,
    Lose(u32),
    Shorten(u32),
    /// The message of step 1 has this tag.
    Stray(u32),
    /// None; every message is received in its place.
    Place,
    /// The same, and a message of this step is short.
    PlaceShort(u32),
    /// None, but its output has no room.
    ShortOutput,
}

struct Channels {
    rank: u32,
    to: Vec<Sender<Arrival>>,
    from: Receiver<Arrival>,
    fault: Fault,
    kept: VecDeque<Arrival>,
}

impl Transport for Channels {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let mut arrival = Arrival { from: Rank(self.rank), tag, bytes: bytes.to_vec() };
        match self.fault {
            Fault::FailSend(step) if step == tag => return Err("cable cut".to_owned()),
            Fault::Lose(step) if step == tag => return Ok(()),
            Fault::Shorten(step) | Fault::PlaceShort(step) if step == tag => {
                arrival.bytes.truncate(1);
            }
            Fault::Stray(other) if tag == 1 => arrival.tag = other,
            Fault::Delay => thread::sleep(Duration::from_millis(3)),
            _ => {}
        }
        // A peer that has stopped receives nothing.
        let _ = self.to[to.index()].send(arrival);
        Ok(())
    }

    fn places(&self) -> bool {
        matches!(self.fault, Fault::Place | Fault::PlaceShort(_))
    }

    fn receive_into(
        &mut self,
        from: Rank,
        tag: u32,
        place: &mut [u8],
        patience: Duration,
    ) -> Result<Option<u64>, String> {
        let fits = |arrival: &Arrival| (arrival.from, arrival.tag) == (from, tag);
        let until = Instant::now().checked_add(patience);
        loop {
            if let Some(at) = self.kept.iter().position(fits) {
                let bytes = self.kept.remove(at).unwrap().bytes;
                place[..bytes.len()].copy_from_slice(&bytes);
                return Ok(Some(bytes.len() as u64));
            }
            let left = until.map_or(patience, |until| until - Instant::now());
            match self.from.recv_timeout(left) {
                Ok(arrival) => self.kept.push_back(arrival),
                Err(_) => return Ok(None),
            }
        }
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        assert!(!self.places(), "a transport that places messages is asked for an arrival");
        if self.fault == Fault::FailArrival {
            return Err("receiver gone".to_owned());
        }
        if self.fault == Fault::Reorder {
            thread::sleep(Duration::from_millis(2));
            self.kept.extend(self.from.try_iter());
            if let Some(last) = self.kept.pop_back() {
                return Ok(Some(last));
            }
        }
        match self.from.recv_timeout(patience) {
            Ok(arrival) => Ok(Some(arrival)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(patience);
                Ok(None)
            }
        }
    }
}

/// The outputs of exchanges of every rank in sequence, with rank 2 over a transport that is faulty in
/// the first of them.
fn exchanges(
    fault: Fault,
    patience: Duration,
    syncs: &'static [Sync],
) -> Vec<Vec<Result<Vec<u8>, ExecError>>> {
    let places = matches!(fault, Fault::Place | Fault::PlaceShort(_));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..RANKS).map(|_| channel()).unzip();
    let ranks = receivers.into_iter().enumerate().map(|(rank, from)| {
        let (rank, to) = (rank as u32, senders.clone());
        thread::spawn(move || {
            let other = if places { Fault::Place } else { Fault::None };
            let fault = if rank == 2 { fault } else { other };
            let kept = VecDeque::new();
            let mut driver = Driver::new(Channels { rank, to, from, fault, kept });
            let mut endpoint = Endpoint::new(plan(rank), BLOCK);
            let input: Vec<u8> = (0..RANKS).flat_map(|to| block(rank, to)).collect();
            let mut work = vec![0; endpoint.plan().workspace_bytes(BLOCK) as usize];
            let outputs = syncs.iter().map(|&sync| {
                driver.set_sync(sync);
                let short = driver.transport().fault == Fault::ShortOutput;
                let mut output = vec![0; input.len() - usize::from(short)];
                let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
                let ended = driver.drive(&mut endpoint, &mut memory, patience);
                driver.transport().fault = other;
                endpoint.begin(BLOCK);
                ended.map(|()| output)
            });
            outputs.collect()
        })
    });
    let ranks: Vec<_> = ranks.collect();
    ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
}

/// The output of one exchange of every rank.
fn exchange(
    fault: Fault,
    patience: Duration,
    sync: &'static [Sync; 1],
) -> Vec<Result<Vec<u8>, ExecError>> {
    exchanges(fault, patience, sync).into_iter().map(|mut outputs| outputs.remove(0)).collect()
}

const FREE: &[Sync; 1] = &[Sync::Free];
const BARRIER: &[Sync; 1] = &[Sync::Barrier];

fn right(rank: usize, output: &[u8]) -> bool {
    output == (0..RANKS).flat_map(|from| block(from, rank as u32)).collect::<Vec<_>>()
}

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

#[test]
fn late_and_reordered_messages_give_the_right_bytes() {
    for fault in [Fault::None, Fault::Delay, Fault::Reorder, Fault::Place] {
        for sync in [FREE, BARRIER] {
            for (rank, output) in exchange(fault, Duration::MAX, sync).into_iter().enumerate() {
                assert!(right(rank, &output.unwrap()), "{fault:?}, {sync:?}, rank {rank}");
            }
        }
    }
}

#[test]
fn faults_name_rank_step_and_peer_and_never_hang() {
    let start = Instant::now();
    let told = |fault| exchange(fault, SHORT, FREE);
    let error = |fault, rank: usize| told(fault)[rank].clone().unwrap_err().to_string();
    assert_eq!(error(Fault::FailSend(1), 2), "rank 2, step 1: rank 4: cable cut");
    assert_eq!(error(Fault::FailArrival, 2), "rank 2, step 0: rank 1: receiver gone");
    // Others wait for rank 5, and may give up before.
    let lost = "rank 5, step 2: nothing from rank 2 within 0.2 s";
    let left = "rank 5, step 2: rank 2 has left the exchange";
    assert!([lost, left].contains(&&*error(Fault::Lose(2), 5)));
    let short = "rank 3, step 0: 1 bytes to or from rank 2, and the message has 3";
    assert_eq!(error(Fault::Shorten(0), 3), short);
    assert_eq!(error(Fault::PlaceShort(0), 3), short);
    // A rank that is given messages in their places does not hear that another one has left.
    let nothing = "rank 5, step 1: nothing from rank 3 within 0.2 s";
    assert_eq!(error(Fault::PlaceShort(0), 5), nothing);
    let stray = |tag| error(Fault::Stray(tag), 4).replace("step 1", "step 0");
    let unexpected = "rank 4, step 0: a message of tag 4294967295 from rank 2, which sends none";
    assert_eq!(stray(u32::MAX), unexpected);
    assert_eq!(error(Fault::Stray(77), 4), "rank 4, step 1: rank 2 has left the exchange");
    // A rank that finished has the right bytes.
    for fault in [Fault::FailSend(4), Fault::Lose(4), Fault::Shorten(4)] {
        for sync in [FREE, BARRIER] {
            for (rank, output) in exchange(fault, SHORT, sync).into_iter().enumerate() {
                assert!(output.is_err() || right(rank, &output.unwrap()), "{fault:?}, rank {rank}");
            }
        }
    }
    assert!(start.elapsed() < LONG);
}

/// The tag of the barrier before step 2, behind those of the steps and of ranks that leave.
const SECOND_BARRIER: u32 = (RANKS - 1) + 2;

#[test]
fn barriers_that_fail_name_rank_step_and_peer_and_never_hang() {
    let start = Instant::now();
    let told = |fault| exchange(fault, SHORT, BARRIER);
    let cut = told(Fault::FailSend(SECOND_BARRIER));
    assert_eq!(cut[2].clone().unwrap_err().to_string(), "rank 2, step 2: rank 3: cable cut");
    assert!(cut.iter().all(Result::is_err), "a rank passes a barrier without rank 2: {cut:?}");
    let lost = told(Fault::Lose(SECOND_BARRIER));
    assert!(lost.iter().all(Result::is_err), "a rank passes a barrier without rank 2: {lost:?}");
    let late = lost.iter().any(|end| {
        matches!(end, Err(ExecError::InStep { step: 2, fault: StepFault::Deadline { .. }, .. }))
    });
    assert!(late, "{lost:?}");
    // A message with the tag of a barrier is not that of its step.
    let stray = told(Fault::Stray(SECOND_BARRIER));
    let error = stray[4].clone().unwrap_err().to_string();
    assert!(error.starts_with("rank 4, step 1: "), "{error}");
    assert!(start.elapsed() < LONG);
}

/// A rank fails and goes on. The others do not wait for it, its messages are not mixed up with those of
/// another exchange, and the next exchanges are whole, with barriers or without.
#[test]
fn after_a_failure_all_ranks_go_on() {
    use Sync::{Barrier, Free};
    let start = Instant::now();
    let syncs: [&[Sync]; 2] = [&[Free, Free, Barrier, Free], &[Barrier, Barrier, Free, Barrier]];
    let cut = "rank 2, step 2: rank 3: cable cut";
    for (fault, refused, syncs) in [
        (Fault::FailSend(0), "rank 2, step 0: rank 3: cable cut", &syncs[..]),
        (Fault::FailSend(3), "rank 2, step 3: rank 0: cable cut", &syncs),
        (Fault::FailSend(SECOND_BARRIER), cut, &syncs[1..]),
        (Fault::FailArrival, "rank 2, step 0: rank 1: receiver gone", &syncs),
        (
            Fault::ShortOutput,
            "rank 2: the output buffer has 17 bytes, and the exchange needs 18",
            &syncs,
        ),
    ] {
        for &syncs in syncs {
            let ranks = exchanges(fault, LONG, syncs);
            assert_eq!(ranks[2][0].clone().unwrap_err().to_string(), refused);
            let left = |outputs: &Vec<Result<_, ExecError>>| {
                matches!(outputs[0], Err(ExecError::InStep { fault: StepFault::Left { .. }, .. }))
            };
            assert!(ranks.iter().any(left), "{fault:?}: {ranks:?}");
            for (rank, outputs) in ranks.into_iter().enumerate() {
                for (number, output) in outputs.into_iter().enumerate() {
                    let is_right = output.as_ref().is_ok_and(|output| right(rank, output));
                    let may_fail = number == 0 && output.is_err();
                    assert!(is_right || may_fail, "{fault:?}, rank {rank}, {number}: {output:?}");
                }
            }
        }
    }
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn tokens_of_other_exchanges_and_cancelled_endpoints_are_refused() {
    let mut endpoint = Endpoint::new(plan(0), BLOCK);
    let first = |endpoint: &mut Endpoint| loop {
        match endpoint.poll().unwrap() {
            Action::Copy(_) => {}
            Action::Receive(message) => break message,
            other => panic!("{other:?}"),
        }
    };
    let stale = first(&mut endpoint);
    endpoint.begin(BLOCK);
    let fresh = first(&mut endpoint);
    assert_eq!((stale.peer, stale.region), (fresh.peer, fresh.region));
    assert!(matches!(
        endpoint.complete(stale.token, BLOCK),
        Err(ExecError::InStep { fault: StepFault::Token { .. }, .. })
    ));
    endpoint.complete(fresh.token, BLOCK).unwrap();
    assert!(matches!(
        endpoint.complete(fresh.token, BLOCK),
        Err(ExecError::InStep { fault: StepFault::Token { .. }, .. })
    ));
    assert_eq!(endpoint.outstanding().count(), 0);
    endpoint.cancel();
    assert!(matches!(endpoint.poll(), Err(ExecError::InStep { fault: StepFault::Stopped, .. })));
}

/// Sizes past 2 and 4 GiB, with a transport that only counts.
#[test]
fn offsets_past_four_gigabytes_are_right() {
    let block = 1u64 << 40;
    let mut endpoint = Endpoint::new(plan(1), block);
    let (mut seen, mut sent) = (Vec::new(), 0u64);
    assert_eq!(endpoint.plan().output_bytes(block), 6 << 40);
    loop {
        match endpoint.poll().unwrap() {
            Action::Copy(copy) => endpoint.pieces(copy, |from, to| {
                assert_eq!((from.offset, to.offset, to.bytes), (block, block, block));
                seen.push(to.offset);
            }),
            Action::Send(message) => {
                assert_eq!(message.region.offset, u64::from(message.peer.0) * block);
                sent += message.region.bytes;
                endpoint.complete(message.token, block).unwrap();
            }
            Action::Receive(message) => {
                assert_eq!(message.region.offset, u64::from(message.peer.0) * block);
                seen.push(message.region.offset);
                endpoint.complete(message.token, block).unwrap();
            }
            Action::Wait => unreachable!("everything is complete"),
            Action::Done => break,
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..6).map(|i| i * block).collect::<Vec<_>>());
    assert_eq!(sent, 5 * block);
}
