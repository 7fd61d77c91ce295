#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An array with third-party transfers (TPT) beside the same array with all data by way of its
controller (Baseline), over the axes of the paper: block sizes, request sizes, reads and writes.
Without a journal, as the paper's; bench/safety.py says what that costs.

Every role has a network namespace of its own, with a link to one bridge, so that what each sends
and receives can be counted. fio drives the host through its NBD socket. Both arrays run all the
time, and take turns; with --tree there is a third, as TPT but with binary-tree parity.

    bench/tpt.py [--quick] [--rounds 3] [--seconds 1] [--chunks 4K,…] [--sizes 4K,…] [--tree]
                 [--json]
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

from rounds import (add_usual_options, check_usual_options, choose_unsaid, number, parse_size,
                    size_text, spread)
from surroundings import (CONGESTION_CONTROL, PROGRAMS, ROOT, Failed, cpu_seconds,
                          enter_namespace, expect_tools)

sys.path.insert(0, str(ROOT / "tools"))
from cluster import Cluster  # noqa: E402

TOOLS = ("cmake", "unshare", "ip", "fio", "mount")
PATHS = {"TPT": "third-party", "Baseline": "inband"}
TREE = "Tree"  # as TPT, of a volume whose parity is computed by a binary tree
BOXES = ("oak", "elm", "ash", "fir", "yew")
CHUNKS, SIZES = "4K,32K,128K", "4K,16K,64K,256K,1M,4M"
QUICK_CHUNKS, QUICK_SIZES = "32K", "4K,64K,1M"
VOLUME = "bench"
FILE_MIB = 128
DEPTH = 16
# The paper's hosts: what one asks for in a second, to say how many a controller can serve.
HOST_MIB_PER_SECOND = 100
AIM = ("Aim: TPT ahead at every block size, 4 KiB included; no payload through its controller; "
       "1.0 octets at the host for each the user asks for; degraded reads at least 0.8 of normal.")


class Network:
    """One namespace for each role, and a bridge between them in ours."""

    def __init__(self):
        # `ip netns` keeps its names in a folder; ours must not be seen by others.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        self.ip("link add weft type bridge")
        self.ip("link set weft up")
        self.numbers = {}

    @staticmethod
    def ip(words):
        subprocess.run(["ip", *words.split()], check=True)

    def join(self, name):
        """The address of a role, which is made if it is new."""
        if name not in self.numbers:
            number_here = self.numbers[name] = len(self.numbers) + 1
            self.ip(f"netns add {name}")
            self.ip(f"link add v{number_here} type veth peer name eth0 netns {name}")
            self.ip(f"link set v{number_here} master weft up")
            for words in (f"addr add {self.address(name)}/16 dev eth0", "link set eth0 up",
                          "link set lo up"):
                self.ip(f"-n {name} {words}")
            self.run_in(name, "sysctl", "-q", "-w",
                        f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}")
        return self.address(name)

    def address(self, name):
        return f"10.77.0.{self.numbers[name]}"

    @staticmethod
    def run_in(name, *words):
        subprocess.run(["ip", "netns", "exec", name, *words], check=True)

    def octets(self, name):
        """That went through its link so far, both ways together."""
        wanted = f"v{self.numbers[name]}:"
        for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
            fields = line.split()
            if fields and fields[0] == wanted:
                return int(fields[1]) + int(fields[9])
        raise Failed(f"{name} has no link")


