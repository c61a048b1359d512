use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Action, ExecError, Memory, Message, Plan, RankMachine, Storage};

/// All ranks in one thread, in an order drawn from a seed: the same seed, the same order.
///
/// At each turn one of all that may happen happens: a rank does its next action, a message moves
/// straight from its sender's region to its receiver's, or a sender learns that it has. So sends
/// are read as late, and receives written as early, as any transport might.
#[derive(Debug)]
pub struct RoundRobin {
    machines: Vec<RankMachine>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// A rank goes on.
    Poll(usize),
    /// The i-th send under way arrives at the j-th receive.
    Arrive(usize, usize),
    /// A sender learns that the i-th delivered message has left.
    Sent(usize),
}

impl RoundRobin {
    /// The driver of these plans, that of rank i at i.
    #[must_use]
    pub fn new(plans: &[Arc<Plan>]) -> Self {
        let machine = |plan: &Arc<Plan>| RankMachine::new(Arc::clone(plan), 0);
        Self { machines: plans.iter().map(machine).collect() }
    }

    /// One exchange: rank i's blocks are the i-th part of `input`, and become that of `output`.
    ///
    /// # Errors
    /// Buffers that are too small, or a schedule whose ends do not agree.
    pub fn exchange(
        &mut self,
        block_bytes: u64,
        input: &[u8],
        output: &mut [u8],
        seed: u64,
    ) -> Result<(), ExecError> {
        let each = |bytes: usize| (bytes / self.machines.len().max(1)).max(1);
        let (per_input, per_output) = (each(input.len()), each(output.len()));
        let mut works: Vec<Vec<u8>> = (self.machines.iter())
            .map(|machine| vec![0xa5; machine.plan().workspace_bytes(block_bytes) as usize])
            .collect();
        let inputs = input.chunks(per_input).chain(std::iter::repeat(&[][..]));
        let none = || -> &mut [u8] { &mut [] };
        let outputs = output.chunks_mut(per_output).chain(std::iter::repeat_with(none));
        let memories = inputs.zip(outputs).zip(&mut works);
        let mut memories: Vec<_> =
            memories.map(|((input, output), work)| Memory { input, output, work }).collect();
        self.exchange_in(block_bytes, &mut memories, seed)
    }

    /// One exchange between memories of any kind, that of rank i at i.
    ///
    /// # Errors
    /// Memories that do not fit, or a schedule whose ends do not agree.
    ///
    /// # Panics
    /// Not one memory for each plan.
    pub fn exchange_in<S: Storage>(
        &mut self,
        block_bytes: u64,
        memories: &mut [S],
        seed: u64,
    ) -> Result<(), ExecError> {
        assert_eq!(memories.len(), self.machines.len(), "a memory for every rank");
        let mut random = fastrand::Rng::with_seed(seed);
        for (machine, memory) in self.machines.iter_mut().zip(&*memories) {
            machine.begin(block_bytes);
            machine.check(memory)?;
        }
        // In the order of their starts.
        let (mut sends, mut receives) = (VecDeque::new(), Vec::new());
        let mut delivered: Vec<(usize, Message)> = Vec::new();
        let mut awake: Vec<usize> = (0..self.machines.len()).collect();
        loop {
            let mut events: Vec<Event> = awake.iter().map(|&rank| Event::Poll(rank)).collect();
            events.extend((0..delivered.len()).map(Event::Sent));
            events.extend(matches(&self.machines, &sends, &receives));
            if events.is_empty() {
                break;
            }
            match events[random.usize(..events.len())] {
                Event::Poll(rank) => match self.machines[rank].poll()? {
                    Action::Copy(copy) => self.machines[rank].copy(copy, &mut memories[rank]),
                    Action::Send(message) => sends.push_back((rank, message)),
                    Action::Receive(message) => receives.push((rank, message)),
                    Action::Wait | Action::Done => awake.retain(|&other| other != rank),
                },
                Event::Arrive(i, j) => {
                    let (from, sent) = sends.remove(i).expect("it matched");
                    let (to, received) = receives.remove(j);
                    let bytes = memories[from].read(sent.region, <[u8]>::to_vec);
                    // A message of another length is the receiver's error, raised below.
                    if bytes.len() as u64 == received.region.bytes {
                        memories[to].write(received.region, &bytes);
                    }
                    self.machines[to].complete(received.token, bytes.len() as u64)?;
                    wake(&mut awake, to);
                    delivered.push((from, sent));
                }
                Event::Sent(i) => {
                    let (from, sent) = delivered.remove(i);
                    self.machines[from].complete(sent.token, sent.region.bytes)?;
                    wake(&mut awake, from);
                }
            }
        }
        match self
            .machines
            .iter()
            .find_map(|machine| Some((machine, machine.outstanding().next()?)))
        {
            None => Ok(()),
            Some((machine, Message { peer, .. })) => {
                Err(ExecError::Stalled { rank: machine.rank(), step: machine.step(), peer })
            }
        }
    }
}

fn wake(awake: &mut Vec<usize>, rank: usize) {
    if !awake.contains(&rank) {
        awake.push(rank);
    }
}

/// Sends that may arrive, each at the first receive for it; those of the same ends and tag keep
/// their order.
fn matches(
    machines: &[RankMachine],
    sends: &VecDeque<(usize, Message)>,
    receives: &[(usize, Message)],
) -> Vec<Event> {
    let mut taken = Vec::new();
    let mut found = Vec::new();
    for (i, &(from, sent)) in sends.iter().enumerate() {
        let key = (machines[from].rank(), sent.peer, sent.tag);
        if taken.contains(&key) {
            continue;
        }
        taken.push(key);
        let fits = |&(to, received): &(usize, Message)| {
            (received.peer, machines[to].rank(), received.tag) == key
        };
        found.extend(receives.iter().position(fits).map(|j| Event::Arrive(i, j)));
    }
    found
}
