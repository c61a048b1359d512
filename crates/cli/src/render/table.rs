use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

/// A table: the first `left` columns left-aligned, the others right-aligned numbers.
pub(crate) fn table(
    header: &[&str],
    left: usize,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
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
    trimmed(&table)
}

/// Facts as name and value, indented.
pub(crate) fn facts<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

fn trimmed(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
