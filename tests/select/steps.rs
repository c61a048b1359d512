//! `steps=T` is the setting that a ranking puts first among those of at most T steps.

use common::{exchange, problem, reach, setting};
use rayon::prelude::*;
use topocoll::{Choice, Exchange, Machine, Parameters, Priced, Selection, machine};

use crate::ports::{OPERATIONS, drawn};

/// Algorithms with a parameter of their own of this name.
const OWN: [&str; 2] = ["repair", "bit-flips"];

fn steps(most: u64) -> Parameters {
    setting(&format!("steps={most}"))
}

/// The settings of an algorithm that a ranking lists, those with exact prices first.
fn listed<'s>(selection: &'s Selection, algorithm: &str) -> Vec<&'s Choice> {
    let own = selection.choices.iter().filter(|choice| choice.algorithm == algorithm);
    let is_exact = |choice: &&Choice| choice.price.priced == Priced::Exactly;
    let (exact, floors): (Vec<_>, Vec<_>) = own.partition(is_exact);
    exact.into_iter().chain(floors).collect()
}

/// The error of a number of steps.
fn refusal(exchange: &Exchange<'_>, name: &str, given: &str) -> String {
    exchange.schedule(name, &setting(given)).unwrap_err().to_string()
}

#[test]
fn at_most_so_many_steps_are_the_first_in_the_ranking() {
    let tried = (0..reach(30, 1000)).into_par_iter().map(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut machine, most) = drawn(&mut random, 27);
        machine.set_ports(random.u32(1..=most));
        let operation = OPERATIONS[usize::from(random.u32(..4) == 0)];
        let problem = problem(&machine, operation, 1 << random.u32(..20));
        let exchange = exchange(&machine, &problem);
        let selection = exchange.select().unwrap();
        let names = selection.choices.iter().map(|choice| choice.algorithm.as_str());
        let names: Vec<_> = names.filter(|name| !OWN.contains(name)).collect();
        let several = names.iter().find(|name| listed(&selection, name).len() > 1);
        let name = several.unwrap_or(&names[0]);
        let own = listed(&selection, name);
        let all = || own.iter().map(|choice| choice.price.steps);
        let most = random.u64(all().min().unwrap()..=all().max().unwrap());
        let first = own.iter().find(|choice| choice.price.steps <= most).unwrap();
        let place = format!("{} {problem:?} {name} steps={most}", machine.name);
        let found = exchange.solve(name, &steps(most)).unwrap();
        assert_eq!(found.schedule.origin.parameters, first.parameters, "{place}");
        assert_eq!(found.claims.steps, first.price.steps, "{place}");
        let again = exchange.schedule(name, &steps(first.price.steps)).unwrap();
        assert_eq!(again.origin, found.schedule.origin, "{place}");
        several.is_some()
    });
    assert!(tried.filter(|several| *several).count() > 15);
}

/// Where a ranking lists no setting of an algorithm with so few steps, it is the cheapest.
#[test]
fn settings_that_are_not_listed_have_steps_too() {
    let machine: Machine = machine("torus:8x8").unwrap();
    let exchange = Exchange::all_to_all(&machine).unwrap();
    let selection = exchange.select().unwrap();
    let first = |name: &str| listed(&selection, name)[0].price.steps;
    let bruck = exchange.solve("bruck", &steps(6)).unwrap();
    assert!(first("bruck") > 6 && bruck.claims.steps == 6);
    assert_eq!(
        refusal(&exchange, "bruck", "steps=5"),
        "bruck: steps is `5`, not at least 6, the fewest steps of its settings"
    );
    let word = refusal(&exchange, "strided-rings", "steps=few");
    assert_eq!(word, "strided-rings: steps is `few`, not a whole number");
    // The other parameters hold.
    let found = exchange.schedule("bruck", &setting("steps=20 radix=3")).unwrap();
    assert_eq!(found.origin.parameters["radix"], 3.into());
    let few = refusal(&exchange, "bruck", "steps=7 radix=3");
    assert!(few.starts_with("bruck: steps is `7`, not at least "), "{few}");
    let inner = refusal(&exchange, "product", "along=coloured-rings along.steps=9");
    assert!(inner.contains("coloured-rings: steps is `9`, not for an inner exchange"), "{inner}");
}

/// With a limit of steps, a sweep takes at each size the fastest in step of those within it.
#[test]
fn sweeps_and_fronts_keep_to_the_steps() {
    let machine = machine("torus:4x8").unwrap();
    let exchange = Exchange::all_to_all(&machine).unwrap();
    let asked = [("coloured-rings".to_owned(), steps(12))];
    let sweep = exchange.sweep(&[64, 4096, 1 << 20], &asked).unwrap();
    let front = exchange.front(&asked).unwrap();
    let points = sweep.lines[0].points.iter().chain(&front.points).chain(&front.beaten);
    assert!(points.map(|choice| choice.price.steps).all(|steps| steps <= 12));
    assert!(!front.points.is_empty());
}
