mod regions;

use std::sync::Arc;

use topocoll_topology::Rank;

use crate::error::MOST_BYTES;
use crate::plan::Plan;
use crate::{
    Action, BlockSizes, Buffer, EndpointMessage, ExecError, MemoryCopy, PlanError, PlannedSizes,
    StepFault, Storage, Token,
};

/// The state machine of one rank's exchanges, one at a time. It does nothing itself: it returns the
/// next action, and a driver performs it.
///
/// [`poll`](Self::poll) until it waits, [`complete`](Self::complete) messages as they end, in any
/// order, and poll again. It owns no memory of the exchange: it can be dropped, cancelled or begun
/// again at any time, and the driver withdraws the outstanding messages. It allocates only when it
/// is made and when it first begins with planned sizes.
#[derive(Debug)]
pub struct Endpoint {
    plan: Arc<Plan>,
    block_sizes: BlockSizes,
    /// Why there is no exchange of such sizes.
    refusal: Option<ExecError>,
    /// By register, the size of the block that it holds, where sizes are planned.
    held: Vec<u64>,
    /// Exchanges begun, so that tokens of earlier ones are known as such.
    exchange: u32,
    step: u32,
    stage: Stage,
    /// The messages of the step, and how far they are.
    messages: Vec<(EndpointMessage, State)>,
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

impl Endpoint {
    /// An endpoint that begins an exchange of blocks of these sizes.
    #[must_use]
    pub fn new(plan: Arc<Plan>, sizes: impl Into<BlockSizes>) -> Self {
        let most = plan.most_outstanding() as usize;
        let mut endpoint = Self {
            plan,
            block_sizes: BlockSizes::Equal(0),
            refusal: None,
            held: Vec::new(),
            exchange: 0,
            step: 0,
            stage: Stage::Done,
            messages: Vec::with_capacity(most),
            arrived: Vec::with_capacity(most),
            outstanding: 0,
            reading: 0,
        };
        endpoint.begin(sizes);
        endpoint
    }

    /// Begins the next exchange, in any state of the previous one. Sizes that were planned for another
    /// plan, or of more bytes than are numbered, are refused by [`check_sizes`](Self::check_sizes),
    /// [`check`](Self::check) and [`poll`](Self::poll).
    pub fn begin(&mut self, sizes: impl Into<BlockSizes>) {
        self.block_sizes = sizes.into();
        self.exchange = self.exchange.wrapping_add(1);
        self.step = 0;
        self.outstanding = 0;
        self.reading = 0;
        self.messages.clear();
        self.arrived.clear();
        self.refusal = self.refused();
        self.stage = if self.refusal.is_some() { Stage::Stopped } else { Stage::Keep };
        if let (BlockSizes::Planned(planned), None) = (&self.block_sizes, &self.refusal) {
            planned.known(&self.plan).begin(&mut self.held);
        }
    }

    /// Begins the next exchange, in any state of the previous one, of the blocks whose bytes are in `row` by
    /// destination and in `column` by source. It uses the memory of the last call's sizes again, unless the caller
    /// keeps them. After an error the exchange is stopped.
    ///
    /// # Errors
    /// As [`PlannedSizes::of_rank`].
    pub fn begin_v(&mut self, row: &[u64], column: &[u64]) -> Result<(), PlanError> {
        self.cancel();
        let last = std::mem::replace(&mut self.block_sizes, BlockSizes::Equal(0));
        if let BlockSizes::Planned(mut sizes) = last
            && let Some(own) = Arc::get_mut(&mut sizes).filter(|own| own.serves_only(&self.plan))
        {
            own.plan_rank_again(row, column)?;
            self.begin(BlockSizes::Planned(sizes));
            return Ok(());
        }
        let sizes = PlannedSizes::of_rank(&self.plan, row, column)?;
        self.begin(BlockSizes::Planned(Arc::new(sizes)));
        Ok(())
    }

    /// Begins another exchange of the same block sizes.
    pub(crate) fn again(&mut self) {
        self.begin(self.block_sizes.clone());
    }

    /// Checks the sizes that the exchange was begun with.
    ///
    /// # Errors
    /// [`ExecError::OtherPlan`] or [`ExecError::TooLarge`].
    pub fn check_sizes(&self) -> Result<(), ExecError> {
        self.refusal.clone().map_or(Ok(()), Err)
    }

