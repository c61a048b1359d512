//! The state of a communicator: who its ranks are, what is decided, and exchanges by it.

use std::ffi::{CStr, OsString, c_int};
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use mpi_sys as mpi;
use topocoll::exec::{Plan, RankMachine};
use topocoll::{Collective, Grid};

use super::attribute::locked;
use super::blocks::Blocks;
use super::decision::{Ours, decide};
use super::library::Library;
use super::memory::Memory;
use super::place::{Known, Place, places};
use super::settings::Settings;
use super::unequal::{Sizes, Vector, exchange_unequal, serves};
use crate::engine::{Memories, Requests, exchange};
use crate::failed::{Failed, check};
use crate::words::Words;

/// The state of one communicator of the program.
pub(crate) struct Communicator {
    /// The same ranks, for our messages alone.
    private: mpi::MPI_Comm,
    words: Words,
    rank: u32,
    ranks: u32,
    name: String,
    /// Of the first rank, who decides.
    places: Vec<Place>,
    /// By operation and class of sizes.
    exchanges: [Vec<Option<Decided>>; 2],
    /// What exchanges of blocks of unequal sizes are done by; none for the library.
    unequal: Vec<(Collective, Sizes, Option<Served>)>,
    memory: Memory,
    requests: Requests,
    /// Whether an exchange has failed, so that others may have left.
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

struct Served {
    plan: Arc<Plan>,
    order: Option<Vec<u32>>,
}

// SAFETY: handles of MPI, which any thread may use, one at a time; the mutex sees to that.
unsafe impl Send for Communicator {}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once. What is still under way of a broken exchange MPI keeps.
        unsafe { mpi::PMPI_Comm_free(&raw mut self.private) };
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Says something on this process's standard error, if it has one.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "topocoll: {text}");
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
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let (settings, warnings) = Settings::read(variables, ranks);
        if rank == 0 {
            warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
        settings
    })
}

impl Communicator {
    /// Called by all ranks of a communicator; none if it is left to the library.
    pub(crate) fn new(comm: mpi::MPI_Comm) -> Result<Option<Self>, Failed> {
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
            words: Words::new(private, rank as u32, ranks as u32),
            rank: rank as u32,
            ranks: ranks as u32,
            name: if name.is_empty() { "a communicator".to_owned() } else { name.into_owned() },
            places: Vec::new(),
            exchanges: Default::default(),
            unequal: Vec::new(),
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

    /// Whether all ranks say yes.
    fn agreed(&self, own: bool) -> Result<bool, Failed> {
        let (own, mut all) = (i32::from(own), 0i32);
        // SAFETY: all ranks call it, each with a number and a place for the answer.
        check(unsafe {
            let (from, to) = ((&raw const own).cast(), (&raw mut all).cast());
            let (int, least) = (mpi::RSMPI_INT32_T, mpi::RSMPI_MIN);
            mpi::PMPI_Allreduce(from, to, 1, int, least, self.private)
        })?;
        Ok(all != 0)
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
        let most = c_int::MAX as u64;
        if receive.bytes == 0
            || self.broken
            || receive.bytes.saturating_mul(self.ranks.into()) > most
        {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.exchange_equal(operation, send, receive) };
        self.unbroken(outcome)
    }

    /// # Safety
    /// The same.
    unsafe fn exchange_equal(
        &mut self,
        operation: Collective,
        send: Option<Blocks>,
        receive: Blocks,
    ) -> Result<bool, Failed> {
        let bytes = receive.bytes;
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
        unsafe { exchange(machine, memories, &mut self.words, rank_of, &mut self.requests)? };
        if output != receive.data() {
            for i in 0..self.ranks {
                // SAFETY: the program's blocks, and all of them in the output.
                unsafe {
                    let block = output.add((u64::from(i) * bytes) as usize);
                    receive.unpack(rank_of(i), block, private)?;
                }
            }
        }
        self.memory.trim();
        Ok(true)
    }

    /// Of a failure, tells all other ranks, and leaves what is to come to the library.
    fn unbroken<T>(&mut self, outcome: Result<T, Failed>) -> Result<T, Failed> {
        if let Err(failed) = outcome {
            self.broken = true;
            if !self.requests.give_up(&mut self.words, failed) {
                std::mem::forget(std::mem::take(&mut self.memory));
            }
        }
        outcome
    }

    /// Exchanges blocks of unequal sizes if that is for us to do; all ranks get the same answer.
    ///
    /// # Safety
    /// The buffers have the blocks. `send` is none in place.
    pub(crate) unsafe fn exchange_unequal(
        &mut self,
        send: Option<Vector>,
        receive: Vector,
    ) -> Result<bool, Failed> {
        // SAFETY: the caller's promise.
        unsafe { self.exchange_by(Collective::AllToAll, Sizes::Own, send, receive) }
    }

    /// Gathers blocks of unequal sizes, which all ranks know, if that is for us to do; all ranks get
    /// the same answer.
    ///
    /// # Safety
    /// The buffers have the blocks: one to send, none in place.
    pub(crate) unsafe fn gather_unequal(
        &mut self,
        send: Option<Vector>,
        receive: Vector,
    ) -> Result<bool, Failed> {
        let sizes = receive.sizes();
        let all = sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size));
        if all.is_none_or(|all| all == 0 || all > c_int::MAX as u64) {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        unsafe { self.exchange_by(Collective::AllGather, Sizes::known(&sizes), send, receive) }
    }

