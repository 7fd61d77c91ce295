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
import pathlib
import shutil
import statistics
import subprocess
import sys

from rdma_contestants import (DRIVING_CORE, OPERATIONS, RUN_SECONDS_MAX, SERVING_CORE, WAITINGS,
                              Failed, Workload, all_contestants, parse_size, peer_versions,
                              size_text)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/bench/bin"
SIZES = "64,1K,4K,16K,64K,256K,1M"
# Not bbr, which paces even the loopback. A namespace may only choose what the machine allows to
# all; reno is always among them, cubic is not.
CONGESTION_CONTROL = "reno"
MARK = "WEFT_BENCH_OUTER_NAMESPACE"


def network_namespace():
    return str(os.stat("/proc/self/ns/net").st_ino)


def build(*targets):
    """Silent, unless it fails."""
    for command in (["cmake", "--preset", "bench"],
                    ["cmake", "--build", "--preset", "bench", "--target", *targets]):
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"{done.stdout}\nThe bench's programs could not be built; "
                     "tools/install-packages build bench brings what they need.")


def go_into_namespace():
    """Starts this program again, inside. The namespace goes when its last process does."""
    as_nobody = ["--map-root-user"] if os.geteuid() else []
    os.environ[MARK] = network_namespace()
    os.execvp("unshare", ["unshare", "--net", *as_nobody, sys.executable, *sys.argv])


def furnish_namespace():
    if network_namespace() == os.environ[MARK]:
        sys.exit(f"{MARK} is set, but this is no namespace of our own; unset it")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(CONGESTION_CONTROL)


def workloads(arguments):
    for operation in OPERATIONS:
        depth = {"read": arguments.read_depth, "ping-pong": 1}.get(operation, arguments.depth)
        for waiting in WAITINGS:
            for size in map(parse_size, arguments.sizes.split(",")):
                workload = Workload(operation, waiting, size, depth)
                if arguments.only in str(workload):
                    yield workload


def take_turns(arguments, contestants, wanted):
    """Seconds per message of each run, by workload and name. Who fails is named and left out."""
    samples = {workload: {} for workload in wanted}
    failures = {}
    for round_number in range(arguments.rounds):
        for workload, by_name in samples.items():
            # The order turns with each round, so that nobody always follows the same one.
            turn = round_number % len(contestants)
            for contestant in contestants[turn:] + contestants[:turn]:
                who = f"{contestant.name}, {workload}"
                if not contestant.can(workload) or who in failures:
                    continue
                try:
                    each = contestant.measure(workload, arguments.seconds)
                    by_name.setdefault(contestant.name, []).append(each)
                except Failed as why:
                    failures[who] = str(why)
                    print(f"{who}: {why}", file=sys.stderr)
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
    return samples, failures


def is_latency(operation):
    return operation == "ping-pong" or operation.endswith("latency")


def summary(workload, samples):
    """MiB/s, or microseconds one way for the ping-pong."""
    if is_latency(workload.operation):
        values = [each * 1e6 for each in samples]
    else:
        values = [workload.size / each / 2**20 for each in samples]
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def add_ratios(by_name, base):
    if base in by_name:
        for result in by_name.values():
            result["ratio"] = result["median"] / by_name[base]["median"]


def show(results, names, base):
    for operation in OPERATIONS:
        for waiting in WAITINGS:
            rows = {workload: by_name for workload, by_name in results.items()
                    if (workload.operation, workload.waiting) == (operation, waiting)}
            present = [name for name in names if any(name in row for row in rows.values())]
            if present:
                show_table(rows, present, base, operation, waiting)


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


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
                ratio = f", ×{result['ratio']:.2f}" if "ratio" in result and name != base else ""
                median, low, high = (number(result[key]) for key in ("median", "low", "high"))
                cells.append(f"{median} ({low}–{high}){ratio}")
            else:
                cells.append("")
        print("| " + " | ".join(cells) + " |")


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=0.3, help="per run, about")
    options.add_argument("--sizes", default=SIZES)
    options.add_argument("--depth", type=int, default=64, help="Sends or Writes under way at once")
    options.add_argument("--read-depth", type=int, default=16, help="the same for Reads")
    options.add_argument("--only", default="",
                         help='only workloads with this in their name, as "write polling 4096"')
    options.add_argument("--without", default=[], action="append", help="a contestant to leave out")
    options.add_argument("--base", default="raw TCP", help="the contestant of the ratios")
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    if arguments.rounds < 1 or not 0 < arguments.seconds <= RUN_SECONDS_MAX / 10:
        options.error(f"at least one round, and at most {RUN_SECONDS_MAX // 10} seconds per run")
    try:
        [parse_size(size) for size in arguments.sizes.split(",")]
    except ValueError as why:
        options.error(str(why))
    return arguments


def main():
    arguments = parse_arguments()
    for tool in ("cmake", "unshare", "ip", "taskset", "timeout", "fi_pingpong", "ucx_perftest"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing; tools/install-packages build bench brings it")
    if not {SERVING_CORE, DRIVING_CORE} <= os.sched_getaffinity(0):
        sys.exit(f"cores {SERVING_CORE} and {DRIVING_CORE} are needed, one for each side")
    if MARK not in os.environ:
        build("bench_rdma")
        go_into_namespace()
    furnish_namespace()
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
