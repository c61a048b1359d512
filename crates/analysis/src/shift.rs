//! Link loads of a uniform shift on a grid, in closed form; on a [`tree`]; between [`routers`].
//!
//! In a step of a cyclic rule every node x sends a message of equal size to x + s (mod P). Along
//! dimension u the message turns from position a to a + t (mod side), where t is `s_u`, or `s_u +
//! 1` if the faster coordinates carry into it: x mod S + s mod S >= S, with S the stride of u. By
//! dimension order it travels on the line with the slower coordinates of its destination and the
//! faster coordinates of its source. On each such line every position starts exactly one message,
//! and all turn equally far.
//!
//! If the side wraps, every link of the line in the nearer direction carries as many messages as a
//! message has hops. If not, messages that start below side - t go up by t, and the others go down
//! by side - t. The links above position i, in either direction, carry min(i + 1, t, side - t,
//! side - 1 - i) messages: most in the middle, also for several shifts. Time per step is proportional
//! to dimensions and messages and does not depend on the size.

mod routers;
mod totals;
mod tree;

use smallvec::SmallVec;
use topocoll_schedule::RankClasses;
use topocoll_topology::{Grid, Level, LinkId, MixedRadix, Rank, Shape, Ties, Topology};

pub(crate) use self::routers::count_routers;
pub(crate) use self::totals::Totals;
use crate::charges::Rates;
use crate::loads::{Busiest, LineLoads};
use crate::step_count::StepCount;

/// A rule in which equivalent ranks send to the same shifts of the number of their node, by the routes of a
/// grid or a tree.
#[derive(Clone, Copy)]
pub(crate) struct Cyclic<'t> {
    pub(crate) over: Over<'t>,
    nodes: u32,
    /// Ranks on each node.
    size: u32,
    classes: Classes,
}

/// The links of a network on which a shift has a closed form.
#[derive(Clone, Copy)]
pub(crate) enum Over<'t> {
    Grid(&'t Grid),
    Tree(&'t [Level]),
}

#[derive(Clone, Copy)]
enum Classes {
    /// All ranks are equivalent under rank -> rank + 1.
    Ranks,
    /// All nodes under node -> node + 1, and ranks within nodes by this period.
    Nodes(u32),
}

/// Messages of equal sizes that ranks of node 0 send to the node of a number.
#[derive(Clone, Copy)]
pub(crate) struct Shift {
    pub(crate) node: u32,
    pub(crate) times: u32,
    pub(crate) bytes: u128,
}

impl<'t> Cyclic<'t> {
    /// If the classes are those of such a rule.
    pub(crate) fn new(classes: &RankClasses, topology: &'t dyn Topology) -> Option<Self> {
        let size = match topology.shape() {
            Shape::Clustered(clusters) => clusters.equal_size()?,
            _ => 1,
        };
        let classes = match (classes.radix().sides(), classes.periods()) {
            ([_], [1]) => Classes::Ranks,
            ([_, within], [1, period]) if *within == size => Classes::Nodes(*period),
            _ => return None,
        };
        let over = match topology.network() {
            Shape::Grid(grid) if grid.ties() == Ties::Up => Over::Grid(grid),
            Shape::Graph(graph) => Over::Tree(graph.levels()?),
            _ => return None,
        };
        Some(Self { over, nodes: topology.nodes(), size, classes })
    }

    /// The grid, if it is over one.
    pub(crate) fn grid(&self) -> Option<&'t Grid> {
        match self.over {
            Over::Grid(grid) => Some(grid),
            Over::Tree(_) => None,
        }
    }

    /// Adds the link loads of a step in which every node sends these messages. The lines and their busiest links are
    /// those of an earlier step.
    pub(crate) fn count(
        &self,
        rates: &Rates<'_>,
        messages: &[Shift],
        lines: (&mut Vec<LineLoads>, &mut Vec<Busiest>),
        step: &mut StepCount,
    ) {
        match self.over {
            Over::Grid(grid) => count(grid, rates, messages, step),
            Over::Tree(levels) => tree::count(levels, rates, messages, lines, step),
        }
    }

    /// The bytes of the lines.
    pub(crate) fn memory(&self) -> u128 {
        match self.over {
            Over::Grid(_) => 0,
            Over::Tree(levels) => tree::memory(levels),
        }
    }

    /// The work of a shift on a tree, as of this number of links.
    pub(crate) fn segments(&self) -> u128 {
        match self.over {
            Over::Grid(_) => 1,
            Over::Tree(levels) => tree::segments(levels),
        }
    }

    /// The ranks of a node that differ in which of their messages leave it.
    pub(crate) fn members(&self) -> u32 {
        match self.classes {
            Classes::Ranks => self.size,
            Classes::Nodes(_) => 1,
        }
    }

    /// The nodes, all equivalent.
    pub(crate) fn nodes(&self) -> RankClasses {
        let radix = match self.over {
            Over::Grid(grid) => grid.radix().clone(),
            Over::Tree(_) => MixedRadix::new(&[self.nodes]).expect("a machine has nodes"),
        };
        let periods = radix.sides().iter().map(|_| 1).collect();
        RankClasses::translations(radix, periods)
    }

    /// The messages that the ranks of node 0 equivalent to a representative send if it sends `bytes`
    /// to a rank. Those to node 0 stay on it.
    pub(crate) fn shifts(&self, to: Rank, bytes: u128) -> impl Iterator<Item = Shift> + use<> {
        let (node, local) = (to.0 / self.size, to.0 % self.size);
        let both = match self.classes {
            Classes::Nodes(period) => [(node, self.size / period), (0, 0)],
            // The last ranks of the node reach one node more.
            Classes::Ranks => [(node, self.size - local), ((node + 1) % self.nodes, local)],
        };
        let shifts = both.into_iter().filter(|&(_, times)| times > 0);
        shifts.map(move |(node, times)| Shift { node, times, bytes })
    }

    /// How many of the ranks of node 0 equivalent to a representative send to, or receive from,
    /// another node if it does so with a rank.
    pub(crate) fn crossing(&self, peer: Rank) -> u32 {
        self.shifts(peer, 0).filter(|shift| shift.node > 0).map(|shift| shift.times).sum()
    }

    /// The ends of these messages as places on their nodes: all that go to a node.
    pub(crate) fn ends(
        &self,
        from: Rank,
        to: Rank,
        node: u32,
    ) -> impl Iterator<Item = (u32, u32)> + use<> {
        let Self { size, classes, nodes, .. } = *self;
        let apart = match classes {
            Classes::Ranks => 1,
            Classes::Nodes(period) => period,
        };
        (0..size).step_by(apart as usize).filter_map(move |turn| {
            let moved = u64::from(to.0) + u64::from(turn);
            let reached = match classes {
                Classes::Ranks => (moved / u64::from(size)) as u32 % nodes,
                Classes::Nodes(_) => to.0 / size,
            };
            let local = (moved % u64::from(size)) as u32;
            (reached == node).then_some(((from.0 + turn) % size, local))
        })
    }
}

