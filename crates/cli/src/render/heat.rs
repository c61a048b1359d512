//! A picture of the bytes on links: more bytes are a larger and darker mark.

use super::picture::{Anchor, NUMBER, Paint, Picture, Place, Svg, TEXT, TITLE, WHITE};
use topocoll_report::number::bytes;

/// Colours from few bytes to many: each is darker than the last, in grey too.
const SHADES: [&str; 5] = ["#A9CFE8", "#6FB0DC", "#3587C4", "#12609C", "#0A3C6E"];
const IDLE: &str = "#D5D9DD";
const EDGE: &str = "#75808B";

/// Pixels above, beside and below the drawing.
const TOP: i32 = 84;
const LEFT: i32 = 64;
const BOTTOM: i32 = 20;
const LEGEND: i32 = 250;

/// The bytes on links.
pub(crate) struct Heat {
    /// Lines above the picture.
    pub(crate) caption: [String; 3],
    /// The drawing.
    pub(crate) links: Links,
}

/// Bytes of links, by their layout.
pub(crate) enum Links {
    /// Two sides: rows, columns, whether each wraps, and by rank the bytes down, up, right and
    /// left.
    Plane { sides: [u32; 2], wrap: [bool; 2], bytes: Vec<[u128; 4]> },
    /// Named squares of marks.
    Panels { panels: Vec<(String, Vec<Vec<u128>>)>, rows: String, columns: String },
}

impl Picture for Heat {
    fn size(&self) -> (u32, u32) {
        let (width, height) = self.inner();
        ((LEFT + width + LEGEND) as u32, (TOP + height + BOTTOM).max(TOP + 190) as u32)
    }

    fn draw(&self, svg: &mut Svg) -> anyhow::Result<()> {
        for (line, (y, size)) in self.caption.iter().zip([(8, TITLE), (30, TEXT), (48, TEXT)]) {
            svg.text(line, (12, y), size, Anchor::Start);
        }
        let most = self.most();
        match &self.links {
            Links::Plane { sides, wrap, bytes } => plane(svg, *sides, *wrap, bytes, most),
            Links::Panels { panels, rows, columns } => {
                squares(svg, panels, [rows, columns], most);
            }
        }
        self.legend(svg, LEFT + self.inner().0 + 28, most);
        Ok(())
    }
}

impl Heat {
    fn most(&self) -> u128 {
        let most = match &self.links {
            Links::Plane { bytes, .. } => bytes.iter().flatten().max(),
            Links::Panels { panels, .. } => {
                panels.iter().flat_map(|(_, rows)| rows.iter().flatten()).max()
            }
        };
        most.copied().unwrap_or(0).max(1)
    }

    /// Pixels of the drawing without its margins.
    fn inner(&self) -> (i32, i32) {
        match &self.links {
            Links::Plane { sides, .. } => {
                let unit = unit(*sides);
                let [rows, columns] = sides.map(|side| side as i32);
                ((columns + 1) * unit, (rows + 1) * unit)
            }
            Links::Panels { panels, .. } => {
                let (cell, rows, columns) = cells(panels);
                let wide = panels.len() as i32 * (columns * cell + 24);
                (wide.max(420), rows * cell + 40)
            }
        }
    }

    fn legend(&self, svg: &mut Svg, x: i32, most: u128) {
        let unit = match self.links {
            Links::Plane { sides, .. } => unit(sides),
            Links::Panels { .. } => 0,
        };
        svg.text("bytes over the whole schedule", (x, TOP), TEXT, Anchor::Start);
        for (i, shade) in SHADES.iter().enumerate() {
            let y = TOP + 28 + 24 * i as i32;
            let share = (i + 1) as f64 / 5.0;
            let label = format!("to {}", size(most * (i as u128 + 1) / 5));
            match self.links {
                Links::Plane { .. } => {
                    svg.line(&[(x, y + 6), (x + 40, y + 6)], shade, stroke(share, unit));
                }
                Links::Panels { .. } => mark(svg, (x + 20, y + 6), 16, share, shade),
            }
            svg.text(&label, (x + 52, y), TEXT, Anchor::Start);
        }
        let y = TOP + 28 + 24 * 5;
        if let Links::Plane { .. } = self.links {
            svg.line(&[(x, y + 6), (x + 40, y + 6)], IDLE, 1);
            svg.text("nothing", (x + 52, y), TEXT, Anchor::Start);
            svg.text("each link is drawn on the", (x, y + 28), TEXT, Anchor::Start);
            svg.text("right of its direction", (x, y + 46), TEXT, Anchor::Start);
        } else {
            svg.text("no mark: no bytes, or no link", (x, y), TEXT, Anchor::Start);
        }
    }
}

/// A size in a suitable unit.
fn size(value: u128) -> String {
    let units = [(1u128 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) if value % unit != 0 => {
            format!("{:.2} {name}", value as f64 / *unit as f64)
        }
        _ => bytes(u64::try_from(value).unwrap_or(u64::MAX)),
    }
}

fn shade(share: f64) -> &'static str {
    SHADES[((share * 5.0).ceil() as usize).clamp(1, 5) - 1]
}

/// Pixels between neighbours.
fn unit(sides: [u32; 2]) -> i32 {
    (560 / sides[0].max(sides[1]).max(1) as i32).clamp(12, 56)
}

fn stroke(share: f64, unit: i32) -> u32 {
    1 + (share * f64::from(unit) * 0.14).round() as u32
}

