//! Names of the attributes in graphs.

use std::str::FromStr;

/// What a link may have besides its ends.
pub(super) const OF_LINKS: [&str; 4] = ["class", "bandwidth", "latency", "count"];

/// Attributes that networkx writes for itself; they have no meaning here.
const OF_NETWORKX: [&str; 7] = ["directed", "multigraph", "graph", "key", "name", "id", "pos"];

/// The names that a graphs has for the attributes of links and nodes.
///
/// Its text form is a list such as `bandwidth=capacity,switch=type:switch`: attributes of this reader
/// and the names in the file; a vertex whose `type` is `switch` is a switch, which `kind=type` says too.
/// `ignore=weight` skips an attribute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Pairs of an attribute and its name in the file.
    names: Vec<(String, String)>,
    /// The value of a switch, where that is not `true`.
    switch: Option<String>,
}

impl Attributes {
    /// The name that the file has for an attribute.
    pub(super) fn name<'a>(&'a self, own: &'a str) -> &'a str {
        self.names.iter().find(|(known, _)| known == own).map_or(own, |(_, name)| name)
    }

    /// All names of the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(_, name)| name.as_str())
    }

    /// The value of the attribute of switches, where that is not `true`.
    pub(super) fn switch(&self) -> Option<&str> {
        self.switch.as_deref()
    }

    /// Refuses the attributes of a part of the file other than `known`.
    pub(super) fn check<'k>(
        &self,
        what: &str,
        keys: impl Iterator<Item = &'k String>,
        known: &[&str],
    ) -> Result<(), String> {
        let known: Vec<&str> = known.iter().map(|own| self.name(own)).collect();
        let ignored =
            |key: &str| self.names.iter().any(|(own, name)| own == "ignore" && name == key);
        let unknown = keys.filter(|key| {
            let key = key.as_str();
            !known.contains(&key) && !OF_NETWORKX.contains(&key) && !ignored(key)
        });
        let unknown: Vec<String> = unknown.map(|key| format!("`{key}`")).collect();
        match &unknown[..] {
            [] => Ok(()),
            unknown => Err(format!(
                "{what} has {}: it may have {}; --attributes bandwidth=capacity,switch=type:switch maps other \
                 names, ignore=NAME skips one",
                unknown.join(", "),
                known.join(", ")
            )),
        }
    }
}

impl FromStr for Attributes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for pair in text.split(',') {
            let (own, name) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = match name.split_once(':') {
                Some((name, value)) if ["switch", "kind"].contains(&own) => (name, Some(value)),
                _ => (name, None),
            };
            let (own, value) = match own {
                "kind" => ("switch", value.or(Some("switch"))),
                own => (own, value),
            };
            let is_known = OF_LINKS.contains(&own) || own == "switch" || own == "ignore";
            if !is_known {
                let known = OF_LINKS.join(", ");
                return Err(format!("`{own}` is not one of {known}, switch, kind, ignore"));
            }
            if name.is_empty() || value == Some("") {
                return Err(format!(
                    "`{pair}` is not a pair such as bandwidth=capacity or switch=type:switch"
                ));
            }
            let again = |(other, named): &(String, String)| {
                (other == own && own != "ignore") || named == name
            };
            if read.names.iter().any(again) {
                return Err(format!("`{pair}`: an attribute is named twice"));
            }
            read.switch = read.switch.or(value.map(str::to_owned));
            read.names.push((own.to_owned(), name.to_owned()));
        }
        Ok(read)
    }
}
