"""Values pickle, copy and compare, in tables drawn with fixed seeds; modules that are missing are named."""

import copy
import operator
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import topocoll as tc
from topocoll._machine import _toml

FORMS = ["torus:4x4", "mesh:3x3", "full:6", "cluster:2,3", "fat-tree:2,2", "torus:3x4/0,0+1", "torus:2x2*2"]


def graph(draw: random.Random) -> "nx.Graph[Any]":
    """Return a connected graph with bandwidths."""
    made: nx.Graph[Any] = nx.Graph()
    for node in range(1, draw.randint(3, 6)):
        made.add_edge(draw.randrange(node), node, bandwidth=f"{draw.randint(1, 9)}GB/s")
    return made


def machine_file(shape: str) -> dict[str, Any]:
    """Return the contents of a machine file."""
    units = {"startup": "2us", "per_byte": "1GB/s", "per_hop": "50ns", "rearrangement": "1GB/s", "barrier": "1us"}
    timing = {key: {"value": value, "source": "assumed"} for key, value in units.items()}
    shape_of, ports = ({"value": value, "source": "assumed"} for value in (shape, 2))
    return {"title": "A machine", "shape": shape_of, "ports": ports, "timing": timing}


def drawn(draw: random.Random, folder: Path) -> tc.Machine:
    """Return a machine of any kind; the file that it is of is gone."""
    file = folder / f"m{draw.randrange(1 << 30)}.csv"
    file.write_text("from,to\n" + "".join(f"{node},{node + 1}\n{node + 1},{node}\n" for node in range(3)))
    fields = machine_file(draw.choice(FORMS))
    toml = file.with_suffix(".toml")
    toml.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in fields.items()))
    of: Any = draw.choice([draw.choice(FORMS), toml, f"graph:{file}", fields, graph(draw)])
    machine = tc.machine(of, draw.choice([None, 2, "all", (1, "all")]))
    file.unlink()
    toml.unlink()
    return machine


def check(value: Any) -> None:
    """Check that a value is equal to its pickle and to its copies, and has their hash."""
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert other == value and type(other) is type(value)
        if not isinstance(value, tc.Choice | tc.Verification):
            assert hash(other) == hash(value)
    assert value != object() and value is not None


def test_values_drawn_are_equal_to_their_pickles(tmp_path: Path) -> None:
    draw = random.Random(52)
    for _ in range(12):
        machine, op = drawn(draw, tmp_path), draw.choice(["alltoall", "allgather"])
        check(machine)
        found = tc.select(machine, block=draw.choice([1, 60, 4096]), op=op)
        check(found)
        for choice in draw.sample(found.choices, min(3, len(found))):
            check(choice)
            schedule = choice.schedule()
            check(schedule)
            assert pickle.loads(pickle.dumps(choice)).schedule() == schedule
            own = [tc.schedule(machine, schedule.blocks(), op=op, block=found.block_bytes) for _ in range(2)]
            check(own[0])
            assert own[0] == own[1] != schedule
            proof = schedule.verify()
            check(proof)
            assert proof == pickle.loads(pickle.dumps(schedule)).verify()


@pytest.mark.parametrize("name", [machine["name"] for machine in tc.machines()])
def test_shipped_machines_are_equal_to_their_pickles(name: str) -> None:
    machine = tc.machine(name)
    check(machine)
    other = tc.machine(name, machine.ports + 1)
    check(other)
    same = (other.ports, other.node_ports) == (machine.ports, machine.node_ports)
    assert (other == machine) == same and other.timing == machine.timing


def test_other_values_are_not_equal() -> None:
    ring = [(rank, (rank + 1) % 4, {"bandwidth": "1GB/s"}) for rank in range(4)]
    slow = [*ring[:3], (3, 0, {"bandwidth": "2GB/s"})]
    assert tc.machine(nx.Graph(ring)) == tc.machine(nx.Graph(ring)) != tc.machine(nx.Graph(slow))
    direct = tc.schedule("full:4", "direct")
    others = [
        tc.schedule("full:4", "direct", block=9),
        tc.schedule("full:4", "bruck"),
        tc.schedule("torus:4", "direct"),
    ]
    assert direct == tc.schedule("full:4", "direct") and direct not in others
    found = tc.select("full:4", block=64)
    assert found == tc.select("full:4", block=64) and found != tc.select("full:4", block=65)
    assert found.best != tc.select("torus:4", block=64).best
    routed = [tc.schedule("torus:4", [(0, 0, 2, None, [(0, hops)])]) for hops in (2, -2, 2)]
    assert routed[0] == routed[2] != routed[1]
    assert len({*routed, direct, tc.machine("full:4"), tc.machine("full:4")}) == 4


