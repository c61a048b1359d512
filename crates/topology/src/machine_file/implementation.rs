//! Values of what a library does with messages, all optional.

use serde::Deserialize;
use toml::{Spanned, Value};

use super::{Entry, TimingTable, at, quantity};
use crate::error::SpecError;
use crate::units::{parse_bytes, parse_seconds};
use crate::{Contention, Rendezvous};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a size, a time and their source, { above = .., time = .., source = \"..\" }")]
pub(super) struct RendezvousEntry {
    above: Spanned<String>,
    time: Spanned<String>,
    source: Spanned<String>,
}

/// The sources of those that are given.
pub(super) fn sources(table: &TimingTable) -> impl Iterator<Item = (&str, &Spanned<String>)> {
    let TimingTable { per_block, rendezvous, contention, .. } = table;
    let given = [
        ("per_block", per_block.as_ref().map(|entry| &entry.source)),
        ("rendezvous", rendezvous.as_ref().map(|entry| &entry.source)),
        ("contention", contention.as_ref().map(|entry| &entry.source)),
    ];
    given.into_iter().filter_map(|(key, source)| Some((key, source?)))
}

/// Seconds of a copied block.
pub(super) fn per_block(table: &TimingTable) -> Result<f64, SpecError> {
    let Some(Entry { value, .. }) = &table.per_block else { return Ok(0.0) };
    quantity("per_block", value, value.get_ref(), parse_seconds)
}

pub(super) fn rendezvous(table: &TimingTable) -> Result<Rendezvous, SpecError> {
    let Some(RendezvousEntry { above, time, .. }) = &table.rendezvous else {
        return Ok(Rendezvous::default());
    };
    Ok(Rendezvous {
        above: parse_bytes(above.get_ref()).map_err(|e| at(above, e.message))?,
        time: parse_seconds(time.get_ref()).map_err(|e| at(time, e.message))?,
    })
}

/// The exponent of all steps, or of those with one message of a rank and of others.
pub(super) fn contention(table: &TimingTable) -> Result<Contention, SpecError> {
    let Some(Entry { value, .. }) = &table.contention else { return Ok(Contention::default()) };
    let one = |item: &Value| {
        let number = item.as_float().or_else(|| item.as_integer().map(|whole| whole as f64));
        number.filter(|p| *p >= 1.0).ok_or_else(|| {
            at(value, format!("contention is {item}, not an exponent from 1 to inf, or two"))
        })
    };
    match value.get_ref() {
        Value::Array(items) if items.len() == 2 => {
            Ok(Contention { alone: one(&items[0])?, several: one(&items[1])? })
        }
        single => one(single).map(|p| Contention { alone: p, several: p }),
    }
}
