//! Plans from requests: timing, subsets, exchanges in place, and what was chosen.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;

use topocoll::exec::{Plan, PlannedSizes};
use topocoll::{
    Collective, Exchange, Groups, Machine, Parameters, Ports, Problem, Rank, Schedule, Setting,
    Subset, machine,
};

use crate::{Refused, Status, argument, guarded, refused, text};

/// A request for a plan. Set all of it to zero first: zero and null mean the machine's own or nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// `sizeof(topocoll_request)`; later versions of the library accept this size too.
    pub size: u64,
    /// A machine file, a shipped machine or a short form such as `torus:8x8`.
    pub machine: *const c_char,
    /// A machine or file whose timing is used, or null for the machine's own.
    pub timing: *const c_char,
    /// `alltoall` or `allgather`.
    pub operation: *const c_char,
    /// A name, or null for the one predicted to be fastest.
    pub algorithm: *const c_char,
    /// Null, or `name=value` pairs with commas between.
    pub parameters: *const c_char,
    /// Bytes of a block, for the choice; exchanges may have others.
    pub block_bytes: u64,
    /// Ports of a rank, and of a node where `node_ports` is 0; or 0. More than can be used are cut.
    pub ports: u32,
    /// The rank, as the machine numbers it.
    pub rank: u32,
    /// Ranks that exchange among themselves, in the order of their blocks; null for all. Messages
    /// name peers as the machine numbers them.
    pub ranks: *const u32,
    /// The number of these.
    pub rank_count: u32,
    /// Not 0 for an exchange whose input lies in the output, as with `MPI_IN_PLACE`.
    pub in_place: u32,
    /// Room for the message of an error, or null.
    pub message: *mut c_char,
    /// Its bytes; a longer message is cut.
    pub message_bytes: u64,
    /// Ports of a node of several ranks to and from other nodes, or 0 for those of a rank.
    pub node_ports: u32,
    /// Not 0 for exchanges of blocks of several sizes, by `topocoll_exchange_begin_v` or
    /// `topocoll_exchange_start_v`: algorithms that pass blocks on are left out, and a named one is
    /// refused. The choice is that for blocks of `block_bytes`, about the mean.
    pub sizes_differ: u32,
    /// Groups that exchange at the same time, each among its own ranks; null for none. A name such as `peers`
    /// or `dim:0,2`, or the ranks of a group in each line. The plan is that of the group of `rank`, the choice
    /// that for all groups together.
    pub groups: *const c_char,
}

/// The sizes of requests of earlier versions, before `node_ports` and before `groups`.
const EARLIER: [u64; 2] = [
    std::mem::offset_of!(Request, node_ports) as u64,
    std::mem::offset_of!(Request, groups) as u64,
];

/// One rank's plan.
#[derive(Debug)]
pub struct PlanHandle {
    pub(crate) plan: Arc<Plan>,
    algorithm: CString,
    parameters: CString,
    /// Not a number if nothing was predicted.
    seconds: f64,
}

impl Request {
    /// The plan of it, with the time of a named algorithm if it `predicts`.
    ///
    /// # Safety
    /// Its texts end with a zero byte, and its list has the given size.
    pub(crate) unsafe fn plan(&self, predicts: bool) -> Result<PlanHandle, Refused> {
        let (in_place, sizes_differ) = (self.in_place != 0, self.sizes_differ != 0);
        if self.ranks.is_null() && self.rank_count > 0 {
            let count = self.rank_count;
            return Err(argument(&format!("`rank_count` is {count}, and `ranks` is null")));
        }
        if !self.ranks.is_null() && !self.groups.is_null() {
            return Err(argument("`ranks` and `groups`: a request has one of them"));
        }
        if in_place && sizes_differ {
            return Err(argument("`in_place` and `sizes_differ`: blocks in place have one size"));
        }
        // SAFETY: the caller's promise.
        let (name, timing, operation, algorithm, parameters, groups) = unsafe {
            (
                text(self.machine)?,
                text(self.timing)?,
                text(self.operation)?,
                text(self.algorithm)?,
                text(self.parameters)?,
                text(self.groups)?,
            )
        };
        let (Some(name), Some(operation)) = (name, operation) else {
            return Err(argument("the machine or the operation is null"));
        };
        let machine = self.machine(name, timing)?;
        let operation: Collective = operation.parse().map_err(refused)?;
        let problem = Problem::new(operation, machine.ranks(), machine.ports, self.block_bytes)
            .map_err(refused)?;
        let mut exchange = Exchange::new(&machine, &problem).map_err(refused)?;
        if !self.ranks.is_null() {
            // SAFETY: not null, and the caller's promise.
            let ranks = unsafe { std::slice::from_raw_parts(self.ranks, self.rank_count as usize) };
            let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
            let subset = Subset::new(&ranks, machine.ranks()).map_err(refused)?;
            exchange = exchange.subset(&subset).map_err(refused)?;
        }
        if let Some(groups) = groups {
            let groups = Groups::read(groups, &machine).map_err(refused)?;
            exchange = exchange.groups(&groups).map_err(refused)?;
        }
        let given = settings(parameters.unwrap_or_default())?;
        let (schedule, seconds) = match algorithm {
            Some(algorithm) => {
                let schedule = exchange.schedule(algorithm, &given).map_err(refused)?;
                if sizes_differ {
                    PlannedSizes::check_schedule(&schedule).map_err(refused)?;
                }
                let counts = predicts.then(|| exchange.count(&schedule));
                let seconds = counts.and_then(Result::ok).map(|counts| counts.time.total());
                (schedule, seconds.unwrap_or(f64::NAN))
            }
            None if given.is_empty() => {
                let selection = exchange.select().map_err(refused)?;
                // After the best, those that are slower.
                let best = selection.best().into_iter().chain(&selection.choices);
                let made = best.map(|choice| {
                    let schedule = exchange.schedule(&choice.algorithm, &choice.parameters);
                    schedule.map(|schedule| (schedule, choice.price.time.total()))
                });
                let serves = |made: &Result<(Schedule, f64), _>| {
                    let schedule = made.as_ref().map(|(schedule, _)| schedule);
                    !sizes_differ
                        || schedule.is_ok_and(|one| PlannedSizes::check_schedule(one).is_ok())
                };
                let first = { made }.find(serves);
                first.ok_or_else(|| refused("no algorithm applies"))?.map_err(refused)?
            }
            None => return Err(argument("parameters without an algorithm")),
        };
        let plan = exchange.plan(&schedule, Rank(self.rank)).map_err(refused)?;
        let plan = Arc::new(if in_place { plan.in_place() } else { plan });
        let pairs =
            schedule.origin.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let c_text = |text: &str| CString::new(text).map_err(refused);
        let parameters = c_text(&pairs.collect::<Vec<_>>().join(","))?;
        let algorithm = c_text(&schedule.origin.algorithm)?;
        Ok(PlanHandle { plan, algorithm, parameters, seconds })
    }

