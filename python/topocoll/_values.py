"""Arguments that are whole numbers, modules that are loaded when used, and objects that compare by value."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from topocoll._core import Error


def whole(what: str, value: object, most: int = (1 << 32) - 1, *, least: int = 0, also: str = "") -> int:
    """Return a whole number: of any integer type, but no float and no truth value."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise Error(f"{what} is {value!r}: not a whole number from {least} to {most}{also}")
    return number


def settings(given: Mapping[str, object]) -> dict[str, int | str]:
    """Return parameters: whole numbers and words."""
    most = (1 << 64) - 1
    return {
        name: value if isinstance(value, str) else whole(name, value, most, also=", or a word")
        for name, value in given.items()
    }


@contextmanager
def extra() -> Iterator[None]:
    """Say how a module that the package does not require is installed, if its import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed: pip install 'topocoll[notebook]'") from None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
        )
    return one is other or bool(one == other)


class Value:
    """Compares by type and attributes, without those that are computed on first use."""

    def __getstate__(self) -> dict[str, Any]:
        own = type(self)
        return {name: part for name, part in vars(self).items() if not isinstance(vars(own).get(name), cached_property)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value) or type(self) is not type(other):
            return NotImplemented
        return _same(self.__getstate__(), other.__getstate__())

    def __hash__(self) -> int:
        return hash(repr(self))
