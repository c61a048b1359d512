use super::picture::{Anchor, BLACK, Paint, Picture, Place, Svg, TEXT, TITLE, WHITE};
use topocoll_report::number::{blocks, bytes, duration};

/// Pixels of the axes with their labels, of the legend beside, and of the caption above.
const AXES: (u32, u32) = (720, 480);
const LEGEND: u32 = 330;
const CAPTION: u32 = 50;
/// About the width of a letter.
const LETTER: i32 = 6;
/// Pixels of an entry of the legend.
const ENTRY: u32 = 20;
/// The sides of the axes: left, top, right, bottom.
const FRAME: [i32; 4] = [76, CAPTION as i32 + 22, 707, CAPTION as i32 + 424];
/// The most labels on an axis.
const LABELS: usize = 12;
/// The approximate number of markers on a curve.
const MARKERS: usize = 6;

/// Colours of lines across the axes, at labels and between them, and of a lower bound.
const GRID: &str = "#D9D9D9";
const LIGHT: &str = "#F0F0F0";
const GREY: &str = "#555555";

/// Colours for colour-blind readers (Okabe and Ito), dark enough for grey print.
const COLOURS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#94671E"];

/// One quantity over another, both logarithmic.
pub(crate) struct Plot {
    /// The quantities on the axes.
    pub(crate) axes: Axes,
    /// Lines above the axes.
    pub(crate) caption: [String; 2],
    /// The curves.
    pub(crate) curves: Vec<Curve>,
}

/// The quantities on the axes of a plot.
#[derive(Clone, Copy)]
pub(crate) enum Axes {
    /// Predicted seconds over the bytes of a block.
    TimeOverSize,
    /// Charged volume, in blocks, over steps.
    VolumeOverStartups,
}

/// The style of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    /// Solid, of values that are only lower bounds.
    AtLeast,
    Dashed,
    /// A lower bound: dotted and grey, without markers.
    Limit,
}

/// A line of a plot.
pub(crate) struct Curve {
    /// Its name in the legend.
    pub(crate) label: String,
    /// Its style.
    pub(crate) stroke: Stroke,
    /// Values on both axes, the first above 0.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Picture for Plot {
    fn size(&self) -> (u32, u32) {
        let entries = ENTRY * (self.curves.len() as u32 + 1);
        (AXES.0 + LEGEND, CAPTION + AXES.1.max(entries))
    }

    fn draw(&self, svg: &mut Svg) -> anyhow::Result<()> {
        let all = |of: fn(&(f64, f64)) -> f64| {
            let values = self.curves.iter().flat_map(|curve| curve.points.iter()).map(of);
            values.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(v), b.max(v)))
        };
        let flat = |curve: &&Curve| curve.points.iter().any(|p| p.0 <= 0.0 || p.1 <= 0.0);
        if let Some(flat) = self.curves.iter().find(flat) {
            anyhow::bail!(
                "{} has 0 {}, and a logarithmic axis has no 0",
                flat.label,
                match self.axes {
                    Axes::TimeOverSize => "time",
                    Axes::VolumeOverStartups => "steps",
                }
            );
        }
        let ((from, to), (least, most)) = (all(|p| p.0), all(|p| p.1));
        let (from, to) = if from < to { (from, to) } else { (from / 2.0, from * 2.0) };
        let (x_desc, y_desc) = match self.axes {
            Axes::TimeOverSize => ("block size", "predicted time"),
            Axes::VolumeOverStartups => {
                ("startups [steps]", "volume over the busiest links [blocks]")
            }
        };
        // Decades of the vertical axis, which ends at the powers of ten around the values.
        let decade = |value: f64| value.log10().floor() as i32;
        let (low, high) = (decade(least), decade(most) + 1);
        let [left, top, right, bottom] = FRAME;
        let across = |value: f64| {
            let share = (value / from).log2() / (to / from).log2();
            left + (share * f64::from(right - left)).round() as i32
        };
        let down = |value: f64| {
            let share = (value.log10() - f64::from(low)) / f64::from(high - low);
            bottom - (share * f64::from(bottom - top)).round() as i32
        };

        for (line, (y, size)) in self.caption.iter().zip([(8, TITLE), (30, TEXT)]) {
            svg.text(line, (12, y), size, Anchor::Start);
        }
        let decades: Vec<_> = (low..=high).collect();
        let rows: Vec<_> = spread(&decades).map(power).collect();
        // Lines at 2 to 9 times a power, if all powers have labels.
        for row in rows.iter().take(rows.len() - 1).filter(|_| rows.len() == decades.len()) {
            for y in (2..10).map(|digit| down(f64::from(digit) * row)) {
                svg.line(&[(left, y), (right, y)], LIGHT, 1);
            }
        }
        for row in rows {
            let y = down(row);
            svg.line(&[(left, y), (right, y)], GRID, 1);
            svg.line(&[(left - 5, y), (left, y)], BLACK, 1);
            let label = match self.axes {
                Axes::TimeOverSize => duration(row),
                Axes::VolumeOverStartups => row.to_string(),
            };
            svg.text(&label, (left - 10, y), TEXT, Anchor::EndMiddle);
        }
        for value in powers_of_two(from, to) {
            let x = across(value);
            svg.line(&[(x, top), (x, bottom)], GRID, 1);
            svg.line(&[(x, bottom), (x, bottom + 5)], BLACK, 1);
            let label = match self.axes {
                Axes::TimeOverSize => bytes(value.round() as u64),
                Axes::VolumeOverStartups => blocks(value.round()),
            };
            svg.text(&label, (x, bottom + 10), TEXT, Anchor::Middle);
        }
        svg.line(&[(left, top), (left, bottom), (right, bottom)], BLACK, 1);
        svg.text(y_desc, (12, (top + bottom) / 2), TEXT, Anchor::Upwards);
        svg.text(x_desc, ((left + right) / 2, bottom + 32), TEXT, Anchor::Middle);

        if let Axes::TimeOverSize = self.axes {
            self.name_winners(svg, across);
        }
        for (i, curve) in self.curves.iter().enumerate() {
            let pixels: Vec<_> = curve.points.iter().map(|&(x, y)| (across(x), down(y))).collect();
            draw(svg, i, curve.stroke, &pixels, (pixels.len().div_ceil(MARKERS), i));
        }
        let last = |i: &usize| self.curves[*i].points.last().map_or(0.0, |point| point.1);
        let mut order: Vec<_> = (0..self.curves.len()).collect();
        order.sort_by(|a, b| last(b).total_cmp(&last(a)));
        for (place, i) in order.into_iter().enumerate() {
            let y = (CAPTION + ENTRY * (place as u32 + 1)) as i32;
            let x = AXES.0 as i32;
            // One marker, in the middle.
            draw(svg, i, self.curves[i].stroke, &[(x, y), (x + 20, y), (x + 40, y)], (3, 1));
            svg.text(&self.curves[i].label, (x + 50, y - 6), TEXT, Anchor::Start);
        }
        Ok(())
    }
}

