"""Bad input gets one exception that names the value, the rule and the place, as the program does."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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
        (lambda: tc.select("full:4", block=1.5), "block is 1.5: bytes, a number or text such as '4KiB'"),  # type: ignore[arg-type]
        (lambda: tc.select("full:4", block=-1), "block is -1"),
        (lambda: tc.select("full:4", op="alltoal"), "alltoal"),
        (lambda: tc.schedule("full:4", "bruk"), "bruck"),
        (lambda: tc.schedule("torus:7x7", "suh-shin"), "suh-shin"),
        (lambda: tc.schedule("full:4", "bruck", radix=9), "radix"),
        (lambda: tc.schedule("full:4", "bruck", radix=1.5), "radix=1.5: a parameter is a whole number or a word"),  # type: ignore[arg-type]
        (lambda: tc.schedule("full:4", "bruck", colour="red"), "colour"),
        (of(sender=4), "message 0: from is rank 4: the last rank is 3"),
        (of(receiver=0), "message 0: rank 0 sends to itself"),
        (of(blocks=[(0, 9)]), "message 0: a destination is rank 9: the last rank is 3"),
        (of(blocks=[(0, 1, 5, 5)]), "message 0: bytes 5..5 of a block of 1024 bytes"),
        (of(blocks=[(0, 1, 5)]), "message 0 has the block (0, 1, 5)"),
        (of(blocks=[]), "message 0: a message without blocks"),
        (of(step=-1), "message 0 has -1: not a whole number from 0 to 4294967295"),
        (lambda: tc.schedule("full:4", [(0, 0)]), "message 0 is (0, 0): a message is (step, sender, receiver)"),
        (lambda: tc.schedule("full:4", [(0, 0, "x")]), "messages are rows of 3 whole numbers"),
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


def test_texts_are_those_of_the_program() -> None:
    root = Path(__file__).parents[2]
    program = root / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/topocoll"
    if not program.exists():
        pytest.skip("the program is not built")
    for arguments, call in (
        (["select", "tours:4x4"], lambda: tc.select("tours:4x4")),
        (["verify", "torus:7x7", "--algorithm", "suh-shin"], lambda: tc.schedule("torus:7x7", "suh-shin")),
        (["verify", "full:4", "--algorithm", "bruk"], lambda: tc.schedule("full:4", "bruk")),
    ):
        said = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert said.returncode == 2
        with pytest.raises(tc.Error) as error:
            call()
        assert str(error.value) in said.stderr


def test_a_file_may_not_raise_the_ports_of_a_machine_file(tmp_path: Path) -> None:
    tc.schedule(tc.machine("torus:16x16", 4), "direct").save(tmp_path / "s.jsonl")
    assert tc.schedule("torus:16x16", tmp_path / "s.jsonl").machine.ports == 4
    with pytest.raises(tc.Error, match="the schedule uses 4 ports, and paragon-16x16 has 1"):
        tc.schedule("paragon-16x16", tmp_path / "s.jsonl")
