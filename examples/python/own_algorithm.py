"""Your own algorithm: ranked, proved, simulated and exported with those of topocoll."""

from collections.abc import Iterator

import topocoll as tc


class Threes:
    """Every block goes straight to its destination, rank + 3s in step s."""

    name = "threes"

    def messages(self, machine: tc.Machine) -> Iterator[tuple[int, int, int]]:
        """Yield step, sender and receiver of each message."""
        ranks = machine.ranks
        if ranks % 3 == 0:
            raise tc.NotApplicable(f"{ranks} ranks: requires a number that is not a multiple of 3")
        for step in range(1, ranks):
            for rank in range(ranks):
                yield step - 1, rank, (rank + 3 * step) % ranks


def by_digits(rank: int, step: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the message of a rank in a step on 64 ranks: all blocks whose destination differs in one bit."""
    if step == 6:
        return []
    bit, low = 1 << step, (1 << step) - 1
    sources = [source for source in range(64) if source & ~low == rank & ~low]
    wanted = [to for to in range(64) if to & bit != rank & bit and to & low == rank & low]
    return [(rank ^ bit, [(source, to) for source in sources for to in wanted])]


def main() -> None:
    """Rank both on a torus, and write the better one to a file."""
    machine = tc.machine("torus:8x8")
    found = tc.select(machine, block=64, algorithms=[Threes, by_digits])
    for choice in found:
        if choice.algorithm in ("threes", "by_digits"):
            print(f"place {found.choices.index(choice)}: {choice.named}, {choice.time * 1e6:.1f} us")
    schedule = tc.schedule(machine, by_digits, block=64)
    assert schedule.verify()
    print(schedule.counts["steps"], schedule.simulate("fluid"))
    schedule.save("by_digits.goal")


if __name__ == "__main__":
    main()
