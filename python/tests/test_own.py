"""Own algorithms become schedules that are proved, counted, simulated, exported and ranked."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topocoll as tc

EXAMPLES = Path(__file__).parents[2] / "examples/python"
Threes: Any = runpy.run_path(str(EXAMPLES / "own_algorithm.py"))["Threes"]
by_digits: Any = runpy.run_path(str(EXAMPLES / "own_algorithm.py"))["by_digits"]


@pytest.mark.parametrize("own", [Threes, Threes(), by_digits])
def test_a_class_an_object_or_a_function_is_an_algorithm(own: Any, tmp_path: Path) -> None:
    schedule = tc.schedule("torus:8x8", own, block=64)
    assert schedule.verify() and schedule.algorithm in ("threes", "by_digits")
    assert schedule.counts["steps"] == (6 if own is by_digits else 63)
    assert schedule.simulate("fluid").time > 0
    schedule.save(tmp_path / "own.jsonl")
    assert tc.schedule("torus:8x8", tmp_path / "own.jsonl").verify()


def test_own_algorithms_are_ranked_with_all_others() -> None:
    machine = tc.machine("full:64")
    found = tc.select(machine, block=16, algorithms=[Threes, by_digits])
    own = {choice.algorithm: choice for choice in found if choice.algorithm in ("threes", "by_digits")}
    assert own["by_digits"].steps == 6 and own["threes"].steps == 63
    assert own["by_digits"].schedule().verify()
    counts = tc.schedule(machine, by_digits, block=16).counts
    assert own["by_digits"].time == pytest.approx(counts["time"])
    lines = tc.sweep(machine, blocks=[16, 4096], algorithms=[Threes]).lines
    assert lines["threes"][1].link_blocks == 63


def test_an_algorithm_that_does_not_apply_is_listed_with_its_reason() -> None:
    found = tc.select("full:9", algorithms=[Threes])
    assert ("threes", "9 ranks: requires a number that is not a multiple of 3") in found.rejected
    with pytest.raises(tc.NotApplicable, match="multiple of 3"):
        tc.schedule("full:9", Threes)


def test_other_exceptions_of_an_algorithm_are_raised() -> None:
    def broken(rank: int, step: int) -> list[int]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tc.select("full:4", algorithms=[broken])


def test_settings_reach_the_class_and_name_the_schedule() -> None:
    class Shifted:
        def __init__(self, by: int = 1) -> None:
            self.parameters = {"by": by}

        def messages(self, machine: tc.Machine) -> Iterator[tuple[int, int, int]]:
            ranks = machine.ranks
            for step in range(1, ranks):
                for rank in range(ranks):
                    yield step - 1, rank, (rank + step * self.parameters["by"]) % ranks

    schedule = tc.schedule("full:7", Shifted, by=3)
    assert schedule.verify() and schedule.parameters == {"by": 3} and schedule.named == "Shifted (by=3)"


def test_a_schedule_that_does_not_deliver_is_refused_with_the_block() -> None:
    with pytest.raises(tc.Error, match="Wrong cannot be ranked: delivery fails: after the last step rank 0"):

        class Wrong:
            def messages(self, machine: tc.Machine) -> list[tuple[int, int, int]]:
                return [(0, 0, 1)]

        tc.select("full:3", algorithms=[Wrong])


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(tc.Error, match="direct"):
        tc.select("full:4", algorithms=[tc.schedule("full:4", "direct")])


def test_an_array_of_messages_is_a_schedule() -> None:
    ranks = 6
    step, rank = (grid.ravel() for grid in np.meshgrid(np.arange(1, ranks), np.arange(ranks), indexing="ij"))
    array = np.zeros(len(step), [("step", "u4"), ("from", "u4"), ("to", "i8")])
    array["step"], array["from"], array["to"] = step - 1, rank, (rank + step) % ranks
    schedule = tc.schedule("full:6", array, block=3)
    assert schedule.verify() and schedule.counts["blocks"] == 5
    assert np.array_equal(schedule.messages[["step", "from", "to"]].tolist(), array.tolist())


def test_parts_of_blocks_and_routes_are_taken() -> None:
    # Both ways around a ring of four, half a block each.
    messages: list[Any] = []
    for rank in range(4):
        messages += [(0, rank, (rank + 1) % 4), (0, rank, (rank + 3) % 4)]
    for rank in range(4):
        far = (rank + 2) % 4
        messages += [
            (1, rank, far, [(rank, far, 0, 500)], [(0, 2)]),
            (1, rank, far, [(rank, far, 500, 1024)], [(0, -2)]),
        ]
    schedule = tc.schedule(tc.machine("torus:4", ports=2), messages)
    assert schedule.verify() and schedule.messages["hops"].tolist() == [1] * 8 + [2] * 8
    assert sorted(set(schedule.blocks(1)["end"].tolist())) == [500, 1024]
    with pytest.raises(tc.Error, match=r"message 0: route \[\[0,1\]\]: it leads from rank 0 to rank 1, not to 2"):
        tc.schedule("torus:4", [(0, 0, 2, None, [(0, 1)])])


def test_256_ranks_from_a_generator() -> None:
    schedule = tc.schedule("full:256", Threes)
    assert len(schedule.messages) == 256 * 255 and schedule.verify()


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for example in sorted(EXAMPLES.glob("*.py")):
        runpy.run_path(str(example), run_name="__main__")
    assert (tmp_path / "by_digits.goal").exists() and "by_digits" in capsys.readouterr().out
