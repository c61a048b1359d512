"""Plans for a demand matrix, in the time of a step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from topocoll import _core
from topocoll._core import Error
from topocoll._machine import Machine, machine as machine_of
from topocoll._values import Value, whole

if TYPE_CHECKING:
    import numpy.typing as npt


class Plan(Value):
    """The result of :func:`plan`.

    Attributes
    ----------
    to : numpy.ndarray
        The receiver of each rank in each matching, or -1: ``[matchings, ranks]``, by falling size.
    matchings, bytes : int
        The matchings, and the sum of their largest messages. With a barrier after each they take ``matchings`` startups
        and the time of ``bytes``.
    least_matchings, least_bytes : int
        The least of both for whole blocks that go straight to their destinations.
    """

    def __init__(self, to: npt.NDArray[np.int32], found: tuple[int, int], least: tuple[int, int]) -> None:
        self.to = to
        self.matchings, self.bytes = found
        self.least_matchings, self.least_bytes = least

    def __repr__(self) -> str:
        return f"Plan({self.matchings} matchings of {self.to.shape[1]} ranks, {self.bytes} bytes)"


def plan(matrix: Any, machine: Machine | str | os.PathLike[str] | None = None, *, startup: int | None = None) -> Plan:
    """Assign the blocks of a demand matrix to matchings: each rank sends one block and receives one.

    On a cluster this holds for nodes, to and from other nodes. The work is done without the GIL; 64 ranks take some
    300 microseconds.

    Parameters
    ----------
    matrix
        Bytes from each rank (row) to each (column): an array of whole numbers, of NumPy or of another library that
        supports DLPack, or rows of numbers. Arrays of ``uint64`` in C order are not copied.
    machine
        A machine, or what :func:`topocoll.machine` takes. The default is a machine of equivalent ranks.
    startup
        The bytes that take as long as a startup: the more, the fewer matchings. The default is that of the machine.

    Raises
    ------
    Error
        The matrix has other sizes than the machine has ranks, or a size is not a whole number from 0 to 2^40.

    Examples
    --------
    >>> import numpy as np, topocoll as tc
    >>> tc.plan(np.array([[0, 5, 0], [0, 0, 5], [7, 0, 0]])).to
    array([[1, 2, 0]], dtype=int32)
    """
    if not isinstance(matrix, np.ndarray):
        matrix = np.from_dlpack(matrix) if hasattr(matrix, "__dlpack__") else np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        raise Error(f"matrix has {matrix.ndim} dimensions of {matrix.dtype}: rows of whole numbers of bytes")
    if matrix.dtype.kind == "i" and matrix.size and matrix.min() < 0:
        row, column = np.argwhere(matrix < 0)[0]
        rule = "a size is a whole number from 0 to 1099511627776"
        raise Error(f"matrix: line {row + 1}: column {column + 1}: `{matrix[row, column]}`: {rule}")
    machine = machine_of(f"full:{max(len(matrix), 1)}" if machine is None else machine)
    startup = None if startup is None else whole("startup", startup, (1 << 64) - 1)
    return Plan(*_core.plan(machine._core, np.ascontiguousarray(matrix, np.uint64), startup))
