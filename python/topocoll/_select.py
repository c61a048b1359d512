"""Selections: all algorithms and settings, ranked by predicted time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from topocoll import _core, _text
from topocoll._core import Error
from topocoll._machine import Machine, machine as machine_of
from topocoll._own import Own
from topocoll._progress import bar
from topocoll._schedule import Demand, Groups, Schedule, request_of
from topocoll._values import Value, extra

if TYPE_CHECKING:
    import pandas as pd

#: Rows of the table in a notebook.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm with a setting, and its cost.

    Attributes
    ----------
    algorithm : str
    parameters : dict
    time : float
        Predicted seconds, with ranks in step: the sum of ``startup``, ``transmission``, ``propagation``,
        ``rearrangement`` and ``barrier``.
    free_running : float or None
        Simulated seconds without barriers between steps; infinite in a deadlock, None where it was not simulated.
    ranked : float
        The larger of both, by which choices are ordered.
    steps : int
        Steps in which a message moves.
    blocks, link_blocks : float
        The volume, and the volume with shared links charged in full, in blocks.
    max_link_sharing : int
        The most messages on one link in one step.
    bound_ratio : float
        The time divided by the lower bound.
    tradeoff_ratio : float or None
        The charged volume divided by the least of any schedule of as many steps.
    priced : str
        ``exactly``, or ``at_least`` for a lower bound of the time.
    named : str
        The algorithm and the parameters that matter, as the program writes them: without defaults, and of a selection
        without values that the choices shown share. ``24 steps`` where ``steps=24`` gives this choice.
    """

    algorithm: str
    parameters: dict[str, int | str]
    time: float
    free_running: float | None
    ranked: float
    startup: float
    transmission: float
    propagation: float
    rearrangement: float
    barrier: float
    steps: int
    blocks: float
    link_blocks: float
    max_link_sharing: int
    bound_ratio: float
    tradeoff_ratio: float | None
    priced: str
    named: str
    _request: _core.Request = field(repr=False)

    def schedule(self) -> Schedule:
        """Return the schedule."""
        with bar("schedule") as tick:
            return Schedule(_core.Schedule(self._request, self.algorithm, self.parameters, tick))


class Selection(Value):
    """The result of :func:`select`: choices, best first.

    Attributes
    ----------
    machine : Machine
    operation : str
    block_bytes : int
        The bytes of a block; of a demand matrix their mean, rounded up.
    demand : numpy.ndarray or None
    groups : tuple of int or None
        The number of groups that exchange at the same time, and the ranks of the largest; ``None`` if all ranks
        exchange with all.
    choices : list of Choice
    undecided : int
        The number of first choices that are priced by a lower bound and may be faster than the best.
    rejected : list of tuple
        Algorithms that do not apply, and the reasons.
    bound : dict
        Lower bounds: ``time`` in seconds, ``steps``, ``blocks`` and ``link_blocks``; ``limited_by`` names what limits
        the bandwidth, and ``transmission`` is the seconds of the bytes that pass it.
    algorithm_bandwidth, bus_bandwidth : float or None
        Bytes per second and rank of the best choice, as nccl-tests define them.
    free_running_model : str or None
        The contention model of the simulated times, if choices were simulated.
    all_at_once : float or None
        Seconds of all messages posted at once over all ports, by the fluid model, if simulated.
    crossovers : list of tuple
        From which block size on which choice is the fastest in step, of those that are priced exactly and accept this
        size.
    """

    def __init__(
        self,
        machine: Machine,
        operation: str,
        demand: Demand | None,
        request: _core.Request,
        found: Mapping[str, Any],
        refused: list[tuple[str, str]],
    ) -> None:
        self.machine, self.operation, self.block_bytes = machine, operation, request.block_bytes
        self.demand = None if demand is None else np.array(demand)
        self.groups = request.groups
        self.choices = [Choice(**choice, _request=request) for choice in found["choices"]]
        self.undecided: int = found["undecided"]
        self.rejected: list[tuple[str, str]] = found["rejected"] + refused
        self.bound: dict[str, Any] = found["bound"]
        self.algorithm_bandwidth: float | None = found["algorithm_bandwidth"]
        self.bus_bandwidth: float | None = found["bus_bandwidth"]
        self._rate: str | None = found["rate"]
        self.free_running_model: str | None = found["free_running_model"]
        self.all_at_once: float | None = found["all_at_once"]
        self.crossovers = [(block, self.choices[place]) for block, place in found["crossovers"]]

    @property
    def best(self) -> Choice:
        """The first choice with an exact time, or without any the one with the least bound."""
        if not self.choices:
            raise Error("no algorithm serves this exchange: `rejected` says why")
        exact = self.undecided if self.undecided < len(self.choices) else 0
        return self.choices[exact]

    def __len__(self) -> int:
        return len(self.choices)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    def __getitem__(self, place: int) -> Choice:
        return self.choices[place]

    def _lines(self) -> list[str]:
        """Return the answer: the verdict, and what was asked."""
        machine = self.machine
        name = machine.name if machine.name == machine.short_form else f"{machine.name} ({machine.short_form})"
        ranks, ports = _text.count(machine.ranks, "rank"), _text.count(machine.ports, "port")
        if self.groups is not None:
            groups, largest = self.groups
            ranks += f" in {_text.count(groups, 'group')} of up to {largest}"
        size = _text.size(self.block_bytes) + ("" if self.demand is None else " (mean)")
        asked = f"{self.operation} of {size} blocks on {name}: {ranks}, {ports}."
        if not self.choices:
            return ["No algorithm serves this exchange.", asked]
        best = self.best
        parts = [f"Use {best.named}: {_text.seconds(best.time)}"]
        if best.free_running is not None:
            parts = [parts[0] + " in step", f"{_free(best)} free-running ({self.free_running_model})"]
        other = next((choice for choice in self.choices if choice.algorithm != best.algorithm), None)
        if self.undecided:
            parts.append(f"though {_text.count(self.undecided, 'choice')} may be faster")
        elif other is not None and other.ranked > best.ranked > 0:
            least = "at least " if other.priced == "at_least" else ""
            parts.append(f"{least}{other.ranked / best.ranked:.2f}x faster than {other.algorithm}")
        parts.append(f"{best.bound_ratio:.2f}x the bound")
        rate = "" if self._rate is None or self.demand is not None else f"; {self._rate}"
        return [", ".join(parts) + rate + ".", asked]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        from html import escape

        heads = (
            "algorithm",
            "setting",
            "in step",
            "free-running",
            "of the bound",
            "steps",
            "charged volume",
            "link contention",
        )
        rows = []
        for choice in self.choices[:_SHOWN]:
            least = "at least " if choice.priced == "at_least" else ""
            ratio = "" if choice.tradeoff_ratio is None else f" ({choice.tradeoff_ratio:.2f}x)"
            cells = (
                choice.algorithm,
                _text.setting(choice.parameters),
                least + _text.seconds(choice.time),
                _free(choice),
                f"{choice.bound_ratio:.2f}x",
                str(choice.steps),
                _text.blocks(choice.link_blocks) + ratio,
                str(choice.max_link_sharing or ""),
            )
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        head = "".join(f"<th>{head}</th>" for head in heads)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        more = len(self.choices) - len(rows)
        rest = f"<p>{_text.count(more, 'choice')} more: to_pandas() has all.</p>" if more > 0 else ""
        answer = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return f"{answer}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def to_pandas(self) -> pd.DataFrame:
        """Return all choices as a table, a row each."""
        with extra():
            import pandas as pd

        return pd.DataFrame([_row(choice) for choice in self.choices])


