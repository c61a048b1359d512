//! Ranks that measure together.

use std::ffi::c_int;

use mpi_sys as mpi;
use topocoll::{
    Collective, Fit, Machine, Parameters, Problem, fit_processes, injection_of, machine, samples,
};
use topocoll_mpi::Exchange;

use crate::{BLOCKS, LARGEST, LEAST, MOST, Outcome};

/// Ranks that measure together.
pub(crate) struct Group {
    pub(crate) comm: mpi::MPI_Comm,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

impl Group {
    pub(crate) fn world() -> Self {
        // SAFETY: MPI is initialized.
        Self::of(unsafe { mpi::RSMPI_COMM_WORLD })
    }

    pub(crate) fn of(comm: mpi::MPI_Comm) -> Self {
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: a communicator, and places for the answers.
        unsafe {
            mpi::PMPI_Comm_rank(comm, &raw mut rank);
            mpi::PMPI_Comm_size(comm, &raw mut ranks);
        }
        Self { comm, rank: rank as u32, ranks: ranks as u32 }
    }

    /// The ranks of this rank's colour. All ranks call it.
    pub(crate) fn split(&self, colour: u32) -> Self {
        // SAFETY: all ranks of the communicator call it.
        unsafe {
            let mut part = mpi::RSMPI_COMM_NULL;
            mpi::PMPI_Comm_split(self.comm, colour as c_int, self.rank as c_int, &raw mut part);
            Self::of(part)
        }
    }

    /// By rank, the lowest rank of those that share memory with it.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        let (mut own, mut all) = (self.rank, vec![0u32; self.ranks as usize]);
        // SAFETY: all ranks call it; room for all; the communicator is freed.
        unsafe {
            let mut node = mpi::RSMPI_COMM_NULL;
            let (shared, info) = (mpi::RSMPI_COMM_TYPE_SHARED, mpi::RSMPI_INFO_NULL);
            let word = mpi::RSMPI_UINT32_T;
            mpi::PMPI_Comm_split_type(self.comm, shared, own as c_int, info, &raw mut node);
            mpi::PMPI_Bcast((&raw mut own).cast(), 1, word, 0, node);
            mpi::PMPI_Comm_free(&raw mut node);
            let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
            mpi::PMPI_Allgather(from, 1, word, to, 1, word, self.comm);
        }
        all
    }

    /// By rank, the name of its host.
    pub(crate) fn hosts(&self) -> Vec<String> {
        /// At least as long as any MPI's name.
        const LONGEST: usize = 256;
        let (mut own, mut all) = ([0u8; LONGEST], vec![0u8; LONGEST * self.ranks as usize]);
        // SAFETY: all ranks call it; room for a name, and for those of all.
        unsafe {
            let (mut length, byte) = (0, mpi::RSMPI_UINT8_T);
            mpi::PMPI_Get_processor_name(own.as_mut_ptr().cast(), &raw mut length);
            let (from, to, count) =
                (own.as_ptr().cast(), all.as_mut_ptr().cast(), LONGEST as c_int);
            mpi::PMPI_Allgather(from, count, byte, to, count, byte, self.comm);
        }
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        all.chunks(LONGEST).map(name).collect()
    }

    /// The library's call, of buffers with as many blocks as the operation has.
    pub(crate) fn library(
        &self,
        operation: Collective,
        input: &[u8],
        output: &mut [u8],
    ) -> Outcome<()> {
        let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
        let count = (output.len() / self.ranks as usize) as c_int;
        // SAFETY: buffers of a block for each rank, or one to send, and all ranks call it.
        let code = unsafe {
            let byte = mpi::RSMPI_UINT8_T;
            match operation {
                Collective::AllToAll => {
                    mpi::PMPI_Alltoall(from, count, byte, to, count, byte, self.comm)
                }
                Collective::AllGather => {
                    mpi::PMPI_Allgather(from, count, byte, to, count, byte, self.comm)
                }
            }
        };
        if code == 0 { Ok(()) } else { Err(format!("{operation}: MPI's error {code}").into()) }
    }

    /// The largest value of all ranks.
    pub(crate) fn most(&self, own: f64) -> f64 {
        let mut most = 0.0f64;
        // SAFETY: all ranks call it, each with a number and a place for the answer.
        unsafe {
            let (from, to) = ((&raw const own).cast(), (&raw mut most).cast());
            mpi::PMPI_Allreduce(from, to, 1, mpi::RSMPI_DOUBLE, mpi::RSMPI_MAX, self.comm);
        }
        most
    }

    /// The mean seconds of `times` runs, on the slowest rank.
    pub(crate) fn seconds(&self, times: u32, mut run: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        // SAFETY: all ranks call it.
        let begin = unsafe {
            mpi::PMPI_Barrier(self.comm);
            mpi::PMPI_Wtime()
        };
        for _ in 0..times {
            run()?;
        }
        // SAFETY: MPI is initialized.
        let own = unsafe { mpi::PMPI_Wtime() } - begin;
        Ok(self.most(own) / f64::from(times))
    }

    /// The mean seconds of runs that take long enough together.
    pub(crate) fn mean(&self, mut run: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        let once = self.seconds(1, &mut run)?;
        let times = (LEAST / once.max(1e-7)).ceil().max(1.0) as u32;
        self.seconds(times, run)
    }

