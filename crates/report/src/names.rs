//! Names of choices, as short as they can be told apart, and the rows of a ranking.

use topocoll::{Catalogue, Choice, Domain, Parameters, Selection, Setting};

use crate::number::named;

/// Rows of a ranking that a text lists.
pub const SHOWN: usize = 4;

/// Settings of one algorithm within this share of time are one row.
const NEAR: f64 = 0.01;

/// Times within this share are equal.
pub const EQUAL: f64 = 1e-9;

/// A row of a ranking: a choice, and others that cost as much.
#[derive(Clone, Debug)]
pub struct Row<'s> {
    /// The choice.
    pub choice: &'s Choice,
    /// Its time, by whichever model ranks.
    pub time: f64,
    /// The others.
    pub others: Vec<&'s Choice>,
}

impl<'s> Row<'s> {
    /// A choice by itself.
    #[must_use]
    pub fn new(choice: &'s Choice, time: f64) -> Self {
        Self { choice, time, others: Vec::new() }
    }

    /// The distinct rows of choices with their times, best first: choices of equal cost, and nearly equal settings
    /// of one algorithm, are one row.
    #[must_use]
    pub fn all(choices: impl IntoIterator<Item = (&'s Choice, f64)>) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for (choice, time) in choices {
            let joins = |row: &&mut Self| {
                row.costs_as(choice, time)
                    || row.choice.algorithm == choice.algorithm
                        && (time - row.time).abs() <= NEAR * row.time
            };
            match rows.iter_mut().find(joins) {
                Some(row) => row.others.push(choice),
                None => rows.push(Self::new(choice, time)),
            }
        }
        rows
    }

    /// Whether another choice has the same time, steps and charged volume.
    #[must_use]
    pub fn costs_as(&self, other: &Choice, time: f64) -> bool {
        let (a, b) = (&self.choice.price, &other.price);
        (time - self.time).abs() <= EQUAL * self.time
            && a.priced == b.priced
            && (a.steps, a.link_blocks) == (b.steps, b.link_blocks)
    }
}

/// Names the choices of one text with the parameters that matter there: the names of algorithms, no
/// defaults, and no values that all these choices of an algorithm share.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    catalogue: &'a Catalogue,
    choices: Vec<(&'a str, &'a Parameters)>,
}

impl<'a> Names<'a> {
    /// Names of these choices.
    pub fn new(
        catalogue: &'a Catalogue,
        choices: impl IntoIterator<Item = (&'a str, &'a Parameters)>,
    ) -> Self {
        Self { catalogue, choices: choices.into_iter().collect() }
    }

    /// Names of a ranking: of the choices in the rows that are listed, and of the fastest at other block sizes.
    #[must_use]
    pub fn of_rows(
        catalogue: &'a Catalogue,
        selection: &'a Selection,
        rows: &[Row<'a>],
        others: impl IntoIterator<Item = &'a Choice>,
    ) -> Self {
        let winners = selection.crossovers.iter().map(|one| (&*one.algorithm, &one.parameters));
        let listed = rows.iter().flat_map(|row| row.others.iter().copied().chain([row.choice]));
        let listed = listed.chain(others).map(|choice| (&*choice.algorithm, &choice.parameters));
        Self::new(catalogue, listed.chain(winners))
    }

    /// A choice: `bruck (radix=2)`.
    #[must_use]
    pub fn of(&self, choice: &Choice) -> String {
        named(&choice.algorithm, &self.setting(&choice.algorithm, &choice.parameters))
    }

    /// The parameters of a choice but defaults: enough to make it again.
    #[must_use]
    pub fn complete(&self, algorithm: &str, parameters: &Parameters) -> Parameters {
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
    #[must_use]
    pub fn setting(&self, algorithm: &str, parameters: &Parameters) -> Parameters {
        let same = || self.choices.iter().filter(|(other, _)| *other == algorithm);
        let several = same().any(|(_, other)| *other != parameters);
        let shared =
            |key: &str, value: &Setting| same().all(|(_, other)| other.get(key) == Some(value));
        // Those that every algorithm takes are not its own, and always matter.
        let names = |key: &str| {
            let parameter = self.catalogue.parameter(algorithm, parameters, key);
            parameter.is_none_or(|parameter| matches!(parameter.domain, Domain::Algorithm(_)))
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
