//! Which ranks of a machine with failures exchange messages in each step, and over which links.

use std::cmp::Reverse;
use std::collections::VecDeque;

use topocoll_topology::{Graph, LinkId, Rank, Route, Topology};

use super::follow::{Followed, NONE};

/// A possible message of a step.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) route: Route,
    /// The message of the schedule that it stands for.
    pub(super) message: Option<u32>,
}

/// A message of the schedule between two nodes that have not failed.
struct Sent {
    message: u32,
    from: u32,
    to: u32,
    pieces: u32,
    route: Route,
}

/// A step of the schedule on the machine with failures.
struct Kept {
    step: u32,
    connections: Vec<Connection>,
    /// The messages of the step, and those of them that found no free links.
    all: Vec<Sent>,
    cut: Vec<usize>,
}

/// A schedule on a machine with failures.
pub(super) struct Steps<'r> {
    graph: &'r Graph,
    ports: u32,
    kept: Vec<Kept>,
    /// Whether two messages of a step use one link.
    pub(super) shared: bool,
}

/// The connections of all steps.
#[derive(Default)]
pub(super) struct Connections {
    ranks: u32,
    pub(super) all: Vec<Connection>,
    /// Their senders and receivers.
    pub(super) ends: Vec<[u32; 2]>,
    /// The first connection of each step.
    first: Vec<usize>,
    /// By step, the step of the schedule that it is; `None` for one that was added.
    pub(super) step: Vec<Option<u32>>,
    /// By message of the schedule, its connection or [`NONE`].
    pub(super) of_message: Vec<u32>,
    /// By step and sender, the first connection.
    of_sender: Vec<usize>,
}

impl Connections {
    fn push(&mut self, step: Option<u32>, mut connections: Vec<Connection>) {
        let first = self.all.len();
        self.first.push(first);
        self.step.push(step);
        connections.sort_by_key(|connection| connection.from);
        self.of_sender.extend((0..self.ranks).map(|sender| {
            first + connections.partition_point(|connection| connection.from < sender)
        }));
        for connection in connections {
            if let Some(message) = connection.message {
                self.of_message[message as usize] = self.all.len() as u32;
            }
            self.ends.push([connection.from, connection.to]);
            self.all.push(connection);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.first.len()
    }

    pub(super) fn step_of(&self, connection: u32) -> usize {
        self.first.partition_point(|&first| first <= connection as usize) - 1
    }

    /// The connections of a step, by number.
    pub(super) fn of_step(&self, step: usize) -> std::ops::Range<usize> {
        self.first[step]..self.first.get(step + 1).copied().unwrap_or(self.all.len())
    }

    /// The connections of a step over which a rank sends, by number.
    pub(super) fn of_sender(&self, step: usize, from: u32) -> std::ops::Range<usize> {
        let place = step * self.ranks as usize + from as usize;
        let end = self.of_sender.get(place + 1).copied().unwrap_or(self.all.len());
        self.of_sender[place]..end
    }
}

impl<'r> Steps<'r> {
    /// Keeps each message whose route has not failed; others take the shortest free route, the largest first.
    /// Then ranks with free ports are connected to the nearest others.
    ///
    /// `nodes` gives the nodes of the ranks of the schedule's machine that have not failed.
    pub(super) fn new(
        graph: &'r Graph,
        machine: &dyn Topology,
        nodes: &[Option<u32>],
        ports: u32,
        followed: &Followed,
    ) -> Self {
        let pieces = followed.pieces(nodes);
        let mut all: Vec<Vec<Sent>> = Vec::new();
        all.resize_with(followed.steps as usize, Vec::new);
        for (message, sent) in (0..).zip(&followed.sent) {
            let pieces = pieces[message as usize];
            let ends = (nodes[sent.from.index()], nodes[sent.to.index()]);
            let (Some(from), Some(to), 1..) = (ends.0, ends.1, pieces) else { continue };
            let mut route = sent.route.clone();
            if route.is_empty() {
                machine.route(sent.from, sent.to, &mut route);
            }
            all[sent.step as usize].push(Sent { message, from, to, pieces, route });
        }
        let mut steps = Self { graph, ports, kept: Vec::new(), shared: false };
        for (step, all) in (0..).zip(all) {
            if !all.is_empty() {
                steps.keep(step, all);
            }
        }
        steps
    }

    fn keep(&mut self, step: u32, all: Vec<Sent>) {
        let mut free = Free::new(self.graph, self.ports);
        let (mut connections, mut cut) = (Vec::new(), Vec::new());
        for (place, sent) in all.iter().enumerate() {
            if self.graph.follow(Rank(sent.from), &sent.route) == Ok(sent.to) {
                self.shared |= !free.take(sent.from, sent.to, &sent.route);
                let (from, to, route) = (sent.from, sent.to, sent.route.clone());
                connections.push(Connection { from, to, route, message: Some(sent.message) });
            } else {
                cut.push(place);
            }
        }
        cut.sort_by_key(|&place| Reverse(all[place].pieces));
        cut.retain(|&place| {
            let found = free.connect(all[place].from, Some(all[place].to));
            let message = Some(all[place].message);
            let found = found.map(|connection| Connection { message, ..connection });
            connections.extend(found.clone());
            found.is_none()
        });
        free.fill(&mut connections);
        self.kept.push(Kept { step, connections, all, cut });
    }

