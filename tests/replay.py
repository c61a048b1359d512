#!/usr/bin/env python3
"""Replays schedules written as JSON lines and checks that they deliver.

usage: replay.py [PATH ...]          no path, or `-`: standard input

An independent check: it follows every byte and knows the format alone, nothing of the algorithms
or of how they were verified. Per schedule it prints one line of JSON:

  delivered              every message sends what its sender holds, along a route that stays on the
                         grid and ends at the receiver, and in the end every rank holds every byte
                         meant for it
  steps                  steps with a message
  blocks                 sum over steps of the largest message, in blocks
  link_blocks            sum over steps of the largest message or link load, whichever is more
  link_conflicts         pairs of a step and a directed link with several messages
  port_violations        cases of a step, a rank, and a direction with more messages than ports; on
                         a cluster also of a node, whose messages to or from other nodes count
  contention_free_steps  sum over steps of the most messages on one link; 1 where there are no links
  reason                 the first failure, or null

Exit status: 0 all delivered, 1 some did not, 2 input that is not in the format.
"""

import gc
import json
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import accumulate, product
from math import prod


class Malformed(Exception):
    """Input that is not in the format."""


def require(condition, message):
    if not condition:
        raise Malformed(message)


def whole(value, least):
    return type(value) is int and value >= least


def numbers(values, count=None):
    """Whether `values` is a list of integers, `count` of them if given."""
    return type(values) is list and count in (None, len(values)) and set(map(type, values)) <= {int}


class Grid:
    """Ranks row by row, the last dimension fastest."""

    def __init__(self, sides, wraps):
        self.sides, self.wraps = sides, wraps
        self.strides = [prod(sides[u + 1 :]) for u in range(len(sides))]

    def links(self, rank, route):
        """The directed links of a route and where it ends: None if it leaves the grid.

        A link is numbered by the rank it leaves, its dimension and its direction, so a side of 2
        that wraps has two links each way.
        """
        links = []
        for dimension, hops in route:
            if not 0 <= dimension < len(self.sides):
                return links, None
            side, stride = self.sides[dimension], self.strides[dimension]
            at = rank // stride % side
            if not (abs(hops) < side if self.wraps[dimension] else 0 <= at + hops < side):
                return links, None
            base, direction = rank - at * stride, 1 if hops > 0 else -1
            name = 2 * dimension + (hops < 0)
            for coordinate in range(at, at + hops, direction):
                links.append((base + coordinate % side * stride) * 2 * len(self.sides) + name)
            rank = base + (at + hops) % side * stride
        return links, rank


class Lattice:
    """A grid that is twisted, or has failed nodes or links, by its short form.

    Around a side of `4+2`, or on a twisted torus of 4 shorter than the longest, which means `4+4`, a
    coordinate along each of the longest sides grows. Behind slashes stand nodes that are absent, as
    `0,1`, and links that are broken both ways, as `0,1+1`: from that node upwards along dimension 1.
    """

    def __init__(self, form):
        shape, *faults = form.split("/")
        kind, _, sides = shape.partition(":")
        require(kind in ("torus", "mesh", "grid", "twisted-torus"), f"unknown lattice {kind!r}")
        sides = [side.partition("+") for side in sides.split("x")]
        self.wraps = [kind != "mesh" and (kind != "grid" or side.endswith("~")) for side, _, _ in sides]
        self.sides = [int(side.rstrip("~")) for side, _, _ in sides]
        self.longest = max(self.sides)
        twisted = [kind == "twisted-torus" and side < self.longest for side in self.sides]
        self.shifts = [
            int(shift or side) if twists else 0
            for side, twists, (_, _, shift) in zip(self.sides, twisted, sides)
        ]
        absent = {tuple(map(int, fault.split(","))) for fault in faults if "+" not in fault}
        self.broken = set()
        for fault in faults:
            place, up, dimension = fault.partition("+")
            if up:
                self.broken.add((tuple(map(int, place.split(","))), int(dimension)))
        places = product(*map(range, self.sides))
        self.places = [place for place in places if place not in absent]
        self.rank_at = {place: rank for rank, place in enumerate(self.places)}

    def next(self, place, u, direction):
        """The place that a link leads to, None if there is no such link."""
        to = list(place)
        to[u] += direction
        if not self.wraps[u] and not 0 <= to[u] < self.sides[u]:
            return None
        around, to[u] = divmod(to[u], self.sides[u])
        for v, side in enumerate(self.sides):
            if side == self.longest and self.shifts[u]:
                to[v] = (to[v] + around * self.shifts[u]) % side
        to = tuple(to)
        lower = place if direction > 0 else to
        return to if to != place and to in self.rank_at and (lower, u) not in self.broken else None

    def links(self, rank, route):
        """As those of a grid."""
        links, place = [], self.places[rank]
        for dimension, hops in route:
            if not 0 <= dimension < len(self.sides) or abs(hops) > len(self.places):
                return links, None
            for _ in range(abs(hops)):
                links.append((self.rank_at[place] * len(self.sides) + dimension) * 2 + (hops < 0))
                place = self.next(place, dimension, 1 if hops > 0 else -1)
                if place is None:
                    return links, None
        return links, self.rank_at[place]


