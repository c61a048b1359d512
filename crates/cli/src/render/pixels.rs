//! Filled and stroked paths, and text as paths, on a grid of pixels.

use anyhow::Context;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, FontTransform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};
use zeno::{Command, Mask, PathBuilder, Point, Stroke, Style, Transform, Vector};

/// Pixels per unit of a picture: print needs more than screens.
const SCALE: u32 = 2;

/// Ascent and descent of a font over the size of its letters, as plotters has it.
const LINE_HEIGHT: f64 = 1.24;

/// A picture of pixels, white at first.
pub(crate) struct Pixels {
    /// Pixels across and down.
    size: (u32, u32),
    /// Red, green and blue of each pixel, row by row.
    rgb: Vec<u8>,
}

impl Pixels {
    /// The bytes that a picture takes: its pixels, a path as large, and both encoded.
    pub(crate) fn memory((width, height): (u32, u32)) -> u128 {
        8 * u128::from(SCALE * SCALE) * u128::from(width) * u128::from(height)
    }

    pub(crate) fn new((width, height): (u32, u32)) -> Self {
        let size = (width * SCALE, height * SCALE);
        Self { size, rgb: vec![255; 3 * size.0 as usize * size.1 as usize] }
    }

    /// Units across and down.
    pub(crate) fn units(&self) -> (u32, u32) {
        (self.size.0 / SCALE, self.size.1 / SCALE)
    }

    /// The picture as a PNG file.
    pub(crate) fn png(&self) -> anyhow::Result<Vec<u8>> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.size.0, self.size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&self.rgb)?;
        Ok(file)
    }

    pub(crate) fn line(&mut self, path: &[BackendCoord], colour: BackendColor, width: u32) {
        self.paint(&polyline(path), Some(width), colour);
    }

    pub(crate) fn polygon(&mut self, corners: &[BackendCoord], colour: BackendColor) {
        self.paint(&polyline(corners), None, colour);
    }

    /// A rectangle, filled or stroked with a width.
    pub(crate) fn rectangle(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        colour: BackendColor,
        stroke: Option<u32>,
    ) {
        let mut path = polyline(&[from, (to.0, from.1), to, (from.0, to.1)]);
        path.close();
        self.paint(&path, stroke, colour);
    }

    /// A circle, filled or stroked with a width.
    pub(crate) fn circle(
        &mut self,
        middle: BackendCoord,
        radius: u32,
        colour: BackendColor,
        stroke: Option<u32>,
    ) {
        let mut path = Vec::new();
        path.add_circle(point(middle), radius as f32);
        self.paint(&path, stroke, colour);
    }

    /// A line of text, placed as plotters' SVG is.
    pub(crate) fn text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> anyhow::Result<()> {
        let font = Face::parse(dejavu::sans::regular(), 0).context("bug: invalid built-in font")?;
        let em = (style.size() / LINE_HEIGHT) as f32;
        let unit = em / f32::from(font.units_per_em());
        let mut outline = Outline { path: Vec::new(), x: 0.0 };
        let mut before = None;
        for character in text.chars() {
            let glyph = font.glyph_index(character).unwrap_or_default();
            outline.x += before.map_or(0.0, |before| kerning(&font, before, glyph));
            font.outline_glyph(glyph, &mut outline);
            outline.x += f32::from(font.glyph_hor_advance(glyph).unwrap_or_default());
            before = Some(glyph);
        }
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -outline.x * unit / 2.0,
            HPos::Right => -outline.x * unit,
        };
        let down = match style.anchor().v_pos {
            VPos::Top => 0.76 * em,
            VPos::Center => 0.25 * em,
            VPos::Bottom => -0.25 * em,
        };
        // Turns from the right upwards.
        let turns = match style.transform() {
            FontTransform::None => 0.0,
            FontTransform::Rotate90 => 0.75,
            FontTransform::Rotate180 => 0.5,
            FontTransform::Rotate270 => 0.25,
        };
        let placed = Transform::scale(unit, -unit)
            .then_translate(left, down)
            .then_rotate(zeno::Angle::from_turns(turns))
            .then_translate(at.0 as f32, at.1 as f32);
        let path: Vec<_> = outline.path.iter().map(|command| command.transform(&placed)).collect();
        self.paint(&path, None, style.color());
        Ok(())
    }

    /// Fills a path, or strokes it with a width.
    fn paint(&mut self, path: &[Command], stroke: Option<u32>, colour: BackendColor) {
        let stroke = stroke.map(|width| Stroke::new(width as f32));
        let style = stroke.map_or_else(Style::default, Style::from);
        let scale = Transform::scale(SCALE as f32, SCALE as f32);
        let (mask, placed) = Mask::new(path).style(style).transform(Some(scale)).render();
        let (width, height) = (i64::from(self.size.0), i64::from(self.size.1));
        let rows = mask.chunks_exact(placed.width.max(1) as usize);
        for (y, row) in (i64::from(placed.top)..).zip(rows) {
            for (x, &covered) in (i64::from(placed.left)..).zip(row) {
                if covered == 0 || !(0..width).contains(&x) || !(0..height).contains(&y) {
                    continue;
                }
                let share = colour.alpha * f64::from(covered) / 255.0;
                let pixel = &mut self.rgb[3 * (y * width + x) as usize..][..3];
                for (value, new) in pixel.iter_mut().zip([colour.rgb.0, colour.rgb.1, colour.rgb.2])
                {
                    let mixed = f64::from(*value) * (1.0 - share) + f64::from(new) * share;
                    *value = mixed.round() as u8;
                }
            }
        }
    }
}

fn point((x, y): BackendCoord) -> Point {
    Vector::new(x as f32, y as f32)
}

fn polyline(path: &[BackendCoord]) -> Vec<Command> {
    let place = |(i, &at)| {
        if i == 0 { Command::MoveTo(point(at)) } else { Command::LineTo(point(at)) }
    };
    path.iter().enumerate().map(place).collect()
}

/// The font's kerning between two glyphs, in its units.
fn kerning(font: &Face, left: GlyphId, right: GlyphId) -> f32 {
    let tables = font.tables().kern.into_iter().flat_map(|kern| kern.subtables);
    let horizontal = tables.filter(|table| table.horizontal && !table.has_state_machine);
    horizontal.filter_map(|table| table.glyphs_kerning(left, right)).map(f32::from).sum()
}

/// Outlines of glyphs one after another, in units of the font.
struct Outline {
    path: Vec<Command>,
    /// The origin of the next glyph.
    x: f32,
}

impl Outline {
    fn at(&self, x: f32, y: f32) -> Point {
        Vector::new(self.x + x, y)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::MoveTo(self.at(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.push(Command::LineTo(self.at(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.push(Command::QuadTo(self.at(x1, y1), self.at(x, y)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.push(Command::CurveTo(self.at(x1, y1), self.at(x2, y2), self.at(x, y)));
    }

    fn close(&mut self) {
        self.path.push(Command::Close);
    }
}
