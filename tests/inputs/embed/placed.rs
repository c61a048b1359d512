//! Same, by receive_into (demultiplexed per peer), dying peer, own algorithm beside the catalogue.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use topocoll::exec::{Arrival, Driver, Endpoint, Memory, Plan, PlannedSizes, Transport};
use topocoll::*;

const N: usize = 8;
struct Chan {
    rank: Rank,
    to: Vec<Sender<(u32, u32, Vec<u8>)>>,
    from: Receiver<(u32, u32, Vec<u8>)>,
    held: Vec<VecDeque<(u32, Vec<u8>)>>,
}
impl Transport for Chan {
    fn send(&mut self, to: Rank, tag: u32, bytes: &[u8]) -> Result<(), String> {
        self.to[to.index()].send((self.rank.0, tag, bytes.to_vec())).map_err(|_| "gone".into())
    }
    fn arrival(&mut self, _: Duration) -> Result<Option<Arrival>, String> {
        unreachable!()
    }
    fn places(&self) -> bool {
        true
    }
    fn receive_into(
        &mut self,
        from: Rank,
        tag: u32,
        place: &mut [u8],
        patience: Duration,
    ) -> Result<Option<u64>, String> {
        let until = Instant::now() + patience;
        loop {
            if let Some(at) = self.held[from.index()].iter().position(|m| m.0 == tag) {
                let (_, b) = self.held[from.index()].remove(at).unwrap();
                if b.len() <= place.len() {
                    place[..b.len()].copy_from_slice(&b);
                }
                return Ok(Some(b.len() as u64));
            }
            match self.from.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((f, t, b)) => self.held[f as usize].push_back((t, b)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}
fn byte(call: usize, from: usize, to: usize, i: usize) -> u8 {
    (call * 31 + from * 7 + to * 13 + i) as u8
}
fn size(call: usize, from: usize, to: usize) -> u64 {
    ((call * 17 + from * 5 + to * 3) % 29) as u64
}

static INFO: Info = Info::new("mirror", "step s: to rank s - r", "own");
struct Mirror;
impl Algorithm for Mirror {
    fn info(&self) -> &Info {
        &INFO
    }
    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let n = request.problem.ranks;
        if request.problem.operation != Collective::AllToAll {
            return Err(NotApplicable::Ranks { rule: "an all-to-all", ranks: n });
        }
        let claims = Claims::new(u64::from(n), request.bytes(n - 1));
        Ok(Solution::new(request, values, MirrorSteps { n }, claims))
    }
}
struct MirrorSteps {
    n: u32,
}
impl MirrorSteps {
    fn peer(&self, r: Rank, s: u32) -> Rank {
        Rank((s + 2 * self.n - r.0) % self.n)
    }
}
impl Rule for MirrorSteps {
    fn steps(&self) -> u32 {
        self.n
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let p = self.peer(rank, step);
        if p == rank {
            return;
        }
        let slots = || SlotSet::of(Strided::contiguous(u64::from(p.0), 1));
        out.send(p, slots(), Route::default());
        out.receive(p, slots());
    }
    fn slots(&self) -> u64 {
        self.n.into()
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: Rank(slot as u32) })
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: Rank(slot as u32), to: rank })
    }
}

pub(crate) fn run(calls: usize, die: usize) -> Result<(), Box<dyn std::error::Error>> {
    let machine = machine("torus:4x2")?;
    let catalogue = Catalogue::standard().with(Mirror)?;
    let exchange = Exchange::all_to_all(&machine)?.block_bytes(256)?.catalogue(&catalogue);
    let selection = exchange.select()?;
    assert!(selection.choices.iter().any(|choice| choice.algorithm == "mirror"));
    let own = exchange.schedule("mirror", &Parameters::new())?;
    assert_eq!(exchange.verify(&own, None)?.violation, None);
    let best = selection.best().ok_or("none")?;
    let equal = exchange.schedule(&best.algorithm, &best.parameters)?;
    let (tx, rx): (Vec<_>, Vec<_>) = (0..N).map(|_| channel()).unzip();
    let results: Vec<Result<(), String>> = std::thread::scope(|s| {
        let hs: Vec<_> = rx
            .into_iter()
            .enumerate()
            .map(|(r, from)| {
                let (to, equal, own) = (tx.clone(), &equal, &own);
                s.spawn(move || -> Result<(), String> {
                    let mut driver = Driver::new(Chan {
                        rank: Rank(r as u32),
                        to,
                        from,
                        held: vec![VecDeque::new(); N],
                    });
                    let plan =
                        Arc::new(Plan::new(equal, Rank(r as u32)).map_err(|e| e.to_string())?);
                    let plan_v =
                        Arc::new(Plan::new(own, Rank(r as u32)).map_err(|e| e.to_string())?);
                    let mut ep = Endpoint::new(Arc::clone(&plan), 1u64);
                    let mut ep_v = Endpoint::new(Arc::clone(&plan_v), 1u64);
                    for call in 0..calls {
                        if r == die && call == calls / 2 {
                            return Err("died".into());
                        }
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
                                Duration::from_secs(2),
                            )
                            .map_err(|e| format!("call {call} equal: {e}"))?;
                        let want: Vec<u8> =
                            (0..N).flat_map(|f| (0..b).map(move |i| byte(call, f, r, i))).collect();
                        if output != want {
                            return Err(format!("call {call}: rank {r} WRONG BYTES equal"));
                        }
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
                                Duration::from_secs(2),
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
    if die >= N {
        assert_eq!(results, vec![Ok(()); N]);
    }
    assert!(
        results.iter().all(|result| result
            .as_ref()
            .err()
            .is_none_or(|e| !e.contains("WRONG") && e != "PANIC")),
        "{results:?}"
    );
    let plan = Arc::new(Plan::new(&own, Rank(1))?);
    let p = PlannedSizes::of_rank(&plan, &[1, 2, 3, 4, 5, 6, 7, 8], &[1, 99, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        p.unwrap_err().to_string(),
        "rank 1: its own block has 2 bytes among the blocks to send, and 99 among those to receive"
    );
    let same = Arc::new(Plan::new(&own, Rank(1))?);
    let p = Arc::new(PlannedSizes::of_rank(&same, &[1; 8], &[1; 8])?);
    assert_eq!(plan.output_bytes(&p), 8);
    Ok(())
}
