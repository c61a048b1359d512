//! Writes pictures to files: SVG with text as text, or PNG with a built-in font, so that a picture
//! has the same bytes on every computer.

use std::io::{self, Write};
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
};
use topocoll::{Error, check_memory};

use super::pixels::Pixels;
use super::write_file;
use crate::host::memory;

/// A drawing.
pub(crate) trait Picture {
    /// Pixels across and down.
    fn size(&self) -> (u32, u32);

    /// Draws it.
    fn draw(&self, area: &Area) -> anyhow::Result<()>;
}

/// The drawing area, in pixels.
pub(crate) type Area<'a> = DrawingArea<Canvas<'a>, Shift>;

/// The format of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Svg,
    Png,
}

impl Format {
    /// The format that a file name's extension gives.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => anyhow::bail!("`{}`: a picture's file name ends in .svg or .png", path.display()),
        }
    }
}

/// Writes a picture into a file.
pub(crate) fn write_picture(
    path: &Path,
    format: Format,
    picture: &dyn Picture,
) -> anyhow::Result<()> {
    let bytes = match format {
        Format::Svg => svg(picture)?,
        Format::Png => png(picture)?,
    };
    write_file(path, |file| Ok(file.write_all(&bytes)?))
}

fn svg(picture: &dyn Picture) -> anyhow::Result<Vec<u8>> {
    let mut text = String::new();
    draw(picture, Canvas::Svg(SVGBackend::with_string(&mut text, picture.size())))?;
    Ok(text.into_bytes())
}

fn png(picture: &dyn Picture) -> anyhow::Result<Vec<u8>> {
    let bytes = Pixels::memory(picture.size());
    check_memory("drawing the picture", bytes, memory()).map_err(Error::from)?;
    let mut pixels = Pixels::new(picture.size());
    draw(picture, Canvas::Pixels(&mut pixels))?;
    pixels.png()
}

fn draw(picture: &dyn Picture, canvas: Canvas) -> anyhow::Result<()> {
    let area = canvas.into_drawing_area();
    area.fill(&WHITE)?;
    picture.draw(&area)?;
    Ok(area.present()?)
}

/// One type for all formats: plotters compiles drawings once per type.
pub(crate) enum Canvas<'a> {
    Svg(SVGBackend<'a>),
    Pixels(&'a mut Pixels),
}

type Drawn = Result<(), DrawingErrorKind<io::Error>>;

impl DrawingBackend for Canvas<'_> {
    type ErrorType = io::Error;

    fn get_size(&self) -> (u32, u32) {
        match self {
            Self::Svg(svg) => svg.get_size(),
            Self::Pixels(pixels) => pixels.units(),
        }
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        match self {
            Self::Svg(svg) => svg.present(),
            Self::Pixels(_) => Ok(()),
        }
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_pixel(at, colour),
            Self::Pixels(pixels) => {
                pixels.rectangle(at, (at.0 + 1, at.1 + 1), colour, None);
                Ok(())
            }
        }
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_line(from, to, style),
            Self::Pixels(pixels) => {
                pixels.line(&[from, to], style.color(), style.stroke_width());
                Ok(())
            }
        }
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_rect(from, to, style, fill),
            Self::Pixels(pixels) => {
                pixels.rectangle(from, to, style.color(), (!fill).then_some(1));
                Ok(())
            }
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_path(path, style),
            Self::Pixels(pixels) => {
                let path: Vec<_> = path.into_iter().collect();
                pixels.line(&path, style.color(), style.stroke_width());
                Ok(())
            }
        }
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        middle: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_circle(middle, radius, style, fill),
            Self::Pixels(pixels) => {
                let stroke = (!fill).then(|| style.stroke_width());
                pixels.circle(middle, radius, style.color(), stroke);
                Ok(())
            }
        }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        match self {
            Self::Svg(svg) => svg.fill_polygon(corners, style),
            Self::Pixels(pixels) => {
                let corners: Vec<_> = corners.into_iter().collect();
                pixels.polygon(&corners, style.color());
                Ok(())
            }
        }
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        match self {
            Self::Svg(svg) => svg.draw_text(text, style, at),
            Self::Pixels(pixels) => pixels
                .text(text, style, at)
                .map_err(|error| DrawingErrorKind::FontError(error.into())),
        }
    }
}
