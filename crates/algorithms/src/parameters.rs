use std::borrow::Cow;
use std::fmt;

use topocoll_schedule::{Collective, Parameters, Setting};
use topocoll_topology::View;

use crate::{NotApplicable, removed};

/// A parameter of an algorithm, for help, checks and the origin of schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Parameter {
    /// The name in `--set name=value`.
    pub name: &'static str,
    /// Its values.
    pub domain: Domain,
    /// Whether a value that is not given is chosen by cost.
    pub by_cost: bool,
}

/// The values of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Domain {
    /// Whole numbers; the text gives the range and the default.
    Numbers(&'static str),
    /// Words with their meanings; the first is the default.
    Words(&'static [(&'static str, &'static str)]),
    /// The name of an algorithm of the same operation, whose own parameters are given as
    /// `name.key`; the text says which it may be, and the default.
    Algorithm(&'static str),
}

impl Parameter {
    /// A parameter of whole numbers; the text gives the range and the default.
    #[must_use]
    pub const fn number(name: &'static str, range: &'static str) -> Self {
        Self { name, domain: Domain::Numbers(range), by_cost: false }
    }

    /// A parameter of words with their meanings; the first is the default.
    #[must_use]
    pub const fn words(name: &'static str, words: &'static [(&'static str, &'static str)]) -> Self {
        Self { name, domain: Domain::Words(words), by_cost: false }
    }

    /// A parameter that names an algorithm; the text says which it may be, and the default.
    #[must_use]
    pub const fn algorithm(name: &'static str, range: &'static str) -> Self {
        Self { name, domain: Domain::Algorithm(range), by_cost: false }
    }

    /// The setting that names an algorithm with its own parameters.
    pub(crate) fn naming(&self, algorithm: &str, own: &Parameters) -> Parameters {
        let own = own.iter().map(|(key, value)| (format!("{}.{key}", self.name), value.clone()));
        own.chain([(self.name.to_owned(), algorithm.into())]).collect()
    }

    /// The same; a missing value is chosen by cost.
    #[must_use]
    pub const fn by_cost(mut self) -> Self {
        self.by_cost = true;
        self
    }
}

/// The values, their meanings and the default, for lists.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.domain {
            Domain::Numbers(range) => f.write_str(range)?,
            Domain::Algorithm(range) => {
                write!(f, "{range}; its own parameters are {}.KEY=VALUE", self.name)?;
            }
            Domain::Words(words) => {
                for (i, (word, meaning)) in words.iter().enumerate() {
                    let before = match i {
                        0 => "",
                        _ if i + 1 == words.len() => " or ",
                        _ => ", ",
                    };
                    let default = if i == 0 && !self.by_cost { "; default" } else { "" };
                    write!(f, "{before}{word} ({meaning}{default})")?;
                }
            }
        }
        if self.by_cost { f.write_str("; chosen by cost unless set") } else { Ok(()) }
    }
}

/// The description of an algorithm, for lists, help and checks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The name on the command line and in files.
    pub name: Cow<'static, str>,
    /// One line for lists.
    pub summary: Cow<'static, str>,
    /// Its paper, and the place there.
    pub source: Cow<'static, str>,
    /// The operation it performs.
    pub operation: Collective,
    /// The parameters that users set.
    pub parameters: &'static [Parameter],
    /// Parameters that tell its candidates apart and are not listed; [`STEPS`] chooses among them.
    pub internal: &'static [Parameter],
    /// Whether it requires the sizes of blocks, on which its schedules depend.
    pub by_demand: bool,
    /// Whether ranks of a node have numbers one after the other: ranks that are placed in another way get such
    /// numbers for it.
    pub by_node: bool,
}