    /// # Safety
    /// The buffers have the blocks.
    unsafe fn exchange_by(
        &mut self,
        operation: Collective,
        sizes: Sizes,
        send: Option<Vector>,
        receive: Vector,
    ) -> Result<bool, Failed> {
        let Some(at) = self.served(operation, sizes)? else { return Ok(false) };
        let Some(Served { plan, order }) = &self.unequal[at].2 else { return Ok(false) };
        let (words, memory, requests) = (&mut self.words, &mut self.memory, &mut self.requests);
        let order = order.as_deref();
        // SAFETY: the caller's promise.
        let outcome =
            unsafe { exchange_unequal(plan, order, send, receive, words, memory, requests) };
        self.unbroken(outcome)?;
        self.memory.trim();
        Ok(true)
    }

    /// Whether an all-to-all of blocks of unequal sizes is for us to do; all ranks get the same answer.
    pub(crate) fn takes_unequal(&mut self) -> Result<bool, Failed> {
        let at = self.served(Collective::AllToAll, Sizes::Own)?;
        Ok(at.is_some_and(|at| self.unequal[at].2.is_some()))
    }

    /// Where it stands what blocks of unequal sizes are exchanged by; none if that is the library.
    fn served(&mut self, operation: Collective, sizes: Sizes) -> Result<Option<usize>, Failed> {
        if self.broken {
            return Ok(None);
        }
        let same = |known: &(_, _, _)| (known.0, known.1) == (operation, sizes);
        let known = self.unequal.iter().position(same);
        if known.is_some() {
            return Ok(known);
        }
        let served = self.newly_served(operation, sizes);
        let served = self.unbroken(served)?;
        self.unequal.push((operation, sizes, served));
        Ok(Some(self.unequal.len() - 1))
    }

    /// Decides, and plans.
    fn newly_served(
        &mut self,
        operation: Collective,
        sizes: Sizes,
    ) -> Result<Option<Served>, Failed> {
        Ok(match self.decided(operation, sizes)? {
            None => None,
            Some(ours) => {
                let plan = Arc::new(self.plan(&ours, operation, sizes.bytes())?);
                let refused = serves(&plan).err();
                let all = self.agreed(refused.is_none())?;
                if !all && self.rank == 0 {
                    let other = || "the plan of another rank does not serve".to_owned();
                    let reason = refused.map_or_else(other, |error| error.to_string());
                    self.trace(operation, sizes, &format!("forwarded, {reason}"));
                }
                all.then_some(Served { plan, order: ours.order })
            }
        })
    }

    /// Decides for blocks of 2^class bytes and more, and plans.
    fn decide(&mut self, operation: Collective, class: usize) -> Result<(), Failed> {
        let decided = match self.decided(operation, Sizes::Equal(class))? {
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

    /// What the first rank decides for blocks of such sizes, told to all.
    ///
    /// # Errors
    /// MPI's, or ranks that are not about to decide about the same.
    fn decided(&mut self, operation: Collective, sizes: Sizes) -> Result<Option<Ours>, Failed> {
        self.words.agree(sizes.number() << 1 | operation as u64)?;
        let mut text = String::new();
        if self.rank == 0 {
            let ours = self.decision(operation, sizes);
            text = serde_json::to_string(&ours).expect("bug: a decision that is no text");
        }
        let text = self.told(text)?;
        serde_json::from_str(&text).map_err(|_| Failed(mpi::MPI_ERR_INTERN as c_int))
    }

    /// The first rank's decision.
    fn decision(&self, operation: Collective, sizes: Sizes) -> Option<Ours> {
        let settings = settings();
        let wish = settings.wish(operation);
        let mut decision = decide(&self.places, wish, Library::loaded(), operation, sizes);
        let bytes = sizes.bytes();
        if let Some(Err(error)) = decision.ours.as_ref().map(|ours| ours.plan(operation, bytes, 0))
        {
            decision.ours = None;
            decision.reason = format!("forwarded, {error}");
        }
        if let Some(warning) = decision.warning
            && world().0 == 0
        {
            once(&warning);
        }
        self.trace(operation, sizes, &decision.reason);
        decision.ours
    }

    /// Says what is done and why, if that is asked for.
    fn trace(&self, operation: Collective, sizes: Sizes, reason: &str) {
        if settings().trace {
            let (name, ranks) = (&self.name, self.ranks);
            say(&format!("{name}, {ranks} ranks, {operation} {sizes}: {reason}"));
        }
    }
}

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
