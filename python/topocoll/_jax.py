"""Exchanges in JAX: one ``lax.ppermute`` for each port and step, under ``shard_map``."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
import numpy.typing as npt
from jax import lax, numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, reshard

from topocoll._core import Error
from topocoll._mpi import Pieces
from topocoll._program import Permutation, Program, Step

if TYPE_CHECKING:
    from topocoll._schedule import Schedule


@dataclass(frozen=True)
class _Tables:
    """A step, or several with the same permutations: tables by step, rank and place."""

    permutations: list[Permutation]
    #: The piece that each piece becomes a copy of, if any rank copies.
    copies: npt.NDArray[np.int32] | None
    #: Of each permutation the pieces sent, and the pieces that they land in.
    sent: list[npt.NDArray[np.int32]]
    received: list[npt.NDArray[np.int32]]


class Exchange:
    """A schedule as a function of JAX arrays. Made by :meth:`topocoll.Schedule.to_jax`.

    Attributes
    ----------
    mesh : jax.sharding.Mesh
    sharding : jax.sharding.NamedSharding
        Of the argument and the result: the first axis is sharded.
    permutes : int
        The number of ``lax.ppermute`` that run.
    loops : int
        The number of loops that steps with equal permutations are rolled into.
    compile_seconds : float or None
        The time that the last :meth:`compile` took.
    """

    def __init__(self, schedule: Schedule, program: Program, mesh: Mesh) -> None:
        if len(mesh.axis_names) != 1 or mesh.size != program.ranks:
            shape = dict(mesh.shape)
            raise Error(f"the mesh is {shape}: it must have one axis of {program.ranks} devices, one for each rank")
        self._schedule, self._program, self.mesh = schedule, program, mesh
        self._axis: str = mesh.axis_names[0]
        self.sharding = NamedSharding(mesh, PartitionSpec(self._axis))
        self._places = program.places().astype(np.int32)
        steps = list(program.steps())
        self._tables = _rolled([_tables(program, step) for step in steps], program.width)
        self.permutes = sum(len(table.permutations) * len(_first(table)) for table in self._tables)
        self.loops = sum(len(_first(table)) > 1 for table in self._tables)
        self.compile_seconds: float | None = None
        spec = PartitionSpec(self._axis)
        local = jax.shard_map(self._local, mesh=mesh, in_specs=spec, out_specs=spec)
        # On a mesh whose shardings are part of types, an array must have the one that the exchange takes.
        explicit = AxisType.Explicit in mesh.axis_types
        self._run = jax.jit(lambda x: local(reshard(x, self.sharding) if explicit else x))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a JAX exchange holds devices and compiled functions: pickle its schedule, then call to_jax")

    def __call__(self, x: jax.Array) -> jax.Array:
        """Perform the exchange."""
        self._check(x.shape)
        return self._run(x)

    def compile(self, shape: tuple[int, ...], dtype: Any) -> jax.stages.Compiled:
        """Compile the exchange of an array, and set ``compile_seconds``."""
        self._check(shape)
        begin = time.perf_counter()
        compiled = self._run.lower(jax.ShapeDtypeStruct(shape, dtype, sharding=self.sharding)).compile()
        self.compile_seconds = time.perf_counter() - begin
        return compiled

    def sent_bytes(self, shape: tuple[int, ...], dtype: Any) -> tuple[int, int]:
        """Return the bytes that all ranks send with an array, and how many of them are padding.

        Messages are padded to the largest of their permutation, and pieces of blocks to the longest piece.
        """
        self._check(shape)
        elements, item = self._elements(shape), np.dtype(dtype).itemsize
        pieces = Pieces(self._program, elements)
        rows = sum(
            len(permutation) * sent.shape[0] * sent.shape[2]
            for table in self._tables
            for permutation, sent in zip(table.permutations, table.sent, strict=True)
        )
        lengths = np.diff(pieces.edges)
        used = sum(
            int(lengths[reads % self._program.pieces].sum())
            for step in self._program.steps()
            for _, _, _, reads, _ in step.messages
        )
        sent = rows * pieces.length * item
        return sent, sent - used * item

    def _check(self, shape: tuple[int, ...]) -> None:
        ranks = self._program.ranks
        expected = (ranks, ranks) if self._program.operation == "alltoall" else (ranks,)
        if tuple(shape[: len(expected)]) != expected:
            raise Error(f"the array is {tuple(shape)}: its shape must begin with {expected}")

    def _elements(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape[2 if self._program.operation == "alltoall" else 1 :])

    def _local(self, x: jax.Array) -> jax.Array:
        """Do the part of one rank."""
        program, rank = self._program, lax.axis_index(self._axis)
        payload = x.shape[2:] if program.operation == "alltoall" else x.shape[1:]
        elements = math.prod(payload)
        pieces = Pieces(program, elements)
        own = x.reshape(-1, elements)
        blocks = own[jnp.asarray(program.taken.astype(np.int32))[rank]]
        # A last piece takes what is sent as padding.
        buffer = jnp.pad(pieces.split(blocks), ((0, 1), (0, 0)))
        for tables in self._tables:
            buffer = self._steps(tables, buffer, rank)
        result = pieces.join(buffer[:-1])[jnp.asarray(self._places)[rank]]
        return result.reshape(1, program.ranks, *payload)

    def _steps(self, tables: _Tables, buffer: jax.Array, rank: jax.Array) -> jax.Array:
        own = [jnp.asarray(table)[:, rank] for table in (*tables.sent, *tables.received)]
        copies = None if tables.copies is None else jnp.asarray(tables.copies)[:, rank]
        ports = len(tables.permutations)

        def step(buffer: jax.Array, places: Any) -> tuple[jax.Array, None]:
            copies, own = places
            if copies is not None:
                buffer = buffer[copies]
            moved = [
                lax.ppermute(buffer[sent], self._axis, pairs)
                for sent, pairs in zip(own[:ports], tables.permutations, strict=True)
            ]
            for received, message in zip(own[ports:], moved, strict=True):
                buffer = buffer.at[received].set(message)
            return buffer, None

        if len(_first(tables)) == 1:
            first = None if copies is None else copies[0]
            return step(buffer, (first, [table[0] for table in own]))[0]
        return lax.scan(step, buffer, (copies, own))[0]


def _first(tables: _Tables) -> npt.NDArray[np.int32]:
    """Return a table, as long as there are steps."""
    found: npt.NDArray[np.int32] = tables.copies if tables.copies is not None else tables.sent[0]
    return found


def _tables(program: Program, step: Step) -> _Tables:
    """Return the tables of one step. Padding is sent from, and lands in, the piece after the last."""
    ranks, spare = program.ranks, program.width
    copies = None
    if step.copies:
        copies = np.tile(np.arange(spare + 1, dtype=np.int32), (1, ranks, 1))
        for rank, reads, writes in step.copies:
            copies[0, rank, writes] = reads
    permutations, sent, received = list[Permutation](), [], []
    for group in step.permutations():
        most = max(len(step.messages[place][3]) for place in group)
        table = np.full((2, 1, ranks, most), spare, np.int32)
        for place in group:
            _, sender, receiver, reads, writes = step.messages[place]
            table[0, 0, sender, : len(reads)] = reads
            table[1, 0, receiver, : len(writes)] = writes
        permutations.append(step.pairs(group))
        sent.append(table[0])
        received.append(table[1])
    return _Tables(permutations, copies, sent, received)


def _rolled(steps: list[_Tables], spare: int) -> list[_Tables]:
    """Return the tables with steps that follow each other and have equal permutations joined."""
    rolled: list[list[_Tables]] = []
    for step in steps:
        last = rolled[-1][0] if rolled else None
        alike = last is not None and last.permutations == step.permutations
        if alike and last is not None and (last.copies is None) == (step.copies is None):
            rolled[-1].append(step)
        else:
            rolled.append([step])
    return [_joined(group, spare) for group in rolled]


def _joined(group: list[_Tables], spare: int) -> _Tables:
    first = group[0]
    copies = (
        None if first.copies is None else np.concatenate([step.copies for step in group if step.copies is not None])
    )

    def padded(tables: list[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
        most = max(table.shape[2] for table in tables)
        widths = [((0, 0), (0, 0), (0, most - table.shape[2])) for table in tables]
        return np.concatenate(
            [np.pad(table, width, constant_values=spare) for table, width in zip(tables, widths, strict=True)]
        )

    ports = range(len(first.permutations))
    sent = [padded([step.sent[port] for step in group]) for port in ports]
    received = [padded([step.received[port] for step in group]) for port in ports]
    return _Tables(first.permutations, copies, sent, received)
