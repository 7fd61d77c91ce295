#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RDMA over TCP: Send, Write and Read bandwidth and the Send ping-pong, side by side, in one run.

Everyone runs in one network namespace of the bench's own, over its loopback, under one congestion
control, with one core for each side. Polling and blocking are measured apart. Runs are interleaved
and repeated; tables show the median, the spread, and the ratio to the base.

    bench/rdma.py [--rounds 5] [--seconds 0.3] [--sizes 64,4K,1M] [--only WORD] [--json]
"""
import argparse
import json
import os
import sys

from rdma_contestants import OPERATIONS, WAITINGS, Workload, all_contestants, peer_versions
from rounds import (add_ratios, add_usual_options, check_usual_options, parse_size, ratio_text,
                    size_text, spread, spread_text, take_turns)
from surroundings import (CONGESTION_CONTROL, PROGRAMS, enter_namespace, expect_cores, expect_tools)

SIZES = "64,1K,4K,16K,64K,256K,1M"


def workloads(arguments):
    for operation in OPERATIONS:
        depth = {"read": arguments.read_depth, "ping-pong": 1}.get(operation, arguments.depth)
        for waiting in WAITINGS:
            for size in map(parse_size, arguments.sizes.split(",")):
                workload = Workload(operation, waiting, size, depth)
                if arguments.only in str(workload):
                    yield workload


def is_latency(operation):
    return operation == "ping-pong" or operation.endswith("latency")


def summary(workload, samples):
    """MiB/s, or microseconds one way for the ping-pong."""
    if is_latency(workload.operation):
        return spread([each * 1e6 for each in samples])
    return spread([workload.size / each / 2**20 for each in samples])


def show(results, names, base):
    for operation in OPERATIONS:
        for waiting in WAITINGS:
            rows = {workload: by_name for workload, by_name in results.items()
                    if (workload.operation, workload.waiting) == (operation, waiting)}
            present = [name for name in names if any(name in row for row in rows.values())]
            if present:
                show_table(rows, present, base, operation, waiting)


def show_table(rows, names, base, operation, waiting):
    ways = "there and back" if operation == "read latency" else "one way"
    unit = f"µs {ways}, less is better" if is_latency(operation) else "MiB/s"
    depth = next(iter(rows)).depth
    print(f"\n**{operation}, {waiting}**, depth {depth}: {unit} (spread), × {base}\n")
    print("| size | " + " | ".join(names) + " |")
    print("|--:|" + "--:|" * len(names))
    for workload, by_name in rows.items():
        cells = [size_text(workload.size)]
        for name in names:
            if result := by_name.get(name):
                ratio = ratio_text(result) if name != base else ""
                cells.append(spread_text(result) + ratio)
            else:
                cells.append("")
        print("| " + " | ".join(cells) + " |")


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    add_usual_options(options, rounds=5, seconds=0.3)
    options.add_argument("--sizes", default=SIZES)
    options.add_argument("--depth", type=int, default=64, help="Sends or Writes under way at once")
    options.add_argument("--read-depth", type=int, default=16, help="the same for Reads")
    options.add_argument("--base", default="raw TCP", help="the contestant of the ratios")
    arguments = options.parse_args()
    check_usual_options(options, arguments)
    return arguments


def main():
    arguments = parse_arguments()
    expect_tools("cmake", "unshare", "ip", "taskset", "timeout", "fi_pingpong", "ucx_perftest")
    expect_cores()
    enter_namespace("bench_rdma")
    contestants = [each for each in all_contestants(PROGRAMS)
                   if each.name not in arguments.without]
    names = [contestant.name for contestant in contestants]
    if arguments.base not in names:
        sys.exit(f"--base {arguments.base}: who takes part is {', '.join(names)}")
    load = os.getloadavg()[0]
    samples, failures = take_turns(arguments, contestants, workloads(arguments))
    results = {workload: {name: summary(workload, runs) for name, runs in by_name.items()}
               for workload, by_name in samples.items()}
    for by_name in results.values():
        add_ratios(by_name, arguments.base)
    versions = {"Linux": os.uname().release, **peer_versions()}
    if arguments.json:
        print(json.dumps({"congestion_control": CONGESTION_CONTROL, "versions": versions,
                          "load_before": load, "base": arguments.base, "rounds": arguments.rounds,
                          "seconds": arguments.seconds, "failures": failures,
                          "results": [{"operation": workload.operation,
                                       "waiting": workload.waiting, "size": workload.size,
                                       "depth": workload.depth, "contestants": by_name}
                                      for workload, by_name in results.items()]}, indent=2))
    else:
        print(", ".join(f"{name} {version}" for name, version in versions.items()) +
              f"; congestion control {CONGESTION_CONTROL}; {arguments.rounds} rounds of "
              f"{arguments.seconds:g} s; load before: {load:.1f}")
        show(results, names, arguments.base)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
