use std::fmt;
use std::str::FromStr;

use crate::graph_file::NOT_JSON;
use crate::spec::{Attributes, SpecError, number, whole};

/// How to read what the text of a machine leaves open. What is given for a machine that leaves it not
/// open is refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Names of the attributes in a graph of node-link JSON.
    pub attributes: Option<Attributes>,
    /// The taper of links between switches whose bandwidth Slurm's `topology.conf` leaves open: they are
    /// not blocking unless given.
    pub taper: Option<Taper>,
}

/// What the hosts below a switch can send over what its links upwards carry: a fraction of at least 1.
///
/// Its text form is `2`, `1.5` or `3/2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taper {
    pub(crate) over: u32,
    pub(crate) times: u32,
}

impl Taper {
    /// Links upwards carry all that hosts can send.
    pub(crate) const NONE: Self = Self { over: 1, times: 1 };
}

impl FromStr for Taper {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (over, times) = fraction(text)?;
        if times == 0 || over < times {
            return Err(format!("taper {over}/{times}: it is at least 1"));
        }
        Ok(Self { over, times })
    }
}

impl fmt::Display for Taper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => write!(out, "{}", self.over),
            times => write!(out, "{}/{times}", self.over),
        }
    }
}

/// A fraction such as `3/2`, `1.5` or `2`.
pub(crate) fn fraction(text: &str) -> Result<(u32, u32), String> {
    /// More digits are not told apart.
    const DIGITS: usize = 9;
    if let Some((over, times)) = text.split_once('/') {
        return Ok((number("taper", over)?, number("denominator of the taper", times)?));
    }
    let Some((units, decimals)) = text.split_once('.') else {
        return Ok((number("taper", text)?, 1));
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(units) || !is_number(decimals) || units.len() + decimals.len() > DIGITS {
        let rule = format!("a number such as 2, 1.5 or 3/2, of at most {DIGITS} digits");
        return Err(format!("taper is `{text}`, not {rule}"));
    }
    Ok((whole("taper", &format!("{units}{decimals}"), 0)?, 10u32.pow(decimals.len() as u32)))
}

impl Reading {
    /// Refuses attributes for a machine that is no graph of node-link JSON.
    pub(crate) fn refuse_attributes(&self) -> Result<(), SpecError> {
        refuse(self.attributes.is_some(), NOT_JSON)
    }

    /// Refuses a taper for a machine whose links all have a bandwidth.
    pub(crate) fn refuse_taper(&self) -> Result<(), SpecError> {
        refuse(self.taper.is_some(), NOT_OPEN)
    }
}

/// Why a taper is refused.
const NOT_OPEN: &str = "--taper is of links between switches that have no LinkSpeed in Slurm's \
     topology.conf, and the machine has no such links";

fn refuse(given: bool, message: &str) -> Result<(), SpecError> {
    if given { Err(message.into()) } else { Ok(()) }
}
