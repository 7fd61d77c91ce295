#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a volume's journal costs: the same writes to volumes with a journal and without.

A write to a volume with a journal is lasting when it is answered. Without one it is not, so that
it is measured twice: as it is (`plain`), and with every write asked to be durable (FUA, `durable`),
which is what a client must do there to be promised as much, short of the write hole. With a journal
once more with boxes that give every record a write and a flush of its own (`no groups`).

All volumes are RAID 5 on five boxes, each a process with a file for a disk, on one machine; all
run all the time, and take turns. What is written is what the disk under the boxes' files counts,
whoever wrote it, so that it means something on a quiet machine alone (what Linux counts of a
process is whole folios of the page cache, however little of them is written). Flushes are those
of the boxes, counted by perf at the file system, where that can be had.

    bench/safety.py [--quick] [--rounds 5] [--seconds 1] [--folder FOLDER] [--weft PATH] [--json]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import safety_load
from rounds import add_usual_options, check_usual_options, choose_unsaid, number, spread
from surroundings import (CONGESTION_CONTROL, PROGRAMS, ROOT, Failed, cpu_seconds,
                          enter_namespace, expect_tools)

sys.path.insert(0, str(ROOT / "tools"))
from cluster import Cluster  # noqa: E402

BOXES = ("oak", "elm", "ash", "fir", "yew")
CHUNK = 64 << 10
STRIPE = CHUNK * (len(BOXES) - 1)
# What is written to, of each volume: more than its journals hold, so that these go round and round.
AREA = 96 << 20
VOLUME_SIZE, BOX_SIZE = "512M", "400M"
# What is written: a name, the size, how many at a time.
WORKLOADS = {
    "4K, 1 at a time": (4 << 10, 1), "4K, 4 at a time": (4 << 10, 4),
    "4K, 16 at a time": (4 << 10, 16), "4K, 64 at a time": (4 << 10, 64),
    "64K, 1 at a time": (64 << 10, 1), "64K, 16 at a time": (64 << 10, 16),
    "a stripe (256K), 1 at a time": (STRIPE, 1), "a stripe (256K), 8 at a time": (STRIPE, 8),
    "1M, 1 at a time": (1 << 20, 1), "1M, 4 at a time": (1 << 20, 4),
}
QUICK = ("4K, 1 at a time", "4K, 16 at a time", "a stripe (256K), 8 at a time")
FLUSH_EVENT = "ext4:ext4_sync_file_enter"
PERF_SECONDS = 0.2  # until it counts
AIM = ("Aim: with a journal at least 0.6 of durable writes without for 4 KiB, 0.5 for whole "
       "stripes.")


class Array:
    """Boxes of one kind, their controller, and the volumes on them."""

    def __init__(self, weft, folder, name, *of_boxes):
        self.folder = folder / name
        self.folder.mkdir()
        self.of_boxes = of_boxes
        self.cluster = Cluster(weft, self.folder)

    def start(self):
        self.cluster.start_controller()
        for box in BOXES:
            self.cluster.start_box(box, BOX_SIZE, "127.0.0.1:0", *self.of_boxes)
            self.cluster.add_box(box)

    def processes(self):
        return [box.process for box in self.cluster.boxes.values()]

    def everybody(self):
        return [*self.processes(), self.cluster.controller.process,
                *(host.process for host in self.cluster.hosts.values())]

    def octets_written(self):
        """To the disk its files are on; nothing where that does not count."""
        device = os.stat(self.folder).st_dev
        counts = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
        return int(counts.read_text().split()[6]) * 512 if counts.exists() else None

    def settle(self):
        """What is still to be written is written now, and not while another is measured."""
        for part in self.folder.glob("*/part-*"):
            descriptor = os.open(part, os.O_RDWR)
            os.fdatasync(descriptor)
            os.close(descriptor)


class Contestant:
    """A volume, and how it is written to."""

    def __init__(self, name, array, volume, consistency, durable=False):
        self.name, self.array, self.volume = name, array, volume
        self.consistency, self.durable = consistency, durable

    def start(self):
        """Of several with the same volume the first makes it."""
        cluster = self.array.cluster
        socket = self.array.folder / f"{self.volume}.sock"
        if self.volume not in cluster.hosts:
            cluster.tell("volume", "create", self.volume, "--level", 5, "--boxes",
                         ",".join(BOXES), "--chunk", CHUNK, "--size", VOLUME_SIZE, "--consistency",
                         self.consistency)
            cluster.attach(self.volume, self.volume, "--nbd-unix", socket)
        self.client = safety_load.Client(socket, self.volume)
        safety_load.write_all(self.client, AREA)

    def measure(self, workload, seconds):
        size, depth = WORKLOADS[workload]
        self.array.settle()
        cpu = sum(map(cpu_seconds, self.array.everybody()))
        written = self.array.octets_written()
        with FlushCount(self.array.processes()) as flushes:
            found = safety_load.run(self.client, size, depth, self.durable, AREA, seconds)
        self.array.settle()
        if written is not None:
            written = self.array.octets_written() - written
            found["written_per_octet"] = written / found["octets"]
        cpu = sum(map(cpu_seconds, self.array.everybody())) - cpu
        found["cpu_us_per_write"] = cpu / found["writes"] * 1e6
        if flushes.count is not None:
            found["flushes_per_write"] = flushes.count / found["writes"]
        return found


