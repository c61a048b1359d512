"""Schedules: their messages, proofs, counts, simulations and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from topocoll import _core, _text
from topocoll._core import Error
from topocoll._machine import Machine
from topocoll._own import NotApplicable, Own, listed, name_of
from topocoll._program import Permutation, Program, records
from topocoll._progress import bar
from topocoll._values import Value, extra, settings, whole

if TYPE_CHECKING:
    import jax
    import networkx
    import numpy.typing as npt
    import pandas as pd
    from mpi4py import MPI

    from topocoll._jax import Exchange

#: The fields of :attr:`Schedule.messages`.
MESSAGES = records("step from to port bytes packed hops slots", "u4 u4 u4 u4 u8 u8 u4 u4")

#: The fields of :attr:`Simulation.intervals`; times in picoseconds.
INTERVALS = records("link start end bytes step from to", "u8 u8 u8 u8 u4 u4 u4")

#: What differing sizes of blocks are given as.
Demand: TypeAlias = "npt.NDArray[np.integer[Any]] | Sequence[Sequence[int]] | Sequence[int]"

#: What groups are given as: a name, the path of a file, or the ranks of each.
Groups: TypeAlias = "str | os.PathLike[str] | Iterable[Iterable[int]]"

#: Formats by the ending of a file's name.
_FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".goal": "goal", ".xml": "msccl", ".dot": "dot"}


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a proof.

    It is true if every block is delivered and no rank or node exceeds its ports.

    Attributes
    ----------
    violation : str or None
        The first block that is not delivered, and why; ``None`` proves that all are.
    method : str
        ``replay`` or ``classes``.
    classes : int
        Classes of equivalent ranks.
    resent_blocks : int or None
        Blocks that a rank sends again, by replay of an all-to-all.
    exceeded : int
        Cases of a rank or node with more messages than ports in a step; of groups, which take turns at ports that they
        share, of each group by itself.
    counts : dict
        As :attr:`Schedule.counts`.
    """

    violation: str | None
    method: str
    classes: int
    resent_blocks: int | None
    exceeded: int
    counts: Mapping[str, Any]

    @property
    def delivered(self) -> bool:
        return self.violation is None

    def __bool__(self) -> bool:
        return self.violation is None and self.exceeded == 0