    /// By schedule, the least time of several rounds, each with one exchange of each schedule.
    fn quickest(
        &self,
        exchanges: &mut [Exchange],
        block_bytes: u64,
        rounds: usize,
    ) -> Outcome<Vec<f64>> {
        let bytes = u64::from(self.ranks) * block_bytes;
        let (input, mut output) = (vec![1; bytes as usize], vec![0; bytes as usize]);
        let mut least = vec![f64::INFINITY; exchanges.len()];
        for _ in 0..rounds {
            for (exchange, least) in exchanges.iter_mut().zip(&mut least) {
                let run = || Ok(exchange.exchange(block_bytes, &input, &mut output)?);
                *least = least.min(self.mean(run)?);
            }
        }
        Ok(least)
    }

    /// Measures every all-to-all of a complete graph with these ports, and fits the terms.
    /// Inter-node fits have no copy terms, which a few nodes cannot separate from message terms.
    pub(crate) fn fitted(&self, ports: u32, rounds: usize, inside: bool) -> Outcome<Fit> {
        let machine = self.complete(ports)?;
        let mut all = Vec::new();
        for block_bytes in BLOCKS {
            if u64::from(self.ranks) * block_bytes > LARGEST {
                break;
            }
            let (mut counted, mut exchanges) = (Vec::new(), Vec::new());
            for (sample, schedule) in samples(&machine, block_bytes, self.ranks)? {
                // SAFETY: all ranks of the group call this; dropped before MPI is finalized.
                exchanges.push(unsafe { Exchange::new(self.comm, &schedule)? });
                counted.push(sample);
            }
            let least = self.quickest(&mut exchanges, block_bytes, rounds)?;
            for (sample, seconds) in counted.iter_mut().zip(least) {
                sample.seconds = seconds;
                sample.copied_bytes *= u128::from(inside);
            }
            all.append(&mut counted);
        }
        Ok(fit_processes(&all))
    }

    /// Seconds in which the first rank injects a byte, where a byte on a link takes `per_byte`: 0 if
    /// only its ports limit it.
    pub(crate) fn injection(&self, ports: u32, per_byte: f64, rounds: usize) -> Outcome<f64> {
        let peers = ports.min(self.ranks - 1);
        if peers < 2 {
            return Ok(0.0);
        }
        let bytes = (MOST / u64::from(peers)).clamp(1 << 16, LARGEST) as usize;
        let held = if self.rank == 0 { peers as usize } else { 1 };
        let mut slowest = 0.0f64;
        for receives in [false, true] {
            let mut memories = vec![vec![1u8; bytes]; held];
            let mut seconds = [Vec::new(), Vec::new()];
            for _ in 0..rounds {
                for (at_once, seconds) in [false, true].into_iter().zip(&mut seconds) {
                    let run = || self.long_messages(peers, receives, at_once, &mut memories);
                    seconds.push(self.mean(run)?);
                }
            }
            let [in_turn, at_once] = seconds;
            slowest = slowest.max(injection_of(peers, per_byte, &in_turn, &at_once));
        }
        Ok(slowest)
    }

    /// Messages between the first rank and `peers` others, at once or one after the other. The first
    /// rank has a memory for each, the others have one.
    fn long_messages(
        &self,
        peers: u32,
        receives: bool,
        at_once: bool,
        memories: &mut [Vec<u8>],
    ) -> Outcome<()> {
        let mut open = Vec::with_capacity(memories.len());
        let others = match self.rank {
            0 => 1..peers + 1,
            rank => 0..u32::from(rank <= peers),
        };
        for (other, memory) in others.zip(memories) {
            let (count, other) = (memory.len() as c_int, other as c_int);
            let (at, comm) = (memory.as_mut_ptr().cast(), self.comm);
            // SAFETY: the memory has `count` bytes and outlives the message, which ends below.
            let (code, request) = unsafe {
                let (mut request, byte) = (mpi::RSMPI_REQUEST_NULL, mpi::RSMPI_UINT8_T);
                let code = match (self.rank == 0) == receives {
                    true => mpi::PMPI_Irecv(at, count, byte, other, 0, comm, &raw mut request),
                    false => mpi::PMPI_Isend(at, count, byte, other, 0, comm, &raw mut request),
                };
                (code, request)
            };
            ended(code)?;
            open.push(request);
            if !at_once {
                wait(&mut open)?;
            }
        }
        wait(&mut open)
    }

    fn complete(&self, ports: u32) -> Outcome<Machine> {
        let mut machine = machine(&format!("full:{}", self.ranks))?;
        machine.set_ports(ports);
        Ok(machine)
    }

    /// Seconds of a direct exchange with `ports`.
    pub(crate) fn direct(&self, ports: u32, block_bytes: u64, rounds: usize) -> Outcome<f64> {
        let machine = self.complete(ports)?;
        let problem = Problem::new(Collective::AllToAll, self.ranks, machine.ports, block_bytes)?;
        let schedule =
            topocoll::Exchange::new(&machine, &problem)?.schedule("direct", &Parameters::new())?;
        // SAFETY: as above.
        let exchange = unsafe { Exchange::new(self.comm, &schedule)? };
        Ok(self.quickest(&mut [exchange], block_bytes, rounds)?[0])
    }
}

/// Ends messages.
fn wait(open: &mut Vec<mpi::MPI_Request>) -> Outcome<()> {
    // SAFETY: a status is plain numbers; two arrays of one length.
    let code = unsafe {
        let mut statuses = vec![std::mem::zeroed::<mpi::MPI_Status>(); open.len()];
        mpi::PMPI_Waitall(open.len() as c_int, open.as_mut_ptr(), statuses.as_mut_ptr())
    };
    open.clear();
    ended(code)
}

fn ended(code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(format!("a message: MPI's error {code}").into()) }
}
