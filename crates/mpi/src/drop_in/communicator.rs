//! The state of a communicator: its ranks, its decisions, and exchanges that follow them.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString, c_int};
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use mpi_sys as mpi;
use topocoll::exec::{Endpoint, RawBuffers};
use topocoll::{Collective, Grid};

use super::attribute::locked;
use super::blocks::Blocks;
use super::decision::{Ours, decide};
use super::library::Library;
use super::memory::Memory;
use super::place::{Known, Place, places};
use super::settings::Settings;
use super::vector::{Sizes, Vector, exchange_vector, serves};
use crate::engine::{Requests, exchange};
use crate::failed::{Failed, check};
use crate::protocol::Ask;
use crate::words::{Agreed, Decides, Words};

/// The state of one communicator of the program.
pub(crate) struct Communicator {
    /// A communicator of the same ranks, for our messages only.
    words: Words,
    rank: u32,
    ranks: u32,
    name: String,
    /// Only on the first rank, which decides.
    places: Vec<Place>,
    /// By a subject's number; `None` for the library's call. The same on all ranks.
    decided: BTreeMap<u64, Option<Exchange>>,
    memory: Memory,
    requests: Requests,
}

/// The subject of one decision.
#[derive(Clone, Copy)]
struct Subject {
    operation: Collective,
    /// Whether blocks may differ in size.
    vector: bool,
    sizes: Sizes,
}

struct Exchange {
    endpoint: Endpoint,
    order: Option<Vec<u32>>,
}

/// Who performs a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// An exchange of ours.
    Ours,
    /// The library; `always` if it performs all equal calls.
    Library { always: bool },
}

// SAFETY: handles of MPI, which any thread may use, one at a time, as the mutex ensures.
unsafe impl Send for Communicator {}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.words.free();
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Prints a line on this process's standard error; a closed one is ignored.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "topocoll: {}", topocoll::text::message(text));
}

/// The rank in `MPI_COMM_WORLD`, and the number of ranks there.
fn world() -> (u32, u32) {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: MPI is initialized.
    unsafe {
        mpi::PMPI_Comm_rank(mpi::RSMPI_COMM_WORLD, &raw mut rank);
        mpi::PMPI_Comm_size(mpi::RSMPI_COMM_WORLD, &raw mut ranks);
    }
    (rank as u32, ranks as u32)
}

