//! docs/src/papers.md shows the values that the papers print and the counts of the readers.

use std::cmp::Ordering;

use common::{claims, exchange, schedule_of, sweep, with_ports};
use topocoll::{
    Collective, Counts, Line, Machine, PUBLISHED, Parameters, Part, Problem, Rank, Setting, Step,
    count, machine,
};

const PAGE: &str = include_str!("../../docs/src/papers.md");

fn paper_layout() -> Parameters {
    let text = |name: &str, value: &str| (name.to_owned(), Setting::Text(value.to_owned()));
    Parameters::from([text("layout", "paper"), text("rings", "hops"), text("ways", "one")])
}

/// Startups, blocks, hops, rearranged blocks, barriers.
type Row = [u128; 5];

/// Table 1 on sides given longest first, as printed.
fn table_1(sides: &[u128], wraps: bool) -> Row {
    let (n, longest, ranks) = (sides.len() as u128, sides[0], sides.iter().product::<u128>());
    match wraps {
        true => [
            n * (longest / 4 + 1),
            n * (longest + 4) * ranks / 8,
            n * (longest - 1),
            (n + 1) * ranks,
            n * longest / 4 + n - 1,
        ],
        false => [
            n * longest / 2,
            n * longest * ranks / 4,
            n * ((longest - 2).pow(2) + 2) / 2,
            n * ranks,
            n * longest / 2 - 1,
        ],
    }
}

/// Table 2, the proposed algorithm on a square of side 2^d, as printed.
fn table_2(d: u32, wraps: bool) -> Row {
    let two = |exponent| 2u128.pow(exponent);
    match wraps {
        true => [
            two(d - 1) + 2,
            two(3 * d - 2) + two(2 * d),
            two(d + 1) - 2,
            3 * two(2 * d),
            two(d - 1) + 1,
        ],
        false => [two(d), two(3 * d - 1), two(2 * d) + 6 - two(d + 2), 2 * two(2 * d), two(d) - 1],
    }
}

/// Table 2, the algorithms of references 16 (mesh) and 19 (torus), as printed.
#[expect(clippy::manual_div_ceil, reason = "as printed")]
fn table_2_others(d: u32, wraps: bool) -> Row {
    let two = |exponent| 2u128.pow(exponent);
    match wraps {
        true => [
            two(d - 1) + 2,
            two(3 * d - 2) + two(2 * d),
            (two(2 * d - 1) + 10) / 3,
            (two(d - 1) + 1) * two(2 * d),
            two(d - 1) + 1,
        ],
        false => {
            [two(d), two(3 * d - 1), (two(2 * d) + 2) / 3, (two(d) - 1) * two(2 * d), two(d) - 1]
        }
    }
}

fn counted_by(machine: &Machine, algorithm: &str, setting: &Parameters) -> Counts {
    let problem = common::problem(machine, Collective::AllToAll, 1);
    let schedule = schedule_of(machine, &problem, algorithm, setting).unwrap();
    count(&schedule, machine, None, 1 << 30).unwrap()
}

fn counted(machine: &Machine) -> Counts {
    counted_by(machine, "suh-shin", &paper_layout())
}

fn row_of(counts: &Counts) -> Row {
    let steps = u128::from(counts.steps);
    [steps, counts.bytes, counts.hops, counts.rearranged_bytes, steps - 1]
}

#[test]
fn counts_equal_tables_1_and_2_and_the_page_shows_them() {
    let mut table =
        "| machine | startups | blocks | hops | rearranged blocks | barriers | packed blocks |\n"
            .to_owned();
    table += "|---|---|---|---|---|---|---|\n";
    for (text, sides) in [
        ("torus:12x12", &[12, 12][..]),
        ("torus:8x12", &[12, 8]),
        ("torus:12x12x12", &[12; 3]),
        ("torus:8x8x8x8", &[8; 4]),
        ("torus:16x16", &[16; 2]),
        ("torus:32x32", &[32; 2]),
        ("torus:64x64", &[64; 2]),
        ("torus:128x128", &[128; 2]),
        ("mesh:6x6", &[6; 2]),
        ("mesh:6x6x6", &[6; 3]),
        ("mesh:16x16", &[16; 2]),
        ("mesh:32x32", &[32; 2]),
        ("mesh:64x64", &[64; 2]),
    ] {
        let wraps = text.starts_with("torus");
        let printed = table_1(sides, wraps);
        if sides.len() == 2 && sides[0] == sides[1] && sides[0].is_power_of_two() {
            assert_eq!(printed, table_2(sides[0].ilog2(), wraps), "{text}");
        }
        let counts = counted(&machine(text).unwrap());
        let found = row_of(&counts);
        assert_eq!(found, printed, "{text}");
        let numbers = found.map(|number| number.to_string()).join(" | ");
        table += &format!("| `{text}` | {numbers} | {} |\n", counts.packed_bytes);
    }
    assert!(PAGE.contains(&table), "papers.md should show\n{table}");
}

