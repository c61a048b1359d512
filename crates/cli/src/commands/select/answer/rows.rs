//! The table of choices: its columns, as the width of the output allows.

use topocoll::{Priced, Time};
use topocoll_report::names::Row;

use super::Told;
use crate::render::{Field, Table, blocks, seconds, table, width};

impl Told<'_> {
    pub(super) fn table(&self) -> Table {
        let (links, all) = (self.exchange.machine().topology.links() > 0, self.args.all);
        let setting = |row: &Row<'_>| match all {
            true => row.choice.parameters.clone(),
            false => self.names.setting(&row.choice.algorithm, &row.choice.parameters),
        };
        // A narrow table of many columns has the setting beside the algorithm, where it wraps.
        let narrow = all && self.narrow();
        let algorithm = |row: &Row<'_>| match self.names.steps(row.choice) {
            Some(steps) if narrow => Field::Prose(format!("{} ({steps})", row.choice.algorithm)),
            None if narrow => Field::Setting(Some(row.choice.algorithm.clone()), setting(row)),
            _ => row.choice.algorithm.clone().into(),
        };
        let told = |row: &Row<'_>| match self.names.steps(row.choice) {
            Some(steps) => steps.into(),
            None => Field::Setting(None, setting(row)),
        };
        let settings = !narrow && self.rows.iter().any(|row| !setting(row).is_empty());
        let floor = |row: &Row<'_>| match row.choice.price.priced {
            Priced::AtLeast => ">= ",
            _ => "",
        };
        let spent = |row: &Row<'_>| row.choice.price.time;
        let least =
            |row: &Row<'_>, time: f64| Field::from(format!("{}{}", floor(row), seconds(time)));
        let steps_model = self.ranking.model.is_some();
        let terms = all && !narrow;
        // Each column: its header, whether it is shown, and its fields.
        type Column<'a> = (&'a str, bool, &'a dyn Fn(&Row<'_>) -> Field);
        let free = self.selection.without_barriers.is_some();
        let time = if free { "in step" } else { self.ranking.model.unwrap_or("time") };
        let bound = if self.is_brief() { "bound" } else { "of the bound" };
        let columns: [Column<'_>; 13] = [
            ("algorithm", true, &algorithm),
            ("setting", settings, &told),
            (time, true, &|row| {
                let time = if free { spent(row).total() } else { row.time };
                least(row, time)
            }),
            ("free-running", free, &|row| match row.choice.free_running {
                None => "-".to_owned().into(),
                Some(run) if run.seconds.is_infinite() => "deadlock".to_owned().into(),
                Some(run) => seconds(run.seconds).into(),
            }),
            ("steps model", steps_model, &|row| least(row, spent(row).total())),
            (bound, !steps_model, &|row| {
                format!("{}{:.2}x", floor(row), self.ratio(row.choice)).into()
            }),
            ("startup", terms, &|row| least(row, spent(row).startup)),
            ("transmission", terms, &|row| least(row, spent(row).transmission)),
            ("other", terms, &|row| {
                let Time { propagation, rearrangement, barrier, .. } = spent(row);
                least(row, propagation + rearrangement + barrier)
            }),
            ("steps", true, &|row| row.choice.price.steps.to_string().into()),
            ("volume", all, &|row| blocks(row.choice.price.blocks).into()),
            ("charged volume", !self.is_brief(), &|row| {
                let over = row.choice.tradeoff_ratio.map(|ratio| format!(" ({ratio:.2}x)"));
                let charged = blocks(row.choice.price.link_blocks);
                format!("{}{charged}{}", floor(row), over.unwrap_or_default()).into()
            }),
            ("link contention", links && !self.is_brief() && !(narrow && free), &|row| match row
                .choice
                .price
                .link_contention
            {
                0 => "?".to_owned().into(),
                most => most.to_string().into(),
            }),
        ];
        let shown: Vec<_> = columns.iter().filter(|(_, shown, _)| *shown).collect();
        let header: Vec<_> = shown.iter().map(|(name, ..)| *name).collect();
        let rows = self.rows.iter().map(|row| shown.iter().map(|(.., field)| field(row)).collect());
        table(&header, if settings { 2 } else { 1 }, rows)
    }

    /// Whether the output has no place for the terms of each time.
    pub(super) fn narrow(&self) -> bool {
        const COLUMNS: u16 = 100;
        width().is_some_and(|width| width < COLUMNS)
    }
}