    fn refused(&self) -> Option<ExecError> {
        let rank = self.rank();
        let block_bytes = match &self.block_sizes {
            BlockSizes::Planned(planned) => {
                return (!planned.serves(&self.plan)).then_some(ExecError::OtherPlan { rank });
            }
            BlockSizes::Equal(block_bytes) => u128::from(*block_bytes),
        };
        // No message has more blocks than there are registers.
        let registers = self.plan.origin.len() as u128;
        if block_bytes * registers * u128::from(2 + self.plan.most_messages) <= MOST_BYTES.into() {
            return None;
        }
        let mut large = self.memories().into_iter().filter(|memory| memory.2 > MOST_BYTES.into());
        large.next().map(|(_, buffer, bytes)| ExecError::TooLarge { rank, buffer, bytes })
    }

    /// The memories of the exchange, with their names and bytes.
    fn memories(&self) -> [(Buffer, &'static str, u128); 3] {
        [
            (Buffer::Input, "input", self.input_bytes()),
            (Buffer::Output, "output", self.output_bytes()),
            (Buffer::Work, "work", self.workspace_bytes()),
        ]
    }

    /// Whether the exchange is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Bytes of the input.
    #[must_use]
    pub fn input_bytes(&self) -> u128 {
        self.plan.input_bytes(self.block_sizes.clone())
    }

    /// Bytes of the output.
    #[must_use]
    pub fn output_bytes(&self) -> u128 {
        self.plan.output_bytes(self.block_sizes.clone())
    }

    /// Bytes of the workspace.
    #[must_use]
    pub fn workspace_bytes(&self) -> u128 {
        self.plan.workspace_bytes(self.block_sizes.clone())
    }

    /// The step that the rank is in.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.step
    }

    /// The rank as the machine numbers it.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.plan.own_rank()
    }

    /// The error of a fault in this step.
    pub(crate) fn error(&self, fault: StepFault) -> ExecError {
        ExecError::InStep { rank: self.rank(), step: self.step, fault }
    }

    /// Checks the sizes of the memories, so that no action names a region outside them.
    ///
    /// # Errors
    /// As [`check_sizes`](Self::check_sizes); [`ExecError::Buffer`], or [`ExecError::Block`] for
    /// blocks of another size.
    pub fn check(&self, memory: &impl Storage) -> Result<(), ExecError> {
        self.check_sizes()?;
        let rank = self.rank();
        for (buffer, name, needed) in self.memories() {
            if let Some(bytes) = memory.block_bytes(buffer) {
                match self.block_sizes {
                    BlockSizes::Equal(needed) if needed == bytes => {}
                    BlockSizes::Equal(needed) => {
                        return Err(ExecError::Block { rank, buffer: name, bytes, needed });
                    }
                    BlockSizes::Planned(_) => {
                        return Err(ExecError::EqualBlocks { rank, buffer: name, bytes });
                    }
                }
            }
            let bytes = memory.bytes(buffer);
            if bytes < needed {
                return Err(ExecError::Buffer { rank, buffer: name, bytes, needed });
            }
        }
        Ok(())
    }

    /// The next action.
    ///
    /// # Errors
    /// As [`check_sizes`](Self::check_sizes); [`StepFault::Stopped`] after an error or
    /// [`cancel`](Self::cancel).
    pub fn poll(&mut self) -> Result<Action, ExecError> {
        loop {
            if let Some(action) = self.poll_in_step()? {
                return Ok(action);
            }
        }
    }

