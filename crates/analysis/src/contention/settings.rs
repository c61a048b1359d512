//! The parameters of the contention models.

use topocoll_schedule::{Parameters, Setting};

use crate::AnalysisError;

/// Virtual channels that a link may have.
pub const MAX_VCS: u32 = 16;

/// The choice of virtual channels on a side that wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Dateline {
    /// On entering the side: one half for messages that cross the dateline, the other for the rest.
    /// Deadlock-free if no route goes more than half around a side.
    Entry,
    /// One half before the dateline, the other after it. Deadlock-free for all routes.
    Crossing,
}

/// The routes of messages whose schedule gives none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Routing {
    /// The machine's own, which on a grid correct dimension 0 first.
    #[default]
    DimensionOrder,
    /// All shortest routes. In the flit model a header goes around links that are taken, in the fluid
    /// model a message is split equally among them.
    Adaptive,
}

/// Parameters of the wormhole, flit and fluid models.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Virtual channels of a link.
    pub vcs: u32,
    /// Flits that the buffer of a virtual channel holds.
    pub buffer_flits: u32,
    /// Bytes of a flit.
    pub flit_bytes: u64,
    /// Cycles of a hop, router and link together. The default is 5 in the flit model, and the
    /// machine's propagation in the wormhole and fluid models.
    pub hop_cycles: Option<u32>,
    /// When virtual channels change. The default depends on the longest route.
    pub dateline: Option<Dateline>,
    /// Which routes messages take.
    pub routing: Routing,
}

/// A parameter of the models.
#[derive(Clone, Copy, Debug)]
pub struct ModelParameter {
    /// The name in `--set name=value`.
    pub name: &'static str,
    /// Its values and its default.
    pub values: &'static str,
    /// The rule for values.
    rule: &'static str,
    /// Sets it; `None` for a value of another kind.
    set: fn(&mut Settings, &Setting) -> Option<()>,
    /// Its value, if it is a number from 1 to `most`.
    number: fn(&Settings) -> Option<u64>,
    most: u64,
}

/// The parameters, in the order in which help lists them.
pub const MODEL_PARAMETERS: &[ModelParameter] = &[
    ModelParameter {
        name: "vcs",
        values: "virtual channels of a link, 1 to 16; default 2",
        rule: "a whole number from 1 to 16",
        set: |settings, value| whole(value).map(|value| settings.vcs = value),
        number: |settings| Some(settings.vcs.into()),
        most: MAX_VCS as u64,
    },
    ModelParameter {
        name: "buffer_flits",
        values: "flits that a virtual channel buffers, 1 to 65536; default 8",
        rule: "a whole number from 1 to 65536",
        set: |settings, value| whole(value).map(|value| settings.buffer_flits = value),
        number: |settings| Some(settings.buffer_flits.into()),
        most: 65_536,
    },
    ModelParameter {
        name: "flit_bytes",
        values: "bytes of a flit, 1 to 1048576; default 16",
        rule: "a whole number from 1 to 1048576",
        set: |settings, value| whole(value).map(|value| settings.flit_bytes = value),
        number: |settings| Some(settings.flit_bytes),
        most: 1 << 20,
    },
    ModelParameter {
        name: "hop_cycles",
        values: "flit times of a hop, 1 to 4096; default 5 (flit), the machine's propagation (wormhole, fluid)",
        rule: "a whole number from 1 to 4096",
        set: |settings, value| whole(value).map(|value| settings.hop_cycles = Some(value)),
        number: |settings| settings.hop_cycles.map(u64::from),
        most: 4096,
    },
    ModelParameter {
        name: "dateline",
        values: "entry or crossing: when virtual channels change; default entry where no route goes more than half around",
        rule: "one of entry, crossing",
        set: |settings, value| {
            settings.dateline = Some(match value.to_string().as_str() {
                "entry" => Dateline::Entry,
                "crossing" => Dateline::Crossing,
                _ => return None,
            });
            Some(())
        },
        number: |_| None,
        most: u64::MAX,
    },
];

impl Default for Settings {
    fn default() -> Self {
        Self {
            vcs: 2,
            buffer_flits: 8,
            flit_bytes: 16,
            hop_cycles: None,
            dateline: None,
            routing: Routing::DimensionOrder,
        }
    }
}

impl Settings {
    /// Whether a model has a parameter of this name.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        MODEL_PARAMETERS.iter().any(|parameter| parameter.name == name)
    }

    /// The settings given, others at their defaults.
    ///
    /// # Errors
    /// An unknown name, or a value out of range.
    pub fn from_parameters(given: &Parameters) -> Result<Self, AnalysisError> {
        let mut settings = Self::default();
        for (name, value) in given {
            let known = MODEL_PARAMETERS.iter().find(|parameter| parameter.name == name);
            let parameter = known.ok_or_else(|| AnalysisError::Parameter {
                name: name.clone(),
                known: MODEL_PARAMETERS.iter().map(|parameter| parameter.name).collect(),
            })?;
            let set = (parameter.set)(&mut settings, value);
            set.ok_or_else(|| parameter.refused(value.to_string()))?;
        }
        settings.check()?;
        Ok(settings)
    }

    /// Checks that all values are in range.
    pub(crate) fn check(&self) -> Result<(), AnalysisError> {
        for parameter in MODEL_PARAMETERS {
            if let Some(number) = (parameter.number)(self)
                && !(1..=parameter.most).contains(&number)
            {
                return Err(parameter.refused(number.to_string()));
            }
        }
        Ok(())
    }
}

impl ModelParameter {
    fn refused(&self, value: String) -> AnalysisError {
        AnalysisError::Setting { name: self.name, value, rule: self.rule }
    }
}

fn whole<N: TryFrom<u64>>(value: &Setting) -> Option<N> {
    match *value {
        Setting::Integer(value) => value.try_into().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_values_out_of_range() {
        let set = |name: &str, value| {
            Settings::from_parameters(&Parameters::from([(name.to_owned(), value)]))
        };
        for name in ["vcs", "buffer_flits", "flit_bytes", "hop_cycles"] {
            let error = set(name, Setting::Integer(0)).map_err(|e| e.to_string());
            assert!(error.is_err_and(|e| e.contains(name) && e.contains("0")), "{name}");
        }
        let dateline = |text: &str| set("dateline", Setting::Text(text.into()));
        assert!(dateline("never").is_err());
        assert_eq!(dateline("entry").map(|settings| settings.dateline), Ok(Some(Dateline::Entry)));
        let crossing = dateline("crossing").map(|settings| settings.dateline);
        assert_eq!(crossing, Ok(Some(Dateline::Crossing)));
        assert!(set("flits", Setting::Integer(1)).is_err());
        assert_eq!(set("vcs", Setting::Integer(4)).map(|settings| settings.vcs), Ok(4));
    }
}
