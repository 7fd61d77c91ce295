# SPDX-License-Identifier: Apache-2.0
"""Who takes part in bench/dropin.py: raw TCP, and stock programs started by `weft run`.

A latency is that of the message in the middle of all: an average would tell of the few that met a
core which did something else. It is one way, half a round trip, as perftest counts it, except a
Read's: that is there and back, and is held against raw TCP there and back. Raw TCP then carries the
message both ways and a Read only one, hence Reads are timed up to READ_LATENCY_MAX alone, where
octets weigh little.
"""
import json
import os
import re
import subprocess

from rdma_contestants import Contestant, OwnProgram
from surroundings import HOST, Failed

OPERATIONS = ("write", "read", "send", "write latency", "read latency", "send latency")
READ_LATENCY_MAX = 4096


class RawTcp(OwnProgram):
    """Measures a latency by its ping-pong."""

    def command(self, side, workload, port, count):
        words = super().command(side, workload, port, count)
        at = words.index("--operation") + 1
        if workload.operation.endswith("latency"):
            words[at] = "ping-pong"
        return words

    def seconds_per_message(self, workload, output):
        if not workload.operation.endswith("latency"):
            return super().seconds_per_message(workload, output)
        ways = 1 if workload.operation == "read latency" else 2
        return json.loads(output)["middle_seconds"] / ways


class Perftest(Contestant):
    """ib_write_bw and its like, connected by the connection manager."""

    def __init__(self, name, weft, *way):
        super().__init__()
        self.name = name
        self.weft = [weft, "run", *way]

    def can(self, workload):
        # A Write's latency is taken by watching memory: there is nothing to sleep on.
        return (workload.operation, workload.waiting) != ("write latency", "blocking")

    def serve_command(self, workload, port, count):
        operation, _, latency = workload.operation.partition(" ")
        command = [*self.weft, f"ib_{operation}_{'lat' if latency else 'bw'}", "-R", "-F", "-p",
                   port, "-s", workload.size, "-n", max(count, 5)]
        if not latency:
            command += ["-t", workload.depth]
        if operation == "read":
            command += ["-o", workload.depth]
        if workload.waiting == "blocking":
            command += ["-e"]
        return command

    def drive_command(self, workload, port, count):
        return [*self.serve_command(workload, port, count), HOST]

    def seconds_per_message(self, workload, output):
        for line in output.splitlines():
            fields = line.split()
            if not fields or fields[0] != str(workload.size):
                continue
            if workload.operation.endswith("latency"):
                return float(fields[4]) / 1e6  # what it calls typical: the middle one
            if float(fields[3]) > 0:
                return workload.size / (float(fields[3]) * 2**20)
        raise Failed(f"no row for {workload.size}: {output.strip()}")


class Fio(Contestant):
    """fio's rdma engine on both sides; it sleeps until something completes."""

    # Its client sleeps so long before the first transfer (seen by strace), and counts it.
    SLEEP_BEFORE_MS = 500

    def __init__(self, name, weft, *way):
        super().__init__()
        self.name = name
        self.weft = [weft, "run", *way]

    def can(self, workload):
        return (workload.operation in ("write", "read", "send") and workload.waiting == "blocking"
                and workload.size >= 512)

    def command(self, side, workload, port, count, *words):
        return [*self.weft, "fio", f"--name={side}", "--ioengine=rdma", f"--port={port}",
                f"--bs={workload.size}", f"--size={workload.size * count}",
                f"--iodepth={workload.depth}", "--thread", "--output-format=json", *words]

    def serve_command(self, workload, port, count):
        return self.command("serve", workload, port, count, "--rw=read")

    def drive_command(self, workload, port, count):
        return self.command("drive", workload, port, count, "--rw=write",  # also of Reads
                            f"--verb={workload.operation}", f"--hostname={HOST}")

    def seconds_per_message(self, workload, output):
        # Words of the engine may come before the document.
        job = json.loads(output[output.index("{"):])["jobs"][0]
        moved = job["write"]
        if job["error"] or not moved["io_bytes"]:
            raise Failed(f"fio ended with error {job['error']}")
        # Short runs are zero of its milliseconds; the next one is then longer.
        milliseconds = max(moved["runtime"] - self.SLEEP_BEFORE_MS, 0.5)
        return milliseconds / 1e3 / (moved["io_bytes"] / workload.size)


def all_contestants(programs):
    """In the order of the tables; the first is what the others are held against."""
    weft = programs / "weft"
    return [
        RawTcp("raw TCP", programs / "bench_raw_tcp"),
        Perftest("perftest", weft),
        Perftest("perftest no CRC", weft, "--crc", "off"),
        Fio("fio", weft),
        Fio("fio no CRC", weft, "--crc", "off"),
    ]


def versions():
    def said(command):
        told = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"\d+\.[\d.]+", told.stdout + told.stderr)
        return found[0] if found else "unknown"
    return {"Linux": os.uname().release, "perftest": said(["ib_send_bw", "--version"]),
            "fio": said(["fio", "--version"])}