class Array:
    """One of the two arrays, with one volume of one chunk size at a time."""

    def __init__(self, name, network, folder):
        self.name = name
        self.network = network
        self.folder = folder / name
        self.folder.mkdir()
        self.cluster = Cluster(
            PROGRAMS / "weft", self.folder,
            lambda role: ["ip", "netns", "exec", self.space(role)])

    def space(self, role):
        """A role's namespace."""
        return f"{self.name}-{role}"

    def join(self, role):
        return self.network.join(self.space(role))

    def start(self):
        self.join("management")
        listen = f"{self.join('controller')}:7800"
        path = PATHS.get(self.name, PATHS["TPT"])
        self.cluster.start_controller(listen, "--data-path", path)
        for box in BOXES:
            self.cluster.start_box(box, "256M", f"{self.join(box)}:7801")
            self.cluster.add_box(box)

    def make_volume(self, chunk):
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(BOXES),
                          "--chunk", chunk, "--consistency", "none", "--topology",
                          "tree" if self.name == TREE else "star")
        self.join("host")
        self.cluster.attach(VOLUME, "host", "--nbd-unix", self.folder / "nbd.sock")
        self.fio("write", 1 << 20, 60, "--size", f"{FILE_MIB}M", "--time_based=0")

    def end_volume(self):
        host = self.cluster.hosts.pop("host")
        host.ask_to_stop()
        host.wait()
        self.cluster.tell("volume", "delete", VOLUME)

    def fio(self, operation, size, seconds, *more):
        uri = f"nbd+unix:///{VOLUME}?socket={self.folder / 'nbd.sock'}"
        command = ["fio", "--name=bench", "--ioengine=nbd", f"--uri={uri}", f"--rw={operation}",
                   f"--bs={size}", f"--iodepth={DEPTH}", f"--size={FILE_MIB}M", "--time_based",
                   f"--runtime={round(seconds * 1000)}ms", "--randrepeat=0",
                   "--output-format=json", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise Failed(f"fio ended with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]

    def used(self):
        counters = self.cluster.status(VOLUME)["counters"]
        return {"cpu": cpu_seconds(self.cluster.controller.process),
                "controller": self.network.octets(self.space("controller")),
                "host": self.network.octets(self.space("host")),
                "orders": counters["orders"], "requests": counters["requests"],
                "payload": counters["payload_bytes"]}

    def measure(self, operation, size, seconds):
        before = self.used()
        job = self.fio(f"rand{operation}", size, seconds)
        spent = {key: value - before[key] for key, value in self.used().items()}
        moved = job[operation]
        octets = moved["io_bytes"]
        if not octets:
            raise Failed("nothing was moved")
        return {"mib_per_second": moved["bw_bytes"] / 2**20,
                "latency_us": moved["lat_ns"]["mean"] / 1e3,
                "cpu_per_gib": spent["cpu"] / (octets / 2**30),
                "controller_octets": spent["controller"] / octets,
                "host_octets": spent["host"] / octets,
                "orders_per_request": spent["orders"] / max(spent["requests"], 1),
                "payload_octets": spent["payload"]}


def summary(samples):
    return {key: spread([sample[key] for sample in samples]) for key in samples[0]}


def run_axes(arguments, arrays):
    """The samples of every cell."""
    results = {}
    for chunk in arguments.chunks.split(","):
        for array in arrays:
            array.make_volume(chunk)
        for turn in range(arguments.rounds):
            for operation in ("read", "write"):
                for size in map(parse_size, arguments.sizes.split(",")):
                    for array in arrays[turn % 2:] + arrays[:turn % 2]:
                        cell = (parse_size(chunk), operation, size, array.name)
                        sample = array.measure(operation, size, arguments.seconds)
                        results.setdefault(cell, []).append(sample)
            print(f"chunks of {chunk}, round {turn + 1} of {arguments.rounds}", file=sys.stderr)
        if chunk != arguments.chunks.split(",")[-1]:
            for array in arrays:
                array.end_volume()
    return {cell: summary(samples) for cell, samples in results.items()}


def run_degraded(arguments, arrays):
    """On the volume of the last chunk size: reads without a box, and what its rebuilding costs."""
    results = {}
    for array in arrays:
        cluster = array.cluster
        normal = [array.measure("read", 1 << 20, arguments.seconds)
                  for _ in range(arguments.rounds)]
        cluster.boxes["ash"].kill()
        cluster.wait_until(VOLUME, lambda status: status["state"] != "healthy")
        degraded = [array.measure("read", 1 << 20, arguments.seconds)
                    for _ in range(arguments.rounds)]
        alone = array.measure("read", 4096, arguments.seconds)
        cluster.start_box("ivy", "256M", f"{array.join('ivy')}:7801")
        cluster.add_box("ivy")
        began = time.monotonic()
        cluster.tell("member", "replace", VOLUME, "ash", "ivy")
        meanwhile = array.fio("randread", 4096, arguments.seconds)
        cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        took = time.monotonic() - began
        size = cluster.status(VOLUME)["size"] / (len(BOXES) - 1)
        results[array.name] = {
            "normal": summary(normal), "degraded": summary(degraded),
            "rebuild_mib_per_second": size / 2**20 / took,
            "latency_us_alone": alone["latency_us"],
            "latency_us_rebuilding": meanwhile["read"]["lat_ns"]["mean"] / 1e3}
    return results


def text(spread_of):
    return f"{number(spread_of['median'])} ({number(spread_of['low'])}–{number(spread_of['high'])})"


def tree_columns(tree, tpt):
    ratio = tree["mib_per_second"]["median"] / tpt["mib_per_second"]["median"]
    return f" {text(tree['mib_per_second'])} | ×{ratio:.2f} |"


def show(results, degraded):
    columns = (("mib_per_second", "MiB/s"), ("cpu_per_gib", "controller CPU s/GiB"),
               ("controller_octets", "octets at the controller per user octet"),
               ("host_octets", "at the host"), ("orders_per_request", "orders per request"))
    has_tree = any(cell[3] == TREE for cell in results)
    for chunk in sorted({cell[0] for cell in results}):
        for operation in ("read", "write"):
            print(f"\n**{operation}, chunks of {size_text(chunk)}**\n")
            titles = ["request", "TPT MiB/s", "Baseline MiB/s", "TPT / Baseline",
                      *(f"{title}: TPT, Baseline" for _, title in columns[1:]),
                      *(("tree MiB/s", "tree / TPT") if has_tree else ())]
            print(f"| {' | '.join(titles)} |")
            print("|--:" * len(titles) + "|")
            for size in sorted({cell[2] for cell in results}):
                tpt, base = (results[chunk, operation, size, name] for name in PATHS)
                ratio = tpt["mib_per_second"]["median"] / base["mib_per_second"]["median"]
                print(f"| {size_text(size)} | {text(tpt['mib_per_second'])} | "
                      f"{text(base['mib_per_second'])} | ×{ratio:.2f} | " +
                      " | ".join(f"{tpt[key]['median']:.3g}, {base[key]['median']:.3g}"
                                 for key, _ in columns[1:]) + " |" +
                      (tree_columns(results[chunk, operation, size, TREE], tpt) if has_tree
                       else ""))
    payload = sum(summaries["payload_octets"]["high"] for cell, summaries in results.items()
                  if cell[3] == "TPT")
    print(f"\nPayload through the controller of TPT: {payload:.0f} octets.")
    for name, found in degraded.items():
        ratio = (found["degraded"]["mib_per_second"]["median"] /
                 found["normal"]["mib_per_second"]["median"])
        print(f"{name}: reads of 1 MiB without a box ×{ratio:.2f} of normal, host octets per user "
              f"octet {found['degraded']['host_octets']['median']:.2f}; rebuilt at "
              f"{found['rebuild_mib_per_second']:.0f} MiB/s, 4 KiB reads "
              f"{found['latency_us_alone']:.0f} µs before and "
              f"{found['latency_us_rebuilding']:.0f} µs meanwhile.")
    print("\n**Hosts per controller** (as Table III), at "
          f"{HOST_MIB_PER_SECOND} MiB/s each, by what a MiB costs its CPU\n")
    print("| chunk | operation | request | TPT | Baseline |\n|--:|---|--:|--:|--:|")
    for chunk, operation, size in sorted({cell[:3] for cell in results}):
        hosts = [1024 / max(results[chunk, operation, size, name]["cpu_per_gib"]["median"], 1e-9)
                 / HOST_MIB_PER_SECOND for name in PATHS]
        print(f"| {size_text(chunk)} | {operation} | {size_text(size)} | "
              f"{hosts[0]:.1f} | {hosts[1]:.1f} |")
    print(f"\n{AIM}")


def parse_arguments():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a few cells, one round")
    add_usual_options(options, rounds=None, seconds=1)
    options.add_argument("--chunks", default=None)
    options.add_argument("--sizes", default=None)
    options.add_argument("--tree", action="store_true", help="binary-tree parity, too")
    arguments = options.parse_args()
    if arguments.quick:
        choose_unsaid(arguments, rounds=1, chunks=QUICK_CHUNKS, sizes=QUICK_SIZES)
    choose_unsaid(arguments, rounds=3, chunks=CHUNKS, sizes=SIZES)
    check_usual_options(options, arguments)
    return arguments


def main():
    arguments = parse_arguments()
    expect_tools(*TOOLS, jobs="build test bench")
    enter_namespace("weft", with_mounts=True)
    network = Network()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-tpt-"))
    names = [*PATHS, TREE] if arguments.tree else PATHS
    arrays = [Array(name, network, folder) for name in names]
    load = os.getloadavg()[0]
    try:
        for array in arrays:
            array.start()
        results = run_axes(arguments, arrays)
        degraded = run_degraded(arguments, arrays)
    finally:
        for array in arrays:
            array.cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        print(json.dumps({"load_before": load, "degraded": degraded, "cells": [
            {"chunk": chunk, "operation": operation, "size": size, "path": name, **found}
            for (chunk, operation, size, name), found in results.items()]}, indent=2))
    else:
        print(f"{arguments.rounds} rounds of {arguments.seconds:g} s; congestion control "
              f"{CONGESTION_CONTROL}; load before: {load:.1f}")
        show(results, degraded)


if __name__ == "__main__":
    main()
