//! A guided tour: from "I have a 16x16 torus" to "my runtime uses it".
//!
//! `cargo run --example tour` runs it; each stop prints its result.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use topocoll::exec::{Arrival, Driver, Endpoint, Memory, Plan, Transport};
use topocoll::{Collective, Exchange, Problem, Rank, machine, verify};

/// Bytes of the block that each rank has for each other.
const BLOCK: u64 = 64;

/// Runs all stops.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1. The machine: a short form, the name of a shipped one, or a file with your own timing
    //    values (`topocoll calibrate` writes one). Short forms have one port and generic values.
    let mut torus = machine("torus:16x16")?;
    torus.timing = machine("tpu-v5e-16x16")?.timing;

    // 2. The problem, and its lower bound.
    let problem = Problem::new(Collective::AllToAll, torus.ranks(), torus.ports, BLOCK)?;
    let exchange = Exchange::new(&torus, &problem)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("no algorithm applies to a torus")?;
    println!(
        "{} {:?}: {:.1} us in {} steps; nothing can end before {:.1} us",
        best.algorithm,
        best.parameters,
        best.price.time.total() * 1e6,
        best.price.steps,
        selection.bound.seconds * 1e6,
    );

    // 3. Other sizes: the block sizes at which another schedule becomes the fastest.
    for fastest in exchange.sweep(&[1, BLOCK, 1 << 20], &[])?.crossovers {
        println!("from {} B: {}", fastest.block_bytes, fastest.algorithm);
    }

    // 4. The schedule, and the proof that it delivers: every block of every rank is followed.
    let schedule = exchange.schedule(&best.algorithm, &best.parameters)?;
    let proof = verify(&schedule, &torus, None, 1 << 30)?;
    assert!(proof.violation.is_none() && proof.counts.port_violations == 0);
    println!("proved: {} messages, none lost", proof.counts.messages);

    // 5. A plan is one rank's program, made once; it gives the memory and the number of tags.
    let plans: Vec<_> = (0..torus.ranks())
        .map(|rank| Plan::new(&schedule, Rank(rank)).map(Arc::new))
        .collect::<Result<_, _>>()?;
    println!("rank 0 sends {} messages and needs {} tags", plans[0].messages(), plans[0].tags());

    // 6. Your runtime: each rank drives its endpoint over any transport; here over channels.
    run(&plans)?;
    println!("exchanged: every byte is where it belongs");
    Ok(())
}

/// A runtime's transport: sends bytes to a rank, and reports arrivals.
struct Mailbox {
    rank: Rank,
    others: Vec<Sender<Arrival>>,
    own: Receiver<Arrival>,
}

impl Transport for Mailbox {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        let arrival = Arrival { from: self.rank, tag, bytes: bytes.to_vec() };
        self.others[to.index()].send(arrival).map_err(|_| format!("rank {to} is gone"))
    }

    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.own.recv_timeout(patience).ok())
    }
}

/// Every rank, in its own thread, exchanges blocks that encode their source and destination, three
/// times.
fn run(plans: &[Arc<Plan>]) -> Result<(), String> {
    let ranks = plans.len();
    let block = |from: usize, to: usize| [from as u8, to as u8].repeat(BLOCK as usize / 2);
    let (others, inboxes): (Vec<_>, Vec<_>) = plans.iter().map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (plans.iter().zip(inboxes).enumerate())
            .map(|(rank, (plan, own))| {
                let others = others.clone();
                scope.spawn(move || -> Result<(), String> {
                    let input: Vec<u8> = (0..ranks).flat_map(|to| block(rank, to)).collect();
                    let expected: Vec<u8> = (0..ranks).flat_map(|from| block(from, rank)).collect();
                    let mut work = vec![0; plan.workspace_bytes(BLOCK) as usize];
                    let mut driver = Driver::new(Mailbox { rank: Rank(rank as u32), others, own });
                    let mut endpoint = Endpoint::new(Arc::clone(plan), BLOCK);
                    for _ in 0..3 {
                        let mut output = vec![0; input.len()];
                        let mut memory =
                            Memory { input: &input, output: &mut output, work: &mut work };
                        driver
                            .drive(&mut endpoint, &mut memory, Duration::from_secs(30))
                            .map_err(|e| e.to_string())?;
                        assert_eq!(output, expected, "rank {rank}");
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
    })
}
