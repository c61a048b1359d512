//! Parallel iterators that also work in a child process.
//!
//! A process that forks leaves its threads behind: in the child, work given to the pool of the parent
//! would wait for ever. Every parallel iterator of the library begins here, and a thread of a child
//! process first becomes part of a pool of its own. The first such thread gets as many threads as the
//! parent had, any other one works alone. Forking while another thread is in a call is not supported.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::ThreadPoolBuilder;
use rayon::iter::IntoParallelIterator;
use rayon::slice::{Chunks, ChunksMut, ParallelSlice, ParallelSliceMut};

/// The items of a collection, a range or a reference, on all threads.
pub fn each<I: IntoParallelIterator>(items: I) -> I::Iter {
    ready();
    items.into_par_iter()
}

/// Pieces of `length` items.
pub fn chunks<T: Sync>(items: &[T], length: usize) -> Chunks<'_, T> {
    ready();
    items.par_chunks(length)
}

/// Pieces of `length` items that may be changed.
pub fn chunks_mut<T: Send>(items: &mut [T], length: usize) -> ChunksMut<'_, T> {
    ready();
    items.par_chunks_mut(length)
}

/// The threads that share the work.
#[must_use]
pub fn threads() -> usize {
    ready();
    rayon::current_num_threads()
}

/// Makes sure that the calling thread's pool has threads.
fn ready() {
    /// The process whose pool is the global one, and a child with a pool of several threads.
    static HOME: AtomicU32 = AtomicU32::new(0);
    static CHILD: AtomicU32 = AtomicU32::new(0);
    let here = process::id();
    let home = HOME.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
    if home.is_ok() || home == Err(here) || rayon::current_thread_index().is_some() {
        return;
    }
    let threads =
        if CHILD.swap(here, Ordering::Relaxed) == here { 1 } else { rayon::current_num_threads() };
    let pool = ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    // The thread belongs to the pool as long as it lives. Without threads it works alone.
    match pool.build() {
        Ok(pool) => std::mem::forget(pool),
        Err(_) => {
            let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            std::mem::forget(alone.expect("a pool that starts no thread"));
        }
    }
}
