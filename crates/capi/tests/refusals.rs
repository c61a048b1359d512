//! Bad input from C returns a code and a message, and an exchange can be dropped midway.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::ffi::CStr;
use std::ptr;

use topocoll_c::regions::*;
use topocoll_c::request::*;
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

fn request() -> Request {
    // SAFETY: numbers and pointers, for which zero means nothing.
    let mut request: Request = unsafe { std::mem::zeroed() };
    request.size = size_of::<Request>() as u64;
    request.machine = c"torus:4x2".as_ptr();
    request.operation = c"alltoall".as_ptr();
    request.block_bytes = 4;
    request
}

#[test]
fn a_request_is_refused_with_its_own_message() {
    let mut room = [1u8; 200];
    for (alter, says) in [
        (
            (|request| request.size = 8) as fn(&mut Request),
            "`size` of the request is 8, and must be",
        ),
        (|request| request.timing = c"moebius".as_ptr(), "unknown machine `moebius`"),
        (|request| request.timing = c"bluegene-q-midplane-16".as_ptr(), "bluegene-q-midplane-16"),
        (|request| request.ranks = [1u32, 9].as_ptr(), "9"),
        (|request| request.rank = 3, "rank 3 is not in the subset of 2 ranks"),
        (|request| request.ranks = ptr::null(), "`rank_count` is 2, and `ranks` is null"),
        (|request| request.groups = c"peers".as_ptr(), "`ranks` and `groups`: a request has one"),
        (
            |request| {
                (request.ranks, request.rank_count) = (ptr::null(), 0);
                request.groups = c"0,1\n1,2".as_ptr();
            },
            "rank 1 is in groups 0 and 1",
        ),
        (
            |request| {
                (request.sizes_differ, request.algorithm) = (1, c"bruck".as_ptr());
                (request.ranks, request.rank_count) = (ptr::null(), 0);
            },
            "rank 0, step 0: blocks of other ranks pass through",
        ),
        (
            |request| (request.sizes_differ, request.in_place) = (1, 1),
            "blocks in place have one size",
        ),
    ] {
        let ranks = [1u32, 2];
        let mut request = request();
        (request.ranks, request.rank_count, request.rank) = (ranks.as_ptr(), 2, 1);
        (request.message, request.message_bytes) = (room.as_mut_ptr().cast(), room.len() as u64);
        alter(&mut request);
        let mut plan = ptr::null_mut();
        // SAFETY: texts that end with a zero byte, lists and room of these sizes.
        let status = unsafe { topocoll_plan_make(&request, &mut plan) };
        assert_ne!(status, Status::Ok, "{says}");
        assert!(plan.is_null());
        // Without a known size the room is not known either.
        let text = match request.size {
            8 => message(),
            _ => CStr::from_bytes_until_nul(&room).unwrap().to_str().unwrap().to_owned(),
        };
        assert!(text.contains(says), "{text}");
    }
    let mut short = [1u8; 9];
    let mut request = request();
    request.machine = c"m\u{f6}bius".as_ptr();
    (request.message, request.message_bytes) = (short.as_mut_ptr().cast(), 9);
    let mut plan = ptr::null_mut();
    // SAFETY: the same.
    assert_ne!(unsafe { topocoll_plan_make(&request, &mut plan) }, Status::Ok);
    assert_eq!(&short, b"unknown \0");
}

/// The plan of a rank is that of its own group.
#[test]
fn groups_plan_for_the_group_of_the_rank() {
    let mut request = request();
    request.machine = c"cluster:4,3,2".as_ptr();
    request.groups = c"nodes".as_ptr();
    for (rank, blocks) in [(0, 4), (4, 3), (8, 2)] {
        request.rank = rank;
        let mut plan = ptr::null_mut();
        // SAFETY: texts that end with a zero byte, and a plan that is freed once.
        unsafe {
            assert_eq!(topocoll_plan_make(&request, &mut plan), Status::Ok, "{}", message());
            assert_eq!(topocoll_plan_input_bytes(plan, 1), blocks);
            topocoll_plan_free(plan);
        }
    }
}

