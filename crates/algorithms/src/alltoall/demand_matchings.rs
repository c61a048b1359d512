//! All-to-all-v: every block straight to its destination, in matchings coloured for the demand.
//!
//! A step is as long as its largest message, so matchings of blocks of nearly equal size have the
//! least volume; but each costs a startup, so fewer may be better. The algorithm minimises
//! matchings x startup + sum of largest messages, with the startup in bytes: those that a link carries
//! in the time. See `colouring.rs` for when a matching is opened.
//!
//! Blocks that have bytes come by falling size, and each goes into the first matching in which both
//! ends are free, or into one where two matchings swap messages. On clusters this applies inter-node,
//! where each node sends one message and receives one; intra-node messages go where their ranks are
//! free, then into further matchings. Empty blocks come last: they are not messages, and the schedule is
//! valid for equal blocks too. With k ports, k matchings of nearly equal weight make a step.
//!
//! Claim: at most twice as many matchings as the busiest rank has messages, on a cluster inter-node as
//! the busiest node has; and as few where startups are expensive enough (Koenig 1916). No matchings
//! of whole blocks are fewer, or have a smaller sum of largest messages than the sum over i of the
//! largest i-th largest block of a rank or node, as its blocks are in as many matchings.
//! `tests/correctness/matchings.rs` counts how far the cost is above.

use topocoll_schedule::{
    Block, MAX_BLOCK_BYTES, Origin, Problem, Rule, Schedule, ScheduleError, Slot, Step,
};
use topocoll_topology::{Rank, Route, Shape, Topology};

use crate::factor::colouring::{Colouring, Edge, Used, first_free, in_steps};
use crate::layout::matching_layout::MatchingLayout;
use crate::{Algorithm, Claims, Info, NotApplicable, Parameter, Request, Solution, Values};

pub(crate) struct DemandMatchings;

/// Every message is coloured and stored.
const MOST_RANKS: u32 = 2048;

/// The bits of a message's rank in keys, of its distance, and of a digit of its size by which they are
/// sorted.
const BITS: u32 = MOST_RANKS.ilog2();

/// The parameter.
pub(super) const STARTUP: &str = "startup";
pub(super) const STARTUP_PARAMETER: Parameter = Parameter::number(
    STARTUP,
    "the bytes that take as long as a startup: the more, the fewer matchings; those of the machine unless given",
);

pub(super) fn check_ranks(ranks: u32) -> Result<(), NotApplicable> {
    let rule = "at most 2048 ranks, whose messages it keeps";
    if ranks > MOST_RANKS { Err(NotApplicable::Ranks { rule, ranks }) } else { Ok(()) }
}

/// The bytes that take as long as a startup: given, or of the machine.
pub(super) fn startup_bytes(
    request: &Request<'_>,
    values: &Values<'_>,
) -> Result<u64, NotApplicable> {
    Ok(values.number(STARTUP, 0, u64::MAX)?.unwrap_or(request.startup_bytes))
}

/// A message's step and other end.
type Partner = (u32, Rank);

/// Matchings of the blocks of a demand matrix: every block goes straight to its destination, and in
/// a step a rank sends one block for each port, and receives one. On a cluster a node does so inter-node.
///
/// [`plan`](Self::plan) finds them for one matrix after the other in the same memory: it allocates
/// only where a matrix has more messages of a rank or node than all before.
#[derive(Debug)]
pub struct Matchings {
    ports: u32,
    /// The node of each rank, or its own number.
    vertex: Vec<u32>,
    vertices: usize,
    /// The most messages that a vertex and a rank of it have.
    busiest: usize,
    partners: Partners,
    claims: Claims,
    startup: u64,
    colouring: Colouring,
    /// Messages by falling size: bytes, distance of the ranks, sender.
    keys: Vec<u64>,
    spare: Vec<u64>,
    /// By matching.
    weights: Vec<u64>,
    falling: Vec<u32>,
    step_of: Vec<u32>,
    /// Sender, receiver and matching of every message, and their order by steps.
    messages: Vec<(Rank, Rank, u32)>,
    order: Vec<u32>,
    /// By side, the matchings of ranks and of vertices.
    by_rank: [Used; 2],
    by_vertex: [Used; 2],
}

/// Each rank's messages in order of steps: one for each other rank.
#[derive(Clone, Default, Debug)]
struct Partners {
    ranks: u32,
    steps: u32,
    sends: Vec<Partner>,
    receives: Vec<Partner>,
}

