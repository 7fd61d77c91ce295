# SPDX-License-Identifier: Apache-2.0
"""A checker of what a disk promises, over NBD: who writes knows of every block which version was
acknowledged last, and which may or may not have happened because the disk was lost meanwhile.

A block that is read must be of the version acknowledged last, or of one whose fate nobody was told.
Once a newer one was acknowledged, or seen, an older one must never be back: that is what a write
done twice, or too late, would look like. What one request wrote must be there whole or not at all.
"""
import hashlib
import random
import struct
import threading
import time

import nbd

BLOCK = 4096
HEAD = struct.Struct("<8sQQQ")
MAGIC = b"weftshad"
HOT_BLOCKS = 8  # written over and over, each time read before
MOST_BLOCKS = 16
RECONNECT_SECONDS = 180


class Wrong(AssertionError):
    """The disk has not kept its promise."""


def block_of(seed, number, version):
    """Every octet of it follows from its head: of two versions mixed nothing can be believed."""
    if version == 0:
        return bytes(BLOCK)
    head = HEAD.pack(MAGIC, seed, number, version)
    return head + hashlib.shake_128(head).digest(BLOCK - len(head))


def version_in(seed, number, octets):
    if not any(octets):
        return 0
    magic, of_seed, of_number, version = HEAD.unpack_from(octets)
    if (magic, of_seed, of_number) != (MAGIC, seed, number):
        raise Wrong(f"block {number} holds what was never written there: {octets[:32].hex()}")
    if octets != block_of(seed, number, version):
        raise Wrong(f"block {number} says it is version {version}, and is not all of it")
    return version


class BlockStory:
    """What is known of one block."""
    __slots__ = ("sure", "possible")

    def __init__(self):
        self.sure = 0        # acknowledged, or seen
        self.possible = ()   # newer ones that nobody was told of

    def begun(self, version):
        self.possible += (version,)

    def acknowledged(self, version):
        self.sure, self.possible = version, ()

    def seen(self, number, version):
        if version != self.sure and version not in self.possible:
            raise Wrong(f"block {number} is of version {version}; {self.sure} is the last sure one"
                        + (f", possible are {self.possible}" if self.possible else ""))
        self.sure = version
        self.possible = tuple(each for each in self.possible if each > version)


class Pauses:
    """When the first request that was begun after a fault completed, and the longest there was."""

    def __init__(self):
        self.lock = threading.Lock()
        self.since = self.first = None
        self.longest = self.longest_ever = 0.0

    def fault(self):
        with self.lock:
            self.since, self.first, self.longest = time.monotonic(), None, 0.0

    def done(self, begun, ended):
        with self.lock:
            self.longest = max(self.longest, ended - begun)
            self.longest_ever = max(self.longest_ever, ended - begun)
            if self.since is not None and self.first is None and begun > self.since:
                self.first = ended - self.since