/// A request of an earlier version ends before the ports of a node.
#[test]
fn a_node_has_ports_of_its_own() {
    let mut request = request();
    request.machine = c"cluster:2x4".as_ptr();
    request.algorithm = c"direct".as_ptr();
    (request.ports, request.node_ports) = (7, 16);
    let whole = request.size;
    let steps = |request: &Request| {
        let mut plan = ptr::null_mut();
        // SAFETY: texts that end with a zero byte, and a plan that is freed once.
        unsafe {
            assert_eq!(topocoll_plan_make(request, &mut plan), Status::Ok, "{}", message());
            let steps = topocoll_plan_steps(plan);
            topocoll_plan_free(plan);
            steps
        }
    };
    assert_eq!(steps(&request), 1);
    request.size = std::mem::offset_of!(Request, node_ports) as u64;
    assert_eq!(steps(&request), 7);
    (request.size, request.ports, request.node_ports) = (whole, 0, 16);
    assert_eq!(steps(&request), 7);
}

#[test]
fn a_plan_says_what_was_chosen_and_its_time() {
    let mut request = request();
    let make = |request: &Request| {
        let mut plan = ptr::null_mut();
        // SAFETY: texts that end with a zero byte.
        assert_eq!(unsafe { topocoll_plan_make(request, &mut plan) }, Status::Ok, "{}", message());
        plan
    };
    // SAFETY: plans that are not freed, and texts that live as long.
    unsafe {
        let chosen = make(&request);
        request.algorithm = topocoll_plan_algorithm(chosen);
        request.parameters = topocoll_plan_parameters(chosen);
        let named = make(&request);
        assert_eq!(topocoll_plan_seconds(chosen), topocoll_plan_seconds(named));
        request.timing = c"paragon-16x16".as_ptr();
        let slower = make(&request);
        assert!(topocoll_plan_seconds(slower) > topocoll_plan_seconds(named));
        for plan in [chosen, named, slower] {
            topocoll_plan_free(plan);
        }
        assert!(topocoll_plan_seconds(ptr::null()).is_nan());
        assert!(topocoll_plan_algorithm(ptr::null()).is_null());
    }
}

/// Drives the exchanges of all ranks in their memories, one piece at a time.
unsafe fn driven(exchanges: &[*mut ExchangeHandle], memories: &mut [[Vec<u8>; 3]]) {
    let piece = |memory: &[Vec<u8>; 3], at: RegionOf| {
        memory[at.memory as usize][at.offset as usize..(at.offset + at.bytes) as usize].to_vec()
    };
    let put = |memory: &mut [Vec<u8>; 3], at: RegionOf, bytes: &[u8]| {
        memory[at.memory as usize][at.offset as usize..(at.offset + at.bytes) as usize]
            .copy_from_slice(bytes);
    };
    let (mut sent, mut waiting, mut done) = (Vec::new(), Vec::new(), 0);
    while done < exchanges.len() {
        done = 0;
        for (rank, &exchange) in (0..).zip(exchanges) {
            loop {
                let mut event = std::mem::MaybeUninit::uninit();
                // SAFETY: an exchange that is not freed; then an event that was written.
                let event = unsafe {
                    assert_eq!(topocoll_exchange_next(exchange, event.as_mut_ptr()), Status::Ok);
                    event.assume_init()
                };
                match event.kind {
                    Kind::Copy => {
                        let bytes = piece(&memories[rank as usize], event.region);
                        put(&mut memories[rank as usize], event.to, &bytes);
                    }
                    Kind::Send => {
                        sent.push((rank, event, piece(&memories[rank as usize], event.region)));
                        // SAFETY: the same.
                        unsafe {
                            topocoll_exchange_complete(exchange, event.token, event.region.bytes)
                        };
                    }
                    Kind::Receive => waiting.push((rank, event)),
                    Kind::Wait => break,
                    Kind::Done => {
                        done += 1;
                        break;
                    }
                }
            }
        }
        waiting.retain(|&(rank, event): &(u32, Event)| {
            let fits = |(from, sent, _): &(u32, Event, Vec<u8>)| {
                (*from, sent.peer, sent.tag) == (event.peer, rank, event.tag)
            };
            let Some(at) = sent.iter().position(fits) else { return true };
            let (_, _, bytes) = sent.remove(at);
            put(&mut memories[rank as usize], event.region, &bytes);
            // SAFETY: the same.
            unsafe {
                let exchange = exchanges[rank as usize];
                topocoll_exchange_complete(exchange, event.token, event.region.bytes);
            }
            false
        });
    }
}