impl Matchings {
    /// Matchings of a topology's ranks, or of its nodes where they hold several, `ports` of them in a step.
    ///
    /// # Errors
    /// More than 2,048 ranks.
    pub fn new(topology: &dyn Topology, ports: u32) -> Result<Self, NotApplicable> {
        let ranks = topology.ranks();
        check_ranks(ranks)?;
        let (vertex, busiest): (Vec<u32>, u32) = match topology.shape() {
            Shape::Clustered(clusters) if clusters.nodes() > 1 => {
                let of_node = |(.., size): (_, _, u32)| size * (ranks - size) + size;
                let busiest = clusters.groups().map(of_node).max().unwrap_or(0);
                ((0..ranks).map(|rank| clusters.node_of(Rank(rank))).collect(), busiest)
            }
            _ => ((0..ranks).collect(), ranks),
        };
        Ok(Self {
            ports,
            vertices: vertex.iter().max().map_or(0, |&last| last as usize + 1),
            vertex,
            busiest: busiest as usize,
            partners: Partners { ranks, ..Partners::default() },
            claims: Claims::new(0, 0),
            startup: 0,
            colouring: Colouring::default(),
            keys: Vec::new(),
            spare: Vec::new(),
            weights: Vec::new(),
            falling: Vec::new(),
            step_of: Vec::new(),
            messages: Vec::new(),
            order: Vec::new(),
            by_rank: Default::default(),
            by_vertex: Default::default(),
        })
    }

    /// Plans for the bytes of all blocks, row by row of the senders, where a startup takes as long as
    /// `startup` bytes. Ranks keep their own blocks.
    ///
    /// # Errors
    /// [`ScheduleError::Line`] with the row, from 1, for another number of sizes than ranks x ranks, and for a
    /// size above [`MAX_BLOCK_BYTES`].
    pub fn plan(&mut self, sizes: &[u64], startup: u64) -> Result<(), ScheduleError> {
        let ranks = self.partners.ranks as usize;
        if sizes.len() != ranks * ranks {
            let (rows, rest) = (sizes.len() / ranks.max(1), sizes.len() % ranks.max(1));
            let message = format!(
                "the matrix has {rows} rows and {rest} sizes: {ranks} ranks have {ranks} rows of {ranks}"
            );
            return Err(ScheduleError::Line { line: (rows + 1).min(ranks), message });
        }
        if let Some(place) = sizes.iter().position(|&bytes| bytes > MAX_BLOCK_BYTES) {
            let (column, bytes) = (place % ranks + 1, sizes[place]);
            let message = format!(
                "column {column}: `{bytes}`: a size is a whole number from 0 to {MAX_BLOCK_BYTES}"
            );
            return Err(ScheduleError::Line { line: place / ranks + 1, message });
        }
        self.startup = startup;
        self.sort(sizes);
        self.match_inter_node(startup);
        self.match_others(sizes);
        self.in_steps();
        Ok(())
    }

