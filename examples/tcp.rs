//! A loop of all-to-all over TCP. Each of the four ranks is a thread here, and would be a process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use topocoll::exec::{Arrival, Driver, Endpoint, Memory, Plan, Transport};
use topocoll::{Exchange, Rank, machine};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

struct Tcp(u32, Vec<TcpStream>, Receiver<Arrival>);

impl Transport for Tcp {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let header = [self.0, tag, bytes.len() as u32].map(u32::to_le_bytes).concat();
        self.1[to.index()].write_all(&[&header, bytes].concat()).map_err(|e| e.to_string())
    }
    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.2.recv_timeout(patience).ok())
    }
}

fn read(mut stream: TcpStream, arrivals: &Sender<Arrival>) -> Outcome {
    loop {
        let mut header = [[0; 4]; 3];
        stream.read_exact(header.as_flattened_mut())?;
        let [from, tag, length] = header.map(u32::from_le_bytes);
        let mut bytes = vec![0; length as usize];
        stream.read_exact(&mut bytes)?;
        arrivals.send(Arrival { from: Rank(from), tag, bytes })?;
    }
}

fn rank(own: u32, listener: &TcpListener, addresses: [SocketAddr; 4]) -> Outcome {
    let machine = machine("full:4")?;
    let exchange = Exchange::all_to_all(&machine)?.block_bytes(3)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("no algorithm applies")?;
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    let mut endpoint = Endpoint::new(Arc::new(Plan::new(&schedule, Rank(own))?), 3u64);
    let (sender, arrivals) = channel();
    let streams = addresses.iter().map(TcpStream::connect).collect::<Result<_, _>>()?;
    for stream in listener.incoming().take(4) {
        let (stream, sender) = (stream?, sender.clone());
        std::thread::spawn(move || read(stream, &sender));
    }
    let mut driver = Driver::new(Tcp(own, streams, arrivals));
    let (mut output, mut work) = ([0; 12], vec![0; endpoint.workspace_bytes() as usize]);
    for round in 0..100 {
        let input: Vec<u8> = (0..4).flat_map(|to| [round, own as u8, to]).collect();
        let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
        driver.drive(&mut endpoint, &mut memory, Duration::from_secs(30))?;
        assert!(output.chunks(3).zip(0..).all(|(block, from)| block == [round, from, own as u8]));
    }
    Ok(())
}

/// Runs the ranks.
pub(crate) fn main() -> Outcome {
    let listeners = [0; 4].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let addresses = listeners.each_ref().map(|own| own.local_addr().expect("an address"));
    let ranks = (0..).zip(listeners);
    let ranks = ranks.map(|(own, from)| std::thread::spawn(move || rank(own, &from, addresses)));
    ranks.collect::<Vec<_>>().into_iter().try_for_each(|rank| rank.join().expect("no panic"))
}
