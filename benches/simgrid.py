#!/usr/bin/env python3
"""The same exchanges in SimGrid and here, in one run: simulated time and CPU seconds.

    cargo build --release && benches/simgrid.py [--large]

Needs SimGrid (Debian: simgrid). Every rank goes on when its own send and receive are done; links of
1 GB/s and 1 us a hop, SimGrid's fluid model without its factors (CM02). --large adds 32x32.
"""

import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

OURS = pathlib.Path(__file__).resolve().parent.parent / "target/release/topocoll"
PLAIN = ["network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
         "network/weight-S:0", "network/crosstraffic:0"]


def measured(command):
    """What a command prints, and the CPU seconds that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def simgrid(folder, side, rounds):
    """Replays rounds of (rank -> to, from) as SimGrid's time-independent traces."""
    ranks = side * side
    (folder / "torus.xml").write_text(f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="t" prefix="n" suffix="" radical="0-{ranks - 1}" speed="1Gf" bw="1GBps" lat="1us"
           topology="TORUS" topo_parameters="{side},{side}" sharing_policy="SPLITDUPLEX"
           loopback_bw="10GBps" loopback_lat="100ns"/>
</platform>
""")
    (folder / "hosts").write_text("".join(f"n{rank}\n" for rank in range(ranks)))
    traces = [folder / f"{rank}.txt" for rank in range(ranks)]
    (folder / "traces").write_text("".join(f"{trace}\n" for trace in traces))
    for rank, trace in enumerate(traces):
        lines = [f"{rank} init"]
        for s in range(1, ranks):
            to, source = rounds(rank, s, ranks)
            lines += [f"{rank} irecv {source} {s} 1024", f"{rank} isend {to} {s} 1024",
                      f"{rank} waitall"]
        trace.write_text("\n".join([*lines, f"{rank} finalize", ""]))
    out, seconds = measured(
        ["smpirun", "-np", str(ranks), "-platform", folder / "torus.xml", "-hostfile",
         folder / "hosts", *(f"--cfg={option}" for option in PLAIN), "-replay", folder / "traces"])
    return float(re.search(r"Simulation time ([0-9.]+)", out)[1]), seconds


def ours(side, algorithm, model):
    out, seconds = measured(
        [OURS, "simulate", f"torus:{side}x{side}", "--algorithm", algorithm, "--block", "1KiB",
         "--startup", "0s", "--per-hop", "1us", "--bandwidth", "1GB/s", "--model", model, "--json"])
    return json.loads(out)["time_seconds"], seconds


def main():
    jobs = [(16, "direct", lambda rank, s, ranks: ((rank + s) % ranks, (rank - s) % ranks)),
            (16, "pairwise-xor", lambda rank, s, ranks: (rank ^ s, rank ^ s))]
    if "--large" in sys.argv[1:]:
        jobs.append((32, "pairwise-xor", lambda rank, s, ranks: (rank ^ s, rank ^ s)))
    print("torus   algorithm      SimGrid simulates   CPU s | model      simulates   CPU s   ratio")
    for side, algorithm, rounds in jobs:
        with tempfile.TemporaryDirectory() as folder:
            theirs, their_seconds = simgrid(pathlib.Path(folder), side, rounds)
        for model in ["fluid", "wormhole"]:
            found, seconds = ours(side, algorithm, model)
            print(f"{side}x{side}   {algorithm:14} {theirs * 1e3:14.3f} ms {their_seconds:7.2f} | "
                  f"{model:9} {found * 1e3:8.3f} ms {seconds:7.2f} {their_seconds / seconds:6.0f}x")


if __name__ == "__main__":
    main()
