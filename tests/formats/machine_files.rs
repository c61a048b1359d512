//! Machine files of other programs.

use std::path::Path;

use topocoll::files;
use topocoll::{Rank, Shape, load_file, machine, shipped};

fn path(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    folder.join(name).display().to_string()
}

#[test]
fn the_kind_of_a_file_is_found_by_its_content() {
    for (name, shape) in [
        ("torus.xml", "torus:4x8"),
        ("two-packages.xml", "cluster:2*3"),
        ("topology.conf", "cluster:2*4"),
        ("units.xml", "cluster:2,3"),
        ("openmpi-hosts", "cluster:2*4,1"),
        ("mpich-hosts", "cluster:3,2"),
    ] {
        let machine = machine(&path(name)).unwrap();
        assert_eq!(machine.topology.short_form(), shape, "{name}");
        assert_eq!((machine.name.as_str(), machine.ports), (name.split('.').next().unwrap(), 1));
    }
}

#[test]
fn a_simgrid_platform_is_our_torus_with_dimensions_reversed() {
    let machine = machine(&path("torus.xml")).unwrap();
    let Shape::Grid(grid) = machine.topology.shape() else { panic!("a torus") };
    // Its hosts 0 and 1 are neighbours along the side of 8.
    assert_eq!((grid.sides(), grid.radix().coordinate(Rank(1), 1)), (&[4, 8][..], 1));
    let timing = &machine.timing;
    assert_eq!((timing.per_byte.of(0), timing.per_hop.of(1)), (1e-9, 1e-6));
    assert_eq!((timing.startup.of(0), timing.rearrangement_per_byte), (0.0, 0.0));
}

#[test]
fn a_wrong_value_is_refused_at_its_place() {
    for (name, rule, place) in [
        ("bomb.xml", "declares entities", 2),
        ("entity.xml", "boom", 2),
        ("radical.xml", "radical names 32 hosts, but torus:5x8 has 40", 3),
        ("fat-tree.xml", "topology FAT_TREE is not supported", 2),
        ("truncated.xml", "", 0),
        ("picture.xml", "<svg> is not supported", 1),
        ("twice.conf", "a node is listed twice", 2),
        ("huge.conf", "more than 1048576 nodes", 1),
        ("again-hosts", "host node1 is listed again", 3),
        ("none-hosts", "`0` is not a number of ranks", 1),
        ("slots-hosts", "a second number of ranks", 2),
        ("key-hosts", "`colour` is not one of slots, max_slots", 2),
        ("hosts.xml", "<host> is not supported", 2),
    ] {
        let path = path(&format!("refused/{name}"));
        let text = std::fs::read_to_string(&path).unwrap();
        let error = files::read(name, &text).unwrap_err();
        assert!(error.message.contains(rule), "{name}: {error}");
        let at = error.span.unwrap().start;
        let line = text[..at].lines().count() + usize::from(text[..at].ends_with('\n') || at == 0);
        assert!(place == 0 || line == place, "{name}: line {line}");
        assert!(load_file(Path::new(&path)).is_err());
    }
}

#[test]
fn text_without_hosts_is_not_a_host_file() {
    for text in ["some/path slots=2\n", "{ \"ranks\": 4 }\n", ":3\n", "node 3\n"] {
        let refused = files::read("some", text).unwrap_err();
        assert!(!refused.message.contains("host "), "{text}: {refused}");
    }
}

#[test]
fn hostile_files_are_refused_without_a_panic() {
    let deep = format!("<topology>{}", "<object type='Group'>".repeat(40_000));
    let refused = files::read("deep", &deep).unwrap_err();
    assert!(refused.message.contains("more than 256 nested elements"), "{refused}");
    let wide = format!(
        "<topology><object {}/></topology>",
        (0..100_000).map(|i| format!("a{i}='' ")).collect::<String>()
    );
    let refused = files::read("wide", &wide).unwrap_err();
    assert!(refused.message.contains("more than 64 attributes"), "{refused}");
    let list = format!("SwitchName=a Nodes={}", "a[0-1]".repeat(60_000));
    assert!(files::read("list", &list).unwrap_err().message.contains("more than"));
    // Two switches give the same machine as one.
    let two = "SwitchName=a Nodes=a[1-1048576]\nSwitchName=b Nodes=b[1-2]\n";
    assert!(files::read("two", two).unwrap_err().message.contains("more than 1048576 nodes"));
    let many = "node slots=4294967295\nnode slots=1\n";
    assert!(files::read("many", many).unwrap_err().message.contains("too many ranks"));
    for name in ["torus.xml", "two-packages.xml", "topology.conf", "openmpi-hosts", "mpich-hosts"] {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = files::read("cut", &text[..end]);
            let mut bytes = text.clone().into_bytes();
            bytes[end] = random.u8(..128);
            let _ = files::read("changed", &String::from_utf8(bytes).unwrap());
        }
    }
}

#[test]
fn the_kind_of_a_machine_file_is_found_without_its_name() {
    for (name, text) in shipped() {
        assert_eq!(
            files::read(name, text).unwrap().topology.ranks(),
            machine(name).unwrap().ranks()
        );
    }
}