fn plane(svg: &mut Svg, sides: [u32; 2], wrap: [bool; 2], bytes: &[[u128; 4]], most: u128) {
    let unit = unit(sides);
    let at = |x: u32, y: u32| (LEFT + (x as i32 + 1) * unit, TOP + (y as i32 + 1) * unit);
    let gap = (unit / 8).max(2);
    // Idle links first, so that none covers a link in use.
    for idle in [true, false] {
        for (rank, bytes) in (0u32..).zip(bytes) {
            let (row, column) = (rank / sides[1], rank % sides[1]);
            let (x, y) = at(column, row);
            let ways = [(0, 1), (0, -1), (1, 0), (-1, 0)];
            for (way, ((dx, dy), &carried)) in ways.into_iter().zip(bytes).enumerate() {
                let (u, up) = (way / 2, way % 2 == 0);
                let from = [row, column][u];
                let last = if up { from + 1 == sides[u] } else { from == 0 };
                if sides[u] == 1 || last && !wrap[u] || (carried == 0) != idle {
                    continue;
                }
                let share = carried as f64 / most as f64;
                let (colour, width) =
                    if idle { (IDLE, 1) } else { (shade(share), stroke(share, unit)) };
                // Beside the middle, on the right of the direction of travel.
                let side = (-dy * gap, dx * gap);
                let mut line = |a: Place, b: Place| {
                    let moved = |(x, y): Place| (x + side.0, y + side.1);
                    svg.line(&[moved(a), moved(b)], colour, width);
                };
                if last {
                    let far = match u {
                        0 => at(column, if up { 0 } else { sides[0] - 1 }),
                        _ => at(if up { 0 } else { sides[1] - 1 }, row),
                    };
                    let half = unit / 2;
                    line((x, y), (x + dx * half, y + dy * half));
                    line((far.0 - dx * half, far.1 - dy * half), far);
                } else {
                    line((x, y), (x + dx * unit, y + dy * unit));
                }
            }
        }
    }
    let radius = (unit / 5).clamp(3, 9);
    for row in 0..sides[0] {
        for column in 0..sides[1] {
            svg.circle(at(column, row), radius, Paint::Fill(WHITE));
            svg.circle(at(column, row), radius, Paint::Outline(EDGE, 1));
        }
    }
    let every = (20 / unit + 1) as usize;
    for column in (0..sides[1]).step_by(every) {
        svg.text(
            &column.to_string(),
            (at(column, 0).0, TOP + unit / 2 - 16),
            NUMBER,
            Anchor::Middle,
        );
    }
    for row in (0..sides[0]).step_by(every) {
        svg.text(&row.to_string(), (LEFT + unit / 2 - 8, at(0, row).1 - 6), NUMBER, Anchor::End);
    }
    let middle = (at(sides[1] / 2, 0).0, TOP - 14);
    svg.text("dimension 1", middle, NUMBER, Anchor::Middle);
    svg.text("dimension 0", (14, at(0, sides[0] / 2).1), NUMBER, Anchor::Upwards);
}

/// Pixels of a mark, rows and columns.
fn cells(panels: &[(String, Vec<Vec<u128>>)]) -> (i32, i32, i32) {
    let rows = panels.iter().map(|(_, rows)| rows.len()).max().unwrap_or(1).max(1) as i32;
    let columns = panels.iter().flat_map(|(_, rows)| rows).map(Vec::len).max().unwrap_or(1).max(1);
    let columns = columns as i32;
    let across = 960 / (panels.len() as i32 * (columns + 1));
    ((560 / rows).min(across).clamp(4, 22), rows, columns)
}

fn squares(
    svg: &mut Svg,
    panels: &[(String, Vec<Vec<u128>>)],
    [down, across]: [&str; 2],
    most: u128,
) {
    let (cell, rows, columns) = cells(panels);
    let top = TOP + 36;
    let every = (16 / cell + 1) as usize;
    for (i, (name, marks)) in (0..).zip(panels) {
        let left = LEFT + i * (columns * cell + 24);
        svg.text(name, (left + columns * cell / 2, TOP), NUMBER, Anchor::Middle);
        let corner = (left + columns * cell, top + rows * cell);
        svg.rectangle((left, top), corner, Paint::Outline(EDGE, 1));
        for (row, marks) in (0..).zip(marks) {
            for (column, &carried) in (0..).zip(marks) {
                let share = carried as f64 / most as f64;
                if carried > 0 {
                    let middle = (left + column * cell + cell / 2, top + row * cell + cell / 2);
                    mark(svg, middle, cell, share, shade(share));
                }
            }
        }
        for column in (0..columns).step_by(every) {
            svg.text(
                &column.to_string(),
                (left + column * cell + cell / 2, top - 16),
                NUMBER,
                Anchor::Middle,
            );
        }
        if i == 0 {
            for row in (0..rows).step_by(every) {
                let y = top + row * cell + cell / 2 - 6;
                svg.text(&row.to_string(), (left - 6, y), NUMBER, Anchor::End);
            }
        }
    }
    let width = panels.len() as i32 * (columns * cell + 24) - 24;
    svg.text(across, (LEFT + width / 2, TOP - 16), NUMBER, Anchor::Middle);
    svg.text(down, (14, top + rows * cell / 2), NUMBER, Anchor::Upwards);
}

/// A square whose area shows its share.
fn mark(svg: &mut Svg, (x, y): Place, cell: i32, share: f64, shade: &'static str) {
    let half = (f64::from(cell) * (0.18 + 0.27 * share.sqrt())).round().max(1.0) as i32;
    svg.rectangle((x - half, y - half), (x + half, y + half), Paint::Fill(shade));
}
