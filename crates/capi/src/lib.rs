//! The C interface: plan, query, poll, complete, free. `request` makes plans, `regions` drives
//! exchanges in memories that only the caller knows. These files generate `include/topocoll.h`.
//!
//! Handles are opaque, errors are codes with a message of the calling thread, and no panic crosses
//! into C. Threads may share a plan; an exchange belongs to one thread at a time.
//!
//! # Unsafe code
//! Pointers come from the caller, and each function states its requirements. The buffers of an
//! exchange are kept as pointers, never as slices: a transport may write to other bytes of a buffer
//! during a copy, so a copy accesses only the bytes of its regions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use topocoll::exec::{self, Endpoint, EndpointMessage, ExecError, Plan, RawBuffers, Region, Token};

pub mod regions;
pub mod request;

pub use request::PlanHandle;
use request::Request;

/// Changes when programs compiled against an earlier header no longer run.
pub const TOPOCOLL_ABI_VERSION: u32 = 1;

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// A null pointer, text that is not UTF-8, a parameter that is not `name=value`, is set twice or
    /// has no algorithm, or a call before the one that it must follow.
    Argument = 1,
    /// An unknown machine, algorithm, parameter or rank, or an algorithm that is not applicable.
    Plan = 2,
    /// A buffer that is too small, a message of another length, a token that is not outstanding, or a
    /// stopped exchange.
    Exchange = 3,
    /// A defect of the library.
    Bug = 4,
}

/// The kind of an action.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Start sending `bytes` bytes from `data`; they stay unchanged until the token is completed.
    Send = 0,
    /// Start receiving `bytes` bytes at `data`; they belong to the message until it is completed.
    Receive = 1,
    /// Wait until a message is completed.
    Wait = 2,
    /// The output is complete.
    Done = 3,
    /// Copy bytes; only `topocoll_exchange_next` asks for it.
    Copy = 4,
}

/// An action. For a send or receive, it has all that a transport needs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// The kind.
    pub kind: Kind,
    /// The rank at the other end.
    pub peer: u32,
    /// The tag, equal at both ends.
    pub tag: u32,
    /// The argument of `topocoll_exchange_complete`.
    pub token: u64,
    /// The first byte; a send only reads.
    pub data: *mut u8,
    /// The number of bytes.
    pub bytes: u64,
}

/// The memories of an exchange. They stay in place until the exchange is done or freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Blocks in order of destinations; read only.
    pub input: *const u8,
    /// Its bytes.
    pub input_bytes: u64,
    /// Blocks in order of sources.
    pub output: *mut u8,
    /// Its bytes.
    pub output_bytes: u64,
    /// Workspace; may be null if none is needed.
    pub work: *mut u8,
    /// Its bytes.
    pub work_bytes: u64,
}

/// The memories of an exchange.
#[derive(Debug)]
enum Memories {
    /// It has not begun.
    None,
    /// Only the caller knows them.
    Regions,
    Buffers(RawBuffers),
}

/// One rank's exchanges, one after another.
#[derive(Debug)]
pub struct ExchangeHandle {
    endpoint: Endpoint,
    memories: Memories,
    /// Copies that the caller has not been asked for.
    copies: VecDeque<(Region, Region)>,
    /// The text of the last error.
    message: CString,
}

impl ExchangeHandle {
    /// Begins an exchange. One that is refused leaves none begun.
    fn begin(
        &mut self,
        begin: impl FnOnce(&mut Endpoint) -> Result<(), Refused>,
        memories: impl FnOnce(&Endpoint) -> Result<Memories, Refused>,
    ) -> Result<(), Refused> {
        self.memories = Memories::None;
        self.copies.clear();
        begin(&mut self.endpoint)?;
        self.endpoint.check_sizes()?;
        self.memories = memories(&self.endpoint)?;
        Ok(())
    }

    /// Runs a call on an exchange, which keeps the message of an error.
    ///
    /// # Safety
    /// `exchange` is null or an exchange that is not freed and that no other thread uses.
    unsafe fn guarded(
        exchange: *mut Self,
        call: impl FnOnce(&mut Self) -> Result<(), Refused>,
    ) -> Status {
        // SAFETY: the caller's promise.
        let status = guarded(|| call(unsafe { exchange_of(exchange)? }));
        // SAFETY: the same.
        if status != Status::Ok
            && let Ok(exchange) = unsafe { exchange_of(exchange) }
        {
            exchange.message = MESSAGE.with(|last| last.borrow().clone());
        }
        status
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// An error to return to C.
struct Refused(Status, String);

impl From<ExecError> for Refused {
    fn from(error: ExecError) -> Self {
        Self(Status::Exchange, error.to_string())
    }
}

fn argument(message: &str) -> Refused {
    Refused(Status::Argument, message.to_owned())
}

fn refused(error: impl std::fmt::Display) -> Refused {
    Refused(Status::Plan, error.to_string())
}

/// Runs a call. Keeps the message of an error, and turns a panic into an error.
fn guarded(call: impl FnOnce() -> Result<(), Refused>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let Refused(status, message) = match outcome {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(refused)) => refused,
        Err(_) => Refused(Status::Bug, "a defect of topocoll".to_owned()),
    };
    let message = CString::new(topocoll::text::message(&message)).unwrap_or_default();
    MESSAGE.with(|last| last.replace(message));
    status
}

/// # Safety
/// `text` is null or a string that ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> Result<Option<&'a str>, Refused> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| argument("text that is not UTF-8"))
}

