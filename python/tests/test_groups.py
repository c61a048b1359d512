"""Groups that exchange at the same time have the prices, schedules and errors of the program."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Program

import topocoll as tc


@pytest.mark.parametrize(
    ("name", "groups"),
    [("torus:4x4", "dim:1"), ("cluster:3*4", "peers"), ("cluster:4,3,3,1", "nodes"), ("full:12", "consecutive:3")],
)
def test_choices_and_schedules_are_those_of_the_program(
    name: str, groups: str, program: Program, tmp_path: Path
) -> None:
    given = (name, "--groups", groups, "--json")
    said = json.loads(program("select", *given).stdout)
    found = tc.select(name, groups=groups)
    assert said["groups"] == groups and found.groups is not None and found.groups[1] == said["ranks"]
    assert (found.best.algorithm, found.best.parameters) == tuple(said["recommended"].values())
    assert found.bound["time"] == said["bound"]["time_seconds"]
    assert found.algorithm_bandwidth == said["choices"][0]["algorithm_bandwidth"]
    for choice, line in zip(found, said["choices"], strict=True):
        assert (choice.algorithm, choice.time) == (line["algorithm"], line["time_seconds"])
    best = found.best.schedule()
    assert best.counts["time"] == pytest.approx(found.best.time) == best.simulate("steps").time
    proof = best.verify()
    # Ranks of a node in different groups take turns at its port.
    assert proof and proof.delivered and proof.counts == best.counts
    assert best.groups is not None and len(best.groups) == found.groups[0] and best.ranks == tc.machine(name).ranks
    group = {rank: number for number, ranks in enumerate(best.groups) for rank in ranks}
    assert all(group[message["from"]] == group[message["to"]] for message in best.messages)
    # The same from lists, from a file, from its own file and from a pickle.
    file = tmp_path / "groups.txt"
    file.write_text("".join(" ".join(map(str, ranks)) + "\n" for ranks in best.groups))
    parameters: dict[str, Any] = dict(best.parameters)
    for other in (best.groups, np.array(best.groups, object), file, str(file)):
        listed = tc.schedule(name, best.algorithm, groups=other, **parameters)
        assert listed.counts == best.counts and listed.groups == best.groups
    best.save(tmp_path / "s.jsonl")
    read = tc.schedule(name, tmp_path / "s.jsonl")
    assert read.groups == best.groups and read.verify() and read.counts["time"] == best.counts["time"]
    for schedule in (best, read):
        assert pickle.loads(pickle.dumps(schedule)).counts == schedule.counts
    simulated = json.loads(program("simulate", name, "--schedule", str(tmp_path / "s.jsonl"), "--json").stdout)
    assert (simulated["ranks"], simulated["time_seconds"]) == (found.groups[1], best.counts["time"])


def test_a_demand_is_that_of_each_group() -> None:
    sizes = np.random.default_rng(1).integers(0, 5000, (4, 4))
    found = tc.select("torus:4x4", groups="dim:0", demand=sizes)
    schedule = found.best.schedule()
    assert schedule.counts["time"] == pytest.approx(found.best.time)
    assert schedule.verify().delivered
    rows = np.zeros((16, 16), int)
    for ranks in schedule.groups or []:
        rows[np.ix_(ranks, ranks)] = sizes
    whole = tc.select("torus:4x4", demand=rows)
    assert whole.bound["time"] <= found.bound["time"] * (1 + 1e-9) <= found.best.time * (1 + 1e-9)
    with pytest.raises(tc.Error, match="a demand matrix requires groups of equal sizes: group 1 has 3 ranks"):
        tc.select("cluster:4,3", groups="nodes", demand=sizes)


def test_the_page_draws_all_groups() -> None:
    page = tc.schedule("torus:4x4", "direct", groups="dim:1").report().html
    assert "one of 4 groups of torus:4x4" in page


def test_groups_that_meet_or_name_nothing_are_refused(tmp_path: Path) -> None:
    for groups, message in [
        ([[0, 1], [1, 2]], "groups: rank 1 is in groups 0 and 1"),
        ([[0, 99]], "groups: line 1: rank 99: there are ranks 0 to 15"),
        ([0, 1], r"groups is \[0, 1\]: a name such as 'peers', a file, or the ranks of each group"),
        (7, "groups is 7: a name such as 'peers', a file, or the ranks of each group"),
        ("rows", "groups: `rows` names no groups"),
        ("tiles:3x1", "groups: `tiles:3x1`: 3 does not divide the side 4"),
        ([], "groups: 0 groups: there is at least one"),
    ]:
        with pytest.raises(tc.Error, match=message):
            tc.select("torus:4x4", groups=groups)  # type: ignore[arg-type]
    schedule = tc.schedule("torus:4x4", "direct", groups="dim:1")
    with pytest.raises(tc.Error, match="the method `classes` follows an exchange of all ranks"):
        schedule.verify("classes")
    with pytest.raises(tc.Error, match="to_jax moves the blocks of all ranks, and the schedule is of 4 groups"):
        schedule.to_jax(None)  # type: ignore[arg-type]
    with pytest.raises(tc.Error, match="own algorithms and schedules are for all ranks"):
        tc.select("torus:4x4", groups="dim:1", algorithms=[tc.schedule("torus:4x4", "direct")])
    schedule.save(tmp_path / "s.jsonl")
    with pytest.raises(tc.Error, match="has its own"):
        tc.schedule("torus:4x4", tmp_path / "s.jsonl", groups="dim:1")