def _free(choice: Choice) -> str:
    """Return the time without barriers."""
    if choice.free_running is None:
        return ""
    return "deadlock" if np.isinf(choice.free_running) else _text.seconds(choice.free_running)


def _row(choice: Choice) -> dict[str, Any]:
    """Return a choice as a row of a table."""
    names = [name for name in Choice.__slots__ if name not in ("parameters", "named", "_request")]
    row = {name: getattr(choice, name) for name in names}
    return {"algorithm": row.pop("algorithm"), "setting": _text.setting(choice.parameters), **row}


def select(
    machine: Machine | str | os.PathLike[str],
    *,
    block: int | str | None = None,
    op: str = "alltoall",
    demand: Demand | None = None,
    groups: Groups | None = None,
    algorithms: Iterable[Own | Schedule] = (),
    barrier: bool = False,
) -> Selection:
    """Rank every algorithm and setting by predicted time.

    Programs put no barriers between steps. Where messages take links and a barrier of the machine costs nothing, the
    choices that take at most twice the least time in step are simulated without barriers too.

    Parameters
    ----------
    machine
        A machine, or what :func:`topocoll.machine` takes.
    block
        Bytes of a block, a number or text such as ``"4KiB"``. The default is 1 KiB.
    op
        ``alltoall`` or ``allgather``.
    demand
        Bytes of each block, where they differ: rows of senders, in an all-gather a number for each rank.
    groups
        Groups that exchange at once: ``"peers"`` or another name of the program's ``--groups``, a file, or their ranks.
    algorithms
        Own algorithms and schedules, ranked with those of topocoll.
    barrier
        Whether barriers keep ranks in step: choices are ranked by times in step alone.

    Raises
    ------
    Error
        An own schedule does not deliver, or exceeds the ports.

    Examples
    --------
    >>> import topocoll as tc
    >>> tc.select("paragon-16x16")  # doctest: +ELLIPSIS
    Use suh-shin (10 steps): 31.35 ms, 1.05x faster than strided-rings, 1.82x the bound; 8.362 MB/s a rank, ...
    alltoall of 1 KiB blocks on paragon-16x16 (torus:16x16): 256 ranks, 1 port.
    """
    machine = machine_of(machine)
    request, refused = request_of(machine, op, block, algorithms, demand, groups)
    with bar("candidates") as tick:
        found = request.select(barrier, tick)
    return Selection(machine, op, demand, request, found, refused)


def algorithms() -> list[dict[str, Any]]:
    """Return the algorithms, as ``topocoll algorithms --json`` lists them.

    Each has ``name``, ``operation``, ``summary``, ``source``, and the values of its ``parameters``. All take ``steps``
    too, the most steps of a schedule, and ``ports``. ``pandas.DataFrame(tc.algorithms())`` is a table.
    """
    return _core.algorithms()
