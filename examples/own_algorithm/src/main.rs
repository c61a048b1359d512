//! Your own algorithm: ranked, proved, simulated, run and exported with those of topocoll.
//! `cargo run -p own_algorithm > mine.jsonl; topocoll report torus:8x8 --schedule mine.jsonl ..`
#![forbid(unsafe_code)]

use topocoll::contention::{MODELS, Request as Run, Scheduled, in_seconds, simulate};
use topocoll::exec::{SeededDriver, pattern, plan_all};
use topocoll::formats::{Source, jsonl};
use topocoll::*;

static INFO: Info = Info::new("threes", "every block straight, to rank + 3s", "an example");
struct Threes;

impl Algorithm for Threes {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let ranks = request.problem.ranks;
        if ranks % 3 == 0 {
            return Err(NotApplicable::Ranks {
                rule: "a number of ranks that is not a multiple of 3",
                ranks,
            });
        }
        let claims = Claims::new(u64::from(ranks) - 1, request.bytes(ranks - 1));
        Ok(Solution::new(request, values, Steps { ranks: ranks.into() }, claims))
    }
}

/// Slot s holds the block that step s sends, and then the one that it receives.
struct Steps {
    ranks: u64,
}

impl Steps {
    fn ahead(&self, rank: Rank, steps: u64) -> Rank {
        Rank(((u64::from(rank.0) + 3 * steps) % self.ranks) as u32)
    }
}

impl Rule for Steps {
    fn steps(&self) -> u32 {
        self.ranks as u32 - 1
    }
    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        let slot = u64::from(step) + 1;
        let slots = || SlotSet::of(Strided::contiguous(slot, 1));
        out.clear();
        out.send(self.ahead(rank, slot), slots(), Route::default());
        out.receive(self.ahead(rank, self.ranks - slot), slots());
    }
    fn slots(&self) -> u64 {
        self.ranks
    }
    fn initial_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: rank, to: self.ahead(rank, slot) })
    }
    fn final_block(&self, rank: Rank, slot: Slot) -> Option<Block> {
        Some(Block { from: self.ahead(rank, self.ranks - slot), to: rank })
    }
    fn classes(&self) -> RankClasses {
        RankClasses::cyclic(self.ranks as u32)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (machine, catalogue) = (machine("torus:8x8")?, Catalogue::standard().with(Threes)?);
    let exchange = Exchange::all_to_all(&machine)?.catalogue(&catalogue);
    let place = exchange.select()?.choices.iter().position(|choice| choice.algorithm == "threes");
    let lines = exchange.sweep(&[1, 1 << 20], &[])?.lines.len();
    eprintln!("choice {place:?}, a line of {lines}");
    let schedule = exchange.schedule("threes", &Parameters::new())?;
    assert!(exchange.verify(&schedule, None)?.violation.is_none());
    let traffic = Scheduled::new(&schedule, &machine);
    let simulated = simulate(&Run::new(&traffic, &machine, &MODELS[0], 1 << 30))?;
    eprintln!("{}: {} s", MODELS[0].name, in_seconds(simulated.time));
    let (mut input, mut output) = (vec![0; 64 * 64 * 1024], vec![0; 64 * 64 * 1024]);
    let plans = plan_all(&schedule)?;
    pattern::fill(&plans, 1024u64, &mut input);
    SeededDriver::new(&plans).exchange(1024u64, &input, &mut output, 1)?;
    assert_eq!(pattern::first_wrong(&plans, 1024u64, &output), None);
    Ok(jsonl::write(&Source::new(&schedule, &machine, 1 << 30), &mut std::io::stdout())?)
}
