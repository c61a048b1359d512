"""Own algorithms: messages from Python become a schedule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from topocoll import _core
from topocoll._core import Error
from topocoll._values import settings, whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from topocoll._machine import Machine

#: A block: source and destination (an all-gather: the source), and the first byte and the end byte of a part.
Block: TypeAlias = "int | tuple[int, ...]"
#: A message: step, sender, receiver; if need be its blocks, and its route of dimensions and signed hops.
Message: TypeAlias = "tuple[Any, ...]"


class NotApplicable(Error):
    """Raised by an own algorithm that does not apply to a machine: a selection lists it with the text."""


class Algorithm(Protocol):
    """An own algorithm: any object with ``messages``, and if need be ``name`` and ``parameters``."""

    def messages(self, machine: Machine, /) -> Iterable[Message] | npt.NDArray[np.void]:
        """Return all messages by ascending step, each ``(step, sender, receiver, blocks, route)``.

        Without ``blocks`` a message carries the sender's block for the receiver. Without ``route`` it takes the
        machine's own.
        """
        ...


#: What :func:`topocoll.schedule` and :func:`topocoll.select` take as an algorithm.
Own: TypeAlias = (
    "Algorithm | type[Algorithm] | Callable[[int, int], Iterable[Any] | None]"
    " | npt.NDArray[np.void] | Iterable[Message]"
)

#: The most steps of a function of rank and step.
_STEPS = 1 << 16


def listed(
    request: _core.Request, machine: Machine, operation: str, own: Own, given: Mapping[str, Any]
) -> _core.Schedule:
    """Return the schedule of an own algorithm."""
    messages, block = cast(Any, own), request.block_bytes
    if inspect.isclass(messages):
        messages = messages(**given)
    elif given and not callable(getattr(messages, "messages", None)):
        raise Error(f"{name_of(own)} takes no settings: {', '.join(given)}")
    name, parameters = name_of(messages), settings(getattr(messages, "parameters", given))
    if callable(getattr(messages, "messages", None)):
        _check_call(messages.messages, "a machine", machine)
        messages = messages.messages(machine)
    elif callable(messages):
        _check_call(messages, "a rank and a step", 0, 0)
        messages = _steps(messages, machine.ranks)
    if not np.iterable(messages):
        kinds = "a name, a path, a class or an object with `messages`, a function of rank and step, or messages"
        raise Error(f"algorithm is {own!r}: {kinds}")
    if isinstance(messages, np.ndarray):
        arrays = _of_array(messages, operation, block)
    else:
        arrays = _of_tuples(messages, operation, block)
    return request.listed(name, parameters, arrays)


def name_of(own: Any) -> str:
    """Return the name of an own algorithm: its ``name``, or that of its class or function."""
    if isinstance(own, np.ndarray) or inspect.isgenerator(own) or isinstance(own, list | tuple):
        return "messages"
    name = getattr(own, "name", None) or getattr(own, "__name__", None)
    return str(name or type(own).__name__)


def _check_call(function: Any, what: str, *arguments: object) -> None:
    """Check that a function takes these arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        also = "; it is a generator function: call it" if inspect.isgeneratorfunction(function) else ""
        raise Error(f"{name_of(function)} is called with {what}: {error}{also}") from None
    except ValueError:
        # Some functions in C have no signature.
        return


def _steps(function: Callable[[int, int], Iterable[Any] | None], ranks: int) -> Iterator[Message]:
    """Yield the messages of a function of rank and step, up to the first step in which no rank sends."""
    for step in range(_STEPS):
        idle = True
        for rank in range(ranks):
            found = function(rank, step) or ()
            if not np.iterable(found):
                rule = "receivers or messages, in a list"
                raise Error(f"{name_of(function)} gives {found!r} for rank {rank} in step {step}: {rule}")
            for message in found:
                idle = False
                to, *rest = message if isinstance(message, tuple) else (message,)
                yield (step, rank, to, *rest)
        if idle:
            return
    raise Error(f"more than {_STEPS} steps: a function ends with a step in which no rank sends")


def _of_tuples(messages: Iterable[Message], operation: str, block: int) -> dict[str, Any]:
    rows, counts, flat = list[Any](), list[int](), list[Any]()
    route_counts, routes = list[int](), list[Any]()
    for number, message in enumerate(messages):
        try:
            step, sender, receiver, *rest = message
            blocks, route = (*rest, None, None)[:2]
            if len(rest) > 2:
                raise TypeError
        except (TypeError, ValueError):
            rule = "a message is (step, sender, receiver), with its blocks and its route if need be"
            raise Error(f"message {number} is {message!r}: {rule}") from None
        rows.append((step, sender, receiver))
        before, hops = len(flat), len(routes)
        if blocks is None:
            flat.append(_direct(operation, block, sender, receiver))
        else:
            for one in blocks.tolist() if isinstance(blocks, np.ndarray) else blocks:
                flat.append(_block(number, one, operation, block))
        routes.extend(route if route is not None else ())
        counts.append(len(flat) - before)
        route_counts.append(len(routes) - hops)
    return {
        "messages": _array("message", rows, ("step", "from", "to"), np.uint32),
        "counts": np.array(counts, np.uint64),
        "blocks": _array("block", flat, ("source", "destination", "first", "end"), np.uint64),
        "route_counts": np.array(route_counts, np.uint64),
        "routes": _array("route", routes, ("dimension", "hops"), np.int64),
    }


