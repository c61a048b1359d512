use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use topocoll::Parameters;

use super::parameters;

/// A zero-width space, at which a name may wrap.
const BREAK: char = '\u{200b}';

/// A field of a table.
pub(crate) enum Field {
    /// Text.
    Text(String),
    /// An algorithm (may be empty) and its setting.
    Setting(Option<String>, Parameters),
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A table: the first `left` columns left-aligned, the others right-aligned numbers.
///
/// If it does not fit the terminal, settings get numbers, which are explained below it.
pub(crate) fn table<F: Into<Field>>(
    header: &[&str],
    left: usize,
    rows: impl IntoIterator<Item = Vec<F>>,
) -> String {
    let rows: Vec<Vec<Field>> =
        rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
    let written = |field: &Field| match field {
        Field::Text(text) => text.clone(),
        Field::Setting(None, setting) => parameters(setting),
        Field::Setting(Some(algorithm), setting) if setting.is_empty() => algorithm.clone(),
        Field::Setting(Some(algorithm), setting) => {
            format!("{algorithm} ({})", parameters(setting))
        }
    };
    let texts = rows.iter().map(|row| row.iter().map(written).collect());
    let mut whole = laid_out(header, left, texts);
    let width = whole.width();
    whole.set_content_arrangement(ContentArrangement::Disabled);
    let fits = |width| whole.lines().all(|line| line.trim_end().len() <= usize::from(width));
    match width {
        Some(width) if !fits(width) => numbered(header, left, &rows, width),
        _ => trimmed(&whole),
    }
}

/// A narrow table whose settings have numbers.
fn numbered(header: &[&str], left: usize, rows: &[Vec<Field>], width: u16) -> String {
    let mut settings: Vec<&Parameters> = Vec::new();
    for field in rows.iter().flatten() {
        if let Field::Setting(_, setting) = field
            && !setting.is_empty()
            && !settings.contains(&setting)
        {
            settings.push(setting);
        }
    }
    let short = |field: &Field| match field {
        Field::Text(text) => text.clone(),
        Field::Setting(algorithm, setting) => {
            let number = settings.iter().position(|known| *known == setting);
            let number = number.map_or(String::new(), |number| format!(" ({})", number + 1));
            let algorithm = algorithm.as_deref().unwrap_or_default();
            let broken = algorithm.replace('-', &format!("-{BREAK}"));
            format!("{broken}{number}").trim_start().to_owned()
        }
    };
    let texts: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(short).collect()).collect();
    let alone = |i: usize| rows.iter().any(|row| matches!(row[i], Field::Setting(None, _)));
    let header: Vec<_> =
        header.iter().enumerate().map(|(i, text)| if alone(i) { "" } else { text }).collect();
    let parts =
        |text: &str, at: char| text.split(at).map(|part| part.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..header.len())
        .map(|i| {
            let cells = rows.iter().zip(&texts).map(|(row, texts)| match row[i] {
                Field::Text(_) => texts[i].len(),
                Field::Setting(..) => parts(&texts[i], BREAK),
            });
            cells.max().unwrap_or(0).max(parts(header[i], ' '))
        })
        .collect();
    let mut table = laid_out(&header, left, texts);
    table.set_width(width);
    for (i, (column, width)) in table.column_iter_mut().zip(widths).enumerate() {
        column.set_padding((0, 1));
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width as u16 + 1)));
        if rows.iter().any(|row| matches!(row[i], Field::Setting(..))) {
            column.set_delimiter(BREAK);
        }
    }
    let explained: Vec<_> = (settings.iter().enumerate())
        .map(|(i, setting)| format!("  ({}) {}\n", i + 1, parameters(setting)))
        .collect();
    let gap = if explained.is_empty() { "" } else { "\n" };
    format!("{}{gap}{}", trimmed(&table), explained.concat())
}

fn laid_out(header: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let cell = |i: usize, text: String| {
        Cell::new(text).set_alignment(if i < left {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        })
    };
    table.set_header(header.iter().enumerate().map(|(i, text)| cell(i, (*text).to_owned())));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(i, text)| cell(i, text)));
    }
    table
}

/// Facts as name and value, indented.
pub(crate) fn facts<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

fn trimmed(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.replace(BREAK, "").trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use topocoll::Setting;

    use super::*;

    #[test]
    fn narrow_tables_explain_each_setting_once_and_break_no_number() {
        let setting = |value: &str| -> Parameters {
            [("landing".to_owned(), Setting::Text(value.to_owned()))].into()
        };
        let row = |value: &str, time: &str| {
            let named = Field::Setting(Some("coloured-rings".to_owned()), setting(value));
            vec![named, time.to_owned().into()]
        };
        let rows = [row("near", "12.06 us"), row("windows", "1.060 ms"), row("near", "9 s")];
        assert_eq!(
            numbered(&["algorithm", "predicted time"], 1, &rows, 22),
            "\
algorithm   predicted
                 time
coloured-    12.06 us
rings (1)
coloured-    1.060 ms
rings (2)
coloured-         9 s
rings (1)

  (1) landing=near
  (2) landing=windows
"
        );
    }
}
