use std::path::Path;

use super::super::{read, read_in};
use super::*;
use crate::{LinkId, Rank, Shape};

#[test]
fn a_tree_keeps_its_switches_levels_and_speeds() {
    let text = "SwitchName=top Switches=s[0-1],mid LinkSpeed=300 # the root\n\
                SwitchName=s1 Nodes=b[0-1] LinkSpeed=100\nSwitchName=s0 Nodes=a[0-2]\n\
                SwitchName=mid Switches=s2 Nodes=login LinkSpeed=200\n\
                SwitchName=s2 Nodes=c\n";
    let machine = read("tree", text).unwrap();
    let Shape::Graph(graph) = machine.topology.shape() else { panic!("a graph") };
    let names: Vec<_> = (0..graph.vertices()).map(|v| machine.topology.vertex_name(v)).collect();
    let hosts = ["b0", "b1", "a0", "a1", "a2", "login", "c"];
    assert_eq!(names, [&hosts[..], &["top", "s1", "s0", "mid", "s2"]].concat());
    let classes = machine.topology.link_classes();
    assert_eq!(classes, ["level 0", "level 1", "level 2"]);
    let mut links = Vec::new();
    for link in (0..machine.topology.links()).map(LinkId) {
        let kind = machine.topology.link_kinds()[machine.topology.link_kind(link)];
        let (times, over) = kind.capacity.relative(1e-9);
        links.push(format!("{} {} {times}/{over}", machine.topology.link_name(link), kind.class));
    }
    assert_eq!(links.len(), 2 * (7 + 4));
    for link in [
        "b0 -> s1 0 1/1",
        "s0 -> a2 0 1/1",
        "top -> s0 2 3/1",
        "s0 -> top 2 3/1",
        "mid -> s2 1 2/1",
        "login -> mid 1 2/1",
        "mid -> top 2 3/1",
    ] {
        assert!(links.iter().any(|known| known == link), "{link}: {links:?}");
    }
    // b0 to c: s1, top, mid, s2.
    assert_eq!((graph.distance(Rank(0), Rank(6)), graph.diameter()), (5, 5));
}

fn tapered(text: &str, taper: Option<&str>) -> Result<Machine, SpecError> {
    let taper = taper.map(|taper| taper.parse().unwrap());
    read_in(Path::new("tree"), text, &Reading { taper, ..Reading::default() })
}

/// The capacity of each link upwards, by name.
fn upwards(machine: &Machine) -> Vec<(String, (u32, u32))> {
    let topology = &machine.topology;
    let links = (0..topology.links()).map(LinkId).filter(|&link| {
        let ends = topology.link(link).unwrap();
        ends.class > 0 && ends.from < ends.to
    });
    let capacity = |link| topology.link_kinds()[topology.link_kind(link)].capacity;
    links.map(|link| (topology.link_name(link), capacity(link).relative(1e-9))).collect()
}

#[test]
fn links_without_a_speed_do_not_block_unless_tapered() {
    let leaves = "SwitchName=s0 Nodes=a[0-31]\nSwitchName=s1 Nodes=b[0-7]\n";
    let tree = format!("{leaves}SwitchName=t Switches=s[0-1]\n");
    for (taper, of_s0, said) in [
        (None, (32, 1), "do not block"),
        (Some("2"), (16, 1), "over the taper of 2"),
        (Some("1.5"), (64, 3), "over the taper of 15/10"),
    ] {
        let machine = tapered(&tree, taper).unwrap();
        assert_eq!(upwards(&machine)[0], ("s0 -> t".to_owned(), of_s0));
        assert!(machine.assumed.unwrap().contains(said), "{taper:?}");
    }
    let given = format!("{leaves}SwitchName=t Switches=s[0-1] LinkSpeed=3\n");
    let machine = tapered(&given, None).unwrap();
    assert_eq!((upwards(&machine)[0].1, machine.assumed), ((1, 1), None));
    for text in [&*given, leaves] {
        let error = tapered(text, Some("2")).unwrap_err();
        assert!(error.message.contains("no LinkSpeed"), "{error}");
    }
    for taper in ["0", "1/2", "x", ""] {
        assert!(taper.parse::<Taper>().is_err(), "{taper}");
    }
}

