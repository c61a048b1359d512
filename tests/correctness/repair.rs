//! Schedules of whole machines around failed nodes and links.

use rayon::prelude::*;
use topocoll::{Catalogue, Collective, Machine, Method, Origin, Parameters, Request, Setting};

use common::{check_promises, claims, find, problem, with_ports};

fn settings(machine: &Machine) -> Vec<Parameters> {
    let problem = problem(machine, Collective::AllToAll, 6);
    let algorithm = find("repair").unwrap();
    algorithm.candidates(&Request::new(&problem, &*machine.topology)).unwrap()
}

/// Steps and volume in blocks.
fn counted(machine: &Machine, algorithm: &str, setting: &Parameters) -> Option<(u64, u128)> {
    let problem = problem(machine, Collective::AllToAll, 6);
    let claims = claims(machine, &problem, algorithm, setting).ok()?;
    Some((claims.steps, claims.bytes.div_ceil(6)))
}

#[test]
fn every_failure_is_led_around_as_claimed() {
    for (text, ports) in [
        ("torus:4x4/0,0+0", 1),
        ("torus:4x4/0,0+0", 4),
        ("torus:4x4/1,1", 1),
        ("torus:4x4/1,1/3,3+1", 2),
        ("torus:5x2/0,0", 1),
        ("torus:3x3x3/0,0,0/1,1,1+2", 6),
        ("mesh:4x4/0,0", 1),
        ("mesh:4x3/1,1+0", 4),
        ("torus:6/0+0", 2),
    ] {
        let machine = with_ports(text, ports);
        for setting in settings(&machine) {
            let problem = problem(&machine, Collective::AllToAll, 6);
            let algorithm = find("repair").unwrap();
            if counted(&machine, "repair", &setting).is_some() {
                check_promises(&machine, algorithm, &problem, &setting, Method::Replay);
            }
        }
    }
}

/// A setting of an all-to-all that has no link contention, by its steps and its volume in blocks.
type Free = (u64, u128, Parameters);

/// All such settings of a machine, as settings of `repair`, the fewest steps first.
fn free(whole: &Machine) -> Vec<Free> {
    let problem = problem(whole, Collective::AllToAll, 6);
    let request = Request::new(&problem, &*whole.topology);
    let mut free = Vec::new();
    for algorithm in Catalogue::standard().iter() {
        for found in request.solutions(algorithm).filter(|found| found.claims.contention_free) {
            let Origin { algorithm, parameters } = found.schedule.origin.clone();
            let own = parameters.into_iter().map(|(key, value)| (format!("of.{key}"), value));
            let setting = own.chain([("of".to_owned(), Setting::Text(algorithm))]).collect();
            free.push((found.claims.steps, found.claims.bytes.div_ceil(6), setting));
        }
    }
    free.sort();
    free
}

/// Their Pareto front.
fn front(free: &[Free]) -> Vec<(u64, u128)> {
    let mut front: Vec<(u64, u128)> = Vec::new();
    for &(steps, volume, _) in free {
        if front.last().is_none_or(|&(_, least)| volume < least) {
            front.push((steps, volume));
        }
    }
    front
}

/// At each point of the whole machine's Pareto front: at most 4/3 of the volume in at most 8 steps more.
fn loses_little(failed: &str, front: &[(u64, u128)], found: &[(u64, u128)]) {
    for (steps, volume) in front {
        let near = found.iter().filter(|(found, _)| *found <= steps + 8);
        let best = near.min_by_key(|(_, volume)| *volume).unwrap();
        println!("{failed}: {steps}/{volume}, repaired {}/{}", best.0, best.1);
        assert!(3 * best.1 <= 4 * volume, "{failed}: {steps}/{volume}, repaired {best:?}");
    }
}

/// One port, a failed link, node or line.
#[test]
fn one_port_loses_little() {
    let front = front(&free(&with_ports("torus:8x8", 1)));
    assert_eq!((front.first(), front.last()), (Some(&(6, 192)), Some(&(64, 64))));
    for failed in ["/0,0+0", "/0,0", "/line:0,0+0"] {
        let machine = with_ports(&format!("torus:8x8{failed}"), 1);
        let settings = settings(&machine);
        let found = settings.iter().filter_map(|setting| counted(&machine, "repair", setting));
        loses_little(failed, &front, &found.collect::<Vec<_>>());
    }
}

