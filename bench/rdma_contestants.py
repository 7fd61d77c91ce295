# SPDX-License-Identifier: Apache-2.0
"""Who takes part in bench/rdma.py, and how each is started and read.

A contestant is a pair of programs, one serving and one driving, and one number that comes out: the
seconds a message took. For a ping-pong that is one way, half a round trip, as all peers count it.
To add a contestant, derive from Contestant, say what it can do, give the two command lines and read
the driving side's output; then append it in all_contestants(). A program with the command line of
bench/rdma/bench_options.hpp needs no class of its own: OwnProgram does.
"""
import dataclasses
import itertools
import json
import os
import re
import subprocess

from rounds import LongEnough
from surroundings import (DRIVING_CORE, HOST, SERVING_CORE, Failed, pinned, wait_until_listening)

OPERATIONS = ("send", "write", "read", "ping-pong")
WAITINGS = ("polling", "blocking")

# The network namespace is ours alone, so a port that no run has used before is free.
PORTS = itertools.count(20000)


@dataclasses.dataclass(frozen=True)
class Workload:
    operation: str
    waiting: str
    size: int
    depth: int  # messages under way at once; a ping-pong has one

    def __str__(self):
        return f"{self.operation} {self.waiting} {self.size}"


class Contestant:
    name = ""
    environment = {}

    def __init__(self):
        self.long_enough = LongEnough()

    def can(self, workload):
        raise NotImplementedError

    def serve_command(self, workload, port, count):
        raise NotImplementedError

    def drive_command(self, workload, port, count):
        raise NotImplementedError

    def seconds_per_message(self, workload, output):
        raise NotImplementedError

    def run(self, workload, count):
        port = next(PORTS)
        environment = {**os.environ, **self.environment}
        server = subprocess.Popen(
            pinned(SERVING_CORE, self.serve_command(workload, port, count)), env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            wait_until_listening(server, port)
            driver = subprocess.run(
                pinned(DRIVING_CORE, self.drive_command(workload, port, count)), env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if driver.returncode:
                raise Failed(f"the driving side ended with status {driver.returncode}: "
                             f"{driver.stderr.strip()}")
            return self.seconds_per_message(workload, driver.stdout)
        finally:
            try:
                server.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                server.terminate()
                server.communicate()

    def measure(self, workload, seconds):
        """Seconds per message."""
        return self.long_enough.run(workload, seconds, lambda count: self.run(workload, count))


class OwnProgram(Contestant):
    """A program of bench/rdma."""

    def __init__(self, name, program, *first_words):
        super().__init__()
        self.name = name
        self.program = [program, *first_words]

    def can(self, workload):
        return True

    def command(self, side, workload, port, count):
        return [*self.program, side, HOST, port, "--operation", workload.operation, "--waiting",
                workload.waiting, "--size", workload.size, "--count", count, "--depth",
                workload.depth]

    def serve_command(self, workload, port, count):
        return self.command("serve", workload, port, count)

    def drive_command(self, workload, port, count):
        return self.command("drive", workload, port, count)

    def seconds_per_message(self, workload, output):
        result = json.loads(output)
        ways = 2 if workload.operation == "ping-pong" else 1
        return result["seconds"] / result["count"] / ways


class FabricPingPong(Contestant):
    """libfabric's own ping-pong: shows that our program on its API does not hold it back."""
    name = "fi_pingpong"

    def can(self, workload):
        return workload.operation == "ping-pong" and workload.waiting == "polling"

    def command(self, workload, count):
        return ["fi_pingpong", "-p", "tcp", "-e", "msg", "-I", count, "-S", workload.size]

    def serve_command(self, workload, port, count):
        return [*self.command(workload, count), "-B", port]

    def drive_command(self, workload, port, count):
        return [*self.command(workload, count), "-P", port, HOST]

    def seconds_per_message(self, workload, output):
        titles, values = (line.split() for line in output.strip().splitlines()[-2:])
        return float(values[titles.index("usec/xfer")]) / 1e6


class Ucx(Contestant):
    """UCX's own ucx_perftest, by one of UCX's ways of moving a message."""
    environment = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    WAIT_MODES = {"polling": "poll", "blocking": "sleep"}

    def __init__(self, name, tests):
        super().__init__()
        self.name = name
        self.tests = tests

    def can(self, workload):
        # ucx_perftest 1.13 hangs when it sleeps with several ucp_get under way.
        if (workload.operation, workload.waiting) == ("read", "blocking"):
            return False
        return workload.operation in self.tests

    def serve_command(self, workload, port, count):
        return ["ucx_perftest", "-p", port, "-E", self.WAIT_MODES[workload.waiting]]

    def drive_command(self, workload, port, count):
        return ["ucx_perftest", HOST, "-p", port, "-t", self.tests[workload.operation],
                "-s", workload.size, "-n", count, "-w", count // 10 + 1, "-O", workload.depth,
                "-E", self.WAIT_MODES[workload.waiting], "-f", "-v"]

    def seconds_per_message(self, workload, output):
        titles, values = (line.split(",") for line in output.strip().splitlines()[-2:])
        return float(values[titles.index("overall_lat")]) / 1e6


def all_contestants(programs):
    """In the order of the tables; the first is what the others are held against."""
    return [
        OwnProgram("raw TCP", programs / "bench_raw_tcp"),
        OwnProgram("Weft", programs / "bench_weft", "checksums"),
        OwnProgram("Weft eager", programs / "bench_weft", "eager"),
        OwnProgram("Weft no CRC", programs / "bench_weft", "none"),
        OwnProgram("libfabric", programs / "bench_libfabric"),
        FabricPingPong(),
        Ucx("UCX tag", {"send": "tag_bw", "ping-pong": "tag_lat"}),
        Ucx("UCX am", {"send": "ucp_am_bw", "ping-pong": "ucp_am_lat"}),
        Ucx("UCX put/get", {"write": "ucp_put_bw", "read": "ucp_get", "ping-pong": "ucp_put_lat"}),
    ]


def peer_versions():
    """What the tools say of themselves, where they say it."""
    def found_in(command, pattern):
        output = subprocess.run(command, capture_output=True, text=True).stdout
        found = re.search(pattern, output)
        return found[1] if found else "unknown"
    return {"libfabric": found_in(["fi_info", "--version"], r"libfabric: (\S+)"),
            "UCX": found_in(["ucx_info", "-v"], r"Version (\S+)")}
