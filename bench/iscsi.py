#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft export iscsi beside tgtd, over TCP and over iSER: one machine, one run, the same clients.

Each target has its disk in memory (tgtd: a file on tmpfs, it has no memory disk of its own).
Clients are libiscsi's iscsi-perf, qemu-img bench, and our own initiator; over iSER the first two
and tgtd run on Weft's libraries. As in bench/rdma.py: one network namespace of its own, one core
for each side, runs interleaved and repeated; the table shows the median, the spread, the ratio to
tgtd over TCP of the same run, and what the server used of its processor per GiB.

    bench/iscsi.py [--quick] [--rounds 5] [--seconds 1] [--crc on] [--only WORD] [--json]
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile

from iscsi_contestants import (CLIENTS, DISK_BYTES, Contestant, Workload, start_tgtd,
                               start_weft, versions)
from rounds import (add_ratios, add_usual_options, check_usual_options, choose_unsaid, ratio_text,
                    spread, spread_text, take_turns)
from surroundings import CONGESTION_CONTROL, enter_namespace, expect_cores, expect_tools

TOOLS = ("cmake", "unshare", "ip", "taskset", "setpriv", "timeout", "tgtd", "tgtadm", "iscsi-perf",
         "qemu-img")
BASE = "tgtd TCP"
SHAPES = ((4096, 1), (4096, 32), (256 << 10, 8))
SMALL = 64 << 10  # below it requests are counted, from it on MiB
AIM = ("Aim: 1.5 times tgtd's requests of 4 KiB and 1.2 times its bandwidth, less CPU per GiB, "
       "iSER not below TCP, and at our initiator exactly one completion per request.")


def workloads(arguments):
    for client in CLIENTS.values():
        for operation in client.operations:
            for size, depth in SHAPES:
                workload = Workload(client.name, operation, size, depth)
                if arguments.only in str(workload):
                    yield workload


def summary(workload, samples):
    scale = workload.size / 2**20 if workload.size >= SMALL else 1
    result = spread([sample["per_second"] * scale for sample in samples])
    result["cpu_per_gib"] = statistics.median(sample["cpu_per_gib"] for sample in samples)
    if "completions_per_request" in samples[0]:
        # All of them: one that differs must not hide behind a median.
        result["completions_per_request"] = sorted(
            {sample["completions_per_request"] for sample in samples})
    return result


def cell(result, name):
    if not result:
        return ""
    ratio = ratio_text(result) if name != BASE else ""
    return f"{spread_text(result)}{ratio}, {result['cpu_per_gib']:.2f} s"


def show(results, names):
    for title, chosen in (("requests per second", lambda size: size < SMALL),
                          ("MiB/s", lambda size: size >= SMALL)):
        rows = {workload: by_name for workload, by_name in results.items()
                if chosen(workload.size)}
        if not rows:
            continue
        print(f"\n**{title}** (spread), × {BASE}, CPU seconds of the target per GiB\n")
        print("| workload | " + " | ".join(names) + " |")
        print("|---|" + "--:|" * len(names))
        for workload, by_name in rows.items():
            cells = [cell(by_name.get(name), name) for name in names]
            print(f"| {workload} | " + " | ".join(cells) + " |")


def show_completions(results):
    """Whether each was exactly one where both sides are ours."""
    found = {name: set() for name in ("weft iSER", "tgtd iSER")}
    for by_name in results.values():
        for name, counts in found.items():
            counts.update(by_name.get(name, {}).get("completions_per_request", []))
    for name, counts in found.items():
        if counts:
            print(f"\nCompletions per request at our initiator, {name}: " +
                  ", ".join(f"{each:g}" for each in sorted(counts)), end="")
    print()
    return found["weft iSER"] <= {1}


def start_all(stack, arguments):
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    memory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
    images = {way: memory / way for way in ("iscsi", "iser")}
    for image in images.values():
        with image.open("wb") as file:
            for _ in range(DISK_BYTES >> 20):
                file.write(os.urandom(1 << 20))

    def started(server):
        stack.callback(server.stop)
        return server
    weft = started(start_weft(images["iscsi"]))
    tgtd = {way: started(start_tgtd(image, folder, way, arguments.crc))
            for way, image in images.items()}
    contestants = (Contestant("tgtd TCP", tgtd["iscsi"], "iscsi", arguments.crc),
                   Contestant("weft TCP", weft, "iscsi", arguments.crc),
                   Contestant("weft iSER", weft, "iser", arguments.crc),
                   Contestant("tgtd iSER", tgtd["iser"], "iser", arguments.crc))
    return [each for each in contestants if each.name not in arguments.without]


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true",
                         help="one round of short runs: does everything run?")
    options.add_argument("--crc", choices=("on", "off"), default="off",
                         help="MPA's checksums over iSER; over TCP there are none")
    add_usual_options(options, rounds=None, seconds=None)
    arguments = options.parse_args()
    if arguments.quick:
        choose_unsaid(arguments, rounds=1, seconds=0.2)
    choose_unsaid(arguments, rounds=5, seconds=1)
    check_usual_options(options, arguments)
    return arguments


def as_document(arguments, results, failures, load):
    return {"congestion_control": CONGESTION_CONTROL, "versions": versions(), "load_before": load,
            "base": BASE, "rounds": arguments.rounds, "seconds": arguments.seconds,
            "checksums_over_iser": arguments.crc == "on", "failures": failures,
            "results": [{"client": workload.client, "operation": workload.operation,
                         "size": workload.size, "depth": workload.depth, "contestants": by_name}
                        for workload, by_name in results.items()]}


def main():
    arguments = parse_arguments()
    expect_tools(*TOOLS, jobs="build test bench")
    expect_cores()
    enter_namespace("weft", "weft_ibverbs", "weft_rdmacm")
    with contextlib.ExitStack() as stack:
        contestants = start_all(stack, arguments)
        load = os.getloadavg()[0]
        samples, failures = take_turns(arguments, contestants, workloads(arguments))
    results = {workload: {name: summary(workload, runs) for name, runs in by_name.items()}
               for workload, by_name in samples.items()}
    for by_name in results.values():
        add_ratios(by_name, BASE)
    if arguments.json:
        print(json.dumps(as_document(arguments, results, failures, load), indent=2))
        sys.exit(bool(failures))
    print(", ".join(f"{name} {version}" for name, version in versions().items()) +
          f"; congestion control {CONGESTION_CONTROL}; checksums over iSER {arguments.crc}; "
          f"{arguments.rounds} rounds of {arguments.seconds:g} s; load before: {load:.1f}")
    show(results, [each.name for each in contestants])
    is_one = show_completions(results)
    print(f"\n{AIM}")
    sys.exit(bool(failures) or not is_one)


if __name__ == "__main__":
    main()
