//! Tests of the formats of graphs.

use super::*;
use crate::Graph;

fn input(name: &str) -> String {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    std::fs::read_to_string(inputs.join(name)).unwrap()
}

fn given(text: &str, attributes: &str) -> Result<Graph, SpecError> {
    let attributes = (!attributes.is_empty()).then(|| attributes.parse().unwrap());
    read(text, attributes.as_ref())?.graph("graph:some".to_owned())
}

/// Nodes, vertices and directed links.
fn sizes(graph: &Graph) -> (u32, u32, u64) {
    (graph.ranks(), graph.vertices(), graph.links())
}

/// The links, by their names, with their bandwidths.
fn links(graph: &Graph) -> Vec<(String, f64)> {
    let all = (0..graph.links()).map(crate::LinkId);
    let mut all: Vec<_> = all
        .map(|link| {
            let kind = &graph.link_kinds()[graph.link_kind(link)];
            (graph.link_name(link), kind.capacity.seconds_per_byte(1.0).recip().round())
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Four hosts below two leaves, and two links from each leaf to a spine.
#[test]
fn one_tree_in_every_format() {
    let attributes = "bandwidth=capacity,kind=type";
    let graphs: Vec<Graph> = ["tree.graphml", "tree.gml", "tree.dot"]
        .map(|name| given(&input(name), attributes).unwrap())
        .into();
    for graph in &graphs {
        assert_eq!(sizes(graph), (4, 7, 2 * (4 + 4)));
        assert_eq!(links(graph), links(&graphs[0]));
        assert_eq!(graph.diameter(), 4);
    }
    let all = links(&graphs[0]);
    assert_eq!(all.iter().filter(|link| link.1 == 25e9).count(), 8);
    assert!(all.contains(&("h0 -> leaf1".to_owned(), 12.5e9)));
    // A list of edges has no attributes of vertices: all are nodes.
    let listed = given(&input("tree.edges"), "bandwidth=capacity").unwrap();
    assert_eq!(sizes(&listed), (7, 7, 16));
    assert_eq!(links(&listed), all);
    for name in ["tree.graphml", "tree.gml", "tree.dot", "tree.edges"] {
        let SpecError { message: refused, span } =
            given(&input(name), "").map(|graph| graph.short_form()).unwrap_err();
        assert!(
            span.is_some() && refused.contains("--attributes bandwidth=capacity"),
            "{name}: {refused}"
        );
    }
}

#[test]
fn dot_has_subgraphs_ports_and_defaults() {
    let graph = given(&input("net.dot"), "").unwrap();
    assert_eq!(sizes(&graph), (3, 3, 4));
    let names = ["h1 -> leaf1", "leaf1 -> h1", "leaf1 -> spine1", "spine1 -> leaf1"];
    assert_eq!(links(&graph).into_iter().map(|link| link.0).collect::<Vec<_>>(), names);
    for (text, sizes_of) in [
        ("graph { a -- b -- c; }", (3, 3, 4)),
        ("DiGraph g { a -> b b -> c; c -> a }", (3, 3, 3)),
        ("digraph { a->b->a }", (2, 2, 2)),
        ("graph { {a b} -- {c d} }", (4, 4, 8)),
        ("graph{a--b;a[switch=true];b--c}", (2, 3, 4)),
        (
            "graph { rankdir=LR; graph [size=4]; \"a b\" -- \"c\\\"d\" [weight=3, penwidth=2] }",
            (2, 2, 2),
        ),
        ("graph { node [switch=true] s; node [switch=false] a -- s -- b }", (2, 3, 4)),
    ] {
        assert_eq!(given(text, "").map(|graph| sizes(&graph)), Ok(sizes_of), "{text}");
    }
}

#[test]
fn lists_of_edges_go_both_ways_unless_each_does() {
    for (text, sizes_of) in [
        ("h1 h2\nh2 h3\n", (3, 3, 4)),
        ("1 2 {}\n2 3 {}\n", (3, 3, 4)),
        ("a b {'count': 2, \"bandwidth\": '5GB/s'}\n# end\n", (2, 2, 4)),
        ("n1 n2\nn2 n1\nn2 n3\nn3 n2\n", (3, 3, 4)),
        ("0 1\n1 2\n2 0\n", (3, 3, 6)),
    ] {
        assert_eq!(given(text, "").map(|graph| sizes(&graph)), Ok(sizes_of), "{text}");
    }
}

#[test]
fn d3_names_vertices_by_their_places() {
    let text = "{\"nodes\": [{\"name\": \"a\", \"group\": 1}, {\"name\": \"b\", \"group\": 2}],
        \"links\": [{\"source\": 0, \"target\": 1, \"value\": 4}]}";
    let graph = given(text, "ignore=group,ignore=value").unwrap();
    assert_eq!((sizes(&graph), graph.vertex_name(1)), ((2, 2, 2), "b".to_owned()));
}

#[test]
fn graphml_has_defaults_and_character_references() {
    let text = "<graphml><key id='d0' for='node' attr.name='switch' attr.type='boolean'>
        <default>false</default></key><key id='d1' for='edge' attr.name='latency'/>
        <graph edgedefault='directed'><node id='a&amp;b'/><node id='s'><data key='d0'>true</data></node>
        <node id='c'/><edge source='a&amp;b' target='s'><data key='d1'>&#49;us</data></edge>
        <edge source='s' target='c'/><edge source='c' target='s'/><edge source='s' target='a&amp;b'/>
        <data key='d1'>of the graph</data></graph></graphml>";
    let graph = given(text, "").unwrap();
    assert_eq!((sizes(&graph), graph.vertex_name(0)), ((2, 3, 4), "a&b".to_owned()));
    assert!(graph.link_kinds().iter().any(|kind| kind.latency == Some(1e-6)));
}

#[test]
fn graphs_that_are_wrong_are_refused_with_their_line() {
    let mut wrong = Vec::new();
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    for (text, line, rule) in [
        ("graph {\n a -- b\n".to_owned(), 3, "no closing }"),
        ("graph { a -- \n}".to_owned(), 2, "`}` is not the name of a vertex"),
        ("graph { a -> b }".to_owned(), 1, "`->` is not the name of a vertex"),
        ("graph { a -- \"b }".to_owned(), 1, "no closing \""),
        ("graph { a -- b [speed=3] }".to_owned(), 1, "a link has `speed`"),
        ("graph { a -- b [count=\n] }".to_owned(), 2, "no value of `count`"),
        ("graph { a -- a }".to_owned(), 1, "from `a` to itself"),
        ("graph { a -- b }\ngraph { c }".to_owned(), 2, "text after the graph"),
        ("graph { a -- b; c }".to_owned(), 0, "not connected"),
        ("graph { a -- b [bandwidth=NaN] }".to_owned(), 1, "`NaN` is neither a bandwidth"),
        ("graph { a -- b /* [".to_owned(), 1, "no closing */"),
        (format!("graph {{ {} }}", deep("{", "}")), 1, "more than 64 nested subgraphs"),
        ("graph { }".to_owned(), 0, "0 nodes"),
        ("graph [\n node [ id 0 ]\n node [ id 0 ] ]".to_owned(), 3, "`0` is declared twice"),
        ("graph [ node [ id 0 ]\n edge [ source 0 target 9 ] ]".to_owned(), 2, "a link of `9`"),
        ("graph [ node [ label \"a\" ] ]".to_owned(), 1, "missing field `id`"),
        ("graph [ node [ id 0 ".to_owned(), 1, "a list has keys and values"),
        ("graph [ node [ id 0 graphics [ x 1 ] ] ]".to_owned(), 1, "node `0` has `graphics`"),
        (format!("graph [ node {}", deep("a [", "]")), 1, ""),
        ("graph [ ]\ngraph [ ]".to_owned(), 2, "a file has one `graph"),
        ("a1 b1\nb1 a1\nb1 c1\n".to_owned(), 0, "listed in both directions"),
        ("a1 b1\nc1\nb1 c1\n".to_owned(), 1, "header `a1 b1`"),
        ("a b {'count': }\n".to_owned(), 1, "is not a dictionary"),
        ("a b {'count': 2} }\n".to_owned(), 1, "is not a dictionary"),
        ("a b {'weight': 3}\n".to_owned(), 1, "a link has `weight`"),
        ("<graphml><graph edgedefault='undirected'><node id='a'/>".to_owned(), 0, "open elements"),
        ("<graphml>\n<graph/></graphml>".to_owned(), 2, "no edgedefault"),
        ("<graphml><graph edgedefault='undirected'>\n<hyperedge/></graph></graphml>".to_owned(), 2, "<hyperedge> is not"),
        ("<graphml><graph edgedefault='undirected'><node id='a'>\n<data key='d'>1</data></node></graph></graphml>".to_owned(), 0, "no <key> of id `d`"),
        (format!("<graphml>{}", deep("<graph edgedefault='directed'>", "</graph>")), 1, "nested elements"),
    ] {
        let read = given(&text, "").map(|graph| graph.short_form()).map_err(|SpecError { message, span }| {
            (span.map_or(0, |at| line_at(&text, at.start)), message)
        });
        match read {
            Err((at, refused)) if refused.contains(rule) && (at == line || line == 0) => {}
            other => wrong.push((text.chars().take(60).collect::<String>(), line, other)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