class Simulation(Value):
    """The result of a simulation.

    Attributes
    ----------
    model : str
    barrier : bool
        Whether a barrier separates steps.
    time : float
        The completion time in seconds.
    messages : int
    steps : numpy.ndarray
        ``[steps, 2]``: when each step began and ended, in seconds.
    latency : dict
        The ``average``, ``max``, ``p50`` and ``p99`` of all latencies in seconds; empty in the steps model.
    link_bytes, link_waited : numpy.ndarray
        Bytes on each link, and seconds that messages waited for it. Empty if not every rank and step was simulated:
        ``records=True`` does so.
    link_utilisation : float or None
        The average share of time in which links were busy.
    deadlock : list of tuple
        Sender, receiver and awaited channel of messages that wait for each other.
    accuracy : str
        How near the model was to measured figures.
    """

    def __init__(self, schedule: Schedule, asked: Mapping[str, Any], found: dict[str, Any]) -> None:
        self._schedule, self._asked = schedule, asked
        self._records: npt.NDArray[np.uint8] | None = found.get("intervals") if asked["records"] else None
        self.model: str = found["model"]
        self.barrier: bool = found["barrier"]
        self.time: float = found["time"]
        self.messages: int = found["messages"]
        self.steps: npt.NDArray[np.float64] = found["steps"].reshape(-1, 2)
        self.latency: dict[str, float] = found.get("latency", {})
        self.link_bytes: npt.NDArray[np.uint64] = found.get("link_bytes", np.zeros(0, np.uint64))
        self.link_waited: npt.NDArray[np.float64] = found.get("link_waited", np.zeros(0))
        self.link_utilisation: float | None = found.get("link_utilisation")
        self.deadlock: list[tuple[int, int, str]] = found.get("deadlock", [])
        self.accuracy: str = found.get("accuracy", "")

    @cached_property
    def intervals(self) -> npt.NDArray[np.void]:
        """The intervals in which messages held links: ``link``, ``start`` and ``end`` in picoseconds, ``bytes``,
        ``step``, ``from``, ``to``. Without ``records=True`` the simulation runs once more."""
        if self._schedule.machine.links == 0 or self.model == "steps":
            which = "the steps model" if self.model == "steps" else self._schedule.machine.short_form
            raise Error(f"{which} has no records of links")
        records = self._records
        if records is None:
            records = self._schedule._simulate({**self._asked, "records": True})["intervals"]
        return records.view(INTERVALS)

    @cached_property
    def latencies(self) -> npt.NDArray[np.float64]:
        """Seconds of each message between nodes, from taking its first link to leaving its last one, by step, sender
        and receiver.

        The propagation of the last byte, which :attr:`latency` contains, is not in them. Messages of one step that have
        the same ends are one."""
        held = self.intervals
        held = held[np.lexsort((held["to"], held["from"], held["step"]))]
        if not len(held):
            return np.zeros(0)
        ends = held[["step", "from", "to"]]
        first = np.flatnonzero(np.concatenate([[True], ends[1:] != ends[:-1]]))
        begin, end = np.minimum.reduceat(held["start"], first), np.maximum.reduceat(held["end"], first)
        seconds: npt.NDArray[np.float64] = (end - begin) * 1e-12
        return seconds

    def __repr__(self) -> str:
        schedule, barrier = self._schedule, "with" if self.barrier else "without"
        return (
            f"<Simulation {schedule.named}: {_text.seconds(self.time)} by the {self.model} model, {barrier} barriers>"
        )


def _check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse a folder, a pipe or a device as the place of a file."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise Error(f"cannot write `{os.fspath(path)}`: not a regular file")


