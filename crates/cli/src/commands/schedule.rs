use std::io::{BufWriter, Write};

use topocoll::{Machine, Rank, Schedule, check_counting_work, export};

use crate::machine::{machine, memory, schedule};
use crate::render::write_file;
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
    if args.rank.is_none() {
        check_counting_work(&schedule, &machine).map_err(topocoll::Error::from)?;
    }
    let only = args.rank.map(Rank);
    match &args.out {
        None => write(&schedule, &machine, only, std::io::stdout().lock())?,
        Some(path) => {
            write_file(path, |file| write(&schedule, &machine, only, file))?;
        }
    }
    Ok(Outcome::Fine)
}

fn write(
    schedule: &Schedule,
    machine: &Machine,
    only: Option<Rank>,
    out: impl Write,
) -> anyhow::Result<()> {
    let out = BufWriter::with_capacity(1 << 16, out);
    export::jsonl::write(schedule, machine, only, memory(), out).map_err(topocoll::Error::from)?;
    Ok(())
}