class Writer(threading.Thread):
    """One request at a time, to a region of its own. `losses` tells how often its server was killed
    so far: the connection may be lost no more often than that."""

    def __init__(self, connect, seed, first_block, blocks, pauses, losses=lambda: 0):
        super().__init__(daemon=True)
        self.connect, self.seed, self.pauses, self.losses = connect, seed, pauses, losses
        self.first, self.blocks = first_block, blocks
        self.stories = [BlockStory() for _ in range(blocks)]
        self.chance = random.Random(seed * 1000003 + first_block)
        self.version = 0
        self.reads = self.writes = self.octets = self.lost = self.undecided = 0
        self.last_begun = 0.0  # of the requests that completed
        self.handle = connect()
        self.stopping = False
        self.failure = None

    def run(self):
        try:
            while not self.stopping:
                self.step()
        except Exception as why:  # told by whoever waits for us
            self.failure = why

    def step(self):
        dice = self.chance.random()
        if dice < 0.3:  # a counter: what was read is what was written last, and is written anew
            at, count = self.chance.randrange(HOT_BLOCKS), 1
            self.read(at, count)
            self.write(at, count)
            return
        count = self.chance.randint(1, MOST_BLOCKS)
        at = self.chance.randrange(self.blocks - count)
        if dice < 0.5:  # what is wrong must not be written over before anybody has seen it
            self.read(at, count)
        if dice < 0.75:
            self.write(at, count)
        if dice > 0.65:
            self.read(at, count)

    def timed(self, request):
        begun = time.monotonic()
        answer = request()
        self.pauses.done(begun, time.monotonic())
        self.last_begun = begun
        return answer

    def write(self, at, count):
        self.version += 1
        version = self.version
        octets = b"".join(block_of(self.seed, self.first + number, version)
                          for number in range(at, at + count))
        for number in range(at, at + count):
            self.stories[number].begun(version)
        try:
            self.timed(lambda: self.handle.pwrite(octets, (self.first + at) * BLOCK))
        except nbd.Error as why:
            self.reconnect(why)
            return self.look_after(at, count, version)
        for number in range(at, at + count):
            self.stories[number].acknowledged(version)
        self.writes += 1
        self.octets += len(octets)

    def look_after(self, at, count, version):
        """What has become of a write that was not answered: all of it, or nothing."""
        self.undecided += 1
        found = self.read(at, count)
        if len({each == version for each in found}) > 1:
            raise Wrong(f"of the write of version {version} to blocks {self.first + at} to "
                        f"{self.first + at + count - 1} only a part is there: {found}")

    def read(self, at, count):
        while True:
            try:
                octets = self.timed(
                    lambda: self.handle.pread(count * BLOCK, (self.first + at) * BLOCK))
                break
            except nbd.Error as why:
                self.reconnect(why)
        self.reads += 1
        self.octets += len(octets)
        octets = bytes(octets)
        found = []
        for index in range(count):
            number = self.first + at + index
            version = version_in(self.seed, number, octets[index * BLOCK:(index + 1) * BLOCK])
            self.stories[at + index].seen(number, version)
            found.append(version)
        return found

    def reconnect(self, why):
        self.lost += 1
        if self.lost > self.losses():
            raise Wrong(f"a request failed though its server was not killed: {why}")
        self.handle = None
        deadline = time.monotonic() + RECONNECT_SECONDS
        while self.handle is None:
            try:
                self.handle = self.connect()
            except nbd.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def check_all(self):
        step = 64
        for at in range(0, self.blocks, step):
            self.read(at, min(step, self.blocks - at))


class Shadow:
    """Several writers on one disk, each with a part of `blocks` from `first_block` on."""

    def __init__(self, connect, seed, first_block, blocks, writers=4, losses=lambda: 0):
        self.pauses = Pauses()
        each = blocks // writers
        self.writers = [
            Writer(connect, seed, first_block + number * each, each, self.pauses, losses)
            for number in range(writers)]

    def start(self):
        for writer in self.writers:
            writer.start()
        return self

    def complain(self):
        """Raises what a writer has found, if it has."""
        for writer in self.writers:
            if writer.failure:
                raise writer.failure

    def time_to_resume(self, seconds=120):
        """From the fault that pauses.fault() told of to the first request begun and done since."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.complain()
            if self.pauses.first is not None:
                return self.pauses.first
            time.sleep(0.02)
        raise Wrong(f"no request begun since the fault has completed for {seconds} s")

    def wait_until_all_go_on(self, seconds=180):
        """Until every writer has done a request that it began from now on: what hung is over."""
        now = time.monotonic()
        while not all(writer.last_begun > now for writer in self.writers):
            self.complain()
            if time.monotonic() > now + seconds:
                raise Wrong(f"a request has not come back for {seconds} s")
            time.sleep(0.02)

    def count(self, what):
        return sum(getattr(writer, what) for writer in self.writers)

    def stop(self, seconds=120):
        """Stops the load, then reads everything that was ever written."""
        for writer in self.writers:
            writer.stopping = True
        for writer in self.writers:
            writer.join(seconds)
        self.complain()
        if any(writer.is_alive() for writer in self.writers):
            raise Wrong(f"a request has not come back for {seconds} s")
        for writer in self.writers:
            writer.check_all()