    /// Steps of the plan, those of empty blocks included.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.partners.steps
    }

    /// Steps in which bytes move, and the sum of their largest messages: with a barrier between steps,
    /// the time is startup x steps + bytes / bandwidth.
    #[must_use]
    pub fn cost(&self) -> (u64, u128) {
        (self.claims.steps, self.claims.bytes)
    }

    /// The least of both for steps of whole blocks that go straight to their destinations: the messages of
    /// the busiest rank, or inter-node of the busiest node; and the largest blocks that are i-th largest of
    /// one, summed.
    #[must_use]
    pub fn least(&self) -> (u64, u128) {
        let floor = self.colouring.floor.iter().step_by(self.ports as usize);
        (floor.len() as u64, floor.map(|&bytes| u128::from(bytes)).sum())
    }

    /// The steps in which a rank sends blocks, and their receivers, in order.
    pub fn sends(&self, rank: Rank) -> impl Iterator<Item = Partner> + '_ {
        self.partners.of(&self.partners.sends, rank).iter().copied()
    }

    /// The steps in which a rank receives blocks, and their senders, in order.
    pub fn receives(&self, rank: Rank) -> impl Iterator<Item = Partner> + '_ {
        self.partners.of(&self.partners.receives, rank).iter().copied()
    }

    /// The plan as a schedule of a problem of its ranks.
    #[must_use]
    pub fn schedule(&self, problem: &Problem) -> Schedule {
        let parameters = [(STARTUP.to_owned(), self.startup.into())].into();
        let origin = Origin { algorithm: INFO.name.clone().into_owned(), parameters };
        Schedule::new(*problem, origin, self.partners.clone())
    }

    /// Keys of all messages that have bytes, by falling size. Blocks of one size come around the ranks, which
    /// colours equal blocks by distance.
    fn sort(&mut self, sizes: &[u64]) {
        let ranks = self.partners.ranks as usize;
        let mut most = 0;
        self.keys.clear();
        for distance in 1..ranks {
            for from in 0..ranks {
                let to =
                    if from < ranks - distance { from + distance } else { from + distance - ranks };
                let bytes = sizes[from * ranks + to];
                if bytes > 0 {
                    most = bytes.max(most);
                    self.keys.push(bytes << (2 * BITS) | (distance << BITS | from) as u64);
                }
            }
        }
        self.spare.resize(self.keys.len(), 0);
        let mut shift = 0;
        while most >> shift > 0 {
            let digit = |key: u64| !(key >> (2 * BITS + shift)) as usize % MOST_RANKS as usize;
            let mut places = [0; MOST_RANKS as usize];
            self.keys.iter().for_each(|&key| places[digit(key)] += 1);
            let mut before = 0;
            for place in &mut places {
                before += std::mem::replace(place, before);
            }
            for &key in &self.keys {
                let place = &mut places[digit(key)];
                self.spare[*place] = key;
                *place += 1;
            }
            std::mem::swap(&mut self.keys, &mut self.spare);
            shift += BITS;
        }
    }

    /// The ends of the message of a key.
    fn ends(&self, key: u64) -> [u32; 2] {
        let from = key as u32 % MOST_RANKS;
        let to = from + (key >> BITS) as u32 % MOST_RANKS;
        [from, if to < self.partners.ranks { to } else { to - self.partners.ranks }]
    }

    fn match_inter_node(&mut self, startup: u64) {
        self.messages.clear();
        self.colouring.edges.clear();
        for &key in &self.keys {
            let ends = self.ends(key);
            let vertices = ends.map(|rank| self.vertex[rank as usize]);
            if vertices[0] != vertices[1] {
                self.messages.push((Rank(ends[0]), Rank(ends[1]), 0));
                self.colouring.edges.push(Edge { ends: vertices, weight: key >> (2 * BITS) });
            }
        }
        self.colouring.colour(self.vertices, startup);
        let colours = &self.colouring.colours;
        self.messages.iter_mut().zip(&colours.of).for_each(|(message, &colour)| message.2 = colour);
        self.weights.clone_from(&colours.weights);
    }

    /// Intra-node messages, and blocks without bytes.
    fn match_others(&mut self, sizes: &[u64]) {
        let (ranks, coloured) = (self.partners.ranks, self.messages.len());
        if coloured == (ranks * ranks.saturating_sub(1)) as usize {
            return;
        }
        let room = 2 * self.busiest + 1;
        for side in 0..2 {
            self.by_rank[side].clear(ranks as usize, room);
            self.by_vertex[side].clear(self.vertices, room);
        }
        for i in 0..coloured {
            let (from, to, colour) = self.messages[i];
            self.take([from.0, to.0], colour, true);
        }
        for i in 0..self.keys.len() {
            let (ends, bytes) = (self.ends(self.keys[i]), self.keys[i] >> (2 * BITS));
            if self.vertex[ends[0] as usize] == self.vertex[ends[1] as usize] {
                self.place(ends, bytes);
            }
        }
        for distance in 1..ranks {
            for from in 0..ranks {
                let to = (from + distance) % ranks;
                if sizes[(from * ranks + to) as usize] == 0 {
                    self.place([from, to], 0);
                }
            }
        }
    }

    /// Puts a message into the first matching that is free.
    fn place(&mut self, ends: [u32; 2], bytes: u64) {
        let [u, v] = ends.map(|rank| self.vertex[rank as usize]);
        let [sent, received] = [self.by_rank[0].of(ends[0]), self.by_rank[1].of(ends[1])];
        let colour = match u == v {
            true => first_free([sent, received]),
            false => first_free([sent, received, self.by_vertex[0].of(u), self.by_vertex[1].of(v)]),
        };
        self.take(ends, colour, u != v);
        if self.weights.len() <= colour as usize {
            self.weights.resize(colour as usize + 1, 0);
        }
        let weight = &mut self.weights[colour as usize];
        *weight = bytes.max(*weight);
        self.messages.push((Rank(ends[0]), Rank(ends[1]), colour));
    }

    fn take(&mut self, ends: [u32; 2], colour: u32, crosses: bool) {
        for (side, rank) in ends.into_iter().enumerate() {
            self.by_rank[side].insert(rank, colour);
            if crosses {
                self.by_vertex[side].insert(self.vertex[rank as usize], colour);
            }
        }
    }

    /// Matchings by falling weight, `ports` of them a step.
    fn in_steps(&mut self) {
        let Self { ports, weights, falling, step_of, messages, order, partners, .. } = self;
        let (ports, ranks) = (*ports as usize, partners.ranks as usize);
        let (moving, bytes) = in_steps(weights, ports, falling, step_of);
        self.claims = Claims::new(moving, bytes);
        partners.steps = weights.len().div_ceil(ports) as u32;
        // The places of the messages of each step, then of each rank.
        let places = falling;
        places.clear();
        places.resize(partners.steps as usize + 1, 0);
        messages.iter().for_each(|message| places[step_of[message.2 as usize] as usize + 1] += 1);
        (1..places.len()).for_each(|step| places[step] += places[step - 1]);
        order.resize(messages.len(), 0);
        for (message, place) in (0..).zip(messages.iter()) {
            let place = &mut places[step_of[place.2 as usize] as usize];
            order[*place as usize] = message;
            *place += 1;
        }
        let each = ranks.saturating_sub(1);
        for side in 0..2 {
            let list = if side == 0 { &mut partners.sends } else { &mut partners.receives };
            list.resize(ranks * each, (0, Rank(0)));
            places.clear();
            places.resize(ranks, 0);
            for &message in &*order {
                let (from, to, matching) = messages[message as usize];
                let (own, other) = if side == 0 { (from, to) } else { (to, from) };
                let place = &mut places[own.index()];
                list[own.index() * each + *place as usize] = (step_of[matching as usize], other);
                *place += 1;
            }
        }
    }
}

