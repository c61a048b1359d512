use smallvec::SmallVec;

/// A straight part of a route: hops along one dimension, the sign giving the direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Segment {
    /// The dimension travelled along.
    pub dimension: u32,
    /// Links crossed; positive toward the higher coordinate.
    pub hops: i64,
}

/// The links that a message takes through a grid: straight segments in the order travelled.
///
/// A route names directions: on a ring of 8, the segments +4 and -4 end at the same rank over
/// different links. Segments keep a route of 30,000 hops as small as one of three.
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub struct Route {
    segments: SmallVec<[Segment; 2]>,
}

/// By a copy of the memory: the clone of a `SmallVec` pushes one by one.
impl Clone for Route {
    #[inline]
    fn clone(&self) -> Self {
        Self { segments: SmallVec::from_slice(&self.segments) }
    }

    #[inline]
    fn clone_from(&mut self, source: &Self) {
        self.segments.clear();
        self.segments.extend_from_slice(&source.segments);
    }
}

impl Route {
    /// The route of a single segment.
    #[must_use]
    #[inline]
    pub fn straight(dimension: u32, hops: i64) -> Self {
        let mut route = Self::default();
        route.push(dimension, hops);
        route
    }

    /// Appends a segment; a segment of 0 hops is ignored.
    #[inline]
    pub fn push(&mut self, dimension: u32, hops: i64) {
        if hops != 0 {
            self.segments.push(Segment { dimension, hops });
        }
    }

    /// Removes all segments and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.segments.clear();
    }

    /// The segments in the order travelled.
    #[must_use]
    #[inline]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the route has no segments.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Links crossed.
    #[must_use]
    #[inline]
    pub fn hops(&self) -> u64 {
        self.segments.iter().map(|segment| segment.hops.unsigned_abs()).sum()
    }
}
