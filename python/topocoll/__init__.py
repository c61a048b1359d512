"""All-to-all and all-gather schedules for machines with a shape.

machine      a machine: of a short form, a file, a dictionary or a networkx graph
select       every algorithm and setting, ranked by predicted time
schedule     a schedule: of an algorithm, a file, or your own messages
sweep        predicted times over block sizes
plan         matchings of a demand matrix, in the time of a step
algorithms   the algorithms, and what they take
machines     the shipped machines

A bad request raises Error, a ValueError. help(tc.Schedule) and so on describe what the functions return.

>>> import topocoll as tc
>>> m = tc.machine("torus:8x8", ports=4)
>>> r = tc.select(m, block="4KiB")
>>> s = r.best.schedule()
>>> bool(s.verify())
True
"""

from topocoll._core import Error as Error, __version__ as __version__
from topocoll._machine import Machine as Machine, machine, machines
from topocoll._own import Algorithm as Algorithm, NotApplicable as NotApplicable
from topocoll._plan import Plan as Plan, plan
from topocoll._schedule import (
    Report as Report,
    Schedule as Schedule,
    Simulation as Simulation,
    Verification as Verification,
    schedule,
)
from topocoll._select import Choice as Choice, Selection as Selection, algorithms, select
from topocoll._sweep import Sweep as Sweep, sweep

# The functions: `help(tc)` lists them, and not what their results inherit.
__all__ = ["algorithms", "machine", "machines", "plan", "schedule", "select", "sweep"]
