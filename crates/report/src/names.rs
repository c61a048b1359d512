//! Names of choices, as short as they can be told apart, and the rows of a ranking.

use topocoll::{Catalogue, Choice, Domain, Parameters, STEPS, Selection, Setting};

use crate::number::{in_steps, named};

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

/// A setting that a number of steps resolves to: `strided-rings (24 steps)`, or all parameters if users set them.
#[must_use]
pub fn resolved(
    catalogue: &Catalogue,
    algorithm: &str,
    parameters: &Parameters,
    steps: u64,
) -> String {
    match parameters.keys().any(|key| is_told_by_steps(catalogue, algorithm, parameters, key)) {
        true => format!("{algorithm} ({})", in_steps(steps)),
        false => named(algorithm, parameters),
    }
}

/// Whether a parameter is internal to an algorithm whose steps can be set.
fn is_told_by_steps(
    catalogue: &Catalogue,
    algorithm: &str,
    parameters: &Parameters,
    key: &str,
) -> bool {
    catalogue.is_internal(algorithm, parameters, key)
        && catalogue.parameter(algorithm, parameters, STEPS.name).is_none()
}

/// Names the choices of one text with the parameters that matter there: the names of algorithms, no
/// defaults, and no values that all these choices of an algorithm share.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    catalogue: &'a Catalogue,
    /// The ranking that resolves numbers of steps.
    ranking: Option<&'a Selection>,
    choices: Vec<(&'a str, &'a Parameters)>,
}

impl<'a> Names<'a> {
    /// Names of these choices.
    pub fn new(
        catalogue: &'a Catalogue,
        choices: impl IntoIterator<Item = (&'a str, &'a Parameters)>,
    ) -> Self {
        Self { catalogue, ranking: None, choices: choices.into_iter().collect() }
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

    /// The same with numbers of steps in place of internal parameters, where this ranking
    /// [resolves](Selection::in_steps) them to the choice.
    #[must_use]
    pub fn resolved_by(self, ranking: &'a Selection) -> Self {
        Self { ranking: Some(ranking), ..self }
    }

    /// A choice: `bruck (radix=2)`, `strided-rings (24 steps)`.
    #[must_use]
    pub fn of(&self, choice: &Choice) -> String {
        match self.steps(choice) {
            Some(steps) => format!("{} ({steps})", choice.algorithm),
            None => named(&choice.algorithm, &self.setting(&choice.algorithm, &choice.parameters)),
        }
    }

    /// `24 steps`, if that says which setting of its algorithm a choice has, and internal parameters would.
    #[must_use]
    pub fn steps(&self, choice: &Choice) -> Option<String> {
        let Choice { algorithm, parameters, price, .. } = choice;
        let info = self.catalogue.find(algorithm).ok()?.info();
        let resolved = self.ranking?.in_steps(info, price.steps, &Parameters::new())?;
        let tells = |key: &String| is_told_by_steps(self.catalogue, algorithm, parameters, key);
        let tells = self.setting(algorithm, parameters).keys().any(tells);
        (resolved.parameters == *parameters && tells).then(|| in_steps(price.steps))
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