#[test]
fn counts_equal_table_2_for_other_algorithms_and_the_page_shows_them() {
    let mut table =
        "| machine | algorithm | startups | blocks | hops | rearranged blocks | barriers |\n"
            .to_owned();
    table += "|---|---|---|---|---|---|---|\n";
    for (shape, algorithm) in [("torus", "tseng-gupta-panda"), ("mesh", "cyclic-exchange")] {
        for d in 2..=6u32 {
            let text = format!("{shape}:{0}x{0}", 1 << d);
            let counts = counted_by(&machine(&text).unwrap(), algorithm, &Parameters::new());
            let found = row_of(&counts);
            assert_eq!(found, table_2_others(d, shape == "torus"), "{text}");
            let numbers = found.map(|number| number.to_string()).join(" | ");
            table += &format!("| `{text}` | `{algorithm}` | {numbers} |\n");
        }
    }
    assert!(PAGE.contains(&table), "papers.md should show\n{table}");
}

#[test]
fn the_page_shows_minimum_startup_beside_its_formula() {
    let mut table =
        "| machine | startups | printed | blocks | printed | hops | printed |\n".to_owned();
    table += "|---|---|---|---|---|---|---|\n";
    let row = PUBLISHED.iter().find(|row| row.name == "suh-yalamanchili").unwrap();
    for (shape, ds) in [("torus", 3..=6u32), ("mesh", 2..=6)] {
        for d in ds {
            let text = format!("{shape}:{0}x{0}", 1 << d);
            let on = machine(&text).unwrap();
            let counts = counted_by(&on, "minimum-startup", &Parameters::new());
            let problem = common::problem(&on, Collective::AllToAll, 1);
            let printed = row.counts(&problem, &*on.topology).unwrap();
            assert!(counts.steps <= printed.steps && counts.link_conflicts == 0, "{text}");
            assert!(counts.bytes <= printed.blocks, "{text}");
            assert!(counts.hops <= printed.hops.unwrap(), "{text}");
            table += &format!(
                "| `{text}` | {} | {} | {} | {} | {} | {} |\n",
                counts.steps,
                printed.steps,
                counts.bytes,
                printed.blocks,
                counts.hops,
                printed.hops.unwrap()
            );
        }
    }
    assert!(PAGE.contains(&table), "papers.md should show\n{table}");
}

#[test]
fn minimum_startup_takes_fewer_blocks_than_printed_up_to_a_side() {
    let row = PUBLISHED.iter().find(|row| row.name == "suh-yalamanchili").unwrap();
    for (shape, least, factor) in [("torus", 3, 10), ("mesh", 2, 8)] {
        for d in least..=15u32 {
            let on = machine(&format!("{shape}:{0}x{0}", 1u32 << d)).unwrap();
            let problem = common::problem(&on, Collective::AllToAll, 1);
            let claims = claims(&on, &problem, "minimum-startup", &Parameters::new()).unwrap();
            let printed = row.counts(&problem, &*on.topology).unwrap();
            let halves = claims.bytes / u128::from(on.ranks() / 2);
            let expected =
                if d == least { 2 * u128::from(d) } else { factor * (1 << (d - least)) - 5 };
            assert_eq!(halves, expected, "{shape} {d}");
            let order = match d - least {
                0 | 5 => Ordering::Equal,
                1..=4 => Ordering::Less,
                _ => Ordering::Greater,
            };
            assert_eq!(claims.bytes.cmp(&printed.blocks), order, "{shape} {d}");
            assert!((factor - 1) * claims.bytes <= factor * printed.blocks, "{shape} {d}");
            assert_eq!(claims.steps, printed.steps, "{shape} {d}");
            assert!(claims.hops <= printed.hops, "{shape} {d}");
        }
    }
}

