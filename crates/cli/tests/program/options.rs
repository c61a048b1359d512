//! Options of printed commands.

use std::process::{Command, Output};

fn topocoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_topocoll")).args(arguments).output().unwrap()
}

#[test]
fn the_printed_proof_is_of_the_same_exchange() {
    for (line, ranks) in [
        ("select fat-tree:16,2,2*128 --ranks 0-4095 --bandwidth 24GB/s", 4096),
        ("select fat-tree:16,2*64 --ranks 0-1023,4096-5119 --injection 1GB/s,40GB/s", 2048),
        ("select torus:64x64 --ranks 0-2047 --ports 2 --op allgather --startup 2us", 2048),
        ("select full:2048 --block 9", 2048),
    ] {
        let said = topocoll(&line.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8(said.stdout).unwrap();
        let printed = text.lines().find_map(|line| line.strip_prefix("Proof: topocoll "));
        let printed = printed.unwrap_or_else(|| panic!("{line}: {text}"));
        let arguments: Vec<_> = printed.split(' ').chain(["--json"]).collect();
        let proof = topocoll(&arguments);
        let error = String::from_utf8_lossy(&proof.stderr);
        assert_eq!(proof.status.code(), Some(0), "{printed}: {error}");
        let proof: serde_json::Value = serde_json::from_slice(&proof.stdout).unwrap();
        assert_eq!((&proof["delivered"], &proof["ranks"]), (&true.into(), &ranks.into()));
        let bound = proof["bounds"]["steps"].to_string();
        assert!(text.contains(&format!(" {bound} steps, volume ")), "{printed}: {text}");
    }
}