/// The same for schedules near the front, each in as many steps as suffice and in 8 more than it has.
#[test]
#[ignore = "takes minutes"]
fn one_port_loses_little_on_256_ranks() {
    let free = free(&with_ports("torus:16x16", 1));
    let front = front(&free);
    let near = |(steps, volume, _): &&Free| {
        let best = front.iter().filter(|(other, _)| *other <= steps + 2).map(|(_, volume)| volume);
        best.min().is_some_and(|best| 4 * volume <= 5 * best)
    };
    let near: Vec<&Free> = free.iter().filter(near).collect();
    let settings = near.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).flat_map(|equal| {
        equal.iter().take(2).flat_map(|(steps, _, setting)| {
            let longer = [("steps".to_owned(), Setting::Integer(steps + 8))].into_iter();
            [setting.clone(), setting.clone().into_iter().chain(longer).collect()]
        })
    });
    let settings: Vec<Parameters> = settings.collect();
    for failed in ["/0,0+0", "/0,0", "/line:0,0+0"] {
        let machine = with_ports(&format!("torus:16x16{failed}"), 1);
        let found = settings.par_iter().filter_map(|setting| counted(&machine, "repair", setting));
        loses_little(failed, &front, &found.collect::<Vec<_>>());
    }
}

/// Beyond 64 ranks `select` tries settings in which only blocks that met failures move. The steps are those of the
/// whole machine's schedule, and the volume is little more.
#[test]
fn large_machines_lose_little() {
    for (whole, failed, ports) in [
        ("torus:24x24", "/0,0+0", 4),
        ("torus:12x9", "/5,7/5,8/line:3,0+1", 4),
        ("torus:9x9", "/8,8", 1),
        ("torus:5x5x6", "/line:0,1,2+2", 6),
        ("torus:2x3x4x5", "/0,0,0,0+3/1,2,3,4", 8),
    ] {
        let [whole, machine] =
            [whole.to_owned(), whole.to_owned() + failed].map(|text| with_ports(&text, ports));
        let mut settings = settings(&machine);
        settings.retain(|setting| setting["moved"] == Setting::from("cut"));
        assert!(settings.iter().any(takes_whole_blocks));
        for setting in settings {
            let problem = problem(&machine, Collective::AllToAll, 6);
            check_promises(&machine, find("repair").unwrap(), &problem, &setting, Method::Replay);
            let own = setting.iter().filter_map(|(key, value)| {
                Some((key.strip_prefix("of.")?.to_owned(), value.clone()))
            });
            let (steps, volume) = counted(&whole, "neighbour-rings", &own.collect()).unwrap();
            let found = counted(&machine, "repair", &setting).unwrap();
            println!(
                "{failed} of {}: {found:?}, whole {steps}, {volume}",
                whole.topology.short_form()
            );
            assert_eq!(found.0, steps, "{failed}");
        }
    }
}

/// Failed nodes and links drawn on tori and meshes: schedules over several hops, whose ranks differ, are led around
/// them by class, as claimed.
#[test]
fn blocks_that_met_failures_move_by_class() {
    let mut seed = 7u64;
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as u32 % below
    };
    let mut found = 0;
    for sides in [&[8u32, 8][..], &[8, 4], &[4, 4, 4], &[6, 6], &[9, 6]] {
        for shape in ["torus", "mesh"] {
            let mut text = format!(
                "{shape}:{}",
                sides.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
            );
            for _ in 0..1 + draw(3) {
                let node = sides.iter().map(|&side| draw(side - 1).to_string()).collect::<Vec<_>>();
                let node = format!("/{}", node.join(","));
                let link = draw(2) * (1 + draw(sides.len() as u32));
                if !text.contains(&node) {
                    text += &node;
                    if link > 0 {
                        text += &format!("+{}", link - 1);
                    }
                }
            }
            for of in ["strided-rings", "coloured-rings", "suh-shin", "product"] {
                let machine = with_ports(&text, 1);
                let problem = problem(&machine, Collective::AllToAll, 6);
                let setting = [("of", of), ("moved", "cut"), ("on", "whole")];
                let setting = setting.map(|(key, value)| (key.to_owned(), value.into())).into();
                let repair = find("repair").unwrap();
                let solved = Request::new(&problem, &*machine.topology).solve(repair, &setting);
                if let Ok(solution) = solved {
                    let all = &solution.schedule.origin.parameters;
                    check_promises(&machine, repair, &problem, all, Method::Replay);
                    found += 1;
                }
            }
        }
    }
    println!("{found} repaired");
    assert!(found >= 10);
}

/// 4,095 ranks take seconds, and one port is led around a failed node in little more than on the whole machine.
#[test]
fn a_failed_node_of_4096_costs_a_thirteenth() {
    let whole = with_ports("torus:16x16x16", 1);
    let machine = with_ports("torus:16x16x16/0,0,0", 1);
    let settings = settings(&machine);
    let of = |setting: &Parameters| setting.get("of") == Some(&Setting::from("strided-rings"));
    let setting = settings.iter().find(|setting| of(setting)).unwrap();
    let own = setting.iter();
    let own =
        own.filter_map(|(key, value)| Some((key.strip_prefix("of.")?.to_owned(), value.clone())));
    let (steps, volume) = counted(&whole, "strided-rings", &own.collect()).unwrap();
    let (found, moved) = counted(&machine, "repair", setting).unwrap();
    println!("{steps} steps, {volume}; {found} steps, {moved}");
    assert!(found == steps && 13 * moved < 14 * volume);
}

