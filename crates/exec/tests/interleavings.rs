//! Every interleaving of the state that threads share: [`turn::Turn`], the word that decides which thread
//! runs a rank, with the [`queue::Queue`] that holds the rank.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}
#[expect(dead_code, reason = "only the driver asks for the lowest step")]
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/turn.rs"]
mod turn;

use atomic::Ordering;
use queue::Queue;
use turn::Turn;

/// One rank, as the driver runs it: an inbox, a queue of one rank, and how many threads run it.
struct Rank {
    turn: Turn,
    /// The steps of messages that have arrived.
    inbox: Mutex<Vec<u32>>,
    queue: Mutex<Queue>,
    running: AtomicUsize,
    read: AtomicUsize,
}

impl Rank {
    /// News of a step.
    fn news(&self, step: u32) {
        self.inbox.lock().unwrap().push(step);
        if self.turn.notify(step) {
            self.queue.lock().unwrap().push(step as usize, 0);
        }
    }

    /// Whether the rank was in the queue; if so this thread runs it, in step 1.
    fn run(&self) -> bool {
        if self.queue.lock().unwrap().pop().is_none() {
            return false;
        }
        self.turn.take();
        loop {
            assert_eq!(self.running.fetch_add(1, Ordering::AcqRel), 0, "two threads run a rank");
            let news = std::mem::take(&mut *self.inbox.lock().unwrap());
            let read = news.iter().filter(|&&step| step == 1).count();
            self.read.fetch_add(read, Ordering::AcqRel);
            self.running.fetch_sub(1, Ordering::AcqRel);
            if self.turn.rest(1) {
                return true;
            }
        }
    }
}

/// A rank in step 1, and two threads with arrivals of these steps. Returns the arrivals of step 1 that
/// were read, and their number.
fn news_of(steps: [u32; 2]) -> (usize, Arc<Rank>) {
    let mut queue = Queue::default();
    queue.reset(1, 2);
    let rank = Arc::new(Rank {
        turn: Turn::queued(),
        inbox: Mutex::new(Vec::new()),
        queue: Mutex::new(queue),
        running: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    });
    let threads = steps.map(|step| {
        let rank = Arc::clone(&rank);
        thread::spawn(move || {
            rank.news(step);
            rank.run();
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    // The last thread takes the rank that is still queued.
    while rank.run() {}
    (rank.read.load(Ordering::Acquire), rank)
}

#[test]
fn a_rank_runs_in_one_thread_and_after_the_last_arrival() {
    loom::model(|| assert_eq!(news_of([1, 1]).0, 2, "news that nobody read"));
}

#[test]
fn a_rank_is_not_woken_by_arrivals_of_later_steps() {
    loom::model(|| {
        let (read, rank) = news_of([1, 2]);
        assert_eq!(read, 1, "news that nobody read");
        assert!(!rank.turn.notify(2), "woken too early");
        assert!(rank.turn.notify(1));
        assert!(!rank.turn.notify(1), "queued twice");
    });
}

#[test]
fn a_rank_that_yields_keeps_its_arrivals() {
    loom::model(|| {
        let turn = Arc::new(Turn::queued());
        turn.take();
        let news = Arc::new(Mutex::new(false));
        let other = {
            let (turn, news) = (Arc::clone(&turn), Arc::clone(&news));
            thread::spawn(move || {
                *news.lock().unwrap() = true;
                turn.notify(1)
            })
        };
        turn.yielded();
        turn.take();
        let mut seen = std::mem::take(&mut *news.lock().unwrap());
        if !turn.rest(1) {
            seen |= std::mem::take(&mut *news.lock().unwrap());
            assert!(turn.rest(1));
        }
        let queued = other.join().unwrap();
        assert!(seen || queued, "either it was read, or the rank is queued again");
    });
}
