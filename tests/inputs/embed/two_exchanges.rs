//! 8 ranks as threads over mpsc: all-to-all and all-to-all-v with sizes that change at every call.
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use topocoll::exec::{Arrival, Driver, Endpoint, Memory, Plan, PlannedSizes, Transport};
use topocoll::{Exchange, Rank, machine};

const N: usize = 8;
struct Chan {
    rank: Rank,
    to: Vec<Sender<Arrival>>,
    from: Receiver<Arrival>,
}
impl Transport for Chan {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        self.to[to.index()]
            .send(Arrival { from: self.rank, tag, bytes: bytes.to_vec() })
            .map_err(|_| "gone".into())
    }
    fn arrival(&mut self, patience: Duration) -> Result<Option<Arrival>, String> {
        Ok(self.from.recv_timeout(patience).ok())
    }
}
fn byte(call: usize, from: usize, to: usize, i: usize) -> u8 {
    (call * 31 + from * 7 + to * 13 + i) as u8
}
fn size(call: usize, from: usize, to: usize) -> u64 {
    ((call * 17 + from * 5 + to * 3) % 29) as u64
}

pub(crate) fn run(calls: usize, alg: &str) -> Result<(), Box<dyn std::error::Error>> {
    let machine = machine("torus:4x2")?;
    let exchange = Exchange::all_to_all(&machine)?.block_bytes(256)?;
    let selection = exchange.select()?;
    let best = selection.best().ok_or("none")?;
    let name = if alg == "best" { best.algorithm.as_str() } else { alg };
    let params = if alg == "best" { best.parameters.clone() } else { Default::default() };
    let equal = exchange.schedule(name, &params)?;
    let direct = exchange.schedule("direct", &Default::default())?;
    let (tx, rx): (Vec<_>, Vec<_>) = (0..N).map(|_| channel()).unzip();
    let results: Vec<Result<(), String>> = std::thread::scope(|s| {
        let hs: Vec<_> = rx
            .into_iter()
            .enumerate()
            .map(|(r, from)| {
                let (to, equal, direct) = (tx.clone(), &equal, &direct);
                s.spawn(move || -> Result<(), String> {
                    let mut driver = Driver::new(Chan { rank: Rank(r as u32), to, from });
                    let plan =
                        Arc::new(Plan::new(equal, Rank(r as u32)).map_err(|e| e.to_string())?);
                    let plan_v =
                        Arc::new(Plan::new(direct, Rank(r as u32)).map_err(|e| e.to_string())?);
                    let mut ep = Endpoint::new(Arc::clone(&plan), 1u64);
                    let mut ep_v = Endpoint::new(Arc::clone(&plan_v), 1u64);
                    for call in 0..calls {
                        let b = 1 + (call * 37 % 300);
                        let input: Vec<u8> = (0..N)
                            .flat_map(|to| (0..b).map(move |i| byte(call, r, to, i)))
                            .collect();
                        let mut output = vec![0; N * b];
                        let mut work = vec![0; plan.workspace_bytes(b as u64) as usize];
                        ep.begin(b as u64);
                        driver
                            .drive(
                                &mut ep,
                                &mut Memory { input: &input, output: &mut output, work: &mut work },
                                Duration::from_secs(5),
                            )
                            .map_err(|e| format!("call {call} equal: {e}"))?;
                        let want: Vec<u8> =
                            (0..N).flat_map(|f| (0..b).map(move |i| byte(call, f, r, i))).collect();
                        if output != want {
                            return Err(format!("call {call}: rank {r} WRONG BYTES equal"));
                        }
                        // v
                        let row: Vec<u64> = (0..N).map(|to| size(call, r, to)).collect();
                        let col: Vec<u64> = (0..N).map(|f| size(call, f, r)).collect();
                        let sizes = Arc::new(
                            PlannedSizes::of_rank(&plan_v, &row, &col)
                                .map_err(|e| e.to_string())?,
                        );
                        let input: Vec<u8> = (0..N)
                            .flat_map(|to| (0..row[to] as usize).map(move |i| byte(call, r, to, i)))
                            .collect();
                        ep_v.begin(&sizes);
                        let mut output = vec![0; ep_v.output_bytes() as usize];
                        let mut work = vec![0; ep_v.workspace_bytes() as usize];
                        driver
                            .drive(
                                &mut ep_v,
                                &mut Memory { input: &input, output: &mut output, work: &mut work },
                                Duration::from_secs(5),
                            )
                            .map_err(|e| format!("call {call} v: {e}"))?;
                        let col = &col;
                        let want: Vec<u8> = (0..N)
                            .flat_map(|f| (0..col[f] as usize).map(move |i| byte(call, f, r, i)))
                            .collect();
                        if output != want {
                            return Err(format!("call {call}: rank {r} WRONG BYTES v"));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        drop(tx);
        hs.into_iter().map(|h| h.join().unwrap_or_else(|_| Err("PANIC".into()))).collect()
    });
    assert_eq!(results, vec![Ok(()); N]);
    Ok(())
}
