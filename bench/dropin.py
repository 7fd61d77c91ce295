#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock RDMA programs on Weft's drop-in libraries: perftest and fio, held against raw TCP.

As bench/rdma.py: one network namespace of its own, one core for each side, runs interleaved and
repeated; tables show the median, the spread, and the ratio to raw TCP of the same run.

    bench/dropin.py [--quick] [--rounds 5] [--seconds 0.3] [--sizes 64,4K,1M] [--only WORD] [--json]
"""
import argparse
import json
import os
import sys

from dropin_contestants import OPERATIONS, READ_LATENCY_MAX, all_contestants, versions
from rdma import SIZES, show_table, summary
from rdma_contestants import WAITINGS, Workload
from rounds import (add_ratios, add_usual_options, check_usual_options, choose_unsaid, parse_size,
                    take_turns)
from surroundings import (CONGESTION_CONTROL, PROGRAMS, enter_namespace, expect_cores, expect_tools)

TOOLS = ("cmake", "unshare", "ip", "taskset", "timeout", "ib_send_bw", "fio")
QUICK_SIZES = "64,64K,1M"
# The kernel's siw against its own raw TCP, by instructions, large MTU, in the guest of the lab.
SIW = ("Linux's siw reaches of its own raw TCP, by instructions: read 0.52, send 0.55, with "
       "checksums 0.26; its Send latency of 64 B is 1.40 times TCP's.")
AIM = ("Aim: from 64 KiB on 0.90 of raw TCP without checksums and 0.75 with them; latency of 64 B "
       "at most 1.20 times.")


def workloads(arguments):
    for operation in OPERATIONS:
        depth = 1 if operation.endswith("latency") else arguments.depth
        if operation == "read":
            depth = arguments.read_depth
        for waiting in WAITINGS:
            for size in map(parse_size, arguments.sizes.split(",")):
                workload = Workload(operation, waiting, size, depth)
                if operation == "read latency" and size > READ_LATENCY_MAX:
                    continue
                if arguments.only in str(workload):
                    yield workload


def show(results, names, base):
    for operation in OPERATIONS:
        for waiting in WAITINGS:
            rows = {workload: by_name for workload, by_name in results.items()
                    if (workload.operation, workload.waiting) == (operation, waiting)}
            present = [name for name in names if any(name in row for row in rows.values())]
            if set(present) - {base}:
                show_table(rows, present, base, operation, waiting)
    print(f"\n{SIW}\n{AIM}")


def as_document(arguments, results, failures, load):
    return {"congestion_control": CONGESTION_CONTROL, "versions": versions(), "load_before": load,
            "rounds": arguments.rounds, "seconds": arguments.seconds, "failures": failures,
            "results": [{"operation": workload.operation, "waiting": workload.waiting,
                         "size": workload.size, "depth": workload.depth, "contestants": by_name}
                        for workload, by_name in results.items()]}


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true",
                         help="one round of short runs of a few sizes: does everything run?")
    add_usual_options(options, rounds=None, seconds=None)
    options.add_argument("--sizes", default=None)
    options.add_argument("--depth", type=int, default=64, help="Sends or Writes under way at once")
    options.add_argument("--read-depth", type=int, default=16, help="the same for Reads")
    arguments = options.parse_args()
    if arguments.quick:
        choose_unsaid(arguments, rounds=1, seconds=0.1, sizes=QUICK_SIZES)
    choose_unsaid(arguments, rounds=5, seconds=0.3, sizes=SIZES)
    check_usual_options(options, arguments)
    return arguments


def main():
    arguments = parse_arguments()
    expect_tools(*TOOLS, jobs="build test bench")
    expect_cores()
    enter_namespace("bench_raw_tcp", "weft", "weft_ibverbs", "weft_rdmacm")
    contestants = [each for each in all_contestants(PROGRAMS)
                   if each.name not in arguments.without]
    names = [contestant.name for contestant in contestants]
    base = names[0]
    load = os.getloadavg()[0]
    samples, failures = take_turns(arguments, contestants, workloads(arguments))
    results = {workload: {name: summary(workload, runs) for name, runs in by_name.items()}
               for workload, by_name in samples.items()}
    for by_name in results.values():
        add_ratios(by_name, base)
    if arguments.json:
        print(json.dumps(as_document(arguments, results, failures, load), indent=2))
    else:
        print(", ".join(f"{name} {version}" for name, version in versions().items()) +
              f"; congestion control {CONGESTION_CONTROL}; {arguments.rounds} rounds of "
              f"{arguments.seconds:g} s; load before: {load:.1f}")
        show(results, names, base)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
