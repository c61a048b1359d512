//! Long work in each phase: a bar names the phase, and a signal ends the program.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_topocoll");

/// Command lines that take seconds, and what they do in the first of these.
const LONG: [(&str, &str); 15] = [
    (
        "simulate torus:64x64x64 --model wormhole --algorithm strided-rings --json",
        "building messages|simulating messages",
    ),
    ("simulate torus:64x64x64 --algorithm coloured-rings", "counting"),
    ("simulate torus:16x16x16 --model fluid --algorithm direct --json", "simulating messages"),
    ("simulate torus:64x64 --algorithm direct --heatmap links.svg", "drawing steps"),
    ("select torus:32x32x32 --json", "choices|candidates"),
    ("select torus:16x16x16/0,0,0+0 --json", "candidates|schedules"),
    (
        "sweep torus:16x16 --model flit --blocks 1KiB:4KiB --budget 100 --csv times.csv",
        "simulating messages",
    ),
    ("report torus:8x8x8/0,0,0+0 --ports 6 --out page.html", "candidates|schedules"),
    ("tune dragonfly:8,16,8 --for openmpi --out rules", "candidates"),
    ("calibrate --rounds 10000 --out this.toml", "measuring cells"),
    ("run full:1024 --algorithm bruck --block 16 --repeat 1000 --json", "planning|exchanging"),
    ("verify torus:64x64 --algorithm direct --certificate proof", "replaying steps"),
    ("bounds torus:64x64/1,2/4,5/7,8/2,2/3,3/9,9/8,8/6,12/13,14 --repair --json", "trying repairs"),
    ("schedule torus:64x64 --algorithm direct --format simgrid --out files", "writing bytes"),
    // No message is delivered.
    (
        "simulate torus:16x16 --traffic alltoall --model flit --block 1MiB --json",
        "simulating messages",
    ),
];

const SIGNALS: [(&str, i32); 2] = [("INT", 2), ("TERM", 15)];

/// Slack for a busy computer: a bar appears within a second, and a signal is obeyed within one.
const SOON: Duration = Duration::from_secs(2);

fn send(signal: &str, id: &str) {
    assert!(Command::new("kill").args(["-s", signal, id]).status().unwrap().success());
}

/// Starts a command line in a folder.
fn started(line: &str, folder: &Path) -> Child {
    let mut command = Command::new("env");
    // The parent may have set signals to be ignored (`nohup`, `&`).
    command.args(["--default-signal", PROGRAM]).args(line.split(' ')).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the process ends.
fn ended_soon(child: &mut Child, what: &str) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > SOON {
            child.kill().unwrap();
            panic!("{what}: not ended");
        }
        sleep(Duration::from_millis(5));
    }
}

/// What a command line has printed that a signal ended after this time.
fn ended_by(signal: &str, line: &str, after: Duration, folder: &Path) -> Output {
    let mut child = started(line, folder);
    sleep(after);
    assert_eq!(child.try_wait().unwrap(), None, "{line}: not long");
    // A reader, as a pipe holds less than some outputs.
    let mut printed = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut stdout = Vec::new();
        printed.read_to_end(&mut stdout).map(|_| stdout)
    });
    send(signal, &child.id().to_string());
    ended_soon(&mut child, line);
    let stdout = reader.join().unwrap().unwrap();
    Output { stdout, ..child.wait_with_output().unwrap() }
}

/// Nothing, or a whole object that says that it is partial and has no time that was not measured.
fn check_printed(stdout: &[u8], line: &str) {
    if stdout.is_empty() {
        return;
    }
    let text = std::str::from_utf8(stdout).unwrap();
    assert!(text.starts_with("{\n  \"version\": 2,\n  \"partial\": true,\n"), "{line}: {text}");
    let found: serde_json::Value = serde_json::from_str(text).unwrap();
    let times = ["/time_seconds", "/latency_seconds/average", "/latency_seconds/p50"];
    for time in times {
        assert!(found.pointer(time).unwrap().as_f64().unwrap() > 0.0, "{line}: {time}");
    }
    assert!(found["messages"].as_u64().unwrap() > 0, "{line}");
    for step in found["step_seconds"].as_array().into_iter().flatten() {
        assert!(step[1].as_f64().unwrap() > step[0].as_f64().unwrap(), "{line}: {step}");
    }
}