/// Drawn trees and folded Clos networks: the links above each switch carry together what the hosts
/// below it send, over the taper, and no level is tapered twice.
#[test]
fn links_upwards_carry_what_comes_from_below() {
    let mut random = fastrand::Rng::with_seed(51);
    for _ in 0..100 {
        let (mut text, mut total) = (String::new(), 0);
        let leaves = random.u32(1..7);
        for leaf in 0..leaves {
            let hosts = random.u32(1..20);
            total += hosts;
            text += &format!("SwitchName=l{leaf} Nodes=h{leaf}x[1-{hosts}]\n");
        }
        // Every switch of a level is above every one of the level below.
        let (middle, top) = (random.u32(1..4), random.u32(1..4));
        for switch in 0..middle {
            text += &format!("SwitchName=m{switch} Switches=l[0-{}]\n", leaves - 1);
        }
        for switch in 0..top {
            text += &format!("SwitchName=t{switch} Switches=m[0-{}]\n", middle - 1);
        }
        let taper = random.u32(1..5);
        let machine = tapered(&text, Some(&taper.to_string())).unwrap();
        for level in ["l", "m"] {
            let carried = upwards(&machine).into_iter().filter(|(name, _)| name.starts_with(level));
            let sum: f64 =
                carried.map(|(_, (times, over))| f64::from(times) / f64::from(over)).sum();
            let sent = f64::from(total) / f64::from(taper);
            assert!((sum - sent).abs() < 1e-6, "{level}: {sum} of {sent}\n{text}");
        }
    }
}

#[test]
fn what_is_no_tree_is_refused() {
    let refused = |text: &str| read("some", text).unwrap_err();
    let leaves = "SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=b\n";
    for (line, rule) in [
        ("SwitchName=t Switches=s[0-2]", "s2 is not a switch of this file"),
        ("SwitchName=t Switches=s0,s0", "s0 is listed twice"),
        ("SwitchName=t Switches=t,s0", "t is below itself"),
        ("SwitchName=t Switches=s[0-1] LinkSpeed=fast", "LinkSpeed is `fast`"),
        ("SwitchName=t Switches=s[0-1] LinkSpeed=0", "LinkSpeed is `0`"),
    ] {
        let error = refused(&format!("{leaves}{line}\n"));
        assert!(error.message.contains(rule), "{line}: {error}");
        assert_eq!(error.span, Some(leaves.len()..leaves.len() + line.len()));
    }
    let error = refused(&format!("{leaves}SwitchName=t Switches=s0\n"));
    assert_eq!(
        error.message,
        "s1 is in another tree: no switch is above the 2 roots s1, t; --ranks picks hosts of one tree"
    );
}

/// Ranks of one tree exchange as if its file had no other.
#[test]
fn ranks_pick_a_tree() {
    let one = "SwitchName=s0 Nodes=a[0-2]\nSwitchName=s1 Nodes=b\nSwitchName=t Switches=s[0-1]\n";
    let forest = format!("SwitchName=x Nodes=x[0-3]\n{one}SwitchName=y Switches=x\n");
    let with = |ranks: &[u32]| {
        let ranks = Some(ranks.iter().copied().map(Rank).collect());
        read_in(Path::new("forest"), &forest, &Reading { ranks, ..Reading::default() })
    };
    let (alone, whole) = (read("tree", one).unwrap(), with(&[4, 7]).unwrap());
    assert_eq!((whole.ranks(), alone.ranks()), (8, 4));
    assert!(whole.assumed.unwrap().contains("links between trees, which --ranks does not use"));
    let links = |machine: &Machine, from: u32, to: u32| {
        let (topology, mut route) = (&machine.topology, crate::Route::default());
        topology.route(Rank(from), Rank(to), &mut route);
        let mut names = Vec::new();
        topology.for_each_link(Rank(from), &route, &mut |link| {
            let kind = topology.link_kinds()[topology.link_kind(link)];
            names.push((topology.link_name(link), kind.capacity));
        });
        names
    };
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        assert_eq!(links(&with(&[4]).unwrap(), 4 + from, 4 + to), links(&alone, from, to));
    }
    for ranks in [&[][..], &[3, 4], &[0, 7], &[8]] {
        let refused = with(ranks).unwrap_err().message;
        assert!(refused.contains("the 2 roots t, y; --ranks picks hosts of one"), "{refused}");
    }
}
