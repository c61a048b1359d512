#!/usr/bin/env python3
"""The least volume of an all-to-all at every number of steps, by search where the bound is not met.

    cargo build --release -p topocoll-cli
    pip install ortools==9.15.6755
    benches/optimal/optimal.py [--limit TIME] [--only MACHINE ..]     # writes optimal.csv
    benches/optimal/optimal.py --table                                   # prints it for the book

Volume is the charged volume in blocks: the sum over steps of the largest message, or of the busiest
link where that carries more. Blocks are equal, whole, and never copied. Routes are shortest ones, one
dimension after the other, in any order of the dimensions, by either way around where both are shortest.

Classes of schedules that are searched:
- `all`: every schedule of up to 9 ranks.
- `translations`: up to 16 ranks, tori and complete graphs; in a step every rank sends to the ranks at
  the same offsets, by the same routes, and the blocks of the same offsets. Blocks of an offset may make
  their moves in any order, so an offset is a set of moves.

A row is `bound` where our schedule is at the bound, so that nothing was searched; `optimal` where the
solver proved the least volume of the class, or that there is none below ours; `feasible` where the volume
is the least that is known, and the solver proved `at_least` in time; `unknown` where it found none;
`none` where it proved that the class has none. The rows of a machine end where more steps gain nothing.
"""

import argparse
import csv
import itertools
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OURS = HERE.parent.parent / "target/release/topocoll"
FILE = HERE / "optimal.csv"
FIELDS = ["machine", "ports", "steps", "bound", "ours", "class", "status", "volume", "at_least"]
# No line of steps is longer; beyond, only the bound on links and ports is left.
LONGEST = 12

MACHINES = {
    "full": [[n] for n in range(3, 17)],
    "torus": [[n] for n in range(3, 17)] + [[2, 3], [2, 4], [3, 3], [2, 2, 2], [3, 4], [2, 6], [2, 2, 3], [3, 5],
              [2, 7], [4, 4]],
    "mesh": [[n] for n in range(3, 17)] + [[2, 2], [2, 3], [2, 4], [3, 3], [2, 2, 2], [3, 4], [4, 4]],
}


class Network:
    """A machine: its ranks, and the routes between two of them as lists of links."""

    def __init__(self, kind, sides):
        self.kind, self.sides = kind, sides
        self.ranks = math.prod(sides)
        self.places = list(itertools.product(*map(range, sides)))

    @property
    def name(self):
        return f"{self.kind}:{'x'.join(map(str, self.sides))}"

    def most_ports(self):
        if self.kind == "full":
            return self.ranks - 1
        # A ring of two ranks has one link each way.
        return sum(2 if side > 2 else 1 for side in self.sides)

    def ways(self, u, hops):
        """The shortest signed hops of an offset along a dimension."""
        side = self.sides[u]
        if self.kind == "mesh":
            return [hops]
        hops %= side
        if 2 * hops == side:
            return [hops, -hops] if side > 2 else [hops]
        return [hops if 2 * hops < side else hops - side]

    def routes(self, source, target):
        """Sets of links; links are (rank, dimension, direction)."""
        if self.kind == "full":
            return [frozenset()]
        found = set()
        offset = [t - s for s, t in zip(source, target)]
        for hops in itertools.product(*(self.ways(u, by) for u, by in enumerate(offset))):
            moved = [u for u, by in enumerate(hops) if by]
            for order in itertools.permutations(moved):
                at, links = list(source), set()
                for u in order:
                    sign = 1 if hops[u] > 0 else -1
                    for _ in range(abs(hops[u])):
                        links.add((tuple(at), u, sign))
                        at[u] = (at[u] + sign) % self.sides[u]
                found.add(frozenset(links))
        return sorted(found, key=lambda links: sorted(links))


