//! The links of a graph, vertex by vertex.

use std::collections::VecDeque;
use std::ops::Range;

use hashbrown::HashMap;

/// What a link carries, against the bandwidth of its class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Capacity {
    /// Times the bandwidth of the class, as a fraction in lowest terms.
    Relative {
        /// The numerator, at least 1.
        times: u32,
        /// The denominator, at least 1.
        over: u32,
    },
    /// Bytes per second, whatever the bandwidth of the class.
    BytesPerSecond(f64),
}

impl Capacity {
    /// The bandwidth of the class.
    pub const CLASS: Self = Self::Relative { times: 1, over: 1 };

    /// The same fraction in lowest terms.
    pub(crate) fn lowest(self) -> Self {
        let Self::Relative { times, over } = self else { return self };
        let (mut divisor, mut rest) = (times, over);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self::Relative { times: times / divisor.max(1), over: over / divisor.max(1) }
    }

    /// The fraction near a value above 0, within some parts in 10^9.
    #[must_use]
    pub fn near(value: f64) -> Self {
        const MOST: f64 = u32::MAX as f64;
        // Continued fractions.
        let (mut before, mut now) = ((0.0, 1.0), (1.0, 0.0));
        let mut rest = value.clamp(1.0 / MOST, MOST);
        loop {
            let whole = f64::floor(rest);
            let next = (whole * now.0 + before.0, whole * now.1 + before.1);
            if next.0 > MOST || next.1 > MOST {
                break;
            }
            (before, now) = (now, next);
            if (now.0 / now.1 - value).abs() <= value * 1e-12 || rest == whole {
                break;
            }
            rest = 1.0 / (rest - whole);
        }
        Self::Relative { times: now.0.max(1.0) as u32, over: now.1.max(1.0) as u32 }
    }

    /// The fraction of the bandwidth of a class in which a byte takes `per_byte` seconds.
    #[must_use]
    pub fn relative(self, per_byte: f64) -> (u32, u32) {
        match self {
            Self::Relative { times, over } => (times, over),
            Self::BytesPerSecond(bandwidth) => Self::near(bandwidth * per_byte).relative(per_byte),
        }
    }

    /// Seconds in which a link carries a byte, if a link of its class takes `per_byte` seconds.
    #[must_use]
    pub fn seconds_per_byte(self, per_byte: f64) -> f64 {
        match self {
            Self::Relative { times, over } => per_byte * f64::from(over) / f64::from(times),
            Self::BytesPerSecond(bandwidth) => 1.0 / bandwidth,
        }
    }
}

/// What the links of one kind have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkKind {
    /// The class of timing values; on a lattice the dimension.
    pub class: u32,
    /// On grids and lattices +1 toward the higher coordinate, else -1; 0 on other graphs.
    pub direction: i64,
    /// What it carries.
    pub capacity: Capacity,
    /// Seconds of propagation, where they are not those of the class.
    pub latency: Option<f64>,
}

impl LinkKind {
    /// A link with the values of its class.
    #[must_use]
    pub fn of_class(class: u32) -> Self {
        Self { class, direction: 0, capacity: Capacity::CLASS, latency: None }
    }

    /// The bits that tell kinds apart.
    pub(crate) fn key(&self) -> [u64; 5] {
        let (which, capacity) = match self.capacity {
            Capacity::Relative { times, over } => (0, u64::from(times) << 32 | u64::from(over)),
            Capacity::BytesPerSecond(bandwidth) => (1, bandwidth.to_bits()),
        };
        let latency = self.latency.map_or(u64::MAX, f64::to_bits);
        [u64::from(self.class), self.direction as u64, which, capacity, latency]
    }
}

/// Directed links, those that leave a vertex one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// By vertex, its first link; one more entry at the end.
    first: Vec<u32>,
    to: Vec<u32>,
    kind: Vec<u16>,
    kinds: Vec<LinkKind>,
}

/// Links as they are listed, those of vertex 0 first.
pub(crate) struct ListedLinks {
    links: Links,
    numbers: HashMap<[u64; 5], u16>,
}

impl ListedLinks {
    pub(crate) fn new(vertices: usize, links: usize) -> Self {
        let mut first = Vec::with_capacity(vertices + 1);
        first.push(0);
        let (to, kind) = (Vec::with_capacity(links), Vec::with_capacity(links));
        Self { links: Links { first, to, kind, kinds: Vec::new() }, numbers: HashMap::new() }
    }

    /// Adds a link that leaves the current vertex. Returns false if there are too many kinds.
    pub(crate) fn link(&mut self, to: u32, kind: LinkKind) -> bool {
        let Self { links, numbers } = self;
        let next = links.kinds.len();
        let last = links.kind.last().filter(|last| links.kinds[usize::from(**last)] == kind);
        let number = last.copied().unwrap_or_else(|| {
            *numbers.entry(kind.key()).or_insert_with(|| {
                links.kinds.push(kind);
                next as u16
            })
        });
        links.to.push(to);
        links.kind.push(number);
        next < usize::from(u16::MAX)
    }

    /// Goes on to the next vertex.
    pub(crate) fn next_vertex(&mut self) {
        self.links.first.push(self.links.to.len() as u32);
    }

    /// The links of all vertices.
    pub(crate) fn done(self) -> Links {
        self.links
    }
}

impl Links {
    pub(crate) fn vertices(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    pub(crate) fn count(&self) -> usize {
        self.to.len()
    }

    #[inline]
    pub(crate) fn leaving(&self, vertex: u32) -> Range<usize> {
        self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize
    }

    /// The vertex that a link leaves.
    pub(crate) fn from(&self, link: usize) -> u32 {
        self.first.partition_point(|&first| first as usize <= link) as u32 - 1
    }

    /// The vertex that a link leads to.
    #[inline]
    pub(crate) fn to(&self, link: usize) -> u32 {
        self.to[link]
    }

    /// The vertices that some links lead to.
    #[inline]
    pub(crate) fn ends(&self, links: Range<usize>) -> &[u32] {
        &self.to[links]
    }

    /// Links on the shortest route from a vertex to each vertex; `u32::MAX` for a vertex that no route reaches.
    pub(crate) fn hops_from(&self, from: u32) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.vertices() as usize];
        hops[from as usize] = 0;
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            for &to in self.ends(self.leaving(at)) {
                if hops[to as usize] == u32::MAX {
                    hops[to as usize] = hops[at as usize] + 1;
                    open.push_back(to);
                }
            }
        }
        hops
    }

    #[inline]
    pub(crate) fn kind(&self, link: usize) -> &LinkKind {
        &self.kinds[usize::from(self.kind[link])]
    }

    pub(crate) fn kind_number(&self, link: usize) -> usize {
        self.kind[link].into()
    }

    pub(crate) fn kinds(&self) -> &[LinkKind] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_near_their_values() {
        let near = |value: f64| Capacity::near(value).relative(1.0);
        assert_eq!(
            [1.0, 0.5, 2.0 / 3.0, 25.0, 12.3, 0.1].map(near),
            [(1, 1), (1, 2), (2, 3), (25, 1), (123, 10), (1, 10)]
        );
        for value in [1e-9, 0.123_456_789, std::f64::consts::PI, 4e9, 1e99] {
            let (times, over) = near(value);
            let value = value.min(f64::from(u32::MAX));
            assert!((f64::from(times) / f64::from(over) / value - 1.0).abs() < 2e-9, "{value}");
        }
        assert_eq!(Capacity::BytesPerSecond(25e9).relative(1e-10), (5, 2));
    }
}
