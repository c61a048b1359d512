//! Nine ranks, each in its own thread, exchange blocks over channels, three times: any transport that
//! can send bytes to a rank drives a plan.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use topocoll::exec::{Arrival, Driver, Endpoint, Memory, Plan, Transport};
use topocoll::{Collective, Exchange, Parameters, Problem, Rank, machine};

struct Channels {
    rank: Rank,
    to: Vec<Sender<Arrival>>,
    from: Receiver<Arrival>,
}

impl Transport for Channels {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let arrival = Arrival { from: self.rank, tag, bytes: bytes.to_vec() };
        self.to[to.index()].send(arrival).map_err(|_| "the receiver is gone".to_owned())
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.from.recv_timeout(patience).ok())
    }
}

/// Runs the exchanges; rank i sends i + 10 j to rank j, and 100 more each time.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    const BLOCK: u64 = 1;
    let machine = machine("full:9")?;
    let problem = Problem::new(Collective::AllToAll, machine.ranks(), machine.ports, BLOCK)?;
    let schedule = Exchange::new(&machine, &problem)?.schedule("bruck", &Parameters::new())?;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..9).map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let threads = receivers.into_iter().zip((0..).map(Rank)).map(|(from, rank)| {
            let (to, schedule) = (senders.clone(), &schedule);
            scope.spawn(move || -> Result<(), String> {
                let plan = Arc::new(Plan::new(schedule, rank).map_err(|e| e.to_string())?);
                let mut work = vec![0; plan.workspace_bytes(BLOCK) as usize];
                let mut endpoint = Endpoint::new(plan, BLOCK);
                let mut driver = Driver::new(Channels { rank, to, from });
                for round in 0..3 {
                    let block = |from: u32, to: u32| (100 * round + from + 10 * to) as u8;
                    let input: Vec<u8> = (0..9).map(|to| block(rank.0, to)).collect();
                    let mut output = [0; 9];
                    let mut memory = Memory { input: &input, output: &mut output, work: &mut work };
                    driver
                        .drive(&mut endpoint, &mut memory, Duration::from_secs(10))
                        .map_err(|e| e.to_string())?;
                    let expected: Vec<u8> = (0..9).map(|from| block(from, rank.0)).collect();
                    assert_eq!(output, expected[..]);
                }
                Ok(())
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
    })?;
    println!("every rank has its blocks");
    Ok(())
}
