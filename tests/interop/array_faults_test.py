#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whole arrays of real processes, each on a machine of its own, whose volumes have a journal:
boxes, controllers and hosts are killed and paused, cables are pulled, under fio that verifies and a
shadow that knows every version of every block (shadow.py). Nothing acknowledged is lost, no old
version comes back, the volume becomes healthy again and its parity agrees.

How long it took from the fault to the first request begun and completed since is printed. Skipped
where there are no network namespaces. `./test soak` does the same by chance, for longer."""
import contextlib
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("fio")
from faulty_array import FaultyArray, Fio, connect_to  # noqa: E402
from shadow import BLOCK, Shadow  # noqa: E402

VOLUME = "photos"
NAMES = ("oak", "elm", "ash", "fir", "yew")
MIB = 1 << 20
LEASE = 2
SHORT, LONG = 0.5, 2 * LEASE  # shorter than the lease, and longer
CALM = 0.5                    # between two faults
FIO_SIZE = 16 * MIB
SHADOW_SIZE = 16 * MIB


@contextlib.contextmanager
def both(one, other):
    with one, other:
        yield


class FaultCase(unittest.TestCase):
    level, boxes, etcd = 5, NAMES, False

    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        self.path = pathlib.Path(kept.name)
        self.array = FaultyArray(self.path, self.boxes, lease=str(LEASE), etcd=self.etcd)
        self.addCleanup(self.array.end)
        self.cluster = self.array.cluster
        self.array.create(VOLUME, self.level, self.boxes)
        uri = self.array.attach(VOLUME, "host")
        # fio does not come back to a server that was killed: it has one that is not.
        self.fio = Fio(self.array.attach(VOLUME, "other"), FIO_SIZE, seconds=4)
        self.seed = int(os.environ.get("WEFT_SEED", random.randrange(1 << 32)))
        self.shadow = Shadow(connect_to(uri), self.seed, FIO_SIZE // BLOCK, SHADOW_SIZE // BLOCK,
                             losses=lambda: self.array.kills["host"])
        print(f"seed {self.seed}", flush=True)
        self.fio.start()
        self.shadow.start()
        time.sleep(CALM)

    def complain(self):
        self.shadow.complain()
        self.fio.complain()

    def suffer(self, what, fault, seconds, goes_on=True):
        """A fault that lasts so long; the volume goes on meanwhile, or when it is over."""
        self.shadow.pauses.fault()
        with fault:
            ends = time.monotonic() + seconds
            if goes_on:
                self.shadow.time_to_resume()
            time.sleep(max(0, ends - time.monotonic()))
            seconds = time.monotonic() - ends + seconds
        resumed = self.shadow.time_to_resume()
        self.shadow.wait_until_all_go_on()
        self.array.wait_until_healthy(VOLUME, self.complain)
        print(f"{what}, {seconds:.1f} s: {resumed:.2f} s to the first request since, the longest "
              f"took {self.shadow.pauses.longest:.2f} s", flush=True)
        time.sleep(CALM)
        self.complain()

    def finish(self):
        self.fio.stop()
        self.shadow.stop()
        self.array.scrub(VOLUME)
        count = self.shadow.count
        print(f"{count('writes')} writes and {count('reads')} reads of the shadow, "
              f"{self.fio.requests} requests of fio; {count('undecided')} writes were not answered",
              flush=True)


class Level5(FaultCase):
    def test_boxes(self):
        boxes, array = self.cluster.boxes, self.array
        self.suffer("a box is killed", array.killed(boxes["elm"]), SHORT)
        self.suffer("a box is paused for a moment", array.paused(boxes["oak"]), SHORT,
                    goes_on=False)
        self.suffer("a box is paused for long", array.paused(boxes["yew"]), LONG)
        self.suffer("all boxes are killed at once", array.killed(*boxes.values()), SHORT,
                    goes_on=False)
        self.finish()

    def test_controllers_and_host(self):
        array = self.array
        self.suffer("the controller in office is killed", array.killed(array.in_office()[0]), LONG)
        self.suffer("it is paused for a moment", array.paused(array.in_office()[0]), SHORT,
                    goes_on=False)
        self.suffer("it is paused for long", array.paused(array.in_office()[0]), LONG)
        self.suffer("the one that waits is paused", array.paused(array.in_office()[1]), SHORT)
        for _ in range(3):
            self.suffer("the host is killed", array.killed(self.cluster.hosts["host"]), 0,
                        goes_on=False)
        self.finish()

    def test_links(self):
        boxes, array, host = self.cluster.boxes, self.array, self.cluster.hosts["host"]
        self.suffer("a box is cut off", array.cut_off(boxes["fir"]), LONG)
        self.suffer("a box and the controller are apart",
                    array.apart(boxes["oak"], array.in_office()[0]), LONG)
        self.suffer("two boxes are apart", array.apart(boxes["elm"], boxes["ash"]), LONG)
        self.suffer("a box and the host are apart", array.apart(boxes["yew"], host), LONG)
        # The store is a file, which it still has: it stays in office, though nobody reaches it.
        self.suffer("the controller is cut off", array.cut_off(array.in_office()[0]), LONG,
                    goes_on=False)
        self.finish()


class Level6(FaultCase):
    level = 6

    def test_two_at_once(self):
        boxes, array = self.cluster.boxes, self.array
        self.suffer("two boxes are killed at once", array.killed(boxes["oak"], boxes["ash"]), SHORT)
        self.suffer("all boxes and the controller are killed at once",
                    array.killed(array.in_office()[0], *boxes.values()), SHORT, goes_on=False)
        self.suffer("a box is cut off and another killed",
                    both(array.cut_off(boxes["fir"]), array.killed(boxes["elm"])), LONG)
        self.finish()


@unittest.skipUnless(shutil.which("etcd"), "etcd is not installed")
class Store(FaultCase):
    etcd = True

    def test_loses_sight_of_it(self):
        array = self.array
        self.suffer("the controller in office and its store are apart",
                    array.apart(array.in_office()[0], "store"), 3 * LEASE)
        self.suffer("the controller is cut off from all", array.cut_off(array.in_office()[0]),
                    3 * LEASE)
        self.suffer("it and a box are killed at once",
                    array.killed(array.in_office()[0], self.cluster.boxes["oak"]), LONG)
        self.finish()


if __name__ == "__main__":
    unittest.main(verbosity=2)
