#!/usr/bin/env python3
"""Replays schedules written as JSON lines and checks that they deliver.

usage: replay.py [PATH ...]          no path, or `-`: standard input

An independent check: it follows every byte and knows the format alone, nothing of the algorithms
or of how they were verified. Per schedule it prints one line of JSON:

  delivered              every message sends what its sender holds, along a route that stays on the
                         network and ends at the receiver, and in the end every rank holds every byte
                         meant for it
  steps                  steps with a message
  blocks                 sum over steps of the largest message, in blocks; where a rank or node has more messages
                         than ports, of the bytes of a port
  link_blocks            sum over steps of the largest message or link load, whichever is more
  link_conflicts         pairs of a step and a directed link with several messages
  port_violations        cases of a step, a rank, and a direction with more messages than ports; on
                         nodes of several ranks also of a node, whose messages to or from other nodes count
  contention_free_steps  sum over steps of the most messages on one link; 1 where there are no links
  reason                 the first failure, or null

Exit status: 0 all delivered, 1 some did not, 2 input that is not in the format.
"""

import gc
import json
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import accumulate
from math import ceil, prod


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

    def capacity(self, _link):
        return 1


class Graph:
    """Nodes, switches and links as the header lists them."""

    def __init__(self, vertices, nodes, links):
        require(whole(vertices, 1), "no number of vertices")
        require(numbers(nodes) and len(set(nodes)) == len(nodes), "nodes that are not vertices, each once")
        require(type(links) is list and all(type(link) is list and len(link) == 4 for link in links), "no links")
        for start, end, _, capacity in links:
            require(all(0 <= vertex < vertices for vertex in (start, end, *nodes)), "a vertex that is not there")
            require(capacity > 0, "a link without capacity")
        self.nodes, self.ends = nodes, links
        self.node_at = {vertex: node for node, vertex in enumerate(nodes)}

    def links(self, node, numbers):
        """The links of a route and the node where it ends: None if they do not join."""
        at = self.nodes[node]
        for number in numbers:
            if not 0 <= number < len(self.ends) or self.ends[number][0] != at:
                return [], None
            at = self.ends[number][1]
        return numbers, self.node_at.get(at)

    def capacity(self, link):
        return self.ends[link][3]


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
        self.used_ports = defaultdict(list)
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
        self.node_ports = header.get("node_ports", self.ports)
        counts = self.ranks, self.block_bytes, self.ports, self.node_ports
        require(all(whole(value, 1) for value in counts), "no counts from 1 up")
        self.network = self.first_ranks = None
        self.read_topology(header.get("topology"))
        # The number of each rank's group; those in none have no blocks.
        self.group = None
        if "groups" in header:
            groups = header["groups"]
            require(type(groups) is list and all(numbers(group) for group in groups), "groups of ranks")
            self.group = {rank: number for number, group in enumerate(groups) for rank in group}
            disjoint = sum(map(len, groups)) == len(self.group)
            require(disjoint and self.group.keys() <= set(range(self.ranks)), "groups that are not of its ranks")

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
            require(topology.get("ties", "up") in ("up", "balanced"), "ties that are neither up nor balanced")
            self.network = Grid(sides, wraps)
            self.read_nodes(topology, prod(sides))
        elif kind == "graph":
            self.network = Graph(*(topology.get(key) for key in ("vertices", "nodes", "links")))
            self.read_nodes(topology, len(self.network.nodes))
        elif kind == "cluster":
            sizes = topology.get("sizes")
            require(numbers(sizes) and sizes and min(sizes) > 0, "sizes of the nodes")
            require(sum(sizes) == self.ranks, "the cluster has another number of ranks")
            self.first_ranks = [0, *accumulate(sizes[:-1])]
        else:
            require(kind == "full", f"unknown topology {kind!r}")

    def read_nodes(self, topology, nodes):
        """Ranks on each node: one, or as many as `ranks_per_node` says."""
        sizes = topology.get("ranks_per_node", [1] * nodes)
        sizes = [sizes] * nodes if whole(sizes, 1) else sizes
        require(numbers(sizes, nodes) and min(sizes) > 0, "ranks on each node")
        require(sum(sizes) == self.ranks, "the nodes have another number of ranks")
        self.first_ranks = [0, *accumulate(sizes[:-1])]

    def node(self, rank):
        return bisect_right(self.first_ranks, rank) - 1

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
        links = self.links(message, sender, receiver)
        step.link_messages.update(links)
        for link in links:
            step.link_bytes[link] += size
        step.used_ports["sends", sender].append(size)
        step.used_ports["receives", receiver].append(size)
        if self.first_ranks:
            leaves, enters = self.node(sender), self.node(receiver)
            if leaves != enters:
                step.used_ports["node sends", leaves].append(size)
                step.used_ports["node receives", enters].append(size)

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

    def links(self, message, sender, receiver):
        on_graph = type(self.network) is Graph
        route = message.get("links" if on_graph else "route", [])
        if on_graph:
            require(numbers(route) or route == [], "no links")
        else:
            require(type(route) is list and all(numbers(segment, 2) for segment in route), "no route")
        if self.network is None:
            require(not route, "a route, and no grid")
            return []
        leaves, enters = self.node(sender), self.node(receiver)
        if leaves == enters:
            require(not route, "a route inside a node")
            return []
        links, end = self.network.links(leaves, route)
        if end is None:
            self.fail(f"step {self.number}: the route from rank {sender} to rank {receiver} leaves the network")
        elif end != enters:
            self.fail(f"step {self.number}: the route from rank {sender} ends at node {end}, not at node {enters}")
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
        # Messages beyond the ports are distributed over them.
        exceeding = 0
        for (end, _), sizes in step.used_ports.items():
            ports = self.node_ports if end.startswith("node") else self.ports
            if len(sizes) > ports:
                exceeding += 1
                most = ceil(Fraction(len(sizes), ports))
                step.largest = max(step.largest, most * min(sizes), ceil(Fraction(sum(sizes), ports)))
        self.steps += 1
        self.bytes += step.largest
        # A whole byte of each step at least.
        loads = (ceil(Fraction(size) / self.fraction(link)) for link, size in step.link_bytes.items())
        self.link_bytes += max(step.largest, max(loads, default=0))
        self.link_conflicts += sum(messages > 1 for messages in step.link_messages.values())
        self.port_violations += exceeding
        self.contention_free_steps += max(step.link_messages.values(), default=1)

    def fraction(self, link):
        return Fraction(self.network.capacity(link)).limit_denominator(1 << 16)

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
                if source != rank and block not in held and self.joins(source, rank):
                    yield rank, block

    def joins(self, one, other):
        """Whether two ranks exchange with each other."""
        return self.group is None or self.group.get(one) == self.group.get(other) is not None

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