class Report(Value):
    """A page: one self-contained HTML file. Made by :meth:`Schedule.report`.

    Attributes
    ----------
    html : str
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a regular file."""
        _check_regular(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return f"<Report of {len(self.html)} characters>"

    def _repr_html_(self) -> str:
        from html import escape

        style = "width: 100%; height: 45em; border: 1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


class Schedule(Value):
    """A schedule for a machine. Made by :func:`schedule`, or by a choice of :func:`topocoll.select`.

    Attributes
    ----------
    machine : Machine
    algorithm : str
    parameters : dict
        With the algorithm's name they reproduce the schedule.
    operation : str
        ``alltoall`` or ``allgather``.
    ranks, ports, node_ports, block_bytes, steps : int
    groups : list of list of int or None
        The ranks of each group that exchanges, all at the same time; ``None`` if all ranks do with all.
    """

    algorithm: str
    parameters: dict[str, int | str]
    operation: str
    ranks: int
    ports: int
    node_ports: int
    block_bytes: int
    steps: int
    groups: list[list[int]] | None

    def __init__(self, core: _core.Schedule) -> None:
        self._core = core
        self.machine = Machine(core.machine)
        vars(self).update(core.facts())

    @property
    def named(self) -> str:
        """The algorithm with its parameters."""
        return _text.named(self.algorithm, self.parameters)

    def __repr__(self) -> str:
        size = _text.size(self.block_bytes)
        return f"<Schedule {self.named}: {self.operation} of {size} blocks on {self.machine.name}, {self.steps} steps>"

    @cached_property
    def messages(self) -> npt.NDArray[np.void]:
        """All messages between ranks, by step, sender and port.

        The fields are ``step``, ``from``, ``to``, ``port``, ``bytes``, ``packed`` (bytes that are packed first),
        ``hops`` and ``slots``. The array is read-only."""
        with bar("messages") as tick:
            array = self._core.messages(tick).view(MESSAGES)
        array.flags.writeable = False
        return array

    @cached_property
    def _blocks(self) -> npt.NDArray[np.void]:
        array = self._program.blocks()
        array.flags.writeable = False
        return array

    @cached_property
    def _program(self) -> Program:
        return Program(self._core)

    def blocks(self, step: int | None = None) -> npt.NDArray[np.void]:
        """Return the blocks that messages carry, in a step or in all.

        Returns
        -------
        numpy.ndarray
            The fields are ``message`` (its place in :attr:`messages`), ``step``, ``from``, ``to``, ``source``,
            ``destination``, and the part of the block, bytes ``first`` to ``end``. A view, read-only.
        """
        if step is None:
            return self._blocks
        step = whole("step", step)
        if step >= self.steps:
            raise Error(f"step is {step}: the schedule has steps 0 to {self.steps - 1}")
        first, end = np.searchsorted(self._blocks["step"], [step, step + 1])
        return self._blocks[first:end]

    @cached_property
    def counts(self) -> dict[str, Any]:
        """Counts as the program names them: ``steps``, ``blocks``, ``link_blocks`` and others, and ``time`` in
        seconds by the steps model."""
        with bar("counts") as tick:
            return self._core.counts(tick)

    def verify(self, method: str | None = None) -> Verification:
        """Prove or refute that every block is delivered.

        Parameters
        ----------
        method
            ``replay`` follows every block, ``classes`` one rank of each class. The default is the cheaper one.

        Raises
        ------
        Error
            The schedule names no blocks, or is too large.
        """
        with bar("proof") as tick:
            found = self._core.verify(method, tick)
        return Verification(**found)

    def simulate(
        self,
        model: str = "fluid",
        *,
        barrier: bool | None = None,
        records: bool = False,
        routing: str = "dimension-order",
        **parameters: int | str,
    ) -> Simulation:
        """Simulate the messages with link contention.

        Parameters
        ----------
        model
            ``steps``, ``wormhole``, ``flit`` or ``fluid``.
        barrier
            Whether a barrier separates steps. By default only in the steps model.
        records
            Simulate every rank and step, and record the use of links.
        routing
            ``dimension-order`` or ``adaptive``, for messages without a route of their own.
        **parameters
            Parameters of the model and of endpoints, such as ``vcs=4`` or ``window=8``.
        """
        if routing not in ("dimension-order", "adaptive"):
            raise Error(f"routing is `{routing}`: one of dimension-order, adaptive")
        asked = {
            "model": model,
            "barrier": barrier,
            "records": records,
            "adaptive": routing == "adaptive",
            "settings": settings(parameters),
        }
        return Simulation(self, asked, self._simulate(asked))

    def _simulate(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        with bar("simulation") as tick:
            return self._core.simulate(asked, asked["settings"], tick)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the schedule to a file.

        Parameters
        ----------
        path
            The file. For ``simgrid`` a folder, empty or new.
        format
            ``jsonl``, ``csv``, ``goal``, ``msccl``, ``dot`` or ``simgrid``. The default follows from the name:
            ``.jsonl``, ``.csv``, ``.goal``, ``.xml`` for MSCCL, ``.dot``.
        """
        # Imported here, as they take milliseconds.
        import tempfile
        from pathlib import Path

        path = Path(path)
        format = format or _FORMATS.get(path.suffix)
        if format is None:
            raise Error(f"`{path}` ends in none of {', '.join(_FORMATS)}: format=NAME is missing")
        with bar("bytes") as tick:
            try:
                if format == "simgrid":
                    path.mkdir(exist_ok=True)
                    if any(path.iterdir()):
                        raise Error(f"`{path}` is not empty")
                    self._core.save(path, str(path), format, tick)
                    return
                _check_regular(path)
                # The file appears whole or not at all.
                with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                    written = Path(folder) / path.name
                    self._core.save(written, str(path), format, tick)
                    written.replace(path)
            except OSError as error:
                place = path if path.parent.is_dir() else path.parent
                raise OSError(error.errno, error.strerror, str(place)) from None

    def report(self) -> Report:
        """Return the page of the exchange, which opens with this schedule: messages that travel, choices, bounds.

        In a notebook it is shown inline."""
        given = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        made = f"tc.schedule({self.machine.name!r}, {self.algorithm!r}, block={self.block_bytes}{given}).report()"
        with bar("page") as tick:
            return Report(self._core.report(made, tick))

    def to_pandas(self) -> pd.DataFrame:
        """Return the messages as a table: the fields of :attr:`messages`, and ``blocks``, their bytes in blocks."""
        with extra():
            import pandas as pd

        table = pd.DataFrame(self.messages)
        return table.assign(blocks=table["bytes"] / self.block_bytes)

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """Return the messages as a graph of ranks.

        Each message is an edge from its sender to its receiver, with ``step``, ``port``, ``bytes``, ``blocks`` and
        ``hops``."""
        with extra():
            import networkx

        graph: networkx.MultiDiGraph[int] = networkx.MultiDiGraph(name=self.named)
        graph.add_nodes_from(range(self.ranks))
        for step, sender, receiver, port, size, _, hops, _ in self.messages.tolist():
            blocks = size / self.block_bytes
            graph.add_edge(sender, receiver, step=step, port=port, bytes=size, blocks=blocks, hops=hops)
        return graph

    def to_ppermute(self) -> list[list[Permutation]]:
        """Return the permutations of each step with messages, as ``lax.ppermute`` takes them.

        Returns
        -------
        list of list of list of tuple
            Of each step, one permutation for each port that is used: pairs of sender and receiver.
        """
        steps = (step for step in self._program.steps() if step.messages)
        return [[step.pairs(group) for group in step.permutations()] for step in steps]

    def to_jax(self, mesh: jax.sharding.Mesh) -> Exchange:
        """Return the exchange as a function of JAX arrays.

        Parameters
        ----------
        mesh
            A mesh of one axis, with a device for each rank.

        Returns
        -------
        Exchange
            An all-to-all takes an array ``[ranks, ranks, ...]`` sharded along its first axis and returns the transpose
            of the first two. An all-gather takes ``[ranks, ...]`` and returns ``[ranks, ranks, ...]``: all blocks at
            each rank. It may be called within ``jax.jit``.
        """
        self._check_whole("to_jax")
        from topocoll._jax import Exchange

        return Exchange(self, self._program, mesh)

    def _check_whole(self, what: str) -> None:
        if self.groups is not None:
            raise Error(f"{what} moves the blocks of all ranks, and the schedule is of {len(self.groups)} groups")

    def exchange(
        self,
        comm: MPI.Comm,
        sendbuf: npt.NDArray[Any],
        recvbuf: npt.NDArray[Any],
        *,
        sync: str = "free",
    ) -> None:
        """Perform the exchange over mpi4py; every rank calls it, in the same order where there are several.

        Parameters
        ----------
        comm
            A communicator with the schedule's number of ranks.
        sendbuf
            The blocks for each rank, an array ``[ranks, ...]``. In an all-gather the one block.
        recvbuf
            Receives the blocks of each rank, an array ``[ranks, ...]`` of the same type.
        sync
            ``barrier`` inserts ``comm.Barrier()`` between steps, so that no rank begins a step before all have ended
            the last one. The same on all ranks.

        Raises
        ------
        Error
            This rank refuses its arguments, or another rank does or has another schedule or size: then all ranks raise
            an error, and have sent no message.
        """
        self._check_whole("exchange")
        from topocoll._mpi import exchange

        exchange(self, comm, sendbuf, recvbuf, sync)


def schedule(
    machine: Machine | str | os.PathLike[str],
    algorithm: str | os.PathLike[str] | Own,
    *,
    block: int | str | None = None,
    op: str = "alltoall",
    demand: Demand | None = None,
    groups: Groups | None = None,
    **parameters: int | str,
) -> Schedule:
    """Return a schedule.

    Parameters
    ----------
    machine
        A machine, or what :func:`topocoll.machine` takes.
    algorithm
        The name of an algorithm, a path to a schedule's file, or an own algorithm: a class or an object with a method
        ``messages``, a function of rank and step, an iterable of messages, or an array of messages.
    block
        Bytes of a block, a number or text such as ``"4KiB"``. The default is 1 KiB.
    op
        ``alltoall`` or ``allgather``.
    demand
        Bytes of each block, where they differ, as of :func:`select`. Counts, proofs and the steps model use them;
        messages and files have blocks of their mean, rounded up.
    groups
        As of :func:`select`. Messages and counts are those of all groups, ``demand`` is that of each.
    **parameters
        Parameters of the algorithm, such as ``radix=4``. Own classes are called with them.

    Raises
    ------
    Error
        The algorithm does not exist or does not apply, or a message is not valid.

    Examples
    --------
    >>> import topocoll as tc
    >>> tc.schedule("torus:8x8", "suh-shin", block=64).counts["steps"]
    6
    """
    from topocoll._machine import machine as machine_of

    machine = machine_of(machine)
    if isinstance(algorithm, os.PathLike):
        if groups is not None:
            raise Error(f"groups is {groups!r}: the file {os.fspath(algorithm)} has its own")
        with bar("bytes") as tick:
            return Schedule(_core.read(machine._core, algorithm, sizes(demand), tick))
    request = question(machine, op, block, demand, groups)
    if isinstance(algorithm, str):
        with bar("schedule") as tick:
            return Schedule(_core.Schedule(request, algorithm, settings(parameters), tick))
    return Schedule(listed(request, machine, op, algorithm, parameters))


def block_bytes(block: int | str) -> int:
    """Return the bytes of a block: a number, or text such as ``"4KiB"``."""
    if isinstance(block, str):
        return _core.block_bytes(block)
    return whole("block", block, (1 << 64) - 1, also=", or text such as '4KiB'")


def sizes(demand: Demand | None) -> str | None:
    """Return the lines of a file of a demand matrix."""
    if demand is None:
        return None
    if isinstance(demand, str) or not np.iterable(demand):
        raise Error(f"demand is {demand!r}: rows of bytes, one for each rank")
    return "".join(",".join(map(str, row if np.iterable(row) else [row])) + "\n" for row in demand)


def groups_text(groups: Groups | None) -> str | None:
    """Return the name of groups, or lines with the ranks of each."""
    if groups is None:
        return None
    if isinstance(groups, os.PathLike) or (isinstance(groups, str) and os.path.isfile(groups)):
        with open(groups, encoding="utf-8") as file:
            return file.read()
    if isinstance(groups, str):
        return groups
    listed = [list(ranks) if np.iterable(ranks) else None for ranks in groups] if np.iterable(groups) else [None]
    if None in listed:
        raise Error(f"groups is {groups!r}: a name such as 'peers', a file, or the ranks of each group")
    return "\n".join(",".join(map(str, ranks or [])) or "-" for ranks in listed)


def question(
    machine: Machine, op: str, block: int | str | None, demand: Demand | None, groups: Groups | None = None
) -> _core.Request:
    """Return what a machine is asked for."""
    if block is not None and demand is not None:
        raise Error(f"block is {block!r}, and demand lists the sizes of blocks: give one of them")
    size = 1024 if block is None else block_bytes(block)
    return _core.Request(machine._core, op, size, sizes(demand), groups_text(groups))


def request_of(
    machine: Machine,
    op: str,
    block: int | str | None,
    algorithms: Iterable[Own | Schedule],
    demand: Demand | None = None,
    groups: Groups | None = None,
) -> tuple[_core.Request, list[tuple[str, str]]]:
    """Return a request with own schedules, and the own algorithms that do not apply, with the reasons."""
    request, refused = question(machine, op, block, demand, groups), list[tuple[str, str]]()
    for own in algorithms:
        if isinstance(own, Schedule):
            request = request.with_own(own._core)
            continue
        try:
            request = request.with_own(listed(request, machine, op, own, {}))
        except NotApplicable as reason:
            refused.append((name_of(own), str(reason)))
    return request, refused
