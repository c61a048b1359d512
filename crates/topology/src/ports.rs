use std::fmt;

/// Messages that a rank, and a node, may send, and receive, in one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// Of a rank, for all its messages.
    pub rank: u32,
    /// Of a node, for its messages to and from other nodes.
    pub node: u32,
}

impl Ports {
    /// No limit: a rank and a node have a port for each of their messages.
    pub const ALL: Self = Self { rank: u32::MAX, node: u32::MAX };

    /// Whether neither number is larger than the other's.
    #[must_use]
    pub fn within(self, other: Self) -> bool {
        self.rank <= other.rank && self.node <= other.node
    }
}

/// The same number for a rank and a node.
impl From<u32> for Ports {
    fn from(ports: u32) -> Self {
        Self { rank: ports, node: ports }
    }
}

/// As [`parse_ports`](crate::units::parse_ports) reads it.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |ports: u32| match ports {
            u32::MAX => "all".to_owned(),
            ports => ports.to_string(),
        };
        match self.rank == self.node {
            true => f.write_str(&one(self.rank)),
            false => write!(f, "{},{}", one(self.rank), one(self.node)),
        }
    }
}
