//! Altered command lines: the examples with other values, options and commands. Each is answered or
//! refused by name and quickly, without a panic, a signal or a leftover file.
//!
//! `TOPOCOLL_ARGUMENTS=20000 cargo test -p topocoll-cli --test program arguments:: -- --nocapture` sets the
//! number of lines, `TOPOCOLL_ARGUMENTS_SEED` the seed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::num::NonZero;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tempfile::TempDir;

/// Number of altered lines by default.
const LINES: u64 = 250;

/// A refusal takes less time.
const SOON: Duration = Duration::from_secs(1);

/// A command that runs longer was accepted and is ended. Where TOPOCOLL_ARGUMENTS is set the time is
/// longer.
const LONG: [Duration; 2] = [Duration::from_millis(1500), Duration::from_secs(5)];

/// Address limit of the program, in KiB.
const MEMORY: &str = "2097152";

/// Files that exist, and their places in the tests.
const INPUTS: [(&str, &str); 12] = [
    ("proof.txt", "certificates/torus-4x4.txt"),
    ("altered.txt", "certificates/altered.txt"),
    ("complete.jsonl", "schedules/complete.jsonl"),
    ("incomplete.jsonl", "schedules/incomplete.jsonl"),
    ("cut.jsonl", "schedules/cut.jsonl"),
    ("full-3.goal", "schedules/full-3.goal"),
    ("torus-2x2.csv", "schedules/torus-2x2.csv"),
    ("six.csv", "demands/six.csv"),
    ("interleaved.txt", "placements/interleaved.txt"),
    ("torus.xml", "machines/torus.xml"),
    ("openmpi-hosts", "machines/openmpi-hosts"),
    ("sp1.toml", "../topologies/sp1-64.toml"),
];

/// Lines for options that no example has.
const MORE: [&str; 14] = [
    "select torus:8x8 --ranks 0-7,12 --demand uniform:7",
    "select cluster:4,4,2 --timing sp1-64 --startup 2us --bandwidth 10GB/s --per-hop 1ns",
    "verify full:3 --schedule incomplete.jsonl --method replay --json",
    "verify full:3 --schedule complete.jsonl --op alltoall --block 4 --certificate new.txt",
    "verify twisted-torus:4x4x8 --algorithm direct --method classes --ports 2",
    "check altered.txt --json",
    "simulate full:6 --algorithm direct --demand six.csv --json",
    "simulate full:3 --schedule full-3.goal --model fluid --csv new.csv --trace new.json",
    "simulate torus:4x4 --traffic uniform:0.1 --cycles 100 --model flit --sync free",
    "simulate torus:2x2 --schedule torus-2x2.csv --placement interleaved.txt --model wormhole",
    "run torus:8x8 --algorithm direct --ranks 0-3 --demand sparse:1 --threads 2 --repeat 2 --sync barrier",
    "schedule torus:4x4 --algorithm suh-shin --format simgrid --out new",
    "sweep full:16 --blocks 1:1MiB --points 5 --svg new.svg --json",
    "tune full:16 --for openmpi --release 5.0 --base sp1.toml",
];

/// Values that may be valid for an option.
const GOOD: [(&str, &str); 22] = [
    ("--op", "alltoall allgather"),
    ("--block", "1 64 4KiB 1TiB 1099511627776 1.5kB"),
    ("--blocks", "1:1TiB 1,2,3 7:7 16,64,1KiB 1:1099511627776"),
    ("--points", "2 256 7"),
    ("--ports", "1 2 3 4294967295"),
    ("--timing", "generic sp1-64 sp1.toml giganet-6x4"),
    ("--startup", "0 2us 1e6s 1e-300s"),
    ("--bandwidth", "10GB/s 0s 1e-6B/s 1e308TB/s 0.1ns"),
    ("--ranks", "0 0-2 0-7,12 3,2,1 0,0 5-4294967295 2 256"),
    (
        "--demand",
        "uniform:7 power-law:1 sparse:18446744073709551615 experts:0 neighbours:2 six.csv",
    ),
    (
        "--algorithm",
        "direct bruck suh-shin ring concat pairwise-xor clustered-factor demand-matchings",
    ),
    (
        "--set",
        "radix=2 radix=2,8 vcs=16 flit_bytes=1 ways=nearer layout=paper buffer_flits=1 hop_cycles=0",
    ),
    ("--traffic", "neighbor tornado transpose bitcomp random:3 uniform:0.5 uniform:1e-300"),
    ("--cycles", "1 100 18446744073709551615"),
    ("--schedule", "complete.jsonl incomplete.jsonl cut.jsonl full-3.goal torus-2x2.csv"),
    ("--placement", "interleaved.txt"),
    ("--communicators", "4,8,16 4294967295 2,2"),
    ("--release", "4.1 5.0 9999999999.1"),
    ("--conflicts", "0 1 18446744073709551615"),
    ("--threads", "1 1000000"),
    ("--rank", "0 7 4294967295"),
    ("--budget", "1 0.001 1e-300 1e300"),
];