impl Info {
    /// An all-to-all without parameters.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, source: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            summary: Cow::Borrowed(summary),
            source: Cow::Borrowed(source),
            operation: Collective::AllToAll,
            parameters: &[],
            internal: &[],
            by_demand: false,
            by_node: false,
        }
    }

    /// The same for another operation.
    #[must_use]
    pub const fn performing(mut self, operation: Collective) -> Self {
        self.operation = operation;
        self
    }

    /// The same with these parameters.
    #[must_use]
    pub const fn taking(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    /// The same with these parameters that are not listed.
    #[must_use]
    pub const fn with_internal(mut self, internal: &'static [Parameter]) -> Self {
        self.internal = internal;
        self
    }

    /// The same, for schedules that depend on the sizes of blocks: a value that is not given is the
    /// algorithm's own.
    #[must_use]
    pub const fn by_demand(mut self) -> Self {
        self.by_demand = true;
        self
    }

    /// The same, for nodes whose ranks have numbers one after the other.
    #[must_use]
    pub const fn by_node(mut self) -> Self {
        self.by_node = true;
        self
    }

    /// All its parameters: those that users set, and then the internal ones.
    pub fn all(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().chain(self.internal)
    }

    /// The value of [`STEPS`], unless the algorithm has a parameter of this name, and the other parameters.
    ///
    /// # Errors
    /// It is not a number.
    pub fn most_steps(
        &self,
        given: &Parameters,
    ) -> Result<(Option<u64>, Parameters), NotApplicable> {
        let mut own = given.clone();
        if self.parameter(STEPS.name).is_some() {
            return Ok((None, own));
        }
        match own.remove(STEPS.name) {
            None => Ok((None, own)),
            Some(Setting::Integer(most)) => Ok((Some(most), own)),
            Some(value) => Err(self.wrong_steps(&value, "a whole number".to_owned())),
        }
    }

    /// The error of a value of [`STEPS`].
    #[must_use]
    pub fn wrong_steps(&self, value: &Setting, rule: String) -> NotApplicable {
        let algorithm = self.name.clone().into_owned();
        NotApplicable::Setting { algorithm, name: STEPS.name, value: value.to_string(), rule }
    }

    /// The parameter that `key` sets. For `name.key`, where the parameter `name` names an algorithm,
    /// that parameter and the key of one of that algorithm's own.
    #[must_use]
    pub fn parameter<'k>(&self, key: &'k str) -> Option<(&'static Parameter, Option<&'k str>)> {
        let find = |name: &str| self.all().find(|known| known.name == name);
        if let Some(parameter) = find(key) {
            return Some((parameter, None));
        }
        let (name, own) = key.split_once('.')?;
        let parameter = find(name)?;
        matches!(parameter.domain, Domain::Algorithm(_)).then_some((parameter, Some(own)))
    }

    /// Whether a value is the default of a parameter of words.
    #[must_use]
    pub fn is_default(&self, name: &str, value: &Setting) -> bool {
        self.all().any(|known| match known.domain {
            Domain::Words(words) => known.name == name && words[0].0 == value.to_string(),
            _ => false,
        })
    }

    /// All combinations of the words of its parameters, the last parameter varying fastest.
    #[must_use]
    pub fn combinations(&self) -> Vec<Parameters> {
        self.all().fold(vec![Parameters::new()], |all, parameter| {
            let Domain::Words(words) = parameter.domain else { return all };
            let with = |setting: &Parameters, word: &str| {
                let mut setting = setting.clone();
                setting.insert(parameter.name.to_owned(), word.into());
                setting
            };
            all.iter()
                .flat_map(|setting| words.iter().map(move |(word, _)| with(setting, word)))
                .collect()
        })
    }
}

/// The parameter of every algorithm that limits the steps of its schedule. The ranking of an exchange decides
/// which setting that is. A [`Request`](crate::Request) has no times to rank by, and refuses it.
pub const STEPS: Parameter = Parameter::number(
    "steps",
    "the most steps; of the settings that take no more, the first in the ranking of select is used",
);

/// The parameters of every algorithm that take its schedule for fewer ports of a rank, and of a node
/// of several ranks.
pub const FEWER_PORTS: [&str; 2] = ["ports", "node_ports"];

/// The parameters of every algorithm that users set.
pub const COMMON: [Parameter; 3] = [
    STEPS,
    Parameter::number(FEWER_PORTS[0], "1 to the ports of a rank; the schedule for that many"),
    Parameter::number(
        FEWER_PORTS[1],
        "where nodes hold several ranks, 1 to the ports of a node; the schedule for that many",
    ),
];

/// The parameters of every algorithm that take its schedule for another [`View`].
pub const VIEW: [&str; 4] = View::WORDS;

/// Those parameters that every algorithm takes.
pub fn of_every_algorithm(given: &Parameters) -> impl Iterator<Item = (String, Setting)> {
    let names = FEWER_PORTS.into_iter().chain(VIEW);
    let given = names.filter_map(|name| given.get_key_value(name));
    given.map(|(name, value)| (name.clone(), value.clone()))
}

