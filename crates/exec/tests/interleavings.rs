//! Every interleaving of what threads share: [`turn::Turn`], the word that decides who runs a rank,
//! with the [`queue::Queue`] that it is taken from.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
}
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/turn.rs"]
mod turn;

use atomic::Ordering;
use queue::Queue;
use turn::Turn;

/// One rank, as the crew runs it: an inbox, a queue of one rank, and how many threads run it.
struct Rank {
    turn: Turn,
    inbox: Mutex<usize>,
    queue: Mutex<Queue>,
    running: AtomicUsize,
    read: AtomicUsize,
}

impl Rank {
    /// News of a step.
    fn news(&self, step: usize) {
        *self.inbox.lock().unwrap() += 1;
        if self.turn.notify() {
            self.queue.lock().unwrap().push(step, 0);
        }
    }

    /// Whether the rank was in the queue; if so and it is its turn, a thread runs it.
    fn run(&self) -> bool {
        if self.queue.lock().unwrap().pop().is_none() {
            return false;
        }
        if !self.turn.take() {
            return true;
        }
        loop {
            assert_eq!(self.running.fetch_add(1, Ordering::AcqRel), 0, "two threads run a rank");
            let news = std::mem::take(&mut *self.inbox.lock().unwrap());
            self.read.fetch_add(news, Ordering::AcqRel);
            self.running.fetch_sub(1, Ordering::AcqRel);
            if self.turn.rest() {
                return true;
            }
        }
    }
}

#[test]
fn a_rank_runs_in_one_thread_and_after_the_last_news() {
    loom::model(|| {
        let mut queue = Queue::default();
        queue.reset(1, 2);
        let rank = Arc::new(Rank {
            turn: Turn::queued(),
            inbox: Mutex::new(0),
            queue: Mutex::new(queue),
            running: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        });
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let rank = Arc::clone(&rank);
                thread::spawn(move || {
                    rank.news(2 - i);
                    rank.run();
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Whoever is left takes what is still queued.
        while rank.run() {}
        assert_eq!(rank.read.load(Ordering::Acquire), 2, "news that nobody read");
    });
}

/// However often it is queued: a rank that stood there once for every message would run as often.
#[test]
fn a_rank_comes_once_in_the_lowest_step() {
    let mut queue = Queue::default();
    queue.reset(3, 9);
    let all = |queue: &mut Queue| std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>();
    assert_eq!(all(&mut queue), [0, 1, 2]);
    for (step, rank) in [(7, 1), (5, 1), (5, 1), (9, 1), (6, 0), (7, 2)] {
        queue.push(step, rank);
    }
    assert_eq!(queue.lowest(), 5);
    assert_eq!(all(&mut queue), [1, 0, 2]);
    queue.push(8, 1);
    assert_eq!((queue.pop(), queue.lowest()), (Some(1), 8));
}

#[test]
fn a_rank_that_yields_keeps_its_news() {
    loom::model(|| {
        let turn = Arc::new(Turn::queued());
        assert!(turn.take());
        let news = Arc::new(Mutex::new(false));
        let other = {
            let (turn, news) = (Arc::clone(&turn), Arc::clone(&news));
            thread::spawn(move || {
                *news.lock().unwrap() = true;
                turn.notify();
            })
        };
        turn.yielded();
        assert!(turn.take(), "a rank that yielded is queued");
        let mut seen = std::mem::take(&mut *news.lock().unwrap());
        if !turn.rest() {
            seen |= std::mem::take(&mut *news.lock().unwrap());
            assert!(turn.rest());
        }
        other.join().unwrap();
        // Either it was read, or the rank is queued again.
        assert!(seen || turn.take());
    });
}
