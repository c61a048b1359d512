"""Exchanges over mpi4py: with a communicator of threads, and with MPI where it is installed."""

import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import topocoll as tc


class Request:
    def __init__(self, wait: Callable[[], None]) -> None:
        self.Wait = wait


class Comm:
    """A communicator of one of several threads."""

    def __init__(self, rank: int, size: int, boxes: "defaultdict[tuple[int, int, int], queue.Queue[bytes]]") -> None:
        self.rank, self.size, self.boxes = rank, size, boxes

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Isend(self, buffer: npt.NDArray[np.uint8], dest: int, tag: int) -> Request:
        self.boxes[self.rank, dest, tag].put(buffer.tobytes())
        return Request(lambda: None)

    def Irecv(self, buffer: npt.NDArray[np.uint8], source: int, tag: int) -> Request:
        def wait() -> None:
            buffer[:] = np.frombuffer(self.boxes[source, self.rank, tag].get(timeout=30), np.uint8)

        return Request(wait)


def exchanged(schedule: tc.Schedule, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the results of all ranks."""
    ranks = schedule.ranks
    boxes: defaultdict[tuple[int, int, int], queue.Queue[bytes]] = defaultdict(queue.Queue)
    for step in range(schedule.steps):
        for message in schedule.messages[schedule.messages["step"] == step]:
            boxes[int(message["from"]), int(message["to"]), step]
    out = np.zeros((ranks, ranks, *x.shape[2 if schedule.operation == "alltoall" else 1 :]), x.dtype)
    comms: list[Any] = [Comm(rank, ranks, boxes) for rank in range(ranks)]
    run = [threading.Thread(target=schedule.exchange, args=(comm, x[comm.rank], out[comm.rank])) for comm in comms]
    for thread in run:
        thread.start()
    for thread in run:
        thread.join()
    return out


@pytest.mark.parametrize(
    ("name", "ports", "op"),
    [
        ("torus:2x4", 4, "alltoall"),
        ("full:7", 2, "alltoall"),
        ("cluster:4,4", 4, "alltoall"),
        ("torus:2x4", 2, "allgather"),
    ],
)
def test_every_algorithm_exchanges(name: str, ports: int, op: str) -> None:
    machine = tc.machine(name, ports)
    ranks = machine.ranks
    shape = (ranks, ranks, 5, 3) if op == "alltoall" else (ranks, 5, 3)
    x = np.random.default_rng(1).random(shape)
    wanted = x.swapaxes(0, 1) if op == "alltoall" else np.broadcast_to(x, (ranks, *x.shape))
    seen = set()
    for choice in tc.select(machine, block=120, op=op):
        if choice.algorithm not in seen:
            seen.add(choice.algorithm)
            assert np.array_equal(exchanged(choice.schedule(), x), wanted), choice.named


def test_wrong_buffers_are_refused() -> None:
    schedule = tc.schedule("full:4", "direct")
    comm: Any = Comm(0, 4, defaultdict(queue.Queue))
    good = np.zeros((4, 2))
    for other, send, receive, text in (
        (Comm(0, 5, defaultdict(queue.Queue)), good, good, "the communicator has 5 ranks, the schedule 4"),
        (comm, good, np.zeros((3, 2)), "recvbuf is (3, 2): contiguous, with the blocks of 4 ranks"),
        (comm, good, np.zeros((2, 4)).T, "recvbuf is (4, 2)"),
        (comm, good[:2], good, "sendbuf is (2, 2) of float64: it must be (4, 2) of float64"),
        (comm, good.astype(int), good, "it must be (4, 2) of float64"),
    ):
        with pytest.raises(tc.Error) as error:
            schedule.exchange(other, send, receive)  # type: ignore[arg-type]
        assert text in str(error.value)


CODE = """
import numpy as np, topocoll as tc
from mpi4py import MPI

comm = MPI.COMM_WORLD
for name in ("direct", "bruck"):
    schedule = tc.schedule("full:4", name)
    send = (np.arange(4 * 1000) + 4000 * comm.rank).reshape(4, 1000)
    receive, wanted = np.zeros_like(send), np.zeros_like(send)
    schedule.exchange(comm, send, receive)
    comm.Alltoall(send, wanted)
    assert np.array_equal(receive, wanted)
print("equal", flush=True)
"""


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="without mpi4py")
def test_four_processes_exchange_over_mpi() -> None:
    launcher = shutil.which("mpirun.openmpi")
    if launcher is None:
        pytest.skip("without Open MPI")
    command = [launcher, "--oversubscribe", "--allow-run-as-root", "-np", "4", sys.executable, "-c", CODE]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ}, timeout=120)
    assert said.returncode == 0 and said.stdout.count("equal") == 4, said.stderr[-2000:]
