use std::sync::Arc;

use topocoll_topology::Rank;

use crate::memory::Places;
use crate::plan::{NONE, Plan};
use crate::{Buffer, ExecError, Region, Storage};

/// Stands for a message that is outstanding: of one machine, one exchange and one message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(pub u64);

/// A message to be sent or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// To be given to [`RankMachine::complete`].
    pub token: Token,
    /// The other end.
    pub peer: Rank,
    /// The same at both ends: the step.
    pub tag: u32,
    /// What is sent, or where it is received.
    pub region: Region,
    /// Whether the region is staging memory, filled by a [`Copy::Pack`] before or read by a
    /// [`Copy::Unpack`] after. A driver may keep such bytes elsewhere.
    pub staged: bool,
}

/// Bytes to be copied within a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copy {
    /// The blocks that the rank keeps, from input to output; in place, those that are set aside.
    Keep,
    /// Local copies of a step that rename nothing.
    Local,
    /// The pieces of a message that will be sent, into its region.
    Pack(Message),
    /// The pieces of a message that has arrived, out of its region.
    Unpack(Message),
}

/// What a rank does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Copies; done when [`poll`](RankMachine::poll) is called again.
    Copy(Copy),
    /// Starts sending. The region stays as it is until the token is given to `complete`.
    Send(Message),
    /// Starts receiving. The region belongs to the message until the token is given to `complete`.
    Receive(Message),
    /// Nothing before a message completes.
    Wait,
    /// The output is complete, and nothing is outstanding.
    Done,
}

/// The state machine of one rank's exchanges, one at a time: it does nothing itself, and says what
/// to do next.
///
/// [`poll`](Self::poll) until it waits, [`complete`](Self::complete) messages as they end, in any
/// order, and poll again. It owns no memory of the exchange: it can be dropped, cancelled or begun
/// anew at any time, and what was outstanding is the driver's to withdraw. It allocates when it is
/// made and never afterwards.
#[derive(Debug)]
pub struct RankMachine {
    plan: Arc<Plan>,
    block_bytes: u64,
    /// Exchanges begun, so that tokens of earlier ones are known as such.
    exchange: u32,
    step: u32,
    stage: Stage,
    /// The messages of the step, and how far they are.
    messages: Vec<(Message, State)>,
    /// Messages of the step that have arrived in staging memory, as a stack.
    arrived: Vec<u32>,
    outstanding: u32,
    /// Sends outstanding from registers that are no input.
    reading: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Keep,
    Local,
    Pack(u32),
    Receive(u32),
    Send(u32),
    Settle,
    Done,
    Stopped,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Outstanding,
    Complete,
}

impl RankMachine {
    /// A machine that begins an exchange of blocks of `block_bytes`.
    #[must_use]
    pub fn new(plan: Arc<Plan>, block_bytes: u64) -> Self {
        let most = plan.most_outstanding() as usize;
        let mut machine = Self {
            plan,
            block_bytes,
            exchange: 0,
            step: 0,
            stage: Stage::Done,
            messages: Vec::with_capacity(most),
            arrived: Vec::with_capacity(most),
            outstanding: 0,
            reading: 0,
        };
        machine.begin(block_bytes);
        machine
    }

    /// Begins the next exchange, whatever became of the one before.
    pub fn begin(&mut self, block_bytes: u64) {
        self.block_bytes = block_bytes;
        self.exchange = self.exchange.wrapping_add(1);
        self.step = 0;
        self.outstanding = 0;
        self.reading = 0;
        self.messages.clear();
        self.arrived.clear();
        self.stage = Stage::Keep;
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Bytes of a block of this exchange.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The step that the rank is in.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.step
    }

