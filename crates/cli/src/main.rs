//! The `topocoll` program: reads a command line, asks the library, prints a report.
//!
//! Every command builds one report and prints it as a table or, with `--json`, as one object. Data
//! goes to standard output, all else to standard error. Exit status: 0 success, 1 failed check, 2
//! bad input, 128 + signal if a signal ends it, such as 141 if nothing reads the output any more.
#![forbid(unsafe_code)]

mod args;
mod bar;
mod commands;
mod completion;
mod demand;
mod error;
mod examples;
mod failure;
mod host;
mod machine;
mod programs;
mod render;
mod unfinished;
mod uses;
mod values;

use std::process::ExitCode;

use clap_complete::CompleteEnv;

/// The outcome of a command that ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Fine,
    Failed,
}

fn main() -> ExitCode {
    CompleteEnv::with_factory(args::command).var(completion::VARIABLE).complete();
    let args = match args::read() {
        Ok(args) => args,
        Err(answer) => return failure::answer(answer),
    };
    let found = host::start().and_then(|()| {
        unfinished::listen();
        bar::show();
        commands::run(&args.command)
    });
    bar::clear_bar();
    if let Some(signal) = unfinished::ended_by() {
        return ExitCode::from(128 + signal as u8);
    }
    match found {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(problem) if failure::has_no_reader(&problem) => ExitCode::from(failure::NO_READER),
        Err(problem) => {
            failure::show(&problem, &args.command);
            ExitCode::from(2)
        }
    }
}
