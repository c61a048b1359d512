"""Bad input gets one exception that names the value, the rule and the place, as the program does."""

import decimal
import enum
import fractions
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Program

import topocoll as tc


def of(step: int = 0, sender: int = 0, receiver: int = 1, blocks: object = None) -> Callable[[], object]:
    return lambda: tc.schedule("full:4", [(step, sender, receiver, blocks)])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tc.machine("tours:4x4"), "did you mean `torus:4x4`?"),
        (lambda: tc.machine("paragon"), "unknown machine `paragon`"),
        (lambda: tc.machine("torus:0x4"), "torus:0x4"),
        (lambda: tc.machine(7), "machine is 7: a short form, a file, a dictionary or a networkx graph"),  # type: ignore[arg-type]
        (lambda: tc.machine("full:4", ports=0), "at least"),
        (lambda: tc.machine("full:4", ports="1,2,3"), "ports is 1,2,3: not a whole number"),
        (lambda: tc.machine("full:4", ports=-1), "ports is -1: not a whole number from 0 to 4294967295"),
        (lambda: tc.machine("full:4", ports=1.5), "ports is 1.5: not a whole number"),  # type: ignore[arg-type]
        (lambda: tc.machine({"shape": "torus:4x4"}), "machine: "),
        (lambda: tc.machine({"title": {1, 2}}), "values are text, numbers, lists and dictionaries"),
        (lambda: tc.machine({"nodes": [], "links": []}), "machine: 0 nodes"),
        (lambda: tc.select("full:4", block="4XB"), "block `4XB`: not a size such as 64, 4KiB or 1MiB"),
        (lambda: tc.select("full:4", block=0), "0"),
        (lambda: tc.select("full:4", block=1.5), "block is 1.5: not a whole number from 0 to 18446744073709551615, or"),  # type: ignore[arg-type]
        (lambda: tc.select("full:4", block=-1), "block is -1"),
        (lambda: tc.select("full:4", op="alltoal"), "alltoal"),
        (lambda: tc.schedule("full:4", "bruk"), "bruck"),
        (lambda: tc.schedule("torus:7x7", "suh-shin"), "suh-shin"),
        (lambda: tc.schedule("full:4", "bruck", radix=9), "radix"),
        (lambda: tc.schedule("full:4", "bruck", radix=1.5), "radix is 1.5: not a whole number from 0 to"),  # type: ignore[arg-type]
        (lambda: tc.schedule("full:4", "bruck", colour="red"), "colour"),
        (of(sender=4), "message 0: from is rank 4: the last rank is 3"),
        (of(receiver=0), "message 0: rank 0 sends to itself"),
        (of(blocks=[(0, 9)]), "message 0: blocks[0] [0,9,0,1024]: destination is rank 9: the last rank is 3"),
        (of(blocks=[(0, 1, 5, 5)]), "message 0: blocks[0] [0,1,5,5]: first byte 5 is not below end byte 5"),
        (of(blocks=[(0, 1, 5)]), "message 0 has the block (0, 1, 5)"),
        (of(blocks=[]), "message 0: a message without blocks"),
        (of(step=-1), "message 0: step is -1: not a whole number from 0 to 4294967295"),
        (lambda: tc.schedule("full:4", [(0, 0)]), "message 0 is (0, 0): a message is (step, sender, receiver)"),
        (lambda: tc.schedule("full:4", [(0, 0, "x")]), "message 0: to is 'x': not a whole number"),
        (lambda: tc.schedule("full:4", [(0, 0, 1, None, [5])]), "routes are rows of 2 whole numbers"),
        (lambda: tc.schedule("full:4", [(0, 0, 1, None, [(5,)])]), "routes are rows of 2 whole numbers"),
        (lambda: tc.schedule("full:4", 7), "algorithm is 7: a name, a path, a class or an object with `messages`"),  # type: ignore[arg-type]
        (lambda: tc.schedule("full:4", int), "algorithm is <class 'int'>: a name"),  # type: ignore[arg-type]
        (lambda: tc.schedule("full:4", lambda rank, step: 1), "<lambda> gives 1 for rank 0 in step 0: receivers"),  # type: ignore[arg-type]
        (
            lambda: tc.schedule("full:4", [(1, 0, 1), (0, 1, 0)]),
            "message 1: step 0 after step 1: steps must not decrease",
        ),
        (lambda: tc.schedule("full:4", [(0, 0, 1, None, [(0, 1)])]), "routes require a grid"),
        (lambda: tc.schedule("full:4", np.zeros(3)), "missing ['step', 'from', 'to']"),
        (
            lambda: tc.schedule("full:4", np.zeros(1, [("step", "f8"), ("from", "u4"), ("to", "u4")])),
            "step of an array of messages is float64",
        ),
        (lambda: tc.schedule("full:2", lambda rank, step: [1 - rank]), "more than 65536 steps: a function ends"),
        (lambda: tc.schedule("full:4", [], radix=3), "messages takes no settings: radix"),
        (lambda: tc.schedule("full:4", "direct").verify("luck"), "method is `luck`: one of replay, classes"),
        (lambda: tc.schedule("full:4", "direct").blocks(3), "step is 3: the schedule has steps 0 to 2"),
        (
            lambda: tc.schedule("full:4", "direct").simulate("magic"),
            "model is `magic`: one of steps, wormhole, flit, fluid",
        ),
        (lambda: tc.schedule("full:4", "direct").simulate("fluid", colour=1), "colour"),
        (lambda: tc.schedule("full:4", "direct").simulate("fluid", window=0), "window is `0`"),
        (lambda: tc.schedule("full:4", "direct").simulate("steps", vcs=2), "the steps model has no parameters"),
        (lambda: tc.schedule("full:4", "direct").simulate("steps", barrier=False), "requires barriers"),
        (lambda: tc.schedule("full:4", "direct").simulate("steps", records=True), "has no records of links"),
        (lambda: tc.schedule("full:4", "direct").simulate("flit"), "flit"),
        (lambda: tc.schedule("full:4", "direct").simulate(routing="up"), "routing is `up`"),
        (lambda: tc.schedule("full:4", "direct").simulate().latencies, "full:4 has no records of links"),
        (lambda: tc.schedule("full:4", "direct").save("s.txt"), "`s.txt` ends in none of"),
        (lambda: tc.schedule("full:4", "direct").save("s.txt", "text"), "format is `text`: one of jsonl, csv"),
        (lambda: tc.schedule("full:4", "direct").save("/dev/full", "csv"), "`/dev/full`: not a regular file"),
        (lambda: tc.schedule("full:4", "direct").save("/tmp", "goal"), "cannot write `/tmp`: not a regular file"),
        (lambda: tc.schedule("full:4", Path("/dev/full")), "cannot read `/dev/full`: not a regular file"),
        (lambda: tc.schedule("full:4", Path("missing.jsonl")), "missing.jsonl"),
        (lambda: tc.sweep("full:4", blocks=[]), "0 block sizes: a sweep has 1 to 256"),
        (lambda: tc.sweep("full:4", blocks=[2, 1]), "block sizes must increase, but 1 B follows 2 B"),
        (lambda: tc.sweep("full:4", blocks="2:1"), "blocks is `2:1`"),
        (lambda: tc.sweep("full:4", named=["bruk"]), "bruk"),
        (lambda: tc.select("full:4", algorithms=[[(0, 0, 1)]]), "messages cannot be ranked: delivery fails"),
        (lambda: tc.machine("full:4").to_networkx(), "full:4 has no numbered links"),
    ],
)
def test_it_names_the_value_and_the_rule(call: Callable[[], object], text: str) -> None:
    with pytest.raises(tc.Error) as error:
        call()
    assert text in str(error.value)
    assert isinstance(error.value, ValueError)


