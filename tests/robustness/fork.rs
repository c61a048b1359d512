//! A child process works after its parent did, and its own child too.

use std::process::Command;
use std::time::{Duration, Instant};

use topocoll::exec::{ThreadedDriver, plan_all};
use topocoll::{Exchange, machine};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(status: i32) -> !;
}

/// What every process does, with the threads of its own.
fn work(driver: &mut ThreadedDriver) -> bool {
    let torus = machine("torus:6x6").unwrap();
    let exchange = Exchange::all_to_all(&torus).unwrap();
    let selection = exchange.select().unwrap();
    let best = selection.best().unwrap();
    let schedule = exchange.schedule(&best.algorithm, &best.parameters).unwrap();
    let proved = exchange.verify(&schedule, None).unwrap().violation.is_none();
    let (input, mut output) = (vec![7; 36 * 36], vec![0; 36 * 36]);
    driver.exchange(1u64, &input, &mut output).unwrap();
    proved && input == output
}

/// Works, and lets a child do the same, `generations` times; returns whether all did.
fn work_and_fork(driver: &mut ThreadedDriver, generations: u32) -> bool {
    if !work(driver) {
        return false;
    }
    if generations == 0 {
        return true;
    }
    // SAFETY: this process has no thread that is in a call: the child may go on as its parent did.
    unsafe {
        let child = fork();
        if child == 0 {
            alarm(30);
            _exit(i32::from(!work_and_fork(driver, generations - 1)));
        }
        let mut status = -1;
        waitpid(child, &raw mut status, 0) == child && status == 0
    }
}

#[test]
fn children_of_a_process_work_on() {
    const ALONE: &str = "TOPOCOLL_TEST_FORK";
    if std::env::var_os(ALONE).is_some() {
        let torus = machine("torus:6x6").unwrap();
        let exchange = Exchange::all_to_all(&torus).unwrap();
        let plans = plan_all(&exchange.schedule("direct", &Default::default()).unwrap()).unwrap();
        assert!(work_and_fork(&mut ThreadedDriver::new(plans, 2), 2));
        return;
    }
    // In a process without the threads of other tests.
    let start = Instant::now();
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "fork::children_of_a_process_work_on"]).env(ALONE, "1");
    assert!(alone.output().unwrap().status.success());
    assert!(start.elapsed() < Duration::from_secs(30));
}
