//! Machines named by short forms such as `torus:16x16`.

mod faults;
pub(crate) mod placement;

use std::sync::Arc;

use crate::graph_file::{self, NOT_JSON};
use crate::number::number;
use crate::text::nearest;
use crate::topology::lattice::placed;
use crate::{Clusters, Injection, Machine, PerClass, Rank, Shape, TOPOLOGIES, Timing, Topology};

pub use crate::error::SpecError;
pub use crate::graph_file::{Attributes, parse_graph};
pub use crate::machine_file::{parse_file, parse_file_in, write_file};
pub use crate::reading::{Reading, Taper};
pub(crate) use faults::Faults;
pub use faults::with_faults;
pub use placement::{read_nodes, with_placement};

/// How one kind of topology is written: `kind:rest`.
#[derive(Clone, Copy, Debug)]
pub struct ShortForm {
    /// The word before the colon.
    pub kind: &'static str,
    /// A complete short form.
    pub example: &'static str,
    /// Reads the text after the colon.
    pub(crate) parse: fn(&str) -> Result<Arc<dyn Topology>, String>,
}

/// Reads a short form such as `torus:16x16`, `grid:16~x8` or `cluster:32*4,1*2`.
///
/// A grid on the sides of another one has these after an `@`, as in `torus:64x64@16x2x2,16x2x2`,
/// or the routes of SimGrid's torus, `torus:8x8@simgrid`.
/// Absent nodes and broken links follow, each after a `/`: `/0,1` is a node, `/0,1+1` the link that
/// leaves that node upwards along dimension 1, `/line:0,1+1` all links of its line. At the end `*4`
/// puts four ranks on each node, and `*4,2,2` as many as listed.
///
/// # Errors
/// The wrong part and the rule.
pub fn parse_short_form(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    parse_short_form_with(text, &Reading::default())
}

/// Reads a short form as [`parse_short_form`], whose file may leave something open.
///
/// # Errors
/// The wrong part and the rule.
pub fn parse_short_form_with(
    text: &str,
    reading: &Reading,
) -> Result<Arc<dyn Topology>, SpecError> {
    reading.refuse_but("--attributes")?;
    let topology = NodesOn::parse(text, reading)?.topology();
    Ok(topology.map_err(|reason| format!("`{text}`: {reason}"))?)
}

/// A list of ranks such as `0-7,12`, in its order.
///
/// # Errors
/// The part that is neither a rank nor a range, or more than 2^20 ranks.
pub fn parse_ranks(text: &str) -> Result<Vec<Rank>, SpecError> {
    const MOST: usize = 1 << 20;
    let mut ranks = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let rule = || format!("`{range}` is neither a rank such as 12 nor a range such as 0-7");
        let number = |text: &str| text.parse::<u32>().map_err(|_| rule());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(rule().into());
        }
        if (last - first) as usize >= MOST - ranks.len() {
            return Err(format!("more than {MOST} ranks").into());
        }
        ranks.extend((first..=last).map(Rank));
    }
    Ok(ranks)
}

/// The ranks on each node, `8` or `4,4,2`.
pub(crate) fn ranks_of_nodes(text: &str) -> Result<Vec<u32>, String> {
    text.split(',').map(|size| number("ranks on each node", size)).collect()
}

/// The machine with ranks on each of its nodes, `8` or `4,4,2`. A node has the injection that its rank had, and
/// messages inside a node are as fast as over the fastest link.
///
/// # Errors
/// Not such a list, another number of nodes, or nodes of several ranks.
pub fn with_ranks_on_nodes(machine: &Machine, sizes: &str) -> Result<Machine, SpecError> {
    let network = match machine.topology.shape() {
        Shape::Clustered(nodes) if nodes.largest() > 1 => {
            let (form, size) = (machine.topology.short_form(), nodes.largest());
            let mut said = format!("`*{sizes}`: the nodes of {form} have several ranks already");
            if nodes.nodes() == 1 && !sizes.contains(',') {
                said += &format!("; for {sizes} of it: cluster:{sizes}*{size} --timing FILE");
            }
            return Err(said.into());
        }
        Shape::Clustered(nodes) => Arc::clone(nodes.network()),
        _ => Arc::clone(&machine.topology),
    };
    let ranks = match &ranks_of_nodes(sizes)?[..] {
        [size] => vec![*size; network.ranks() as usize],
        sizes => sizes.to_vec(),
    };
    let name = format!("{}*{sizes}", machine.name);
    Ok(Machine { name, ..with_network(machine, network, &ranks)? })
}