def test_other_results_are_equal_to_their_pickles(tmp_path: Path) -> None:
    schedule = tc.schedule("torus:4x4", "suh-shin", block=64)
    for value in (schedule.simulate("steps"), schedule.simulate("flit", records=True), schedule.simulate()):
        check(value)
        before = pickle.dumps(value)
        if value.model != "steps":
            assert np.array_equal(value.latencies, pickle.loads(before).latencies)
        assert pickle.loads(before) == value
    check(tc.sweep("torus:4x4", blocks="1:1KiB"))
    check(tc.Report("<p>"))
    (tmp_path / "s.csv").write_text("step,from,to,bytes\n0,0,1,8\n")
    check(tc.schedule("full:4", tmp_path / "s.csv"))
    schedule.save(tmp_path / "s.jsonl")
    check(tc.schedule("torus:4x4", tmp_path / "s.jsonl"))
    # What was computed on first use is not in a pickle.
    size = len(pickle.dumps(schedule))
    assert len(schedule.blocks()) > 0 and len(pickle.dumps(schedule)) == size
    with pytest.raises(tc.NotApplicable, match="not here"):
        raise pickle.loads(pickle.dumps(tc.NotApplicable("not here")))


def test_own_algorithms_are_in_the_pickle_of_a_selection() -> None:
    own = [(step - 1, rank, (rank + step) % 5) for step in range(1, 5) for rank in range(5)]
    found = tc.select("full:5", algorithms=[own])
    check(found)
    (choice,) = (choice for choice in pickle.loads(pickle.dumps(found)) if choice.algorithm == "messages")
    assert choice.schedule() == tc.schedule("full:5", own) and choice.schedule().verify()


def test_a_pool_of_processes_works_on_values() -> None:
    found = tc.select("torus:4x4", block=64)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        made = pool.submit(operator.methodcaller("schedule"), found.best)
        again = pool.submit(tc.select, found.machine, block=64)
        wrong = pool.submit(tc.select, "full:4", block=0)
        assert made.result(30) == found.best.schedule() and again.result(30) == found
        with pytest.raises(tc.Error, match="0"):
            wrong.result(30)


def test_a_machine_whose_file_names_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("from,to\na,b\nb,a\n")
    pickled = pickle.dumps(tc.machine(machine_file(f"graph:{tmp_path}/links.csv")))
    (tmp_path / "links.csv").unlink()
    with pytest.raises(tc.Error, match=r"links\.csv"):
        pickle.loads(pickled)


def test_messages_are_a_table_and_a_graph() -> None:
    schedule = tc.schedule(tc.machine("torus:4x4", 2), "neighbour-rings", block=64)
    table, made = schedule.to_pandas(), schedule.to_networkx()
    assert list(table) == [*(schedule.messages.dtype.names or ()), "blocks"] and len(table) == len(schedule.messages)
    assert (table["blocks"] * 64 == table["bytes"]).all()
    edges = [(data["step"], u, v, data["port"], data["blocks"]) for u, v, data in made.edges(data=True)]
    assert sorted(edges) == sorted(table[["step", "from", "to", "port", "blocks"]].itertuples(index=False, name=None))
    assert sorted(made) == list(range(16)) and made.name == schedule.named
    assert sum(data["bytes"] for _, _, data in made.edges(data=True)) == table["bytes"].sum()


def test_a_module_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, sweep = tc.schedule("torus:4", "direct"), tc.sweep("full:4", blocks=[1])
    for module, call in (
        ("pandas", schedule.to_pandas),
        ("pandas", tc.select("full:4").to_pandas),
        ("pandas", sweep.to_pandas),
        ("networkx", schedule.to_networkx),
        ("networkx", schedule.machine.to_networkx),
        ("matplotlib", sweep.plot),
    ):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(ImportError, match=rf"{module}\S* is not installed: pip install 'topocoll\[notebook\]'"):
            call()
