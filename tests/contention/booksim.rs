//! Open loops against `BookSim` 2: average latencies of packets, in cycles. Its command, of the first line:
//!
//! ```text
//! booksim cfgfile topology=mesh k=8 n=2 num_vcs=4 packet_size=8 traffic=uniform injection_rate=0.1
//!   routing_function=dim_order vc_buf_size=8 use_noc_latency=0 wait_for_tail_credit=0 seed=1
//!   injection_rate_uses_flits=1 sample_period=2000
//! ```
//!
//! Adaptive lines have `routing_function=min_adapt`. Its uniform traffic includes the sender itself, and
//! it measures after a warm-up; both differ by less than the tolerance.

use common::{MEMORY, network, routers, run};
use topocoll::contention::{Pattern, Routing};

/// A machine, its virtual channels, flits of a packet, a pattern with its rate, and `BookSim`'s latency.
type Point = (&'static str, u32, u64, &'static str, f64);

const DIMENSION_ORDER: [Point; 17] = [
    ("mesh:8x8", 4, 8, "uniform:0.1", 42.9),
    ("mesh:8x8", 4, 8, "uniform:0.3", 60.8),
    ("mesh:8x8", 4, 8, "transpose:0.1", 45.5),
    ("torus:8x8", 4, 8, "uniform:0.1", 36.1),
    ("torus:8x8", 4, 8, "tornado:0.1", 49.6),
    ("mesh:4x4", 4, 8, "uniform:0.3", 33.1),
    ("mesh:16x16", 4, 8, "uniform:0.1", 74.2),
    ("torus:4x4x4", 4, 8, "uniform:0.3", 35.1),
    ("torus:8x8", 2, 8, "uniform:0.2", 41.0),
    ("torus:8x8", 8, 8, "uniform:0.5", 64.9),
    ("torus:8x8", 4, 16, "uniform:0.3", 64.6),
    ("torus:8x8", 4, 4, "uniform:0.3", 34.6),
    ("torus:8x8", 4, 8, "bitcomp:0.2", 38.6),
    ("torus:8x8", 4, 8, "neighbor:0.2", 24.9),
    ("mesh:8x8", 4, 16, "uniform:0.2", 66.8),
    ("mesh:8x8", 2, 4, "uniform:0.2", 40.6),
    ("mesh:4x4x4", 8, 4, "uniform:0.3", 32.4),
];

const ADAPTIVE: [Point; 25] = [
    ("mesh:8x8", 4, 8, "uniform:0.1", 43.3),
    ("mesh:8x8", 4, 8, "uniform:0.3", 81.8),
    ("mesh:8x8", 4, 8, "transpose:0.1", 46.4),
    ("torus:8x8", 4, 8, "uniform:0.1", 36.4),
    ("torus:8x8", 4, 8, "tornado:0.1", 52.1),
    ("mesh:8x8", 4, 8, "transpose:0.12", 54.5),
    ("mesh:8x8", 4, 8, "tornado:0.2", 92.3),
    ("mesh:8x8", 4, 8, "bitcomp:0.1", 60.9),
    ("torus:8x8", 4, 8, "uniform:0.4", 62.0),
    ("torus:8x8", 4, 8, "tornado:0.15", 77.8),
    ("torus:8x8", 4, 8, "transpose:0.2", 51.6),
    ("torus:8x8", 8, 8, "tornado:0.1", 52.4),
    ("mesh:4x4", 4, 8, "uniform:0.3", 33.4),
    ("mesh:16x16", 4, 8, "uniform:0.1", 78.7),
    ("torus:4x4", 4, 8, "uniform:0.5", 37.1),
    ("torus:4x4x4", 4, 8, "uniform:0.3", 35.4),
    ("mesh:4x4x4", 4, 8, "uniform:0.4", 50.2),
    ("torus:16x16", 4, 8, "uniform:0.1", 59.2),
    ("mesh:8x8", 2, 8, "uniform:0.2", 52.7),
    ("mesh:8x8", 8, 8, "uniform:0.3", 79.3),
    ("mesh:8x8", 4, 4, "uniform:0.3", 65.5),
    ("mesh:8x8", 4, 16, "uniform:0.2", 72.0),
    ("torus:8x8", 4, 4, "uniform:0.3", 36.6),
    ("torus:8x8", 4, 16, "uniform:0.3", 68.7),
    ("torus:8x8", 4, 1, "uniform:0.2", 29.8),
];

fn agree(routing: Routing, points: &[Point]) {
    for &(text, vcs, flits, pattern, expected) in points {
        let machine = network(text, 50e-9);
        let cycles = (640_000 / u64::from(machine.ranks())).clamp(5000, 20_000);
        let traffic = Pattern::new(&machine, pattern, flits, 1, Some(cycles), MEMORY).unwrap();
        let mut settings = routers(vcs);
        settings.routing = routing;
        let found = run(&traffic, &machine, "flit", settings);
        assert!(!found.partial, "{text} {pattern}: {:?}", found.deadlock);
        let load = found.load.unwrap();
        assert!(!load.saturated, "{text} {pattern}: {load:?}");
        let average = found.latencies.unwrap().average / found.cycle as f64;
        println!("{text} {vcs} {flits} {pattern}: {average:.1}, {expected}");
        let off = (average - expected).abs() / expected;
        assert!(off < 0.1, "{text} {vcs} {flits} {pattern}: {average}, not {expected}");
    }
}

#[test]
fn open_loops_in_dimension_order_take_as_long_as_in_booksim() {
    agree(Routing::DimensionOrder, &DIMENSION_ORDER);
}

#[test]
fn adaptive_open_loops_take_as_long_as_in_booksim() {
    agree(Routing::Adaptive, &ADAPTIVE);
}
