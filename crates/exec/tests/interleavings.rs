//! Every interleaving of what threads share: [`turn::Turn`], the word that decides who runs a rank.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
}
#[path = "../src/turn.rs"]
mod turn;

use atomic::Ordering;
use turn::Turn;

/// One rank, as the crew runs it: an inbox, a queue of one rank, and how many run it.
struct Rank {
    turn: Turn,
    inbox: Mutex<usize>,
    queued: AtomicUsize,
    running: AtomicUsize,
    read: AtomicUsize,
}

impl Rank {
    fn news(&self) {
        *self.inbox.lock().unwrap() += 1;
        if self.turn.notify() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// What a thread does with a rank it has found in the queue.
    fn run(&self) {
        let queued = self.queued.load(Ordering::Acquire);
        if queued == 0
            || (self.queued)
                .compare_exchange(queued, queued - 1, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
            || !self.turn.take()
        {
            return;
        }
        loop {
            assert_eq!(self.running.fetch_add(1, Ordering::AcqRel), 0, "two threads run a rank");
            let news = std::mem::take(&mut *self.inbox.lock().unwrap());
            self.read.fetch_add(news, Ordering::AcqRel);
            self.running.fetch_sub(1, Ordering::AcqRel);
            if self.turn.rest() {
                return;
            }
        }
    }
}

#[test]
fn a_rank_runs_in_one_thread_and_after_the_last_news() {
    loom::model(|| {
        let rank = Arc::new(Rank {
            turn: Turn::queued(),
            inbox: Mutex::new(0),
            queued: AtomicUsize::new(1),
            running: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        });
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let rank = Arc::clone(&rank);
                thread::spawn(move || {
                    rank.news();
                    rank.run();
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Whoever is left takes what is still queued.
        while rank.queued.load(Ordering::Acquire) > 0 {
            rank.run();
        }
        assert_eq!(rank.read.load(Ordering::Acquire), 2, "news that nobody read");
    });
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
