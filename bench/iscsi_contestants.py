# SPDX-License-Identifier: Apache-2.0
"""Who takes part in bench/iscsi.py: targets that stay, reached by TCP or by iSER, and clients that
come and go.

A contestant is a target and a way to it. A client is told where a unit is and what to do, and says
how many seconds a request took. iSER has no network card here: libiscsi, qemu and tgtd find Weft's
libraries, by `weft run`. Checksums are MPA's; over TCP nobody asks for iSCSI's digests.
"""
import dataclasses
import itertools
import json
import os
import re
import subprocess

from rounds import LongEnough, size_text
from surroundings import (DRIVING_CORE, HOST, PROGRAMS, SERVING_CORE, Failed, cpu_seconds, pinned,
                          staying, wait_until_listening)

WEFT = PROGRAMS / "weft"
TARGET = "iqn.2026-11.example.weft:disk"
INITIATOR = "iqn.2026-11.example.weft:host"
QEMU = "iqn.2008-11.org.linux-kvm"  # the name qemu logs in with
GIB = 1 << 30
DISK_BYTES = 512 << 20

# The network namespace is ours alone. tgtd has no more than 15 bits for a port.
PORTS = itertools.count(20000)


@dataclasses.dataclass(frozen=True)
class Workload:
    client: str
    operation: str  # "read" or "write"
    size: int
    depth: int

    def __str__(self):
        return f"{self.client} {self.operation} {size_text(self.size)} depth {self.depth}"


@dataclasses.dataclass
class Answer:
    seconds: float  # per request
    count: int
    completions: int = None  # that the client polled meanwhile, where it says


# ------------------------------------------------------------------------------------- clients