const MACHINES: &str = "full:1 full:2 full:3 full:64 full:4294967295 torus:2x2 torus:1x1 torus:3x5x2 \
    torus:4x4/0,1 torus:4x4/0,1+1 mesh:2147483648 torus:1024x1024 grid:4~x3 twisted-torus:4x4x8 \
    cluster:4,4,2 cluster:3*2,1 paragon-16x16 tpu-v4-4x4x4 trainium2-4x4-faulty torus.xml sp1.toml \
    openmpi-hosts";

/// Values that are valid for no option.
const HOSTILE: &str = "0 -0 -1 +1 1 4294967295 4294967296 18446744073709551615 18446744073709551616 \
    -9223372036854775808 1e999 -1e999 1e-400 nan inf -inf 1: :1 : 1:1:1 , ,1 1,,2 = =1 radix= a=b=c \
    9999999999-0 0-4294967295 0x10 -- - --json -h . .. folder absent nowhere/file folder/file '\"$(x)";
const MORE_HOSTILE: [&[u8]; 6] = [
    b"",
    b" ",
    b"a\nb\tc\x1b[31m",
    b"\xff\xfe",
    b"--set=\xff",
    "\u{202e}\u{1f980}\u{661}".as_bytes(),
];

/// Each program gets one of these variables, and no other except a PATH that leads nowhere.
const VARIABLES: [(&str, &str); 11] = [
    ("COLUMNS", "80"),
    ("COLUMNS", "1"),
    ("COLUMNS", "0"),
    ("COLUMNS", "18446744073709551616"),
    ("LANG", "xx_YY.UTF-16"),
    ("LC_ALL", "tr_TR"),
    ("HOME", ""),
    ("TMPDIR", "absent"),
    ("TERM", ""),
    ("RAYON_NUM_THREADS", "-1"),
    ("NO_COLOR", ""),
];

/// Lines that broke a promise before.
const KEPT: [&str; 12] = [
    "verify torus:16x16 --algorithm pairwise-xor --conflicts 18446744073709551615",
    "sweep torus:8x8 --svg times.svg --csv nowhere/times.csv",
    "simulate torus:8x8 --algorithm direct --model fluid --csv times.csv --trace nowhere/times.json",
    "schedule torus:1024x1024 --algorithm suh-shin --format dot",
    "run full:16 --algorithm bruck --block 1TiB",
    "select torus:1024x1024 --model wormhole",
    "simulate full:64 --model flit --algorithm direct --heatmap out.svg",
    "select mesh:2147483648 --block 64 --demand sparse:7",
    "select mesh:2147483648 --ranks 0-7",
    "run full:4294967295 --algorithm direct --ranks 0-3 --demand sparse:1",
    "simulate torus:65536x65535 --traffic tornado --model fluid",
    "tune full:4294967295 --for openmpi",
];

type Line = Vec<OsString>;

/// One command, from its help.
struct Known {
    /// Options with their example values; empty where the option takes no value.
    options: Vec<(String, Vec<OsString>)>,
    examples: Vec<Line>,
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_topocoll")
}

fn words(text: &str) -> Line {
    text.split_whitespace().map(OsString::from).collect()
}

fn help(command: &[&str]) -> String {
    let output = Command::new(program()).args(command).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Every command, from its help.
fn commands() -> Vec<Known> {
    let all = help(&[]);
    let list = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.trim().split(' ').next());
    names.filter(|name| *name != "help").map(|name| known(name, &help(&[name]))).collect()
}

fn known(command: &str, help: &str) -> Known {
    let mut options = vec![("--help".to_owned(), Vec::new())];
    for line in help.lines() {
        if let Some(option) = line.strip_prefix("      --") {
            let (name, value) = option.split_once(' ').unwrap_or((option, ""));
            let name = format!("--{name}");
            let good =
                GOOD.iter().find(|(known, _)| *known == name).map_or("out.svg", |good| good.1);
            let values = if value.starts_with('<') { words(good) } else { Vec::new() };
            options.push((name, values));
        } else if let Some(value) = line.strip_prefix("          - ") {
            let value = value.split(':').next().unwrap();
            options.last_mut().unwrap().1.push(value.into());
        }
    }
    let examples = help.lines().filter_map(|line| line.strip_prefix("  topocoll "));
    let more = MORE.into_iter().filter(|line| line.split(' ').next() == Some(command));
    let examples: Vec<_> = examples.chain(more).map(words).collect();
    assert!(!examples.is_empty(), "{help}");
    Known { options, examples }
}