def every_schedule(model, network, ports, steps):
    """Variables of all schedules; the cost of each step."""
    places, costs = network.places, []
    blocks = [(s, d) for s in places for d in places if s != d]
    pairs = blocks
    at = {(b, v): int(b[0] == v) for b in blocks for v in places}
    for step in range(steps):
        cost = model.new_int_var(0, len(blocks), f"cost{step}")
        costs.append(cost)
        carried, after, moves = {}, {}, {}
        for pair in pairs:
            for b in blocks:
                if b[1] != pair[0] and b[0] != pair[1]:
                    moves[b, pair] = model.new_bool_var("")
            size = sum(moves[b, pair] for b in blocks if (b, pair) in moves)
            routes = network.routes(*pair)
            taken = [model.new_bool_var("") for _ in routes]
            model.add(sum(taken) <= 1)
            for b in blocks:
                if (b, pair) in moves:
                    model.add(sum(taken) >= moves[b, pair])
            model.add(cost >= size)
            for route, is_taken in zip(routes, taken):
                carried_by = model.new_int_var(0, len(blocks), "")
                model.add(carried_by >= size).only_enforce_if(is_taken)
                for link in route:
                    carried.setdefault(link, []).append(carried_by)
            after[pair] = sum(taken)
        for loads in carried.values():
            model.add(cost >= sum(loads))
        for v in places:
            model.add(sum(after[pair] for pair in pairs if pair[0] == v) <= ports)
            model.add(sum(after[pair] for pair in pairs if pair[1] == v) <= ports)
        now = {}
        for b in blocks:
            for v in places:
                out = [moves[b, (v, w)] for w in places if (b, (v, w)) in moves]
                into = [moves[b, (w, v)] for w in places if (b, (w, v)) in moves]
                model.add(sum(out) <= at[b, v])
                now[b, v] = model.new_bool_var("")
                model.add(now[b, v] == at[b, v] - sum(out) + sum(into))
        at = now
    for b in blocks:
        model.add(at[b, b[1]] == 1)
    return costs


