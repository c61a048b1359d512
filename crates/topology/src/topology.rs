use std::fmt;

use crate::{Link, LinkId, Rank, Route, Segment, Shape};

/// A machine's ranks and the links between them.
///
/// Links that no two messages can share by accident (those of a complete graph) are not numbered:
/// only grids and lattices have [`Link`]s.
///
/// Those there are stand in this crate, and methods may be added: readers ask for the [`Shape`].
pub trait Topology: fmt::Debug + Send + Sync {
    /// Number of ranks, at least 1.
    fn ranks(&self) -> u32;

    /// The facts algorithms may rely on.
    fn shape(&self) -> Shape<'_>;

    /// The short form that names this topology, such as `torus:16x16`.
    fn short_form(&self) -> String;

    /// Names of the link classes; a timing value may differ from class to class.
    fn link_classes(&self) -> Vec<String>;

    /// The class of the direct link between two ranks; 0 where links are numbered, whose class is
    /// their dimension.
    fn link_class(&self, _from: Rank, _to: Rank) -> usize {
        0
    }

    /// Number of directed links that messages may share.
    fn links(&self) -> u64 {
        0
    }

    /// Dimensions along which such links run: a rank has two numbers of links for each.
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

    /// Overwrites `out` with the way a message takes unless its schedule says otherwise; stays
    /// empty where messages share no links.
    fn route(&self, _from: Rank, _to: Rank, out: &mut Route) {
        out.clear();
    }

    /// Where `route` leads from `from`, or the first segment that leaves the machine.
    ///
    /// # Errors
    /// The offending segment.
    fn follow(&self, from: Rank, route: &Route) -> Result<Rank, Segment> {
        route.segments().first().map_or(Ok(from), |&segment| Err(segment))
    }

    /// Calls `visit` with every link of `route` in the order travelled. The route stays inside.
    fn for_each_link(&self, _from: Rank, _route: &Route, _visit: &mut dyn FnMut(LinkId)) {}
}