    /// The machine, with the ports, each 0 for the other or the machine's own.
    fn machine(&self, name: &str, timing: Option<&str>) -> Result<Machine, Refused> {
        let mut machine = machine(name).map_err(refused)?;
        match [self.ports, self.node_ports] {
            [0, 0] => {}
            [0, node] => machine.set_ports(Ports { node, ..machine.ports }),
            [rank, 0] => machine.set_ports(rank),
            [rank, node] => machine.set_ports(Ports { rank, node }),
        }
        if let Some(timing) = timing {
            let other = topocoll::machine(timing).map_err(refused)?;
            other.timing.fits(&*other.topology, &*machine.topology).map_err(refused)?;
            machine.timing = other.timing;
        }
        Ok(machine.with_values_of_links())
    }
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

/// Makes the plan that a request describes. On an error, `*out` is null, and `message` of the request
/// has the text.
///
/// # Safety
/// `request` is readable, its texts end with a zero byte, its lists and its room have the given
/// sizes; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_make(
    request: *const Request,
    out: *mut *mut PlanHandle,
) -> Status {
    let mut room: (*mut c_char, u64) = (ptr::null_mut(), 0);
    let status = guarded(|| {
        if request.is_null() || out.is_null() {
            return Err(argument("`request` or `out` is null"));
        }
        // SAFETY: not null, and the caller's promise; a request of an earlier version is shorter, so
        // only its size is read first.
        unsafe { out.write(ptr::null_mut()) };
        let size = unsafe { (&raw const (*request).size).read() };
        let needed = size_of::<Request>() as u64;
        if size != needed && !EARLIER.contains(&size) {
            return Err(argument(&format!(
                "`size` of the request is {size}, and must be {needed}"
            )));
        }
        // SAFETY: of this size, and all zero is a request.
        let request = unsafe {
            let mut whole = std::mem::zeroed::<Request>();
            let bytes = (&raw mut whole).cast::<u8>();
            ptr::copy_nonoverlapping(request.cast::<u8>(), bytes, size as usize);
            whole
        };
        room = (request.message, request.message_bytes);
        // SAFETY: not null, and the caller's promise.
        unsafe { out.write(Box::into_raw(Box::new(request.plan(true)?))) };
        Ok(())
    });
    // SAFETY: the caller's promise.
    unsafe { write_message(status, room) };
    status
}

/// Writes the message of a failed call, or an empty text.
///
/// # Safety
/// The room is null or has these bytes.
unsafe fn write_message(status: Status, (to, bytes): (*mut c_char, u64)) {
    let Some(most) = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_sub(1)) else {
        return;
    };
    if to.is_null() {
        return;
    }
    crate::MESSAGE.with(|last| {
        let last = last.borrow();
        let text = if status == Status::Ok { &[] } else { last.to_bytes() };
        let mut end = text.len().min(most);
        // A letter of several bytes is not cut.
        while end < text.len() && end > 0 && text[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        // SAFETY: the room has `most` bytes and one more.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), end);
            to.add(end).write(0);
        }
    });
}

/// The name of the plan's algorithm; null for a null plan. Valid as long as the plan.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_algorithm(plan: *const PlanHandle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { plan.as_ref() }.map_or(ptr::null(), |plan| plan.algorithm.as_ptr())
}

/// Its parameters, `name=value` pairs with commas between, as a request takes them; null for a null
/// plan. Valid as long as the plan.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_parameters(plan: *const PlanHandle) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { plan.as_ref() }.map_or(ptr::null(), |plan| plan.parameters.as_ptr())
}

/// Its predicted seconds for blocks of the planned size. Not a number where nothing was predicted:
/// for a null plan, an algorithm that was named to `topocoll_plan_new`, or counts that take too much
/// memory.
///
/// # Safety
/// `plan` is null or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topocoll_plan_seconds(plan: *const PlanHandle) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { plan.as_ref() }.map_or(f64::NAN, |plan| plan.seconds)
}
