//! Bad input from C returns a code and a message, and an exchange can be dropped midway.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::ffi::CStr;
use std::ptr;

use topocoll_c::*;

fn message() -> String {
    // SAFETY: the message of this thread, which no other call replaces meanwhile.
    unsafe { CStr::from_ptr(topocoll_message()) }.to_str().unwrap().to_owned()
}

fn plan(machine: &CStr, algorithm: &CStr, parameters: &CStr, rank: u32) -> *mut PlanHandle {
    let mut plan = ptr::null_mut();
    // SAFETY: texts that end with a zero byte, and a place for the plan.
    let status = unsafe {
        topocoll_plan_new(
            machine.as_ptr(),
            c"alltoall".as_ptr(),
            algorithm.as_ptr(),
            parameters.as_ptr(),
            8,
            0,
            rank,
            &mut plan,
        )
    };
    assert_eq!(status == Status::Ok, !plan.is_null());
    plan
}

#[test]
fn invalid_arguments_are_refused_with_a_message() {
    for (machine, algorithm, parameters, rank, says) in [
        (c"moebius", c"direct", c"", 0, "unknown machine `moebius`"),
        (c"full:4", c"directly", c"", 0, "directly"),
        (c"full:4", c"bruck", c"radix=9", 0, "radix"),
        (c"full:4", c"bruck", c"radix=2,radix=3", 0, "parameter `radix` is set twice"),
        (
            c"full:4",
            c"bruck",
            c"radix=2,",
            0,
            "parameters `radix=2,`: parameter 1 is ``, not name=value",
        ),
        (
            c"full:4",
            c"bruck",
            c",radix=2",
            0,
            "parameters `,radix=2`: parameter 0 is ``, not name=value",
        ),
        (
            c"full:4",
            c"bruck",
            c"radix=2,4",
            0,
            "parameters `radix=2,4`: parameter 1 is `4`, not name=value",
        ),
        (c"full:4", c"direct", c"", 4, "rank 4: there are ranks 0 to 3"),
        (
            c"full:4294967295",
            c"direct",
            c"",
            0,
            "4294967295 slots of a rank and 4294967295 ranks: together they are at most 1073741824",
        ),
        (c"full:4\x1b\n", c"direct", c"", 0, "4\\u{1b}\\n"),
    ] {
        assert!(plan(machine, algorithm, parameters, rank).is_null());
        assert!(message().contains(says), "{}", message());
    }
    // SAFETY: null is allowed.
    unsafe {
        topocoll_plan_free(ptr::null_mut());
        topocoll_exchange_free(ptr::null_mut());
        assert!(topocoll_exchange_new(ptr::null()).is_null());
        assert_eq!(topocoll_exchange_cancel(ptr::null_mut()), Status::Argument);
    }
}

/// A saturated size exceeds that of any buffer.
#[test]
fn sizes_that_overflow_saturate() {
    let plan = plan(c"full:8", c"bruck", c"radix=2", 1);
    // SAFETY: the plan is live until freed.
    unsafe {
        for block in [u64::MAX / 4 + 1, u64::MAX] {
            assert_eq!(topocoll_plan_output_bytes(plan, block), u64::MAX);
            assert!(topocoll_plan_workspace_bytes(plan, block) >= u64::MAX / 2);
        }
        topocoll_plan_free(plan);
    }
}

#[test]
fn an_exchange_is_cancelled_restarted_and_dropped_midway() {
    let plan = plan(c"full:4", c"bruck", c"radix=2", 1);
    let (input, mut output, mut work) = (vec![1u8; 32], vec![0u8; 32], vec![0u8; 64]);
    // SAFETY: the handles are live until freed at the end, the buffers longer than they.
    unsafe {
        assert!(topocoll_plan_workspace_bytes(plan, 8) <= 64);
        let exchange = topocoll_exchange_new(plan);
        topocoll_plan_free(plan);
        let mut buffers = Buffers {
            input: input.as_ptr(),
            input_bytes: 31,
            output: output.as_mut_ptr(),
            output_bytes: 32,
            work: work.as_mut_ptr(),
            work_bytes: 64,
        };
        assert_eq!(topocoll_exchange_begin(exchange, 8, &buffers), Status::Exchange);
        assert!(message().contains("31 bytes, and the exchange needs 32"), "{}", message());
        buffers.input_bytes = 32;
        let mut action = std::mem::zeroed();
        for _ in 0..2 {
            assert_eq!(topocoll_exchange_begin(exchange, 8, &buffers), Status::Ok);
            assert_eq!(topocoll_exchange_poll(exchange, &mut action), Status::Ok);
            assert_eq!((action.kind, action.bytes), (Kind::Receive, 16));
            assert_eq!(topocoll_exchange_complete(exchange, 12345, 1), Status::Exchange);
            assert_eq!(topocoll_exchange_complete(exchange, action.token, 15), Status::Exchange);
            assert!(message().contains("rank 1, step 0: 15 bytes"), "{}", message());
            assert_eq!(topocoll_exchange_poll(exchange, &mut action), Status::Exchange);
        }
        assert_eq!(topocoll_exchange_begin(exchange, 8, &buffers), Status::Ok);
        assert_eq!(topocoll_exchange_poll(exchange, &mut action), Status::Ok);
        assert_eq!(topocoll_exchange_cancel(exchange), Status::Ok);
        topocoll_exchange_free(exchange);
    }
}
