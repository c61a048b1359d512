use std::collections::VecDeque;
use std::sync::Arc;

use crate::endpoint::begin_all;
use crate::{
    Action, BlockSizes, Endpoint, EndpointMessage, ExecError, Memory, Plan, StepFault, Storage,
};

/// All ranks in one thread, in an order drawn from a seed: the same seed, the same order.
///
/// At each turn one possible event happens: a rank performs its next action, a message moves from
/// its sender's region to its receiver's, or a sender learns that its message has left. So sends
/// are read as late, and receives written as early, as with any transport.
#[derive(Debug)]
pub struct SeededDriver {
    endpoints: Vec<Endpoint>,
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

impl SeededDriver {
    /// The driver of these plans, that of rank i at i.
    #[must_use]
    pub fn new(plans: &[Arc<Plan>]) -> Self {
        let endpoint = |plan: &Arc<Plan>| Endpoint::new(Arc::clone(plan), 0u64);
        Self { endpoints: plans.iter().map(endpoint).collect() }
    }

    /// One exchange: rank i's blocks follow those of rank i - 1 in `input`, and become the same of
    /// `output`.
    ///
    /// # Errors
    /// Buffers that are too small, sizes that were planned for other plans, or a schedule whose ends
    /// do not agree.
    pub fn exchange(
        &mut self,
        sizes: impl Into<BlockSizes>,
        mut input: &[u8],
        mut output: &mut [u8],
        seed: u64,
    ) -> Result<(), ExecError> {
        begin_all(&mut self.endpoints, sizes)?;
        // Buffers that are too small are refused before a workspace is allocated.
        let needed = |bytes: fn(&Endpoint) -> u128| self.endpoints.iter().map(bytes).sum::<u128>();
        let fit = input.len() as u128 >= needed(Endpoint::input_bytes)
            && output.len() as u128 >= needed(Endpoint::output_bytes);
        let workspace = |endpoint: &Endpoint| match fit {
            true => vec![0xa5; endpoint.workspace_bytes() as usize],
            false => Vec::new(),
        };
        let mut works: Vec<Vec<u8>> = self.endpoints.iter().map(workspace).collect();
        let mut memories = Vec::with_capacity(works.len());
        for (endpoint, work) in self.endpoints.iter().zip(&mut works) {
            // The check refuses a short buffer.
            let (own, rest) = input.split_at(input.len().min(endpoint.input_bytes() as usize));
            let bytes = output.len().min(endpoint.output_bytes() as usize);
            let (own_output, rest_output) = output.split_at_mut(bytes);
            (input, output) = (rest, rest_output);
            memories.push(Memory { input: own, output: own_output, work });
        }
        self.run(&mut memories, seed)
    }

    /// One exchange between memories of any kind, that of rank i at i.
    ///
    /// # Errors
    /// Memories that do not fit, sizes that were planned for other plans, or a schedule whose ends do
    /// not agree.
    ///
    /// # Panics
    /// Not one memory for each plan.
    pub fn exchange_in<S: Storage>(
        &mut self,
        sizes: impl Into<BlockSizes>,
        memories: &mut [S],
        seed: u64,
    ) -> Result<(), ExecError> {
        assert_eq!(memories.len(), self.endpoints.len(), "a memory for every rank");
        begin_all(&mut self.endpoints, sizes)?;
        self.run(memories, seed)
    }

    fn run<S: Storage>(&mut self, memories: &mut [S], seed: u64) -> Result<(), ExecError> {
        let mut random = fastrand::Rng::with_seed(seed);
        for (endpoint, memory) in self.endpoints.iter().zip(&*memories) {
            endpoint.check(memory)?;
        }
        // In the order of their starts.
        let (mut sends, mut receives) = (VecDeque::new(), Vec::new());
        let mut delivered: Vec<(usize, EndpointMessage)> = Vec::new();
        let mut awake: Vec<usize> = (0..self.endpoints.len()).collect();
        loop {
            let mut events: Vec<Event> = awake.iter().map(|&rank| Event::Poll(rank)).collect();
            events.extend((0..delivered.len()).map(Event::Sent));
            events.extend(matches(&self.endpoints, &sends, &receives));
            if events.is_empty() {
                break;
            }
            match events[random.usize(..events.len())] {
                Event::Poll(rank) => match self.endpoints[rank].poll()? {
                    Action::Copy(copy) => self.endpoints[rank].copy(copy, &mut memories[rank]),
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
                    self.endpoints[to].complete(received.token, bytes.len() as u64)?;
                    wake(&mut awake, to);
                    delivered.push((from, sent));
                }
                Event::Sent(i) => {
                    let (from, sent) = delivered.remove(i);
                    self.endpoints[from].complete(sent.token, sent.region.bytes)?;
                    wake(&mut awake, from);
                }
            }
        }
        let stalled = self.endpoints.iter().find_map(|endpoint| {
            let peer = endpoint.outstanding().next()?.peer;
            Some(endpoint.error(StepFault::Stalled { peer }))
        });
        stalled.map_or(Ok(()), Err)
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
    endpoints: &[Endpoint],
    sends: &VecDeque<(usize, EndpointMessage)>,
    receives: &[(usize, EndpointMessage)],
) -> Vec<Event> {
    let mut taken = Vec::new();
    let mut found = Vec::new();
    for (i, &(from, sent)) in sends.iter().enumerate() {
        let key = (endpoints[from].rank(), sent.peer, sent.tag);
        if taken.contains(&key) {
            continue;
        }
        taken.push(key);
        let fits = |&(to, received): &(usize, EndpointMessage)| {
            (received.peer, endpoints[to].rank(), received.tag) == key
        };
        found.extend(receives.iter().position(fits).map(|j| Event::Arrive(i, j)));
    }
    found
}
