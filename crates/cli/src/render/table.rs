use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement};
use terminal_size::{Width, terminal_size_of};
use topocoll::Parameters;

use super::{named, parameters};

/// The columns of the output: `COLUMNS` if it is set, else the terminal's; unlimited elsewhere.
pub(crate) fn width() -> Option<u16> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let known = |&columns: &u16| columns > 0;
    let terminal = || terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| columns);
    set.filter(known).or_else(|| terminal().filter(known))
}

/// A longer word of a setting breaks after its `=` in a narrow table.
const LONGEST_WORD: usize = 20;

/// A field of a table.
pub(crate) enum Field {
    /// Text in one line.
    Text(String),
    /// Words that may wrap.
    Prose(String),
    /// An algorithm (may be empty) and its setting.
    Setting(Option<String>, Parameters),
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The lines of a table's header, and those of its rows.
pub(crate) struct Table {
    pub(super) header: String,
    pub(super) rows: String,
}

/// A table: the first `left` columns and prose left-aligned, the others right-aligned numbers.
///
/// If it does not fit the output, prose and settings wrap.
pub(crate) fn table<F: Into<Field>>(
    header: &[&str],
    left: usize,
    rows: impl IntoIterator<Item = Vec<F>>,
) -> Table {
    let rows: Vec<Vec<Field>> =
        rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
    within(width(), header, left, &rows)
}

fn within(width: Option<u16>, header: &[&str], left: usize, rows: &[Vec<Field>]) -> Table {
    let prose = |i: usize| rows.iter().any(|row| matches!(row[i], Field::Prose(_)));
    let left: Vec<_> = (0..header.len()).map(|i| i < left || prose(i)).collect();
    let whole = laid_out(header, &left, texts(rows));
    let fits = |width| whole.table.lines().all(|line| line.trim_end().len() <= usize::from(width));
    match width {
        Some(width) if !fits(width) => wrapped(header, &left, rows, width),
        _ => whole.read(),
    }
}

/// A narrow table, whose prose and settings wrap.
fn wrapped(header: &[&str], left: &[bool], rows: &[Vec<Field>], width: u16) -> Table {
    let mut texts = texts(rows);
    for (field, text) in rows.iter().flatten().zip(texts.iter_mut().flatten()) {
        if let Field::Setting(..) = field {
            let words = text.split(' ').map(|word| match word.rsplit_once('=') {
                Some((key, value)) if word.chars().count() > LONGEST_WORD => {
                    format!("{key}=\n{value}")
                }
                _ => word.to_owned(),
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
    }
    let longest =
        |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let least = |i: usize| {
        let fields = rows.iter().zip(&texts).map(|(row, texts)| match &row[i] {
            Field::Text(text) => text.chars().count(),
            Field::Prose(_) | Field::Setting(..) => longest(&texts[i]),
        });
        fields.chain([longest(header[i])]).max().unwrap_or(0) as u16 + 1
    };
    let least: Vec<_> = (0..header.len()).map(least).collect();
    let mut laid_out = laid_out(header, left, texts);
    let table = &mut laid_out.table;
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for (column, least) in table.column_iter_mut().zip(least) {
        column.set_padding((0, 1));
        column.set_constraint(ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(least)));
    }
    laid_out.read()
}

fn texts(rows: &[Vec<Field>]) -> Vec<Vec<String>> {
    let written = |field: &Field| match field {
        Field::Text(text) | Field::Prose(text) => text.clone(),
        Field::Setting(None, setting) => parameters(setting),
        Field::Setting(Some(algorithm), setting) => named(algorithm, setting),
    };
    rows.iter().map(|row| row.iter().map(written).collect()).collect()
}

/// A table before its lines are read.
struct LaidOut {
    table: comfy_table::Table,
    header_lines: usize,
}

fn laid_out(header: &[&str], left: &[bool], rows: Vec<Vec<String>>) -> LaidOut {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let cell = |i: usize, text: String| {
        Cell::new(text).set_alignment(if left[i] {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        })
    };
    let widest = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let header: Vec<_> =
        header.iter().enumerate().map(|(i, text)| stacked(text, widest(i))).collect();
    let header_lines = header.iter().map(|text| text.lines().count()).max().unwrap_or(0);
    table.set_header(header.into_iter().enumerate().map(|(i, text)| cell(i, text)));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(i, text)| cell(i, text)));
    }
    LaidOut { table, header_lines }
}

impl LaidOut {
    fn read(&self) -> Table {
        let lines = self.table.lines().map(|line| format!("{}\n", line.trim_end()));
        let mut lines = lines.collect::<Vec<_>>().into_iter();
        let header = lines.by_ref().take(self.header_lines).collect();
        Table { header, rows: lines.collect() }
    }
}

/// A header in two lines at most, which are as short as its words and the column allow.
fn stacked(header: &str, width: usize) -> String {
    let word = header.split(' ').map(str::len).max().unwrap_or(0);
    let mut lines = (width.max(word)..).map(|width| textwrap::wrap(header, width));
    lines.find(|lines| lines.len() <= 2).map_or_else(String::new, |lines| lines.join("\n"))
}

/// Facts as name and value, indented.
pub(crate) fn facts<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use topocoll::Setting;

    use super::*;

    #[test]
    fn settings_wrap_in_a_narrow_table() {
        let setting = |value: &str| -> Parameters {
            [("landing".to_owned(), Setting::Text(value.to_owned()))].into()
        };
        let row = |value: &str, time: &str| {
            let named = Field::Setting(Some("coloured-rings".to_owned()), setting(value));
            vec![named, time.to_owned().into()]
        };
        let rows = [row("near", "12.06 us"), row("windows", "1.060 ms"), row("near", "9 s")];
        let table = within(Some(30), &["algorithm", "predicted time"], 1, &rows);
        assert_eq!(
            table.header + &table.rows,
            "\
algorithm           predicted
                         time
coloured-rings       12.06 us
(landing=near)
coloured-rings       1.060 ms
(landing=windows)
coloured-rings            9 s
(landing=near)
"
        );
    }
}
