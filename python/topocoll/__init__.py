"""All-to-all and all-gather schedules for machines with a shape.

>>> import topocoll as tc
>>> m = tc.machine("torus:8x8", ports=4)
>>> r = tc.select(m, block="4KiB")
>>> s = r.best.schedule()
>>> bool(s.verify())
True
"""

from topocoll._core import Error, __version__
from topocoll._machine import Machine, machine
from topocoll._own import Algorithm, NotApplicable
from topocoll._schedule import Report, Schedule, Simulation, Verification, schedule
from topocoll._select import Choice, Selection, select
from topocoll._sweep import Sweep, sweep

__all__ = [
    "Algorithm",
    "Choice",
    "Error",
    "Machine",
    "NotApplicable",
    "Report",
    "Schedule",
    "Selection",
    "Simulation",
    "Sweep",
    "Verification",
    "__version__",
    "machine",
    "schedule",
    "select",
    "sweep",
]