/// Adds the link loads of a step on a grid.
fn count(grid: &Grid, rates: &Rates<'_>, messages: &[Shift], step: &mut StepCount) {
    for u in 0..grid.sides().len() {
        let class = rates.first_class() + u;
        each_line_group(grid, u, messages, |group| {
            if grid.wrap()[u] {
                group.for_each_direction(messages, |_, load, bytes| {
                    let links = group.lines * u128::from(grid.sides()[u]);
                    step.charges.carry(class, links.saturating_mul(bytes));
                    step.load(rates, class, load, bytes, if load > 1 { links } else { 0 });
                });
            } else {
                group.count_line(rates, messages, step);
            }
        });
    }
    for message in messages {
        count_longest(grid, rates, message.node, step);
    }
}

/// Links with equal loads.
#[derive(Clone, Copy)]
pub(crate) struct Links {
    /// One of them.
    pub(crate) link: LinkId,
    pub(crate) count: u128,
    /// Messages and bytes on each.
    pub(crate) load: u64,
    pub(crate) bytes: u128,
}

/// Calls `each` with links that carry several messages, along every line from its middle to its
/// ends, by decreasing load, until `each` returns false. Returns the number of such links.
pub(crate) fn shared(grid: &Grid, messages: &[Shift], mut each: impl FnMut(Links) -> bool) -> u128 {
    let mut all = 0;
    for u in 0..grid.sides().len() {
        each_line_group(grid, u, messages, |group| {
            let side = grid.sides()[u];
            if !grid.wrap()[u] {
                all += 2 * group.lines * u128::from(group.shared_above(messages));
                group.name_shared(messages, &mut each);
                return;
            }
            group.for_each_direction(messages, |direction, load, bytes| {
                if load > 1 {
                    let link = grid.link_id(Rank(group.first), u, direction);
                    let count = group.lines * u128::from(side);
                    all += count;
                    each(Links { link, count, load, bytes });
                }
            });
        });
    }
    all
}

/// Lines along a dimension on which each message turns equally far.
struct LineGroup<'g> {
    grid: &'g Grid,
    dimension: usize,
    /// The lowest suffix of these lines: their faster coordinates as one number.
    first: u32,
    lines: u128,
}

