#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Promises in time with real processes: what a controller says it promises, what it refuses to, how
long a box that is stopped stays a member. And volumes whose parity is computed by a binary tree:
written degraded, rebuilt, and the same after the controller begins anew."""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from cluster import Cluster  # noqa: E402
from weft_export import WEFT  # noqa: E402

VOLUME = "photos"
BOXES = ("oak", "elm", "ash", "fir", "yew")
MIB = 1 << 20
PATIENCE = 60
SILENCE = 3


class Promises(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        self.path = pathlib.Path(kept.name)
        self.cluster = Cluster(WEFT, self.path)
        self.addCleanup(self.cluster.stop)

    def start(self, *more, of_boxes=()):
        self.cluster.start_controller("127.0.0.1:0", *more)
        for name in BOXES:
            self.cluster.start_box(name, "64M", "127.0.0.1:0", *of_boxes)
            self.cluster.add_box(name)

    def create(self, level, *more):
        self.cluster.tell("volume", "create", VOLUME, "--level", level, "--boxes", ",".join(BOXES),
                          "--chunk", "16K", "--size", "16M", *more)
        return self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")

    def url(self):
        return (f"iscsi://{self.cluster.controller.address()}/"
                f"iqn.2026-11.io.weft:volume.{VOLUME}/0")

    def write(self, octets, at=0):
        source = self.path / "octets"
        source.write_bytes(octets)
        done = subprocess.run([WEFT, "initiator", "write", self.url(), str(at), source], text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def expect(self, octets):
        found = subprocess.run([WEFT, "initiator", "read", self.url(), "0", str(len(octets))],
                               check=True, timeout=PATIENCE, stdout=subprocess.PIPE).stdout
        self.assertEqual(found, octets)

    def told(self, words):
        return [each for each in self.cluster.tell("events") if words in each["what"]]

    def pause(self, name, seconds):
        process = self.cluster.boxes[name].process
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            while time.monotonic() < began + seconds and not self.told("box lost"):
                time.sleep(0.02)
            return time.monotonic() - began
        finally:
            process.send_signal(signal.SIGCONT)

    # ------------------------------------------------------------------------------------- tests

    def test_a_controller_says_what_it_promises(self):
        usual = self.cluster.start_controller("127.0.0.1:0").address()
        self.assertEqual(self.cluster.tell("controller", "status")[0]["promises"], {
            "request_patience_seconds": 60.0, "box_silence_seconds": 10.0,
            "spare_patience_seconds": 30.0, "rebuild_share_percent": 20, "host_requests": 128})
        self.cluster.controller.ask_to_stop()
        self.assertEqual(self.cluster.controller.wait(), 0)
        self.cluster.start_controller(usual, "--request-patience", "2m", "--box-silence", "4500ms",
                                      "--spare-patience", "90", "--rebuild-share", "35",
                                      "--host-requests", "64")
        self.assertEqual(self.cluster.tell("controller", "status")[0]["promises"], {
            "request_patience_seconds": 120.0, "box_silence_seconds": 4.5,
            "spare_patience_seconds": 90.0, "rebuild_share_percent": 35, "host_requests": 64})

    def test_a_box_that_is_stopped_is_absent_after_the_silence_and_not_sooner(self):
        self.start("--box-silence", f"{SILENCE}s")
        self.create(5)
        self.write(os.urandom(MIB))
        for _ in range(3):
            self.pause("ash", SILENCE - 1)
            time.sleep(0.5)
        self.assertEqual(self.told("box lost"), [])
        self.assertEqual(self.cluster.status(VOLUME)["state"], "healthy")
        took = self.pause("ash", 4 * SILENCE)
        print(f"absent after {took:.2f} s", flush=True)
        self.assertGreater(took, SILENCE * 0.75 - 0.1)
        self.assertLess(took, SILENCE + 1)  # of which a second is ours, to ask
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")

    def test_a_controller_that_was_stopped_itself_blames_no_box(self):
        self.start("--box-silence", f"{SILENCE}s", "--lease", "60")
        self.create(5)
        self.write(os.urandom(MIB))
        process = self.cluster.controller.process
        for _ in range(3):
            process.send_signal(signal.SIGSTOP)
            time.sleep(2 * SILENCE)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
        octets = os.urandom(MIB)
        self.write(octets)
        self.expect(octets)
        self.assertEqual(self.told("box lost"), [])
        self.assertEqual(self.cluster.status(VOLUME)["state"], "healthy")

    def test_a_box_whose_disk_hangs_says_so(self):
        where, image = self.path / "ash", self.path / "image"
        where.mkdir()
        with open(image, "wb") as file:
            file.truncate(256 * MIB)
        for words in (("mkfs.ext4", "-q", image), ("mount", "-o", "loop", image, where)):
            if not shutil.which(words[0]) or not shutil.which("fsfreeze") or subprocess.run(
                    words, capture_output=True).returncode:
                self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", where])
        self.addCleanup(self.cluster.stop)
        (where / "lost+found").rmdir()
        self.start(of_boxes=("--disk-patience", "5s"))
        self.create(5)
        octets = os.urandom(4 * MIB)
        self.write(octets)
        subprocess.run(["fsfreeze", "--freeze", where], check=True)
        thaw = ["fsfreeze", "--unfreeze", where]
        self.addCleanup(subprocess.run, thaw, capture_output=True)
        octets = os.urandom(4 * MIB)
        began = time.monotonic()
        self.write(octets)
        print(f"written after {time.monotonic() - began:.2f} s", flush=True)
        self.assertGreater(time.monotonic() - began, 4.9)
        self.assertEqual(self.cluster.status(VOLUME)["members"][2]["state"], "failed")
        self.assertEqual(self.told("box lost"), [])
        self.assertEqual(len(self.told("box failed: disk failed")), 1)
        self.assertTrue(any("its disk has not answered for 5 s" in each.get("what", "")
                            for each in self.cluster.boxes["ash"].news()))
        subprocess.run(thaw, check=True)
        time.sleep(1)
        self.cluster.tell("member", "re-add", VOLUME, "ash")
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.assertEqual(self.cluster.tell("scrub", VOLUME, "--wait")["mismatches"], 0)
        self.cluster.boxes["oak"].kill()
        self.expect(octets)

    def test_a_member_that_fails_and_cannot_be_spared_is_a_member(self):
        self.start("--request-patience", "20s")
        self.create(5)
        self.cluster.boxes["oak"].kill()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "degraded")
        ash = self.cluster.boxes["ash"]
        resource.prlimit(ash.process.pid, resource.RLIMIT_FSIZE, (1 * MIB, 1 * MIB))
        source = self.path / "octets"
        source.write_bytes(os.urandom(4 * MIB))
        writing = subprocess.Popen([WEFT, "initiator", "write", self.url(), "0", source],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(writing.wait)
        self.addCleanup(writing.kill)
        status = self.cluster.wait_until(VOLUME, lambda status: status["members"][2]["failing"])
        self.assertEqual([each["state"] for each in status["members"]],
                         ["absent", "current", "current", "current", "current"])
        said = subprocess.run([WEFT, "volume", "status", VOLUME, *self.cluster.by_key()],
                              capture_output=True, text=True)
        self.assertIn("  place 2: ash, current, up, fails orders", said.stdout)
        ash.kill()
        ash.start()
        self.cluster.tell("member", "re-add", VOLUME, "ash")
        self.cluster.boxes["oak"].start()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.assertEqual({each["state"] for each in self.cluster.status(VOLUME)["members"]},
                         {"current"})

    def test_raid_5_by_a_binary_tree(self):
        self.go_through_the_life_of_a_tree(5, ("ash",))

    def test_raid_6_by_a_binary_tree(self):
        self.go_through_the_life_of_a_tree(6, ("ash", "fir"))

    def go_through_the_life_of_a_tree(self, level, lost):
        self.start()
        self.assertEqual(self.create(level, "--topology", "tree")["topology"], "tree")
        said = subprocess.run([WEFT, "volume", "status", VOLUME, *self.cluster.by_key()],
                              capture_output=True, text=True)
        self.assertIn("with a journal, parity by a tree, generation", said.stdout)
        octets = bytearray(os.urandom(4 * MIB))
        self.write(octets)
        for name in lost:
            self.cluster.boxes[name].kill()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "degraded")
        part = os.urandom(MIB + 12288)
        octets[16384:16384 + len(part)] = part
        self.write(part, 16384)  # degraded, and not whole stripes
        self.expect(bytes(octets))
        for name in lost:
            self.cluster.start_box(f"new-{name}", "64M")
            self.cluster.add_box(f"new-{name}")
            self.cluster.tell("member", "replace", VOLUME, name, f"new-{name}")
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        scrub = self.cluster.tell("scrub", VOLUME, "--wait")
        self.assertEqual((scrub["mismatches"], scrub["running"]), (0, False))
        # Of another process the volume is the same.
        self.cluster.controller.kill()
        self.cluster.controller.start()
        status = self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.assertEqual(status["topology"], "tree")
        for name in ("oak", "elm")[:len(lost)]:
            self.cluster.boxes[name].kill()
        self.expect(bytes(octets))


if __name__ == "__main__":
    unittest.main(verbosity=2)
