//! The C interface: plan, query, poll, complete, free. This file generates `include/topocoll.h`.
//!
//! Handles are opaque, errors are codes with a message of the calling thread, and no panic crosses
//! into C. Threads may share a plan; an exchange belongs to one thread at a time.
//!
//! # Unsafe code
//! Pointers come from the caller, and each function states its requirements. The buffers of an
//! exchange are kept as pointers, never as slices: a transport may write to other bytes of a buffer
//! during a copy, so a copy accesses only the bytes of its regions.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use topocoll::exec::{self, Endpoint, EndpointMessage, ExecError, Plan, RawBuffers, Token};
use topocoll::{Collective, Exchange, Parameters, Problem, Rank, Setting, machine};

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

/// One rank's plan.
#[derive(Debug)]
pub struct PlanHandle {
    plan: Arc<Plan>,
}

/// One rank's exchanges, one after another.
#[derive(Debug)]
pub struct ExchangeHandle {
    endpoint: Endpoint,
    buffers: Option<RawBuffers>,
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
/// `parameters` null or `name=value` pairs with commas between; `ports` 0 for the machine's own. On
/// an error, `*out` is null.
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
        // SAFETY: the caller's promise.
        let (name, operation, algorithm, parameters) =
            unsafe { (text(machine_name)?, text(operation)?, text(algorithm)?, text(parameters)?) };
        let (Some(name), Some(operation)) = (name, operation) else {
            return Err(argument("the machine or the operation is null"));
        };
        let mut machine = machine(name).map_err(refused)?;
        if ports > 0 {
            machine.set_ports(ports);
        }
        let operation: Collective = operation.parse().map_err(refused)?;
        let problem = Problem::new(operation, machine.ranks(), machine.ports, block_bytes)
            .map_err(refused)?;
        let exchange = Exchange::new(&machine, &problem).map_err(refused)?;
        let given = settings(parameters.unwrap_or_default())?;
        let schedule = match algorithm {
            Some(algorithm) => exchange.schedule(algorithm, &given),
            None if given.is_empty() => {
                let selection = exchange.select().map_err(refused)?;
                let best = selection.best().ok_or_else(|| refused("no algorithm applies"))?;
                exchange.schedule(&best.algorithm, &best.parameters)
            }
            None => return Err(argument("parameters without an algorithm")),
        };
        let plan = Plan::new(&schedule.map_err(refused)?, Rank(rank)).map_err(refused)?;
        let handle = Box::into_raw(Box::new(PlanHandle { plan: Arc::new(plan) }));
        // SAFETY: not null, and the caller's promise.
        unsafe { out.write(handle) };
        Ok(())
    })
}

fn settings(text: &str) -> Result<Parameters, Refused> {
    let mut settings = Parameters::new();
    if text.is_empty() {
        return Ok(settings);
    }
    for (i, pair) in text.split(',').enumerate() {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            argument(&format!("parameters `{text}`: parameter {i} is `{pair}`, not name=value"))
        })?;
        let value =
            value.parse().map_or_else(|_| Setting::Text(value.to_owned()), Setting::Integer);
        if settings.insert(name.to_owned(), value).is_some() {
            return Err(argument(&format!("parameter `{name}` is set twice")));
        }
    }
    Ok(settings)
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

/// Makes the state of a rank's exchanges; null for a null plan. It allocates; the calls below
/// allocate only messages of errors.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_new(plan: *const PlanHandle) -> *mut ExchangeHandle {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { plan.as_ref() }) else { return ptr::null_mut() };
    let endpoint = Endpoint::new(Arc::clone(&handle.plan), 0u64);
    Box::into_raw(Box::new(ExchangeHandle { endpoint, buffers: None }))
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
/// exchange.
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
    guarded(|| {
        // SAFETY: the caller's promise.
        let exchange = unsafe { exchange_of(exchange)? };
        // SAFETY: the caller's promise.
        let buffers =
            *unsafe { buffers.as_ref() }.ok_or_else(|| argument("the buffers are null"))?;
        let plan = exchange.endpoint.plan();
        for (buffer, null, bytes, needed) in [
            ("input", buffers.input.is_null(), buffers.input_bytes, plan.input_bytes(block_bytes)),
            (
                "output",
                buffers.output.is_null(),
                buffers.output_bytes,
                plan.output_bytes(block_bytes),
            ),
            ("work", buffers.work.is_null(), buffers.work_bytes, plan.workspace_bytes(block_bytes)),
        ] {
            let bytes = if null { 0 } else { u128::from(bytes) };
            if bytes < needed {
                let rank = exchange.endpoint.rank();
                return Err(ExecError::Buffer { rank, buffer, bytes, needed }.into());
            }
        }
        let Buffers { input, output, work, .. } = buffers;
        exchange.buffers = Some(RawBuffers { input, output, work });
        exchange.endpoint.begin(block_bytes);
        Ok(())
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
    guarded(|| {
        // SAFETY: the caller's promise.
        let exchange = unsafe { exchange_of(exchange)? };
        let buffers = exchange.buffers.ok_or_else(|| argument("the exchange has not begun"))?;
        if out.is_null() {
            return Err(argument("`out` is null"));
        }
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
        let action = loop {
            match exchange.endpoint.poll()? {
                exec::Action::Copy(copy) => exchange.endpoint.pieces(copy, |from, to| {
                    // SAFETY: both lie in buffers of the sizes checked in `begin`, are equally long
                    // and belong to no message under way. `copy` allows them to overlap.
                    unsafe { ptr::copy(buffers.at(from), buffers.at(to), from.bytes as usize) }
                }),
                exec::Action::Send(send) => break message(Kind::Send, send),
                exec::Action::Receive(receive) => break message(Kind::Receive, receive),
                exec::Action::Wait => break idle(Kind::Wait),
                exec::Action::Done => break idle(Kind::Done),
            }
        };
        // SAFETY: not null, and the caller's promise.
        unsafe { out.write(action) };
        Ok(())
    })
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
    guarded(|| {
        // SAFETY: the caller's promise.
        let exchange = unsafe { exchange_of(exchange)? };
        Ok(exchange.endpoint.complete(Token(token), bytes)?)
    })
}

/// Stops an exchange. The caller withdraws the outstanding messages.
///
/// # Safety
/// `exchange` is one that is not freed and no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_exchange_cancel(exchange: *mut ExchangeHandle) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { exchange_of(exchange)? }.endpoint.cancel();
        Ok(())
    })
}