    /// As [`poll`](Self::poll), for drivers that keep ranks in step: `None` once between two steps,
    /// when this rank has ended all messages of one and is at the begin of the next, which
    /// [`step`](Self::step) returns. All ranks of a schedule have as many steps, also those without
    /// messages in some.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn poll_in_step(&mut self) -> Result<Option<Action>, ExecError> {
        loop {
            match self.stage {
                Stage::Keep => {
                    self.enter(0);
                    if !self.plan.kept.is_empty()
                        || self.plan.aside.as_ref().is_some_and(|aside| !aside.is_empty())
                    {
                        return Ok(Some(Action::Copy(MemoryCopy::Keep)));
                    }
                }
                Stage::Local => {
                    self.stage = Stage::Pack(self.first_send());
                    if self.plan.moves(self.step).is_some() {
                        return Ok(Some(Action::Copy(MemoryCopy::Local)));
                    }
                }
                Stage::Pack(send) if send == self.first_receive() => {
                    self.stage = Stage::Receive(send);
                }
                Stage::Pack(send) => {
                    self.stage = Stage::Pack(send + 1);
                    let message = self.message(send);
                    if message.staged {
                        return Ok(Some(Action::Copy(MemoryCopy::Pack(message))));
                    }
                }
                Stage::Receive(receive) if receive == self.plan.receives(self.step).end => {
                    self.stage = Stage::Send(self.first_send());
                }
                Stage::Receive(receive) => {
                    self.stage = Stage::Receive(receive + 1);
                    if self.is_silent(receive) {
                        continue;
                    }
                    self.start(receive);
                    return Ok(Some(Action::Receive(self.message(receive))));
                }
                Stage::Send(send) if send == self.first_receive() => self.stage = Stage::Settle,
                Stage::Send(send) => {
                    self.stage = Stage::Send(send + 1);
                    if self.is_silent(send) {
                        continue;
                    }
                    self.start(send);
                    let message = self.message(send);
                    self.reading += u32::from(Self::reads(message));
                    return Ok(Some(Action::Send(message)));
                }
                Stage::Settle => {
                    if self.reading == 0
                        && let Some(receive) = self.arrived.pop()
                    {
                        let message = self.message(receive);
                        return Ok(Some(Action::Copy(MemoryCopy::Unpack(message))));
                    }
                    if self.outstanding > 0 {
                        return Ok(Some(Action::Wait));
                    }
                    self.enter(self.step + 1);
                    if self.stage != Stage::Done {
                        return Ok(None);
                    }
                }
                Stage::Done => return Ok(Some(Action::Done)),
                Stage::Stopped => {
                    let stopped = self.error(StepFault::Stopped);
                    return Err(self.refusal.clone().unwrap_or(stopped));
                }
            }
        }
    }

    /// Records that a message of `bytes` has been sent or received.
    ///
    /// # Errors
    /// [`StepFault::Length`] for another length than the message's: a short read; then the exchange
    /// is stopped. [`StepFault::Token`] for a message that is not outstanding; the exchange goes
    /// on.
    pub fn complete(&mut self, token: Token, bytes: u64) -> Result<(), ExecError> {
        let number = self.outstanding_message(token)?;
        let message = self.message(number);
        if bytes != message.region.bytes {
            self.stage = Stage::Stopped;
            let (peer, expected) = (message.peer, message.region.bytes);
            return Err(self.error(StepFault::Length { peer, bytes, expected }));
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

    /// Records that a message has failed, and stops the exchange. Returns the error to report.
    pub fn fail(&mut self, token: Token, reason: impl Into<String>) -> ExecError {
        match self.outstanding_message(token) {
            Ok(number) => {
                self.stage = Stage::Stopped;
                let peer = self.message(number).peer;
                self.error(StepFault::Transport { peer, reason: reason.into() })
            }
            Err(error) => error,
        }
    }

    /// Stops the exchange. The driver withdraws the [`outstanding`](Self::outstanding) messages;
    /// then the memories are free.
    pub fn cancel(&mut self) {
        self.stage = Stage::Stopped;
    }

    /// The messages that have been started and not completed, sends first.
    pub fn outstanding(&self) -> impl Iterator<Item = EndpointMessage> + '_ {
        let open = self.messages.iter().filter(|(_, state)| *state == State::Outstanding);
        open.map(|(message, _)| *message)
    }

    /// Whether both ends skip a message, because they know that it has no bytes.
    fn is_silent(&self, number: u32) -> bool {
        matches!(self.block_sizes, BlockSizes::Planned(_)) && self.message(number).region.bytes == 0
    }

    /// Whether a send reads memory that a receive may write.
    fn reads(message: EndpointMessage) -> bool {
        !message.staged && message.region.buffer != Buffer::Input
    }

    /// Goes to a step and gives its staged messages their places.
    fn enter(&mut self, step: u32) {
        if let BlockSizes::Planned(planned) = &self.block_sizes
            && step > 0
        {
            planned.known(&self.plan).receive(step - 1, &mut self.held);
        }
        self.step = step;
        self.messages.clear();
        if step == self.plan.tags() {
            self.stage = Stage::Done;
            return;
        }
        if let BlockSizes::Planned(planned) = &self.block_sizes {
            planned.known(&self.plan).copied(step, &mut self.held);
        }
        let mut offset = self.register_bytes();
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
    fn message(&self, number: u32) -> EndpointMessage {
        self.messages[(number - self.first_send()) as usize].0
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
        known.then_some(number).ok_or_else(|| self.error(StepFault::Token { token: token.0 }))
    }

    fn first_send(&self) -> u32 {
        self.plan.step_messages(self.step).start
    }

    fn first_receive(&self) -> u32 {
        self.plan.receives(self.step).start
    }
}

/// Begins an exchange of all ranks.
pub(crate) fn begin_all(
    endpoints: &mut [Endpoint],
    sizes: impl Into<BlockSizes>,
) -> Result<(), ExecError> {
    let sizes = sizes.into();
    endpoints.iter_mut().try_for_each(|endpoint| {
        endpoint.begin(sizes.clone());
        endpoint.check_sizes()
    })
}
