//! The links of a machine file.

use serde::Deserialize;
use toml::Spanned;

use super::at;
use crate::Graph;
use crate::error::SpecError;
use crate::graph_file::Listing;

/// The links of a machine whose shape is `network`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub(super) source: Spanned<String>,
    #[serde(default)]
    directed: bool,
    #[serde(default)]
    nodes: Vec<Spanned<String>>,
    #[serde(default)]
    switches: Vec<Spanned<String>>,
    links: Vec<Spanned<Link>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    from: String,
    to: String,
    class: Option<String>,
    bandwidth: Option<String>,
    latency: Option<String>,
    count: Option<i64>,
}

impl Network {
    /// The graph of the links. Nodes that are listed come first, in that order.
    pub(super) fn graph(&self) -> Result<Graph, SpecError> {
        let Self { source, directed, nodes, switches, links } = self;
        let mut listing = Listing::new(!directed);
        let declared = nodes.iter().map(|name| (name, false));
        for (name, is_switch) in declared.chain(switches.iter().map(|name| (name, true))) {
            let declared = listing.declare(name.get_ref(), name.get_ref(), is_switch, name.span());
            declared.map_err(|message| at(name, message))?;
        }
        for link in links {
            let wrong = |message| at(link, message);
            let Link { from, to, class, bandwidth, latency, count } = link.get_ref();
            let count = count.map(|count| count.to_string());
            let values = [class, bandwidth, latency, &count].map(Option::as_deref);
            let [from, to] =
                [from, to].map(|name| listing.find_or_declare(name, link.span()).map_err(wrong));
            listing.link([from?, to?], values, link.span().start).map_err(wrong)?;
        }
        listing.graph("network".to_owned()).map_err(|mut error| {
            error.span.get_or_insert(source.span());
            error
        })
    }
}
