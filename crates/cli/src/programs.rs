//! Programs of others, called with limits of their time and of their output.

use std::io::{ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest that a program runs, in seconds, and the most bytes of its output.
const LONGEST: u64 = 10;
const MOST: u64 = 1 << 24;

/// What a program prints to standard output; `None` if it is not installed.
///
/// # Errors
/// It cannot start, takes too long, prints too much or no text, or fails.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<Option<String>, String> {
    let mut command = Command::new(program);
    // In a group of its own, which ends together.
    command.args(arguments).process_group(0).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot start: {error}")),
    };
    let (group, (sent, received)) = (child.id(), mpsc::channel());
    std::thread::spawn(move || {
        let (pipe, mut bytes) = (child.stdout.take().expect("bug: no pipe"), Vec::new());
        let read = pipe.take(MOST + 1).read_to_end(&mut bytes);
        let ended = read.and_then(|_| child.wait());
        // Nothing receives what comes too late.
        let _ = sent.send(ended.map(|status| (bytes, status)));
    });
    let Ok(ended) = received.recv_timeout(Duration::from_secs(LONGEST)) else {
        // It is not waited for, so the number is still its own. The shell's `kill` needs no path.
        let kill = format!("kill -s KILL -- -{group}");
        let _ = Command::new("/bin/sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        return Err(format!("no end after {LONGEST} seconds"));
    };
    match ended.map_err(|error| error.to_string())? {
        (bytes, _) if bytes.len() as u64 > MOST => Err(format!("more than {MOST} bytes")),
        (_, status) if !status.success() => Err(format!("ended with {status}")),
        (bytes, _) => {
            String::from_utf8(bytes).map(Some).map_err(|_| "its output is not text".to_owned())
        }
    }
}
