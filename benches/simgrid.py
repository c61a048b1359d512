#!/usr/bin/env python3
"""Compares exchanges in SimGrid with ours in one run: simulated time and CPU seconds.

    cargo build --release -p topocoll-cli && benches/simgrid.py [--large]

Requires SimGrid (Debian: simgrid), which replays the traces of `schedule --format simgrid`. Every rank
continues when its own send and receive are done. Blocks have 1 KiB, links 1 GB/s and 1 us a hop;
SimGrid uses its fluid model without factors (CM02). The second table has SimGrid's own all-to-alls on
the same machine, and the schedules that `select` chooses there. --large adds 32x32.
"""

import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

OURS = pathlib.Path(__file__).resolve().parent.parent / "target/release/topocoll"
MACHINE = ["--block", "1KiB", "--startup", "0s", "--per-hop", "1us", "--bandwidth", "1GB/s"]
PLAIN = ["network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
         "network/weight-S:0", "network/crosstraffic:0", "smpi/async-small-thresh:0",
         "smpi/send-is-detached-thresh:0"]
THEIRS = ["basic_linear", "pair", "ring", "bruck", "2dmesh", "3dmesh", "mvapich2_scatter_dest"]


def measured(command, **options):
    """The output of a command, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         **options)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def written(parent, machine, algorithm):
    """A folder with the schedule in SimGrid's format."""
    folder = pathlib.Path(parent) / "traces"
    measured([OURS, "schedule", machine, "--algorithm", algorithm, *MACHINE, "--format", "simgrid",
              "--out", folder])
    return folder


def replayed(folder, *options):
    """Simulated seconds and CPU seconds of SimGrid for the traces of a folder."""
    ranks = len((folder / "hostfile").read_text().split())
    out, seconds = measured(
        ["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hostfile",
         *(f"--cfg={option}" for option in [*PLAIN, *options]), "-replay", "traces.txt"],
        cwd=folder)
    return float(re.search(r"Simulation time ([0-9.]+)", out)[1]), seconds


def simulated(machine, algorithm, model):
    out, seconds = measured(
        [OURS, "simulate", machine, "--algorithm", algorithm, *MACHINE, "--model", model, "--json"])
    return json.loads(out)["time_seconds"], seconds


def same_schedules(jobs):
    print("machine       algorithm       SimGrid finds    CPU s | model         we find    CPU s   ratio")
    for machine, algorithm in jobs:
        with tempfile.TemporaryDirectory() as parent:
            theirs, their_seconds = replayed(written(parent, machine, algorithm))
        for model in ["fluid", "wormhole"]:
            found, seconds = simulated(machine, algorithm, model)
            print(f"{machine:13} {algorithm:14} {theirs * 1e3:11.3f} ms {their_seconds:8.2f} | "
                  f"{model:9} {found * 1e3:8.3f} ms {seconds:8.2f} {their_seconds / seconds:6.0f}x")


def own_exchanges(machines):
    """SimGrid's all-to-alls, on the routes of the direct exchange, and ours in SimGrid."""
    print("\nmachine       all-to-all                  SimGrid finds")
    for machine in machines:
        with tempfile.TemporaryDirectory() as parent:
            folder = written(parent, machine, "direct")
            for trace in folder.glob("rank-*.txt"):
                rank = trace.stem.split("-")[1]
                trace.write_text(f"{rank} init\n{rank} alltoall 1024 1024\n{rank} finalize\n")
            for name in THEIRS:
                time, _ = replayed(folder, f"smpi/alltoall:{name}")
                print(f"{machine:13} SimGrid {name:22} {time * 1e3:8.3f} ms")
        for algorithm in ["direct", "pairwise-xor", "suh-shin"]:
            with tempfile.TemporaryDirectory() as parent:
                time, _ = replayed(written(parent, machine, algorithm))
            print(f"{machine:13} topocoll {algorithm:21} {time * 1e3:8.3f} ms")


def main():
    jobs = [("torus:8x8", "direct"), ("torus:8x8", "suh-shin"), ("torus:16x16", "direct"),
            ("torus:16x16", "pairwise-xor"), ("torus:16x16", "suh-shin")]
    if "--large" in sys.argv[1:]:
        jobs.append(("torus:32x32", "pairwise-xor"))
    same_schedules(jobs)
    own_exchanges(["torus:8x8", "torus:16x16"])


if __name__ == "__main__":
    main()
