use std::fmt;

use crate::{Link, LinkId, Rank, Route, Segment, Shape};

/// The ranks of a machine and the links between them.
///
/// Only grids and lattices number their [`Link`]s. On a complete graph messages between different
/// ranks share no link.
///
/// All implementations are in this crate, and methods may be added. Readers ask for the [`Shape`].
pub trait Topology: fmt::Debug + Send + Sync {
    /// Number of ranks, at least 1.
    fn ranks(&self) -> u32;

    /// The facts algorithms may rely on.
    fn shape(&self) -> Shape<'_>;

    /// The short form that names this topology, such as `torus:16x16`.
    fn short_form(&self) -> String;

    /// Names of the link classes; a timing value may differ from class to class.
    fn link_classes(&self) -> Vec<String>;

    /// The class of the direct link between two ranks. Where links are numbered it is 0, and the
    /// class of a link is its dimension.
    fn link_class(&self, _from: Rank, _to: Rank) -> usize {
        0
    }

    /// Number of directed links that messages may share.
    fn links(&self) -> u64 {
        0
    }

    /// The most directed links that leave one node; 0 where links are not numbered.
    fn most_links_out(&self) -> u64 {
        0
    }

    /// Dimensions along which numbered links run. Each rank has two link numbers per dimension.
    fn dimensions(&self) -> usize {
        0
    }

    /// The number of the link that leaves `from` along `dimension`, `direction` +1 or -1.
    fn link_id(&self, from: Rank, dimension: usize, direction: i64) -> LinkId {
        let links_per_rank = 2 * self.dimensions() as u64;
        LinkId(u64::from(from.0) * links_per_rank + 2 * dimension as u64 + u64::from(direction < 0))
    }

    /// The ends of a link, or `None` if no link has this number.
    fn link(&self, _link: LinkId) -> Option<Link> {
        None
    }

    /// Overwrites `out` with the route of a message whose schedule names none; empty where links
    /// are not numbered.
    fn route(&self, _from: Rank, _to: Rank, out: &mut Route) {
        out.clear();
    }

    /// The rank at which `route` from `from` ends, or the first segment that leaves the machine.
    ///
    /// # Errors
    /// The offending segment.
    fn follow(&self, from: Rank, route: &Route) -> Result<Rank, Segment> {
        route.segments().first().map_or(Ok(from), |&segment| Err(segment))
    }

    /// Calls `visit` with every link of `route` in the order travelled. The route must stay on the
    /// machine.
    fn for_each_link(&self, _from: Rank, _route: &Route, _visit: &mut dyn FnMut(LinkId)) {}
}
