//! Graphs from files: lists of links as CSV, networkx node-link JSON, GraphML, GML, DOT and lists of edges.

mod attributes;
mod csv;
mod dot;
mod edges;
mod gml;
mod graphml;
mod items;
mod json;
mod listing;
mod words;

use std::path::Path;
use std::sync::Arc;

use crate::error::SpecError;
use crate::reading::Source;
use crate::regular::text_of;
use crate::text::{line_at, printable};
use crate::{Machine, Topology};

pub use attributes::Attributes;
pub(crate) use listing::Listing;

/// The most bytes of a file of links.
const MOST_BYTES: u64 = 1 << 26;

/// Why attributes are refused.
pub(crate) const NOT_JSON: &str = "--attributes names the attributes of node-link JSON, GraphML, GML, DOT or a list of edges, and the \
     machine is no such file";

/// Reads a path; JSON may have other names of attributes.
pub(crate) fn graph(
    rest: &str,
    attributes: Option<&Attributes>,
) -> Result<Arc<dyn Topology>, String> {
    let text = text_of(Path::new(rest), MOST_BYTES, "files of links");
    let text = text.map_err(|reason| placed(rest, 0, &reason))?;
    named(rest, &text, attributes)
}

/// Reads a graph from a text of any kind: CSV, node-link JSON, GraphML, GML, DOT or a list of edges.
/// Its short form is `graph:` and the name.
///
/// # Errors
/// What is wrong, after the name and the line.
pub fn parse_graph(name: &str, text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    Ok(named(&printable(name), text, None)?)
}

fn named(
    name: &str,
    text: &str,
    attributes: Option<&Attributes>,
) -> Result<Arc<dyn Topology>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let graph = read(text, attributes).and_then(|listing| listing.graph(format!("graph:{name}")));
    let graph = graph.map_err(|error| {
        placed(name, error.span.map_or(0, |span| line_at(text, span.start)), &error.message)
    });
    Ok(Arc::new(graph?))
}

/// The machine of a text of any kind.
pub(crate) fn machine(file: &Source<'_>) -> Result<Machine, SpecError> {
    read(file.text, file.reading.attributes.as_ref())?.machine(file.name, file.text)
}

/// A message after the file and the line, 0 for none, that are wrong.
pub(crate) fn placed(file: &str, line: usize, message: &str) -> String {
    match line {
        0 => format!("{file}: {message}"),
        line => format!("{file}:{line}: {message}"),
    }
}

/// The links of a text of any kind.
fn read(text: &str, attributes: Option<&Attributes>) -> Result<Listing, SpecError> {
    let given = attributes.cloned().unwrap_or_default();
    let items = match Format::of(text) {
        Some(Format::Json) => json::read(text, &given),
        Some(Format::GraphMl) => graphml::read(text),
        Some(Format::Gml) => gml::read(text),
        Some(Format::Dot) => dot::read(text),
        Some(Format::Edges) => edges::read(text),
        None if attributes.is_none() => return csv::read(text),
        None => return Err(NOT_JSON.into()),
    };
    items?.listing(&given)
}

/// Formats of graphs whose vertices and links have attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Json,
    GraphMl,
    Gml,
    Dot,
    Edges,
}

impl Format {
    /// The format of a text, told by its beginning.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let is_xml = || crate::xml::root(text).as_deref() == Some("graphml");
        match text.trim_start().chars().next()? {
            '{' => Some(Self::Json),
            '<' => is_xml().then_some(Self::GraphMl),
            _ if gml::knows(text) => Some(Self::Gml),
            _ if dot::knows(text) => Some(Self::Dot),
            _ => edges::knows(text).then_some(Self::Edges),
        }
    }
}

#[cfg(test)]
mod tests {
    mod formats;

    use super::*;
    use crate::{Capacity, Graph, LinkId, Rank, Route};

    const TREE: &str = "#undirected
from,to,bandwidth,latency,count
n0, leaf0, 50GB/s
n1,leaf0,50GB/s,,
# The spine has two links to each leaf.
leaf0,spine,400Gb/s,100ns,2
switch,leaf0

\"n2\",leaf1
n3,leaf1
leaf1,spine,,1us,2
switch,leaf1
switch,spine,,
";

    fn with_attributes(text: &str, attributes: Option<&Attributes>) -> Result<Graph, SpecError> {
        read(text, attributes)?.graph("graph:some".to_owned())
    }

