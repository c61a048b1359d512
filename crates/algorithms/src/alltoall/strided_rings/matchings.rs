//! Perfect matchings of a complete graph on an even number of vertices.

/// V - 1 matchings of V/2 edges, all edges once. If 4 divides V, the edges of the first V/2 - 1
/// join vertices of equal parity, and those of the others vertices of different parity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matchings {
    /// V.
    vertices: u32,
}

impl Matchings {
    pub(super) fn new(vertices: u32) -> Self {
        Self { vertices }
    }

    /// By parity: the number of a matching of even vertices, and of odd ones likewise, or the sum of
    /// the two ends of an edge.
    fn by_parity(self, matching: u32) -> Option<Result<u32, u32>> {
        let equal = self.vertices / 2 - 1;
        let kind = |matching: u32| match matching.checked_sub(equal) {
            None => Ok(matching),
            Some(different) => Err(2 * different + 1),
        };
        (self.vertices % 4 == 0).then(|| kind(matching))
    }

    /// The other end of a vertex's edge.
    pub(super) fn other(self, vertex: u32, matching: u32) -> u32 {
        match self.by_parity(matching) {
            None => rotated(self.vertices, vertex, matching),
            Some(Ok(half)) => 2 * rotated(self.vertices / 2, vertex / 2, half) + vertex % 2,
            Some(Err(sum)) => (sum + self.vertices - vertex) % self.vertices,
        }
    }

    /// The number of a vertex's edge, below V/2.
    pub(super) fn edge(self, vertex: u32, matching: u32) -> u32 {
        match self.by_parity(matching) {
            None => rotated_edge(self.vertices, vertex, matching),
            Some(Ok(half)) => {
                let edge = rotated_edge(self.vertices / 2, vertex / 2, half);
                vertex % 2 * (self.vertices / 4) + edge
            }
            Some(Err(_)) if vertex % 2 == 1 => self.other(vertex, matching) / 2,
            Some(Err(_)) => vertex / 2,
        }
    }

    /// An end of an edge.
    pub(super) fn end(self, edge: u32, matching: u32) -> u32 {
        let rotated = |vertices: u32, edge: u32, matching: u32| match edge {
            0 => vertices - 1,
            _ => (matching + edge) % (vertices - 1),
        };
        match self.by_parity(matching) {
            None => rotated(self.vertices, edge, matching),
            Some(Ok(half)) => {
                let quarter = self.vertices / 4;
                2 * rotated(self.vertices / 2, edge % quarter, half) + edge / quarter
            }
            Some(Err(_)) => 2 * edge,
        }
    }
}

/// The other end in a matching of the round robin: the last vertex meets `matching`, and vertices
/// at equal distances from it, around without the last, meet.
fn rotated(vertices: u32, vertex: u32, matching: u32) -> u32 {
    let cycle = vertices - 1;
    match (2 * matching + cycle - vertex % cycle) % cycle {
        _ if vertex == cycle => matching,
        other if other == vertex => cycle,
        other => other,
    }
}

/// The number of the edge: that distance.
fn rotated_edge(vertices: u32, vertex: u32, matching: u32) -> u32 {
    let cycle = vertices - 1;
    let after = (vertex % cycle + cycle - matching) % cycle;
    if vertex == cycle { 0 } else { after.min(cycle - after) }
}
