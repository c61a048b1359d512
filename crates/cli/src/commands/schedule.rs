use std::io::{BufWriter, IsTerminal, Write};

use anyhow::Context;
use topocoll::formats::{FORMATS, Source, Writer};
use topocoll::text::value;
use topocoll::{Rank, check_counting_work};

use crate::bar::{PROGRESS, Watched, bytes_done, clear_bar, starting};
use crate::error::say;
use crate::host::memory;
use crate::machine::{Named, exchange, machine, schedule};
use crate::render::{check_files, check_folder, write_file, write_folder};
use crate::{Outcome, args};

pub(crate) fn run(args: &args::Schedule) -> anyhow::Result<Outcome> {
    let options = &args.common.options;
    let format = FORMATS.iter().find(|format| format.name == args.format);
    let format = format.expect("bug: arguments have known formats");
    match (format.writer, &args.out) {
        (Writer::Folder(_), Some(path)) => check_folder(path)?,
        (_, path) => check_files(&[("--out", path.as_deref())])?,
    }
    let mut machine = machine(&args.common.machine, options)?;
    let exchange = exchange(&machine, options, &args.part)?;
    let mut own = exchange.machine().clone();
    let Named { schedule, .. } = schedule(&exchange, &mut own, options, &args.subject)?;
    let schedule = exchange.placed(&schedule)?.into_owned();
    if args.subject.schedule.is_some() {
        machine.set_ports(own.ports);
    }
    if let Some(rank) = args.rank {
        anyhow::ensure!(
            rank < machine.ranks(),
            "--rank {rank}: the last rank is {}",
            machine.ranks() - 1
        );
        anyhow::ensure!(format.by_rank, "--rank: a file in format {} has all ranks", format.name);
    } else {
        check_counting_work(&schedule, &machine).map_err(topocoll::Error::from)?;
    }
    let mut source = Source::new(&schedule, &machine, memory());
    source.only = args.rank.map(Rank);
    starting("writing bytes", 0);
    let written = match (format.writer, &args.out) {
        (Writer::File(write), Some(path)) => {
            write_file(path, |file| into(&source, write, Watched(file)))
        }
        (Writer::File(write), None) => {
            let out = std::io::stdout().lock();
            if out.is_terminal() {
                clear_bar();
            }
            into(&source, write, out)
        }
        (Writer::Folder(write), Some(path)) => {
            let fill =
                |folder: &_| write(&source, folder, PROGRESS.done).map_err(topocoll::Error::from);
            write_folder(path, |folder| Ok(fill(folder)?))
        }
        (Writer::Folder(_), None) => {
            Err(anyhow::anyhow!("writes several files into a folder: name it with --out"))
        }
    };
    written.with_context(|| format!("--format {}", format.name))?;
    if let Some(path) = &args.out {
        say(&format!("note: `{}` has {}", value(&path.to_string_lossy()), bytes_done()));
    }
    Ok(Outcome::Fine)
}

fn into(
    source: &Source<'_>,
    write: fn(&Source<'_>, &mut dyn Write) -> Result<(), topocoll::AnalysisError>,
    out: impl Write,
) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    Ok(write(source, &mut out).map_err(topocoll::Error::from)?)
}
