"""Exchanges over mpi4py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from topocoll._core import Error
from topocoll._program import Program

if TYPE_CHECKING:
    import numpy.typing as npt
    from mpi4py import MPI

    from topocoll._schedule import Schedule

#: Tags are below this, the least upper bound that MPI guarantees.
_TAGS = 32767


def exchange(
    schedule: Schedule, comm: MPI.Comm, sendbuf: npt.NDArray[Any], recvbuf: npt.NDArray[Any], sync: str
) -> None:
    """Perform a rank's part of a schedule. Before any message is sent, all ranks agree on what they exchange: if one
    refuses its arguments, all raise an error, and the next exchange begins on all of them.
    """
    rank, refusal, asked = comm.Get_rank(), None, ""
    try:
        if comm.Get_size() != schedule.ranks:
            raise Error(f"the communicator has {comm.Get_size()} ranks, the schedule {schedule.ranks}")
        if sync not in ("free", "barrier"):
            raise Error(f"sync is {sync!r}: it must be free or barrier")
        program = schedule._program
        blocks, own = _checked(program, sendbuf, recvbuf)
        asked = f"blocks of {blocks.shape[1]} elements of {blocks.itemsize} B by {schedule.named}, sync={sync}"
        pieces, places = Pieces(program, blocks.shape[1]), program.places()[rank]
        buffer = pieces.split(own[program.taken[rank]])
        steps = program.of_rank(rank)
    except Exception as error:
        refusal = error
    said = comm.allgather((None if refusal is None else str(refusal), asked))
    if refusal is not None:
        raise refusal
    for other, (text, its) in enumerate(said):
        if text is not None:
            raise Error(f"rank {other} refuses the exchange: {text}")
        if its != asked:
            raise Error(f"rank {other} exchanges {its}, and rank {rank} {asked}")

    def go_on(before: int, number: int) -> int:
        """Go to a later step: in those between, this rank only passes the barriers."""
        for _ in range(number - before if sync == "barrier" else 0):
            comm.Barrier()
        return number

    number = 0
    for step in steps:
        number = go_on(number, step.number)
        copies = [(buffer[reads], writes) for _, reads, writes in step.copies]
        for read, writes in copies:
            buffer[writes] = read
        tag = step.number % _TAGS
        incoming, outgoing, requests = [], [], []
        for _, sender, receiver, _, writes in step.messages:
            if receiver == rank:
                incoming.append((writes, np.empty((len(writes), buffer.shape[1]), buffer.dtype)))
                requests.append(comm.Irecv(_bytes(incoming[-1][1]), source=sender, tag=tag))
        for _, sender, receiver, reads, _ in step.messages:
            if sender == rank:
                outgoing.append(_bytes(buffer[reads]))
                requests.append(comm.Isend(outgoing[-1], dest=receiver, tag=tag))
        for request in requests:
            request.Wait()
        for writes, message in incoming:
            buffer[writes] = message
    go_on(number, schedule.steps - 1)
    blocks[...] = pieces.join(buffer)[places]


def _checked(
    program: Program, sendbuf: npt.NDArray[Any], recvbuf: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the received and the sent blocks, a row each."""
    ranks = program.ranks
    for name, buffer in (("sendbuf", sendbuf), ("recvbuf", recvbuf)):
        if not isinstance(buffer, np.ndarray) or buffer.dtype.hasobject:
            raise Error(f"{name} is {type(buffer).__name__}: a NumPy array without objects")
    if recvbuf.shape[:1] != (ranks,) or not recvbuf.flags.c_contiguous or not recvbuf.flags.writeable:
        raise Error(f"recvbuf is {recvbuf.shape}: contiguous and writeable, with the blocks of {ranks} ranks")
    expected = recvbuf.shape if program.operation == "alltoall" else recvbuf.shape[1:]
    if sendbuf.shape != expected or sendbuf.dtype != recvbuf.dtype:
        what = f"{expected} of {recvbuf.dtype}"
        raise Error(f"sendbuf is {sendbuf.shape} of {sendbuf.dtype}: it must be {what}, as recvbuf is {recvbuf.shape}")
    blocks = recvbuf.reshape(ranks, -1)
    return blocks, np.ascontiguousarray(sendbuf).reshape(-1, blocks.shape[1])


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


class Pieces:
    """Blocks of a number of elements, split as the schedule splits blocks of bytes.

    All pieces are as long as the longest; what follows a shorter one has no meaning.
    """

    def __init__(self, program: Program, elements: int) -> None:
        self.edges, self.number = program.edges(elements), program.pieces
        self.length = int(np.diff(self.edges).max())
        #: The element of a block at each place of its pieces.
        at = self.edges[:-1, None] + np.arange(self.length)
        self.elements = np.minimum(at, max(elements - 1, 0)).reshape(-1)
        piece = np.searchsorted(self.edges, np.arange(elements), side="right") - 1
        #: The place of each element of a block.
        self.places = piece * self.length + np.arange(elements) - self.edges[piece]

    def split(self, blocks: Any) -> Any:
        """Return the pieces of ``[blocks, elements]``."""
        return blocks[:, self.elements].reshape(-1, self.length)

    def join(self, pieces: Any) -> Any:
        """Return the blocks of pieces."""
        return pieces.reshape(-1, self.number * self.length)[:, self.places]
