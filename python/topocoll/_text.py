"""Numbers for people, as the program writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: The units of durations, in seconds.
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds(value: float) -> str:
    """Return a duration with four digits: ``31.35 ms``."""
    scale, unit = next((pair for pair in _UNITS if value >= pair[0]), _UNITS[-1])
    number = value / scale
    if number == 0:
        return f"0 {unit}"
    digits = min(max(3 - math.floor(math.log10(number)), 0), 9)
    return f"{number:.{digits}f} {unit}"


def blocks(value: float) -> str:
    """Return a number of blocks: whole, or with three digits after the point."""
    return str(int(value)) if value == int(value) else f"{value:.3f}"


def size(value: int) -> str:
    """Return a number of bytes: ``4 KiB``."""
    for shift, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << shift and value % (1 << shift) == 0:
            return f"{value >> shift} {name}"
    return f"{value} B"


def setting(parameters: Mapping[str, int | str]) -> str:
    """Return parameters as ``layout=fixed ways=nearer``."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def named(algorithm: str, parameters: Mapping[str, int | str]) -> str:
    """Return an algorithm with its setting in brackets."""
    return f"{algorithm} ({setting(parameters)})" if parameters else algorithm


def count(number: int, what: str) -> str:
    """Return a number of things: ``1 port``, ``4 ports``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