class Holdings:
    """Which bytes of which blocks each rank has received; its own blocks it has from the start."""

    def __init__(self, ranks, block_bytes):
        self.ranks, self.block_bytes = ranks, block_bytes
        self.blocks = defaultdict(set)  # By rank: whole blocks.
        self.parts = defaultdict(dict)  # By rank, then block: disjoint ranges of bytes, in order.

    def has(self, rank, block, first, end):
        if block // self.ranks == rank or block in self.blocks[rank]:
            return True
        return any(a <= first and end <= b for a, b in self.parts[rank].get(block, ()))

    def add(self, rank, block, first, end):
        joined = []
        for a, b in sorted([*self.parts[rank].get(block, ()), (first, end)]):
            if joined and a <= joined[-1][1]:
                a, b = joined[-1][0], max(b, joined.pop()[1])
            joined.append((a, b))
        if joined == [(0, self.block_bytes)]:
            self.parts[rank].pop(block, None)
            self.blocks[rank].add(block)
        else:
            self.parts[rank][block] = joined


class Step:
    """What the messages of one step use, and what arrives when it ends."""

    def __init__(self):
        self.largest = 0
        self.used_ports = Counter()
        self.link_messages = Counter()
        self.link_bytes = defaultdict(int)
        self.arrivals = []