/// The settings of the environment, read once by each process that decides.
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
    /// Called by all ranks of a communicator; `None` if the library performs all its calls.
    pub(crate) fn new(comm: mpi::MPI_Comm) -> Result<Option<Self>, Failed> {
        let (mut inter, mut rank, mut ranks) = (0, 0, 0);
        let mut name = [0u8; mpi::MPI_MAX_OBJECT_NAME as usize + 1];
        let mut length: c_int = 0;
        // SAFETY: a communicator, because its attribute was readable; places for the answers.
        unsafe {
            check(mpi::PMPI_Comm_test_inter(comm, &raw mut inter))?;
            check(mpi::PMPI_Comm_rank(comm, &raw mut rank))?;
            check(mpi::PMPI_Comm_size(comm, &raw mut ranks))?;
            check(mpi::PMPI_Comm_get_name(comm, name.as_mut_ptr().cast(), &raw mut length))?;
        }
        if inter != 0 || ranks < 2 {
            return Ok(None);
        }
        // SAFETY: all ranks of the communicator make the same call.
        let private = unsafe {
            let mut private = mpi::RSMPI_COMM_NULL;
            check(mpi::PMPI_Comm_split(comm, 0, rank, &raw mut private))?;
            check(mpi::PMPI_Comm_set_errhandler(private, mpi::RSMPI_ERRORS_RETURN))?;
            private
        };
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
        let mut made = Self {
            words: Words::new(private, rank as u32, ranks as u32),
            rank: rank as u32,
            ranks: ranks as u32,
            name: if name.is_empty() { "a communicator".to_owned() } else { name.into_owned() },
            places: Vec::new(),
            decided: BTreeMap::new(),
            memory: Memory::default(),
            requests: Requests::default(),
        };
        let nodes = made.gathered(made.node()?)?;
        let world = made.gathered(world().0)?;
        if made.rank == 0 {
            let (grid, given) = (grid(comm)?, settings().machine.as_ref());
            made.places = places(&Known { nodes: &nodes, grid, world: &world, given });
        }
        Ok(Some(made))
    }

    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The private communicator of our messages.
    pub(crate) fn comm(&self) -> mpi::MPI_Comm {
        self.words.comm()
    }

    /// The lowest rank that shares memory with this one.
    fn node(&self) -> Result<u32, Failed> {
        let (own, mut lowest) = (self.rank as c_int, 0);
        // SAFETY: all ranks call it; the communicator is freed before the end.
        unsafe {
            let mut node = mpi::RSMPI_COMM_NULL;
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            check(mpi::PMPI_Comm_split_type(self.comm(), shared, own, info, &raw mut node))?;
            let (int, least) = (mpi::RSMPI_INT32_T, mpi::RSMPI_MIN);
            let (from, to) = ((&raw const own).cast(), (&raw mut lowest).cast());
            check(mpi::PMPI_Allreduce(from, to, 1, int, least, node))?;
            check(mpi::PMPI_Comm_free(&raw mut node))?;
        }
        Ok(lowest as u32)
    }

    /// The values of all ranks, on the first.
    fn gathered(&self, own: u32) -> Result<Vec<u32>, Failed> {
        let mut all = vec![0u32; if self.rank == 0 { self.ranks as usize } else { 0 }];
        // SAFETY: all ranks call it, and the first has room for all.
        check(unsafe {
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            let word = mpi::RSMPI_UINT32_T;
            mpi::PMPI_Gather(from, 1, word, to, 1, word, 0, self.comm())
        })?;
        Ok(all)
    }

    /// Exchanges blocks if the decision is ours. `taken` tells whether the library accepts the
    /// arguments.
    ///
    /// # Errors
    /// MPI's error code.
    ///
    /// # Safety
    /// If the library accepts the arguments, the buffers have the blocks: one for each rank, and in
    /// an all-gather one to send. In place, there are no blocks to send. If the arguments do not
    /// give the sizes of blocks, `blocks` is `None`.
    pub(crate) unsafe fn exchange(
        &mut self,
        operation: Collective,
        blocks: Option<(Option<Blocks>, Blocks)>,
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let sizes = match blocks {
            Some((send, receive)) if send.is_none_or(|send| send.bytes == receive.bytes) => {
                Sizes::equal(receive.bytes, self.ranks)
            }
            _ => Sizes::Unknown,
        };
        let subject = Subject { operation, vector: false, sizes };
        let done = self.agreed(subject, taken)?;
        let (Done::Ours, Some((send, receive))) = (done, blocks) else { return Ok(done) };
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.exchange_equal(subject, send, receive) };
        self.ended(outcome)?;
        Ok(done)
    }

    /// # Safety
    /// The buffers have the blocks.
    unsafe fn exchange_equal(
        &mut self,
        subject: Subject,
        send: Option<Blocks>,
        receive: Blocks,
    ) -> Result<(), Failed> {
        let (bytes, operation) = (receive.bytes, subject.operation);
        let Some(Some(Exchange { endpoint, order })) = self.decided.get_mut(&subject.number())
        else {
            return Err(UNDECIDED);
        };
        let receive = receive.placed()?;
        let from = send.map_or(Ok(receive), Blocks::placed)?;
        endpoint.begin(bytes);
        let (rank_of, private) = (rank_of(order.as_deref()), self.words.comm());
        let work = self.memory.work(endpoint.workspace_bytes())?;
        let first = match operation {
            Collective::AllGather if send.is_none() => self.rank,
            _ => 0,
        };
        let direct = order.is_none() || operation == Collective::AllGather;
        let input = if from.plain && send.is_some() && direct {
            from.data().cast_const()
        } else {
            let staged = self.memory.input(endpoint.input_bytes())?;
            for i in 0..endpoint.plan().input_blocks() {
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
            self.memory.output(endpoint.output_bytes())?
        };
        let buffers = RawBuffers { input, output, work };
        // SAFETY: memories of these sizes, which only this call uses.
        unsafe { exchange(endpoint, buffers, &mut self.words, rank_of, &mut self.requests)? };
        if output != receive.data() {
            for i in 0..self.ranks {
                // SAFETY: the program's blocks, and all of them in the output.
                unsafe {
                    let block = output.add((u64::from(i) * bytes) as usize);
                    receive.unpack(rank_of(i), block, private)?;
                }
            }
        }
        Ok(())
    }

    /// Exchanges blocks of several sizes if the decision is ours. An all-to-all uses the rank's own
    /// counts; an all-gather uses counts that all ranks know.
    ///
    /// # Errors
    /// MPI's error code.
    ///
    /// # Safety
    /// As [`Communicator::exchange`].
    pub(crate) unsafe fn exchange_vector(
        &mut self,
        operation: Collective,
        blocks: Option<(Option<Vector>, Vector)>,
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let sizes = match (operation, &blocks) {
            (_, None) => Sizes::Unknown,
            (Collective::AllToAll, Some(_)) => Sizes::Own,
            (Collective::AllGather, Some((_, receive))) => Sizes::known(&receive.sizes()),
        };
        let subject = Subject { operation, vector: true, sizes };
        let done = self.agreed(subject, taken)?;
        let (Done::Ours, Some((send, receive))) = (done, blocks) else { return Ok(done) };
        let outcome = match self.decided.get(&subject.number()) {
            Some(Some(Exchange { endpoint, order })) => {
                let (words, memory) = (&mut self.words, &mut self.memory);
                let (plan, order, requests) =
                    (endpoint.plan(), order.as_deref(), &mut self.requests);
                // SAFETY: the caller's promise.
                unsafe { exchange_vector(plan, order, send, receive, words, memory, requests) }
            }
            _ => Err(UNDECIDED),
        };
        self.ended(outcome)?;
        Ok(done)
    }

    /// Whether the library performs all all-to-alls of blocks of several sizes.
    pub(crate) fn forwards_vector(&self) -> bool {
        let (operation, vector, sizes) = (Collective::AllToAll, true, Sizes::Own);
        let decided = self.decided.get(&Subject { operation, vector, sizes }.number());
        self.words.is_lost() || matches!(decided, Some(None))
    }

    /// Agrees with all ranks on who performs a call, if that is not decided.
    fn agreed(
        &mut self,
        subject: Subject,
        taken: impl FnOnce(&Self) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        let known = self.decided.get(&subject.number()).map(Option::is_some);
        if self.words.is_lost() || known == Some(false) {
            return Ok(Done::Library { always: true });
        }
        let taken = taken(self);
        // If the library performs all calls, other ranks are in its call already.
        let forwards = !self.decided.is_empty() && self.decided.values().all(Option::is_none);
        if forwards && (taken.is_err() || subject.sizes == Sizes::Unknown) {
            return Ok(Done::Library { always: false });
        }
        let ask = match taken {
            Err(failed) => Ask::Refused(failed),
            Ok(()) if subject.sizes == Sizes::Unknown => Ask::Library(subject.number()),
            Ok(()) if known.is_some() => Ask::Known,
            Ok(()) => Ask::About(subject.number()),
        };
        let mut deciding = Deciding {
            subject,
            places: &self.places,
            name: &self.name,
            rank: self.rank,
            ranks: self.ranks,
            exchange: None,
            refused: None,
        };
        let agreed = self.words.call(ask, &mut deciding);
        let Deciding { exchange, refused, .. } = deciding;
        if let Ok(Agreed::Library) = agreed
            && self.rank == 0
            && (exchange.is_some() || refused.is_some())
        {
            let other = || "another rank has no plan".to_owned();
            let reason = refused.map_or_else(other, |error| error.to_string());
            trace(&self.name, self.ranks, subject, &format!("forwarded, {reason}"));
        }
        let agreed = self.ended(agreed)?;
        let decides = matches!(ask, Ask::About(_)) && !self.words.is_broken();
        if decides {
            let ours = exchange.filter(|_| agreed == Agreed::Exchange);
            self.decided.insert(subject.number(), ours);
        }
        Ok(match agreed {
            Agreed::Exchange => Done::Ours,
            Agreed::Library => Done::Library { always: decides || self.words.is_lost() },
        })
    }

    /// After an error, tells all other ranks, and abandons the messages under way.
    fn ended<T>(&mut self, outcome: Result<T, Failed>) -> Result<T, Failed> {
        if let Err(failed) = outcome
            && !self.requests.give_up(&mut self.words, failed)
        {
            std::mem::forget(std::mem::take(&mut self.memory));
        }
        self.memory.trim();
        outcome
    }
}