/// Whether parts of blocks, which may be too many to move, stay together.
fn takes_whole_blocks(setting: &Parameters) -> bool {
    setting.get("of.parts").is_none_or(|parts| *parts != Setting::from("bytes"))
}

/// `torus:8x16x16` with a failed node has more than 131072 parts of blocks that must move.
#[test]
fn whole_blocks_are_ranked_beside_parts() {
    let settings = settings(&with_ports("torus:8x16x16/0,0,0", 6));
    assert!(settings.iter().any(takes_whole_blocks));
    assert!(!settings.iter().all(takes_whole_blocks));
}

/// Parts of blocks take other paths too, and arrive in one slot.
#[test]
fn parts_of_blocks_move() {
    let machine = with_ports("torus:5x4x4/0,0,0+0/4,3,3", 6);
    let problem = problem(&machine, Collective::AllToAll, 6);
    let setting =
        [("of", "neighbour-rings"), ("of.parts", "bytes"), ("moved", "cut"), ("on", "whole")];
    let setting = setting.map(|(key, value)| (key.to_owned(), value.into())).into();
    check_promises(&machine, find("repair").unwrap(), &problem, &setting, Method::Replay);
}

/// Paths are found once for parts of blocks of all sizes: the steps are the same, and the volume is nearly the share.
#[test]
fn blocks_of_all_sizes_take_the_same_paths() {
    let setting =
        [("of", "neighbour-rings"), ("of.parts", "bytes"), ("moved", "all"), ("on", "whole")];
    let setting = setting.map(|(name, word)| (name.to_owned(), Setting::from(word))).into();
    for text in ["torus:4x4/1,1", "torus:3x4x2/0,0,1", "mesh:4x5/1,1"] {
        let machine = with_ports(text, 6);
        let cost = |bytes: u64| {
            let problem = problem(&machine, Collective::AllToAll, bytes);
            check_promises(&machine, find("repair").unwrap(), &problem, &setting, Method::Replay);
            let claims = claims(&machine, &problem, "repair", &setting).unwrap();
            (claims.steps, claims.bytes as f64 / bytes as f64)
        };
        let (steps, volume) = cost(1024);
        for bytes in [3, 64, 1000, 123_456, 1 << 30] {
            let (own_steps, own_volume) = cost(bytes);
            let rounded = volume * (6.0 / bytes as f64).max(0.02);
            assert_eq!(own_steps, steps, "{text} {bytes}");
            assert!(
                (own_volume - volume).abs() <= rounded,
                "{text} {bytes}: {own_volume} {volume}"
            );
        }
    }
}

#[test]
fn other_requests_are_refused() {
    let refused_with = |ports, text: &str, setting: &[(&str, Setting)]| {
        let machine = with_ports(text, ports);
        let problem = problem(&machine, Collective::AllToAll, 6);
        let setting = setting.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        claims(&machine, &problem, "repair", &setting.collect()).unwrap_err().to_string()
    };
    let refused = |text: &str, setting: &[(&str, Setting)]| refused_with(1, text, setting);
    assert!(refused("torus:4x4", &[]).contains("with failed nodes or links"));
    assert!(refused("twisted-torus:2x4", &[]).contains("with failed nodes or links"));
    assert!(refused("torus:4x4/0,0", &[("of", "repair".into())]).contains("another algorithm"));
    assert!(refused("torus:4x4/0,0", &[("steps", 3.into())]).contains("enough for all blocks"));
    assert!(refused("torus:4x4/0,0", &[("steps", 0.into())]).contains("from 1 to 4096"));
    let named = refused("torus:5x4/0,0", &[("of", "suh-shin".into())]);
    assert!(named.contains("of=suh-shin: requires"), "{named}");
    assert!(refused("torus:32x32/0,0", &[]).contains("at most 512 ranks, or moved=cut"));
    let cut = ("moved", "cut".into());
    let differ = "all, as too many ranks of the schedule differ, or some copy blocks";
    let copies = [("of", "bruck".into()), cut.clone()];
    assert!(refused("torus:8x8/0,0", &copies).contains(differ));
    let mesh = [("of", "neighbour-rings".into()), cut.clone()];
    assert!(refused("mesh:64x64/0,0", &mesh).contains(differ));
    let rings = [("of", "neighbour-rings".into()), cut];
    let most = "all, as more than 262144 pieces of blocks are cut";
    let lines = (0..8).map(|line| format!("/line:0,{}+0", 5 * line));
    let lines = "torus:40x40".to_owned() + &lines.collect::<String>();
    assert!(refused_with(4, &lines, &rings).contains(most));
    // A ring with a failed link is a line, on which blocks go almost twice as far.
    let far = "a machine on which all blocks arrive in at most 16 steps more";
    assert!(refused_with(2, "torus:80/7+0", &rings[..1]).contains(far));
}
