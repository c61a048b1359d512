//! Periods written from sends alone are complete schedules.

use common::{Case, check_claims, check_classes, check_delivery, machines, problem, with_ports};
use topocoll::{
    Algorithm, Claims, Collective, Coordinates, Info, Method, NotApplicable, Origin, Parameters,
    Period, PeriodWriter, Problem, Rank, RankClasses, Request, Route, Rule, Schedule, Shape,
    Solution, Step, Values, verify,
};

static INFO: Info = Info::new("neighbours", "a hop a step, both ways around each ring", "a test");

/// All blocks along each ring of a torus in turn, a hop a step, both ways at once.
struct Neighbours;

impl Algorithm for Neighbours {
    fn info(&self) -> &Info {
        &INFO
    }

    fn solve(&self, request: &Request<'_>, values: &Values<'_>) -> Result<Solution, NotApplicable> {
        let grid = request.grid("a torus")?;
        let (radix, ranks) = (grid.radix(), request.problem.ranks);
        let classes = RankClasses::translations(
            radix.clone(),
            grid.sides().iter().map(|_| 1).collect::<Coordinates>(),
        );
        let mut writer = PeriodWriter::new(classes, |_| (0..ranks).map(Rank).collect());
        for (u, &side) in grid.sides().iter().enumerate() {
            for _ in 0..side / 2 {
                for up in [true, false] {
                    let goes = |to| match radix.coordinate(to, u) {
                        0 => false,
                        hops => (hops <= side / 2) == up,
                    };
                    let held = writer.held(0).filter(|(_, held)| goes(held.to));
                    let slots: Vec<_> = held.map(|(slot, _)| slot).collect();
                    let hops = if up { 1 } else { -1 };
                    let route = Route::straight(u as u32, hops);
                    writer.send(0, radix.shifted(Rank(0), u, hops), route, &slots);
                }
                writer.end_step();
            }
        }
        let (period, largest) = writer.finish();
        let claims = Claims::of_period(request.problem.block_bytes, &largest);
        Ok(Solution::new(request, values, period, claims))
    }
}

#[test]
fn a_construction_of_sends_keeps_its_promises() {
    for text in ["torus:5", "torus:6", "torus:4x4", "torus:3x5", "torus:2x3x4"] {
        let machine = with_ports(text, 2);
        let problem = problem(&machine, Collective::AllToAll, 3);
        let case = Case::solve(&machine, &Neighbours, &problem, &Parameters::new()).unwrap();
        for method in [Method::Classes, Method::Replay] {
            let counts = check_delivery(&case, method);
            check_claims(&case, &counts);
        }
        check_classes(case.schedule(), &machine, &case.place);
    }
}

/// A period whose ranks send drawn blocks to drawn ranks, and at the end all blocks straight.
fn drawn(classes: &RankClasses, ranks: u32, seed: u64) -> Period {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<Rank> = (0..ranks).map(Rank).collect();
    random.shuffle(&mut order);
    let mut writer = PeriodWriter::new(classes.clone(), |_| order.clone());
    for step in 0..6 {
        for class in 0..classes.count() {
            let mut by_peer: Vec<Vec<u64>> = vec![Vec::new(); ranks as usize];
            let peer = random.u32(1..ranks.max(2)) % ranks;
            for (slot, held) in writer.held(class) {
                let to = if step < 5 { Rank(peer) } else { held.to };
                if to != Rank(0) && (step == 5 || random.bool()) {
                    by_peer[to.index()].push(slot);
                }
            }
            for (peer, mut slots) in (0..).map(Rank).zip(by_peer) {
                random.shuffle(&mut slots);
                if !slots.is_empty() {
                    writer.send(class, peer, Route::default(), &slots);
                }
            }
        }
        writer.end_step();
    }
    writer.finish().0
}

#[test]
fn drawn_sends_become_schedules_that_deliver() {
    for (seed, machine) in (0..).zip(machines()).filter(|(_, machine)| machine.ranks() <= 36) {
        let (ranks, shape) = (machine.ranks(), machine.topology.shape());
        let each = match shape {
            Shape::Grid(grid) if grid.wrap().iter().all(|&wraps| wraps) => {
                let ones = grid.sides().iter().map(|_| 1).collect();
                RankClasses::translations(grid.radix().clone(), ones)
            }
            Shape::Complete => RankClasses::cyclic(ranks),
            _ => RankClasses::distinct(ranks),
        };
        for classes in [each, RankClasses::distinct(ranks)] {
            let problem = Problem::new(Collective::AllToAll, ranks, ranks.max(1), 8).unwrap();
            let period = drawn(&classes, ranks, seed);
            // What is read from the rule is what was written.
            let read = Period::of(&period, classes.clone(), u64::MAX).unwrap();
            let mut steps = [Step::default(), Step::default()];
            for (rank, step) in (0..ranks).flat_map(|rank| (0..6).map(move |step| (rank, step))) {
                period.step(Rank(rank), step, &mut steps[0]);
                read.step(Rank(rank), step, &mut steps[1]);
                assert_eq!(steps[0], steps[1], "{} rank {rank} step {step}", machine.name);
            }
            let origin = Origin { algorithm: "drawn".to_owned(), parameters: Parameters::new() };
            let schedule = Schedule::new(problem, origin, period);
            for method in [Method::Classes, Method::Replay] {
                let found = verify(&schedule, &machine, Some(method), common::MEMORY).unwrap();
                assert_eq!(found.violation, None, "{} {classes:?}", machine.name);
            }
        }
    }
}
