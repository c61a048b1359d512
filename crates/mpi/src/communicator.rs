//! What is kept with a communicator.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mpi_sys as mpi;
use topocoll::exec::{ExecError, Plan, RankMachine};
use topocoll::{Collective, Grid};

use crate::blocks::Blocks;
use crate::decision::{Ours, decide};
use crate::engine::{Memories, Requests, exchange};
use crate::library::Library;
use crate::place::{Known, Place, places};
use crate::settings::Settings;
use crate::unequal::{Vector, exchange_unequal, straight};

/// MPI's error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed(pub(crate) c_int);

impl From<ExecError> for Failed {
    fn from(error: ExecError) -> Self {
        Self(match error {
            ExecError::Length { .. } => mpi::MPI_ERR_TRUNCATE as c_int,
            _ => mpi::MPI_ERR_INTERN as c_int,
        })
    }
}

/// Codes of MPI as results.
pub(crate) fn check(code: c_int) -> Result<(), Failed> {
    if code == mpi::MPI_SUCCESS as c_int { Ok(()) } else { Err(Failed(code)) }
}

/// The state of one communicator of the program.
pub(crate) struct Communicator {
    /// The same ranks, for our messages alone.
    private: mpi::MPI_Comm,
    rank: u32,
    ranks: u32,
    name: String,
    /// Of the first rank, who decides.
    places: Vec<Place>,
    /// By operation and class of sizes.
    exchanges: [Vec<Option<Decided>>; 2],
    /// What an all-to-all of blocks of unequal sizes is done by.
    unequal: Option<Option<Straight>>,
    memory: Memory,
    requests: Requests,
    /// Whether an exchange has failed, so that messages of it may still be under way.
    broken: bool,
}

enum Decided {
    Library,
    Ours(Box<Exchange>),
}

struct Exchange {
    machine: RankMachine,
    order: Option<Vec<u32>>,
}

struct Straight {
    plan: Arc<Plan>,
    order: Option<Vec<u32>>,
}

/// Memory for exchanges, kept from one to the next.
#[derive(Default)]
pub(crate) struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
    work: Vec<u8>,
}

impl Memory {
    pub(crate) fn input(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.input, bytes)
    }

    pub(crate) fn output(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.output, bytes)
    }

    pub(crate) fn work(&mut self, bytes: u128) -> Result<*mut u8, Failed> {
        room(&mut self.work, bytes)
    }
}

// SAFETY: handles of MPI, which any thread may use, one at a time; the mutex sees to that.
unsafe impl Send for Communicator {}

/// What a communicator is to us.
type Kept = Option<Arc<Mutex<Communicator>>>;

static KEY: OnceLock<Result<c_int, Failed>> = OnceLock::new();
static FINISHED: AtomicBool = AtomicBool::new(false);
static SETTINGS: OnceLock<Settings> = OnceLock::new();
static LIVE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

/// Counts communicators that are forgotten, so that what threads remember of them is.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The communicator of the thread's last call, what it is to us, and what was forgotten then.
    static LAST: Cell<Option<(Handle, *const Mutex<Communicator>, u64)>> = const { Cell::new(None) };
}

/// A communicator of the program, to be found again when MPI is finalized.
#[derive(Clone, Copy, PartialEq)]
struct Handle(mpi::MPI_Comm);

