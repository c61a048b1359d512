//! Pictures into files: SVG as it is, or PNG by a renderer and a font of our own, so that the same
//! picture is the same bytes on every computer.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use topocoll::{Error, check_memory};

use super::write_file;
use crate::host::memory;

/// Pixels of a PNG to one of the SVG: print asks for more than screens.
const SCALE: f32 = 2.0;

/// Writes a picture into a file.
pub(crate) fn write_picture(path: &Path, format: Format, svg: &str) -> anyhow::Result<()> {
    let bytes = match format {
        Format::Svg => svg.as_bytes().to_vec(),
        Format::Png => png(svg)?,
    };
    write_file(path, |file| Ok(file.write_all(&bytes)?))
}

/// What a picture is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Svg,
    Png,
}

impl Format {
    /// As the name of a file ends.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => anyhow::bail!("`{}`: a picture is a file named .svg or .png", path.display()),
        }
    }
}

fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    // The text becomes a tree of shapes, and the fonts are read.
    const OF_TEXT: u128 = 32;
    const FONTS: u128 = 8 << 20;
    let what = "drawing the picture";
    check_memory(what, OF_TEXT * svg.len() as u128 + FONTS, memory()).map_err(Error::from)?;
    let mut options = Options { font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options).context("bug: our SVG is none")?;
    let size = tree.size().to_int_size().scale_by(SCALE).context("a picture of no size")?;
    // Four bytes a pixel, and as many again to encode them.
    let bytes = 8 * u128::from(size.width()) * u128::from(size.height());
    check_memory(what, bytes, memory()).map_err(Error::from)?;
    let mut pixels = Pixmap::new(size.width(), size.height()).context("a picture too large")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}