/// All algorithms and operations, in place and not: the caller copies, and every block arrives.
#[test]
fn exchanges_without_pointers_deliver() {
    for (machine, operation, algorithm, in_place) in [
        (c"torus:4x2", c"alltoall", c"bruck", false),
        (c"torus:4x2", c"alltoall", c"suh-shin", true),
        (c"cluster:3,5", c"alltoall", c"node-aware", false),
        (c"full:8", c"alltoall", c"bruck", true),
        (c"full:8", c"allgather", c"concat", false),
        (c"full:8", c"allgather", c"ring", true),
    ] {
        let block = |from: u32, to: u32| match operation.to_bytes() {
            b"alltoall" => [from as u8, to as u8, 1, 2],
            _ => [from as u8, 7, 1, 2],
        };
        let (mut exchanges, mut memories) = (Vec::new(), Vec::new());
        for rank in 0..8 {
            let mut request = request();
            (request.machine, request.operation) = (machine.as_ptr(), operation.as_ptr());
            (request.algorithm, request.rank) = (algorithm.as_ptr(), rank);
            request.in_place = u32::from(in_place);
            let mut plan = ptr::null_mut();
            // SAFETY: texts that end with a zero byte; a plan until it is freed.
            unsafe {
                let made = topocoll_plan_make(&request, &mut plan);
                assert_eq!(made, Status::Ok, "{algorithm:?}: {}", message());
                let bytes = [
                    topocoll_plan_input_bytes(plan, 4),
                    topocoll_plan_output_bytes(plan, 4),
                    topocoll_plan_workspace_bytes(plan, 4),
                ];
                let mut memory = bytes.map(|bytes| vec![0u8; bytes as usize]);
                let all: Vec<u8> = (0..8).flat_map(|to| block(rank, to)).collect();
                let own = block(rank, rank);
                match (operation.to_bytes(), in_place) {
                    (b"alltoall", _) => memory[usize::from(in_place)].copy_from_slice(&all),
                    (_, false) => memory[0].copy_from_slice(&own),
                    (_, true) => memory[1][4 * rank as usize..][..4].copy_from_slice(&own),
                }
                let exchange = topocoll_exchange_new(plan);
                topocoll_plan_free(plan);
                assert_eq!(topocoll_exchange_start(exchange, 4), Status::Ok);
                exchanges.push(exchange);
                memories.push(memory);
            }
        }
        // SAFETY: exchanges until they are freed.
        unsafe {
            driven(&exchanges, &mut memories);
            exchanges.into_iter().for_each(|exchange| topocoll_exchange_free(exchange));
        }
        for (rank, memory) in (0..).zip(&memories) {
            let expected: Vec<u8> = (0..8).flat_map(|from| block(from, rank)).collect();
            assert_eq!(memory[1], expected, "{algorithm:?} on {machine:?}, rank {rank}");
        }
    }
}

#[test]
fn sizes_that_a_plan_cannot_have_are_refused() {
    let (direct, bruck) = (plan(c"full:4", c"direct", c"", 0), plan(c"full:4", c"bruck", c"", 0));
    let (row, mut bytes) = ([1u64, 2, 3, 4], [0u64; 3]);
    // SAFETY: plans until they are freed, lists of four sizes, and room for three.
    unsafe {
        let at = bytes.as_mut_ptr();
        assert_eq!(topocoll_plan_bytes_v(direct, row.as_ptr(), row.as_ptr(), at), Status::Ok);
        assert_eq!(bytes[..2], [10, 10]);
        assert_eq!(topocoll_plan_bytes_v(bruck, row.as_ptr(), row.as_ptr(), at), Status::Plan);
        assert!(message().contains("pass"), "{}", message());
        assert_eq!(topocoll_plan_bytes_v(direct, ptr::null(), row.as_ptr(), at), Status::Argument);
        // Two exchanges keep their own messages.
        let exchanges = [direct, bruck].map(|plan| topocoll_exchange_new(plan));
        for exchange in exchanges {
            assert_eq!(*topocoll_exchange_message(exchange), 0);
        }
        assert_ne!(topocoll_exchange_start_v(exchanges[1], row.as_ptr(), row.as_ptr()), Status::Ok);
        assert_ne!(topocoll_exchange_begin(exchanges[0], 4, ptr::null()), Status::Ok);
        let text = |exchange| CStr::from_ptr(topocoll_exchange_message(exchange)).to_str().unwrap();
        assert_eq!(text(exchanges[0]), "the buffers are null");
        assert!(text(exchanges[1]).contains("pass"), "{}", text(exchanges[1]));
        exchanges.into_iter().for_each(|exchange| topocoll_exchange_free(exchange));
        topocoll_plan_free(direct);
        topocoll_plan_free(bruck);
    }
}
