//! What the parameters of algorithms mean.

use std::collections::BTreeMap;

use topocoll::{COMMON, Front, Parameters, Selection, Sweep, View};

use super::Asked;

/// By algorithm and parameter, its meaning as `topocoll algorithms` gives it.
pub(super) type Settings = BTreeMap<String, BTreeMap<String, String>>;

/// What [`View::WORDS`] mean, which `topocoll algorithms` does not list.
const VIEWS: [&str; 4] = [
    "kinds of links without which the graph is seen, such as 0 or 0:2",
    "what the graph is seen as: a grid, a HyperX network, or its nodes in another order",
    "dimensions of the grid in the order in which they are seen, such as 1:0",
    "direction at half a ring: up or balanced",
];

/// The parameters of all choices of a page.
pub(super) fn settings(
    asked: &Asked<'_>,
    selection: &Selection,
    swept: Option<&Sweep>,
    found: &Front,
) -> Settings {
    let mut settings = Settings::new();
    let mut add = |algorithm: &str, setting: &Parameters| {
        for key in setting.keys() {
            let own = asked.catalogue.parameter(algorithm, setting, key);
            let known = own.or_else(|| COMMON.iter().find(|known| known.name == key));
            let view = View::WORDS.iter().position(|name| name == key);
            let of_view = || view.map(|view| VIEWS[view].to_owned());
            let Some(meaning) = known.map(ToString::to_string).or_else(of_view) else { continue };
            // A parameter of an algorithm that another parameter names.
            let named = key.split_once('.').and_then(|(by, own)| Some((setting.get(by)?, own)));
            let (algorithm, key) = match named {
                Some((named, own)) => (named.to_string(), own),
                None => (algorithm.to_owned(), &**key),
            };
            let own = settings.entry(algorithm).or_default();
            own.entry(key.to_owned()).or_insert(meaning);
        }
    };
    let of_lines = swept.iter().flat_map(|swept| &swept.lines).flat_map(|line| &line.points);
    let choices = selection.choices.iter().chain(&found.points).chain(of_lines);
    let choices = choices.map(|choice| (&*choice.algorithm, &choice.parameters));
    let fastest = swept
        .iter()
        .flat_map(|swept| &swept.crossovers)
        .map(|one| (&*one.algorithm, &one.parameters));
    for (algorithm, setting) in choices.chain(fastest).chain(asked.algorithm) {
        add(algorithm, setting);
    }
    settings
}