/// Calls `each` with the lines along dimension u, grouped by carries.
fn each_line_group(
    grid: &Grid,
    u: usize,
    messages: &[Shift],
    mut each: impl FnMut(&LineGroup<'_>),
) {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let lines_per_suffix = u64::from(grid.radix().ranks() / side / stride);
    // A message carries into u on the lines of the highest `shift mod stride` suffixes.
    let mut borders: SmallVec<[u32; 8]> =
        messages.iter().map(|message| stride - message.node % stride).collect();
    borders.push(0);
    borders.sort_unstable();
    borders.dedup();
    for (i, &first) in borders.iter().enumerate() {
        let end = borders.get(i + 1).copied().unwrap_or(stride);
        if first < end {
            let lines = u128::from(lines_per_suffix) * u128::from(end - first);
            each(&LineGroup { grid, dimension: u, first, lines });
        }
    }
}

impl LineGroup<'_> {
    /// The turn of each message.
    fn turns(&self, messages: &[Shift]) -> impl Iterator<Item = (u32, Shift)> {
        let turn = |of: &Shift| (turn(self.grid, self.dimension, of.node, self.first), *of);
        messages.iter().map(turn)
    }

    /// The messages and bytes on every link in each direction of a side that wraps.
    fn for_each_direction(&self, messages: &[Shift], mut each: impl FnMut(i64, u64, u128)) {
        let (mut load, mut bytes) = ([0u64; 2], [0u128; 2]);
        for (turn, message) in self.turns(messages) {
            for (i, most) in most(self.grid, self.dimension, turn).into_iter().enumerate() {
                let most = most * u64::from(message.times);
                load[i] += most;
                bytes[i] += u128::from(most) * message.bytes;
            }
        }
        for (i, direction) in [1, -1].into_iter().enumerate().filter(|&(i, _)| load[i] > 0) {
            each(direction, load[i], bytes[i]);
        }
    }

    /// For a side that does not wrap, the messages and bytes on each link with `positions`
    /// positions on one side of it and at least as many on the other.
    fn load_at(&self, positions: u32, messages: &[Shift]) -> (u64, u128) {
        self.turns(messages).fold((0, 0), |(load, bytes), (turn, message)| {
            let [most, _] = most(self.grid, self.dimension, turn);
            let passing = most.min(positions.into()) * u64::from(message.times);
            (load + passing, bytes + u128::from(passing) * message.bytes)
        })
    }

    /// The number of positions of a side that does not wrap above which the links carry several
    /// messages.
    fn shared_above(&self, messages: &[Shift]) -> u32 {
        let side = self.grid.sides()[self.dimension];
        let several = |positions| self.load_at(positions, messages).0 > 1;
        // A single message loads the k-th link from an end with up to k messages.
        match (several(1), several(side / 2)) {
            (true, _) => side - 1,
            (false, true) => side - 3,
            (false, false) => 0,
        }
    }

    /// Counts lines of a side that does not wrap.
    fn count_line(&self, rates: &Rates<'_>, messages: &[Shift], step: &mut StepCount) {
        let (u, side) = (self.dimension, self.grid.sides()[self.dimension]);
        // `side - turn` messages go up by `turn`, and `turn` messages go down by `side - turn`.
        let carried = |(turn, message): (u32, Shift)| {
            let hops = 2 * u128::from(turn) * u128::from(side - turn);
            hops * u128::from(message.times) * message.bytes
        };
        let carried: u128 = self.turns(messages).map(carried).sum();
        let class = rates.first_class() + u;
        step.charges.carry(class, self.lines.saturating_mul(carried));
        let (load, bytes) = self.load_at(side / 2, messages);
        if load > 0 {
            let shared = 2 * self.lines * u128::from(self.shared_above(messages));
            step.load(rates, class, load, bytes, shared);
        }
    }

    /// Calls `each` with the shared links of a side that does not wrap, from the middle to the ends.
    fn name_shared(&self, messages: &[Shift], each: &mut impl FnMut(Links) -> bool) {
        let (u, side) = (self.dimension, self.grid.sides()[self.dimension]);
        for positions in (1..=side / 2).rev() {
            let (load, bytes) = self.load_at(positions, messages);
            if load < 2 {
                return;
            }
            // Both ends of a link: its number is that of the end it leaves.
            let (lower, upper) =
                ([positions - 1, positions], [side - 1 - positions, side - positions]);
            let both = if lower == upper { &[lower][..] } else { &[lower, upper] };
            for (&at, direction) in both.iter().flat_map(|ends| ends.iter().zip([1, -1])) {
                let at = self.grid.radix().shifted(Rank(self.first), u, at.into());
                let link = self.grid.link_id(at, u, direction);
                if !each(Links { link, count: self.lines, load, bytes }) {
                    return;
                }
            }
        }
    }
}