def _direct(operation: str, block: int, sender: Any, receiver: Any) -> tuple[Any, Any, int, int]:
    """Return the whole block that a message carries where none is named."""
    return (sender, receiver if operation == "alltoall" else sender, 0, block)


def _block(number: int, one: Any, operation: str, block: int) -> tuple[Any, ...]:
    """Return source, destination, first byte and end byte of a block of a message."""
    listed = tuple(one) if isinstance(one, tuple | list) else (one,)
    if operation == "allgather":
        # Its blocks have no destination.
        listed = (listed[0], listed[0], *listed[1:])
    if len(listed) == 2:
        return (*listed, 0, block)
    if len(listed) == 4:
        return listed
    rule = "(source, destination)" if operation == "alltoall" else "a source"
    raise Error(f"message {number} has the block {one!r}: a block is {rule}, with a first byte and an end byte")


def _array(what: str, rows: list[Any], names: tuple[str, ...], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return rows of whole numbers as an array."""
    limits, width = np.iinfo(kind), len(names)
    try:
        flat = [value for row in rows for value in row]
    except TypeError as error:
        raise Error(f"{what}s are rows of {width} whole numbers: {error}") from None
    if len(flat) != width * len(rows):
        raise Error(f"{what}s are rows of {width} whole numbers")
    # Most are of one type and in range.
    if {*map(type, flat)} - {int} or (flat and not limits.min <= min(flat) <= max(flat) <= limits.max):
        for place, value in enumerate(flat):
            name = f"{what} {place // width}: {names[place % width]}"
            flat[place] = whole(name, value, int(limits.max), least=int(limits.min))
    return np.array(flat, kind).reshape(-1, width)


def _of_array(array: npt.NDArray[np.void], operation: str, block: int) -> dict[str, Any]:
    """Return the messages of a structured array.

    It has the fields ``step``, ``from`` and ``to``. With ``source`` and ``destination`` a row is a block, and rows that
    follow each other and have equal ``step``, ``from``, ``to`` and, if there is one, ``message`` are a message.
    Otherwise a row is a message that carries the sender's block for the receiver.
    """
    names = array.dtype.names or ()
    missing = [name for name in ("step", "from", "to") if name not in names]
    if missing or array.ndim != 1:
        raise Error(f"an array of messages has one dimension and the fields step, from and to: missing {missing}")
    rows = _columns(array, ("step", "from", "to"), np.uint32)
    blocks = np.zeros((len(array), 4), np.uint64)
    blocks[:, 3] = block
    if "source" not in names:
        blocks[:, 0] = rows[:, 1]
        blocks[:, 1] = rows[:, 2 if operation == "alltoall" else 1]
        counts = np.ones(len(array), np.uint64)
    else:
        for column, name in enumerate(
            ("source", "destination" if "destination" in names else "source", "first", "end")
        ):
            if name in names:
                blocks[:, column] = _columns(array, (name,), np.uint64)[:, 0]
        keys = ("step", "from", "to", *(("message",) if "message" in names else ()))
        new = np.ones(len(array), bool)
        if len(array):
            new[1:] = np.any([array[key][1:] != array[key][:-1] for key in keys], axis=0)
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(array))).astype(np.uint64)
        rows = np.ascontiguousarray(rows[starts])
    none = np.zeros(len(rows), np.uint64)
    return {
        "messages": rows,
        "counts": counts,
        "blocks": blocks,
        "route_counts": none,
        "routes": np.zeros((0, 2), np.int64),
    }


def _columns(array: npt.NDArray[np.void], names: tuple[str, ...], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return columns of whole numbers, side by side."""
    for name in names:
        if array[name].dtype.kind not in "iu":
            raise Error(f"{name} of an array of messages is {array[name].dtype}: it must be whole numbers")
        wrong = np.flatnonzero((array[name] < 0) | (array[name] > np.iinfo(kind).max))
        if len(wrong):
            row = int(wrong[0])
            raise Error(
                f"message {row}: {name} is {array[name][row]}: not a whole number from 0 to {np.iinfo(kind).max}"
            )
    return np.stack([array[name].astype(kind) for name in names], axis=1)
