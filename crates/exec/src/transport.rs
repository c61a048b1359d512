use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use topocoll_schedule::Sync;
use topocoll_topology::Rank;

use crate::{
    Action, Buffer, Endpoint, EndpointMessage, ExecError, Plan, Region, StepFault, Storage, Token,
};

/// Carries a rank's messages. A runtime implements it for [`Driver`].
///
/// Tags number the steps of the exchanges that two ranks have in common and the barriers between them,
/// without end: after 2^32 they begin again. Messages of the same tag, or of two exchanges, arrive in
/// the order sent.
pub trait Transport {
    /// Sends a message; its bytes are taken before the call returns. It blocks at most until they
    /// are.
    ///
    /// # Errors
    /// The reason, as text.
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String>;

    /// The next message that arrives, from any rank; none if none arrives within `patience`.
    ///
    /// # Errors
    /// The reason, as text.
    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String>;

    /// Receives a message from a rank straight into its place, without a copy: returns the number of
    /// its bytes, or none if it does not come within `patience`. A [`Driver`] calls it in the order of
    /// the receives and never calls [`arrival`](Self::arrival), if [`places`](Self::places) says so.
    /// A message of more bytes than `place` has is not received; its length is returned.
    ///
    /// # Errors
    /// The reason, as text.
    fn receive_into(
        &mut self,
        from: Rank,
        tag: u32,
        place: &mut [u8],
        patience: Duration,
    ) -> Result<Option<u64>, String> {
        let _ = (from, tag, place, patience);
        Err("this transport does not place messages".to_owned())
    }

    /// Whether [`receive_into`](Self::receive_into) receives all messages.
    fn places(&self) -> bool {
        false
    }

    /// Waits until all ranks of a plan call it, in at most `patience`, by a barrier that the transport
    /// has itself. `None`, unless it has one: a [`Driver`] with [`Sync::Barrier`] then sends empty
    /// messages instead. All ranks of a plan give the same answer. It returns although another rank
    /// has failed and does not call it.
    ///
    /// # Errors
    /// The reason, as text.
    fn barrier(&mut self, plan: &Plan, patience: Duration) -> Option<Result<(), String>> {
        let _ = (plan, patience);
        None
    }
}

/// A message that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its sender.
    pub from: Rank,
    /// Its tag.
    pub tag: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Drives one rank's exchanges over a transport, one after another, in the caller's thread.
///
/// A faster rank already sends for the next exchange while this one is still in the last: the driver
/// keeps such messages for it. The exchanges may be of several plans and subsets, as long as any two
/// ranks drive those that both take part in in the same order.
///
/// An exchange that fails is one of them. A rank that fails says so to the others by an empty message,
/// unless the transport [places](Transport::places) messages; then all go on with the next exchange,
/// and messages of the last one that are late are dropped.
///
/// With [`Sync::Barrier`] no rank begins a step before all have ended the last one. A barrier is an
/// empty message to and from each of log2(ranks) others, or the [transport's](Transport::barrier). Its
/// messages are waited for like all others: within `patience`, and not for a rank that has left.
#[derive(Debug)]
pub struct Driver<T> {
    transport: T,
    /// By rank of the machine, the first tag of the next exchange with it.
    next: Vec<u32>,
    /// Messages that came before they were waited for.
    held: VecDeque<Arrival>,
    has_failed: bool,
    sync: Sync,
}

impl<T: Transport> Driver<T> {
    /// A driver whose first exchange has tags from 0 on, and whose exchanges are free-running.
    pub fn new(transport: T) -> Self {
        let (next, held, sync) = (Vec::new(), VecDeque::new(), Sync::Free);
        Self { transport, next, held, has_failed: false, sync }
    }

