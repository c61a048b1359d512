"""Exchanges over mpi4py: with a communicator of threads, and with MPI where it is installed."""

import importlib.util
import itertools
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from test_docs import blocks

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

    def allgather(self, value: Any) -> list[Any]:
        for other in range(self.size):
            self.boxes[self.rank, other, -1].put(value)
        return [self.boxes[other, self.rank, -1].get(timeout=30) for other in range(self.size)]


class Alone(Comm):
    """Of a rank whose peers agree."""

    def allgather(self, value: Any) -> list[Any]:
        return [value] * self.size


def boxed(ranks: int, tags: int) -> "defaultdict[tuple[int, int, int], queue.Queue[Any]]":
    boxes: defaultdict[tuple[int, int, int], queue.Queue[Any]] = defaultdict(queue.Queue)
    for key in itertools.product(range(ranks), range(ranks), range(-1, tags)):
        boxes[key]
    return boxes


def threads(ranks: int, work: Callable[[int], None]) -> None:
    """Do work of all ranks."""
    with ThreadPoolExecutor(ranks) as pool:
        for done in [pool.submit(work, rank) for rank in range(ranks)]:
            done.result(60)


def exchanged(schedule: tc.Schedule, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the results of all ranks."""
    ranks, boxes = schedule.ranks, boxed(schedule.ranks, schedule.steps)
    out = np.zeros((ranks, ranks, *x.shape[2 if schedule.operation == "alltoall" else 1 :]), x.dtype)
    comms: list[Any] = [Comm(rank, ranks, boxes) for rank in range(ranks)]
    threads(ranks, lambda rank: schedule.exchange(comms[rank], x[rank], out[rank]))
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


class InStep(Comm):
    """With barriers, late messages, and a log of the steps in which messages are sent."""

    def __init__(self, *given: Any, barrier: threading.Barrier, log: list[int]) -> None:
        super().__init__(*given)
        self.random, self.barrier, self.log = random.Random(self.rank), barrier, log

    def Barrier(self) -> None:
        self.barrier.wait(30)

    def Isend(self, buffer: npt.NDArray[np.uint8], dest: int, tag: int) -> Request:
        time.sleep(self.random.choice([0, 0, 0.002]))
        self.log.append(tag)
        return super().Isend(buffer, dest, tag)


@pytest.mark.parametrize(
    ("name", "algorithm"), [("torus:2x4", "link-matchings"), ("full:6", "direct"), ("cluster:4,3", "node-aware")]
)
def test_barriers_keep_ranks_in_step(name: str, algorithm: str) -> None:
    schedule = tc.schedule(name, algorithm)
    ranks = schedule.ranks
    x = np.random.default_rng(2).random((ranks, ranks, 3))
    logs: dict[str, list[int]] = {"free": [], "barrier": []}
    for sync, log in logs.items():
        boxes, out, barrier = boxed(ranks, schedule.steps), np.zeros_like(x), threading.Barrier(ranks)
        comms: list[Any] = [InStep(rank, ranks, boxes, barrier=barrier, log=log) for rank in range(ranks)]

        def work(rank: int, sync: str = sync, comms: list[Any] = comms, out: npt.NDArray[Any] = out) -> None:
            schedule.exchange(comms[rank], x[rank], out[rank], sync=sync)

        threads(ranks, work)
        assert np.array_equal(out, x.swapaxes(0, 1))
    assert logs["barrier"] == sorted(logs["barrier"])
    assert name.startswith("cluster") or logs["free"] != sorted(logs["free"])


def test_wrong_buffers_are_refused() -> None:
    schedule = tc.schedule("full:4", "direct")
    comm: Any = Alone(0, 4, defaultdict(queue.Queue))
    fixed = np.zeros((4, 2))
    fixed.flags.writeable = False
    good = np.zeros((4, 2))
    for other, send, receive, text in (
        (Alone(0, 5, defaultdict(queue.Queue)), good, good, "the communicator has 5 ranks, the schedule 4"),
        (comm, good, np.zeros((3, 2)), "recvbuf is (3, 2): contiguous and writeable, with the blocks of 4 ranks"),
        (comm, good, fixed, "recvbuf is (4, 2): contiguous and writeable"),
        (comm, [[1]], good, "sendbuf is list: a NumPy array without objects"),
        (comm, good, np.zeros((4, 2), object), "recvbuf is ndarray: a NumPy array without objects"),
        (comm, good, np.zeros((2, 4)).T, "recvbuf is (4, 2)"),
        (comm, good[:2], good, "sendbuf is (2, 2) of float64: it must be (4, 2) of float64"),
        (comm, good.astype(int), good, "it must be (4, 2) of float64"),
    ):
        with pytest.raises(tc.Error) as error:
            schedule.exchange(other, send, receive)  # type: ignore[arg-type]
        assert text in str(error.value)
    with pytest.raises(tc.Error, match="sync is 'often': it must be free or barrier"):
        schedule.exchange(comm, good, good, sync="often")


def sized() -> tc.Schedule:
    """Return a schedule that cannot be carried out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.csv")
        path.write_text("step,from,to,bytes\n0,0,1,8\n")
        return tc.schedule("full:5", path)


#: What one of several ranks does wrong: another schedule, or other buffers.
WRONG: list[Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]] = [
    lambda one, other, send, receive: (one, send[:2], receive),
    lambda one, other, send, receive: (one, send, receive[:, :1]),
    lambda one, other, send, receive: (one, None, receive),
    lambda one, other, send, receive: (other, send, receive),
    lambda one, other, send, receive: (sized(), send, receive),
    lambda one, other, send, receive: (tc.schedule("full:4", "direct"), send, receive),
    lambda one, other, send, receive: (one, send[:, :2], np.zeros_like(send[:, :2])),
    lambda one, other, send, receive: (one, send.astype("f4"), receive.astype("f4")),
]


