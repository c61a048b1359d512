//! What a certificate says.

use crate::Fault;
use crate::lines::Segment;
use crate::machine::Machine;
use crate::radix::Radix;

pub(crate) struct Certificate {
    pub(crate) machine: Machine,
    pub(crate) gathers: bool,
    pub(crate) ports: u64,
    /// Of a node.
    pub(crate) node_ports: u64,
    pub(crate) block: u64,
    pub(crate) algorithm: String,
    pub(crate) radix: Radix,
    pub(crate) slots: u64,
    /// Bytes of the pieces of a block.
    pub(crate) pieces: Vec<u64>,
    /// In the order of [`Counts::named`](crate::Counts::named).
    pub(crate) counts: [u128; 11],
    /// Steps and link bytes.
    pub(crate) bounds: (u64, u128),
    pub(crate) layouts: Vec<Layout>,
    /// Ordered by number, then by class, without idle steps.
    pub(crate) steps: Vec<Step>,
}

/// The initial and final layout of the representative of a class.
pub(crate) struct Layout {
    pub(crate) start: Vec<LayoutRow>,
    pub(crate) finish: Vec<LayoutRow>,
}

impl Certificate {
    /// The steps of equal number, in order, of all classes that are not idle.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.chunk_by(|step, next| step.number == next.number)
    }
}

/// Slots and the displacements of the blocks in them: the first, and for each axis, the slowest
/// first, their number and distance.
pub(crate) struct LayoutRow {
    pub(crate) slot: u64,
    pub(crate) displacement: u32,
    pub(crate) axes: Vec<Axis>,
}

pub(crate) struct Axis {
    pub(crate) count: u64,
    /// The distance between slots.
    pub(crate) slots: u64,
    /// The difference of the displacements of their blocks.
    pub(crate) displacement: u32,
}

impl LayoutRow {
    pub(crate) fn count(&self) -> u64 {
        self.axes.iter().map(|axis| axis.count).product()
    }

    /// Calls `each` with the slots in order and their displacements.
    pub(crate) fn each(
        &self,
        radix: &Radix,
        each: &mut impl FnMut(u64, u32) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        along(&self.axes, radix, (self.slot, self.displacement), each)
    }
}

fn along(
    axes: &[Axis],
    radix: &Radix,
    (slot, mut displacement): (u64, u32),
    each: &mut impl FnMut(u64, u32) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let [axis, faster @ ..] = axes else { return each(slot, displacement) };
    let apart = radix.shift(axis.displacement);
    for i in 0..axis.count {
        along(faster, radix, (slot + i * axis.slots, displacement), each)?;
        displacement = apart.apply(displacement);
    }
    Ok(())
}

/// A step of the representative of a class.
pub(crate) struct Step {
    pub(crate) number: u32,
    pub(crate) class: u32,
    pub(crate) copies: Vec<(Slots, Slots)>,
    pub(crate) sends: Vec<Send>,
    pub(crate) receives: Vec<(u32, Slots)>,
}

pub(crate) struct Send {
    /// The displacement of the receiver.
    pub(crate) to: u32,
    /// `None` for the machine's own route.
    pub(crate) route: Option<Vec<Segment>>,
    pub(crate) slots: Slots,
}

/// Places in order, as strided runs.
pub(crate) struct Slots(pub(crate) Vec<SlotRun>);

pub(crate) struct SlotRun {
    pub(crate) base: i64,
    pub(crate) outer: (i64, i64),
    pub(crate) inner: (i64, i64),
}

impl SlotRun {
    /// The lowest and the highest place.
    pub(crate) fn span(&self) -> (i128, i128) {
        let reach = [self.outer, self.inner]
            .map(|(count, stride)| (i128::from(count) - 1) * i128::from(stride));
        let [low, high] = [reach.map(|reach| reach.min(0)), reach.map(|reach| reach.max(0))]
            .map(|reach| i128::from(self.base) + reach.iter().sum::<i128>());
        (low, high)
    }

    pub(crate) fn count(&self) -> u64 {
        (self.outer.0 * self.inner.0) as u64
    }
}

impl Slots {
    /// The places in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().flat_map(|run| {
            (0..run.outer.0).flat_map(move |i| {
                let row = run.base + i * run.outer.1;
                (0..run.inner.0).map(move |j| (row + j * run.inner.1) as usize)
            })
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(SlotRun::count).sum()
    }
}
