use std::fs::{File, Metadata, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use tempfile::Builder;
use topocoll::{Counts, Machine, Rank, Schedule, check_counting_work, count, export};

use crate::machine::{machine, memory, schedule};
use crate::{Outcome, args};

pub(crate) fn run(args: &args::Schedule) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let args::Format::Jsonl = args.format;
    anyhow::ensure!(!options.json, "--json is for reports: a schedule is written as --format says");
    let mut machine = machine(&args.common.machine, options)?;
    let schedule = schedule(&mut machine, options, &args.subject)?;
    if let Some(rank) = args.rank
        && rank >= machine.ranks()
    {
        anyhow::bail!("--rank {rank}: ranks end at {}", machine.ranks() - 1);
    }
    check_counting_work(&schedule, &machine).map_err(topocoll::Error::from)?;
    let counts = count(&schedule, &machine, memory()).map_err(topocoll::Error::from)?;
    let only = args.rank.map(Rank);
    match &args.out {
        None => write(&schedule, &machine, &counts, only, std::io::stdout().lock())?,
        Some(path) => {
            write_file(path, |file| write(&schedule, &machine, &counts, only, file))
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
    }
    Ok(Outcome::Fine)
}

/// Fills a file that appears complete or not at all: written beside its place, then moved there.
fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // A link stays one: what it leads to is replaced.
    let place = std::fs::canonicalize(path).unwrap_or(path.to_owned());
    let there = std::fs::metadata(&place).ok();
    anyhow::ensure!(there.as_ref().is_none_or(Metadata::is_file), "not a regular file");
    let folder =
        place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What the place had before, or what any new file gets.
    let permissions = there.map_or(Permissions::from_mode(0o666), |there| there.permissions());
    let in_folder = Builder::new().permissions(permissions).tempfile_in(folder);
    let mut file = in_folder.map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
    fill(file.as_file_mut())?;
    file.persist(&place).map_err(|e| anyhow::anyhow!("{}", e.error.kind()))?;
    Ok(())
}

fn write(
    schedule: &Schedule,
    machine: &Machine,
    counts: &Counts,
    only: Option<Rank>,
    out: impl Write,
) -> anyhow::Result<()> {
    let out = BufWriter::with_capacity(1 << 16, out);
    export::jsonl::write(schedule, machine, counts, only, memory(), out)
        .map_err(topocoll::Error::from)?;
    Ok(())
}
