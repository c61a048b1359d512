use topocoll_schedule::Collective;

/// Why an algorithm does not apply to a problem on a topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotApplicable {
    /// No algorithm has this name.
    #[error("unknown algorithm `{name}`{}", nearest.map_or(String::new(), |n| format!(": did you mean `{n}`?")))]
    Unknown {
        /// The name given.
        name: String,
        /// The name most like it, if one is.
        nearest: Option<&'static str>,
    },
    /// No schedule of it is written here.
    #[error("{name} is a published formula ({paper}) without a schedule")]
    Published {
        /// Its name.
        name: &'static str,
        /// Where the formula is printed.
        paper: &'static str,
    },
    /// It performs another operation.
    #[error("performs {performs}, not {asked}")]
    Operation {
        /// What it does.
        performs: Collective,
        /// What was asked for.
        asked: Collective,
    },
    /// Its schedules depend on the sizes of blocks.
    #[error("requires the sizes of blocks (--demand)")]
    NoDemand,
    /// It needs another shape.
    #[error("requires {needs}, which {topology} is not")]
    Shape {
        /// What it needs.
        needs: &'static str,
        /// What it was given.
        topology: String,
    },
    /// Some sides break its rule.
    #[error("requires {rule}; {} {} this rule", sides.join(", "), if sides.len() == 1 { "breaks" } else { "break" })]
    Sides {
        /// The rule.
        rule: &'static str,
        /// The sides that break it, as `side 1 (10)`.
        sides: Vec<String>,
    },
    /// The number of ranks breaks its rule.
    #[error("requires {rule}; there are {ranks} ranks")]
    Ranks {
        /// The rule.
        rule: &'static str,
        /// The number of ranks.
        ranks: u32,
    },
    /// More ports than it has tables for.
    #[error("supports at most {most} ports; there are {ports}")]
    Ports {
        /// The most ports.
        most: u32,
        /// The ports there are.
        ports: u32,
    },
    /// The ranks of a node would send through more ports than it has.
    #[error("sends from all {size} ranks of a node to other nodes at once; a node has {ports} port{}", if *ports == 1 { "" } else { "s" })]
    NodePorts {
        /// Ranks on the largest node.
        size: u32,
        /// Ports of a node.
        ports: u32,
    },
    /// It takes no such parameter.
    #[error(
        "{algorithm} has no parameter `{name}`: {}",
        if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", known.join(", ")) }
    )]
    Parameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The name given.
        name: String,
        /// The names it knows.
        known: Vec<&'static str>,
    },
    /// A parameter has a value outside its range.
    #[error("{algorithm}: {name} is `{value}`, not {rule}")]
    Setting {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values it may have.
        rule: String,
    },
}