    /// Sets the synchronization between steps of the next exchanges. All ranks of an exchange have the
    /// same; otherwise it fails.
    pub fn set_sync(&mut self, sync: Sync) {
        self.sync = sync;
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Drives an endpoint through its exchange, or through another one of the same block sizes if it
    /// is [done](Endpoint::is_done). Every message that is waited for must come within `patience`.
    ///
    /// # Errors
    /// Block sizes that are refused, and buffers that are too small; an error of the transport, with
    /// rank, step and peer; a message of another length or tag than the schedule's, or none in time; a
    /// rank that has gone on to a later exchange. Each stops the endpoint.
    pub fn drive(
        &mut self,
        endpoint: &mut Endpoint,
        memory: &mut impl Storage,
        patience: Duration,
    ) -> Result<(), ExecError> {
        if endpoint.is_done() {
            endpoint.again();
        }
        let plan = Arc::clone(endpoint.plan());
        let peers = || (0..plan.problem().ranks).map(|rank| plan.machine_rank(rank).index());
        let ranks = peers().max().map_or(0, |last| last + 1);
        self.next.resize(ranks.max(self.next.len()), 0);
        let outcome =
            endpoint.check(memory).and_then(|()| self.exchange(endpoint, memory, patience));
        if outcome.is_err() {
            endpoint.cancel();
            self.has_failed = true;
            if !self.transport.places() {
                self.leave(&plan);
            }
        }
        // Steps, a rank that leaves, and barriers; also when free, so that ranks that differ in it
        // fail in one exchange only.
        let tags = (2 * plan.tags()).max(1);
        peers().for_each(|peer| self.next[peer] = self.next[peer].wrapping_add(tags));
        self.held.retain(|held| behind(&self.next, held) >= 0);
        outcome
    }

    /// Tells the other ranks of a plan that this one has left the exchange.
    fn leave(&mut self, plan: &Plan) {
        let others = (0..plan.problem().ranks).filter(|&rank| rank != plan.rank().0);
        for to in others.map(|rank| plan.machine_rank(rank)) {
            // It may be gone itself.
            let _ = self.transport.send(to, self.next[to.index()].wrapping_add(plan.tags()), &[]);
        }
    }

    fn exchange(
        &mut self,
        endpoint: &mut Endpoint,
        memory: &mut impl Storage,
        patience: Duration,
    ) -> Result<(), ExecError> {
        let (mut posted, mut ready) = (VecDeque::new(), VecDeque::new());
        loop {
            let Some(action) = endpoint.poll_in_step()? else {
                if self.sync == Sync::Barrier {
                    self.barrier(endpoint, &mut posted, patience)?;
                }
                continue;
            };
            match action {
                Action::Copy(copy) => endpoint.copy(copy, memory),
                Action::Send(message) => {
                    let (to, tag, transport) =
                        (message.peer, self.tag(message), &mut self.transport);
                    let sent = memory.read(message.region, |bytes| transport.send(to, tag, bytes));
                    if let Err(reason) = sent {
                        return Err(endpoint.fail(message.token, reason));
                    }
                    endpoint.complete(message.token, message.region.bytes)?;
                }
                Action::Receive(message) => match self.kept(endpoint, message)? {
                    Some(arrival) => ready.push_back((message, arrival)),
                    None => posted.push_back(message),
                },
                Action::Wait if self.transport.places() => {
                    let message: EndpointMessage =
                        posted.pop_front().expect("bug: a rank that waits for nobody");
                    let (from, tag, transport) =
                        (message.peer, self.tag(message), &mut self.transport);
                    let received = memory.fill(message.region, |place| {
                        transport.receive_into(from, tag, place, patience)
                    });
                    match received {
                        Err(reason) => return Err(endpoint.fail(message.token, reason)),
                        Ok(Some(bytes)) => endpoint.complete(message.token, bytes)?,
                        Ok(None) => return Err(late(endpoint, message, patience)),
                    }
                }
                Action::Wait => {
                    let (message, arrival) = match ready.pop_front() {
                        Some(ready) => ready,
                        None => self.awaited(endpoint, &mut posted, patience)?,
                    };
                    endpoint.complete(message.token, arrival.bytes.len() as u64)?;
                    memory.write(message.region, &arrival.bytes);
                }
                Action::Done => {
                    let tags = endpoint.plan().tags();
                    let ours = |arrival: &&Arrival| self.step(endpoint, arrival) < i64::from(tags);
                    return self
                        .held
                        .iter()
                        .find(ours)
                        .map_or(Ok(()), |arrival| Err(unexpected(endpoint, arrival)));
                }
            }
        }
    }

    /// Waits until all ranks of the plan are at the begin of this step, where nothing is posted.
    fn barrier(
        &mut self,
        endpoint: &Endpoint,
        posted: &mut VecDeque<EndpointMessage>,
        patience: Duration,
    ) -> Result<(), ExecError> {
        let (plan, step) = (endpoint.plan(), endpoint.step());
        if let Some(ended) = self.transport.barrier(plan, patience) {
            return ended.map_err(|reason| endpoint.error(StepFault::Barrier { reason }));
        }
        // Tags after those of steps, and of ranks that leave.
        let (tag, region) =
            (plan.tags() + step, Region { buffer: Buffer::Work, offset: 0, bytes: 0 });
        let message = |peer| EndpointMessage { token: Token(0), peer, tag, region, staged: false };
        for (to, from) in plan.barrier_rounds() {
            let (to, from) = (message(to), message(from));
            let sent = self.transport.send(to.peer, self.tag(to), &[]);
            sent.map_err(|reason| endpoint.error(StepFault::Transport { peer: to.peer, reason }))?;
            let bytes = if self.transport.places() {
                let tag = self.tag(from);
                let received = self.transport.receive_into(from.peer, tag, &mut [], patience);
                let received = received.map_err(|reason| {
                    endpoint.error(StepFault::Transport { peer: from.peer, reason })
                })?;
                received.ok_or_else(|| late(endpoint, from, patience))?
            } else if let Some(arrival) = self.kept(endpoint, from)? {
                arrival.bytes.len() as u64
            } else {
                posted.push_back(from);
                self.awaited(endpoint, posted, patience)?.1.bytes.len() as u64
            };
            if bytes > 0 {
                let (peer, tag) = (from.peer, self.tag(from));
                return Err(endpoint.error(StepFault::Unexpected { peer, tag }));
            }
        }
        Ok(())
    }

    fn tag(&self, message: EndpointMessage) -> u32 {
        self.next[message.peer.index()].wrapping_add(message.tag)
    }

    /// The step of this exchange that a message belongs to, or the barrier before it: negative for one
    /// of an earlier exchange, and the number of steps or more for a later one.
    fn step(&self, endpoint: &Endpoint, arrival: &Arrival) -> i64 {
        let (step, tags) =
            (i64::from(behind(&self.next, arrival)), i64::from(endpoint.plan().tags()));
        match step {
            ..0 => step,
            _ if !endpoint.plan().includes(arrival.from) => tags + step,
            _ if tags < step && step < 2 * tags => step - tags,
            _ => step,
        }
    }

    /// The message of a receive, if it is there.
    fn kept(
        &mut self,
        endpoint: &Endpoint,
        message: EndpointMessage,
    ) -> Result<Option<Arrival>, ExecError> {
        let (peer, tag) = (message.peer, self.tag(message));
        let of_peer = |arrival: &Arrival| arrival.from == peer;
        if let Some(at) = self.held.iter().position(|held| of_peer(held) && held.tag == tag) {
            return Ok(self.held.remove(at));
        }
        let tags = i64::from(endpoint.plan().tags());
        let has_left = |held: &Arrival| of_peer(held) && self.step(endpoint, held) >= tags;
        if self.held.iter().any(has_left) {
            Err(endpoint.error(StepFault::Left { peer }))
        } else {
            Ok(None)
        }
    }

    /// A posted receive and its message, which arrives within `patience`.
    fn awaited(
        &mut self,
        endpoint: &Endpoint,
        posted: &mut VecDeque<EndpointMessage>,
        patience: Duration,
    ) -> Result<(EndpointMessage, Arrival), ExecError> {
        let first = *posted.front().expect("bug: a rank that waits for nobody");
        // None: a time that no clock reaches.
        let until = Instant::now().checked_add(patience);
        loop {
            let left =
                until.map_or(patience, |until| until.saturating_duration_since(Instant::now()));
            let arrival = match self.transport.arrival(left) {
                Err(reason) => {
                    return Err(endpoint.error(StepFault::Transport { peer: first.peer, reason }));
                }
                Ok(None) if left.is_zero() => return Err(late(endpoint, first, patience)),
                Ok(None) => continue,
                Ok(Some(arrival)) => arrival,
            };
            let fits = |message: &EndpointMessage| {
                (message.peer, self.tag(*message)) == (arrival.from, arrival.tag)
            };
            if let Some(message) = posted.iter().position(fits).and_then(|at| posted.remove(at)) {
                return Ok((message, arrival));
            }
            let (step, tags) = (self.step(endpoint, &arrival), endpoint.plan().tags());
            if step < 0 && (self.has_failed || arrival.bytes.is_empty()) {
                // Of an exchange that this rank or the sender has left.
            } else if step < i64::from(endpoint.step()) {
                return Err(unexpected(endpoint, &arrival));
            } else {
                let from = arrival.from;
                self.held.push_back(arrival);
                if step >= i64::from(tags) && posted.iter().any(|message| message.peer == from) {
                    return Err(endpoint.error(StepFault::Left { peer: from }));
                }
            }
            if left.is_zero() {
                return Err(late(endpoint, first, patience));
            }
        }
    }
}

/// How far a message's tag is behind the first one of the next exchange with its sender.
fn behind(next: &[u32], arrival: &Arrival) -> i32 {
    arrival.tag.wrapping_sub(next.get(arrival.from.index()).copied().unwrap_or(0)) as i32
}

fn unexpected(endpoint: &Endpoint, arrival: &Arrival) -> ExecError {
    endpoint.error(StepFault::Unexpected { peer: arrival.from, tag: arrival.tag })
}

fn late(endpoint: &Endpoint, message: EndpointMessage, within: Duration) -> ExecError {
    endpoint.error(StepFault::Deadline { peer: message.peer, within })
}