/// The machine of another network with as many classes of links, and these ranks on its nodes.
pub(crate) fn with_network(
    machine: &Machine,
    network: Arc<dyn Topology>,
    sizes: &[u32],
) -> Result<Machine, SpecError> {
    if machine.first_class() == 0 && sizes.iter().all(|size| *size == 1) {
        return Ok(machine.on(network).with_values_of_links());
    }
    if sizes.len() != network.ranks() as usize {
        return Err(format!("{} sizes for {} nodes", sizes.len(), network.ranks()).into());
    }
    let groups: Vec<_> = sizes.iter().map(|&size| (1, size)).collect();
    let mut other = machine.on(Arc::new(Clusters::on(network, &groups)?));
    if machine.first_class() == 0 {
        let with_inside = |values: &mut PerClass| {
            if values.values().len() > 1 {
                *values = PerClass::each(&[&[values.least()], values.values()].concat());
            }
        };
        let Timing { startup, per_byte, per_hop, injection, .. } = &mut other.timing;
        [startup, per_byte, per_hop].into_iter().for_each(with_inside);
        let of_node = machine.injection().rank;
        *injection = Injection { rank: of_node, node: of_node };
        other.assume("messages inside a node are as fast as over the fastest link");
    }
    Ok(other.with_values_of_links())
}

/// A network, and the ranks on its nodes: one, equally many, or those listed.
pub(crate) struct NodesOn {
    pub(crate) network: Arc<dyn Topology>,
    pub(crate) sizes: Option<Vec<u32>>,
}

impl NodesOn {
    /// Those of a machine whose ranks are numbered node by node.
    fn of(machine: &Machine) -> Result<Self, SpecError> {
        let Shape::Clustered(clusters) = machine.topology.shape() else {
            return Ok(Self { network: Arc::clone(&machine.topology), sizes: None });
        };
        if clusters.is_placed() {
            return Err(format!("the ranks of {} are placed already", machine.name).into());
        }
        let sizes = clusters.equal_size().map(|size| vec![size]);
        let sizes = sizes.unwrap_or_else(|| clusters.sizes().collect());
        Ok(Self { network: Arc::clone(clusters.network()), sizes: Some(sizes) })
    }

    /// Reads a short form; an error names the form that other separators most likely mean.
    pub(crate) fn parse(text: &str, reading: &Reading) -> Result<Self, SpecError> {
        let read = Self::read(text, reading);
        let Err(mut error) = read else { return read };
        let is_read = |form: &String| form != text && Self::read(form, reading).is_ok();
        if let Some(form) = other_separators(text).into_iter().find(is_read) {
            error.message += &format!("; did you mean `{form}`?");
        }
        Err(error)
    }

    fn read(text: &str, reading: &Reading) -> Result<Self, SpecError> {
        let forms = || TOPOLOGIES.iter().map(|form| form.example).collect::<Vec<_>>().join(", ");
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(format!("`{text}` is not a short form such as {}", forms()).into());
        };
        let Some(form) = TOPOLOGIES.iter().find(|form| form.kind == kind) else {
            let rule = match meant(kind, rest) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("`{kind}` is not one of {}", forms()),
            };
            return Err(format!("`{text}` is not a short form: {rule}").into());
        };
        let named = |reason| format!("`{text}`: {reason}");
        // The ranks on each node of a cluster are its own.
        let (rest, sizes) = match rest.rsplit_once('*') {
            Some((rest, sizes)) if form.kind != "cluster" => (rest, Some(sizes)),
            _ => (rest, None),
        };
        // A file's name may have slashes, and a taper one.
        let faults = if matches!(form.kind, "graph" | "fat-tree") { '\0' } else { '/' };
        let mut parts = rest.split(faults);
        let rest = parts.next().unwrap_or_default();
        let (rest, axes) = match rest.split_once('@') {
            Some((rest, axes)) if matches!(form.kind, "torus" | "mesh" | "grid") => {
                (rest, Some(axes))
            }
            _ => (rest, None),
        };
        let topology = match (form.kind, &reading.attributes) {
            ("graph", attributes) => graph_file::graph(rest, attributes.as_ref()),
            (_, Some(_)) => Err(NOT_JSON.to_owned()),
            (_, None) => (form.parse)(rest),
        };
        let topology = match axes {
            Some(axes) => topology.and_then(|logical| placed::on_axes(logical, axes)),
            None => topology,
        };
        let topology = topology.map_err(named)?;
        let mut faults = Faults::on(&*topology);
        for part in parts {
            faults.add(part, None).map_err(named)?;
        }
        let network = faults.taken_out(topology.clone()).map_err(named)?;
        let sizes = sizes.map(ranks_of_nodes).transpose().map_err(named)?;
        Ok(Self { network, sizes })
    }

    /// The machine; one rank on each node leaves the network as it is.
    pub(crate) fn topology(self) -> Result<Arc<dyn Topology>, String> {
        let Self { network, sizes } = self;
        let nodes = network.ranks();
        let groups = match sizes.as_deref() {
            None | Some([1]) => return Ok(network),
            Some(&[size]) => vec![(nodes, size)],
            Some(sizes) if sizes.len() != nodes as usize => {
                return Err(format!("{} sizes for {nodes} nodes", sizes.len()));
            }
            Some(sizes) => sizes.iter().map(|&size| (1, size)).collect(),
        };
        Ok(Arc::new(Clusters::on(network, &groups)?))
    }
}

