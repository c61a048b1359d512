//! Blocks of several sizes.
//!
//! A schedule is applicable if a rank knows the size of every block that it receives. In an
//! all-to-all, no block may pass through other ranks, because a rank knows only the sizes of its
//! own blocks. In an all-gather, whose sizes all ranks know, each block must be received in its
//! place of the output. Then the rank's own counts give the length of every message.
//!
//! # Decisions
//! The counts of an all-to-all differ from rank to rank, so no decision depends on them. The counts
//! of an all-gather are equal on all ranks; the decision depends on their mean, if no block is much
//! larger than it.

use std::ffi::c_int;

use crate::symbols as mpi;
use topocoll::exec::{Endpoint, RawBuffers};
use topocoll::{Collective, Sync};

use super::blocks::{Blocks, Placed};
use crate::engine::Channel;
use crate::failed::Failed;
use crate::window::Window;

/// Sizes with one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sizes {
    /// Blocks of one size, of 2^class bytes and more.
    Equal(usize),
    /// Blocks of sizes that not all ranks know.
    Own,
    /// Blocks of sizes that all ranks know, with a mean of 2^class bytes and more, each at most
    /// twice the mean.
    About(usize),
    /// Blocks of sizes that all ranks know, some of more than twice the mean.
    Apart,
    /// Blocks of no bytes.
    Empty,
    /// Blocks of a rank whose sum exceeds an int.
    Large,
    /// Blocks whose sizes are missing or inconsistent in the arguments.
    Unknown,
}

/// The most bytes of all blocks of a rank.
const MOST: u64 = c_int::MAX as u64;

/// The block size for predictions where sizes are unknown.
const ASSUMED_BYTES: u64 = 1 << 16;

impl Sizes {
    /// For blocks of one size.
    pub(crate) fn equal(bytes: u64, ranks: u32) -> Self {
        match bytes.checked_ilog2() {
            None => Self::Empty,
            Some(_) if bytes.saturating_mul(ranks.into()) > MOST => Self::Large,
            Some(class) => Self::Equal(class as usize),
        }
    }

    /// For blocks whose sizes all ranks know.
    pub(crate) fn known(sizes: &[u64]) -> Self {
        let all = sizes.iter().fold(0, |sum: u64, &size| sum.saturating_add(size));
        if all == 0 {
            return Self::Empty;
        }
        if all > MOST {
            return Self::Large;
        }
        let mean = all.div_ceil(sizes.len() as u64);
        if sizes.iter().any(|&size| size / 2 > mean) {
            return Self::Apart;
        }
        Self::About(mean.ilog2() as usize)
    }

    /// A number for each of them.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Own => 0,
            Self::Apart => 1,
            Self::Empty => 1 << 8,
            Self::Large => 1 << 9,
            Self::Unknown => 1 << 10,
            Self::Equal(class) => 2 * class as u64 + 2,
            Self::About(class) => 2 * class as u64 + 3,
        }
    }

    /// Bytes of a block for predictions.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Equal(class) | Self::About(class) => 1 << class,
            Self::Own | Self::Apart | Self::Large | Self::Unknown => ASSUMED_BYTES,
            Self::Empty => 1,
        }
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |class: usize| format!("{} to {} B", 1u64 << class, (2u64 << class) - 1);
        match *self {
            Self::Equal(class) => write!(f, "of {}", range(class)),
            Self::Own => write!(f, "of blocks of several sizes"),
            Self::About(class) => write!(f, "of blocks of several sizes about {}", range(class)),
            Self::Apart => write!(f, "of blocks far from their mean"),
            Self::Empty => write!(f, "of empty blocks"),
            Self::Large => write!(f, "of 2 GiB or more"),
            Self::Unknown => write!(f, "of unknown sizes"),
        }
    }
}

/// Places of the blocks of one rank, by destination or source.
#[derive(Clone)]
pub(crate) struct Vector {
    elements: Placed,
    /// Elements, and the first of them.
    blocks: Vec<(u64, isize)>,
    bytes: u64,
}

impl Vector {
    /// `None` for arguments that the library must refuse.
    pub(crate) fn new(
        elements: Blocks,
        blocks: impl Iterator<Item = (i64, isize)>,
    ) -> Option<Self> {
        let bytes = elements.bytes;
        let elements = elements.placed().ok()?;
        let blocks = blocks.map(|(count, first)| Some((u64::try_from(count).ok()?, first)));
        Some(Self { elements, blocks: blocks.collect::<Option<_>>()?, bytes })
    }

