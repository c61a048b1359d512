"""Progress bars through tqdm, where it is installed and somebody can see them."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds of work before a bar appears.
DELAY = 1.0


def _visible() -> bool:
    """Whether a bar is shown: in a notebook, and on a terminal."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell" or sys.stderr.isatty()


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function of the parts done and of all parts, 0 if unknown; none if no bar is shown."""
    if not _visible() or importlib.util.find_spec("tqdm") is None:
        yield None
        return
    begin, shown = time.monotonic(), list[Any]()

    def tick(done: int, total: int) -> None:
        if not shown:
            if time.monotonic() - begin < DELAY:
                return
            from tqdm.auto import tqdm

            shown.append(tqdm(total=total or None, desc=what, leave=False))
        shown[0].total = total or None
        shown[0].update(done - shown[0].n)

    try:
        yield tick
    finally:
        if shown:
            shown[0].close()
