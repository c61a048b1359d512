//! Exchanges without pointers: for device memory and blocks that do not lie in a row. The caller also
//! performs the copies.

use std::sync::Arc;

use topocoll::exec::{self, Buffer, Endpoint, EndpointMessage, Plan, PlannedSizes};

use crate::{
    ExchangeHandle, Kind, Memories, PlanHandle, Refused, Status, argument, exchange_of, guarded,
    refused,
};

/// A memory of an exchange.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// Blocks in order of destinations; read only. In place there is none.
    Input = 0,
    /// Blocks in order of sources; in place, the blocks to send at first.
    Output = 1,
    /// Workspace.
    Work = 2,
}

/// Bytes of a memory. Offsets count the bytes of blocks in order, wherever the caller keeps them: with
/// blocks of one size, byte i belongs to block i / `block_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RegionOf {
    /// The memory.
    pub memory: MemoryKind,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// An action in terms of regions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The kind.
    pub kind: Kind,
    /// The rank at the other end of a message.
    pub peer: u32,
    /// The tag, equal at both ends.
    pub tag: u32,
    /// The argument of `topocoll_exchange_complete`.
    pub token: u64,
    /// The bytes to send, the place to receive in, or the bytes to copy.
    pub region: RegionOf,
    /// Of a copy, where its bytes go.
    pub to: RegionOf,
}

impl From<exec::Region> for RegionOf {
    fn from(region: exec::Region) -> Self {
        let memory = match region.buffer {
            Buffer::Input => MemoryKind::Input,
            Buffer::Output => MemoryKind::Output,
            Buffer::Work => MemoryKind::Work,
        };
        Self { memory, offset: region.offset, bytes: region.bytes }
    }
}

/// The sizes of the blocks that one rank sends and receives.
///
/// # Safety
/// Lists that are not null have as many sizes as the plan has blocks, as long as the result is used.
unsafe fn lists<'a>(
    plan: &Plan,
    send: *const u64,
    receive: *const u64,
) -> Result<[&'a [u64]; 2], Refused> {
    if send.is_null() || receive.is_null() {
        return Err(argument("the list of sizes to send or to receive is null"));
    }
    // SAFETY: not null, and the caller's promise.
    unsafe {
        Ok([
            std::slice::from_raw_parts(send, plan.input_blocks() as usize),
            std::slice::from_raw_parts(receive, plan.problem().ranks as usize),
        ])
    }
}

/// Begins with blocks of one size.
pub(crate) fn of_equal(block_bytes: u64) -> impl FnOnce(&mut Endpoint) -> Result<(), Refused> {
    move |endpoint| {
        endpoint.begin(block_bytes);
        Ok(())
    }
}

/// Begins with blocks of several sizes.
///
/// # Safety
/// Lists that are not null have as many sizes as the plan has blocks.
pub(crate) unsafe fn begin_v(
    endpoint: &mut Endpoint,
    send: *const u64,
    receive: *const u64,
) -> Result<(), Refused> {
    // SAFETY: the caller's promise.
    let [row, column] = unsafe { lists(endpoint.plan(), send, receive)? };
    endpoint.begin_v(row, column).map_err(refused)
}

/// Bytes of the memories of an exchange of blocks of several sizes: of the input, the output and the
/// workspace. `send` has the bytes of each block to send, by destination, in an all-gather of the one
/// block; `receive` those of each block to receive, by source. The sizes of blocks for other ranks
/// must not matter to this rank, so algorithms are refused that pass them on, such as `bruck`: a request
/// with `sizes_differ` chooses another one. A block that the rank keeps has one size in both lists.
///
/// # Safety
/// `plan` is null or a plan that is not freed; lists that are not null have as many sizes as there
/// are blocks; `bytes` is null or has room for three.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_bytes_v(
    plan: *const PlanHandle,
    send: *const u64,
    receive: *const u64,
    bytes: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let plan = unsafe { plan.as_ref() }.ok_or_else(|| argument("the plan is null"))?;
        if bytes.is_null() {
            return Err(argument("`bytes` is null"));
        }
        // SAFETY: the caller's promise.
        let plan = &plan.plan;
        let [row, column] = unsafe { lists(plan, send, receive)? };
        let sizes = Arc::new(PlannedSizes::of_rank(plan, row, column).map_err(refused)?);
        let all =
            [plan.input_bytes(&sizes), plan.output_bytes(&sizes), plan.workspace_bytes(&sizes)];
        for (i, all) in all.into_iter().enumerate() {
            // SAFETY: not null, and the caller's promise.
            unsafe { bytes.add(i).write(u64::try_from(all).unwrap_or(u64::MAX)) };
        }
        Ok(())
    })
}

/// Begins an exchange of blocks of `block_bytes` in memories that only the caller knows, in any state
/// of the previous exchange. `topocoll_exchange_next` gives its actions.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_start(
    exchange: *mut ExchangeHandle,
    block_bytes: u64,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            exchange.begin(of_equal(block_bytes), |_| Ok(Memories::Regions))
        })
    }
}

/// The same for blocks of several sizes, as `topocoll_plan_bytes_v` takes them.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses; lists that are not null have as many
/// sizes as there are blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_start_v(
    exchange: *mut ExchangeHandle,
    send: *const u64,
    receive: *const u64,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            exchange.begin(|own| begin_v(own, send, receive), |_| Ok(Memories::Regions))
        })
    }
}

/// The next action in terms of regions. A copy is done when the next call begins; copies come one
/// piece at a time.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_next(
    exchange: *mut ExchangeHandle,
    out: *mut Event,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            if !matches!(exchange.memories, Memories::Regions) {
                return Err(argument("the exchange has not begun without buffers"));
            }
            if out.is_null() {
                return Err(argument("`out` is null"));
            }
            out.write(exchange.next()?);
            Ok(())
        })
    }
}

impl ExchangeHandle {
    fn next(&mut self) -> Result<Event, Refused> {
        let nothing = RegionOf { memory: MemoryKind::Work, offset: 0, bytes: 0 };
        let idle = |kind| Event { kind, peer: 0, tag: 0, token: 0, region: nothing, to: nothing };
        let message = |kind, message: EndpointMessage| Event {
            peer: message.peer.0,
            tag: message.tag,
            token: message.token.0,
            region: message.region.into(),
            ..idle(kind)
        };
        loop {
            if let Some((from, to)) = self.copies.pop_front() {
                return Ok(Event { region: from.into(), to: to.into(), ..idle(Kind::Copy) });
            }
            return Ok(match self.endpoint.poll()? {
                exec::Action::Copy(copy) => {
                    let copies = &mut self.copies;
                    self.endpoint.pieces(copy, |from, to| copies.push_back((from, to)));
                    continue;
                }
                exec::Action::Send(send) => message(Kind::Send, send),
                exec::Action::Receive(receive) => message(Kind::Receive, receive),
                exec::Action::Wait => idle(Kind::Wait),
                exec::Action::Done => idle(Kind::Done),
            });
        }
    }
}

/// The message of the exchange's last call that failed; null for a null exchange. Valid until its next
/// call fails.
///
/// # Safety
/// `exchange` is null or one that is not freed and no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_message(
    exchange: *mut ExchangeHandle,
) -> *const std::ffi::c_char {
    // SAFETY: the caller's promise.
    let exchange = unsafe { exchange_of(exchange) };
    exchange.map_or(std::ptr::null(), |exchange| exchange.message.as_ptr())
}