    /// Bytes of each block.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.blocks.iter().map(|&(count, _)| count.saturating_mul(self.bytes)).collect()
    }

    /// Bytes of a block.
    pub(crate) fn size(&self, index: usize) -> u64 {
        self.blocks[index].0.saturating_mul(self.bytes)
    }

    /// Bytes of all blocks.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.sizes().iter().fold(0, |sum: u64, &size| sum.saturating_add(size))
    }

    /// One block of them.
    pub(crate) fn only(&self, rank: u32) -> Self {
        Self { blocks: vec![self.blocks[rank as usize]], ..*self }
    }

    /// The blocks in a schedule's order of ranks.
    fn in_order(self, order: Option<&[u32]>) -> Self {
        let Some(order) = order else { return self };
        let blocks = order.iter().map(|&rank| self.blocks[rank as usize]).collect();
        Self { blocks, ..self }
    }

    fn block(&self, rank: u32) -> Placed {
        let (count, first) = self.blocks[rank as usize];
        self.elements.part(first, count)
    }

    /// Whether all blocks are packed in memory, one after the other.
    fn is_dense(&self, offsets: &[u64]) -> bool {
        let begins = |(&(count, first), &offset): (&(u64, isize), &u64)| {
            let at = u64::try_from(first).ok().and_then(|first| first.checked_mul(self.bytes));
            count == 0 || at == Some(offset)
        };
        self.elements.plain && self.blocks.iter().zip(offsets).all(begins)
    }
}

/// The first byte of each block.
fn offsets(sizes: &[u64]) -> Vec<u64> {
    let begin = |end: &mut u64, &size: &u64| Some(std::mem::replace(end, *end + size));
    sizes.iter().scan(0, begin).collect()
}

/// A schedule as one rank performs it.
pub(crate) struct Exchange {
    pub(crate) endpoint: Endpoint,
    pub(crate) order: Option<Vec<u32>>,
    /// Whether messages inside a node pass through the window.
    pub(crate) window: bool,
    pub(crate) sync: Sync,
}

/// Whether the program's buffer must keep the sent blocks until the exchange has ended: the library may
/// perform the call after all.
pub(crate) fn keeps_input(operation: Collective, in_place: bool) -> bool {
    in_place && operation == Collective::AllToAll
}

/// Numbers the ranks of a schedule as the communicator does.
pub(crate) fn rank_of(order: Option<&[u32]>) -> impl Fn(u32) -> u32 + Copy {
    move |rank| order.map_or(rank, |order| order[rank as usize])
}

/// Exchanges blocks by a planned exchange, whose plan is applicable. `send` is `None` in place.
///
/// # Errors
/// MPI's error code.
///
/// # Safety
/// The buffers have the blocks.
pub(crate) unsafe fn exchange_vector(
    planned: &mut Exchange,
    send: Option<Vector>,
    receive: Vector,
    kept: (&mut Channel, &mut Memory),
    window: Option<&mut Window>,
) -> Result<(), Failed> {
    let Exchange { endpoint, order, sync, .. } = planned;
    let (operation, own) = (endpoint.plan().problem().operation, endpoint.plan().rank().0);
    let order = order.as_deref();
    let (rank_of, in_place) = (rank_of(order), send.is_none());
    let from = send.unwrap_or_else(|| match operation {
        Collective::AllToAll => receive.clone(),
        Collective::AllGather => receive.only(rank_of(own)),
    });
    let from = if operation == Collective::AllToAll { from.in_order(order) } else { from };
    let to = receive.in_order(order);
    let (row, column) = (from.sizes(), to.sizes());
    endpoint.begin_v(&row, &column).map_err(|_| Failed(mpi::MPI_ERR_COUNT as c_int))?;
    let (begins, ends) = (offsets(&row), offsets(&column));
    let row = (!in_place && from.is_dense(&begins)).then(|| from.elements.data());
    let input = Side { row, block: |i| (from.block(i), 0, begins[i as usize] as usize) };
    let row = (to.is_dense(&ends) && !keeps_input(operation, in_place)).then(|| to.elements.data());
    let output = Side { row, block: |i| (to.block(i), 0, ends[i as usize] as usize) };
    // SAFETY: the caller's promise.
    unsafe { perform(endpoint, &input, &output, kept, rank_of, *sync, window) }
}

/// Memory beside the program's buffers, kept from one exchange to the next.
#[derive(Default)]
pub(crate) struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
    work: Vec<u8>,
}

/// Bytes that a communicator may keep, of each kind: 16 MiB.
const KEPT: usize = 1 << 24;

