"""Blocks of several sizes have the prices, choices and errors of the program."""

import json
import pickle
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
    said = program("select", "full:2", "--demand", str(file))
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
    schedule = tc.schedule("full:2", "direct", demand=[[1, 2], [3, 4]])
    with pytest.raises(tc.Error, match="the fluid model requires blocks of one size"):
        schedule.simulate()