// SAFETY: a handle that any thread may use.
unsafe impl Send for Handle {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of ours ends the program at the border to C.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a communicator, made by all its ranks in their first call; none for one that is
/// left to the library.
pub(crate) fn find(comm: mpi::MPI_Comm) -> Result<Kept, Failed> {
    let forgotten = FORGOTTEN.load(Ordering::Acquire);
    let kept = match LAST.get() {
        Some((last, kept, then)) if last == Handle(comm) && then == forgotten => kept,
        _ => {
            let Some(kept) = attribute(comm)? else { return Ok(None) };
            LAST.set(Some((Handle(comm), kept, forgotten)));
            kept
        }
    };
    if kept.is_null() {
        return Ok(None);
    }
    // SAFETY: from `into_raw` below, and kept until the communicator is freed: not while it is used.
    unsafe {
        Arc::increment_strong_count(kept);
        Ok(Some(Arc::from_raw(kept)))
    }
}

/// What is kept with a communicator, null if it is left to the library; none where there can be no
/// attributes.
fn attribute(comm: mpi::MPI_Comm) -> Result<Option<*const Mutex<Communicator>>, Failed> {
    // SAFETY: a constant.
    if comm == unsafe { mpi::RSMPI_COMM_NULL } || FINISHED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let key = match KEY.get() {
        Some(key) => (*key)?,
        None if !is_initialized() => return Ok(None),
        None => (*KEY.get_or_init(new_key))?,
    };
    let (mut kept, mut there): (*const Mutex<Communicator>, c_int) = (std::ptr::null(), 0);
    // SAFETY: a handle that the program vouches for, our key, and places for the answers.
    check(unsafe { mpi::PMPI_Comm_get_attr(comm, key, (&raw mut kept).cast(), &raw mut there) })?;
    if there == 0 {
        let made = Communicator::new(comm)?.map(|made| Arc::new(Mutex::new(made)));
        kept = made.map_or(std::ptr::null(), Arc::into_raw);
        locked(&LIVE).push(Handle(comm));
        // SAFETY: our key; `forget` takes the pointer back.
        check(unsafe { mpi::PMPI_Comm_set_attr(comm, key, kept.cast_mut().cast()) })?;
    }
    Ok(Some(kept))
}

fn is_initialized() -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: allowed at any time.
    unsafe {
        mpi::PMPI_Initialized(&raw mut begun);
        mpi::PMPI_Finalized(&raw mut ended);
    }
    begun != 0 && ended == 0
}

fn new_key() -> Result<c_int, Failed> {
    let mut key = 0;
    // SAFETY: functions of the types that MPI asks for.
    check(unsafe {
        mpi::PMPI_Comm_create_keyval(
            Some(leave_behind),
            Some(forget),
            &raw mut key,
            std::ptr::null_mut(),
        )
    })?;
    Ok(key)
}

/// A duplicate begins with nothing.
unsafe extern "C" fn leave_behind(
    _comm: mpi::MPI_Comm,
    _key: c_int,
    _extra: *mut c_void,
    _kept: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the answer.
    unsafe { flag.write(0) };
    mpi::MPI_SUCCESS as c_int
}

/// Called when a communicator is freed.
unsafe extern "C" fn forget(
    comm: mpi::MPI_Comm,
    _key: c_int,
    kept: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    FORGOTTEN.fetch_add(1, Ordering::AcqRel);
    locked(&LIVE).retain(|live| *live != Handle(comm));
    if !kept.is_null() {
        // SAFETY: the attribute that `find` set, which MPI gives back once.
        drop(unsafe { Arc::from_raw(kept.cast::<Mutex<Communicator>>()) });
    }
    mpi::MPI_SUCCESS as c_int
}

/// Frees all that is kept; before MPI ends.
pub(crate) fn finish() {
    FINISHED.store(true, Ordering::Relaxed);
    let Some(&Ok(mut key)) = KEY.get() else { return };
    let live = std::mem::take(&mut *locked(&LIVE));
    // SAFETY: communicators that the program has not freed, as they would have been forgotten.
    unsafe {
        for Handle(comm) in live {
            mpi::PMPI_Comm_delete_attr(comm, key);
        }
        mpi::PMPI_Comm_free_keyval(&raw mut key);
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once. What is still under way of a broken exchange MPI keeps.
        unsafe { mpi::PMPI_Comm_free(&raw mut self.private) };
    }
}

/// Says something on this process's standard error.
fn say(text: &str) {
    eprintln!("topocoll: {text}");
}

/// The rank in `MPI_COMM_WORLD`, and its ranks.
fn world() -> (u32, u32) {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: MPI is initialized.
    unsafe {
        mpi::PMPI_Comm_rank(mpi::RSMPI_COMM_WORLD, &raw mut rank);
        mpi::PMPI_Comm_size(mpi::RSMPI_COMM_WORLD, &raw mut ranks);
    }
    (rank as u32, ranks as u32)
}

/// What the environment says, read once by those processes that decide.
fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let (rank, ranks) = world();
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let (settings, warnings) = Settings::read(variables, ranks);
        if rank == 0 {
            warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
        settings
    })
}