def run_client(words, over_rdma, checksums):
    if over_rdma:
        words = [WEFT, "run", "--crc", checksums, *words]
    done = subprocess.run(pinned(DRIVING_CORE, words), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{words} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class IscsiPerf:
    """libiscsi's own; it only reads, at random places, and for whole seconds."""
    name = "iscsi-perf"
    operations = ("read",)

    def measure(self, unit, workload, seconds):
        said = run_client(["iscsi-perf", "-i", INITIATOR, "-r", "-m", workload.depth, "-b",
                           workload.size // 512, "-t", max(round(seconds), 1), unit.url],
                          unit.over_rdma, unit.checksums)
        found = re.findall(r"iops average (\d+)", said)
        if not found or int(found[-1]) == 0:
            raise Failed(f"iscsi-perf counted nothing: {said.strip()}")
        return Answer(1 / int(found[-1]), int(found[-1]) * max(round(seconds), 1))


class QemuImg:
    """qemu-img bench: one place after the other."""
    name = "qemu-img bench"
    operations = ("read", "write")

    def __init__(self):
        self.long_enough = LongEnough()

    def measure(self, unit, workload, seconds):
        moved = []

        def run(count):
            moved.append(count)
            words = ["qemu-img", "bench", "-f", "raw", "-c", count, "-d", workload.depth, "-s",
                     workload.size, *(["-w"] if workload.operation == "write" else []), unit.url]
            said = run_client(words, unit.over_rdma, unit.checksums)
            found = re.search(r"completed in ([\d.]+) seconds", said)
            if not found:
                raise Failed(f"qemu-img says no time: {said.strip()}")
            return max(float(found[1]), 0.001) / count
        each = self.long_enough.run((unit.url, workload), seconds, run)
        return Answer(each, sum(moved))


class WeftInitiator:
    """Our own initiator, at random places; it also counts completions."""
    name = "weft initiator"
    operations = ("read", "write")

    def measure(self, unit, workload, seconds):
        words = [WEFT, "initiator", "bench", unit.url, "--initiator", INITIATOR, "--size",
                 workload.size, "--depth", workload.depth, "--seconds", seconds, "--json",
                 *(["--write"] if workload.operation == "write" else [])]
        said = json.loads(run_client(words, False, None))
        if said["logins"] != 1 or said["sent_again"]:
            raise Failed(f"the session was lost meanwhile: {said}")
        return Answer(said["seconds"] / said["requests"], said["requests"],
                      said.get("completions"))


CLIENTS = {each.name: each for each in (IscsiPerf(), QemuImg(), WeftInitiator())}


# ------------------------------------------------------------------------------------- targets

class Server:
    """A target that runs until stop()."""

    def __init__(self, words, port, environment=None):
        self.environment = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(staying(SERVING_CORE, words), env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        try:
            wait_until_listening(self.process, port)
        except Failed:
            self.stop()
            raise

    def stop(self):
        self.process.kill()  # as long as it has targets, tgtd stays when it is asked to go
        self.process.communicate()


def start_weft(image):
    """One port for both ways. Its disk is in its own memory, and filled like the others."""
    port = next(PORTS)
    server = Server([WEFT, "export", "iscsi", "--memory", DISK_BYTES, "--target", TARGET, "--tcp",
                     f"{HOST}:{port}"], port)
    server.urls = {way: f"{way}://{HOST}:{port}/{TARGET}/0" for way in ("iscsi", "iser")}
    subprocess.run([WEFT, "initiator", "write", server.urls["iscsi"], "0", image], check=True)
    return server


def start_tgtd(image, folder, way, checksums):
    """On a file of tmpfs, by the backing store it takes by itself (rdwr)."""
    port, other_port = next(PORTS), next(PORTS)
    words = ["tgtd", "-f", "--iscsi", f"portal={HOST}:{other_port if way == 'iser' else port}"]
    if way == "iser":
        words = [WEFT, "run", "--crc", checksums, *words, "--iser", f"port={port},pool_sz_mb=256"]
    server = Server(words, port, {"TGT_IPC_SOCKET": str(folder / f"tgtd-{way}")})

    def administer(mode, operation, *more):
        subprocess.run(["tgtadm", "--lld", way, "--mode", mode, "--op", operation, "--tid", "1",
                        *more], env=server.environment, check=True)
    try:
        administer("target", "new", "--targetname", TARGET)
        administer("logicalunit", "new", "--lun", "1", "--backing-store", str(image))
        administer("target", "bind", "--initiator-address", "ALL")
        if way == "iser":  # which wants to know both, an initiator's address and its name
            for name in (INITIATOR, QEMU):
                administer("target", "bind", "--initiator-name", name)
    except subprocess.CalledProcessError:
        server.stop()
        raise
    server.urls = {way: f"{way}://{HOST}:{port}/{TARGET}/1"}
    return server


class Contestant:
    """A target, by one way."""

    def __init__(self, name, server, way, checksums):
        self.name = name
        self.server = server
        self.url = server.urls[way]
        self.over_rdma = way == "iser"
        self.checksums = checksums

    def can(self, workload):
        # Our own initiator asks for no checksums, and a row is either with them or without.
        return not (self.over_rdma and self.checksums == "on" and
                    workload.client == WeftInitiator.name)

    def measure(self, workload, seconds):
        before = cpu_seconds(self.server.process)
        answer = CLIENTS[workload.client].measure(self, workload, seconds)
        cpu = cpu_seconds(self.server.process) - before
        sample = {"per_second": 1 / answer.seconds,
                  "cpu_per_gib": cpu / (answer.count * workload.size / GIB)}
        if answer.completions is not None:
            sample["completions_per_request"] = answer.completions / answer.count
        return sample


def versions():
    def said(pattern, *command):
        told = subprocess.run(command, capture_output=True, text=True)
        found = re.search(pattern, told.stdout + told.stderr)
        return found[1] if found else "unknown"
    return {"Linux": os.uname().release, "tgtd": said(r"([\d.]+)", "tgtd", "--version"),
            "libiscsi": said(r"Version: (\S+)", "dpkg", "--status", "libiscsi7"),
            "qemu-img": said(r"version ([\d.]+)", "qemu-img", "--version")}
