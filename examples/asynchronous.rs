//! Asynchronous exchanges with tokio, one after another: six tasks, each a rank, over TCP connections to all others. An
//! endpoint does no I/O, so a task drives it between its own awaits. Messages are read straight into
//! their places.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use topocoll::exec::{Action, Buffer, Endpoint, Plan, Region};
use topocoll::{Exchange, Rank, Schedule, machine};

const BLOCK: u64 = 7;

/// The memories of a rank.
struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
    work: Vec<u8>,
}

impl Memory {
    fn read(&self, Region { buffer, offset, bytes }: Region) -> Vec<u8> {
        let from = match buffer {
            Buffer::Input => &self.input,
            Buffer::Output => &self.output,
            Buffer::Work => &self.work,
        };
        from[offset as usize..(offset + bytes) as usize].to_vec()
    }

    fn place(&mut self, Region { buffer, offset, bytes }: Region) -> &mut [u8] {
        let to = if buffer == Buffer::Output { &mut self.output } else { &mut self.work };
        &mut to[offset as usize..(offset + bytes) as usize]
    }
}

/// Writes messages in order, while the rank goes on.
async fn write(mut to: OwnedWriteHalf, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if to.write_all(&message).await.is_err() {
            return; // The receiver is gone, and its reader says so.
        }
    }
}

/// A rank's exchanges; `peers` has a connection to every other rank.
async fn rank(plan: Plan, peers: Vec<Option<TcpStream>>) -> Result<Vec<u8>, String> {
    let own = plan.rank();
    let (mut readers, mut writers): (Vec<Option<OwnedReadHalf>>, Vec<_>) = (vec![], vec![]);
    for peer in peers {
        let halves = peer.map(TcpStream::into_split);
        let (reader, writer) = halves.map_or((None, None), |(r, w)| (Some(r), Some(w)));
        let (send, messages) = mpsc::unbounded_channel();
        readers.push(reader);
        writers.push(send);
        writer.map(|writer| tokio::spawn(write(writer, messages)));
    }
    let blocks = plan.problem().ranks;
    let output = vec![0; plan.output_bytes(BLOCK) as usize];
    let work = vec![0; plan.workspace_bytes(BLOCK) as usize];
    let mut memory = Memory { input: Vec::new(), output, work };
    let mut endpoint = Endpoint::new(Arc::new(plan), BLOCK);
    for round in 0..3 {
        let block = |to| format!("{round}:{}->{to} ", own.0).into_bytes();
        memory.input = (0..blocks).flat_map(block).collect();
        endpoint.begin(BLOCK);
        // Bytes of the next exchange wait in their connections.
        exchange(&mut endpoint, &mut memory, &mut readers, &writers).await?;
    }
    Ok(memory.output)
}

async fn exchange(
    endpoint: &mut Endpoint,
    memory: &mut Memory,
    readers: &mut [Option<OwnedReadHalf>],
    writers: &[mpsc::UnboundedSender<Vec<u8>>],
) -> Result<(), String> {
    let mut posted = VecDeque::new();
    loop {
        match endpoint.poll().map_err(|error| error.to_string())? {
            Action::Copy(copy) => endpoint.pieces(copy, |from, to| {
                let bytes = memory.read(from);
                memory.place(to).copy_from_slice(&bytes);
            }),
            Action::Send(message) => {
                let sent = writers[message.peer.index()].send(memory.read(message.region));
                sent.map_err(|_| "a writer is gone".to_owned())?;
                let sent = endpoint.complete(message.token, message.region.bytes);
                sent.map_err(|error| error.to_string())?;
            }
            Action::Receive(message) => posted.push_back(message),
            Action::Wait => {
                let message = posted.pop_front().ok_or("nothing to wait for")?;
                let reader = readers[message.peer.index()].as_mut().ok_or("no connection")?;
                let read = reader.read_exact(memory.place(message.region)).await;
                let bytes =
                    read.map_err(|e| endpoint.fail(message.token, e.to_string()).to_string())?;
                let received = endpoint.complete(message.token, bytes as u64);
                received.map_err(|error| error.to_string())?;
            }
            Action::Done => return Ok(()),
        }
    }
}

async fn all(schedule: &Schedule) -> Result<(), Box<dyn Error>> {
    let ranks = schedule.problem.ranks as usize;
    let mut peers: Vec<Vec<Option<TcpStream>>> =
        (0..ranks).map(|_| (0..ranks).map(|_| None).collect()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    for (a, b) in (0..ranks).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let connecting = TcpStream::connect(listener.local_addr()?);
        let (near, far) = tokio::try_join!(connecting, listener.accept())?;
        (peers[a][b], peers[b][a]) = (Some(near), Some(far.0));
    }
    let tasks = (0..)
        .zip(peers)
        .map(|(i, peers)| Plan::new(schedule, Rank(i)).map(|plan| tokio::spawn(rank(plan, peers))));
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    for (rank, task) in tasks.into_iter().enumerate() {
        let expected: String = (0..ranks).map(|from| format!("2:{from}->{rank} ")).collect();
        assert_eq!(String::from_utf8(task.await??)?, expected);
    }
    println!("every rank has its blocks");
    Ok(())
}

/// Runs the exchanges.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let machine = machine("cluster:3,3")?;
    let exchange = Exchange::all_to_all(&machine)?.block_bytes(BLOCK)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("no algorithm applies")?;
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(all(&schedule))
}