impl Communicator {
    /// Called by all ranks of a communicator; none if it is left to the library.
    fn new(comm: mpi::MPI_Comm) -> Result<Option<Self>, Failed> {
        let (mut inter, mut rank, mut ranks) = (0, 0, 0);
        let mut name = [0u8; mpi::MPI_MAX_OBJECT_NAME as usize + 1];
        let mut length: c_int = 0;
        // SAFETY: a communicator, as it could be asked for an attribute; places for the answers.
        unsafe {
            check(mpi::PMPI_Comm_test_inter(comm, &raw mut inter))?;
            check(mpi::PMPI_Comm_rank(comm, &raw mut rank))?;
            check(mpi::PMPI_Comm_size(comm, &raw mut ranks))?;
            check(mpi::PMPI_Comm_get_name(comm, name.as_mut_ptr().cast(), &raw mut length))?;
        }
        if inter != 0 || ranks < 2 {
            return Ok(None);
        }
        // SAFETY: all ranks of the communicator are here, as they all make the same call.
        let private = unsafe {
            let mut private = mpi::RSMPI_COMM_NULL;
            check(mpi::PMPI_Comm_split(comm, 0, rank, &raw mut private))?;
            check(mpi::PMPI_Comm_set_errhandler(private, mpi::RSMPI_ERRORS_RETURN))?;
            private
        };
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
        let mut made = Self {
            private,
            rank: rank as u32,
            ranks: ranks as u32,
            name: if name.is_empty() { "a communicator".to_owned() } else { name.into_owned() },
            places: Vec::new(),
            exchanges: Default::default(),
            unequal: None,
            memory: Memory::default(),
            requests: Requests::default(),
            broken: false,
        };
        let nodes = made.gathered(made.node()?)?;
        let world = made.gathered(world().0)?;
        if made.rank == 0 {
            let (grid, given) = (grid(comm)?, settings().machine.as_ref());
            made.places = places(&Known { nodes: &nodes, grid, world: &world, given });
        }
        Ok(Some(made))
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The lowest rank of those that this one shares memory with.
    fn node(&self) -> Result<u32, Failed> {
        let (own, mut lowest) = (self.rank as c_int, 0);
        // SAFETY: all ranks call it; the communicator is freed before the end.
        unsafe {
            let mut node = mpi::RSMPI_COMM_NULL;
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            check(mpi::PMPI_Comm_split_type(self.private, shared, own, info, &raw mut node))?;
            let (int, least) = (mpi::RSMPI_INT32_T, mpi::RSMPI_MIN);
            let (from, to) = ((&raw const own).cast(), (&raw mut lowest).cast());
            check(mpi::PMPI_Allreduce(from, to, 1, int, least, node))?;
            check(mpi::PMPI_Comm_free(&raw mut node))?;
        }
        Ok(lowest as u32)
    }

    /// The values of all ranks, at the first.
    fn gathered(&self, own: u32) -> Result<Vec<u32>, Failed> {
        let mut all = vec![0u32; if self.rank == 0 { self.ranks as usize } else { 0 }];
        // SAFETY: all ranks call it, and the first has room for all.
        check(unsafe {
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            let word = mpi::RSMPI_UINT32_T;
            mpi::PMPI_Gather(from, 1, word, to, 1, word, 0, self.private)
        })?;
        Ok(all)
    }

    /// Tells all ranks what the first says.
    fn told(&self, text: String) -> Result<String, Failed> {
        let mut length = text.len() as u64;
        // SAFETY: all ranks call it, with as much room as the first has bytes.
        unsafe {
            let at = (&raw mut length).cast();
            check(mpi::PMPI_Bcast(at, 1, mpi::RSMPI_UINT64_T, 0, self.private))?;
            let mut bytes = text.into_bytes();
            bytes.resize(length as usize, 0);
            let (at, count) = (bytes.as_mut_ptr().cast(), length as c_int);
            check(mpi::PMPI_Bcast(at, count, mpi::RSMPI_UINT8_T, 0, self.private))?;
            String::from_utf8(bytes).map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))
        }
    }

    /// Exchanges blocks if that is for us to do; all ranks get the same answer.
    ///
    /// # Safety
    /// The buffers have the blocks: one for each rank, but of an all-gather one to send. `send` is
    /// none in place.
    pub(crate) unsafe fn exchange(
        &mut self,
        operation: Collective,
        send: Option<Blocks>,
        receive: Blocks,
    ) -> Result<bool, Failed> {
        let bytes = receive.bytes;
        // Counts of MPI are ints, and a message has at most all blocks.
        let most = c_int::MAX as u64;
        if bytes == 0 || self.broken || bytes.saturating_mul(self.ranks.into()) > most {
            return Ok(false);
        }
        let class = bytes.ilog2() as usize;
        let known = self.exchanges[operation as usize].get(class).is_some_and(Option::is_some);
        if !known {
            self.decide(operation, class)?;
        }
        let Some(Decided::Ours(ours)) = &mut self.exchanges[operation as usize][class] else {
            return Ok(false);
        };
        let receive = receive.placed()?;
        let from = send.map_or(Ok(receive), Blocks::placed)?;
        let Exchange { machine, order } = &mut **ours;
        machine.begin(bytes);
        let (rank_of, private) = (rank_of(order.as_deref()), self.private);
        let work = self.memory.work(machine.workspace_bytes())?;
        let first = match operation {
            Collective::AllGather if send.is_none() => self.rank,
            _ => 0,
        };
        let direct = order.is_none() || operation == Collective::AllGather;
        let input = if from.plain && send.is_some() && direct {
            from.data().cast_const()
        } else {
            let staged = self.memory.input(machine.input_bytes())?;
            for i in 0..machine.plan().input_blocks() {
                // SAFETY: the program's blocks, and room for all of them.
                unsafe {
                    let to = staged.add((u64::from(i) * bytes) as usize);
                    from.pack(first + if direct { i } else { rank_of(i) }, to, private)?;
                }
            }
            staged
        };
        let output = if receive.plain && order.is_none() {
            receive.data()
        } else {
            self.memory.output(machine.output_bytes())?
        };
        let memories = Memories { input, output, work };
        // SAFETY: memories of these sizes, which this call has to itself.
        let outcome = unsafe { exchange(machine, memories, private, rank_of, &mut self.requests) };
        if let Err(failed) = outcome {
            self.break_off();
            return Err(failed);
        }
        if output != receive.data() {
            for i in 0..self.ranks {
                // SAFETY: the program's blocks, and all of them in the output.
                unsafe {
                    let block = output.add((u64::from(i) * bytes) as usize);
                    receive.unpack(rank_of(i), block, private)?;
                }
            }
        }
        Ok(true)
    }

    /// Leaves what is to come to the library, and memory to MPI, which may still read and write it.
    fn break_off(&mut self) {
        self.broken = true;
        std::mem::forget(std::mem::take(&mut self.memory));
    }

    /// Whether blocks of unequal sizes are for us to exchange; all ranks get the same answer.
    pub(crate) fn takes_unequal(&mut self) -> Result<bool, Failed> {
        if self.broken {
            return Ok(false);
        }
        if self.unequal.is_none() {
            let straight = match self.decided(Collective::AllToAll, None)? {
                None => None,
                Some(ours) => {
                    let plan = Arc::new(self.plan(&ours, Collective::AllToAll, UNEQUAL_BYTES)?);
                    Some(Straight { plan, order: ours.order })
                }
            };
            self.unequal = Some(straight);
        }
        Ok(self.unequal.as_ref().is_some_and(Option::is_some))
    }

    /// Exchanges blocks of unequal sizes if they are for us and not for the library to refuse.
    ///
    /// # Safety
    /// The buffers have the blocks. `send` is none in place.
    pub(crate) unsafe fn exchange_unequal(
        &mut self,
        send: Option<&Vector>,
        receive: &Vector,
    ) -> Result<bool, Failed> {
        let Some(Some(Straight { plan, order })) = &self.unequal else { return Ok(false) };
        let (memory, requests) = (&mut self.memory, &mut self.requests);
        let order = order.as_deref();
        // SAFETY: the caller's promise.
        let outcome =
            unsafe { exchange_unequal(plan, order, send, receive, self.private, memory, requests) };
        if outcome.is_err() {
            self.break_off();
        }
        outcome
    }

    /// Decides for blocks of 2^class bytes and more, and plans.
    fn decide(&mut self, operation: Collective, class: usize) -> Result<(), Failed> {
        let decided = match self.decided(operation, Some(class))? {
            None => Decided::Library,
            Some(ours) => {
                let plan = self.plan(&ours, operation, 1 << class)?;
                let machine = RankMachine::new(Arc::new(plan), 0);
                Decided::Ours(Box::new(Exchange { machine, order: ours.order }))
            }
        };
        let classes = &mut self.exchanges[operation as usize];
        if classes.len() <= class {
            classes.resize_with(class + 1, || None);
        }
        classes[class] = Some(decided);
        Ok(())
    }

    fn plan(&self, ours: &Ours, operation: Collective, bytes: u64) -> Result<Plan, Failed> {
        let place = ours.order.iter().flatten().position(|&rank| rank == self.rank);
        let rank = place.map_or(self.rank, |place| place as u32);
        ours.plan(operation, bytes, rank).map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))
    }

    /// What the first rank decides for a class of sizes, or for unequal ones, told to all.
    fn decided(&self, operation: Collective, class: Option<usize>) -> Result<Option<Ours>, Failed> {
        let mut text = String::new();
        if self.rank == 0 {
            let ours = self.decision(operation, class);
            text = serde_json::to_string(&(operation.name(), class, ours))
                .expect("bug: a decision that is no text");
        }
        let text = self.told(text)?;
        let (asked, of, ours): (String, Option<usize>, Option<Ours>) =
            serde_json::from_str(&text).map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))?;
        if (asked.as_str(), of) != (operation.name(), class) {
            return Err(Failed(mpi::MPI_ERR_COUNT as c_int));
        }
        Ok(ours)
    }

    /// The first rank's decision.
    fn decision(&self, operation: Collective, class: Option<usize>) -> Option<Ours> {
        let settings = settings();
        let bytes = class.map_or(UNEQUAL_BYTES, |class| 1 << class);
        let wish = settings.wish(operation);
        let mut decision = decide(&self.places, wish, Library::loaded(), operation, bytes);
        let serves = decision.ours.as_ref().map(|ours| {
            let plan = Arc::new(ours.plan(operation, bytes, 0)?);
            if class.is_none() { straight(&plan) } else { Ok(()) }
        });
        if let Some(Err(error)) = serves {
            decision.ours = None;
            decision.reason = format!("forwarded, {error}");
        }
        if let Some(warning) = decision.warning
            && world().0 == 0
        {
            once(&warning);
        }
        if settings.trace {
            let (name, ranks, reason) = (&self.name, self.ranks, decision.reason);
            let sizes = match class {
                Some(_) => format!("of {bytes} to {} B", 2 * bytes - 1),
                None => "of unequal blocks".to_owned(),
            };
            say(&format!("{name}, {ranks} ranks, {operation} {sizes}: {reason}"));
        }
        decision.ours
    }
}

