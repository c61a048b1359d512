use std::collections::VecDeque;
use std::time::{Duration, Instant};

use topocoll_topology::Rank;

use crate::{Action, Endpoint, EndpointMessage, ExecError, Storage};

/// Carries a rank's messages. A runtime implements it for [`drive`].
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
    /// its bytes, or none if it does not come within `patience`. [`drive`] calls it in the order of
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

/// Drives an endpoint through its exchange over a transport, in the caller's thread. Every message
/// that is waited for must come within `patience`.
///
/// # Errors
/// Buffers that are too small; an error of the transport, with rank, step and peer; a message of
/// another length or tag than the schedule's, or none in time. Each stops the endpoint.
pub fn drive(
    endpoint: &mut Endpoint,
    memory: &mut impl Storage,
    transport: &mut impl Transport,
    patience: Duration,
) -> Result<(), ExecError> {
    let outcome =
        endpoint.check(memory).and_then(|()| exchange(endpoint, memory, transport, patience));
    if outcome.is_err() {
        endpoint.cancel();
    }
    outcome
}

fn exchange(
    endpoint: &mut Endpoint,
    memory: &mut impl Storage,
    transport: &mut impl Transport,
    patience: Duration,
) -> Result<(), ExecError> {
    let (mut posted, mut early) = (VecDeque::new(), VecDeque::new());
    loop {
        match endpoint.poll()? {
            Action::Copy(copy) => endpoint.copy(copy, memory),
            Action::Send(message) => {
                let sent = memory
                    .read(message.region, |bytes| transport.send(message.peer, message.tag, bytes));
                if let Err(reason) = sent {
                    return Err(endpoint.fail(message.token, reason));
                }
                endpoint.complete(message.token, message.region.bytes)?;
            }
            Action::Receive(message) => posted.push_back(message),
            Action::Wait if transport.places() => {
                let message = posted.pop_front().expect("bug: a rank that waits for nobody");
                let (from, tag) = (message.peer, message.tag);
                let received = memory.fill(message.region, |place| {
                    transport.receive_into(from, tag, place, patience)
                });
                match received {
                    Err(reason) => return Err(endpoint.fail(message.token, reason)),
                    Ok(Some(bytes)) => endpoint.complete(message.token, bytes)?,
                    Ok(None) => {
                        let (rank, step) = (endpoint.rank(), endpoint.step());
                        let (peer, within) = (message.peer, patience);
                        return Err(ExecError::Deadline { rank, step, peer, within });
                    }
                }
            }
            Action::Wait => {
                let (at, arrival) = awaited(endpoint, &posted, &mut early, transport, patience)?;
                let message: EndpointMessage = posted.remove(at).expect("it is there");
                endpoint.complete(message.token, arrival.bytes.len() as u64)?;
                memory.write(message.region, &arrival.bytes);
            }
            Action::Done => {
                let Some(arrival) = early.pop_front() else { return Ok(()) };
                return Err(unexpected(endpoint, &arrival));
            }
        }
    }
}

fn unexpected(endpoint: &Endpoint, arrival: &Arrival) -> ExecError {
    let (rank, step) = (endpoint.rank(), endpoint.step());
    ExecError::Unexpected { rank, step, peer: arrival.from, tag: arrival.tag }
}

/// A message that has arrived for a posted receive, and the position of that receive.
fn awaited(
    endpoint: &mut Endpoint,
    posted: &VecDeque<EndpointMessage>,
    early: &mut VecDeque<Arrival>,
    transport: &mut impl Transport,
    patience: Duration,
) -> Result<(usize, Arrival), ExecError> {
    let fits = |message: &EndpointMessage, arrival: &Arrival| {
        (message.peer, message.tag) == (arrival.from, arrival.tag)
    };
    let known = early.iter().enumerate().find_map(|(i, arrival)| {
        Some((i, posted.iter().position(|message| fits(message, arrival))?))
    });
    if let Some((i, at)) = known {
        return Ok((at, early.remove(i).expect("it is there")));
    }
    let first = posted.front().expect("bug: a rank that waits for nobody");
    // None: a time that no clock reaches.
    let until = Instant::now().checked_add(patience);
    loop {
        let now = Instant::now();
        let left = until.map_or(patience, |until| until.saturating_duration_since(now));
        let arrival = match transport.arrival(left) {
            Err(reason) => return Err(endpoint.fail(first.token, reason)),
            Ok(None) if left.is_zero() => {
                let (rank, step) = (endpoint.rank(), endpoint.step());
                return Err(ExecError::Deadline { rank, step, peer: first.peer, within: patience });
            }
            Ok(None) => continue,
            Ok(Some(arrival)) => arrival,
        };
        if let Some(at) = posted.iter().position(|message| fits(message, &arrival)) {
            return Ok((at, arrival));
        }
        if arrival.tag < endpoint.step() || arrival.tag >= endpoint.plan().tags() {
            return Err(unexpected(endpoint, &arrival));
        }
        early.push_back(arrival);
        if left.is_zero() {
            let (rank, step) = (endpoint.rank(), endpoint.step());
            return Err(ExecError::Deadline { rank, step, peer: first.peer, within: patience });
        }
    }
}
