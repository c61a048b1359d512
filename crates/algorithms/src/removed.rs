//! Names of earlier versions: which of those that are left is the nearest. Files that record them are read
//! and checked like any others.

use topocoll_schedule::Setting;

use crate::NotApplicable;

/// An algorithm, or a parameter of one, or a word of a parameter; empty where it is not that far.
struct Removed {
    algorithm: &'static str,
    parameter: &'static str,
    word: &'static str,
    /// The algorithm that is left, or what to set.
    nearest: &'static str,
}

const fn removed(
    algorithm: &'static str,
    parameter: &'static str,
    word: &'static str,
    nearest: &'static str,
) -> Removed {
    Removed { algorithm, parameter, word, nearest }
}

const REMOVED: &[Removed] = &[
    removed("bit-flips", "", "", "tabled"),
    removed("uneven-rings", "", "", "coloured-rings"),
    removed("coloured-rings", "landing", "centred", "landing=windows"),
    removed("coloured-rings", "residual", "direct", "residual=axis"),
    removed("demand-matchings", "matchings", "", "startup=0"),
    removed("neighbour-rings", "led", "", "hop=2"),
    removed("product", "split", "all", "split=rings"),
    removed("product", "split", "axes", "split=rings"),
    removed("product", "split", "one", "split=two"),
    removed("strided-rings", "folded", "", "fold=8"),
    removed("strided-rings", "last", "pairs", "last=all"),
    removed("strided-rings", "last", "relay", "last=all"),
    removed("strided-rings", "share", "sources", "share=parts"),
];

/// The error of an algorithm that was removed.
pub(crate) fn algorithm(name: &str) -> Option<NotApplicable> {
    let found = REMOVED.iter().find(|one| one.algorithm == name && one.parameter.is_empty())?;
    Some(NotApplicable::Removed { what: name.to_owned(), nearest: found.nearest })
}

/// The error of a value if it, or its parameter, was removed.
pub(crate) fn setting(algorithm: &str, parameter: &str, value: &Setting) -> Option<NotApplicable> {
    let found = REMOVED.iter().find(|one| {
        (one.algorithm, one.parameter) == (algorithm, parameter)
            && (one.word.is_empty() || one.word == value.to_string())
    })?;
    let what = if found.word.is_empty() { "" } else { "=" };
    let what = format!("{algorithm}: {parameter}{what}{}", found.word);
    Some(NotApplicable::Removed { what, nearest: found.nearest })
}