fn any<'a, T>(random: &mut Rng, list: &'a [T]) -> &'a T {
    &list[random.usize(..list.len())]
}

/// A value of an option, a value of no option, or a value with altered letters.
fn value(random: &mut Rng, good: &[OsString]) -> OsString {
    match random.u8(..32) {
        0..20 => any(random, good).clone(),
        20..23 => {
            let word = any(random, good);
            altered(random, word)
        }
        23 => any(random, &words(MACHINES)).clone(),
        24 if random.bool() => "9".repeat(100_000).into(),
        24..27 => OsStr::from_bytes(any::<&[u8]>(random, &MORE_HOSTILE)).to_owned(),
        _ => any(random, &words(HOSTILE)).clone(),
    }
}

/// Some letters removed, doubled or inserted.
fn altered(random: &mut Rng, word: &OsStr) -> OsString {
    let mut bytes = word.as_bytes().to_vec();
    for _ in 0..random.usize(1..3) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..5)).min(bytes.len());
        match random.u8(..3) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            _ => bytes.insert(at, *any(random, b"0123456789:,-x*~=.+e ")),
        }
    }
    // No path leads out of the folder.
    let elsewhere = bytes.starts_with(b"/") || bytes.windows(2).any(|pair| pair == b"=/");
    if elsewhere { word.to_owned() } else { OsString::from_vec(bytes) }
}

/// One change of a line.
fn change(random: &mut Rng, line: &mut Line, own: &Known, others: &[Known]) {
    let at = random.usize(..line.len());
    match random.u8(..24) {
        0 => drop(line.remove(at)),
        1 => line.insert(at, line[at].clone()),
        2 => {
            let other = random.usize(..line.len());
            line.swap(at, other);
        }
        3 => line[at] = altered(random, &line[at].clone()),
        4 => {
            let other = any(random, others);
            add(random, line, other);
        }
        5..12 => add(random, line, own),
        _ => replace(random, line, own),
    }
    if line.is_empty() {
        line.push("--version".into());
    }
}

/// Another option, in one word or two.
fn add(random: &mut Rng, line: &mut Line, command: &Known) {
    let (name, values) = any(random, &command.options);
    let mut given = vec![OsString::from(name)];
    if !values.is_empty() {
        let value = value(random, values);
        if random.bool() {
            given[0].push("=");
            given[0].push(value);
        } else {
            given.push(value);
        }
    }
    let place = random.usize(1.min(line.len())..=line.len());
    line.splice(place..place, given);
}

/// Another machine, or another value of an option.
fn replace(random: &mut Rng, line: &mut Line, command: &Known) {
    let at = random.usize(..line.len());
    let before = at.checked_sub(1).map(|before| line[before].clone());
    let option = command.options.iter().find(|(name, _)| before.as_deref() == Some(name.as_ref()));
    match option {
        Some((_, values)) if !values.is_empty() => line[at] = value(random, values),
        _ if at == 1 => line[at] = value(random, &words(MACHINES)),
        _ => (),
    }
}

fn line(random: &mut Rng, commands: &[Known]) -> Line {
    let own = any(random, commands);
    let mut line = any(random, &own.examples).clone();
    for _ in 0..random.usize(1..5) {
        change(random, &mut line, own, commands);
    }
    line
}

/// The files of a folder; nothing for folders in it.
fn contents(folder: &Path) -> BTreeMap<OsString, Option<Vec<u8>>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).ok())).collect()
}

struct Said {
    /// None if it was ended.
    status: Option<ExitStatus>,
    took: Duration,
    out: Vec<u8>,
    error: String,
}

/// Starts the program in a folder, with little memory and time.
fn said(folder: &Path, beside: &Path, line: &Line, variable: (&str, &str)) -> Said {
    let limits = format!("ulimit -c 0; ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    let (out, error) = (beside.join("out"), beside.join("error"));
    let long = LONG[usize::from(number("TOPOCOLL_ARGUMENTS").is_some())];
    let start = Instant::now();
    let mut child = Command::new("/bin/sh")
        .args(["-c", &limits, program()])
        .args(line)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", "nowhere"), variable])
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&error).unwrap())
        .spawn()
        .unwrap();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > long => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let error = String::from_utf8_lossy(&fs::read(error).unwrap()).into_owned();
    Said { status, took: start.elapsed(), out: fs::read(out).unwrap(), error }
}

