//! Plans for a machine file: its injection decides which algorithm is fastest.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::ffi::CString;
use std::ptr;

use topocoll_c::*;

const MACHINE: &str = r#"
title = "16 ranks with one interface each"
shape = { value = "full:16", source = "assumed" }
ports = { value = 3, source = "assumed" }
[timing]
startup = { value = "1us", source = "assumed" }
per_byte = { value = "1GB/s", source = "assumed" }
per_hop = { value = "0", source = "assumed" }
rearrangement = { value = "0", source = "assumed" }
barrier = { value = "0", source = "assumed" }
"#;

/// Steps of the fastest all-to-all of 500 bytes on the machine of a file.
fn steps(text: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, text).unwrap();
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let mut plan = ptr::null_mut();
    // SAFETY: texts that end with a zero byte, and a place for the plan, which is freed once.
    unsafe {
        let (operation, any) = (c"alltoall".as_ptr(), ptr::null());
        let status = topocoll_plan_new(name.as_ptr(), operation, any, any, 500, 0, 0, &mut plan);
        assert_eq!(status, Status::Ok);
        let steps = topocoll_plan_steps(plan);
        topocoll_plan_free(plan);
        steps
    }
}

/// A block takes 0.5 us. With radix 4, bruck takes two steps of three messages of four blocks, and
/// one of copies: 6 us on three links, 14 us through one interface. In five steps of three blocks it is 7.5 and 12.5 us.
#[test]
fn a_machine_file_with_injection_changes_the_fastest_plan() {
    let limit = "injection = { value = \"1GB/s\", source = \"assumed\" }\n";
    assert_eq!((steps(MACHINE), steps(&format!("{MACHINE}{limit}"))), (3, 5));
}
