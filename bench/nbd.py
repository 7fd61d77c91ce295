#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft export nbd beside nbdkit and qemu-nbd: one machine, one run, the same clients.

Each server holds a disk in memory (qemu-nbd: a file on tmpfs, it has no memory disk of its own) and
is driven by fio's nbd engine and by nbdcopy. Runs are interleaved and repeated; the table shows the
median, the spread, and the ratio to each peer. CPU is what the server process used, per GiB moved.

    bench/nbd.py [--rounds 5] [--seconds 2] [--tcp] [--json] [--only WORD]
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from rounds import spread, take_turns
from surroundings import ROOT, cpu_seconds, expect_tools

GIB = 1 << 30
DISK_BYTES = 1 * GIB
PORTS = {"weft": 20809, "nbdkit": 20810, "qemu-nbd": 20811}


class Server:
    """One NBD server of ours or of others, started and measured."""

    def __init__(self, name, folder, tcp):
        self.name = name
        socket = folder / f"{name}.sock"
        port = PORTS[name]
        where = ["--tcp", f"127.0.0.1:{port}"] if tcp else ["--unix", str(socket)]
        self.uri = f"nbd://127.0.0.1:{port}" if tcp else f"nbd+unix:///?socket={socket}"
        if name == "weft":
            weft = ROOT / "build/release/bin/weft"
            command = [str(weft), "export", "nbd", "--memory", "1G", *where]
        elif name == "nbdkit":
            where = ["-p", str(port), "-i", "127.0.0.1"] if tcp else ["-U", str(socket)]
            command = ["nbdkit", "-f", *where, "memory", "1G"]
        else:
            image = pathlib.Path("/dev/shm") / f"weft-bench-{os.getpid()}.img"
            image.write_bytes(b"")
            os.truncate(image, DISK_BYTES)
            self.image = image
            where = ["-p", str(port), "-b", "127.0.0.1"] if tcp else ["-k", str(socket)]
            command = ["qemu-nbd", "-t", "-e", "16", "-f", "raw", *where, str(image)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while subprocess.run(["nbdinfo", "--size", self.uri], capture_output=True).returncode:
            if time.monotonic() > deadline:
                sys.exit(f"{name} does not answer at {self.uri}")
            time.sleep(0.05)

    def can(self, workload):
        return True

    def measure(self, workload, seconds):
        before = cpu_seconds(self.process)
        moved, elapsed = workload.run(self.uri, seconds)
        cpu = cpu_seconds(self.process) - before
        return {"rate": moved / elapsed, "cpu_per_gib": cpu / (moved / GIB)}

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        if self.name == "qemu-nbd":
            self.image.unlink()


def run_fio(uri, rw, size, depth, seconds):
    """Bytes moved and seconds taken."""
    job = ["fio", "--name=bench", "--ioengine=nbd", f"--uri={uri}", f"--rw={rw}", f"--bs={size}",
           f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", f"--size={DISK_BYTES}",
           "--randrepeat=1", "--norandommap", "--output-format=json"]
    out = subprocess.run(job, capture_output=True, text=True, check=True).stdout
    job = json.loads(out[out.index("{"):])["jobs"][0]
    side = job["write" if "write" in rw else "read"]
    return side["io_bytes"], side["runtime"] / 1000


def run_nbdcopy(source, target):
    began = time.monotonic()
    subprocess.run(["nbdcopy", "--allocated", str(source), str(target)], check=True)
    return DISK_BYTES, time.monotonic() - began


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    run: object  # with a disk's URI and the seconds: bytes moved and seconds taken

    def __str__(self):
        return self.name


def workloads(data):
    for rw in ("randread", "randwrite"):
        for size in ("4k", "256k"):
            for depth in (1, 16):
                yield Workload(f"fio {rw} {size} depth {depth}",
                               lambda uri, seconds, rw=rw, size=size, depth=depth:
                               run_fio(uri, rw, size, depth, round(seconds)))
    yield Workload("nbdcopy to the disk", lambda uri, _: run_nbdcopy(data, uri))
    yield Workload("nbdcopy from the disk", lambda uri, _: run_nbdcopy(uri, "null:"))


def summary(samples):
    rates = spread([sample["rate"] for sample in samples])
    return {"rate": rates["median"], "low": rates["low"], "high": rates["high"],
            "cpu_per_gib": statistics.median(sample["cpu_per_gib"] for sample in samples)}


def show(results):
    peers = [name for name in PORTS if name != "weft"]
    print("| workload | weft MiB/s (spread) | " + " | ".join(f"× {p}" for p in peers) +
          " | weft CPU s/GiB | " + " | ".join(f"{p} CPU s/GiB" for p in peers) + " |")
    print("|---|--:|" + "--:|" * (2 * len(peers) + 1))
    for workload, by_server in results.items():
        ours = by_server["weft"]
        cells = [workload, f"{ours['rate'] / 2**20:.0f} "
                 f"({ours['low'] / 2**20:.0f}–{ours['high'] / 2**20:.0f})"]
        cells += [f"{ours['rate'] / by_server[p]['rate']:.2f}" for p in peers]
        cells += [f"{ours['cpu_per_gib']:.2f}"]
        cells += [f"{by_server[p]['cpu_per_gib']:.2f}" for p in peers]
        print("| " + " | ".join(cells) + " |")


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=int, default=2, help="per fio run")
    options.add_argument("--tcp", action="store_true", help="loopback TCP, not a Unix socket")
    options.add_argument("--json", action="store_true")
    options.add_argument("--only", default="", help="only workloads with this in their name")
    arguments = options.parse_args()
    expect_tools("nbdkit", "qemu-nbd", "fio", "nbdcopy", "nbdinfo", jobs="test")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = pathlib.Path("/dev/shm") / f"weft-bench-data-{os.getpid()}.img"
        stack.callback(lambda: data.unlink(missing_ok=True))
        with data.open("wb") as file:
            for _ in range(DISK_BYTES >> 20):
                file.write(os.urandom(1 << 20))
        servers = []
        for name in PORTS:
            servers.append(Server(name, folder, arguments.tcp))
            stack.callback(servers[-1].stop)
        for server in servers:
            run_nbdcopy(data, server.uri)
        wanted = [each for each in workloads(data) if arguments.only in each.name]
        samples, _ = take_turns(arguments, servers, wanted)
        results = {workload.name: {name: summary(runs) for name, runs in by_server.items()}
                   for workload, by_server in samples.items()}
        if arguments.json:
            print(json.dumps(results, indent=2))
        else:
            show(results)


if __name__ == "__main__":
    main()