    fn of(text: &str) -> Result<Graph, SpecError> {
        with_attributes(text, None)
    }

    /// The links of the route of each pair.
    fn routes(graph: &Graph) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        let mut route = Route::default();
        for (from, to) in (0..graph.ranks()).flat_map(|a| (0..graph.ranks()).map(move |b| (a, b))) {
            graph.route(Rank(from), Rank(to), &mut route);
            assert_eq!(graph.follow(Rank(from), &route), Ok(to));
            let mut names = Vec::new();
            graph.for_each_link(Rank(from), &route, &mut |link| names.push(graph.link_name(link)));
            all.push(names);
        }
        all
    }

    #[test]
    fn nodes_are_numbered_by_first_appearance() {
        let tree = of(TREE).unwrap();
        let names: Vec<_> = (0..tree.vertices()).map(|v| tree.vertex_name(v)).collect();
        assert_eq!(names, ["n0", "n1", "n2", "n3", "leaf0", "leaf1", "spine"]);
        assert_eq!((tree.ranks(), tree.links(), tree.diameter()), (4, 2 * (4 + 4), 4));
        for link in (0..tree.links()).map(LinkId) {
            let name = tree.link_name(link);
            let kind = tree.link_kinds()[tree.link_kind(link)];
            let (capacity, latency) = match &*name {
                _ if name.contains("leaf0") && name.contains("spine") => {
                    ((50, 1), Some(100.0 * 1e-9))
                }
                _ if name.contains("spine") => ((1, 1), Some(1e-6)),
                _ if name.contains("leaf0") => ((50, 1), None),
                _ => ((1, 1), None),
            };
            assert_eq!((kind.capacity.relative(1e-9), kind.latency), (capacity, latency), "{name}");
        }
        let one_to_three = ["n1 -> leaf0", "leaf0 -> spine #0", "spine -> leaf1 #0", "leaf1 -> n3"];
        assert_eq!(routes(&tree)[7], one_to_three);
    }

    #[test]
    fn a_graph_from_a_text_has_its_name() {
        let graph = parse_graph("tree", TREE).unwrap();
        assert_eq!((graph.short_form(), graph.ranks()), ("graph:tree".to_owned(), 4));
        for (text, message) in [("a,b\n", "bad:1: header"), ("from,to\n", "bad: 0 nodes")] {
            let error = parse_graph("bad", text).unwrap_err();
            assert!(error.message.starts_with(message), "{error}");
        }
    }

    #[test]
    fn without_the_first_line_links_go_one_way() {
        let ring = of("from,to\na,b\nb,c\nc,a\n").unwrap();
        assert_eq!((ring.links(), ring.diameter()), (3, 2));
        assert_eq!(ring.link_kinds()[0].capacity, Capacity::CLASS);
        assert_eq!(ring.link_classes(), ["link"]);
        let escaped = of("from,to,class\n\u{1b}[2J,b,\u{202e}\nb,\u{1b}[2J,\u{202e}\n").unwrap();
        let names = (escaped.vertex_name(0), escaped.link_classes().remove(0));
        assert_eq!(names, ("\\u{1b}[2J".to_owned(), "\\u{202e}".to_owned()));
        let classes = of("from,to,class\na,b,up\nb,a,down\nb,a\n").unwrap();
        assert_eq!(classes.link_classes(), ["up", "down", "link"]);
    }

    #[test]
    fn json_gives_the_same_network_as_csv() {
        let json = r#"{"directed": false, "multigraph": false, "graph": {"name": "tree"},
            "nodes": [
              {"id": "leaf0", "switch": true}, {"id": "n0", "pos": [0, 1]}, {"id": "n1"},
              {"id": "leaf1", "switch": true}, {"id": "n2"}, {"id": "n3"},
              {"id": "spine", "switch": true}],
            "LINKS": [
              {"source": "n0", "target": "leaf0", "bandwidth": "50GB/s"},
              {"source": "n1", "target": "leaf0", "bandwidth": "50GB/s", "key": 0},
              {"source": "leaf0", "target": "spine", "bandwidth": "50GB/s", "latency": "100ns", "count": 2},
              {"source": "n2", "target": "leaf1"}, {"source": "n3", "target": "leaf1"},
              {"source": "leaf1", "target": "spine", "latency": "1us", "count": 2}]}"#;
        for links in ["links", "edges"] {
            let graph = of(&json.replace("LINKS", links)).unwrap();
            let tree = of(TREE).unwrap();
            assert_eq!(routes(&graph), routes(&tree));
            assert_eq!(graph.link_kinds().len(), tree.link_kinds().len());
        }
        let directed = r#"{"directed": true, "nodes": [{"id": 0}, {"id": [1, "a"]}],
            "links": [{"source": 0, "target": [1, "a"]}, {"source": [1, "a"], "target": 0}]}"#;
        let graph = of(directed).unwrap();
        assert_eq!((graph.links(), graph.vertex_name(1)), (2, "(1,a)".to_owned()));
    }

    #[test]
    fn attributes_may_have_other_names() {
        let text = r#"{"directed": false, "name": "x", "multigraph": true, "graph": {}, "nodes": [
              {"id": "h0", "type": "host", "pos": [0, 1]}, {"id": "h1", "type": "host"},
              {"id": "s", "type": "switch", "name": "leaf"}],
            "links": [{"source": "h0", "target": "s", "capacity": "50GB/s", "weight": 7, "key": 0},
              {"source": "h1", "target": "s", "delay": "2us", "lanes": 2}]}"#;
        let with = |attributes: &str| {
            let attributes: Attributes = attributes.parse().unwrap();
            with_attributes(text, Some(&attributes))
        };
        let graph =
            with("bandwidth=capacity,latency=delay,count=lanes,switch=type:switch,ignore=weight");
        let graph = graph.unwrap();
        assert_eq!((graph.ranks(), graph.vertices(), graph.links()), (2, 3, 6));
        let kinds: Vec<_> =
            graph.link_kinds().iter().map(|kind| (kind.capacity, kind.latency)).collect();
        let known = [(Capacity::BytesPerSecond(50e9), None), (Capacity::CLASS, Some(2e-6))];
        assert_eq!(kinds, known);
        for (attributes, rule) in [
            ("switch=type:switch", "a link has `capacity`, `weight`"),
            (
                "switch=type",
                "type is `\"host\"`, expected a boolean; --attributes switch=type:VALUE",
            ),
            ("bandwidth=capacity,switch=type:switch,ignore=weight", "a link has `delay`, `lanes`"),
            ("switch=kind", "node `h0` has `type`: it may have id, kind;"),
            (
                "bandwidth=capacity,latency=delay,count=lanes,switch=type:spine,ignore=weight",
                "no node is a switch, of value `spine`",
            ),
            (
                "bandwidth=capacity,latency=delay,count=lanes,switch=type:switch,ignore=weight,class=c",
                "no node or link has `c`",
            ),
        ] {
            let message = with(attributes).map(|graph| graph.short_form()).unwrap_err().message;
            assert!(message.contains(rule), "{attributes}: {message}");
        }
        let csv = with_attributes("from,to\na,b\nb,a\n", Some(&Attributes::default()));
        assert_eq!(csv.map(|graph| graph.short_form()), Err(NOT_JSON.into()));
        for (attributes, rule) in [
            ("", "`` is not one of class, bandwidth, latency, count, switch, kind, ignore"),
            ("bw=capacity", "`bw` is not one of"),
            ("bandwidth", "`bandwidth` is not a pair such as"),
            ("bandwidth=", "`bandwidth=` is not a pair"),
            ("switch=type:", "`switch=type:` is not a pair"),
            ("bandwidth=a,bandwidth=b", "`bandwidth=b`: an attribute is named twice"),
            ("bandwidth=a,latency=a", "`latency=a`: an attribute is named twice"),
        ] {
            let refused = attributes.parse::<Attributes>().unwrap_err();
            assert!(refused.contains(rule), "{attributes}: {refused}");
        }
    }

    /// Whatever the attributes are called, they have the same meaning; no other is skipped.
    #[test]
    fn no_attribute_is_skipped() {
        let mut random = fastrand::Rng::with_seed(51);
        let own = ["class", "bandwidth", "latency", "count"];
        let values = ["\"up\"", "\"40GB/s\"", "\"3us\"", "2"];
        for _ in 0..300 {
            let names: Vec<String> =
                own.iter().map(|name| format!("{name}{}", random.u32(..9))).collect();
            let used: Vec<usize> = (0..4).filter(|_| random.bool()).collect();
            let link = |name: &dyn Fn(usize) -> String| {
                let pairs = used.iter().map(|&i| format!(", \"{}\": {}", name(i), values[i]));
                format!(
                    "{{\"nodes\": [{{\"id\": 0}}, {{\"id\": 1}}], \"links\": [{{\"source\": 0, \
                     \"target\": 1{}}}]}}",
                    pairs.collect::<String>()
                )
            };
            let (plain, renamed) = (link(&|i| own[i].to_owned()), link(&|i| names[i].clone()));
            let maps: Vec<String> =
                used.iter().map(|&i| format!("{}={}", own[i], names[i])).collect();
            let known = of(&plain).unwrap();
            match used.first() {
                None => assert!(of(&renamed).is_ok()),
                Some(&first) => {
                    let message = of(&renamed).map(|graph| graph.short_form()).unwrap_err().message;
                    assert!(message.contains(&format!("`{}`", names[first])), "{message}");
                    let attributes: Attributes = maps.join(",").parse().unwrap();
                    let graph = with_attributes(&renamed, Some(&attributes)).unwrap();
                    assert_eq!(graph.link_kinds(), known.link_kinds(), "{renamed}");
                    assert_eq!(graph.link_classes(), known.link_classes(), "{renamed}");
                    assert_eq!(graph.links(), known.links(), "{renamed}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        for (text, line, rule) in [
            ("", 0, "no header"),
            ("a,b\nb,a\n", 1, "header `a,b`: it is from,to and any of class, bandwidth"),
            ("from,to,colour\na,b,red\n", 1, "header"),
            ("from,to,count,count\n", 1, "header"),
            ("from,to\na,b\n#undirected\n", 3, "must be the first line"),
            (
                "from,to\na,b,50GB/s\n",
                2,
                "3 values: a link has at least 2, and at most the 2 of the header",
            ),
            ("from,to\na\n", 2, "1 values"),
            ("from,to\na,\n", 2, "without a name"),
            ("from,to\na,b\nb,b\n", 3, "a link from `b` to itself"),
            ("from,to\na,\"b\n", 2, "no closing quote"),
            ("from,to,bandwidth\na,b,0\n", 2, "bandwidth is `0`"),
            ("from,to,bandwidth\na,b,0GB/s\n", 2, "`0GB/s` is out of range"),
            ("from,to,bandwidth\na,b,-1GB/s\n", 2, "`-1GB/s`"),
            ("from,to,bandwidth\na,b,50\n", 2, "`50` is neither a bandwidth"),
            ("from,to,latency\na,b,-1us\n", 2, "`-1us` is negative"),
            ("from,to,latency\na,b,fast\n", 2, "`fast` is not a duration"),
            ("from,to,count\na,b,0\n", 2, "count is `0`"),
            ("from,to,count\na,b,4194305\n", 2, "more than 4194304 directed links"),
            ("#undirected\nfrom,to,count\na,b,2097153\n", 3, "more than 4194304 directed links"),
            ("from,to\na,s\ns,a\nswitch,s\nswitch,s\n", 5, "`s` is declared twice"),
            ("from,to\na,b\nb,a\nswitch,s\n", 4, "switch `s` has no links"),
            ("from,to\na,b\nb,a\nswitch,s,x\n", 4, "`x` after the name of a switch"),
            ("from,to\na,b\nb,a\nb,c\n", 0, "not connected: node c cannot reach node a"),
            ("switch,s\nfrom,to\n", 1, "switch `s` has no links"),
            ("from,to\n", 0, "0 nodes"),
            ("{", 1, "not node-link JSON"),
            ("{\"nodes\": []}", 0, "no links"),
            ("{\"nodes\": [], \"links\": []}", 0, "0 nodes"),
            (
                "{\"nodes\": [], \"links\": [], \"switches\": []}",
                0,
                "the graph has `switches`: it may have",
            ),
            (
                "{\"nodes\": [{\"id\": 1},\n{\"id\": 2, \"type\": \"switch\"}], \"links\": []}",
                2,
                "node `2` has `type`: it may have id, switch; --attributes",
            ),
            (
                "{\"nodes\": [{\"id\": 1}, {\"id\": 2}],\n\"links\": [{\"source\": 1, \"target\": 2, \
                 \"weight\": 7, \"bw\": 5}]}",
                2,
                "a link has `bw`, `weight`: it may have source, target, class, bandwidth, latency, count; ",
            ),
            ("{\"nodes\": [], \"links\": [], \"edges\": []}", 0, "both"),
            ("{\"nodes\": [{\"id\": 1},\n{\"id\": 1}], \"links\": []}", 2, "`1` is declared twice"),
            ("{\"nodes\": [{\"id\": {}}], \"links\": []}", 1, "not the name of a vertex"),
            ("{\"nodes\": [{\"id\": 1, \"switch\": 2}], \"links\": []}", 1, "expected a boolean"),
            (
                "{\"nodes\": [{\"id\": 1}],\n\"links\": [\n{\"source\": 1, \"target\": \"1\"}]}",
                3,
                "a link of `1`, which is not in nodes",
            ),
            (
                "{\"nodes\": [{\"id\": 1}, {\"id\": 2}],\n\"links\": [{\"source\": 1,\n\"target\": 2, \
                 \"bandwidth\": 5}]}",
                2,
                "expected a string",
            ),
            (
                "{\"nodes\": [{\"id\": 1}, {\"id\": 2}],\n\"links\": [{\"source\": 1,\
                 \"target\": 2, \"count\": 1.5}]}",
                2,
                "count is `1.5`",
            ),
        ] {
            let SpecError { message, span } = of(text).map(|graph| graph.short_form()).unwrap_err();
            assert!(message.contains(rule), "{text}: {message}");
            assert_eq!(span.map_or(0, |at| line_at(text, at.start)), line, "{text}: {message}");
        }
    }

    #[test]
    fn a_table_of_routes_is_followed_and_spread_over_parallel_links() {
        let tree = of(TREE).unwrap();
        let mut table = "source,destination,vertices\n# All over the spine.\n".to_owned();
        let of_leaf = ["n0 leaf0", "n1 leaf0", "leaf1 n2", "leaf1 n3"];
        let turned = |text: &str| text.split(' ').rev().collect::<Vec<_>>().join(" ");
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let up = if a < 2 { of_leaf[a].to_owned() } else { turned(of_leaf[a]) };
            let down = if b < 2 { turned(of_leaf[b]) } else { of_leaf[b].to_owned() };
            let middle = if a / 2 == b / 2 { "" } else { "spine " };
            let down = if a / 2 == b / 2 { format!("n{b}") } else { down };
            table += &format!("n{a},n{b},{up} {middle}{down}\n");
        }
        let routed = tree.with_route_table(&mut table.as_bytes()).unwrap();
        assert_eq!(routes(&routed), routes(&tree));
        assert_eq!((routed.diameter(), routed.links()), (4, tree.links()));

        let without = |line: &str, with: &str| {
            assert!(table.contains(line), "{line}");
            tree.with_route_table(&mut table.replacen(line, with, 1).as_bytes()).unwrap_err()
        };
        let line = "n0,n2,n0 leaf0 spine leaf1 n2\n";
        let number = 1 + table[..table.find(line).unwrap()].lines().count();
        assert_eq!(without(line, ""), (0, "no route from n0 to n2".to_owned()));
        for (with, rule) in [
            ("n0,n2,n0 leaf0 leaf1 n2\n", "no link from `leaf0` to `leaf1`"),
            ("n0,n2,n0 leaf0 spine leaf0 spine leaf1 n2\n", "the route passes `leaf0` twice"),
            ("n0,n2,leaf0 spine leaf1 n2\n", "does not begin at `n0`"),
            ("n0,n2,n0 leaf0 spine leaf1\n", "does not end at `n2`"),
            ("n0,n2,\n", "does not begin at `n0`"),
            ("n0,n2\n", "2 values"),
            ("n0,n9,n0 n9\n", "`n9` is not a vertex"),
            ("n0,n2,n0 s9 n2\n", "`s9` is not a vertex"),
            ("n0,spine,n0 leaf0 spine\n", "`spine` is a switch"),
            ("n0,n0,n0\n", "a route from `n0` to itself"),
            ("n0,n1,n0 leaf0 n1\n", "a second route from `n0` to `n1`"),
        ] {
            let (at, message) = without(line, with);
            assert!(message.contains(rule), "{with}: {message}");
            assert_eq!(at, number, "{with}: {message}");
        }
        assert_eq!(without("source,", "from,").0, 1);
        let torus = Graph::twisted_torus(&[2, 4], &[2, 0]).unwrap();
        let refused = torus.with_route_table(&mut table.as_bytes()).unwrap_err();
        assert_eq!(refused.1, "twisted-torus:2x4 has routes of its own");
    }
}