/// The most messages on one link of a line, upwards and downwards, if each message turns by `turn`.
/// On a side that does not wrap the link in the middle carries most, for every turn.
fn most(grid: &Grid, u: usize, turn: u32) -> [u64; 2] {
    if grid.wrap()[u] {
        let hops = grid.nearest(u, 0, turn);
        return [hops.max(0), (-hops).max(0)].map(|hops| hops as u64);
    }
    [turn.min(grid.sides()[u] - turn).into(); 2]
}

/// The turn along dimension u, upwards, of a message whose faster coordinates are `suffix`.
fn turn(grid: &Grid, u: usize, shift: u32, suffix: u32) -> u32 {
    let (side, stride) = (grid.sides()[u], grid.radix().stride(u));
    let carry = u32::from(suffix >= stride - shift % stride);
    (shift / stride + carry) % side
}

/// The positions along dimension u, relative to `at`, whose messages to rank + shift take the link
/// from `at` in this direction.
pub(crate) fn starts(
    grid: &Grid,
    at: Rank,
    u: usize,
    direction: i64,
    shift: u32,
) -> std::ops::Range<i64> {
    let side = i64::from(grid.sides()[u]);
    let turn = turn(grid, u, shift, at.0 % grid.radix().stride(u));
    if grid.wrap()[u] {
        let hops = grid.nearest(u, 0, turn);
        // Empty where the hops are in the other direction.
        return if direction > 0 { 1 - hops..1 } else { 0..-hops };
    }
    let (at, turn) = (i64::from(grid.radix().coordinate(at, u)), i64::from(turn));
    let (low, end) = match direction {
        1 => ((at - turn + 1).max(0), (at + 1).min(side - turn)),
        _ => (at.max(side - turn), (at + side - turn).min(side)),
    };
    low - at..end - at
}

/// The longest routes of the messages to rank + shift that carry, or do not carry, out of the
/// dimensions visited.
#[derive(Clone, Copy, Default)]
struct Longest {
    /// The most hops of any.
    hops: u64,
    /// The largest weight of any, and the dimensions that this route carries out of, as bits.
    weight: u128,
    carries: u64,
    /// 1 if the hops by dimension of this route are the larger of the two.
    order: u8,
}

/// Hops along dimension u for this digit of a shift, with or without a carry in and out, if
/// possible. A carry can go out unless digit plus carry is 0, and can fail to go out unless they
/// fill the side.
fn hops_along(grid: &Grid, u: usize, digit: u32, comes: bool, goes: bool) -> Option<u64> {
    let side = grid.sides()[u];
    let moved = u64::from(digit) + u64::from(comes);
    let possible = if goes { moved > 0 } else { moved < side.into() };
    possible.then(|| match goes {
        _ if grid.wrap()[u] => grid.nearest(u, 0, moved as u32).unsigned_abs(),
        false => moved,
        true => u64::from(side) - moved,
    })
}

/// Charges the longest route of any rank's message to rank + shift.
fn count_longest(grid: &Grid, rates: &Rates<'_>, shift: u32, step: &mut StepCount) {
    let digit = |u: usize| shift / grid.radix().stride(u) % grid.sides()[u];
    let mut best = [Some(Longest::default()), None];
    for u in (0..grid.sides().len()).rev() {
        let own = digit(u);
        let mut next: [Option<(Longest, (u64, u8))>; 2] = [None; 2];
        for (comes, longest) in best.iter().enumerate() {
            let Some(longest) = longest else { continue };
            for (goes, next) in next.iter_mut().enumerate() {
                let Some(here) = hops_along(grid, u, own, comes == 1, goes == 1) else {
                    continue;
                };
                let mut longer = Longest {
                    hops: longest.hops + here,
                    weight: longest.weight + rates.weight(rates.first_class() + u, here),
                    carries: longest.carries | (goes as u64) << u,
                    order: 0,
                };
                let order = (here, longest.order);
                *next = Some(match *next {
                    Some((mut other, before)) => {
                        let hops = longer.hops.max(other.hops);
                        (longer.hops, other.hops) = (hops, hops);
                        let heavier = (longer.weight, order) > (other.weight, before);
                        if heavier { (longer, order) } else { (other, before) }
                    }
                    None => (longer, order),
                });
            }
        }
        let orders = next.map(|next| next.map(|(_, order)| order));
        best = [0, 1].map(|goes| {
            let order = u8::from(orders[goes] > orders[1 - goes]);
            next[goes].map(|(longest, _)| Longest { order, ..longest })
        });
    }
    for longest in best.into_iter().flatten() {
        let carries = |u: usize| longest.carries >> u & 1 == 1;
        let hops = (0..grid.sides().len()).map(|u| {
            let hops = hops_along(grid, u, digit(u), carries(u + 1), carries(u));
            (rates.first_class() + u, hops.expect("bug: an impossible carry"))
        });
        step.hops = step.hops.max(longest.hops);
        step.charges.longest(longest.weight, hops);
    }
}