    /// The rank as the caller numbers it.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.plan.member(self.plan.rank.0)
    }

    /// Checks the sizes of the memories, so that no action names a region outside them.
    ///
    /// # Errors
    /// [`ExecError::Buffer`], or [`ExecError::Block`] for blocks of another size.
    pub fn check(&self, memory: &impl Storage) -> Result<(), ExecError> {
        let (plan, rank, b) = (&self.plan, self.rank(), self.block_bytes);
        for (buffer, name, needed) in [
            (Buffer::Input, "input", plan.input_bytes(b)),
            (Buffer::Output, "output", plan.output_bytes(b)),
            (Buffer::Work, "work", plan.workspace_bytes(b)),
        ] {
            if let Some(bytes) = memory.block_bytes(buffer).filter(|&bytes| bytes != b) {
                return Err(ExecError::Block { rank, buffer: name, bytes, needed: b });
            }
            let bytes = memory.bytes(buffer);
            if bytes < needed {
                return Err(ExecError::Buffer { rank, buffer: name, bytes, needed });
            }
        }
        Ok(())
    }

    /// Whether the step is over and the next has not begun: a good moment to let others go first.
    #[must_use]
    pub fn is_between_steps(&self) -> bool {
        self.stage == Stage::Settle && self.outstanding == 0 && self.arrived.is_empty()
    }

    /// What to do next.
    ///
    /// # Errors
    /// [`ExecError::Stopped`] after an error or [`cancel`](Self::cancel).
    pub fn poll(&mut self) -> Result<Action, ExecError> {
        loop {
            match self.stage {
                Stage::Keep => {
                    self.enter(0);
                    if !self.plan.kept.is_empty()
                        || self.plan.aside.as_ref().is_some_and(|aside| !aside.is_empty())
                    {
                        return Ok(Action::Copy(Copy::Keep));
                    }
                }
                Stage::Local => {
                    self.stage = Stage::Pack(self.first_send());
                    if self.moves().is_some() {
                        return Ok(Action::Copy(Copy::Local));
                    }
                }
                Stage::Pack(send) if send == self.first_receive() => {
                    self.stage = Stage::Receive(send);
                }
                Stage::Pack(send) => {
                    self.stage = Stage::Pack(send + 1);
                    let message = self.message(send);
                    if message.staged {
                        return Ok(Action::Copy(Copy::Pack(message)));
                    }
                }
                Stage::Receive(receive) if receive == self.end() => {
                    self.stage = Stage::Send(self.first_send());
                }
                Stage::Receive(receive) => {
                    self.stage = Stage::Receive(receive + 1);
                    self.start(receive);
                    return Ok(Action::Receive(self.message(receive)));
                }
                Stage::Send(send) if send == self.first_receive() => self.stage = Stage::Settle,
                Stage::Send(send) => {
                    self.stage = Stage::Send(send + 1);
                    self.start(send);
                    let message = self.message(send);
                    self.reading += u32::from(Self::reads(message));
                    return Ok(Action::Send(message));
                }
                Stage::Settle => {
                    if self.reading == 0
                        && let Some(receive) = self.arrived.pop()
                    {
                        return Ok(Action::Copy(Copy::Unpack(self.message(receive))));
                    }
                    if self.outstanding > 0 {
                        return Ok(Action::Wait);
                    }
                    self.enter(self.step + 1);
                }
                Stage::Done => return Ok(Action::Done),
                Stage::Stopped => {
                    return Err(ExecError::Stopped { rank: self.rank(), step: self.step });
                }
            }
        }
    }

    /// Says that a message has been sent, or received, whole: `bytes` of it.
    ///
    /// # Errors
    /// [`ExecError::Length`] for another length than the message's: a short read; then the exchange
    /// is stopped. [`ExecError::Token`] for a message that is not outstanding; the exchange goes
    /// on.
    pub fn complete(&mut self, token: Token, bytes: u64) -> Result<(), ExecError> {
        let number = self.outstanding_message(token)?;
        let message = self.message(number);
        if bytes != message.region.bytes {
            self.stage = Stage::Stopped;
            let (rank, step, expected) = (self.rank(), self.step, message.region.bytes);
            return Err(ExecError::Length { rank, step, peer: message.peer, bytes, expected });
        }
        let first = self.first_send();
        self.messages[(number - first) as usize].1 = State::Complete;
        self.outstanding -= 1;
        if number < self.first_receive() {
            self.reading -= u32::from(Self::reads(message));
        } else if message.staged {
            self.arrived.push(number);
        }
        Ok(())
    }

    /// Says that a message has failed, and stops the exchange: the error to report.
    pub fn fail(&mut self, token: Token, reason: impl Into<String>) -> ExecError {
        match self.outstanding_message(token) {
            Ok(number) => {
                self.stage = Stage::Stopped;
                let (rank, step, peer) = (self.rank(), self.step, self.message(number).peer);
                ExecError::Transport { rank, step, peer, reason: reason.into() }
            }
            Err(error) => error,
        }
    }

    /// Stops the exchange. What [`outstanding`](Self::outstanding) lists is the driver's to
    /// withdraw, and the memories are free when it has.
    pub fn cancel(&mut self) {
        self.stage = Stage::Stopped;
    }

    /// The messages that have been started and not completed, sends first.
    pub fn outstanding(&self) -> impl Iterator<Item = Message> + '_ {
        let open = self.messages.iter().filter(|(_, state)| *state == State::Outstanding);
        open.map(|(message, _)| *message)
    }

    /// Does a copy in memory.
    ///
    /// # Panics
    /// Memories that [`check`](Self::check) refuses.
    pub fn copy(&self, copy: Copy, memory: &mut impl Storage) {
        self.pieces(copy, |from, to| memory.copy(from, to));
    }

    /// Calls `each` with the pieces of a copy, from where to where, to be done in this order: for
    /// who copies by other means.
    pub fn pieces(&self, copy: Copy, mut each: impl FnMut(Region, Region)) {
        let (places, step, b) = (self.places(), self.step, self.block_bytes);
        let block = |register, time| places.region(register, 0, b, time);
        let staged = |offset, bytes| Region { buffer: Buffer::Work, offset, bytes };
        match copy {
            Copy::Keep => {
                for &register in &self.plan.kept {
                    each(block(register, 0), block(register, NONE));
                }
                for (i, &aside) in (0..).zip(self.plan.aside.iter().flatten()) {
                    let (ranks, place) = (self.plan.problem.ranks, self.plan.place(aside));
                    each(block(place, NONE), block(ranks + self.plan.extra + i, NONE));
                }
            }
            Copy::Local => {
                let Some(moves) = self.moves() else { return };
                if !moves.scratch {
                    for &(from, to) in &moves.registers {
                        each(block(from, 2 * step), block(to, NONE));
                    }
                    return;
                }
                let scratch = |i: usize| staged(self.registers() + i as u64 * b, b);
                for (i, &(from, _)) in moves.registers.iter().enumerate() {
                    each(block(from, 2 * step), scratch(i));
                }
                for (i, &(_, to)) in moves.registers.iter().enumerate() {
                    each(scratch(i), block(to, NONE));
                }
            }
            Copy::Pack(message) => {
                let mut at = message.region.offset;
                places.regions(self.number(message.token), step, 2 * step + 1, |piece| {
                    each(piece, staged(at, piece.bytes));
                    at += piece.bytes;
                });
            }
            Copy::Unpack(message) => {
                let mut at = message.region.offset;
                places.regions(self.number(message.token), step, NONE, |piece| {
                    each(staged(at, piece.bytes), piece);
                    at += piece.bytes;
                });
            }
        }
    }

    fn places(&self) -> Places<'_> {
        Places { plan: &self.plan, block_bytes: self.block_bytes }
    }

    fn registers(&self) -> u64 {
        self.plan.register_bytes(self.block_bytes) as u64
    }

    fn moves(&self) -> Option<&crate::plan::Moves> {
        let at = self.plan.moves.binary_search_by_key(&self.step, |moves| moves.step);
        at.ok().map(|i| &self.plan.moves[i])
    }

    /// Whether a send reads memory that a receive may write.
    fn reads(message: Message) -> bool {
        !message.staged && message.region.buffer != Buffer::Input
    }

    /// Goes to a step and gives its staged messages their places.
    fn enter(&mut self, step: u32) {
        self.step = step;
        self.messages.clear();
        if step == self.plan.tags() {
            self.stage = Stage::Done;
            return;
        }
        let mut offset = self.registers();
        for number in self.plan.step_messages(step) {
            let message = self.locate(number, offset);
            if message.staged {
                offset += message.region.bytes;
            }
            self.messages.push((message, State::Idle));
        }
        self.stage = Stage::Local;
    }

    fn start(&mut self, number: u32) {
        let first = self.first_send();
        self.messages[(number - first) as usize].1 = State::Outstanding;
        self.outstanding += 1;
    }

    /// A message of this step.
    fn message(&self, number: u32) -> Message {
        self.messages[(number - self.first_send()) as usize].0
    }

    /// A message of this step, staged at `offset` of the workspace if it is.
    fn locate(&self, number: u32, offset: u64) -> Message {
        let plan = &*self.plan;
        let row = plan.messages[number as usize];
        let staged = row.slots.is_staged();
        let region = if staged {
            let bytes = plan.message_bytes(number, self.block_bytes);
            Region { buffer: Buffer::Work, offset, bytes }
        } else {
            let sends = number < self.first_receive();
            let time = if sends { 2 * self.step + 1 } else { NONE };
            let mut whole: Option<Region> = None;
            if let Ok(slot) = row.slots.number() {
                let register = plan.names(self.step)[slot as usize];
                whole = Some(self.places().region(register, 0, self.block_bytes, time));
            } else {
                self.places().regions(number, self.step, time, |region| whole = Some(region));
            }
            whole.expect("bug: a message of no slots")
        };
        Message {
            token: Token(u64::from(self.exchange) << 32 | u64::from(number)),
            peer: plan.member(row.peer),
            tag: self.step,
            region,
            staged,
        }
    }

    fn number(&self, token: Token) -> u32 {
        token.0 as u32
    }

    /// The message that a token stands for, if it is outstanding.
    fn outstanding_message(&self, token: Token) -> Result<u32, ExecError> {
        let number = self.number(token);
        let known = (token.0 >> 32) as u32 == self.exchange
            && !matches!(self.stage, Stage::Done | Stage::Stopped)
            && number
                .checked_sub(self.first_send())
                .and_then(|i| self.messages.get(i as usize))
                .is_some_and(|(_, state)| *state == State::Outstanding);
        let (rank, step) = (self.rank(), self.step);
        known.then_some(number).ok_or(ExecError::Token { rank, step, token: token.0 })
    }

    fn first_send(&self) -> u32 {
        self.plan.steps.get(self.step as usize).map_or(0, |row| row.first_send)
    }

    fn first_receive(&self) -> u32 {
        self.plan.steps[self.step as usize].first_receive
    }

    fn end(&self) -> u32 {
        self.first_send() + self.messages.len() as u32
    }
}