/// Text that appears where a value was printed unescaped, or the program failed.
const NOT_FOR_PEOPLE: [&str; 14] = [
    "panicked",
    "internal error",
    "bug:",
    "RUST_BACKTRACE",
    "Some(",
    "Ok(",
    "Err(",
    "Error {",
    "Kind(",
    "kind:",
    "ParseIntError",
    "Utf8Error",
    "Os {",
    "memory allocation",
];

/// Whether a line asks for help or version.
fn helps(word: &OsStr) -> bool {
    ["help", "--help", "-h", "--version", "-V"].iter().any(|help| word == *help)
}

/// The promise that a line breaks.
fn broken(line: &Line, said: &Said, before: &Path, after: &Path) -> Option<String> {
    let texts: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
    let Said { status, took, out, error } = said;
    let given = |part: &str| texts.iter().any(|text| text.contains(part));
    if let Some(part) = NOT_FOR_PEOPLE.iter().find(|part| error.contains(**part) && !given(part)) {
        return Some(format!("says `{part}`"));
    }
    let status = (*status)?;
    let Some(code @ 0..=2) = status.code() else {
        return Some(format!("ends with {status}, signal {:?}", status.signal()));
    };
    let (before, after) = (contents(before), contents(after));
    let written = after.iter().filter(|(name, data)| before.get(*name) != Some(*data));
    let mut gone = before.keys().filter(|name| !after.contains_key(*name));
    if let Some(gone) = gone.next() {
        return Some(format!("{gone:?} is gone"));
    }
    for (name, _) in written {
        let name = name.to_string_lossy();
        if code != 0 || !texts.iter().any(|text| text.contains(&*name)) {
            return Some(format!("{name:?} is written"));
        }
    }
    if code == 2 {
        if !out.is_empty() {
            return Some("prints and is refused".to_owned());
        }
        if took > &SOON {
            return Some(format!("is refused after {took:?}"));
        }
        let Some(fault) = error.lines().find(|line| line.starts_with("error:")) else {
            return Some("is refused without an error".to_owned());
        };
        let parts = texts.iter().flat_map(|text| {
            let short = text.strip_prefix('-').and_then(|text| text.get(..1));
            text.split([':', ',', '\n']).chain(text.split(['=', '\n'])).chain(short)
        });
        // Long values are cut.
        let begin = |part: &str| part.chars().take(20).collect::<String>();
        let named = parts.filter(|part| !part.is_empty()).any(|part| error.contains(&begin(part)));
        if !named
            && !fault.contains("--")
            && !fault.contains('<')
            && !fault.contains("``")
            && !fault.contains("''")
        {
            return Some("is refused by no name".to_owned());
        }
    } else if line.iter().any(|word| word == "--json") && !line.iter().any(|word| helps(word)) {
        let mut values = serde_json::Deserializer::from_slice(out).into_iter::<serde_json::Value>();
        if !values.all(|value| value.is_ok()) {
            return Some("prints what is no JSON".to_owned());
        }
    }
    None
}