/// Agreement on a subject decides it.
const UNDECIDED: Failed = Failed(mpi::MPI_ERR_INTERN as c_int);

impl Subject {
    /// A number for each.
    fn number(self) -> u64 {
        self.sizes.number() << 2 | u64::from(self.vector) << 1 | self.operation as u64
    }
}

/// A call in which the first rank decides about a subject.
struct Deciding<'a> {
    subject: Subject,
    places: &'a [Place],
    name: &'a str,
    rank: u32,
    ranks: u32,
    /// This rank's plan.
    exchange: Option<Exchange>,
    /// The reason for a missing plan.
    refused: Option<topocoll::Error>,
}

impl Decides for Deciding<'_> {
    fn decide(&mut self) -> String {
        let Subject { operation, sizes, .. } = self.subject;
        let wish = settings().wish(operation);
        let mut decision = decide(self.places, wish, Library::loaded(), operation, sizes);
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
        trace(self.name, self.ranks, self.subject, &decision.reason);
        serde_json::to_string(&decision.ours).expect("bug: a decision that is not text")
    }

    fn plan(&mut self, text: &[u8]) -> Result<Option<bool>, Failed> {
        let ours: Option<Ours> = serde_json::from_slice(text).map_err(|_| UNDECIDED)?;
        let Some(ours) = ours else { return Ok(None) };
        let place = ours.order.iter().flatten().position(|&rank| rank == self.rank);
        let rank = place.map_or(self.rank, |place| place as u32);
        let Subject { operation, vector, sizes } = self.subject;
        let plan = ours.plan(operation, sizes.bytes(), rank).map(Arc::new);
        let served =
            plan.and_then(|plan| if vector { serves(&plan).map(|()| plan) } else { Ok(plan) });
        match served {
            Ok(plan) => {
                self.exchange =
                    Some(Exchange { endpoint: Endpoint::new(plan, 0u64), order: ours.order });
            }
            Err(error) => self.refused = Some(error),
        }
        Ok(Some(self.exchange.is_some()))
    }
}

/// With tracing, prints the decision and its reason.
fn trace(name: &str, ranks: u32, Subject { operation, sizes, .. }: Subject, reason: &str) {
    if settings().trace {
        say(&format!("{name}, {ranks} ranks, {operation} {sizes}: {reason}"));
    }
}

/// Numbers the ranks of a schedule as the communicator does.
pub(crate) fn rank_of(order: Option<&[u32]>) -> impl Fn(u32) -> u32 + Copy {
    move |rank| order.map_or(rank, |order| order[rank as usize])
}

/// Prints a warning unless it equals the previous one.
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
        // A grid of more dimensions than supported is ignored.
        Ok(Grid::new(&sides, &wraps).ok())
    }
}
