use topocoll_schedule::Collective;
use topocoll_topology::Grid;

/// The reason that an algorithm does not apply to a problem on a topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotApplicable {
    /// No algorithm has this name.
    #[error("unknown algorithm `{name}`{}", nearest.as_ref().map_or(String::new(), |n| format!(": did you mean `{n}`?")))]
    Unknown {
        /// The given name.
        name: String,
        /// The most similar name, if one is close.
        nearest: Option<String>,
    },
    /// An algorithm of an earlier version, or a parameter or word of one.
    #[error("{what} was removed; the nearest is {nearest}")]
    Removed {
        /// Its name.
        what: String,
        /// The algorithm or setting that is left.
        nearest: &'static str,
    },
    /// The catalogue has another algorithm of this name.
    #[error("the catalogue has an algorithm `{name}` already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// It performs another operation.
    #[error("performs {performs}, not {asked}")]
    Operation {
        /// Its operation.
        performs: Collective,
        /// The requested operation.
        asked: Collective,
    },
    /// Its schedules depend on the sizes of blocks.
    #[error("requires the sizes of blocks (--demand)")]
    NoDemand,
    /// It requires another shape.
    #[error("requires {needs}, which {topology} is not")]
    Shape {
        /// The required shape.
        needs: &'static str,
        /// The given shape.
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
        /// The available ports.
        ports: u32,
    },
    /// A schedule for more ports than there are.
    #[error("requires {least} ports; there {} {ports}", if *ports == 1 { "is" } else { "are" })]
    FewPorts {
        /// The ports it needs.
        least: u32,
        /// The available ports.
        ports: u32,
    },
    /// A schedule that splits blocks, for another block size.
    #[error("splits blocks of {cut} bytes, not of {asked}")]
    BlockBytes {
        /// Its block size.
        cut: u64,
        /// The requested block size.
        asked: u64,
    },
    /// The ranks of a node would send through more ports than it has.
    #[error("sends from all {size} ranks of a node to other nodes at once; a node has {ports} port{}", if *ports == 1 { "" } else { "s" })]
    NodePorts {
        /// Ranks on the largest node.
        size: u32,
        /// Ports of a node.
        ports: u32,
    },
    /// It applies, but rankings leave it out.
    #[error("is priced only if it is named (simulate, verify, sweep --algorithm): {why}")]
    Unranked {
        /// The reason.
        why: &'static str,
    },
    /// It is searched for, and no schedule of it can be faster by more than a little than others.
    #[error(
        "is not searched for: it cannot be more than 2 % faster than the best at any block size"
    )]
    Slower,
    /// It is searched for, which takes too long.
    #[error("is not searched for: that exceeds the budget; --budget {}s searches", two_digits(*milliseconds))]
    Search {
        /// Estimated time of one core for the longest search.
        milliseconds: u64,
    },
    /// It has no such parameter.
    #[error(
        "{algorithm} has no parameter `{name}`: {}",
        if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", known.join(", ")) }
    )]
    Parameter {
        /// The algorithm.
        algorithm: String,
        /// The given name.
        name: String,
        /// The names of its parameters.
        known: Vec<&'static str>,
    },
    /// A parameter requires another one.
    #[error("{algorithm}: {name} requires {requires}")]
    Alone {
        /// The algorithm.
        algorithm: String,
        /// The given parameter.
        name: String,
        /// The parameter that it requires, as `KEY=VALUE`.
        requires: String,
    },
    /// The algorithm that a parameter names does not apply.
    #[error("{parameter}={named}: {reason}")]
    Named {
        /// The parameter.
        parameter: &'static str,
        /// The algorithm that it names.
        named: String,
        /// The reason.
        reason: Box<Self>,
    },
    /// A parameter has a value outside its range.
    #[error("{algorithm}: {name} is `{value}`, not {rule}")]
    Setting {
        /// The algorithm.
        algorithm: String,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: String,
        /// The valid values.
        rule: String,
    },
}

/// The error of the sides of a grid that break a rule.
pub(crate) fn sides_error(
    grid: &Grid,
    rule: &'static str,
    breaks: impl Fn(usize) -> bool,
) -> NotApplicable {
    let sides = (0..grid.sides().len()).filter(|&u| breaks(u));
    let sides = sides.map(|u| format!("side {u} ({})", grid.sides()[u])).collect();
    NotApplicable::Sides { rule, sides }
}

/// Refuses a grid if any of its sides breaks a rule.
pub(crate) fn check_sides(
    grid: &Grid,
    rule: &'static str,
    breaks: impl Fn(usize) -> bool,
) -> Result<(), NotApplicable> {
    if (0..grid.sides().len()).any(&breaks) { Err(sides_error(grid, rule, breaks)) } else { Ok(()) }
}

/// Seconds, rounded up to two digits.
fn two_digits(milliseconds: u64) -> f64 {
    let mut unit = 1;
    while milliseconds.div_ceil(unit) >= 100 {
        unit *= 10;
    }
    (milliseconds.div_ceil(unit) * unit) as f64 / 1e3
}