/// The values of an algorithm's parameters, with checked names and words.
#[derive(Clone, Copy, Debug)]
pub struct Values<'v> {
    info: &'v Info,
    given: &'v Parameters,
}

impl<'v> Values<'v> {
    pub(crate) fn new(info: &'v Info, given: &'v Parameters) -> Result<Self, NotApplicable> {
        let values = Self { info, given };
        for (name, value) in given {
            if let Some(refused) = removed::setting(&info.name, name, value) {
                return Err(refused);
            }
            let Some((parameter, key)) = info.parameter(name) else {
                if *name == STEPS.name {
                    return Err(values.refused(
                        STEPS.name,
                        "for an inner exchange, which has no times of its own",
                    ));
                }
                let steps = (!info.internal.is_empty()).then_some(&STEPS);
                return Err(NotApplicable::Parameter {
                    algorithm: info.name.clone().into_owned(),
                    name: name.clone(),
                    known: info.parameters.iter().chain(steps).map(|known| known.name).collect(),
                });
            };
            if key.is_some() && !values.is_given(parameter.name) {
                return Err(values.alone(name, format!("{}=NAME", parameter.name)));
            }
            if let Domain::Words(words) = parameter.domain
                && values.position(parameter.name, words).is_none()
            {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                return Err(values.refused(parameter.name, format!("one of {}", words.join(", "))));
            }
        }
        Ok(values)
    }

    /// Their algorithm.
    #[must_use]
    pub fn info(&self) -> &'v Info {
        self.info
    }

    /// Whether a parameter was given.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// A number from `least` to `most`, if given.
    ///
    /// # Errors
    /// The value is outside the range.
    pub fn number(
        &self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, NotApplicable> {
        match self.given.get(name) {
            None => Ok(None),
            Some(&Setting::Integer(value)) if (least..=most).contains(&value) => Ok(Some(value)),
            Some(_) => Err(self.refused(name, format!("a whole number from {least} to {most}"))),
        }
    }

    /// The word of a parameter, the default if not given.
    ///
    /// # Panics
    /// The algorithm has no such parameter of words.
    #[must_use]
    pub fn word(&self, name: &str) -> &'static str {
        let parameter = self.info.all().find(|known| known.name == name);
        match parameter.map(|parameter| parameter.domain) {
            Some(Domain::Words(words)) => words[self.position(name, words).unwrap_or(0)].0,
            _ => panic!("{} has no parameter {name} of words", self.info.name),
        }
    }

    /// Whether a parameter has this word.
    #[must_use]
    pub fn is(&self, name: &str, word: &str) -> bool {
        self.word(name) == word
    }

    /// The algorithm that a parameter names, and the values of its own parameters, if given.
    #[must_use]
    pub fn algorithm(&self, name: &str) -> Option<(String, Parameters)> {
        let named = self.given.get(name)?.to_string();
        let own = self.given.iter().filter_map(|(other, value)| {
            let (parameter, key) = self.info.parameter(other)?;
            (parameter.name == name).then_some((key?.to_owned(), value.clone()))
        });
        Some((named, own.collect()))
    }

    /// The error of a parameter that is set without another one, given as `KEY=VALUE`.
    pub(crate) fn alone(&self, name: &str, requires: impl Into<String>) -> NotApplicable {
        let algorithm = self.info.name.clone().into_owned();
        NotApplicable::Alone { algorithm, name: name.to_owned(), requires: requires.into() }
    }

    /// The error of an invalid value.
    #[must_use]
    pub fn refused(&self, name: &'static str, rule: impl Into<String>) -> NotApplicable {
        let value =
            self.given.get(name).map_or_else(|| self.word(name).to_owned(), Setting::to_string);
        let algorithm = self.info.name.clone().into_owned();
        NotApplicable::Setting { algorithm, name, value, rule: rule.into() }
    }

    /// All parameters of words, with defaults for missing ones.
    pub(crate) fn words(&self) -> Parameters {
        let words = self.info.all().filter_map(|parameter| match parameter.domain {
            Domain::Words(_) => Some((parameter.name.to_owned(), self.word(parameter.name).into())),
            _ => None,
        });
        words.collect()
    }

    /// The position of a parameter's word, 0 if not given.
    fn position(&self, name: &str, words: &[(&str, &str)]) -> Option<usize> {
        let Some(given) = self.given.get(name) else { return Some(0) };
        words.iter().position(|(word, _)| *word == given.to_string())
    }
}

/// The name most similar to a given one, if any is close.
pub(crate) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
