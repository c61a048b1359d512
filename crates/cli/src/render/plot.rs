use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::picture::{Area, Picture};
use topocoll_report::number::{blocks, bytes, time_unit};

/// Pixels of the axes with their labels, of the legend beside, and of the caption above.
const AXES: (u32, u32) = (720, 480);
const LEGEND: u32 = 330;
const CAPTION: u32 = 50;
/// Pixels of an entry of the legend.
const ENTRY: u32 = 20;
/// The approximate number of markers on a curve.
const MARKERS: usize = 6;

/// Colours for colour-blind readers (Okabe and Ito), dark enough for grey print.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(148, 103, 30),
];

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

    fn draw(&self, root: &Area) -> anyhow::Result<()> {
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
        let (scale, y_desc) = match self.axes {
            Axes::TimeOverSize => {
                let (scale, unit) = time_unit(most);
                (scale, format!("predicted time [{unit}]"))
            }
            Axes::VolumeOverStartups => (1.0, "volume over the busiest links [blocks]".to_owned()),
        };
        let x_desc = match self.axes {
            Axes::TimeOverSize => "block size [bytes]",
            Axes::VolumeOverStartups => "startups [steps]",
        };
        let decade = |value: f64, up: i32| 10f64.powi((value / scale).log10().floor() as i32 + up);

        let style = |size: i32| ("sans-serif", size).into_font().into_text_style(root);
        for (line, (y, size)) in self.caption.iter().zip([(8, 18), (30, 14)]) {
            root.draw(&Text::new(line.as_str(), (12, y), style(size)))?;
        }
        let area = root.margin(CAPTION, self.size().1 - CAPTION - AXES.1, 0, LEGEND);
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(
                (from..to).log_scale().base(2.0),
                // Slightly below, so that the lowest power of ten is inside.
                (decade(least, 0) * 0.999..decade(most, 1)).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_labels(12)
            .x_max_light_lines(0)
            .x_desc(x_desc)
            .x_label_formatter(&|value| match self.axes {
                Axes::TimeOverSize => bytes(value.round() as u64),
                Axes::VolumeOverStartups => blocks(value.round()),
            })
            .y_desc(y_desc)
            .y_label_formatter(&|value| tick(*value))
            .label_style(("sans-serif", 14))
            .light_line_style(BLACK.mix(0.06))
            .bold_line_style(BLACK.mix(0.15))
            .draw()?;
        for (i, curve) in self.curves.iter().enumerate() {
            let pixels: Vec<_> =
                (curve.points.iter()).map(|&(x, y)| chart.backend_coord(&(x, y / scale))).collect();
            draw(root, i, curve.stroke, &pixels, (pixels.len().div_ceil(MARKERS), i))?;
        }
        let last = |i: &usize| self.curves[*i].points.last().map_or(0.0, |point| point.1);
        let mut order: Vec<_> = (0..self.curves.len()).collect();
        order.sort_by(|a, b| last(b).total_cmp(&last(a)));
        for (place, i) in order.into_iter().enumerate() {
            let y = (CAPTION + ENTRY * (place as u32 + 1)) as i32;
            let x = AXES.0 as i32;
            // One marker, in the middle.
            draw(root, i, self.curves[i].stroke, &[(x, y), (x + 20, y), (x + 40, y)], (3, 1))?;
            let label = self.curves[i].label.as_str();
            root.draw(&Text::new(label, (x + 50, y - 6), style(14)))?;
        }
        Ok(())
    }
}

/// The label of a tick: plotters multiplies powers of ten, which leaves rounding errors.
fn tick(value: f64) -> String {
    let rounded = format!("{value:.6e}");
    rounded.parse::<f64>().map_or(rounded, |value| value.to_string())
}

/// Draws curve `i` through `pixels`, with a marker on one of every `between` points. Neighbouring
/// curves have markers on different points, which stay apart where curves meet.
fn draw(
    root: &Area,
    i: usize,
    stroke: Stroke,
    pixels: &[(i32, i32)],
    (between, from): (usize, usize),
) -> anyhow::Result<()> {
    // Shapes and colours cycle together; each cycle shifts the shapes by one.
    let colour = COLOURS[(i + i / 6) % COLOURS.len()];
    let line = colour.stroke_width(2);
    match stroke {
        Stroke::Solid => root.draw(&PathElement::new(pixels, line))?,
        Stroke::Dashed => {
            root.draw(&DashedPathElement::new(pixels.iter().copied(), 7, 5, line))?;
        }
        Stroke::Limit => {
            let line = BLACK.mix(0.5).stroke_width(2);
            root.draw(&DashedPathElement::new(pixels.iter().copied(), 2, 3, line))?;
            return Ok(());
        }
    }
    for &(x, y) in pixels.iter().skip(from % between).step_by(between) {
        let square = [(x - 4, y - 4), (x + 4, y + 4)];
        let diamond = [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)];
        match i % 6 {
            0 => root.draw(&Circle::new((x, y), 4, colour.filled()))?,
            1 => root.draw(&Rectangle::new(square, colour.filled()))?,
            2 => root.draw(&Cross::new((x, y), 4, line))?,
            3 => root.draw(&Polygon::new(diamond, colour))?,
            4 => {
                root.draw(&Circle::new((x, y), 4, WHITE.filled()))?;
                root.draw(&Circle::new((x, y), 4, line))?;
            }
            _ => {
                root.draw(&Rectangle::new(square, WHITE.filled()))?;
                root.draw(&Rectangle::new(square, line))?;
            }
        }
    }
    Ok(())
}
