//! Completion of values at the prompt: a shell asks this program for the candidates.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use topocoll::{Algorithm, COMMON, Catalogue, Domain, Info, Parameter, TOPOLOGIES, shipped};

/// The environment variable with which the script of a shell asks.
pub(crate) const VARIABLE: &str = "TOPOCOLL_COMPLETE";

/// Shipped machines, kinds of short forms, and files.
pub(crate) fn machines(current: &OsStr) -> Vec<CompletionCandidate> {
    let shipped = shipped().map(|(name, _)| CompletionCandidate::new(name));
    let kinds = TOPOLOGIES.iter().map(|form| {
        let help = format!("such as {}", form.example);
        CompletionCandidate::new(format!("{}:", form.kind)).help(Some(help.into()))
    });
    let mut found = beginning(current, shipped.chain(kinds));
    found.extend(PathCompleter::file().complete(current));
    found
}

/// The machines that can give their timing, and files.
pub(crate) fn timings(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = shipped().map(|(name, _)| name).chain(["generic"]);
    let mut found = beginning(current, names.map(CompletionCandidate::new));
    found.extend(PathCompleter::file().complete(current));
    found
}

/// The algorithms of the catalogue.
pub(crate) fn algorithms(current: &OsStr) -> Vec<CompletionCandidate> {
    let catalogue = Catalogue::standard();
    let candidates = catalogue.iter().map(|algorithm| {
        let Info { name, summary, .. } = algorithm.info();
        CompletionCandidate::new(name.clone().into_owned())
            .help(Some(summary.clone().into_owned().into()))
    });
    beginning(current, candidates)
}

/// The values of the parameters of the algorithm on the command line, or of all.
pub(crate) fn settings(current: &OsStr) -> Vec<CompletionCandidate> {
    let catalogue = Catalogue::standard();
    // The command line follows `--`.
    let line: Vec<_> = std::env::args().skip_while(|word| word != "--").collect();
    let named = line.windows(2).filter(|pair| pair[0] == "--algorithm").map(|pair| &*pair[1]);
    let named: Vec<_> = named.filter(|name| catalogue.find(name).is_ok()).collect();
    let mut texts: Vec<_> = COMMON.iter().flat_map(values_of).collect();
    for algorithm in catalogue.iter() {
        let info = algorithm.info();
        if !named.is_empty() && !named.contains(&&*info.name) {
            continue;
        }
        for parameter in info.parameters {
            texts.extend(values_of(parameter));
            if let Domain::Algorithm(_) = parameter.domain {
                let fits = |named: &&Info| {
                    named.operation == info.operation && named.name != info.name && !named.by_demand
                };
                for named in catalogue.iter().map(Algorithm::info).filter(fits) {
                    texts.push(format!("{}={}", parameter.name, named.name));
                    let own = named.parameters.iter().flat_map(values_of);
                    texts.extend(own.map(|own| format!("{}.{own}", parameter.name)));
                }
            }
        }
    }
    texts.sort_unstable();
    texts.dedup();
    beginning(current, texts.into_iter().map(CompletionCandidate::new))
}

/// `key=value` for each word of a parameter, `key=` for numbers.
fn values_of(parameter: &Parameter) -> Vec<String> {
    match parameter.domain {
        Domain::Words(words) => {
            words.iter().map(|(word, _)| format!("{}={word}", parameter.name)).collect()
        }
        Domain::Numbers(_) => vec![format!("{}=", parameter.name)],
        _ => Vec::new(),
    }
}

/// The candidates that begin with the given text.
fn beginning(
    current: &OsStr,
    candidates: impl Iterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let begins = |candidate: &CompletionCandidate| {
        let bytes = candidate.get_value().as_encoded_bytes();
        bytes.starts_with(current.as_encoded_bytes())
    };
    candidates.filter(begins).collect()
}