impl Memory {
    /// Frees memory that only large exchanges need.
    pub(crate) fn trim(&mut self) {
        let large = [&mut self.input, &mut self.output, &mut self.work].into_iter();
        large.filter(|memory| memory.len() > KEPT).for_each(|memory| *memory = Vec::new());
    }
}

/// Memory of at least `bytes`.
fn room(memory: &mut Vec<u8>, bytes: u128) -> Result<*mut u8, Failed> {
    let refused = Failed(mpi::MPI_ERR_NO_MEM as c_int);
    let bytes = usize::try_from(bytes).map_err(|_| refused)?;
    if memory.len() < bytes {
        memory.try_reserve_exact(bytes - memory.len()).map_err(|_| refused)?;
        memory.resize(bytes, 0);
    }
    Ok(memory.as_mut_ptr())
}

/// The program's blocks of one side of an exchange.
pub(crate) struct Side<B> {
    /// Where they are packed in memory, one after the other as the schedule orders them.
    pub(crate) row: Option<*mut u8>,
    /// By number in the schedule, a block: its buffer, its number there, and its first byte in a row.
    pub(crate) block: B,
}

/// Performs an exchange that has begun. Rows of blocks replace the program's buffers where these are no rows.
///
/// # Errors
/// MPI's error code.
///
/// # Safety
/// The buffers have the blocks.
pub(crate) unsafe fn perform(
    endpoint: &mut Endpoint,
    from: &Side<impl Fn(u32) -> (Placed, u32, usize)>,
    to: &Side<impl Fn(u32) -> (Placed, u32, usize)>,
    (channel, memory): (&mut Channel, &mut Memory),
    rank_of: impl Fn(u32) -> u32,
    sync: Sync,
    window: Option<&mut Window>,
) -> Result<(), Failed> {
    let comm = channel.words.comm;
    let work = room(&mut memory.work, endpoint.workspace_bytes())?;
    let input = match from.row {
        Some(row) => row,
        None => room(&mut memory.input, endpoint.input_bytes())?,
    };
    for i in (0..endpoint.plan().input_blocks()).filter(|_| from.row.is_none()) {
        let (block, number, begin) = (from.block)(i);
        // SAFETY: the program's blocks, and room for all of them.
        unsafe { block.copy(number, input.add(begin), true, comm)? };
    }
    let output = match to.row {
        Some(row) => row,
        None => room(&mut memory.output, endpoint.output_bytes())?,
    };
    let buffers = RawBuffers { input, output, work };
    // SAFETY: memories of these sizes, which only this call uses.
    unsafe { channel.exchange(endpoint, buffers, rank_of, sync, window)? };
    for i in (0..endpoint.plan().problem().ranks).filter(|_| to.row.is_none()) {
        let (block, number, begin) = (to.block)(i);
        // SAFETY: the program's blocks, and all of them in the output.
        unsafe { block.copy(number, output.add(begin), false, comm)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use topocoll::exec::PlannedSizes;

    use super::*;

    #[test]
    fn known_sizes_decide_by_their_mean_if_none_is_far_from_it() {
        assert_eq!(Sizes::known(&[64, 64, 64, 63]), Sizes::About(6));
        assert_eq!(Sizes::known(&[0, 128, 128, 0]), Sizes::About(6));
        assert_eq!(Sizes::known(&[0, 0, 0, 256]), Sizes::Apart);
        assert_eq!(Sizes::known(&[1, 0]), Sizes::About(0));
        assert_eq!(Sizes::known(&[0, 0]), Sizes::Empty);
        assert_eq!(Sizes::known(&[u64::MAX, 1]), Sizes::Large);
    }

    /// An all-gather is applicable if it receives each block in its place of the output.
    #[test]
    fn all_gathers_serve_whose_blocks_have_places() {
        for (on, name) in [
            ("full:7", "concat"),
            ("full:7", "ring"),
            ("full:8", "recursive-doubling"),
            ("full:7", "gather-broadcast"),
            ("cluster:3,1,2", "node-gather"),
            ("torus:4x4", "bucket"),
            ("torus:4x4", "neighbour-gather"),
        ] {
            let machine = topocoll::machine(on).unwrap();
            let (operation, ranks) = (Collective::AllGather, machine.ranks());
            let problem = topocoll::Problem::new(operation, ranks, machine.ports, 64).unwrap();
            let exchange = topocoll::Exchange::new(&machine, &problem).unwrap();
            let schedule = exchange.schedule(name, &topocoll::Parameters::new()).unwrap();
            assert_eq!(PlannedSizes::check_schedule(&schedule), Ok(()), "{name}");
        }
    }
}
