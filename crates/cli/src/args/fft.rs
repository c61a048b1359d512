//! What `fft` takes.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Common;
use crate::examples;

#[derive(ClapArgs, Debug)]
#[command(after_help = examples::FFT)]
pub(crate) struct Fft {
    /// Points along the three sides, such as 1024x1024x1024; the last side is contiguous in memory
    #[arg(value_name = "N1xN2xN3", value_parser = sides, allow_hyphen_values = true)]
    pub(crate) sides: [u64; 3],
    #[command(flatten)]
    pub(crate) common: Common,
    /// Bytes of a complex number: 8 in single precision, 16 in double
    #[arg(long, value_name = "BYTES", default_value = "16", value_parser = complex, allow_hyphen_values = true)]
    pub(crate) complex: u64,
    /// Show every process grid, bricks too
    #[arg(long)]
    pub(crate) all: bool,
    /// Also write a page with the table, and bars of the times, to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) out: Option<PathBuf>,
}

fn sides(text: &str) -> Result<[u64; 3], String> {
    let side = |side: &str| match side.parse() {
        Ok(0) => Err("0: a side has at least 1 point".to_owned()),
        Ok(points) => Ok(points),
        Err(_) => Err(format!("`{side}` is not a whole number from 1 to {}", u64::MAX)),
    };
    let all = text.split('x').map(side).collect::<Result<Vec<_>, _>>()?;
    let three = <[u64; 3]>::try_from(all);
    three.map_err(|all| {
        let plural = if all.len() == 1 { "" } else { "s" };
        format!("{} side{plural}: a transform has three, such as 1024x1024x1024", all.len())
    })
}

fn complex(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes @ (4 | 8 | 16 | 32)) => Ok(bytes),
        _ => Err("not 4, 8, 16 or 32 bytes".to_owned()),
    }
}
