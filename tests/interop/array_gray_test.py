#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real processes, each on a machine of its own, that are all there while something is wrong: a box
that is stopped for some seconds under reads, two boxes or a box and a host that do not reach each
other. The volume goes on, nobody is counted out, and `weft events`, `weft slow-ops` and `weft
volume status` tell of it. Latencies are printed. Skipped where there are no network namespaces."""
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside()
from faulty_array import FaultyArray, connect_to  # noqa: E402

VOLUME = "photos"
NAMES = ("oak", "elm", "ash", "fir", "yew")
KIB, MIB = 1 << 10, 1 << 20
SIZE = 8 * MIB
STOPPED_SECONDS = 4  # the controller bears twice as long a silence
READERS = 4


def middle_ms(seconds):
    return seconds[len(seconds) // 2] * 1e3


class Reader(threading.Thread):
    """Reads at random, compares, and keeps how long each took."""

    def __init__(self, uri, expected, seed):
        super().__init__(daemon=True)
        self.connect, self.expected = connect_to(uri), expected
        self.chance = random.Random(seed)
        self.stopping, self.failure = False, None
        self.took = []  # when it began, and seconds

    def run(self):
        try:
            handle = self.connect()
            while not self.stopping:
                at = self.chance.randrange(SIZE // (4 * KIB)) * 4 * KIB
                began = time.monotonic()
                found = handle.pread(4 * KIB, at)
                self.took.append((began, time.monotonic() - began))
                if bytes(found) != self.expected[at:at + 4 * KIB]:
                    raise AssertionError(f"what was read at {at} is not what was written")
            handle.shutdown()
        except Exception as error:  # told by who joins it
            self.failure = error


class GrayCase(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        self.array = FaultyArray(pathlib.Path(kept.name), NAMES)
        self.addCleanup(self.array.end)
        self.cluster = self.array.cluster
        self.array.create(VOLUME, 5, NAMES)
        self.uri = self.array.attach(VOLUME, "host")
        self.expected = os.urandom(SIZE)
        self.handle = connect_to(self.uri)()
        self.write_all()

    def write_all(self):
        for at in range(0, SIZE, 256 * KIB):
            self.handle.pwrite(self.expected[at:at + 256 * KIB], at)

    def read_all(self):
        for at in range(0, SIZE, 256 * KIB):
            self.assertEqual(bytes(self.handle.pread(256 * KIB, at)),
                             self.expected[at:at + 256 * KIB])

    def told(self, words):
        return [each for each in self.cluster.tell("events") if words in each["what"]]

    def wait_until_told(self, words, meanwhile=lambda: time.sleep(0.2), seconds=90):
        deadline = time.monotonic() + seconds
        while not (found := self.told(words)):
            self.assertLess(time.monotonic(), deadline, f"'{words}' was never told of")
            meanwhile()
        return found

    def expect_nobody_counted_out(self):
        for words in ("member absent", "box lost", "box failed"):
            self.assertEqual(self.told(words), [])
        self.assertEqual(self.cluster.status(VOLUME)["state"], "healthy")

    def member(self, name):
        members = self.cluster.status(VOLUME)["members"]
        return next(each for each in members if each["box"] == name)

    def test_a_box_that_is_stopped_is_read_around(self):
        readers = [Reader(self.uri, self.expected, seed) for seed in range(READERS)]
        for each in readers:
            each.start()
        time.sleep(2)
        began = time.monotonic()
        with self.array.paused(self.cluster.boxes["ash"]):
            time.sleep(STOPPED_SECONDS)
            ended = time.monotonic()
            told = self.told("answers slowly")
            self.assertIn("ash", [each["box"] for each in told])  # another may be, if all is busy
            self.assertTrue(self.member("ash")["slow"])
        self.wait_until_told("as soon as the others again")
        for each in readers:
            each.stopping = True
            each.join(60)
            if each.failure:
                raise each.failure
        reads = [read for each in readers for read in each.took]
        during = sorted(took for at, took in reads if began < at < ended)
        before = sorted(took for at, took in reads if at < began)
        # Without the others' help four readers would soon have waited for the box, all of them.
        self.assertGreater(len(during), 10 * READERS)
        self.assertFalse(self.member("ash")["slow"])
        self.assertGreater(self.cluster.status(VOLUME)["counters"]["hedged_reads"], 0)
        self.expect_nobody_counted_out()
        print(f"{told[0]['what']}\n"
              f"{len(before)} reads before, the middle one {middle_ms(before):.2f} ms, "
              f"{len(during)} in the {STOPPED_SECONDS} s it was stopped, the middle one "
              f"{middle_ms(during):.2f} ms, the longest {during[-1] * 1e3:.0f} ms",
              flush=True)
        self.array.scrub(VOLUME)

    def test_a_write_that_waits_says_for_whom(self):
        writer = threading.Thread(target=self.write_all, daemon=True)
        with self.array.paused(self.cluster.boxes["fir"]):
            writer.start()
            told = self.wait_until_told("answers slowly", seconds=6)
            self.assertEqual({each["box"] for each in told}, {"fir"})
            self.assertIn("writes wait for it", told[0]["what"])
            slow = [each for each in self.cluster.tell("slow-ops") if each["under_way"]]
        writer.join(60)
        self.assertFalse(writer.is_alive())
        self.assertEqual({name for each in slow for name in each["story"]["boxes"]}, {"fir"})
        self.assertTrue(all(each["story"]["spent"] for each in slow))
        over = [each for each in self.cluster.tell("slow-ops") if not each["under_way"]]
        self.assertIn("fir", {each["story"]["slowest"]["box"] for each in over})
        self.read_all()
        self.wait_until_told("as soon as the others again")
        self.expect_nobody_counted_out()

    def test_links_that_are_broken_are_gone_around(self):
        boxes, host = self.cluster.boxes, self.cluster.hosts["host"]
        with self.array.apart(boxes["oak"], boxes["elm"]):
            began = time.monotonic()
            self.write_all()
            print(f"all was written in {time.monotonic() - began:.1f} s while two boxes were apart",
                  flush=True)
            self.read_all()
            self.assertEqual(len(self.told("do not reach each other")), 1)
        with self.array.apart(boxes["yew"], host):
            began = time.monotonic()
            self.read_all()
            self.write_all()
            print(f"all was read and written in {time.monotonic() - began:.1f} s while a box and "
                  "the host were apart", flush=True)
        self.assertGreater(self.cluster.status(VOLUME)["counters"]["relayed_bytes"], 0)
        self.read_all()
        self.expect_nobody_counted_out()
        self.array.scrub(VOLUME)


if __name__ == "__main__":
    unittest.main(verbosity=2)