impl Plot {
    /// A band above the axes with the name of the lowest schedule in each range.
    fn name_winners(&self, svg: &mut Svg, across: impl Fn(f64) -> i32) {
        let solid = || self.curves.iter().enumerate().filter(|(_, it)| it.stroke == Stroke::Solid);
        let at = |curve: &Curve, x: f64| curve.points.iter().find(|p| p.0 == x).map(|p| p.1);
        let mut all: Vec<f64> = solid().flat_map(|(_, it)| it.points.iter().map(|p| p.0)).collect();
        all.sort_by(f64::total_cmp);
        let mut ranges: Vec<(f64, usize)> = Vec::new();
        for x in all {
            let known = solid().filter_map(|(i, curve)| Some((i, at(curve, x)?)));
            let Some((lowest, _)) = known.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            if ranges.last().is_none_or(|(_, last)| *last != lowest) {
                ranges.push((x, lowest));
            }
        }
        let [_, top, right, _] = FRAME;
        for (place, &(from, i)) in ranges.iter().enumerate() {
            let (begin, end) =
                (across(from), ranges.get(place + 1).map_or(right, |next| across(next.0)));
            let (label, wide) = (&self.curves[i].label, LETTER * self.curves[i].label.len() as i32);
            let colour = COLOURS[(i + i / 6) % COLOURS.len()];
            svg.rectangle((begin + 1, top - 18), (end - 1, top - 2), Paint::Outline(colour, 2));
            match wide + 4 < end - begin {
                true => svg.text(label, (begin + 5, top - 15), TEXT, Anchor::Start),
                // In a short range, below it.
                false => {
                    svg.text(
                        label,
                        ((begin + end) / 2 - 5, top + 4 + wide / 2),
                        TEXT,
                        Anchor::Upwards,
                    );
                }
            }
        }
    }
}

/// Some of the values, in equal distances from the first, as many as there is room to label.
fn spread<T: Copy>(values: &[T]) -> impl Iterator<Item = T> {
    values.iter().copied().step_by(values.len().div_ceil(LABELS).max(1))
}

/// A power of ten, read from its digits: a product of tens has rounding errors.
fn power(decade: i32) -> f64 {
    format!("1e{decade}").parse().expect("bug: not a number")
}

/// The powers of two to label, or the ends of a range that has fewer than two.
fn powers_of_two(from: f64, to: f64) -> Vec<f64> {
    let [first, last] = [from.log2().ceil() as i32, to.log2().floor() as i32];
    let powers: Vec<_> = (first..=last).map(|exponent| 2f64.powi(exponent)).collect();
    if powers.len() < 2 { vec![from, to] } else { spread(&powers).collect() }
}

/// Draws curve `i` through `pixels`, with a marker on one of every `between` points. Neighbouring
/// curves have markers on different points, which stay apart where curves meet.
fn draw(
    svg: &mut Svg,
    i: usize,
    stroke: Stroke,
    pixels: &[Place],
    (between, from): (usize, usize),
) {
    // Shapes and colours cycle together; each cycle shifts the shapes by one.
    let colour = COLOURS[(i + i / 6) % COLOURS.len()];
    match stroke {
        Stroke::Solid | Stroke::AtLeast => svg.line(pixels, colour, 2),
        Stroke::Dashed => svg.dashes(pixels, colour, (7, 5)),
        Stroke::Limit => return svg.dashes(pixels, GREY, (2, 3)),
    }
    let (fill, outline) = (Paint::Fill(colour), Paint::Outline(colour, 2));
    for &(x, y) in pixels.iter().skip(from % between).step_by(between) {
        let square = [(x - 4, y - 4), (x + 4, y + 4)];
        match i % 6 {
            0 => svg.circle((x, y), 4, fill),
            1 => svg.rectangle(square[0], square[1], fill),
            2 => {
                svg.line(&square, colour, 2);
                svg.line(&[(x - 4, y + 4), (x + 4, y - 4)], colour, 2);
            }
            3 => svg.polygon(&[(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)], fill),
            4 => {
                svg.circle((x, y), 4, Paint::Fill(WHITE));
                svg.circle((x, y), 4, outline);
            }
            _ => {
                svg.rectangle(square[0], square[1], Paint::Fill(WHITE));
                svg.rectangle(square[0], square[1], outline);
            }
        }
    }
}
