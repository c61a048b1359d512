"""Blocks of several sizes have the prices, choices and errors of the program."""

import json
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import Program

import topocoll as tc


def drawn(ranks: int, op: str, seed: int) -> npt.NDArray[Any]:
    """Return sizes of which a third is none."""
    draw = np.random.default_rng(seed)
    shape = (ranks, ranks) if op == "alltoall" else (ranks,)
    return draw.integers(0, 5000, shape) * (draw.random(shape) > 0.3)


@pytest.mark.parametrize(
    ("name", "op"),
    [("full:9", "alltoall"), ("torus:4x4", "alltoall"), ("cluster:2,3", "alltoall"), ("full:7", "allgather")],
)
def test_prices_and_choices_are_those_of_the_program(name: str, op: str, program: Program, tmp_path: Path) -> None:
    machine = tc.machine(name)
    demand = drawn(machine.ranks, op, machine.ranks)
    file = tmp_path / "sizes.csv"
    np.savetxt(file, demand.reshape(machine.ranks, -1), "%d", ",")
    said = json.loads(program("select", name, "--op", op, "--demand", str(file), "--json").stdout)
    found = tc.select(machine, op=op, demand=demand)
    assert len(found) == len(said["choices"]) and found.block_bytes == said["block_bytes"]
    assert (found.best.algorithm, found.best.parameters) == tuple(said["recommended"].values())
    assert found.bound["time"] == said["bound"]["time_seconds"]
    for choice, line in zip(found, said["choices"], strict=True):
        assert (choice.algorithm, choice.parameters) == (line["algorithm"], line["parameters"])
        assert (choice.time, choice.steps) == (line["time_seconds"], line["steps"])
        assert choice.link_blocks == pytest.approx(line["link_blocks"])
        schedule = choice.schedule()
        proof = schedule.verify()
        assert proof and proof.counts == schedule.counts
        assert schedule.counts["time"] == pytest.approx(choice.time) == schedule.simulate("steps").time
    parameters: dict[str, Any] = dict(found.best.parameters)
    best = tc.schedule(machine, found.best.algorithm, op=op, demand=demand.tolist(), **parameters)
    other = tc.schedule(machine, found.best.algorithm, op=op, demand=demand * 2, **parameters)
    assert best == found.best.schedule() != other
    # The same schedule from its file.
    best.save(tmp_path / "s.jsonl")
    read = tc.schedule(machine, tmp_path / "s.jsonl", demand=demand)
    given = "simulate", name, "--schedule", str(tmp_path / "s.jsonl"), "--demand", str(file), "--json"
    assert read.counts["time"] == json.loads(program(*given).stdout)["time_seconds"]
    assert pickle.loads(pickle.dumps(read)).counts == read.counts


def test_own_algorithms_are_ranked_by_demand() -> None:
    demand = drawn(5, "alltoall", 1)
    own = [(step - 1, rank, (rank + step) % 5) for step in range(1, 5) for rank in range(5)]
    found = {choice.algorithm: choice for choice in tc.select("full:5", demand=demand, algorithms=[own])}
    assert found["messages"].time == pytest.approx(found["direct"].time)
    counts = tc.schedule("full:5", own, demand=demand).counts
    assert counts["time"] == pytest.approx(found["messages"].time)
    assert counts["bytes"] == sum(max(demand[rank, (rank + step) % 5] for rank in range(5)) for step in range(1, 5))


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [3, 4.5]],
        [[1, True], [3, 4]],
        [[1, -1], [3, 4]],
        [[1, 2], [3, 1 << 41]],
        [[1, 2, 3], [4, 5, 6]],
        [[1], [2]],
        [[1, 2]],
        [[1, 2]] * 3,
        [[1, "x"], [3, 4]],
        [],
    ],
)
def test_errors_are_those_of_the_program(rows: list[list[Any]], program: Program, tmp_path: Path) -> None:
    file = tmp_path / "sizes.csv"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    # A trace, several matrices, is only for select.
    said = program("bounds", "full:2", "--demand", str(file))
    for call in (lambda: tc.select("full:2", demand=rows), lambda: tc.schedule("full:2", "direct", demand=rows)):
        with pytest.raises(tc.Error) as error:
            call()
        assert said.returncode == 2 and str(error.value).replace("demand", str(file), 1) in said.stderr