/// The forms that a short form may mean whose numbers have other separators, as `torus:16,16`.
fn other_separators(text: &str) -> Vec<String> {
    let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| *kind != "graph") else {
        return Vec::new();
    };
    let (shape, faults) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    const GRID: &[char] = &[',', ';', ' ', 'X', '\u{d7}'];
    let forms: &[(&[char], &str)] = match kind {
        "cluster" => &[(&[';', ' '], ",")],
        _ => &[(GRID, "x"), (&['x', ';', ' ', 'X'], ","), (&['*'], "x")],
    };
    let forms = forms.iter().map(|&(others, right)| shape.replace(others, right));
    forms.map(|shape| format!("{kind}:{shape}{faults}")).collect()
}

/// Other names of topologies, and the kind of each.
const SYNONYMS: [(&str, &str); 5] = [
    ("ring", "torus"),
    ("line", "mesh"),
    ("complete", "full"),
    ("crossbar", "full"),
    ("switch", "full"),
];

/// The short form that `kind:rest` most likely means.
fn meant(kind: &str, rest: &str) -> Option<String> {
    let kinds = TOPOLOGIES.iter().map(|form| form.kind);
    let name = nearest(kind, kinds.chain(SYNONYMS.map(|(name, _)| name)))?;
    let kind = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, kind)| kind);
    Some(format!("{kind}:{rest}"))
}

