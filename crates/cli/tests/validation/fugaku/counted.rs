//! What the steps model counts of the measured implementations on Fugaku.

use topocoll::{
    Block, Collective, Contention, Counts, Machine, Origin, Parameters, PerClass, Problem, Rank,
    RankClasses, Rendezvous, Rule, Schedule, Slot, SlotSet, Step, Strided, count, machine,
};

use super::model::{Constants, Features, Way};

/// Each logical axis of 64x64 is a ring over physical axes of 16, 2 and 2 without wraparound.
const LARGE: &str = "torus:64x64@16x2x2,16x2x2";

/// A measured implementation on a logical shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Case {
    pub(super) sides: &'static [u32],
    pub(super) way: Way,
}

impl Case {
    pub(super) fn ranks(self) -> u32 {
        self.sides.iter().product()
    }

    /// Whether all messages are posted at once.
    pub(super) fn is_at_once(self) -> bool {
        matches!(self.way, Way::Linear | Way::Doublespread | Way::Blacc3d)
    }

    fn doublings(self) -> u32 {
        self.ranks().ilog2()
    }

    /// The steps that are counted: a sample of the many of pairwise on 4,096 ranks.
    fn steps(self) -> Vec<u32> {
        match self.way {
            _ if self.is_at_once() => vec![0],
            Way::Bruck | Way::ModifiedBruck | Way::Bine => (0..self.doublings()).collect(),
            _ if self.ranks() > 512 => (6..self.ranks() - 1).step_by(31).collect(),
            _ => (0..self.ranks() - 1).collect(),
        }
    }

    /// The steps for each one that is counted.
    fn times(self) -> f64 {
        match self.way {
            Way::Pairwise => f64::from(self.ranks() - 1) / self.steps().len() as f64,
            _ => 1.0,
        }
    }

    fn blocks(self) -> u64 {
        match self.way {
            Way::Bruck | Way::ModifiedBruck | Way::Bine => u64::from(self.ranks() / 2),
            _ => 1,
        }
    }

    /// Blocks that are copied, in all steps: half of them packed and unpacked in each; Bruck rotates before and
    /// after and inverts the order, Bine permutes before and after.
    fn copies(self) -> u64 {
        let more = match self.way {
            Way::Bruck | Way::ModifiedBruck => 3,
            Way::Bine => 2,
            _ => return 0,
        };
        u64::from(self.ranks()) * (u64::from(self.doublings()) + more)
    }

    /// The ranks that a rank sends to and receives from.
    fn peers(self, step: u32, rank: u32) -> [u32; 2] {
        let apart = match self.way {
            Way::Bruck | Way::ModifiedBruck => 1 << step,
            Way::Bine => return [self.bine(step, rank); 2],
            _ => step + 1,
        };
        [rank + apart, rank + self.ranks() - apart].map(|peer| peer % self.ranks())
    }

    /// Bine: partners at distances 1, 1, 3, 5, 11, 21 along each axis, away from even positions and back.
    fn bine(self, mut step: u32, rank: u32) -> u32 {
        let mut stride = self.ranks();
        for &side in self.sides {
            stride /= side;
            if step < side.ilog2() {
                let (at, side) = (i64::from(rank / stride % side), i64::from(side));
                let apart = (1 - (-2i64).pow(step + 1)) / 3;
                let to = (at + if at % 2 == 0 { apart } else { -apart }).rem_euclid(side);
                return (i64::from(rank) + (to - at) * i64::from(stride)) as u32;
            }
            step -= side.ilog2();
        }
        unreachable!("a step of no axis")
    }

    /// The machine of the values, with those of the implementation.
    pub(super) fn machine(self, values: &Machine, constants: &Constants, bytes: u64) -> Machine {
        let form = match self.sides {
            [_, _] => LARGE.to_owned(),
            sides => format!("torus:{}x{}x{}", sides[0], sides[1], sides[2]),
        };
        let mut on = machine(&form).unwrap();
        (on.timing, on.endpoint) = (values.timing.clone(), values.endpoint);
        let own = constants.values(self, bytes);
        on.timing.startup = PerClass::uniform(own.step * 1e-6);
        on.timing.per_block = own.per_block * 1e-6;
        on.endpoint.message_overhead = own.message * 1e-6;
        on.timing.rendezvous = Rendezvous { above: own.above, ..on.timing.rendezvous };
        on.timing.contention = Contention { several: own.exponent, ..on.timing.contention };
        if !own.injects {
            on.timing.injection = topocoll::Injection::default();
        }
        on.set_ports(if self.is_at_once() { self.ranks() - 1 } else { 1 });
        on
    }