def by_translations(model, network, ports, steps):
    """Variables of schedules that all ranks perform alike; the cost of each step."""
    offsets, most = network.places[1:], len(network.places)
    moves = [[] for _ in offsets]
    costs, before = [], None
    for step in range(steps):
        cost = model.new_int_var(0, len(offsets), f"cost{step}")
        costs.append(cost)
        loads = {}
        for port in range(ports):
            used = [model.new_bool_var("") for _ in offsets]
            size = model.new_int_var(0, len(offsets), "")
            model.add(size == sum(used))
            model.add(cost >= size)
            hops = []
            for u, side in enumerate(network.sides):
                ways = (0, side - 1) if network.kind == "full" else (-(side // 2), side // 2)
                by = model.new_int_var(*ways, "")
                hops.append(by)
                for sign in (1, -1) if network.kind != "full" else ():
                    far = model.new_int_var(0, side // 2, "")
                    model.add_max_equality(far, [0, sign * by])
                    load = model.new_int_var(0, len(offsets) * (side // 2), "")
                    model.add_multiplication_equality(load, [far, size])
                    loads.setdefault((u, sign), []).append(load)
            for moved, is_used in zip(moves, used):
                made = []
                for by, side in zip(hops, network.sides):
                    one = model.new_int_var(-side, side, "")
                    model.add(one == by).only_enforce_if(is_used)
                    model.add(one == 0).only_enforce_if(is_used.negated())
                    made.append(one)
                moved.append((step, is_used, made))
            if port == 0:
                number = sum(by * (2 * most) ** u for u, by in enumerate(hops))
        if before is not None:
            # Steps in any order are the same schedule.
            model.add(number >= before)
        before = number
        for load in loads.values():
            model.add(cost >= sum(load))
    for offset, moved in zip(offsets, moves):
        for step in range(steps):
            model.add_at_most_one(is_used for at, is_used, _ in moved if at == step)
        for u, (by, side) in enumerate(zip(offset, network.sides)):
            around = model.new_int_var(-steps, steps, "")
            model.add(sum(made[u] for _, _, made in moved) == by + side * around)
    return costs


def search(network, ports, steps, bound, known, limit):
    """The class, status, volume and proven bound of a search for less than a known volume of the class."""
    from ortools.sat.python import cp_model

    if network.ranks <= 9:
        kind, variables = "all", every_schedule
    else:
        kind, variables = "translations", by_translations
    model = cp_model.CpModel()
    costs = variables(model, network, ports, steps)
    if known is not None:
        model.add(sum(costs) <= math.ceil(known - 1e-9) - 1)
    model.add(sum(costs) >= math.ceil(bound - 1e-9))
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    # A limit and an order of work that give the same answers on every machine.
    solver.parameters.max_deterministic_time = limit
    solver.parameters.num_workers = 4
    solver.parameters.interleave_search = True
    status = solver.solve(model)
    best = "" if known is None else known
    if status == cp_model.INFEASIBLE:
        return (kind, "none", "", "") if known is None else (kind, "optimal", best, best)
    at_least = math.ceil(max(bound, solver.best_objective_bound) - 1e-6)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        named = "optimal" if status == cp_model.OPTIMAL else "feasible"
        return kind, named, round(solver.objective_value), at_least
    return kind, "unknown" if known is None else "feasible", best, at_least


def ask(*arguments):
    run = subprocess.run([OURS, *arguments, "--json"], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {run.stderr}")
    return json.loads(run.stdout)


def bound_at(name, ports, steps):
    """The least charged volume in at most some steps; None if there is no schedule."""
    told = ask("bounds", name, "--ports", str(ports), "--steps", str(steps))
    values = [b["value"] for b in told["bounds"] if b["measure"] in ("blocks", "link_blocks")
              and (b.get("condition") is None or b["condition"] == f"schedules of at most {steps} steps")]
    fewest = max(b["value"] for b in told["bounds"] if b["measure"] == "steps" and not b.get("condition"))
    return max(values) if steps >= fewest else None


def rows(limit, only):
    for kind, shapes in MACHINES.items():
        for sides in shapes:
            network = Network(kind, sides)
            if only and network.name not in only:
                continue
            for ports in sorted({1, network.most_ports()}):
                front = ask("sweep", network.name, "--ports", str(ports), "--front")["front"]
                points = [(p["steps"], p["link_blocks"]) for p in front]
                least = best = None
                for steps in range(1, LONGEST + 1):
                    bound = bound_at(network.name, ports, steps)
                    if bound is None:
                        continue
                    ours = min((v for t, v in points if t <= steps), default=None)
                    row = dict(machine=network.name, ports=ports, steps=steps, bound=round(bound, 4),
                               ours="" if ours is None else round(ours, 4))
                    if ours is not None and ours <= bound + 1e-9:
                        best = ours if network.ranks <= 9 else best
                        row |= {"class": "", "status": "bound", "volume": row["ours"], "at_least": row["bound"]}
                    elif network.ranks <= 9 or kind != "mesh":
                        known = [best] + ([ours] if network.ranks <= 9 else [])
                        known = min((one for one in known if one is not None), default=None)
                        if known is not None and known <= math.ceil(bound - 1e-9):
                            kinds = "all" if network.ranks <= 9 else "translations"
                            found = kinds, "optimal", known, known
                        else:
                            found = search(network, ports, steps, bound, known, limit)
                        row |= dict(zip(["class", "status", "volume", "at_least"], found))
                        improved, best = found[2] != best, found[2] if found[2] != "" else None
                    else:
                        row |= {"class": "", "status": "", "volume": "", "at_least": row["bound"]}
                    yield row
                    # More steps have no lower bound, and nothing better is known.
                    more = any(steps < t <= LONGEST and v < ours for t, v in points if ours is not None)
                    final = bound == least and not more
                    least = bound
                    if final and (row["status"] in ("bound", "") or not improved):
                        break


def table():
    with FILE.open() as file:
        found = list(csv.DictReader(file))
    print("| machine | ports | steps | bound | ours | of the bound | best of its class | status |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for row in found:
        ours, bound = row["ours"], float(row["bound"])
        ratio = f"{float(ours) / bound:.2f}" if ours else ""
        best = row["volume"]
        if row["status"] in ("feasible", "unknown") and row["at_least"]:
            best = f"{best or '?'} (at least {row['at_least']})"
        status = row["status"] + (f", {row['class']}" if row["class"] else "")
        print(f"| `{row['machine']}` | {row['ports']} | {row['steps']} | {bound:g} | {ours} | {ratio} "
              f"| {best} | {status} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--limit", type=float, default=10, help="the solver's deterministic time of a search, near seconds")
    parser.add_argument("--only", nargs="*", help="machines, such as torus:3x3; prints the rows alone")
    parser.add_argument("--table", action="store_true", help="print the table of optimal.csv")
    given = parser.parse_args()
    if given.table:
        return table()
    if given.only:
        writer = csv.DictWriter(sys.stdout, FIELDS)
        writer.writeheader()
        for row in rows(given.limit, given.only):
            writer.writerow(row)
            sys.stdout.flush()
        return None
    partial = FILE.with_suffix(".part")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for row in rows(given.limit, None):
            writer.writerow(row)
            file.flush()
    partial.replace(FILE)
    return None


if __name__ == "__main__":
    main()