/// The version of the library's interface; compare it with `TOPOCOLL_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn topocoll_abi_version() -> u32 {
    TOPOCOLL_ABI_VERSION
}

/// The message of the last call of this thread that failed. Valid until the next call fails.
#[unsafe(no_mangle)]
pub extern "C" fn topocoll_message() -> *const c_char {
    MESSAGE.with(|last| last.borrow().as_ptr())
}

/// Makes the plan of one rank.
///
/// `machine_name` is a file, a shipped machine or a short form such as `torus:8x8`; `operation`
/// `alltoall` or `allgather`; `algorithm` a name, or null for the one predicted to be fastest;
/// `parameters` null or `name=value` pairs with commas between; `ports` 0 for the machine's own, and cut
/// to those that its ranks can use. On an error, `*out` is null. `topocoll_plan_make` takes more.
///
/// # Safety
/// Texts end with a zero byte; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_new(
    machine_name: *const c_char,
    operation: *const c_char,
    algorithm: *const c_char,
    parameters: *const c_char,
    block_bytes: u64,
    ports: u32,
    rank: u32,
    out: *mut *mut PlanHandle,
) -> Status {
    guarded(|| {
        if out.is_null() {
            return Err(argument("`out` is null"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { out.write(ptr::null_mut()) };
        // SAFETY: all zero is a request; the caller's promise.
        unsafe {
            let own = std::mem::zeroed();
            let machine = machine_name;
            let request = Request {
                machine,
                operation,
                algorithm,
                parameters,
                block_bytes,
                ports,
                rank,
                ..own
            };
            out.write(Box::into_raw(Box::new(request.plan(false)?)));
        }
        Ok(())
    })
}

/// Frees a plan; its exchanges remain valid. Null is ignored.
///
/// # Safety
/// `plan` is null or from `topocoll_plan_new`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_free(plan: *mut PlanHandle) {
    if !plan.is_null() {
        // SAFETY: the caller's promise: a box of this library.
        drop(unsafe { Box::from_raw(plan) });
    }
}

/// A number of a plan; 0 for a null plan.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
unsafe fn ask(plan: *const PlanHandle, answer: impl FnOnce(&Plan) -> u128) -> u64 {
    // SAFETY: the caller's promise.
    let plan = unsafe { plan.as_ref() };
    plan.map_or(0, |handle| u64::try_from(answer(&handle.plan)).unwrap_or(u64::MAX))
}

/// Bytes of the input for blocks of `block_bytes`, which may differ from the planned size.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_input_bytes(
    plan: *const PlanHandle,
    block_bytes: u64,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.input_bytes(block_bytes)) }
}

/// Bytes of the output.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_output_bytes(
    plan: *const PlanHandle,
    block_bytes: u64,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.output_bytes(block_bytes)) }
}

/// Bytes of workspace.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_workspace_bytes(
    plan: *const PlanHandle,
    block_bytes: u64,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.workspace_bytes(block_bytes)) }
}

/// Steps, and tags: the tags of messages are below this.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_steps(plan: *const PlanHandle) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.tags().into()) }
}

/// Messages sent and received in all.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_messages(plan: *const PlanHandle) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.messages() as u128) }
}

/// The most messages outstanding at once.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_most_outstanding(plan: *const PlanHandle) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { ask(plan, |plan| plan.most_outstanding().into()) }
}

/// Makes the state of a rank's exchanges; null for a null plan. It allocates, and so does the first exchange of
/// blocks of several sizes; the other calls below allocate only messages of errors.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_new(plan: *const PlanHandle) -> *mut ExchangeHandle {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { plan.as_ref() }) else { return ptr::null_mut() };
    let endpoint = Endpoint::new(Arc::clone(&handle.plan), 0u64);
    let (copies, message) = (VecDeque::new(), CString::default());
    Box::into_raw(Box::new(ExchangeHandle { endpoint, memories: Memories::None, copies, message }))
}