/// A line in the syntax of a shell.
fn shown(line: &Line, variable: (&str, &str)) -> String {
    let word = |word: &OsString| match word.len() {
        0..200 => format!("{word:?}"),
        long => format!("{:?}[{long}]", OsStr::from_bytes(&word.as_bytes()[..20])),
    };
    let words: Vec<_> = line.iter().map(word).collect();
    format!("{}={} topocoll {}", variable.0, variable.1, words.join(" "))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn every_altered_line_is_answered_or_refused_by_name() {
    let commands = commands();
    let seed = number("TOPOCOLL_ARGUMENTS_SEED").unwrap_or(0);
    let all = number("TOPOCOLL_ARGUMENTS").unwrap_or(LINES);
    let (next, broke, endings) = (AtomicU64::new(0), Mutex::new(Vec::new()), Mutex::new([0; 4]));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let work = || {
        let place = TempDir::new().unwrap();
        let [inputs, here] = ["inputs", "here"].map(|name| place.path().join(name));
        fs::create_dir_all(inputs.join("folder")).unwrap();
        for (name, file) in INPUTS {
            fs::copy(tests.join(file), inputs.join(name)).unwrap();
        }
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let mut random = Rng::with_seed(seed.wrapping_add(i));
            let line = match KEPT.get(i as usize) {
                Some(kept) => words(kept),
                None if i < all => line(&mut random, &commands),
                None => break,
            };
            let variable = *any::<(&str, &str)>(&mut random, &VARIABLES);
            let tried = || {
                let _ = fs::remove_dir_all(&here);
                fs::create_dir_all(here.join("folder")).unwrap();
                for (name, _) in INPUTS {
                    fs::copy(inputs.join(name), here.join(name)).unwrap();
                }
                said(&here, place.path(), &line, variable)
            };
            // The computer may be busy.
            let mut said = tried();
            for _ in 0..3 {
                if said.took > SOON && said.status.and_then(|status| status.code()) == Some(2) {
                    said = tried();
                }
            }
            let ending = said.status.and_then(|status| status.code()).unwrap_or(3);
            endings.lock().unwrap()[(ending as usize).min(3)] += 1;
            if let Some(promise) = broken(&line, &said, &inputs, &here) {
                let line = shown(&line, variable);
                let error: String = said.error.chars().take(600).collect();
                let fault = format!("line {i} {promise}: {line}\n{error}");
                println!("{fault}");
                broke.lock().unwrap().push(fault);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let [fine, failed, refused, ended] = endings.into_inner().unwrap();
    println!("{fine} fine, {failed} failed, {refused} refused, {ended} ended");
    let broke = broke.into_inner().unwrap();
    assert!(broke.is_empty(), "{}", broke.join("\n"));
    assert!(fine > all / 50 && failed + ended < all / 4 && refused > all / 4);
}

/// Commands whose estimate is a few MiB each.
const HUNGRY: [&str; 18] = [
    "verify torus:64x64 --algorithm suh-shin --method classes",
    "verify torus:16x16 --algorithm bruck",
    "verify mesh:12x12 --algorithm one-factor --certificate proof",
    "verify full:256 --algorithm concat --op allgather",
    "simulate torus:32x32 --algorithm bruck --model steps",
    "simulate torus:12x12 --algorithm direct --model wormhole --trace trace --heatmap heat.svg",
    "simulate torus:32x32 --traffic tornado --model wormhole",
    "simulate torus:8x8 --algorithm suh-shin --model flit",
    "simulate torus:12x12 --algorithm direct --model fluid",
    "simulate full:128 --algorithm demand-matchings --demand sparse:7",
    "select mesh:9x9",
    "select full:48 --demand uniform:7",
    "select torus:4x4 --model wormhole",
    "schedule torus:12x12 --algorithm direct --out schedule",
    "run full:64 --algorithm bruck --block 4KiB --repeat 1 --threads 3",
    "sweep torus:16x16 --svg plot.svg",
    "report torus:4x4 --out page",
    "check altered.txt",
];

/// Address limits in decimal megabytes, from about the size of the program itself.
const LIMITS: [u64; 12] = [20, 22, 24, 26, 28, 31, 36, 44, 64, 120, 280, 1000];

/// A command stays within the address limit, or is refused with its estimate.
#[test]
fn no_address_limit_ends_a_command_by_a_signal() {
    let next = AtomicU64::new(0);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let lines = [&HUNGRY[..], &["bounds torus:64x64", "tune full:64 --for openmpi"]].concat();
    let within = |folder: &Path, limit: u64, line: &str| {
        let limits = format!("ulimit -c 0; ulimit -v {}; exec \"$0\" \"$@\"", limit * 1000);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &limits, program()]).args(line.split(' '));
        command.current_dir(folder).env_remove("RUST_BACKTRACE").output().unwrap()
    };
    let work = || {
        let place = TempDir::new().unwrap();
        fs::copy(tests.join("certificates/altered.txt"), place.path().join("altered.txt")).unwrap();
        // Below this limit the loader has no room for the program.
        let starts = |limit: &&u64| within(place.path(), **limit, "--version").status.success();
        let least = LIMITS.iter().find(starts).unwrap();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(line) = lines.get(i) else { break };
            for &limit in LIMITS.iter().filter(|limit| *limit >= least) {
                let ran = within(place.path(), limit, line);
                let error = String::from_utf8_lossy(&ran.stderr);
                let refused = error.starts_with("error: ") && error.contains(" but the limit is ");
                let met = match ran.status.code() {
                    Some(0 | 1) => !ran.stdout.is_empty() || line.contains("--out"),
                    Some(2) => refused && limit < 1000,
                    _ => false,
                };
                assert!(met, "ulimit -v {limit}000; {line}: {:?}, {error}", ran.status);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
}