def test_exchanges_follow_each_other_and_errors() -> None:
    # Plans in turn, sizes that change, ranks that are late, and exchanges that one rank makes wrong: then all raise
    # an error, and the next exchange is right.
    ranks, rounds = 5, 60
    plans = [tc.schedule("full:5", name) for name in ("direct", "bruck", "one-factor")]
    boxes = boxed(ranks, max(plan.steps for plan in plans))

    def work(rank: int) -> None:
        comm: Any = Comm(rank, ranks, boxes)
        same, own = random.Random(52), random.Random(rank)
        for turn in range(rounds):
            one, other = same.sample(plans, 2)
            elements, failing, wrong = same.randint(3, 40), same.randrange(2 * ranks), same.choice(WRONG)
            send = np.arange(ranks * elements).reshape(ranks, elements) + 1e3 * rank + 1e6 * turn
            receive = np.zeros_like(send)
            time.sleep(own.choice([0, 0, 0, 0.002]))
            if failing >= ranks:
                one.exchange(comm, send, receive)
                wanted = (send - 1e3 * rank)[rank] + 1e3 * np.arange(ranks)[:, None]
                assert np.array_equal(receive, wanted)
                continue
            with pytest.raises(
                tc.Error, match=r"refuses the exchange|exchanges blocks|sendbuf is|recvbuf is|4$|no blocks"
            ):
                plan, *buffers = wrong(one, other, send, receive) if rank == failing else (one, send, receive)
                plan.exchange(comm, *buffers)
            assert not receive.any()

    threads(ranks, work)
    assert all(box.empty() for box in boxes.values())


#: After the program of the chapter: exchanges in a row, of several plans and sizes, with late ranks and errors.
CODE = """
import random, time
plans = [tc.schedule("full:4", name) for name in ("direct", "bruck")]
same, own = random.Random(1), random.Random(comm.rank)
for turn in range(200):
    plan, elements, failing = same.choice(plans), same.randint(1, 2000), same.randrange(40)
    send = (np.arange(4 * elements) + 9000 * comm.rank + turn).reshape(4, elements)
    receive, wanted = np.zeros_like(send), np.zeros_like(send)
    time.sleep(own.choice([0, 0, 0, 0.001]))
    try:
        plan.exchange(comm, send[:1] if comm.rank == failing else send, receive)
        comm.Alltoall(send, wanted)
        assert failing > 3 and np.array_equal(receive, wanted)
    except tc.Error as error:
        assert failing < 4 and (comm.rank == failing or f"rank {failing} refuses the exchange" in str(error))
print("equal", flush=True)
"""


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="without mpi4py")
def test_four_processes_exchange_over_mpi() -> None:
    launcher = shutil.which("mpirun.openmpi")
    if launcher is None:
        pytest.skip("without Open MPI")
    code = blocks("docs/src/python.md")[-1] + CODE
    command = [launcher, "--oversubscribe", "--allow-run-as-root", "-np", "4", sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ}, timeout=120)
    assert said.returncode == 0 and said.stdout.count("equal") == 4, said.stderr[-2000:]
