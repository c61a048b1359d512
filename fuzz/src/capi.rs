//! Calls the C interface with arbitrary arguments; every call returns a code and a message.

use std::ffi::{CString, c_char};
use std::ptr;

use topocoll_c::*;

/// Machines of the plans; all other arguments come from the data.
const MACHINES: [&str; 6] =
    ["full:5", "torus:4x4", "cluster:2,3,1", "mesh:2x3", "full:1", "no such machine"];

/// Maximum bytes of a buffer; calls that need more must be refused.
const MOST: u64 = 1 << 16;

/// Bytes taken from the front; zeros when there are none left.
struct Input<'d>(&'d [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u64 {
        // Mostly small values.
        let bytes = self.byte() % 9;
        (0..bytes).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// An optional text that ends at a zero byte.
    fn text(&mut self) -> Option<CString> {
        let bytes = self.byte();
        let text = (0..bytes).map(|_| self.byte()).take_while(|&byte| byte > 0).collect::<Vec<_>>();
        (bytes > 0).then(|| CString::new(text).expect("no zero byte"))
    }
}

fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// Makes a plan and, if it succeeds, makes calls of an exchange from the data.
pub(crate) fn calls(data: &[u8]) {
    let mut input = Input(data);
    let name = CString::new(MACHINES[usize::from(input.byte()) % MACHINES.len()]).expect("no zero");
    let operations = [c"alltoall", c"allgather", c"", c"\xff"];
    let operation = operations[usize::from(input.byte()) % operations.len()];
    let (algorithm, parameters) = (input.text(), input.text());
    let (block_bytes, ports, rank) = (input.word(), input.word() as u32, input.word() as u32);
    let mut plan = ptr::null_mut();
    // SAFETY: texts end with a zero byte, and `plan` is a valid place for the result.
    let status = unsafe {
        topocoll_plan_new(
            name.as_ptr(),
            operation.as_ptr(),
            pointer(algorithm.as_ref()),
            pointer(parameters.as_ref()),
            block_bytes,
            ports,
            rank,
            &raw mut plan,
        )
    };
    assert_ne!(status, Status::Bug);
    assert_eq!(status == Status::Ok, !plan.is_null());
    if !plan.is_null() {
        // SAFETY: the plan is valid and not freed before.
        unsafe {
            exchanges(&mut input, plan);
            topocoll_plan_free(plan);
        }
    }
}

/// # Safety
/// `plan` is a valid plan.
unsafe fn exchanges(input: &mut Input<'_>, plan: *const PlanHandle) {
    // SAFETY: the caller guarantees `plan`; the lengths in `buffers` are those of its vectors.
    unsafe {
        let asked = input.word();
        let needed = [
            topocoll_plan_input_bytes(plan, asked),
            topocoll_plan_output_bytes(plan, asked),
            topocoll_plan_workspace_bytes(plan, asked),
        ];
        let _ = (topocoll_plan_steps(plan), topocoll_plan_messages(plan));
        let most = topocoll_plan_most_outstanding(plan);
        let exchange = topocoll_exchange_new(plan);
        let mut memory = needed.map(|bytes| vec![0u8; bytes.min(MOST) as usize]);
        let [from, to, work] = &mut memory;
        let buffers = Buffers {
            input: from.as_ptr(),
            input_bytes: from.len() as u64,
            output: to.as_mut_ptr(),
            output_bytes: to.len() as u64,
            work: work.as_mut_ptr(),
            work_bytes: work.len() as u64,
        };
        let mut outstanding = Vec::new();
        for _ in 0..64 {
            let status = match input.byte() % 8 {
                0 => {
                    outstanding.clear();
                    let block = if input.byte() % 4 == 0 { input.word() } else { asked };
                    topocoll_exchange_begin(exchange, block, &raw const buffers)
                }
                1 => topocoll_exchange_complete(exchange, input.word(), input.word()),
                2 => topocoll_exchange_cancel(exchange),
                3 => topocoll_exchange_begin(exchange, asked, ptr::null()),
                4 if !outstanding.is_empty() => {
                    let at = usize::from(input.byte()) % outstanding.len();
                    let (token, bytes) = outstanding.swap_remove(at);
                    topocoll_exchange_complete(exchange, token, bytes)
                }
                _ => {
                    let mut action = std::mem::MaybeUninit::<Action>::uninit();
                    let status = topocoll_exchange_poll(exchange, action.as_mut_ptr());
                    if status == Status::Ok {
                        let action = action.assume_init();
                        if matches!(action.kind, Kind::Send | Kind::Receive) {
                            // A driver may access all bytes of the action.
                            let bytes = action.bytes as usize;
                            match action.kind {
                                Kind::Send => {
                                    drop(std::slice::from_raw_parts(action.data, bytes).to_vec());
                                }
                                _ => action.data.write_bytes(1, bytes),
                            }
                            outstanding.push((action.token, action.bytes));
                            assert!(outstanding.len() as u64 <= most);
                        }
                    }
                    status
                }
            };
            assert_ne!(status, Status::Bug);
        }
        topocoll_exchange_free(exchange);
    }
}