def test_a_schedule_of_sizes_has_no_blocks(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("step,from,to,bytes\n0,0,1,8\n")
    sized = tc.schedule("full:4", tmp_path / "s.csv")
    assert sized.counts["bytes"] == 8
    with pytest.raises(tc.Error, match="no blocks"):
        sized.blocks()
    with pytest.raises(tc.Error, match="blocks"):
        sized.verify()


def test_a_slot_without_a_block_is_named() -> None:
    early = tc.schedule("full:4", [(0, 1, 2, [(0, 2)])])
    with pytest.raises(tc.Error, match="step 0: rank 1 sends rank 2 a slot that holds no block"):
        early.blocks()
    assert not early.verify()


def of_none() -> Iterator[tuple[int, int, int]]:
    yield (0, 0, 1)


def of_machine(machine: tc.Machine) -> Iterator[tuple[int, int, int]]:
    yield (0, 0, machine.ranks - 1)


def of_three(rank: int, step: int, more: int) -> Iterator[int]:
    yield rank


class NoMachine:
    def messages(self) -> Iterator[tuple[int, int, int]]:
        yield (0, 0, 1)


@pytest.mark.parametrize("own", [of_none, of_machine, of_three, NoMachine, NoMachine()])
def test_a_generator_function_in_place_of_a_generator_is_refused(own: Any) -> None:
    what = "a machine" if "NoMachine" in str(own) else "a rank and a step"
    with pytest.raises(tc.Error, match=rf"is called with {what}: .*; it is a generator function: call it"):
        tc.schedule("full:4", own)
    with pytest.raises(tc.Error, match="it is a generator function"):
        tc.select("full:4", algorithms=[own])
    assert len(tc.schedule("full:4", of_none()).messages) == 1

    def of_rank(rank: int, step: int) -> Iterator[int]:
        yield from (to for to in range(4) if to != rank and step == 0)

    assert tc.schedule(tc.machine("full:4", 3), of_rank).verify()


@pytest.mark.parametrize("path", ["missing/s.goal", "missing/grid", "missing/also/s.jsonl", "file/s.csv"])
def test_a_save_that_fails_names_what_was_asked_for(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    schedule = tc.schedule("full:4", "direct")
    with pytest.raises(OSError) as error:
        schedule.save(tmp_path / path, "simgrid" if path.endswith("grid") else "goal")
    assert error.value.filename == str((tmp_path / path).parent) and not error.value.filename2
    assert os.listdir(tmp_path) == ["file"]


class Whole(enum.IntEnum):
    ONE = 1


class Shifted:
    def __init__(self, by: int) -> None:
        self.parameters = {"by": by}

    def messages(self, machine: tc.Machine) -> list[tuple[int, int, int]]:
        return [(0, 0, 1)]


def array(**fields: Any) -> Any:
    row = {"step": 0, "from": 0, "to": 1, "source": 0, "destination": 1, "first": 0, "end": 64} | fields
    out = np.zeros(1, [(name, np.asarray(value).dtype) for name, value in row.items()])
    for name, value in row.items():
        out[name] = value
    return out


#: Every argument that is a whole number, by function and name; 1 is valid. The last are in messages.
INTEGERS: dict[str, Callable[[Any], object]] = {
    "plan.startup": lambda one: tc.plan(np.array([[0, 1], [1, 0]]), startup=one),
    "machine.ports": lambda one: tc.machine("full:4", ports=one),
    "machine.ports of a node": lambda one: tc.machine("cluster:2,2", ports=(1, one)),
    "Machine.with_ports.ports": lambda one: tc.machine("full:4").with_ports(one),
    "select.block": lambda one: tc.select("full:4", block=one),
    "schedule.block": lambda one: tc.schedule("full:4", "direct", block=one),
    "schedule.parameters": lambda one: tc.schedule("torus:8x8", "neighbour-rings", hop=one),
    "schedule.parameters of an own class": lambda one: tc.schedule("full:4", Shifted, by=one),
    "sweep.blocks": lambda one: tc.sweep("full:4", blocks=[one]),
    "sweep.named": lambda one: tc.sweep("torus:8x8", blocks=[64], named={"neighbour-rings": {"hop": one}}),
    "Schedule.blocks.step": lambda one: tc.schedule("full:4", "direct").blocks(one),
    "Schedule.simulate.parameters": lambda one: tc.schedule("torus:4x4", "direct").simulate("fluid", window=one),
    "a step": lambda one: tc.schedule("full:4", [(one, 0, 1)]),
    "a sender": lambda one: tc.schedule("full:4", [(0, one, 0)]),
    "a receiver": lambda one: tc.schedule("full:4", [(0, 0, one)]),
    "a receiver of a function": lambda one: tc.schedule("full:2", lambda rank, step: [one] * (rank == step == 0)),
    "a source": lambda one: tc.schedule("full:4", [(0, 1, 0, [(one, 0)])]),
    "a source of an all-gather": lambda one: tc.schedule("full:4", [(0, 1, 0, [(one,)])], op="allgather"),
    "a destination": lambda one: tc.schedule("full:4", [(0, 0, 1, [(0, one)])]),
    "a first byte": lambda one: tc.schedule("full:4", [(0, 0, 1, [(0, 1, one, 4)])]),
    "an end byte": lambda one: tc.schedule("full:4", [(0, 0, 1, [(0, 1, 0, one)])]),
    "a dimension": lambda one: tc.schedule("torus:4x4", [(0, 0, 1, None, [(one, 1)])]),
    "hops": lambda one: tc.schedule("torus:4x4", [(0, 0, 1, None, [(1, one)])]),
}
OF_ARRAYS = ("step", "to", "source", "destination", "first", "end")


@pytest.mark.parametrize("name", INTEGERS)
def test_floats_and_truth_values_are_no_whole_numbers(name: str) -> None:
    call = INTEGERS[name]
    for one in (1, np.int64(1), np.uint8(1), Whole.ONE):
        call(one)
    wrong = [1.0, 4096.0, float("nan"), np.float32(1), True, False, np.bool_(True), decimal.Decimal(1), 1j, -1 << 70]
    for value in [*wrong, fractions.Fraction(1), 1 << 70, [1]]:
        with pytest.raises(tc.Error, match=r" is .*: not a whole number from "):
            call(value)


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays_of_floats_and_truth_values_are_no_messages(name: str) -> None:
    tc.schedule("full:4", array(**{name: 64 if name == "end" else 0 if name in ("step", "source", "first") else 1}))
    for value in (1.0, True, np.float32(1)):
        with pytest.raises(tc.Error, match=rf"{name} of an array of messages is \w+: it must be whole numbers"):
            tc.schedule("full:4", array(**{name: value}))


def test_no_whole_number_of_the_interface_is_left_out() -> None:
    functions = {name: getattr(tc, name) for name in tc.__all__}
    for kind in (tc.Machine, tc.Schedule, tc.Selection, tc.Sweep, tc.Choice, tc.Simulation, tc.Report):
        methods = {f"{kind.__name__}.{name}": member for name, member in vars(kind).items() if name[0] != "_"}
        functions |= {name: method for name, method in methods.items() if inspect.isfunction(method)}
    for name, function in functions.items():
        for parameter in inspect.signature(function).parameters.values():
            if "int" in str(parameter.annotation) or "Ports" in str(parameter.annotation):
                assert f"{name}.{parameter.name}" in INTEGERS


def test_texts_are_those_of_the_program(program: Program) -> None:
    for arguments, call in (
        (["select", "tours:4x4"], lambda: tc.select("tours:4x4")),
        (["verify", "torus:7x7", "--algorithm", "suh-shin"], lambda: tc.schedule("torus:7x7", "suh-shin")),
        (["verify", "full:4", "--algorithm", "bruk"], lambda: tc.schedule("full:4", "bruk")),
    ):
        said = program(*arguments)
        assert said.returncode == 2
        with pytest.raises(tc.Error) as error:
            call()
        assert str(error.value) in said.stderr


def test_a_file_may_not_raise_the_ports_of_a_machine_file(tmp_path: Path) -> None:
    tc.schedule(tc.machine("torus:16x16", 4), "direct").save(tmp_path / "s.jsonl")
    assert tc.schedule("torus:16x16", tmp_path / "s.jsonl").machine.ports == 4
    with pytest.raises(tc.Error, match="the schedule uses 4 ports, and paragon-16x16 has 1"):
        tc.schedule("paragon-16x16", tmp_path / "s.jsonl")
