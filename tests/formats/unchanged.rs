//! Schedules are the same as in earlier versions, byte for byte, with their certificates.
//!
//! `tests/schedules/unchanged.txt` has a line for each: machine, ports, algorithm, parameters, and the first digits
//! of the SHA-256 of the JSON lines and of the certificate (`-` for schedules that split blocks or are too large).
//! A setting that is removed takes its lines along. `UNCHANGED=overwrite` writes the digits anew.

use common::{MEMORY, certificate_of, schedule_of, setting, with_ports};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use topocoll::formats::{FORMATS, Source, Writer};
use topocoll::{Machine, Problem, Schedule};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schedules/unchanged.txt");

/// Bytes of a block.
const BLOCK: u64 = 960;

/// Schedules of more ranks have no certificate here.
const CERTIFIED: u32 = 36;

fn digits(text: &[u8]) -> String {
    Sha256::digest(text)[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hashes(schedule: &Schedule, machine: &Machine) -> [String; 2] {
    let format = FORMATS.iter().find(|format| format.name == "jsonl").unwrap();
    let Writer::File(write) = format.writer else { panic!("JSON lines are a file") };
    let mut file = Vec::new();
    write(&Source::new(schedule, machine, MEMORY), &mut file).unwrap();
    let certified = schedule.rule().cuts().is_empty() && machine.ranks() <= CERTIFIED;
    let certificate = certified.then(|| digits(certificate_of(schedule, machine).as_bytes()));
    [digits(&file), certificate.unwrap_or_else(|| "-".to_owned())]
}

#[test]
fn schedules_and_certificates_are_unchanged() {
    let text = std::fs::read_to_string(FILE).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let now = lines.par_iter().map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, ports, algorithm, parameters, ..] = fields[..] else { panic!("{line}") };
        let machine = with_ports(name, ports.parse::<u32>().unwrap());
        let operation = common::find(algorithm).unwrap().info().operation;
        let problem = Problem::new(operation, machine.ranks(), machine.ports, BLOCK).unwrap();
        let schedule = schedule_of(&machine, &problem, algorithm, &setting(parameters))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let [file, certificate] = hashes(&schedule, &machine);
        format!("{name} {ports} {algorithm} {parameters} {file} {certificate}")
    });
    let now: Vec<String> = now.collect();
    if std::env::var_os("UNCHANGED").is_some_and(|word| word == "overwrite") {
        std::fs::write(FILE, now.join("\n") + "\n").unwrap();
        return;
    }
    let changed: Vec<_> = lines.iter().zip(&now).filter(|(old, new)| *old != new).collect();
    assert!(changed.is_empty(), "{} changed: {changed:#?}", changed.len());
}
