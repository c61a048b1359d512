"""Measures the figures of the chapter on Python: ``python python/measure.py``."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import topocoll as tc


def fastest(work: Callable[[], object], times: int = 7) -> float:
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def importing() -> float:
    """Return the seconds of an import after that of NumPy."""
    code = "import time, numpy; t = time.perf_counter(); import topocoll; print(time.perf_counter() - t)"
    said = (subprocess.run([sys.executable, "-c", code], check=True, capture_output=True) for _ in range(15))
    return min(float(process.stdout) for process in said)


def main() -> None:
    """Print the figures."""
    print(f"import: {1e3 * importing():.1f} ms more than NumPy")
    for name in ("torus:16x16", "full:64", "paragon-16x16"):
        print(f"select {name}: {1e3 * fastest(partial(tc.select, tc.machine(name))):.2f} ms")
    schedule = tc.schedule("full:1024", "direct")
    core = schedule._core
    print(f"messages: {len(schedule.messages)} in {fastest(lambda: core.messages(None)):.3f} s")
    blocks = schedule.blocks()
    print(f"blocks: {len(blocks)} in {fastest(schedule._program.blocks, 1):.2f} s")
    rows = blocks[["step", "from", "to"]].copy()
    print(f"schedule of an array: {len(rows)} messages in {fastest(lambda: tc.schedule('full:1024', rows), 3):.2f} s")

    def generated() -> None:
        messages = ((step - 1, rank, (rank + step) % 256) for step in range(1, 256) for rank in range(256))
        assert tc.schedule("full:256", messages).verify()

    print(f"256 ranks from a generator, proved: {fastest(generated, 3):.2f} s")
    assert np.array_equal(schedule.messages["step"], blocks["step"])


if __name__ == "__main__":
    main()
