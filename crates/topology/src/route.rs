use smallvec::SmallVec;

/// A straight part of a route: hops along one dimension, the sign giving the direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Segment {
    /// The dimension travelled along.
    pub dimension: u32,
    /// Links crossed; positive toward the higher coordinate.
    pub hops: i64,
}

/// The way of a message through a grid: straight segments in the order travelled.
///
/// A route names directions, not links: on a ring of two segments +4 and -4 end at the same rank,
/// and only the direction tells which links are used. Segments keep a route of 30,000 hops as
/// small as one of three.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Route {
    segments: SmallVec<[Segment; 2]>,
}

impl Route {
    /// The route of a single segment.
    #[must_use]
    pub fn straight(dimension: u32, hops: i64) -> Self {
        let mut route = Self::default();
        route.push(dimension, hops);
        route
    }

    /// Appends a segment; one of no hops is left out.
    pub fn push(&mut self, dimension: u32, hops: i64) {
        if hops != 0 {
            self.segments.push(Segment { dimension, hops });
        }
    }

    /// Forgets all segments and keeps the memory.
    pub fn clear(&mut self) {
        self.segments.clear();
    }

    /// The segments in the order travelled.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether nothing is travelled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Links crossed.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.segments.iter().map(|segment| segment.hops.unsigned_abs()).sum()
    }
}