class Replay:
    def __init__(self, header):
        require(type(header) is dict and header.get("kind") == "header", "no header")
        require(header.get("version") == 1, "not version 1 of the format")
        operation = header.get("operation")
        require(operation in ("alltoall", "allgather"), f"unknown operation {operation!r}")
        self.all_to_all = operation == "alltoall"
        self.ranks, self.block_bytes, self.ports = (header.get(key) for key in ("ranks", "block_bytes", "ports"))
        require(all(whole(value, 1) for value in (self.ranks, self.block_bytes, self.ports)), "no counts from 1 up")
        self.grid = self.first_ranks = None
        self.read_topology(header.get("topology"))

        self.holdings = Holdings(self.ranks, self.block_bytes)
        self.number, self.step = -1, Step()
        self.reason = None
        self.steps = self.bytes = self.link_bytes = 0
        self.link_conflicts = self.port_violations = self.contention_free_steps = 0

    def read_topology(self, topology):
        kind = topology.get("kind") if type(topology) is dict else None
        if kind == "grid":
            sides, wraps = topology.get("dims"), topology.get("wrap")
            require(numbers(sides) and sides and min(sides) > 0, "sides of the grid")
            require(type(wraps) is list and len(wraps) == len(sides), "one wrap per side")
            require(all(type(wrap) is bool for wrap in wraps), "wraps that are neither true nor false")
            require(prod(sides) == self.ranks, "the grid has another number of ranks")
            self.grid = Grid(sides, wraps)
        elif kind == "lattice":
            require(type(topology.get("form")) is str, "a lattice without its form")
            self.grid = Lattice(topology["form"])
            require(len(self.grid.places) == self.ranks, "the lattice has another number of ranks")
        elif kind == "cluster":
            sizes = topology.get("sizes")
            require(numbers(sizes) and sizes and min(sizes) > 0, "sizes of the nodes")
            require(sum(sizes) == self.ranks, "the cluster has another number of ranks")
            self.first_ranks = [0, *accumulate(sizes[:-1])]
        else:
            require(kind == "full", f"unknown topology {kind!r}")

    def fail(self, reason):
        self.reason = self.reason or reason

    def name(self, block):
        source, destination = divmod(block, self.ranks)
        return f"{source}->{destination}" if self.all_to_all else f"{source}"

    def message(self, message):
        require(type(message) is dict, "no message")
        number, sender, receiver = (message.get(key) for key in ("step", "from", "to"))
        require(whole(number, 0) and number >= self.number, "steps are numbered from 0 and never go back")
        require(whole(sender, 0) and whole(receiver, 0) and max(sender, receiver) < self.ranks, "no such rank")
        require(sender != receiver, "a rank that sends to itself")
        if number > self.number:
            self.end_step()
            self.number, self.step = number, Step()
        step = self.step
        size = self.carry(message.get("blocks"), sender, receiver)
        step.largest = max(step.largest, size)
        links = self.links(message.get("route", []), sender, receiver)
        step.link_messages.update(links)
        for link in links:
            step.link_bytes[link] += size
        step.used_ports["sends", sender] += 1
        step.used_ports["receives", receiver] += 1
        if self.first_ranks:
            leaves, enters = (bisect_right(self.first_ranks, rank) for rank in (sender, receiver))
            if leaves != enters:
                step.used_ports["node sends", leaves] += 1
                step.used_ports["node receives", enters] += 1

    def carry(self, blocks, sender, receiver):
        """Sends off what the sender holds of the blocks listed; returns the bytes listed."""
        require(type(blocks) is list and blocks, "a message without blocks")
        require(set(map(type, blocks)) == {list}, "a block that is no list")
        width = 4 if self.all_to_all else 3
        ranks, all_bytes, held = self.ranks, self.block_bytes, self.holdings.blocks[sender]
        size, blocks_sent, parts_sent = 0, [], []
        for listed in blocks:
            if len(listed) != width or set(map(type, listed)) != {int}:
                raise Malformed(f"no block {listed}")
            source, first, end = listed[0], listed[-2], listed[-1]
            destination = listed[1] if width == 4 else 0
            if not (0 <= source < ranks and 0 <= destination < ranks and 0 <= first < end <= all_bytes):
                raise Malformed(f"no such ranks or bytes in block {listed}")
            block = source * ranks + destination
            size += end - first
            if source != sender and block not in held and not self.holdings.has(sender, block, first, end):
                self.fail(
                    f"step {self.number}: rank {sender} sends bytes {first}..{end} of block {self.name(block)}"
                    f" to rank {receiver}, and does not hold them"
                )
            elif end - first == all_bytes:
                blocks_sent.append(block)
            else:
                parts_sent.append((block, first, end))
        self.step.arrivals.append((receiver, blocks_sent, parts_sent))
        return size

    def links(self, route, sender, receiver):
        require(type(route) is list and all(numbers(segment, 2) for segment in route), "no route")
        if self.grid is None:
            require(not route, "a route, and no grid")
            return []
        links, end = self.grid.links(sender, route)
        if end is None:
            self.fail(f"step {self.number}: the route from rank {sender} to rank {receiver} leaves the grid")
        elif end != receiver:
            self.fail(f"step {self.number}: the route from rank {sender} ends at rank {end}, not at rank {receiver}")
        return links

    def end_step(self):
        step, holdings = self.step, self.holdings
        if not step.arrivals:
            return
        for rank, blocks, parts in step.arrivals:
            holdings.blocks[rank].update(blocks)
            for block, first, end in parts:
                if block not in holdings.blocks[rank]:
                    holdings.add(rank, block, first, end)
        self.steps += 1
        self.bytes += step.largest
        self.link_bytes += max(step.largest, max(step.link_bytes.values(), default=0))
        self.link_conflicts += sum(messages > 1 for messages in step.link_messages.values())
        self.port_violations += sum(messages > self.ports for messages in step.used_ports.values())
        self.contention_free_steps += max(step.link_messages.values(), default=1)

    def end(self):
        """Closes the last step, looks whether everything has arrived, and returns the result."""
        self.end_step()
        if self.reason is None:
            missing = next(self.undelivered(), None)
            if missing:
                rank, block = missing
                self.fail(f"after the last step rank {rank} misses bytes of block {self.name(block)}")
        return {
            "delivered": self.reason is None,
            "steps": self.steps,
            "blocks": self.in_blocks(self.bytes),
            "link_blocks": self.in_blocks(self.link_bytes),
            "link_conflicts": self.link_conflicts,
            "port_violations": self.port_violations,
            "contention_free_steps": self.contention_free_steps,
            "reason": self.reason,
        }

    def undelivered(self):
        for rank in range(self.ranks):
            held = self.holdings.blocks[rank]
            for source in range(self.ranks):
                block = source * self.ranks + (rank if self.all_to_all else 0)
                if source != rank and block not in held:
                    yield rank, block

    def in_blocks(self, count):
        return count / self.block_bytes if count % self.block_bytes else count // self.block_bytes


def replay(lines):
    schedule = None
    line = 1
    try:
        for line, text in enumerate(lines, 1):
            if schedule is None:
                schedule = Replay(json.loads(text))
            else:
                schedule.message(json.loads(text))
        require(schedule, "empty: line 1 is the header")
    except (Malformed, ValueError, RecursionError) as error:
        raise Malformed(f"line {line}: {error}") from error
    return schedule.end()


def main(paths):
    gc.disable()  # Millions of short lists and no cycles among them.
    status = 0
    for path in paths or ["-"]:
        try:
            if path == "-":
                result = replay(sys.stdin)
            else:
                with open(path, encoding="utf-8") as lines:
                    result = replay(lines)
        except (Malformed, OSError) as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            status = 2
            continue
        print(json.dumps(result), flush=True)
        status = max(status, 0 if result["delivered"] else 1)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