/// Frees an exchange, at any time. Null is ignored.
///
/// # Safety
/// `exchange` is null or from `topocoll_exchange_new`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_free(exchange: *mut ExchangeHandle) {
    if !exchange.is_null() {
        // SAFETY: the caller's promise: a box of this library.
        drop(unsafe { Box::from_raw(exchange) });
    }
}

/// # Safety
/// `exchange` is null or an exchange that is not freed and that no other thread uses.
unsafe fn exchange_of<'a>(
    exchange: *mut ExchangeHandle,
) -> Result<&'a mut ExchangeHandle, Refused> {
    // SAFETY: the caller's promise.
    unsafe { exchange.as_mut() }.ok_or_else(|| argument("the exchange is null"))
}

/// Begins an exchange of blocks of `block_bytes` in these buffers, in any state of the previous
/// exchange. In place the input is not used.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses; `buffers` is readable, and its
/// memories have its sizes and stay in place until the exchange is done, begun again or
/// freed. They do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_begin(
    exchange: *mut ExchangeHandle,
    block_bytes: u64,
    buffers: *const Buffers,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            exchange.begin(regions::of_equal(block_bytes), in_buffers(buffers.as_ref())?)
        })
    }
}

/// The same for blocks of several sizes, as `topocoll_plan_bytes_v` takes them.
///
/// # Safety
/// As `topocoll_exchange_begin`; lists that are not null have as many sizes as there are blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_begin_v(
    exchange: *mut ExchangeHandle,
    send: *const u64,
    receive: *const u64,
    buffers: *const Buffers,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            exchange
                .begin(|own| regions::begin_v(own, send, receive), in_buffers(buffers.as_ref())?)
        })
    }
}

/// The memories of an exchange in these buffers.
fn in_buffers(
    buffers: Option<&Buffers>,
) -> Result<impl FnOnce(&Endpoint) -> Result<Memories, Refused>, Refused> {
    let Buffers { input, input_bytes, output, output_bytes, work, work_bytes } =
        *buffers.ok_or_else(|| argument("the buffers are null"))?;
    Ok(move |endpoint: &Endpoint| {
        for (buffer, null, bytes, needed) in [
            ("input", input.is_null(), input_bytes, endpoint.input_bytes()),
            ("output", output.is_null(), output_bytes, endpoint.output_bytes()),
            ("work", work.is_null(), work_bytes, endpoint.workspace_bytes()),
        ] {
            let bytes = if null { 0 } else { u128::from(bytes) };
            if bytes < needed {
                let rank = endpoint.rank();
                return Err(ExecError::Buffer { rank, buffer, bytes, needed }.into());
            }
        }
        Ok(Memories::Buffers(RawBuffers { input, output, work }))
    })
}

/// Performs the copies that are due, and returns the next action.
///
/// # Safety
/// As `topocoll_exchange_begin`; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_poll(
    exchange: *mut ExchangeHandle,
    out: *mut Action,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            let Memories::Buffers(buffers) = exchange.memories else {
                return Err(argument("the exchange has not begun in buffers"));
            };
            if out.is_null() {
                return Err(argument("`out` is null"));
            }
            out.write(exchange.poll(buffers)?);
            Ok(())
        })
    }
}

impl ExchangeHandle {
    fn poll(&mut self, buffers: RawBuffers) -> Result<Action, Refused> {
        let message = |kind, message: EndpointMessage| Action {
            kind,
            peer: message.peer.0,
            tag: message.tag,
            token: message.token.0,
            data: buffers.at(message.region),
            bytes: message.region.bytes,
        };
        let idle =
            |kind| Action { kind, peer: 0, tag: 0, token: 0, data: ptr::null_mut(), bytes: 0 };
        loop {
            return Ok(match self.endpoint.poll()? {
                exec::Action::Copy(copy) => {
                    self.endpoint.pieces(copy, |from, to| {
                        // SAFETY: both lie in buffers of the sizes checked in `in_buffers`, are equally
                        // long and belong to no message under way. `copy` allows them to overlap.
                        unsafe { ptr::copy(buffers.at(from), buffers.at(to), from.bytes as usize) }
                    });
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

/// Records that a message of `bytes` has been sent or received. Another number than the action's
/// stops the exchange.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_complete(
    exchange: *mut ExchangeHandle,
    token: u64,
    bytes: u64,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            Ok(exchange.endpoint.complete(Token(token), bytes)?)
        })
    }
}

/// Stops an exchange. The caller withdraws the outstanding messages.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_cancel(exchange: *mut ExchangeHandle) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        ExchangeHandle::guarded(exchange, |exchange| {
            exchange.endpoint.cancel();
            Ok(())
        })
    }
}