def test_what_is_no_matrix_is_refused() -> None:
    for demand in (5, 1.5, object(), "sparse:7"):
        with pytest.raises(tc.Error, match=r"demand is .*: rows of bytes, one for each rank"):
            tc.select("full:2", demand=demand)  # type: ignore[arg-type]
    with pytest.raises(tc.Error, match="block is 64, and demand lists the sizes of blocks"):
        tc.select("full:2", demand=[[1, 2], [3, 4]], block=64)


def test_networks_carry_the_bytes_of_each_block(program: Program, tmp_path: Path) -> None:
    demand = drawn(16, "alltoall", 3)
    file = tmp_path / "sizes.csv"
    np.savetxt(file, demand, "%d", ",")
    schedule = tc.schedule("torus:4x4", "direct", demand=demand)
    for model in ("wormhole", "flit", "fluid"):
        given = "simulate", "torus:4x4", "--algorithm", "direct", "--demand", str(file), "--model", model, "--json"
        said = json.loads(program(*given).stdout)
        found = schedule.simulate(model)
        assert found.time == said["time_seconds"]
        assert found.messages == said["messages"] == np.count_nonzero(demand - np.diag(np.diag(demand)))


class Foreign:
    """An array of another library, by DLPack alone."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __dlpack__(self, **given: Any) -> Any:
        return self.array.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", ["full:24", "cluster:4*6"])
def test_a_plan_is_one_of_matchings(name: str) -> None:
    machine = tc.machine(name)
    demand = drawn(24, "alltoall", 9)
    plan = tc.plan(demand, machine)
    nodes = machine.node_of_ranks
    sent = np.zeros_like(demand)
    for row in plan.to:
        senders = np.flatnonzero(row >= 0)
        assert len(set(row[senders])) == len(senders)
        sent[senders, row[senders]] += demand[senders, row[senders]]
        crossing = senders[nodes[senders] != nodes[row[senders]]]
        if machine.nodes < machine.ranks:
            assert len(set(nodes[crossing])) == len(set(nodes[row[crossing]])) == len(crossing)
    np.fill_diagonal(demand, 0)
    assert (sent == demand).all()
    counts = tc.schedule(machine, "demand-matchings", demand=demand).counts
    assert (plan.matchings, plan.bytes) == (len(plan.to), counts["bytes"])
    assert plan.matchings >= plan.least_matchings and plan.bytes >= plan.least_bytes
    by_columns = np.asfortranarray(demand.astype(np.uint64))
    for same in (demand.tolist(), Foreign(demand), demand.astype(np.int32), by_columns):
        assert tc.plan(same, machine) == plan
    assert tc.plan(demand, machine, startup=1 << 60).matchings <= plan.matchings


def test_plans_are_made_at_the_same_time() -> None:
    # Without the GIL another thread counts on while this one plans.
    demand, stop, counted = drawn(1024, "alltoall", 1), threading.Event(), [0]

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    other = threading.Thread(target=count)
    other.start()
    start, before = time.monotonic(), counted[0]
    tc.plan(demand)
    taken, planning = time.monotonic() - start, counted[0] - before
    before = counted[0]
    time.sleep(taken)
    sleeping = counted[0] - before
    stop.set()
    other.join()
    assert planning > sleeping / 10


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[1, 2], [3, 4.5]], "matrix has 2 dimensions of float64"),
        ([1, 2], "matrix has 1 dimensions of int64"),
        ([[1, 2, 3], [4, 5, 6]], "matrix has 2 rows of 3 sizes: 2 ranks have 2 rows of 2"),
        ([[1, 2], [-3, 4]], "matrix: line 2: column 1: `-3`: a size is a whole number"),
        ([[1, 1 << 41], [3, 4]], "matrix: line 1: column 2: `2199023255552`: a size is a whole number"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix: list[Any], says: str) -> None:
    with pytest.raises(tc.Error, match=says):
        tc.plan(matrix)
