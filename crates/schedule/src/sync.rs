use std::fmt;

use serde::{Deserialize, Serialize};

/// The synchronization between steps. Exhaustive: drivers and network models do both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// None: free-running. Every rank goes on when its own sends and receives of a step are done.
    #[default]
    Free,
    /// A barrier between steps: no rank begins a step before all ranks have ended the last one.
    Barrier,
}

/// `free` or `barrier`, as on the command line.
impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Barrier => "barrier",
        })
    }
}
