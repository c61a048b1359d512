"""The slots that messages move, as tables for programs that carry a schedule out.

A buffer has the pieces of all slots, one after the other: where blocks are split, a slot has several pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from topocoll import _core
from topocoll._core import Error
from topocoll._progress import bar

if TYPE_CHECKING:
    import numpy.typing as npt


def records(names: str, types: str) -> np.dtype[np.void]:
    """Return the type of records, of a whole number of 8 bytes."""
    each = types.split()
    size = -(-sum(int(kind[1:]) for kind in each) // 8) * 8
    return np.dtype({"names": names.split(), "formats": each, "itemsize": size})


#: The fields of :meth:`topocoll.Schedule.blocks`.
BLOCKS = records("message step from to source destination first end", "u4 u4 u4 u4 u4 u4 u8 u8")

Permutation = list[tuple[int, int]]


@dataclass(frozen=True)
class Step:
    """A step: rearrangements of ranks first, then messages, each all at once."""

    number: int
    #: Rank, pieces read and pieces written of each rearrangement.
    copies: list[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]
    #: Number, sender, receiver, pieces sent and pieces received of each message.
    messages: list[tuple[int, int, int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]

    def permutations(self) -> list[list[int]]:
        """Return the places of messages in groups, in each of which a rank sends at most one and receives at most one.

        There are as many groups as the most messages that a rank sends, or receives. Messages are coloured one by one
        (Koenig): if both ends have no colour in common that is free, two colours change along a path.
        """
        degree: dict[tuple[str, int], int] = {}
        for _, sender, receiver, _, _ in self.messages:
            for end in (("s", sender), ("r", receiver)):
                degree[end] = degree.get(end, 0) + 1
        colours = max(degree.values(), default=0)
        at: dict[tuple[str, int], list[int]] = {end: [-1] * colours for end in degree}
        colour = [-1] * len(self.messages)
        for place, (_, sender, receiver, _, _) in enumerate(self.messages):
            s, r = ("s", sender), ("r", receiver)
            a, b = at[s].index(-1), at[r].index(-1)
            # Swap a and b along the path that begins at the receiver with a: it does not reach the sender.
            path, end, want = list[int](), r, a
            while a != b and at[end][want] != -1:
                other = at[end][want]
                path.append(other)
                ends = (("s", self.messages[other][1]), ("r", self.messages[other][2]))
                end = ends[0] if end == ends[1] else ends[1]
                want = b if want == a else a
            for other in path:
                for end in (("s", self.messages[other][1]), ("r", self.messages[other][2])):
                    if at[end][colour[other]] == other:
                        at[end][colour[other]] = -1
            for other in path:
                colour[other] = b if colour[other] == a else a
                for end in (("s", self.messages[other][1]), ("r", self.messages[other][2])):
                    at[end][colour[other]] = other
            colour[place] = a
            at[s][a] = at[r][a] = place
        groups: list[list[int]] = [[] for _ in range(colours)]
        for place, own in enumerate(colour):
            groups[own].append(place)
        return groups

    def pairs(self, group: list[int]) -> Permutation:
        """Return senders and receivers of messages, by ascending sender."""
        return sorted(self.messages[place][1:3] for place in group)


class Program:
    """All steps of a schedule, with the layouts before and after them."""

    def __init__(self, core: _core.Schedule) -> None:
        with bar("slots") as tick:
            found, facts = core.program(tick), core.facts()
        self.ranks, self.slots = facts["ranks"], found["slots"]
        self.operation, self.block_bytes = facts["operation"], facts["block_bytes"]
        self.cuts: npt.NDArray[np.uint64] = np.array([0, *found["cuts"], self.block_bytes], np.uint64)
        self.pieces = len(self.cuts) - 1
        #: Pieces of a rank's buffer.
        self.width = self.slots * self.pieces
        self.initial = core.initial()
        #: The block at the start of a rank that each slot takes: in an all-gather the rank's one block.
        self.taken = np.maximum(self.initial, 0) if self.operation == "alltoall" else np.zeros_like(self.initial)
        self.last = core.last()
        self._messages = found["messages"].reshape(-1, 4)
        self._copies = found["copies"].reshape(-1, 3)
        self._sent, self._received = found["sent"], found["received"]
        self._copied_from, self._copied_to = found["copied_from"], found["copied_to"]
        self._of_rank: dict[int, list[Step]] = {}

    def steps(self) -> Iterator[Step]:
        """Yield the steps in which a rank sends or copies."""
        sizes = self._messages[:, 3].astype(np.int64), self._copies[:, 2].astype(np.int64)
        at = [np.concatenate([[0], np.cumsum(size)]) for size in sizes]
        for number in np.union1d(self._messages[:, 0], self._copies[:, 0]).tolist():
            first, end = np.searchsorted(self._messages[:, 0], [number, number + 1])
            messages = [
                (
                    i,
                    int(self._messages[i, 1]),
                    int(self._messages[i, 2]),
                    self._sent[at[0][i] : at[0][i + 1]],
                    self._received[at[0][i] : at[0][i + 1]],
                )
                for i in range(first, end)
            ]
            first, end = np.searchsorted(self._copies[:, 0], [number, number + 1])
            copies = [
                (
                    int(self._copies[i, 1]),
                    self._copied_from[at[1][i] : at[1][i + 1]],
                    self._copied_to[at[1][i] : at[1][i + 1]],
                )
                for i in range(first, end)
            ]
            yield Step(number, copies, messages)

    def of_rank(self, rank: int) -> list[Step]:
        """Return the steps of one rank: its rearrangements, and the messages that it sends or receives."""
        if rank not in self._of_rank:
            own = []
            for step in self.steps():
                copies = [copy for copy in step.copies if copy[0] == rank]
                messages = [message for message in step.messages if rank in message[1:3]]
                if copies or messages:
                    own.append(Step(step.number, copies, messages))
            self._of_rank[rank] = own
        return self._of_rank[rank]

    def places(self) -> npt.NDArray[np.int64]:
        """Return the slot of each rank that has the block of each source after the last step."""
        places = np.full((self.ranks, self.ranks), -1, np.int64)
        ranks, slots = np.nonzero(self.last >= 0)
        places[ranks, self.last[ranks, slots]] = slots
        missing = np.argwhere(places < 0)
        if len(missing):
            rank, source = missing[0].tolist()
            raise Error(f"rank {rank} has no block of rank {source} after the last step: the schedule does not deliver")
        return places

    def edges(self, elements: int) -> npt.NDArray[np.int64]:
        """Return the first element of each piece of a block, and the number of all."""
        edges: npt.NDArray[np.int64] = np.rint(self.cuts * (elements / self.block_bytes)).astype(np.int64)
        return edges

    def blocks(self) -> npt.NDArray[np.void]:
        """Return the blocks of all messages, found by replay."""
        width, codes = self.width, self.initial.repeat(self.pieces, axis=1)
        if self.operation == "alltoall":
            codes = np.where(codes >= 0, codes + self.ranks * np.arange(self.ranks)[:, None], -1)
        buffers = codes.reshape(-1)
        parts = []
        # The place in all buffers of each piece.
        copiers = np.repeat(self._copies[:, 1].astype(np.int64), self._copies[:, 2]) * width
        copied_from, copied_to = copiers + self._copied_from, copiers + self._copied_to
        senders, receivers = (np.repeat(self._messages[:, c].astype(np.int64), self._messages[:, 3]) for c in (1, 2))
        sent, landed = senders * width + self._sent, receivers * width + self._received
        copying = np.repeat(self._copies[:, 0], self._copies[:, 2])
        sending = np.repeat(self._messages[:, 0], self._messages[:, 3])
        for number in np.union1d(self._messages[:, 0], self._copies[:, 0]):
            own = slice(*np.searchsorted(copying, [number, number + 1]))
            buffers[copied_to[own]] = buffers[copied_from[own]]
            own = slice(*np.searchsorted(sending, [number, number + 1]))
            parts.append(buffers[sent[own]])
            buffers[landed[own]] = parts[-1]
        codes = np.concatenate([*parts, np.zeros(0, np.int64)])
        if not len(codes):
            return np.zeros(0, BLOCKS)
        message = np.repeat(np.arange(len(self._messages)), self._messages[:, 3])
        empty = np.flatnonzero(codes < 0)
        if len(empty):
            step, sender, receiver, _ = self._messages[message[empty[0]]].tolist()
            raise Error(f"step {step}: rank {sender} sends rank {receiver} a slot that holds no block")
        piece = sent % self.pieces
        # Pieces of one block that follow each other are one part.
        joined = (message[1:] == message[:-1]) & (codes[1:] == codes[:-1]) & (piece[1:] == piece[:-1] + 1)
        starts = np.flatnonzero(np.concatenate([[True], ~joined]))
        ends = np.append(starts[1:], len(sent)) - 1
        out = np.zeros(len(starts), BLOCKS)
        out["message"] = message[starts]
        for column, name in enumerate(("step", "from", "to")):
            out[name] = self._messages[message[starts], column]
        codes = codes[starts]
        is_pair = self.operation == "alltoall"
        out["source"] = codes // self.ranks if is_pair else codes
        out["destination"] = codes % self.ranks if is_pair else codes
        out["first"], out["end"] = self.cuts[piece[starts]], self.cuts[piece[ends] + 1]
        return out
