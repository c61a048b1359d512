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
        let declared = nodes.iter().map(|name| (name, false, 0));
        let declared = declared.chain((1..).zip(switches).map(|(place, name)| (name, true, place)));
        for (name, is_switch, place) in declared {
            let declared = listing.declare(name.get_ref(), name.get_ref(), is_switch, place);
            declared.map_err(|message| at(name, message))?;
        }
        for link in links {
            let wrong = |message| at(link, message);
            let Link { from, to, class, bandwidth, latency, count } = link.get_ref();
            let count = count.map(|count| count.to_string());
            let values = [class, bandwidth, latency, &count].map(Option::as_deref);
            let [from, to] = [from, to].map(|name| listing.find_or_declare(name, 0).map_err(wrong));
            listing.link(from?, to?, values).map_err(wrong)?;
        }
        listing.graph("network".to_owned()).map_err(|(place, message)| {
            at(place.checked_sub(1).map_or(source, |place| &switches[place]), message)
        })
    }
}