#[test]
fn the_page_shows_where_the_papers_algorithm_overtakes_minimum_startup() {
    let mut table = "| side | torus | mesh | torus, startup 220 us | mesh, startup 220 us |\n|---|---|---|---|---|\n".to_owned();
    let crossing = |shape: &str, side: u32, startup: f64| {
        let mut on = machine(&format!("{shape}:{side}x{side}")).unwrap();
        on.timing = machine("paragon-16x16").unwrap().timing;
        on.timing.startup = topocoll::PerClass::uniform(startup);
        let asked = [("suh-shin".to_owned(), paper_layout())];
        let problem = common::problem(&on, Collective::AllToAll, 1);
        let found = sweep(&on, &problem, &[1], &asked).unwrap();
        // Lines in the block size: seconds that do not depend on it, and seconds per byte.
        let (formulas, _) = exchange(&on, &problem).published(&[1]);
        let line = |line: &Line| line.points[0].price.line(1);
        let (ours, theirs) = (line(&found.lines[0]), line(&formulas[0]));
        let first = ((ours.0 - theirs.0) / (theirs.1 - ours.1)).floor() as u64 + 1;
        assert_eq!(first, by_formulas(&on, &problem), "{shape} {side}");
        first
    };
    let mut last = [u64::MAX; 4];
    for side in [16, 32, 64, 128] {
        let now = [("torus", 75e-6), ("mesh", 75e-6), ("torus", 220e-6), ("mesh", 220e-6)]
            .map(|(shape, startup)| crossing(shape, side, startup));
        // The paper's words: smaller as networks grow, larger with the ratio of startups.
        assert!(now.iter().zip(&last).all(|(now, last)| now < last));
        assert!(now[0] <= now[2] && now[1] <= now[3]);
        last = now;
        table +=
            &format!("| {side} | {} B | {} B | {} B | {} B |\n", now[0], now[1], now[2], now[3]);
    }
    assert!(PAGE.contains(&table), "papers.md should show\n{table}");
}

/// The crossover by the printed formulas and values, and the packing that they leave out.
fn by_formulas(machine: &Machine, problem: &Problem) -> u64 {
    let side = u128::from(problem.ranks.isqrt());
    let wraps = machine.name.starts_with("torus");
    let row = PUBLISHED.iter().find(|row| row.name == "suh-yalamanchili").unwrap();
    let theirs = row.counts(problem, &*machine.topology).unwrap();
    let [startups, blocks, hops, rearranged, barriers] = table_1(&[side, side], wraps);
    let packed = counted(machine).packed_bytes;
    let startup = machine.timing.startup.least();
    let barrier = (126.0 * f64::from(problem.ranks).log2() - 113.0) * 1e-6;
    let fixed = |startups: u128, hops: u128, barriers: u128| {
        startups as f64 * startup + hops as f64 * 0.02e-6 + barriers as f64 * barrier
    };
    let per_byte = |blocks: u128, copied: u128| blocks as f64 * 0.011e-6 + copied as f64 * 0.014e-6;
    let steps = u128::from(theirs.steps);
    let excess = fixed(startups, hops, barriers) - fixed(steps, theirs.hops.unwrap(), steps - 1);
    let saved = per_byte(theirs.blocks, theirs.rearranged_blocks.unwrap())
        - per_byte(blocks, rearranged + packed);
    (excess / saved).floor() as u64 + 1
}

/// The table of seven columns and three rows that three ports divide in Table 1 of Bruck et al., which begins here
/// at the fifth of the eleven ranks.
#[test]
fn the_last_round_of_concatenation_is_the_papers_table_1() {
    let machine = with_ports("full:11", 3);
    let problem = common::problem(&machine, Collective::AllGather, 3);
    let schedule = schedule_of(&machine, &problem, "concat", &Parameters::new()).unwrap();
    let mut last = Step::default();
    schedule.rule().step(Rank(0), schedule.rule().steps() - 1, &mut last);
    let areas = last.sends.iter().map(|send| {
        let first = match send.slots.runs()[0].part {
            Part::Bytes { first, .. } => first,
            Part::Whole => 0,
        };
        (send.peer.0, first, send.slots.bytes(3))
    });
    assert_eq!(areas.collect::<Vec<_>>(), [(4, 0, 7), (6, 1, 7), (8, 2, 7)]);
}