impl Partners {
    fn places(&self) -> MatchingLayout {
        MatchingLayout::of(self.ranks)
    }

    fn of<'a>(&self, list: &'a [Partner], rank: Rank) -> &'a [Partner] {
        let each = self.ranks as usize - 1;
        list.get(rank.index() * each..).map_or(&[], |list| &list[..each.min(list.len())])
    }
}

/// What a list in order of steps has for a step.
pub(super) fn at<T: Copy>(ends: &[(u32, T)], step: u32) -> impl Iterator<Item = T> {
    let first = ends.partition_point(|end| end.0 < step);
    ends[first..].iter().take_while(move |end| end.0 == step).map(|end| end.1)
}

impl Rule for Partners {
    fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        for to in at(self.of(&self.sends, rank), step) {
            self.places().send(rank, to, Route::default(), out);
        }
        for from in at(self.of(&self.receives, rank), step) {
            self.places().receive(rank, from, out);
        }
    }

    fn slots(&self) -> u64 {
        self.places().slots()
    }

    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().initial_block(rank, slot)
    }

    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        self.places().final_block(rank, slot)
    }
}

static INFO: Info = Info::new(
    "demand-matchings",
    "every block straight to its destination, blocks of nearly equal size at the same time",
    "edge colouring (Koenig 1916), largest first",
)
.taking(&[STARTUP_PARAMETER])
.by_demand();

impl Algorithm for DemandMatchings {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let (problem, topology) = (&request.problem, request.topology);
        let mut matchings = Matchings::new(topology, request.carrier_ports())?;
        let demand = request.demand.ok_or(NotApplicable::NoDemand)?;
        let startup = startup_bytes(request, values)?;
        let sizes: Vec<u64> = (0..problem.ranks).flat_map(|rank| demand.row(Rank(rank))).collect();
        matchings.plan(&sizes, startup).expect("bug: a demand matrix of other ranks");
        Ok(Solution::of(matchings.schedule(problem), matchings.claims.on(topology)))
    }

    fn memory(&self, request: &Request<'_>) -> u128 {
        // Of each pair its size, keys, edge, colours, message, partners and their copy.
        const PAIR: u128 = 96;
        let Ok(plan) = Matchings::new(request.topology, 1) else { return 0 };
        let (ranks, vertices) = (u128::from(request.problem.ranks), plan.vertices as u128);
        // Of each colour an edge at each vertex, and a bit there and at each rank.
        let colour = 8 * vertices + (2 * vertices + ranks) / 4;
        PAIR * ranks.pow(2) + 2 * plan.busiest as u128 * colour
    }
}