/// A command line with its phases, and a signal with its number.
type Case = ((&'static str, &'static str), (&'static str, i32));

/// In a long run every command line with every signal, otherwise those with these remainders of their number by 4.
fn cases(some: &[usize]) -> Vec<Case> {
    let all = std::env::var_os("TOPOCOLL_SWEEP").is_some();
    let cases = LONG.into_iter().flat_map(|long| SIGNALS.map(|signal| (long, signal)));
    let cases = cases.enumerate().filter(|(number, _)| all || some.contains(&(number % 4)));
    cases.map(|(_, case)| case).collect()
}

#[test]
fn a_signal_ends_every_phase() {
    for ((line, _), (signal, number)) in cases(&[0, 3]) {
        let folder = TempDir::new().unwrap();
        let found = ended_by(signal, line, Duration::from_millis(300), folder.path());
        assert_eq!(found.status.code(), Some(128 + number), "{line}: {signal}");
        check_printed(&found.stdout, line);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}: {signal}");
    }
}

#[test]
fn a_bar_names_every_phase() {
    for ((line, phases), (signal, number)) in cases(&[1]) {
        let folder = TempDir::new().unwrap();
        let shown = TempDir::new().unwrap();
        let [screen, id, out] = ["screen", "id", "out"].map(|name| shown.path().join(name));
        // The program's standard error is a pseudo-terminal.
        let run = format!(
            "echo $$ > {} && exec env --default-signal {PROGRAM} {line} > {}",
            id.display(),
            out.display()
        );
        let mut script = Command::new("script");
        script.args(["-qec", &run, "/dev/null"]).current_dir(folder.path()).stdin(Stdio::null());
        let mut script = script.stdout(std::fs::File::create(&screen).unwrap()).spawn().unwrap();
        let begin = Instant::now();
        let text = || String::from_utf8_lossy(&std::fs::read(&screen).unwrap()).into_owned();
        while !phases.split('|').any(|phase| text().contains(phase)) {
            assert!(begin.elapsed() < SOON, "{line}: {}", text());
            sleep(Duration::from_millis(10));
        }
        send(signal, std::fs::read_to_string(&id).unwrap().trim());
        let status = ended_soon(&mut script, line);
        assert_eq!((status.code(), status.signal()), (Some(128 + number), None), "{line}");
        check_printed(&std::fs::read(out).unwrap(), line);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}: {signal}");
    }
}

#[test]
fn an_interrupted_simulation_says_how_far_it_came_and_writes_no_files() {
    let line = "simulate torus:16x16 --algorithm direct --model flit --set flit_bytes=16 --json --csv links";
    for sync in ["free", "barrier"] {
        let (line, folder) = (format!("{line} --sync {sync}"), TempDir::new().unwrap());
        let partial = [5, 20, 80].into_iter().zip(SIGNALS.iter().cycle()).find_map(
            |(tenths, (signal, number))| {
                let after = Duration::from_millis(100 * tenths);
                let found = ended_by(signal, &line, after, folder.path());
                assert_eq!(found.status.code(), Some(128 + number), "{line}");
                // Empty if no message was delivered.
                check_printed(&found.stdout, &line);
                serde_json::from_slice::<serde_json::Value>(&found.stdout).ok()
            },
        );
        let json = partial.expect("never begun");
        assert!((0.0..=1.0).contains(&json["link_utilisation"].as_f64().unwrap()), "{json}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}

#[test]
fn a_signal_ends_a_program_whose_output_is_not_read() {
    let folder = TempDir::new().unwrap();
    let line = "sweep torus:8x8 --blocks 1:1MiB --json";
    let mut child = started(line, folder.path());
    // More than fits into a pipe.
    sleep(Duration::from_secs(1));
    send("TERM", &child.id().to_string());
    assert_eq!(ended_soon(&mut child, line).code(), Some(128 + 15));
}
