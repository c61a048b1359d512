"""A tour: select, prove, simulate, and look at the messages."""

import numpy as np

import topocoll as tc

machine = tc.machine("torus:8x8", ports=4)
selection = tc.select(machine, block="4KiB")
print(selection)

schedule = selection.best.schedule()
print(schedule.verify())
print(schedule.counts["steps"], "steps,", schedule.counts["link_blocks"], "blocks over the busiest links")

messages = schedule.messages
sent = np.bincount(messages["from"], messages["bytes"].astype(float))
print("bytes sent by each rank:", sent.min(), "to", sent.max())

simulation = schedule.simulate(model="fluid")
print(simulation, simulation.latencies.mean())
print(tc.sweep(machine, blocks="64:1MiB").crossovers)
