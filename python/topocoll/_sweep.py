"""Sweeps: all algorithms over block sizes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from topocoll import _core, _text
from topocoll._core import Error
from topocoll._machine import Machine, machine as machine_of
from topocoll._own import Own
from topocoll._progress import bar
from topocoll._schedule import Schedule, block_bytes, request_of
from topocoll._select import Choice, _row
from topocoll._values import Value, extra, settings

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from matplotlib.axes import Axes

#: The most block sizes of a sweep.
_SIZES = 256


class Sweep(Value):
    """The result of :func:`sweep`.

    Attributes
    ----------
    machine : Machine
    operation : str
    blocks : numpy.ndarray
        The block sizes in bytes, ascending.
    bounds : numpy.ndarray
        The lower bound of the time at each size, in seconds.
    lines : dict
        Of each algorithm the best choice at each size.
    times : dict
        Of each algorithm the predicted seconds at each size, an array.
    crossovers : list of tuple
        From which block size on which algorithm and setting is the fastest.
    rejected : list of tuple
        Algorithms that do not apply, and the reasons.
    """

    def __init__(
        self,
        machine: Machine,
        operation: str,
        request: _core.Request,
        found: Mapping[str, Any],
        refused: list[tuple[str, str]],
    ) -> None:
        self.machine, self.operation = machine, operation
        self.blocks: npt.NDArray[np.uint64] = found["blocks"]
        self.bounds: npt.NDArray[np.float64] = found["bounds"]
        self.lines: dict[str, list[Choice]] = {
            name: [Choice(**choice, _request=request) for choice in points] for name, points in found["lines"]
        }
        self.times = {name: np.array([choice.time for choice in line]) for name, line in self.lines.items()}
        self.crossovers: list[tuple[int, str, dict[str, int | str]]] = found["crossovers"]
        self.rejected: list[tuple[str, str]] = found["rejected"] + refused

    def __repr__(self) -> str:
        first, last = (_text.size(int(self.blocks[place])) for place in (0, -1))
        count = f"{len(self.lines)} algorithms over {len(self.blocks)} block sizes, {first} to {last}"
        return f"<Sweep {self.operation} on {self.machine.name}: {count}>"

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each algorithm and block size."""
        with extra():
            import pandas as pd

        rows = [
            {"block": block, **_row(choice), "bound": bound}
            for line in self.lines.values()
            for block, bound, choice in zip(self.blocks.tolist(), self.bounds.tolist(), line, strict=True)
        ]
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the times over the block size, with the lower bound.

        Parameters
        ----------
        ax
            The axes to draw on. By default those of a new figure.
        """
        if ax is None:
            with extra():
                from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        best = min(self.times, key=lambda name: float(np.log(self.times[name]).sum()), default=None)
        for name, times in self.times.items():
            ax.loglog(self.blocks, times * 1e6, label=name, linewidth=2.0 if name == best else 1.2)
        ax.loglog(self.blocks, self.bounds * 1e6, label="lower bound", color="black", linestyle="--")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("block [B]")
        ax.set_ylabel("predicted time [us]")
        ax.set_title(f"{self.operation} on {self.machine.name}")
        ax.legend(fontsize="small")
        ax.grid(alpha=0.3)
        return ax


def sweep(
    machine: Machine | str | os.PathLike[str],
    *,
    blocks: str | Iterable[int | str] = "1:1MiB",
    op: str = "alltoall",
    named: Mapping[str, Mapping[str, int | str]] | Iterable[str] = (),
    algorithms: Iterable[Own | Schedule] = (),
) -> Sweep:
    """Price every algorithm, with its best setting, over block sizes.

    Parameters
    ----------
    machine
        A machine, or what :func:`topocoll.machine` takes.
    blocks
        Ascending sizes, or ``"64:1MiB"`` for all doublings of the first up to the last.
    op
        ``alltoall`` or ``allgather``.
    named
        The algorithms to price, by default all; with parameters where it is a mapping.
    algorithms
        Own algorithms and schedules that move whole blocks.
    """
    machine, sizes = machine_of(machine), _sizes(blocks)
    request, refused = request_of(machine, op, sizes[0], algorithms)
    given = named if isinstance(named, Mapping) else {name: {} for name in named}
    with bar("prices") as tick:
        found = request.sweep(sizes, [(name, settings(own)) for name, own in given.items()], tick)
    return Sweep(machine, op, request, found, refused)


def _sizes(blocks: str | Iterable[int | str]) -> list[int]:
    """Return ascending block sizes."""
    if isinstance(blocks, str) and ":" in blocks:
        first, last = (block_bytes(text) for text in blocks.split(":", 1))
        if not 0 < first <= last:
            raise Error(f"blocks is `{blocks}`: the first size, at least 1 B, must not be above the last")
        doublings = (last // first).bit_length()
        sizes = sorted({*(first << n for n in range(doublings)), last})
    else:
        sizes = [block_bytes(block) for block in (blocks.split(",") if isinstance(blocks, str) else blocks)]
    if not sizes or len(sizes) > _SIZES:
        raise Error(f"{len(sizes)} block sizes: a sweep has 1 to {_SIZES}")
    for before, after in pairwise(sizes):
        if before >= after:
            raise Error(f"block sizes must increase, but {after} B follows {before} B")
    return sizes
