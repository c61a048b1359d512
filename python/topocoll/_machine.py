"""Machines: short forms, files, dictionaries and networkx graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topocoll import _core
from topocoll._core import Error
from topocoll._values import Value, extra, whole

if TYPE_CHECKING:
    import networkx
    import numpy.typing as npt

    Ports = int | str | tuple[int | str, int | str]


class Machine(Value):
    """A machine: ranks, links, ports and timing. Made by :func:`machine`.

    Machines made of equal texts with equal ports are equal. A pickle holds the text of a file; files that the text
    names are read again.

    Attributes
    ----------
    name : str
        The name, or the short form.
    short_form : str
        The topology, such as ``torus:16x16``.
    ranks, nodes, ports, node_ports, links : int
        The numbers of ranks, of nodes, of messages that a rank, and a node to other nodes, may send in a step, and
        of directed links.
    """

    name: str
    short_form: str
    ranks: int
    nodes: int
    ports: int
    node_ports: int
    links: int

    def __init__(self, core: _core.Machine) -> None:
        self._core = core
        vars(self).update(core.facts())

    @property
    def node_of_ranks(self) -> npt.NDArray[np.uint32]:
        """The node of each rank."""
        return self._core.node_of_ranks()

    @property
    def timing(self) -> dict[str, Any]:
        """Timing values in seconds, one for each class of links or one for all, and their sources."""
        return self._core.timing()

    def with_ports(self, ports: Ports) -> Machine:
        """Return the same machine with other ports, as :func:`machine` takes them."""
        each = ports if isinstance(ports, tuple) else (ports,)
        text = (one if isinstance(one, str) else str(whole("ports", one)) for one in each)
        return Machine(self._core.with_ports(",".join(text)))

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """Return the links between nodes and switches as a graph.

        Returns
        -------
        networkx.MultiDiGraph
            Vertices are named as in reports. They have ``switch``, and nodes the list of their ``ranks``. Edges
            have ``bandwidth`` in bytes per second and ``latency`` in seconds.

        Raises
        ------
        Error
            The machine has no numbered links: any two nodes of it are joined directly.
        """
        with extra():
            import networkx

        if self.links == 0:
            raise Error(f"{self.short_form} has no numbered links: its nodes are fully connected")
        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=self.name)
        names, nodes = self._core.vertices(), self.nodes
        ranks: list[list[int]] = [[] for _ in range(nodes)]
        for rank, node in enumerate(self.node_of_ranks.tolist()):
            ranks[node].append(rank)
        for vertex, name in enumerate(names):
            own = {"ranks": ranks[vertex]} if vertex < nodes else {}
            graph.add_node(name, switch=vertex >= nodes, **own)
        for source, target, per_byte, latency in self._core.link_table():
            rate = 1 / per_byte if per_byte > 0 else float("inf")
            graph.add_edge(names[source], names[target], bandwidth=rate, latency=latency)
        return graph

    def __repr__(self) -> str:
        name = "" if self.name == self.short_form else f"{self.name}: "
        return f"<Machine {name}{self.short_form}, {self.ranks} ranks, ports={self.ports}>"


def machine(
    of: str | os.PathLike[str] | Mapping[str, Any] | networkx.Graph[Any] | Machine,
    ports: Ports | None = None,
    *,
    name: str = "machine",
) -> Machine:
    """Return a machine.

    Parameters
    ----------
    of
        A short form such as ``"torus:16x16"``, the name of a shipped machine, a machine file, the contents of a
        machine file as a dictionary, node-link data, or a networkx graph. In a graph, vertices with ``switch=True``
        hold no rank. Edges may have ``bandwidth`` (or ``capacity``), ``latency``, ``count`` and ``class``: text with
        a unit such as ``"50GB/s"``, or numbers of bytes per second and seconds.
    ports
        Messages that a rank may send, and receive, in one step, or a pair: those of a rank, and those of a node of
        several ranks to and from other nodes. ``"all"`` is no limit. The default is the machine's own.
    name
        The name of a machine that has none: of a dictionary or a graph.

    Raises
    ------
    Error
        An unknown or invalid machine.

    Examples
    --------
    >>> import topocoll as tc
    >>> tc.machine("torus:4x4", ports=4)
    <Machine torus:4x4, 16 ranks, ports=4>
    """
    if isinstance(of, Machine):
        core = of._core
    elif isinstance(of, str | os.PathLike):
        core = _core.Machine("named", os.fspath(of))
    elif isinstance(of, Mapping):
        import json

        if "nodes" in of and ("links" in of or "edges" in of):
            core = _core.Machine("graph", name, _json(of))
        else:
            lines = (f"{json.dumps(key)} = {_toml(value)}\n" for key, value in of.items())
            core = _core.Machine("file", name, "".join(lines))
    elif hasattr(of, "is_directed") and hasattr(of, "nodes") and hasattr(of, "edges"):
        core = _core.Machine("graph", name, _node_link(of))
    else:
        raise Error(f"machine is {of!r}: a short form, a file, a dictionary or a networkx graph")
    made = Machine(core)
    return made if ports is None else made.with_ports(ports)


def machines() -> list[dict[str, Any]]:
    """Return the shipped machines, as ``topocoll machines --json`` lists them.

    Each has ``name``, ``topology``, ``ranks``, ``ports``, ``node_ports``, ``title``, and the ``sources`` of values.
    ``pandas.DataFrame(tc.machines())`` is a table.
    """
    found = []
    for name in _core.shipped():
        core = _core.Machine("named", name)
        facts, sources = core.facts(), dict(core.timing()["sources"])
        numbers = {key: facts[key] for key in ("ranks", "ports", "node_ports")}
        found.append({"name": name, "topology": facts["short_form"], **numbers, "title": sources.pop("title")})
        found[-1]["sources"] = sources
    return found


def _toml(value: object) -> str:
    """Return a value in TOML."""
    import json

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    raise Error(f"a machine has {value!r}: its values are text, numbers, lists and dictionaries")


def _json(value: object) -> str:
    """Return a value in JSON; NumPy's numbers are numbers, and other names of vertices are text."""
    import json

    def other(value: Any) -> object:
        return value.item() if isinstance(value, np.generic) else str(value)

    return json.dumps(value, default=other)


def _node_link(graph: networkx.Graph[Any]) -> str:
    """Return a graph as node-link JSON with the attributes that a machine has."""

    def quantity(value: object, unit: str) -> str:
        if isinstance(value, str):
            return value
        # Without an exponent, which is no part of a number with a unit.
        return f"{float(value):.15f}{unit}"  # type: ignore[arg-type]

    links = []
    for source, target, given in graph.edges(data=True):
        link = {"source": source, "target": target}
        for key in ("class", "count"):
            if key in given:
                link[key] = given[key]
        rate = given.get("bandwidth", given.get("capacity"))
        for key, value, unit in (("bandwidth", rate, "B/s"), ("latency", given.get("latency"), "s")):
            if value is not None:
                link[key] = quantity(value, unit)
        links.append(link)
    nodes = [{"id": v, "switch": bool(d.get("switch", False))} for v, d in graph.nodes(data=True)]
    return _json({"directed": graph.is_directed(), "nodes": nodes, "links": links})
