//! Calibration finds the terms that the times are made of, and regret is the extra cost of a choice.

use topocoll::{Fit, Sample, fit, fit_processes, injection_of, measure, regret};

/// Two cells, with times that these terms give.
fn made_of([startup, per_byte, rearrangement, per_block, exchange]: [f64; 5]) -> Vec<Vec<Sample>> {
    let cells = [(4, 8), (8, 4096), (16, 64)];
    let mut cells = cells.map(|(ranks, block)| measure(ranks, block, 1, 1).unwrap());
    for sample in cells.iter_mut().flatten() {
        sample.threads = 2;
        let turns = f64::from(sample.ranks) / 2.0;
        let of_steps = startup * sample.steps as f64 + per_byte * sample.link_bytes as f64;
        let copied = sample.copied_bytes as f64;
        let of_copies = (rearrangement + per_block / sample.block_bytes as f64) * copied;
        sample.seconds = turns * (of_steps + of_copies) + exchange;
    }
    cells.to_vec()
}

#[test]
fn calibration_finds_the_terms_and_regret_is_zero() {
    let made = [1e-6, 2e-10, 3e-11, 4e-9, 5e-6];
    let cells = made_of(made);
    let all: Vec<Sample> = cells.iter().flatten().cloned().collect();
    let found = fit(&all);
    let Fit { startup, per_byte, rearrangement, per_block, exchange, .. } = found;
    let values = [startup, per_byte, rearrangement, per_block, exchange];
    for (value, made) in values.into_iter().zip(made) {
        assert!((value / made - 1.0).abs() < 0.01, "{value} for {made}");
    }
    assert!(found.error < 1e-3);
    for cell in &cells {
        assert!(regret(cell, &found).unwrap().share() < 0.01);
    }
    // More ranks than threads take turns.
    let [few, many] = [16, 64].map(|ranks| found.timing(ranks).startup.least());
    assert!((many / few - 4.0).abs() < 1e-9 && (few / found.startup - 8.0).abs() < 1e-9);
}

#[test]
fn ranks_in_their_own_processes_do_not_share_a_thread() {
    let made = [3e-5, 8e-9, 2e-10];
    let mut samples =
        [(4, 8), (8, 4096), (16, 64)].map(|(ranks, block)| measure(ranks, block, 1, 1).unwrap());
    for sample in samples.iter_mut().flatten() {
        sample.threads = sample.ranks;
        let copies = made[2] * sample.copied_bytes as f64;
        sample.seconds =
            made[0] * sample.steps as f64 + made[1] * sample.link_bytes as f64 + copies;
    }
    let found = fit_processes(&samples.concat());
    let values = [found.startup, found.per_byte, found.rearrangement];
    for (value, made) in values.into_iter().zip(made) {
        assert!((value / made - 1.0).abs() < 0.01, "{value} for {made}");
    }
    assert_eq!(found.exchange, 0.0);
    assert_eq!(found.timing(16).startup.least(), found.startup);
}

#[test]
fn the_regret_of_a_bad_choice_is_its_extra_cost() {
    let mut cells = made_of([1e-6, 2e-10, 0.0, 0.0, 0.0]);
    let all: Vec<Sample> = cells.iter().flatten().cloned().collect();
    let found = fit(&all);
    let cell = &mut cells[2];
    let chosen = regret(cell, &found).unwrap().chosen;
    cell.iter_mut().find(|sample| sample.parameters != chosen.parameters).unwrap().seconds =
        chosen.seconds / 2.0;
    assert!((regret(cell, &found).unwrap().share() - 1.0).abs() < 1e-9);
}

#[test]
fn no_value_is_negative() {
    let mut cells = made_of([1e-6, 0.0, 0.0, 0.0, 0.0]);
    // Times that fall with message size.
    for sample in cells.iter_mut().flatten() {
        sample.seconds /= 1.0 + sample.link_bytes as f64 * 1e-6;
    }
    let found = fit(&cells.concat());
    let values = [found.startup, found.per_byte, found.rearrangement, found.exchange];
    assert!(values.iter().all(|&value| value >= 0.0) && found.startup > 0.0, "{values:?}");
}

/// Four messages of a second each that take `times` as long at once as one of them.
#[test]
fn injection_is_a_limit_only_beyond_the_noise() {
    let of = |times: f64, noise: f64| {
        let rounds = |seconds: f64| [seconds * (1.0 + noise), seconds, seconds * (1.0 + noise)];
        injection_of(4, 2e-10, &rounds(4.0), &rounds(times))
    };
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
    // At the rate of four links, of two, of one and a third, and of less than one.
    assert_eq!(of(1.0, 0.0), 0.0);
    assert!(near(of(2.0, 0.0), 1e-10));
    assert!(near(of(3.0, 0.0), 1.5e-10));
    assert!(near(of(4.0, 0.0), 2e-10) && near(of(9.0, 0.0), 2e-10));
    // 3.8 times as fast at once: a limit in calm rounds, and none where rounds differ by 5 %.
    let almost = 4.0 / 3.8;
    assert!(near(of(almost, 0.01), 2e-10 / 3.8));
    assert_eq!(of(almost, 0.05), 0.0);
    // Faster at once than all links together.
    assert_eq!(of(0.5, 0.0), 0.0);
}
