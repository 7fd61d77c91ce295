# SPDX-License-Identifier: Apache-2.0
"""Load on a disk that is served by NBD, for the tests of an array under load: fio at depth, whose
blocks carry checksums, and single requests in a row whose times are kept."""
import json
import os
import subprocess
import tempfile
import threading
import time

import machines

KIB, MIB = 1 << 10, 1 << 20
CONNECTION_DEPTH = 128  # the NBD server takes so many requests of a connection at a time
VERIFIED = ["--verify=crc32c", "--verify_interval=4096", "--verify_fatal=1",
            "--verify_state_save=0"]
STOPPED = 128           # what fio ends with when it is told to
END_SECONDS = 120       # what is under way when the time is over may take so long to end


def fill(uri, offset, size):
    """With blocks that DeepReads believes."""
    words = ["fio", "--name=fill", "--ioengine=nbd", f"--uri={uri}", "--rw=write", "--bs=256k",
             "--iodepth=8", f"--offset={offset}", f"--size={size}", *VERIFIED, "--do_verify=0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"fio has not filled the disk: {done.stdout}{done.stderr}")


class Deep(threading.Thread):
    """fio with so many requests at once for so many seconds, or until stop() is called. A request
    that fails ends it, as does a block that is not what was written; then `failure` says so."""

    def __init__(self, name, uri, operation, block, depth, offset, size, seconds, more=()):
        super().__init__(daemon=True)
        self.name, self.seconds = name, seconds
        jobs = -(-depth // CONNECTION_DEPTH)
        each = size // jobs // block * block
        self.words = [
            *machines.DIES_WITH_US, "fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}",
            f"--rw={operation}", f"--bs={block}", f"--iodepth={depth // jobs}",
            f"--numjobs={jobs}", f"--offset={offset}", f"--offset_increment={each}",
            f"--size={each}", "--time_based", "--randrepeat=0", "--thread", "--group_reporting",
            "--output-format=json", *more]
        self.jobs = jobs
        self.process = self.failure = None
        self.stopping = threading.Event()
        self.ran = 0.0  # seconds
        self.count = {"read": 0, "write": 0}
        self.longest = {"read": 0.0, "write": 0.0}

    def run(self):
        """Of reads that are verified fio makes no more than would read all once: then it is begun
        again."""
        ends = time.monotonic() + self.seconds
        while not (self.failure or self.stopping.is_set()):
            left = round(ends - time.monotonic())
            if left < 1:
                return
            self.run_once(left)

    def run_once(self, seconds):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            self.process = subprocess.Popen(
                [*self.words, f"--runtime={seconds}"], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)
            status = self.wait_for_process(time.monotonic() + seconds + END_SECONDS)
            output.seek(0)
            said = output.read()
        if status is None:
            self.failure = f"{self.name}: a request has not come back for {END_SECONDS} s"
        elif status != 0 and not (self.stopping.is_set() and status == STOPPED):
            self.failure = f"{self.name}: fio ended with {status}: {self.complaint(said)}"
        if "{" in said:
            self.add(json.loads(said[said.index("{"):said.rindex("}") + 1])["jobs"][0])

    def wait_for_process(self, deadline):
        told = False
        while (status := self.process.poll()) is None:
            if self.stopping.is_set() and not told:
                self.process.terminate()
                told = True
            if time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                return None
            time.sleep(0.05)
        return status

    def add(self, job):
        self.ran += job["job_runtime"] / 1000 / self.jobs
        for direction in self.count:
            done = job[direction]
            self.count[direction] += done["total_ios"]
            self.longest[direction] = max(self.longest[direction], done["lat_ns"]["max"] / 1e9)

    @staticmethod
    def complaint(said):
        before_figures = said[:said.index("{")] if "{" in said else said
        lines = [line.strip() for line in before_figures.splitlines()]
        return "; ".join([line for line in lines if line and "connected to" not in line][:3])

    def start(self):
        super().start()
        return self

    def stop(self):
        self.stopping.set()
        self.join()

    def per_second(self, direction):
        return self.count[direction] / self.ran if self.ran else 0.0


def deep_reads(name, uri, depth, offset, size, seconds, block=4 * KIB):
    """Of what fill() wrote."""
    return Deep(name, uri, "randread", block, depth, offset, size, seconds, VERIFIED)


def many(name, uri, operation, depth, offset, size, seconds, block=4 * KIB):
    """"randread" or "randwrite" as fast as it goes: nobody looks at what is read."""
    return Deep(name, uri, operation, block, depth, offset, size, seconds)


def deep_writes(name, uri, depth, offset, size, seconds, block=16 * KIB):
    """And reads of what it wrote a while before, to look at it."""
    return Deep(name, uri, "randwrite", block, depth, offset, size, seconds,
                [*VERIFIED, "--verify_backlog=256", "--serialize_overlap=1"])


def deep_mix(name, uri, depth, offset, size, seconds, block=16 * KIB):
    return Deep(name, uri, "randrw", block, depth, offset, size, seconds,
                [*VERIFIED, "--verify_backlog=256", "--serialize_overlap=1"])


class Singles(threading.Thread):
    """One request after the other, "randread" or "randwrite", and how long each took."""

    def __init__(self, connect, operation, offset, size, chance, block=4 * KIB):
        super().__init__(daemon=True)
        self.handle = connect()
        self.request = {"randread": self.read, "randwrite": self.write}[operation]
        self.offset, self.size, self.chance, self.block = offset, size, chance, block
        self.stopping, self.failure = False, None
        self.began = self.ended = self.since = None  # the first, the last, the one under way
        self.took = []
        self.last = {}  # by offset: what was written there

    def run(self):
        self.began = time.monotonic()
        try:
            while not self.stopping:
                at = self.offset + self.chance.randrange(self.size // self.block) * self.block
                self.since = time.monotonic()
                self.request(at)
                self.took.append(time.monotonic() - self.since)
        except Exception as why:  # told by whoever stops us
            self.failure = f"a single request failed: {why}"
        self.ended = time.monotonic()

    def read(self, at):
        self.check_one(at, self.handle.pread(self.block, at))

    def write(self, at):
        octets = os.urandom(self.block)
        self.handle.pwrite(octets, at)
        self.last[at] = octets

    def per_second(self):
        return len(self.took) / ((self.ended or time.monotonic()) - self.began)

    def longest(self):
        """The one that is under way counts for as long as it has been."""
        waiting = [] if self.ended or not self.since else [time.monotonic() - self.since]
        return max([*self.took, *waiting], default=0.0)

    def stop(self):
        self.stopping = True
        self.join(END_SECONDS)
        if self.is_alive() and not self.failure:
            self.failure = f"a single request has not come back for {END_SECONDS} s"

    def check_one(self, at, found):
        if at in self.last and bytes(found) != self.last[at]:
            raise AssertionError(f"what was written at {at} is not there")

    def check(self):
        for at in self.last:
            self.read(at)
