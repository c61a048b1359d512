"""Long work: other threads go on, Ctrl-C stops it, and progress is shown where somebody can see it."""

import os
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import topocoll as tc
from topocoll import _progress

#: A simulation of minutes.
LONG = 'tc.schedule("torus:16x16", "direct", block=1 << 20).simulate("flit")'


def test_other_threads_go_on_during_work() -> None:
    steps, done = 0, threading.Event()
    schedule = tc.schedule("torus:16x16", "direct", block=1024)

    def work() -> None:
        schedule.simulate("wormhole")
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    # With the GIL held by the work, this loop would run only after it.
    while not done.is_set():
        steps += 1
        time.sleep(0)
    thread.join()
    assert steps > 10


def test_threads_share_a_schedule() -> None:
    schedule, found = tc.schedule("torus:8x8", "direct", block=1024), list[float]()
    threads = [threading.Thread(target=lambda: found.append(schedule.simulate().time)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(found)) == 1


@pytest.mark.parametrize(
    "work",
    [
        LONG,
        'tc.schedule("full:4096", "direct").verify("replay")',
        'tc.schedule("full:3000", "direct").messages',
        'tc.select("torus:64x64x64")',
    ],
)
def test_ctrl_c_stops_work(work: str) -> None:
    code = f"""
import signal, time, topocoll as tc
# A shell in the background ignores the signal, and its children do.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begins", flush=True)
try:
    {work}
    print("ends", flush=True)
except KeyboardInterrupt:
    used = time.process_time()
    time.sleep(1.0)
    print("stopped", time.process_time() - used, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "begins\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0].split()
    finally:
        process.kill()
    # Work that ends before the signal leaves it to the interpreter.
    assert said and (said[0] == "ends" or (said[0] == "stopped" and process.returncode == 0))
    if work == LONG:
        # The threads of the work have stopped too.
        assert said[0] == "stopped" and float(said[1]) < 0.8


def test_an_exception_of_a_signal_handler_is_raised() -> None:
    def handler(*_: object) -> None:
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="enough"):
            eval(LONG)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_progress_is_shown_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Bar:
        def __init__(self, **given: object) -> None:
            self.n, self.total, self.closed, self.given = 0, given["total"], False, given
            bars.append(self)

        def update(self, more: int) -> None:
            self.n += more

        def close(self) -> None:
            self.closed = True

    fake = types.ModuleType("tqdm.auto")
    fake.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
    monkeypatch.setattr(_progress, "_visible", lambda: True)
    schedule = tc.schedule("full:16", "direct")
    schedule.simulate()
    assert not bars
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    large = tc.schedule("torus:16x16", "direct", block=4096)
    large.simulate("wormhole")
    assert len(bars) == 1 and bars[0].closed and 0 < bars[0].n <= 256 * 255
    assert bars[0].total == 256 * 255 and bars[0].given["desc"] == "simulation"


def test_no_bar_is_shown_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with _progress.bar("work") as tick:
        assert tick is None
    assert capfd.readouterr() == ("", "")


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, topocoll; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    loaded = set(said.stdout.split())
    assert "numpy" in loaded and not loaded & {"pandas", "matplotlib", "networkx", "jax", "tqdm", "mpi4py"}
