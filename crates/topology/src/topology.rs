use std::fmt;

use crate::{Link, LinkId, Rank, Route, Shape};

/// A machine's ranks and the links between them.
///
/// Links that no two messages can share by accident (those of a complete graph) are not numbered:
/// only grids have [`Link`]s.
pub trait Topology: fmt::Debug + Send + Sync {
    /// Number of ranks, at least 1.
    fn ranks(&self) -> u32;

    /// The facts algorithms may rely on.
    fn shape(&self) -> Shape<'_>;

    /// The short form that names this topology, such as `torus:16x16`.
    fn short_form(&self) -> String;

    /// Names of the link classes; a timing value may differ from class to class.
    fn link_classes(&self) -> Vec<String>;

    /// The class of the direct link between two ranks; of the first link where a route has many.
    fn link_class(&self, from: Rank, to: Rank) -> usize;

    /// Number of directed links that messages may share.
    fn links(&self) -> u64 {
        0
    }

    /// The ends of a link, or `None` if no link has this number.
    fn link(&self, _link: LinkId) -> Option<Link> {
        None
    }

    /// Overwrites `out` with the way a message takes unless its schedule says otherwise; stays
    /// empty where messages share no links.
    fn route(&self, _from: Rank, _to: Rank, out: &mut Route) {
        out.clear();
    }
}