/// What blocks of unequal sizes are predicted with.
const UNEQUAL_BYTES: u64 = 1 << 16;

/// Numbers the ranks of a schedule as the communicator does.
pub(crate) fn rank_of(order: Option<&[u32]>) -> impl Fn(u32) -> u32 + Copy {
    move |rank| order.map_or(rank, |order| order[rank as usize])
}

/// Says a warning unless it is the same as before.
fn once(warning: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = locked(&SAID);
    if said.iter().all(|known| known != warning) {
        say(&format!("warning: TOPOCOLL_ALGORITHM: {warning}"));
        said.push(warning.to_owned());
    }
}

/// Memory of so many bytes, kept for the next exchange.
fn room(memory: &mut Vec<u8>, bytes: u128) -> Result<*mut u8, Failed> {
    let refused = Failed(mpi::MPI_ERR_NO_MEM as c_int);
    let bytes = usize::try_from(bytes).map_err(|_| refused)?;
    if memory.len() < bytes {
        memory.try_reserve_exact(bytes - memory.len()).map_err(|_| refused)?;
        memory.resize(bytes, 0);
    }
    Ok(memory.as_mut_ptr())
}

/// The grid of a Cartesian communicator.
fn grid(comm: mpi::MPI_Comm) -> Result<Option<Grid>, Failed> {
    let (mut kind, mut count) = (0, 0);
    // SAFETY: places for the answers, as many as dimensions.
    unsafe {
        check(mpi::PMPI_Topo_test(comm, &raw mut kind))?;
        if kind != mpi::RSMPI_CART {
            return Ok(None);
        }
        check(mpi::PMPI_Cartdim_get(comm, &raw mut count))?;
        let [mut sides, mut wraps, mut own] = [(); 3].map(|()| vec![0; count as usize]);
        let to = (sides.as_mut_ptr(), wraps.as_mut_ptr(), own.as_mut_ptr());
        check(mpi::PMPI_Cart_get(comm, count, to.0, to.1, to.2))?;
        let sides: Vec<u32> = sides.iter().map(|&side: &c_int| side as u32).collect();
        let wraps: Vec<bool> = wraps.iter().map(|&wraps: &c_int| wraps != 0).collect();
        // More dimensions than are known here are taken for none.
        Ok(Grid::new(&sides, &wraps).ok())
    }
}