class FlushCount:
    """How often these processes had the file system make something lasting, by perf's count."""

    usable = None

    def __init__(self, processes):
        self.identities = ",".join(str(process.pid) for process in processes)
        self.count = None

    def __enter__(self):
        if FlushCount.usable is None:
            FlushCount.usable = bool(shutil.which("perf")) and not subprocess.run(
                ["perf", "stat", "-e", FLUSH_EVENT, "true"], capture_output=True).returncode
        if FlushCount.usable:
            self.perf = subprocess.Popen(
                ["perf", "stat", "-x", ",", "-e", FLUSH_EVENT, "-p", self.identities],
                stderr=subprocess.PIPE, text=True)
            time.sleep(PERF_SECONDS)
        return self

    def __exit__(self, *_):
        if FlushCount.usable:
            self.perf.send_signal(subprocess.signal.SIGINT)
            said = self.perf.communicate(timeout=30)[1].strip().split(",")
            self.count = int(said[0]) if said[0].isdigit() else None


def make_contestants(weft, folder):
    usual, alone = Array(weft, folder, "usual"), Array(weft, folder, "alone", "--group-commit",
                                                      "off")
    contestants = [Contestant("none, plain", usual, "none", "none"),
                   Contestant("none, durable", usual, "none", "none", durable=True),
                   Contestant("journal", usual, "journal", "journal"),
                   Contestant("journal, no groups", alone, "journal", "journal")]
    return [usual, alone], contestants


def take_turns(arguments, contestants, workloads):
    samples = {}
    for turn in range(arguments.rounds):
        for workload in workloads:
            first = turn % len(contestants)
            for contestant in contestants[first:] + contestants[:first]:
                samples.setdefault((workload, contestant.name), []).append(
                    contestant.measure(workload, arguments.seconds))
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr)
    return {cell: summary(found) for cell, found in samples.items()}


def summary(found):
    """Of what was counted at all: perf may fail now and then."""
    keys = {key for sample in found for key in sample}
    return {key: spread([sample[key] for sample in found if key in sample]) for key in keys}


def ratios_of(results, workload, name):
    """Of the medians: to what is as lasting, and to what is not."""
    mine = results[workload, name]["mib_per_second"]["median"]
    return [mine / results[workload, base]["mib_per_second"]["median"]
            for base in ("none, durable", "none, plain") if (workload, base) in results]


def text(found, key):
    if key not in found:
        return "–"
    low, high = found[key]["low"], found[key]["high"]
    return f"{number(found[key]['median'])} ({number(low)}–{number(high)})"


def show(results, workloads, names):
    for workload in workloads:
        print(f"\n**{workload}**\n")
        print("| volume, writes | MiB/s | of durable without, of plain | writes/s | latency µs "
              "| its 99 % µs | octets written per octet | flushes per write | CPU µs per write |")
        print("|---" + "|--:" * 8 + "|")
        for name in names:
            found = results[workload, name]
            ratios = ", ".join(f"×{ratio:.2f}" for ratio in ratios_of(results, workload, name))
            print(f"| {name} | {text(found, 'mib_per_second')} | {ratios} | "
                  f"{text(found, 'writes_per_second')} | {text(found, 'latency_us')} | "
                  f"{text(found, 'latency_99_us')} | "
                  f"{text(found, 'written_per_octet')} | "
                  f"{text(found, 'flushes_per_write')} | {text(found, 'cpu_us_per_write')} |")
    print(f"\n{AIM}")


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a few workloads, two rounds")
    add_usual_options(options, rounds=None, seconds=1)
    options.add_argument("--folder", default=ROOT / "build",
                         help="where the boxes' files are made: on the disk to be measured")
    options.add_argument("--weft", type=pathlib.Path, help="another build of it than the bench's")
    arguments = options.parse_args()
    choose_unsaid(arguments, rounds=2 if arguments.quick else 5)
    check_usual_options(options, arguments)
    return arguments


def surroundings_of(folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True)
    return {"load_before": os.getloadavg()[0], "file_system": kind.stdout.strip(),
            "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release}


def main():
    arguments = parse_arguments()
    expect_tools("cmake", "unshare", "ip", jobs="build test bench")
    weft = arguments.weft.resolve() if arguments.weft else PROGRAMS / "weft"
    enter_namespace(*([] if arguments.weft else ["weft"]))
    workloads = [name for name in (QUICK if arguments.quick else WORKLOADS)
                 if arguments.only in name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-safety-", dir=arguments.folder))
    where = surroundings_of(folder)
    arrays, contestants = make_contestants(weft, folder)
    contestants = [each for each in contestants if each.name not in arguments.without]
    arrays = [array for array in arrays if any(each.array is array for each in contestants)]
    try:
        for array in arrays:
            array.start()
        for contestant in contestants:
            contestant.start()
        results = take_turns(arguments, contestants, workloads)
        for contestant in contestants:
            contestant.client.close()
    except Failed as why:
        sys.exit(f"safety: {why}")
    finally:
        for array in arrays:
            array.cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        print(json.dumps({**where, "cells": [
            {"workload": workload, "volume": name, **found}
            for (workload, name), found in results.items()]}, indent=2))
    else:
        print(f"{arguments.rounds} rounds of {arguments.seconds:g} s; {where['cores']} cores, "
              f"Linux {where['kernel']}, {where['file_system']}; congestion control "
              f"{CONGESTION_CONTROL}; load before: {where['load_before']:.1f}")
        show(results, workloads, [each.name for each in contestants])


if __name__ == "__main__":
    main()