    /// The number of steps that have messages.
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }

    /// The connections of `steps` steps: without those of the fewest messages, or with others before the first.
    /// These repeat the steps in which the largest messages found no free links, and these messages come first.
    pub(super) fn connections(&self, steps: usize, messages: usize) -> Connections {
        let (ranks, of_message) = (self.graph.vertices(), vec![NONE; messages]);
        let mut made = Connections { ranks, of_message, ..Connections::default() };
        let largest = |kept: &Kept| kept.cut.iter().map(|&place| kept.all[place].pieces).max();
        let mut order: Vec<usize> = (0..self.count()).collect();
        order.sort_by_key(|&step| Reverse(largest(&self.kept[step])));
        let mut times = vec![0; self.count()];
        let again = order.into_iter().cycle().take(steps.saturating_sub(self.count()));
        again.for_each(|step| times[step] += 1);
        for (kept, times) in self.kept.iter().zip(times) {
            let mut cut = kept.cut.clone();
            for _ in 0..times {
                made.push(None, self.repeated(kept, &mut cut));
            }
        }
        let messages = |step: usize| {
            self.kept[step].connections.iter().filter(|one| one.message.is_some()).count()
        };
        let mut left_out: Vec<usize> = (0..self.count()).collect();
        left_out.sort_by_key(|&step| messages(step));
        left_out.truncate(self.count().saturating_sub(steps));
        for (step, kept) in self.kept.iter().enumerate() {
            if !left_out.contains(&step) {
                made.push(Some(kept.step), kept.connections.clone());
            }
        }
        made
    }

    fn repeated(&self, kept: &Kept, cut: &mut Vec<usize>) -> Vec<Connection> {
        let mut free = Free::new(self.graph, self.ports);
        let mut connections = Vec::new();
        cut.retain(|&place| {
            let found = free.connect(kept.all[place].from, Some(kept.all[place].to));
            let left = found.is_none();
            connections.extend(found);
            left
        });
        for sent in &kept.all {
            let known = |one: &Connection| (one.from, one.to) == (sent.from, sent.to);
            if !connections.iter().any(known) {
                connections.extend(free.connect(sent.from, Some(sent.to)));
            }
        }
        free.fill(&mut connections);
        connections
    }
}

/// The links and ports that are free in a step.
struct Free<'r> {
    graph: &'r Graph,
    taken: Vec<bool>,
    /// By rank, messages that it may still send, and receive.
    sends: Vec<u32>,
    receives: Vec<u32>,
    /// By rank, the last link of the shortest free route to it, and the rank before.
    came: Vec<(u32, u32)>,
    queue: VecDeque<u32>,
}

impl<'r> Free<'r> {
    fn new(graph: &'r Graph, ports: u32) -> Self {
        let ranks = graph.vertices() as usize;
        Self {
            graph,
            taken: vec![false; graph.link_numbers() as usize],
            sends: vec![ports; ranks],
            receives: vec![ports; ranks],
            came: vec![(NONE, NONE); ranks],
            queue: VecDeque::new(),
        }
    }

    /// Takes the links of a route; false if one has been taken.
    fn take(&mut self, from: u32, to: u32, route: &Route) -> bool {
        self.sends[from as usize] -= 1;
        self.receives[to as usize] -= 1;
        let mut free = true;
        self.graph.for_each_link(Rank(from), route, &mut |LinkId(link)| {
            free &= !std::mem::replace(&mut self.taken[link as usize], true);
        });
        free
    }

    /// The shortest free route to a rank, or to the nearest one with a free port, taken.
    fn connect(&mut self, from: u32, to: Option<u32>) -> Option<Connection> {
        let full = |to: u32| self.receives[to as usize] == 0;
        if self.sends[from as usize] == 0 || to.is_some_and(full) {
            return None;
        }
        self.came.fill((NONE, NONE));
        self.queue.clear();
        self.queue.push_back(from);
        while let Some(at) = self.queue.pop_front() {
            for (LinkId(link), next) in self.graph.leaving(at) {
                let known = next == from || self.came[next as usize].0 != NONE;
                if known || self.taken[link as usize] {
                    continue;
                }
                self.came[next as usize] = (link as u32, at);
                if to.is_none_or(|to| to == next) && self.receives[next as usize] > 0 {
                    return Some(self.reached(from, next));
                }
                self.queue.push_back(next);
            }
        }
        None
    }

    fn reached(&mut self, from: u32, to: u32) -> Connection {
        let (mut at, mut links) = (to, Vec::new());
        while at != from {
            let (link, before) = self.came[at as usize];
            links.push(LinkId(link.into()));
            at = before;
        }
        links.reverse();
        let route = self.graph.route_over(Rank(from), &links).expect("bug: links without a route");
        self.take(from, to, &route);
        Connection { from, to, route, message: None }
    }

    /// Connects ranks that have free ports to the nearest others.
    fn fill(&mut self, connections: &mut Vec<Connection>) {
        for from in 0..self.graph.vertices() {
            while let Some(connection) = self.connect(from, None) {
                connections.push(connection);
            }
        }
    }
}