    pub(super) fn schedule(self, on: &Machine, block_bytes: u64) -> Schedule {
        let operation = Collective::AllToAll;
        let problem = Problem::new(operation, self.ranks(), on.ports, block_bytes).unwrap();
        if self.is_at_once() {
            let exchange = topocoll::Exchange::new(on, &problem).unwrap();
            return exchange.schedule("direct", &Parameters::new()).unwrap();
        }
        let origin = Origin { algorithm: format!("{:?}", self.way), parameters: Parameters::new() };
        Schedule::new(problem, origin, Rounds { case: self, steps: self.steps() })
    }

    fn count(self, on: &Machine, block_bytes: u64) -> Counts {
        count(&self.schedule(on, block_bytes), on, None, 1 << 32).unwrap()
    }

    /// The predicted microseconds of the program.
    pub(super) fn predicted(self, values: &Machine, constants: &Constants, bytes: u64) -> f64 {
        let on = self.machine(values, constants, bytes);
        self.count(&on, bytes).time.total() * 1e6 * self.times()
    }

    /// What the program counts, as blocks.
    pub(super) fn features(self) -> Features {
        let mut on = self.machine(&machine("torus:2x2x2").unwrap(), &Constants::default(), 1);
        let classes = on.topology.link_classes().len();
        let mut seconds = |per_byte: Vec<f64>, contention: Contention| {
            on.timing.injection = topocoll::Injection::default();
            (on.timing.per_byte, on.timing.contention) = (PerClass::each(&per_byte), contention);
            self.count(&on, 1).time.transmission
        };
        let (mut loads, mut link_blocks, mut largest) = (Vec::new(), 0.0, 0.0);
        if self.is_at_once() {
            // The busiest link of each axis alone.
            let only = |class: usize| (0..classes).map(|of| f64::from(of == class)).collect();
            loads.extend((0..classes).map(|class| seconds(only(class), Contention::default())));
        } else {
            let sum = Contention { alone: 1.0, ..Contention::default() };
            link_blocks = self.times() * seconds(vec![1.0; classes], sum);
            largest = self.times() * seconds(vec![1.0; classes], Contention::default());
        }
        let (blocks, copies) = (self.blocks() as f64, self.copies() as f64);
        let steps = self.times() * self.steps().len() as f64;
        Features { steps, blocks, link_blocks, largest, loads, copies }
    }
}

/// One message of each rank in each step.
struct Rounds {
    case: Case,
    steps: Vec<u32>,
}

impl Rule for Rounds {
    fn steps(&self) -> u32 {
        self.steps.len() as u32
    }

    fn step(&self, rank: Rank, step: u32, out: &mut Step) {
        out.clear();
        let (case, steps) = (self.case, u64::from(self.steps()));
        let of_step = |amount: u64| amount / steps + if step == 0 { amount % steps } else { 0 };
        let copied = SlotSet::of(Strided::contiguous(0, of_step(case.copies())));
        if !copied.is_empty() {
            out.copy(copied.clone(), copied);
        }
        let [to, from] = case.peers(self.steps[step as usize], rank.0).map(Rank);
        let slots = || SlotSet::of(Strided::contiguous(0, case.blocks()));
        out.send(to, slots(), topocoll::Route::default());
        out.receive(from, slots());
    }

    fn slots(&self) -> u64 {
        self.case.copies().max(1)
    }

    fn initial_block(&self, _: Rank, _: Slot) -> Option<Block> {
        None
    }

    fn final_block(&self, _: Rank, _: Slot) -> Option<Block> {
        None
    }

    fn classes(&self) -> RankClasses {
        RankClasses::distinct(self.case.ranks())
    }
}
