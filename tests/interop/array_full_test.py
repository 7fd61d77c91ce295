#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes whose file systems are small, and full: real processes on file systems of their own. A
volume has all its room from the start, or is refused with the figures; where room is lacking all
the same, writes wait and go on by themselves, reads go on meanwhile, nobody is counted out, and
people are told. Skipped where no file system can be mounted."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("mount", "fallocate", mounts=True)
from faulty_array import connect_to  # noqa: E402

machines.on_path("tools")
from cluster import Cluster, Failed  # noqa: E402

VOLUME = "photos"
NAMES = ("oak", "elm", "ash")
KIB, MIB = 1 << 10, 1 << 20
SIZE = 8 * MIB


class FullCase(unittest.TestCase):
    file_system = 64 * MIB

    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        machines.sh("ip", "link", "set", "lo", "up")
        self.cluster = Cluster(os.environ["WEFT"], self.folder)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_controller()
        for name in NAMES:
            self.mount(name)
            self.cluster.start_box(name, "1G")
            self.cluster.add_box(name)

    def mount(self, name):
        where = self.folder / name
        where.mkdir()
        machines.sh("mount", "-t", "tmpfs", "-o", f"size={self.file_system}", "none", where)
        self.addCleanup(machines.sh, "umount", "--lazy", where)

    def create(self, *more):
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(NAMES),
                          "--chunk", "64K", *more)

    def fill(self, name):
        """To the last octet."""
        with open(self.folder / name / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(MIB))
            except OSError:
                pass
        free = os.statvfs(self.folder / name)
        self.assertEqual(free.f_bavail, 0)

    def make_room(self, name):
        (self.folder / name / "ballast").unlink()

    def take_room_away(self, name):
        """From the second half of the part's file, where nothing has been written yet: as if the
        file system had promised no room when it was made."""
        part = next((self.folder / name).glob("part-*"))
        at = part.stat().st_size // 2 // MIB * MIB
        machines.sh("fallocate", "--punch-hole", "--offset", at, "--length",
                    part.stat().st_size - at, part)

    def told(self, words):
        return [each for each in self.cluster.tell("events") if words in each["what"]]

    def wait_until(self, true, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.2)


class Full(FullCase):
    def test_a_volume_has_all_its_room_from_the_start(self):
        self.create("--size", "32M")
        for name in NAMES:
            self.fill(name)
        self.cluster.attach(VOLUME, "host", "--nbd-unix", self.folder / "host.sock")
        handle = connect_to(f"nbd+unix:///{VOLUME}?socket={self.folder / 'host.sock'}")()
        data = os.urandom(MIB)
        for at in range(0, handle.get_size(), MIB):
            handle.pwrite(data, at)
        handle.flush()
        for at in range(0, handle.get_size(), MIB):
            self.assertEqual(bytes(handle.pread(MIB, at)), data)
        # A new controller is obeyed, and boxes start again, on file systems without room.
        for name in NAMES:
            self.cluster.boxes[name].kill()
            self.cluster.boxes[name].start()
        self.cluster.controller.kill()
        self.cluster.controller.start()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.assertEqual(bytes(handle.pread(MIB, 0)), data)
        handle.pwrite(data, 0)

    def test_a_volume_without_room_is_refused_with_the_figures(self):
        with self.assertRaisesRegex(Failed, r"(oak|elm|ash) has room for [0-9]+ octets, and "
                                            r"needs [0-9]+"):
            self.create("--size", "1G")
        self.assertEqual(self.cluster.tell("volume", "list"), [])
        self.create()  # what there is
        self.assertGreater(self.cluster.status(VOLUME)["size"], 64 * MIB)

    def test_a_member_stays_whose_heir_has_no_room(self):
        self.create("--size", "32M")
        self.mount("bay")
        self.cluster.start_box("bay", "1G")
        self.cluster.add_box("bay")
        self.fill("bay")  # after it has said what it has left
        with self.assertRaisesRegex(Failed, r"bay has room for [0-9]+ octets, and needs [0-9]+"):
            self.cluster.tell("member", "replace", VOLUME, "elm", "bay")
        status = self.cluster.status(VOLUME)
        self.assertEqual(status["state"], "healthy")
        self.assertEqual([each["box"] for each in status["members"]], list(NAMES))
        self.make_room("bay")
        self.cluster.tell("member", "replace", VOLUME, "elm", "bay")
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy" and
                                status["members"][1]["box"] == "bay")

    def test_writes_wait_for_room_and_go_on(self):
        self.create("--size", "48M")
        self.cluster.attach(VOLUME, "host", "--nbd-unix", self.folder / "host.sock")
        uri = f"nbd+unix:///{VOLUME}?socket={self.folder / 'host.sock'}"
        handle, reader = connect_to(uri)(), connect_to(uri)()
        before = os.urandom(SIZE)
        for at in range(0, SIZE, MIB):
            handle.pwrite(before[at:at + MIB], at)
        handle.flush()
        time.sleep(1)  # until it is home
        for name in ("elm", "ash"):  # more than could be spared
            self.take_room_away(name)
            self.fill(name)
        after = os.urandom(SIZE)

        def write():
            for at in range(0, SIZE, 64 * KIB):
                handle.pwrite(after[at:at + 64 * KIB], 16 * MIB + at)
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        self.wait_until(lambda: self.told("disk is full"), "nobody was told")
        self.assertTrue(writer.is_alive())
        full = [each["box"] for each in self.cluster.status(VOLUME)["members"] if each["full"]]
        self.assertTrue(full and set(full) <= {"elm", "ash"}, full)
        for at in range(0, SIZE, MIB):
            self.assertEqual(bytes(reader.pread(MIB, at)), before[at:at + MIB])
        def slow_ones():
            return [each for each in self.cluster.tell("slow-ops") if each["under_way"]]
        self.wait_until(slow_ones, "nothing that waits counts as slow")  # which takes a while
        slow = slow_ones()
        self.assertTrue({each["story"]["waits_for"] for each in slow} <= {"room", "turn",
                                                                          "commit", "prepare"})
        time.sleep(20)  # longer than any patience with a box that says nothing
        self.assertTrue(writer.is_alive())
        for name in ("elm", "ash"):
            self.make_room(name)
        writer.join(30)
        self.assertFalse(writer.is_alive(), "there is room again")
        self.wait_until(lambda: self.told("has room again"), "nobody was told of the end")
        for words in ("member absent", "box lost", "box failed", "stopped"):
            self.assertEqual(self.told(words), [])
        self.assertEqual(self.cluster.status(VOLUME)["state"], "healthy")
        for at in range(0, SIZE, MIB):
            self.assertEqual(bytes(reader.pread(MIB, 16 * MIB + at)), after[at:at + MIB])
        found = self.cluster.tell("scrub", VOLUME, "--wait")
        self.assertEqual(found["mismatches"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
