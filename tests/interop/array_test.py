#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An array of real processes, under other people's clients, while boxes are killed.

`./test array` runs it for longer, with libiscsi's suite besides (array_suite_test.py).
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from cluster import Cluster, Failed  # noqa: E402
from weft_export import WEFT, run  # noqa: E402

SECONDS = int(os.environ.get("WEFT_ARRAY_SECONDS", "4"))
VOLUME = "photos"
NAMES = ("oak", "elm", "ash", "fir", "yew")
BOX_SIZE = "96M"
MIB = 1 << 20


def is_healthy(status):
    return status["state"] == "healthy" and not status["rebuilds"]


def lacks(place):
    return lambda status: status["members"][place]["state"] != "current"


class ArrayCase(unittest.TestCase):
    level, boxes = 5, NAMES

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.path = pathlib.Path(kept.name)
        self.cluster = Cluster(WEFT, self.path)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_controller()
        for name in self.boxes:
            self.add_box(name)
        self.volume = self.cluster.tell("volume", "create", VOLUME, "--level", self.level,
                                        "--boxes", ",".join(self.boxes), "--chunk", "64K")
        self.assertEqual(self.volume["consistency"], "journal", "unless none is asked for")
        self.attach()

    def add_box(self, name):
        self.cluster.start_box(name, BOX_SIZE)
        self.cluster.add_box(name)

    def attach(self):
        self.socket = self.path / "nbd.sock"
        self.cluster.attach(VOLUME, "host", "--nbd-unix", self.socket)
        self.uri = f"nbd+unix:///{VOLUME}?socket={self.socket}"

    def make_file(self, name, size):
        path = self.path / name
        path.write_bytes(os.urandom(size))
        return path

    def write(self, path, timeout=120):
        run("nbdcopy", "--allocated", path, self.uri, timeout=timeout)

    def digest_of_volume(self, size):
        done = subprocess.run(["nbdcopy", self.uri, "-"], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return hashlib.sha256(done.stdout[:size]).hexdigest()

    def expect(self, path):
        octets = path.read_bytes()
        self.assertEqual(self.digest_of_volume(len(octets)), hashlib.sha256(octets).hexdigest())

    def scrub(self):
        found = self.cluster.tell("scrub", VOLUME, "--wait")
        self.assertGreater(found["done"], 0)
        self.assertEqual(found["mismatches"], 0, found)

    def fio(self, seconds, *more):
        """Random writes, each verified; its process."""
        return subprocess.Popen(
            ["fio", "--name=verify", "--ioengine=nbd", f"--uri={self.uri}", "--rw=randrw",
             "--bs=4k-64k", "--size=64M", "--iodepth=8", "--verify=crc32c", "--verify_state_save=0",
             "--verify_backlog=64",
             "--verify_fatal=1", "--time_based", f"--runtime={seconds}", "--randrepeat=0",
             "--verify_state_save=0", "--output-format=terse", *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def expect_success(self, process, seconds):
        output, _ = process.communicate(timeout=seconds + 60)
        self.assertEqual(process.returncode, 0, output)


class Raid5(ArrayCase):
    def test_reads_what_was_written_without_any_one_box(self):
        data = self.make_file("data", 48 * MIB)
        self.write(data)
        self.expect(data)
        self.cluster.boxes["elm"].kill()
        self.expect(data)
        self.cluster.wait_until(VOLUME, lacks(1))
        again = self.make_file("again", 32 * MIB)
        self.write(again)
        self.expect(again)
        self.cluster.boxes["elm"].start()
        self.cluster.wait_until(VOLUME, is_healthy)
        self.cluster.boxes["oak"].kill()
        self.expect(again)

    def test_rebuilds_on_a_new_box_and_agrees(self):
        data = self.make_file("data", 48 * MIB)
        self.write(data)
        self.cluster.boxes["fir"].kill()
        self.cluster.wait_until(VOLUME, lacks(3))
        self.add_box("ivy")
        self.cluster.tell("member", "replace", VOLUME, "fir", "ivy")
        self.cluster.wait_until(VOLUME, is_healthy)
        self.scrub()
        self.cluster.boxes["yew"].kill()
        self.expect(data)

    def test_gives_a_spare_the_place_of_a_lost_box(self):
        self.add_box("ivy")
        self.cluster.tell("spare", "add", "ivy")
        data = self.make_file("data", 16 * MIB)
        self.write(data)
        self.cluster.boxes["ash"].kill()
        self.cluster.wait_until(VOLUME, lambda status: is_healthy(status) and any(
            member["box"] == "ivy" for member in status["members"]))
        self.scrub()
        self.expect(data)

    def test_goes_on_under_load_when_a_box_is_killed(self):
        for name in ("oak", "yew"):
            load = self.fio(2 * SECONDS)
            self.assertRaises(subprocess.TimeoutExpired, load.wait, SECONDS / 2)
            self.cluster.boxes[name].kill()
            self.expect_success(load, 2 * SECONDS)
            self.cluster.boxes[name].start()
            self.cluster.wait_until(VOLUME, is_healthy)
            self.scrub()

    def test_rebuilds_under_load(self):
        self.write(self.make_file("data", 64 * MIB))
        self.cluster.boxes["elm"].kill()
        self.cluster.wait_until(VOLUME, lacks(1))
        self.add_box("ivy")
        load = self.fio(2 * SECONDS)
        self.cluster.tell("member", "replace", VOLUME, "elm", "ivy")
        self.cluster.wait_until(VOLUME, is_healthy)
        self.expect_success(load, 2 * SECONDS)
        self.scrub()

    def test_is_there_again_when_the_controller_is_killed(self):
        data = self.make_file("data", 16 * MIB)
        self.write(data)
        self.cluster.controller.kill()
        self.cluster.controller.start()
        self.cluster.wait_until(VOLUME, is_healthy)
        self.expect(data)
        self.scrub()

    def test_is_there_again_when_everything_was_stopped(self):
        data = self.make_file("data", 16 * MIB)
        self.write(data)
        self.assertEqual(self.cluster.stop(), [])
        for role in (*self.cluster.boxes.values(), self.cluster.controller):
            role.start()
        self.cluster.wait_until(VOLUME, is_healthy)
        self.attach()
        self.expect(data)

    def test_is_a_disk_for_qemu(self):
        image = self.path / "image.qcow2"
        raw = self.make_file("raw", 24 * MIB)
        run("qemu-img", "convert", "-n", "-O", "raw", raw, self.uri)
        run("qemu-img", "convert", "-O", "qcow2", self.uri, image)
        back = self.path / "back"
        run("qemu-img", "convert", "-O", "raw", image, back)
        self.assertEqual(back.read_bytes()[:24 * MIB], raw.read_bytes())

    def test_serves_a_stock_initiator_at_the_controller(self):
        data = self.make_file("data", 4 * MIB)
        url = (f"iscsi://{self.cluster.controller.address()}/"
               f"iqn.2026-11.io.weft:volume.{VOLUME}/0")
        run("qemu-img", "convert", "-n", "-O", "raw", data, url)
        self.expect(data)

    def test_refuses_in_one_sentence(self):
        for words in (("volume", "create", VOLUME, "--level", 5, "--boxes", "oak,elm,ash"),
                      ("volume", "create", "more", "--level", 5, "--boxes", "oak,elm"),
                      ("volume", "create", "more", "--level", 5, "--boxes", "oak,elm,nobody"),
                      ("volume", "status", "nothing"),
                      ("box", "remove", "oak"),
                      ("member", "replace", VOLUME, "oak", "elm"),
                      ("spare", "add", "oak")):
            with self.assertRaises(Failed) as refused:
                self.cluster.tell(*words)
            self.assertEqual(len(str(refused.exception).splitlines()), 1, refused.exception)
        self.assertTrue(is_healthy(self.cluster.status(VOLUME)))


class Raid6(ArrayCase):
    level, boxes = 6, NAMES + ("ivy",)

    def test_reads_what_was_written_without_any_two_boxes(self):
        data = self.make_file("data", 32 * MIB)
        self.write(data)
        self.cluster.boxes["oak"].kill()
        self.expect(data)
        self.cluster.boxes["fir"].kill()
        self.expect(data)
        self.cluster.boxes["fir"].start()
        self.cluster.boxes["oak"].start()
        self.cluster.wait_until(VOLUME, is_healthy)
        self.scrub()


class Mirror(ArrayCase):
    level, boxes = 1, NAMES[:3]

    def test_needs_only_one(self):
        data = self.make_file("data", 16 * MIB)
        self.write(data)
        self.cluster.boxes["oak"].kill()
        self.expect(data)
        self.cluster.boxes["ash"].kill()
        self.expect(data)


if __name__ == "__main__":
    unittest.main(verbosity=2)