/// The short forms that a text without a colon most likely means, such as `torus:8x8` and `mesh:8x8`
/// for `8x8`, and `torus:8x8` for `torus8x8`; none if the text is no such shape.
#[must_use]
pub fn short_forms_of(shape: &str) -> Vec<String> {
    let (word, numbers) = shape.split_at(shape.find(|c: char| c.is_ascii_digit()).unwrap_or(0));
    if !word.is_empty() {
        let word = word.trim_end_matches([' ', '-', '=', '_', '(']);
        let form = meant(word, numbers.trim_end_matches(')'));
        return form.into_iter().filter(|form| parse_short_form(form).is_ok()).collect();
    }
    let kinds: &[&str] = match shape {
        _ if shape.contains('~') => &["grid"],
        _ if shape.contains('x') => &["torus", "mesh"],
        _ if shape.contains(['*', ',']) => &["cluster"],
        _ => &["full"],
    };
    let forms = kinds.iter().map(|kind| format!("{kind}:{shape}"));
    forms.filter(|form| parse_short_form(form).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_name_themselves() {
        for text in [
            "full:64",
            "torus:16x16",
            "mesh:8x8x8",
            "grid:16~x8",
            "cluster:2*4,2",
            "torus:1",
            "mesh:3",
            "hypercube:6",
            "hyperx:4x1x3",
            "hyperx:4x4*8",
            "fat-tree:4,3",
            "fat-tree:16,2,2*8",
            "fat-tree:leaves=2,nodes=16,uplinks=8*128",
            "fat-tree:leaves=2,nodes=16,uplinks=8,spines=2",
            "fat-tree:4,2,3/2",
            "dragonfly:2,4,2",
            "dragonfly:2,4,2,5*8",
            "twisted-torus:4x4x8",
            "twisted-torus:4+0x6+5x8",
            "torus:4x4/1,1/0,0+0",
            "grid:4~x3/0,0+1/3,0+0",
            "twisted-torus:2x4/1,3",
            "torus:4x4x4*2",
            "mesh:2x2*4,1,1,2",
            "grid:16~x8*3",
            "torus:8x8/3,4*2",
            "twisted-torus:4x8*16",
        ] {
            assert_eq!(parse_short_form(text).unwrap().short_form(), text);
        }
        assert_eq!(parse_short_form("grid:4~x4~").unwrap().short_form(), "torus:4x4");
        for (text, same) in [
            ("twisted-torus:4+4x4x8+0", "twisted-torus:4x4x8"),
            ("torus:4x4/1,1-1", "torus:4x4/1,0+1"),
            ("torus:4x4/2,0/0,3+1/1,3", "torus:4x4/1,3/2,0/0,3+1"),
            ("fat-tree:4,2,1.50", "fat-tree:4,2,3/2"),
            ("fat-tree:4,2,1", "fat-tree:4,2"),
            ("fat-tree:4,2,6/3", "fat-tree:4,2,2"),
            ("fat-tree:spines=1,uplinks=8,leaves=2,nodes=4", "fat-tree:leaves=2,nodes=4,uplinks=8"),
            ("dragonfly:2,4,2,9", "dragonfly:2,4,2"),
            ("cluster:20x48", "cluster:20*48"),
            ("cluster:20x48,1x47", "cluster:20*48,47"),
            ("full:16*8", "cluster:16*8"),
            ("full:3*4,4,2", "cluster:2*4,2"),
            ("torus:4x4*1", "torus:4x4"),
            ("mesh:2x2*3,3,3,3", "mesh:2x2*3"),
        ] {
            assert_eq!(parse_short_form(text).unwrap().short_form(), same);
        }
        assert_eq!(parse_short_form("cluster:4,4,2").unwrap().short_form(), "cluster:2*4,2");
    }

    #[test]
    fn an_unknown_kind_names_the_nearest_known() {
        for (text, meant) in [
            ("tours:4x4", Some("torus:4x4")),
            ("ring:8", Some("torus:8")),
            ("hypercub:3", Some("hypercube:3")),
            ("fattree:4,3", Some("fat-tree:4,3")),
            ("crossbar:9", Some("full:9")),
            ("clusters:4,4", Some("cluster:4,4")),
            ("donut:4", None),
        ] {
            let message = parse_short_form(text).unwrap_err().message;
            let said = message.split_once("did you mean `").map(|(_, meant)| meant);
            assert_eq!(said, meant.map(|meant| format!("{meant}`?")).as_deref(), "{message}");
        }
    }

    /// A grid whose sides have a wrong separator is read or refused with the right form.
    #[test]
    fn other_separators_name_the_right_form() {
        let mut random = fastrand::Rng::with_seed(56);
        for _ in 0..300 {
            let sides: Vec<_> =
                (0..random.usize(2..4)).map(|_| random.u32(1..9).to_string()).collect();
            let kind = ["torus", "mesh", "grid", "hyperx", "twisted-torus"][random.usize(0..5)];
            let faults = if kind == "torus" && random.bool() { "/0" } else { "" };
            let faults =
                faults.to_owned() + &",0".repeat(sides.len() * faults.len() / 2 - faults.len() / 2);
            let ranks = ["", "*2"][random.usize(0..2)];
            let written = |between: &str| format!("{kind}:{}{faults}{ranks}", sides.join(between));
            let right = written("x");
            for wrong in [",", ";", " ", "X", "\u{d7}", ", "] {
                let refused = parse_short_form(&written(wrong)).expect_err(&right).message;
                let said = format!("; did you mean `{right}`?");
                let is_right = parse_short_form(&right).is_ok() && wrong != ", ";
                assert_eq!(refused.ends_with(&said), is_right, "{refused}");
            }
        }
        for (text, meant) in [
            ("torus:16*16*16", "torus:16x16x16"),
            ("fat-tree:4x3", "fat-tree:4,3"),
            ("fat-tree:4x3/2", ""),
            ("dragonfly:2x4x2", "dragonfly:2,4,2"),
            ("cluster:4;4;2", "cluster:4,4,2"),
            ("torus:16,16*2", "torus:16x16*2"),
            ("torus:0,4", ""),
            ("cluster:20x48x2", ""),
        ] {
            let refused = parse_short_form(text).unwrap_err().message;
            let said = refused.split_once("did you mean `").map_or("", |(_, said)| said);
            assert_eq!(said.trim_end_matches("`?"), meant, "{refused}");
        }
    }

    #[test]
    fn a_shape_names_the_machines_that_have_it() {
        for (shape, forms) in [
            ("8x8x8", vec!["torus:8x8x8", "mesh:8x8x8"]),
            ("64", vec!["full:64"]),
            ("16~x8", vec!["grid:16~x8"]),
            ("32*4,1*2", vec!["cluster:32*4,1*2"]),
            ("4,4,2", vec!["cluster:4,4,2"]),
            ("8x0", vec![]),
            ("-8", vec![]),
            ("torus16x16", vec!["torus:16x16"]),
            ("Torus 8x8/0,0", vec!["torus:8x8/0,0"]),
            ("mesh-8x8", vec!["mesh:8x8"]),
            ("full64", vec!["full:64"]),
            ("hypercube(6)", vec!["hypercube:6"]),
            ("fattree4,3", vec!["fat-tree:4,3"]),
            ("ring8", vec!["torus:8"]),
            ("torus16x0", vec![]),
            ("paragon-16x61", vec![]),
            ("box", vec![]),
            ("65536x65536", vec![]),
        ] {
            assert_eq!(short_forms_of(shape), forms, "{shape}");
        }
    }

    #[test]
    fn refuses_text_that_names_no_machine() {
        let bad = [
            "torus torus: torus:0x4 torus:-4x4 torus:4x torus:4.5 torus:4~x4 torus:65536x65536",
            "torus:4x4/ torus:4x4/4,0 torus:4x4/1 torus:4x4/1,1,1 torus:4x4/1,1+2 torus:4x4/1,1+",
            "torus:4x4/1,1+1+1 torus:4x4/1,1+1/1,2-1 torus:4x4/1,1/1,1 torus:1x4/0,0+0 torus:1/0",
            "torus:128x128/0,0 torus:4x4*0 torus:4x4* torus:4x4*2*2 torus:4x4*2,2 torus:4x4*2/1,1",
            "torus:65535x65537*2",
            "donut:4",
            "full:0 full:4294967296 full:4*0 full:0*4 full:4* full:*4 full:3*4,4 full:2*4,4,4",
            "full:4294967295*2 full:4*4*4 full:+4 full:99999999999999999999 full:4/1",
            "cluster:4,0 cluster: cluster:*4 cluster:0*4 cluster:20x48x2 cluster:20x48*2",
            "cluster:x4 cluster:4294967295*2 cluster:4,4/1",
            "grid:~",
            "twisted-torus:4x4 twisted-torus:4+8x8 twisted-torus:4x8+1 twisted-torus:4+-1x8",
            "twisted-torus:4+x8 twisted-torus:1024x2048",
            "mesh:4x4/3,0+0 mesh:3/1",
            "hypercube:0 hypercube:21 hypercube:4294967295",
            "hyperx: hyperx:4x0 hyperx:1048577 hyperx:1024x1024 hyperx:4x4/0,0",
            "fat-tree:4 fat-tree:1,3 fat-tree:4,0 fat-tree:2,21 fat-tree:4294967295,4294967295",
            "fat-tree:4,3,0.5 fat-tree:4,3,2/3 fat-tree:4,3,1/0 fat-tree:4,3,-2 fat-tree:4,3,1.",
            "fat-tree:4,3,.5 fat-tree:4,3,1e3 fat-tree:4,3,99999999999 fat-tree:4,3,1,1",
            "fat-tree:4,3/1",
            "dragonfly:2,4 dragonfly:0,4,2 dragonfly:2,4,0 dragonfly:2,4,2,0 dragonfly:2,4,2,10",
            "dragonfly:2,4,2,5,1 dragonfly:4294967295,4294967295,4294967295",
            "dragonfly:1,1048576,1,1",
        ];
        let bad = bad.iter().flat_map(|family| family.split(' '));
        for text in bad.chain(["", "full: 4"]) {
            assert!(parse_short_form(text).is_err(), "{text}");
        }
    }
}
