"""Machines from short forms, files, dictionaries and graphs, and back."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import tomllib

import topocoll as tc

ROOT = Path(__file__).parents[2]


def test_a_short_form_a_shipped_name_and_a_file_are_machines() -> None:
    torus = tc.machine("torus:4x8", ports=2)
    assert (torus.ranks, torus.nodes, torus.links, torus.ports) == (32, 32, 128, 2)
    assert repr(torus) == "<Machine torus:4x8, 32 ranks, ports=2>" and tc.machine(torus) is not torus
    shipped = tc.machine("paragon-16x16")
    file = tc.machine(ROOT / "topologies/paragon-16x16.toml")
    assert shipped.timing == file.timing and shipped.timing["startup"] == [75e-6]
    assert tc.machine("cluster:2,3").node_of_ranks.tolist() == [0, 0, 1, 1, 1]
    assert tc.machine("full:4", ports=9).ports == 3
    nodes = tc.machine("cluster:2x4", ports=(1, "all"))
    assert (nodes.ports, nodes.node_ports) == (1, 16)
    at_once = tc.schedule(nodes.with_ports(16), "direct")
    assert (at_once.steps, at_once.ports, at_once.node_ports) == (1, 7, 16)


@pytest.mark.parametrize("path", sorted((ROOT / "topologies").glob("*.toml")), ids=lambda path: path.stem)
def test_every_machine_file_is_the_same_as_a_dictionary(path: Path) -> None:
    fields = tomllib.loads(path.read_text())
    file, given = tc.machine(path), tc.machine(fields, name=path.stem)
    assert (file.name, file.short_form, file.ports, file.timing) == (
        given.name,
        given.short_form,
        given.ports,
        given.timing,
    )


def test_a_graph_is_a_machine() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    for leaf in range(2):
        graph.add_node(("leaf", leaf), switch=True)
        for node in range(3):
            graph.add_edge(("node", 3 * leaf + node), ("leaf", leaf), bandwidth="50GB/s", latency=100e-9)
    graph.add_edge(("leaf", 0), ("leaf", 1), capacity=1e11, latency=np.float64(1e-6), count=2)
    machine = tc.machine(graph, name="two-leaves")
    assert (machine.name, machine.ranks, machine.links) == ("graph:two-leaves", 6, 16)
    back = machine.to_networkx()
    assert sum(back.nodes[v]["switch"] for v in back) == 2
    rates = sorted({round(data["bandwidth"]) for _, _, data in back.edges(data=True)})
    assert rates == [50_000_000_000, 100_000_000_000]
    assert {round(data["latency"] * 1e9) for _, _, data in back.edges(data=True)} == {100, 1000}
    assert tc.select(machine).best.schedule().verify()
    data = tc.machine(
        nx.node_link_data(graph, edges="links") | {"links": [{"source": u, "target": v} for u, v in graph.edges]}
    )
    assert data.links == 14


@pytest.mark.parametrize("name", ["torus:4x4", "mesh:3x3", "fat-tree:2,3", "dragonfly:1,2,1", "torus:4x4/0,0+1"])
def test_a_machine_becomes_a_graph_and_again_a_machine(name: str) -> None:
    machine = tc.machine(name)
    graph = machine.to_networkx()
    assert graph.number_of_edges() == machine.links and nx.is_strongly_connected(graph)
    ranks = [data["ranks"] for _, data in graph.nodes(data=True) if not data["switch"]]
    assert sorted(rank for own in ranks for rank in own) == list(range(machine.ranks))
    again = tc.machine(graph)
    assert (again.ranks, again.links) == (machine.ranks, machine.links)
    rates = [sorted(data["bandwidth"] for _, _, data in g.edges(data=True)) for g in (graph, again.to_networkx())]
    assert np.allclose(rates[0], rates[1])
    # The diameter is the number of hops that the machine's routes need at most.
    direct = tc.schedule(again, "direct")
    assert direct.verify() and direct.messages["hops"].max() <= nx.diameter(graph)


def test_broken_links_are_left_out_of_the_graph() -> None:
    whole, broken = tc.machine("torus:4x4"), tc.machine("torus:4x4/0,0+1")
    assert broken.links == whole.links - 2
