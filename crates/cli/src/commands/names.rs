//! Names of choices, as short as they can be told apart.

use topocoll::{Catalogue, Choice, Domain, Parameters, Setting};

use crate::render::named;

/// Names the choices of one text with the parameters that matter there: the names of algorithms, no
/// defaults, and no values that all these choices of an algorithm share.
pub(super) struct Names<'a> {
    catalogue: &'a Catalogue,
    choices: Vec<(&'a str, &'a Parameters)>,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        catalogue: &'a Catalogue,
        choices: impl IntoIterator<Item = (&'a str, &'a Parameters)>,
    ) -> Self {
        Self { catalogue, choices: choices.into_iter().collect() }
    }

    /// A choice: `bruck (radix=2)`.
    pub(super) fn of(&self, choice: &Choice) -> String {
        named(&choice.algorithm, &self.setting(&choice.algorithm, &choice.parameters))
    }

    /// The parameters of a choice but defaults: enough to make it again.
    pub(super) fn complete(&self, algorithm: &str, parameters: &Parameters) -> Parameters {
        let given = parameters.iter().filter(|(key, value)| {
            let default = self.default(algorithm, parameters, key);
            default.is_none_or(|word| **value != Setting::Text(word.to_owned()))
        });
        given.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The word that a parameter of a choice has by default.
    fn default(&self, algorithm: &str, parameters: &Parameters, key: &str) -> Option<&'static str> {
        let parameter = self.catalogue.parameter(algorithm, parameters, key)?;
        match parameter.domain {
            Domain::Words([(word, _), ..]) if !parameter.by_cost => Some(*word),
            _ => None,
        }
    }

    /// The parameters of a choice that matter.
    pub(super) fn setting(&self, algorithm: &str, parameters: &Parameters) -> Parameters {
        let same = || self.choices.iter().filter(|(other, _)| *other == algorithm);
        let several = same().any(|(_, other)| *other != parameters);
        let shared =
            |key: &str, value: &Setting| same().all(|(_, other)| other.get(key) == Some(value));
        let names = |key: &str| {
            let parameter = self.catalogue.parameter(algorithm, parameters, key);
            parameter.is_some_and(|parameter| matches!(parameter.domain, Domain::Algorithm(_)))
        };
        let matters = |(key, value): &(&String, &Setting)| match (
            self.default(algorithm, parameters, key),
            value,
        ) {
            _ if names(key) => true,
            (Some(default), value) => **value != Setting::Text(default.to_owned()),
            // One number by itself says more than the name of its algorithm.
            (None, Setting::Integer(_)) => !several || !shared(key, value),
            (None, _) => !shared(key, value),
        };
        let parameters = parameters.iter().filter(matters);
        parameters.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
