use topocoll_schedule::{Origin, Parameters, Problem, Setting};
use topocoll_topology::{Clusters, Shape, Topology};

use crate::{Algorithm, NotApplicable};

/// A parameter of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// The name in `--set name=value`.
    pub name: &'static str,
    /// Its values and its default.
    pub values: &'static str,
    /// Whether the caller, who knows the costs, is to choose it unless it is given.
    pub by_cost: bool,
}

/// Checks what every algorithm asks of its input: the operation, and names of parameters.
pub(crate) fn check(
    algorithm: &dyn Algorithm,
    problem: &Problem,
    given: &Parameters,
) -> Result<(), NotApplicable> {
    if problem.operation != algorithm.operation() {
        return Err(NotApplicable::Operation {
            performs: algorithm.operation(),
            asked: problem.operation,
        });
    }
    let known = || algorithm.parameters().iter().map(|parameter| parameter.name);
    match given.keys().find(|&name| known().all(|known| known != name)) {
        None => Ok(()),
        Some(name) => Err(NotApplicable::Parameter {
            algorithm: algorithm.name(),
            name: name.clone(),
            known: known().collect(),
        }),
    }
}

/// The value of an integer parameter within `least..=most`, if it is given.
pub(crate) fn integer(
    algorithm: &dyn Algorithm,
    given: &Parameters,
    name: &'static str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, NotApplicable> {
    match given.get(name) {
        None => Ok(None),
        Some(&Setting::Integer(value)) if (least..=most).contains(&value) => Ok(Some(value)),
        Some(value) => Err(NotApplicable::Setting {
            algorithm: algorithm.name(),
            name,
            value: value.to_string(),
            rule: format!("a whole number from {least} to {most}"),
        }),
    }
}

/// The position in `words` of a parameter's value; 0 if it is not given.
pub(crate) fn word(
    algorithm: &dyn Algorithm,
    given: &Parameters,
    name: &'static str,
    words: &[&str],
) -> Result<usize, NotApplicable> {
    let Some(value) = given.get(name) else { return Ok(0) };
    (words.iter().position(|word| *word == value.to_string())).ok_or_else(|| {
        NotApplicable::Setting {
            algorithm: algorithm.name(),
            name,
            value: value.to_string(),
            rule: format!("one of {}", words.join(", ")),
        }
    })
}

/// Messages that each rank may send in a step when all of them send to other nodes at once: the
/// ports, shared by the ranks of the largest node.
pub(crate) fn ports_per_rank(
    problem: &Problem,
    topology: &dyn Topology,
) -> Result<u32, NotApplicable> {
    match topology.shape() {
        Shape::Clustered(clusters) if clusters.nodes() > 1 => match problem.ports
            / clusters.largest()
        {
            0 => Err(NotApplicable::NodePorts { size: clusters.largest(), ports: problem.ports }),
            ports => Ok(ports),
        },
        _ => Ok(problem.ports),
    }
}

/// The nodes of a cluster.
pub(crate) fn clusters(topology: &dyn Topology) -> Result<&Clusters, NotApplicable> {
    let Shape::Clustered(clusters) = topology.shape() else {
        return Err(NotApplicable::Shape { needs: "a cluster", topology: topology.short_form() });
    };
    Ok(clusters)
}

/// Parameters whose values are words.
pub(crate) fn words<const N: usize>(values: [(&str, &str); N]) -> Parameters {
    values.map(|(name, value)| (name.to_owned(), Setting::Text(value.to_owned()))).into()
}

/// The origin of a schedule that `algorithm` writes.
pub(crate) fn origin(algorithm: &dyn Algorithm, parameters: Parameters) -> Origin {
    Origin { algorithm: algorithm.name().to_owned(), parameters }
}

/// The name most like the one given, if any is close.
pub(crate) fn nearest(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
