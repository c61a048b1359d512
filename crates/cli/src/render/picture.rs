//! Writes pictures to files: SVG with text as text, the same bytes on every computer.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::Path;

use super::write_file;

/// A drawing.
pub(crate) trait Picture {
    /// Pixels across and down.
    fn size(&self) -> (u32, u32);

    /// Draws it.
    fn draw(&self, svg: &mut Svg) -> anyhow::Result<()>;
}

/// Pixels from the left and from the top.
pub(crate) type Place = (i32, i32);

/// Heights of letters in pixels: titles, text, and numbers of rows and columns.
pub(crate) const TITLE: f64 = 14.5;
pub(crate) const TEXT: f64 = 11.3;
pub(crate) const NUMBER: f64 = 10.5;

pub(crate) const BLACK: &str = "#000000";
pub(crate) const WHITE: &str = "#FFFFFF";

/// Refuses a file name that does not end in `.svg`.
pub(crate) fn check_picture(path: &Path) -> anyhow::Result<()> {
    let is_svg = path.extension().is_some_and(|end| end == "svg");
    anyhow::ensure!(is_svg, "`{}`: a picture's file name ends in .svg", path.display());
    Ok(())
}

/// Writes a picture into a file.
pub(crate) fn write_picture(path: &Path, picture: &dyn Picture) -> anyhow::Result<()> {
    let (width, height) = picture.size();
    let mut svg = Svg {
        text: format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\">\n"
        ),
    };
    svg.rectangle((0, 0), (width as i32, height as i32), Paint::Fill(WHITE));
    picture.draw(&mut svg)?;
    svg.text += "</svg>\n";
    write_file(path, |file| Ok(file.write_all(svg.text.as_bytes())?))
}

/// How a shape is painted: filled with a colour, or its outline drawn in a colour and a width.
#[derive(Clone, Copy)]
pub(crate) enum Paint {
    Fill(&'static str),
    Outline(&'static str, u32),
}

impl Display for Paint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fill(colour) => write!(f, "fill=\"{colour}\""),
            Self::Outline(colour, width) => {
                write!(f, "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"")
            }
        }
    }
}

/// Where a line of text is placed.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    /// It begins here; the place is its top left.
    Start,
    /// It is centred; the place is its top.
    Middle,
    /// It ends here; the place is its top right.
    End,
    /// It ends here; the place is half its height.
    EndMiddle,
    /// It reads upwards and is centred; the place is its left.
    Upwards,
}

/// The text of an SVG file.
pub(crate) struct Svg {
    text: String,
}

impl Svg {
    fn element(&mut self, element: impl Display) {
        writeln!(self.text, "{element}").expect("bug: a string refuses text");
    }

    /// A line through places.
    pub(crate) fn line(&mut self, places: &[Place], colour: &'static str, width: u32) {
        let (places, paint) = (joined(places), Paint::Outline(colour, width));
        self.element(format_args!("<polyline points=\"{places}\" {paint}/>"));
    }

    /// A line of dashes, of pixels drawn and pixels left out.
    pub(crate) fn dashes(&mut self, places: &[Place], colour: &'static str, (on, off): (u32, u32)) {
        let (places, paint) = (joined(places), Paint::Outline(colour, 2));
        self.element(format_args!(
            "<polyline points=\"{places}\" {paint} stroke-dasharray=\"{on} {off}\"/>"
        ));
    }

    pub(crate) fn polygon(&mut self, corners: &[Place], paint: Paint) {
        let corners = joined(corners);
        self.element(format_args!("<polygon points=\"{corners}\" {paint}/>"));
    }

    pub(crate) fn rectangle(&mut self, (x, y): Place, to: Place, paint: Paint) {
        let (width, height) = (to.0 - x, to.1 - y);
        self.element(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {paint}/>"
        ));
    }

    pub(crate) fn circle(&mut self, (x, y): Place, radius: i32, paint: Paint) {
        self.element(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {paint}/>"));
    }

    /// A line of text in letters of a size.
    pub(crate) fn text(&mut self, text: &str, (x, y): Place, size: f64, anchor: Anchor) {
        let (across, down) = match anchor {
            Anchor::Start => ("start", "0.76em"),
            Anchor::Middle | Anchor::Upwards => ("middle", "0.76em"),
            Anchor::End => ("end", "0.76em"),
            Anchor::EndMiddle => ("end", "0.5ex"),
        };
        let turned = match anchor {
            Anchor::Upwards => format!(" transform=\"rotate(270, {x}, {y})\""),
            _ => String::new(),
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.element(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{across}\" \
             font-size=\"{size}\"{turned}>{text}</text>"
        ));
    }
}

fn joined(places: &[Place]) -> String {
    let places: Vec<_> = places.iter().map(|(x, y)| format!("{x},{y}")).collect();
    places.join(" ")
}
