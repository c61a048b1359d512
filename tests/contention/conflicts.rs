//! Conflicting links, their steps and their messages, compared with a walk over every link.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use common::{MEMORY, problem, schedule_of};
use topocoll::contention::{Posted, Scheduled, Share, Traffic};
use topocoll::{
    Collective, Machine, Rank, RankClasses, Route, Setting, Shape, conflicts, count, machine,
};

/// Messages listed for a link.
const LISTED: usize = 16;

/// Counts conflicting links by classes and message by message.
fn check(place: &str, machine: &Machine, traffic: &dyn Traffic, each: &dyn Traffic) -> u128 {
    let named =
        |traffic: &dyn Traffic, most| conflicts(traffic, machine, Some(most), MEMORY).unwrap();
    let found = named(traffic, 1 << 20);
    let mut by_step = vec![Vec::new(); traffic.steps() as usize];
    for conflict in &found.worst {
        by_step[conflict.step as usize].push(conflict);
    }
    let mut all = Vec::new();
    for (step, found) in (0..).zip(&by_step) {
        let mut on = BTreeMap::<u64, Vec<(Rank, Rank, u64)>>::new();
        let mut share = Share::default();
        for node in (0..machine.ranks()).map(Rank) {
            each.share(node, step, &mut share);
            for send in &share.sends {
                machine.topology.for_each_link(node, &send.route, &mut |link| {
                    on.entry(link.0).or_default().push((node, send.to, send.bytes));
                });
            }
        }
        on.retain(|_, messages| messages.len() > 1);
        for (link, messages) in &mut on {
            messages.sort_unstable();
            let bytes: u64 = messages.iter().map(|(.., bytes)| bytes).sum();
            all.push((Reverse(messages.len() as u64), Reverse(bytes), step, *link));
        }
        for conflict in found {
            let messages = &on[&conflict.link.0];
            assert_eq!(conflict.messages as usize, messages.len(), "{place}, step {step}");
            let listed = conflict.listed.iter().map(|m| (m.from, m.to, m.bytes as u64));
            assert!(listed.eq(messages.iter().copied().take(LISTED)), "{place}, step {step}");
        }
        let alike: u128 = found.iter().map(|conflict| conflict.alike).sum();
        assert_eq!(alike, on.len() as u128, "{place}, step {step}");
    }
    all.sort_unstable();
    let conflicts = all.len() as u128;
    assert_eq!(found.conflicts, conflicts, "{place}");
    for most in 0..4 {
        let few = named(traffic, most);
        assert_eq!(few.conflicts, conflicts, "{place}");
        assert_eq!(few.worst, found.worst[..most.min(found.worst.len())], "{place}");
        // Without classes: the most contended links of all.
        let few = named(each, most).worst;
        let few =
            few.iter().map(|c| (Reverse(c.messages), Reverse(c.bytes as u64), c.step, c.link.0));
        assert!(few.eq(all.iter().copied().take(most)), "{place}");
    }
    conflicts
}

#[test]
fn conflicts_equal_those_of_every_link_by_itself() {
    let grids = ["torus:6x4", "mesh:4x4", "grid:5~x3", "torus:4x2x3", "torus:9x10", "mesh:7x3"];
    let lattices = ["twisted-torus:2x4", "twisted-torus:2x4x4", "mesh:3x4/1,1/0,2+1/2,3"];
    let any = [("direct", 1), ("bruck", 1), ("direct", 3)];
    let cases = grids.into_iter().chain(lattices).flat_map(|text| any.map(|how| (text, how)));
    // A rule of several classes of many ranks, whose routes along rings two messages share.
    let rings = [("torus:16x8", ("suh-shin", 1)), ("torus:16x4x4", ("suh-shin", 1))];
    // Cyclic by rank and by node, where nodes hold several ranks.
    let nodes = [
        ("torus:4x3*3", ("bruck", 3)),
        ("mesh:4x3*2", ("direct", 4)),
        ("torus:5x2*3", ("node-radix", 1)),
        ("grid:4~x3*2", ("clustered-matchings", 2)),
    ];
    for (text, (algorithm, ports)) in cases.chain(rings).chain(nodes) {
        let mut machine = machine(text).unwrap();
        machine.set_ports(ports);
        let settings = match algorithm {
            "suh-shin" => [("layout", "paper"), ("rings", "digits")]
                .map(|(name, word)| (name.to_owned(), Setting::Text(word.to_owned())))
                .into(),
            _ => [].into(),
        };
        let problem = problem(&machine, Collective::AllToAll, 8);
        let schedule = schedule_of(&machine, &problem, algorithm, &settings).unwrap();
        let plain = common::without_classes(&schedule);
        let [traffic, each] = [&schedule, &plain].map(|one| Scheduled::new(one, &machine));
        let place = format!("{algorithm} by {ports} ports on {text}");
        let conflicts = check(&place, &machine, &traffic, &each);
        let counts = count(&schedule, &machine, None, MEMORY).unwrap();
        assert_eq!(counts.link_conflicts, conflicts, "{place}");
    }
}

/// Every node of a torus sends around a corner, twice.
struct Corners<'a> {
    machine: &'a Machine,
    classes: RankClasses,
}

impl Traffic for Corners<'_> {
    fn nodes(&self) -> u32 {
        self.machine.ranks()
    }
    fn steps(&self) -> u32 {
        1
    }
    fn share(&self, node: Rank, _step: u32, out: &mut Share) {
        let Shape::Grid(torus) = self.machine.topology.shape() else { panic!("a torus") };
        out.sends.clear();
        for hops in [1, 2] {
            let mut route = Route::straight(0, 1);
            route.push(1, hops);
            let to = torus.radix().shifted(torus.radix().shifted(node, 0, 1), 1, hops);
            out.sends.push(Posted { to, bytes: 8, route, ..Posted::default() });
        }
        out.receives = 2;
    }
    fn classes(&self) -> RankClasses {
        self.classes.clone()
    }
}

#[test]
fn conflicts_around_corners_are_listed() {
    let machine = machine("torus:5x4").unwrap();
    let Shape::Grid(torus) = machine.topology.shape() else { panic!("a torus") };
    for periods in [[1, 1], [5, 1], [1, 2], [5, 4]] {
        let classes =
            RankClasses::translations(torus.radix().clone(), periods.into_iter().collect());
        let alike = Corners { machine: &machine, classes };
        let each = Corners { machine: &machine, classes: RankClasses::distinct(20) };
        assert_eq!(check(&format!("{periods:?}"), &machine, &alike, &each), 40);
    }
}

#[test]
fn conflicts_of_a_billion_nodes_are_listed() {
    let machine = machine("torus:32768x32768").unwrap();
    let radix = [("radix".to_owned(), Setting::Integer(2))].into_iter().collect();
    let problem = problem(&machine, Collective::AllToAll, 1);
    let schedule = schedule_of(&machine, &problem, "bruck", &radix).unwrap();
    let found = conflicts(&Scheduled::new(&schedule, &machine), &machine, Some(1), MEMORY).unwrap();
    assert_eq!((found.worst[0].messages, found.worst[0].alike), (16_384, 1 << 30));
    assert_eq!(found.worst[0].listed[0].to.0, 16_384);
}
