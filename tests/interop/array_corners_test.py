#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small arrays of real processes in less usual states: growing, cleaned up, out of room, stopped
while nobody answers, and looked at on a terminal."""
import os
import pathlib
import pty
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from cluster import Cluster, Failed  # noqa: E402
from iscsi_client import LOGGED_IN, Initiator  # noqa: E402
from weft_export import WEFT  # noqa: E402

OUT_OF_RESOURCES = 0x0302
VOLUME = "photos"
BOXES = ("oak", "elm", "ash")
MIB = 1 << 20
PATIENCE = 60


class Corner(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.path = pathlib.Path(kept.name)
        self.cluster = Cluster(WEFT, self.path)
        self.addCleanup(self.cluster.stop)

    def start(self, listen="127.0.0.1:0", size="64M", *more):
        self.cluster.start_controller(listen, *more)
        for name in BOXES:
            self.cluster.start_box(name, size)
            self.cluster.add_box(name)

    def create(self, *more):
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(BOXES),
                          "--chunk", "64K", *more)
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")

    def attach(self):
        self.socket = self.path / "nbd.sock"
        self.cluster.attach(VOLUME, "host", "--nbd-unix", self.socket)
        self.uri = f"nbd+unix:///{VOLUME}?socket={self.socket}"

    def url(self, address=None):
        address = address or self.cluster.controller.address()
        return f"iscsi://{address}/iqn.2026-11.io.weft:volume.{VOLUME}/0"

    def copy_in(self, url, octets):
        source = self.path / "octets"
        source.write_bytes(octets)
        return subprocess.run([WEFT, "initiator", "write", url, "0", source], text=True,
                              capture_output=True, timeout=PATIENCE)

    def copy_out(self, url, size):
        return subprocess.run([WEFT, "initiator", "read", url, "0", str(size)], check=True,
                              timeout=PATIENCE, stdout=subprocess.PIPE).stdout

    def wait_for(self, true, what):
        deadline = time.monotonic() + PATIENCE
        while not true():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def box(self, name):
        return next(box for box in self.cluster.tell("box", "list") if box["name"] == name)

    # ------------------------------------------------------------------------------------- tests

    def test_a_volume_grows_under_its_host(self):
        self.start()
        self.create("--size", "16M")
        self.attach()
        octets = os.urandom(4 * MIB)
        self.assertEqual(self.copy_in(self.url(), octets).returncode, 0)
        with self.assertRaises(Failed) as refused:
            self.cluster.tell("volume", "grow", VOLUME, "1T")
        self.assertIn(" has room for ", str(refused.exception))
        before = self.cluster.status(VOLUME)["size"]
        self.cluster.tell("volume", "grow", VOLUME, "64M")
        self.cluster.wait_until(VOLUME, lambda status: status["size"] >= 64 * MIB)
        self.assertLess(before, 64 * MIB)
        self.assertEqual(self.copy_out(self.url(), len(octets)), octets)
        # A host hears of it with the answer to its next request, and a client when it connects.
        for words in (("read 0 4k",), ("write -P 7 62M 1M", "read -P 7 62M 1M")):
            commands = [word for each in words for word in ("-c", each)]
            done = subprocess.run(["qemu-io", "-f", "raw", *commands, self.uri], text=True,
                                  capture_output=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("failed", done.stdout + done.stderr)
        self.assertEqual(self.cluster.tell("scrub", VOLUME, "--wait")["mismatches"], 0)

    def test_what_a_deleted_volume_left_behind_is_removed(self):
        self.start()
        self.create()
        self.cluster.boxes["ash"].kill()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "degraded")
        nothing = self.cluster.tell("box", "clean", "oak")  # it is as was wished
        self.assertEqual(nothing["removed"], [])
        self.cluster.tell("volume", "delete", VOLUME)
        self.cluster.boxes["ash"].start()
        self.wait_for(lambda: self.box("ash")["up"], "ash comes back")
        self.assertEqual(self.box("ash")["unclaimed"], [VOLUME])
        self.assertEqual(self.box("ash")["volumes"], [])
        said = subprocess.run([WEFT, "box", "list", *self.cluster.by_key()], capture_output=True,
                              text=True)
        self.assertIn("  a part of photos that no volume claims: weft box clean ash\n", said.stdout)
        taken = self.box("ash")["size"] - self.box("ash")["free"]
        self.assertEqual(self.cluster.tell("box", "clean", "ash")["removed"],
                         [{"volume": VOLUME, "bytes": taken}])
        self.assertEqual(self.box("ash")["unclaimed"], [])
        self.assertEqual(self.box("ash")["free"], self.box("ash")["size"])
        self.assertEqual([path.name for path in (self.path / "ash").glob("part-*")], [])

    def test_the_room_of_a_deleted_volume_is_there_at_once(self):
        self.start()
        for _ in range(3):
            self.create()  # all of it
            self.assertGreater(self.cluster.status(VOLUME)["size"], 64 * MIB)
            self.cluster.tell("volume", "delete", VOLUME)
        with self.assertRaisesRegex(Failed, "has room for [0-9]+ octets, and needs [0-9]+: "
                                            "the volume can have [0-9]+ octets at most"):
            self.create("--size", "1T")
        with self.assertRaisesRegex(Failed, "a volume of no size is of no use"):
            self.create("--size", "0")

    def events(self):
        return [event["what"] for event in self.cluster.tell("events")]

    def test_a_host_that_is_killed_is_no_broken_link(self):
        self.start()
        self.create("--size", "16M")
        octets = self.path / "octets"
        octets.write_bytes(os.urandom(12 * MIB))
        for _ in range(3):
            self.attach()
            writing = subprocess.Popen(
                ["sh", "-c", 'while nbdcopy --requests=64 "$0" "$1"; do :; done', octets, self.uri],
                stderr=subprocess.DEVNULL)
            time.sleep(1)
            self.cluster.hosts.pop("host").kill()
            writing.wait(PATIENCE)
            time.sleep(3)
        self.assertEqual([what for what in self.events() if "does not reach a host" in what], [])
        self.assertEqual([member["box"] for member in self.cluster.status(VOLUME)["members"]
                          if member["misses_host"]], [])

    def log_in(self, source, name, number=1):
        """As an initiator of that name, at another address of this machine."""
        initiator = Initiator(self.cluster.controller.address(), source=(source, 0))
        self.addCleanup(initiator.close)
        target = f"iqn.2026-11.io.weft:volume.{VOLUME}"
        initiator.send(initiator.login_pdu([("InitiatorName", name), ("TargetName", target)],
                                           isid=b"\x80\0\0\0\0" + bytes([number])))
        return initiator

    def test_one_host_takes_no_more_connections_than_it_may(self):
        self.start("127.0.0.1:0", "64M", "--host-connections", "3")
        self.create("--size", "16M")
        by_address = [self.log_in("127.0.0.2", f"iqn.a{number}") for number in range(3)]
        for each in by_address:
            self.assertEqual(each.expect(LOGGED_IN).status, 0)
        self.assertTrue(self.log_in("127.0.0.2", "iqn.a4").closed())
        self.assertIn("127.0.0.2 has 3 connections already, and may not have more",
                      "\n".join(self.events()))
        by_name = [self.log_in(f"127.0.0.{number}", "iqn.b", number) for number in range(3, 7)]
        self.assertEqual([each.expect(LOGGED_IN).status for each in by_name],
                         [0, 0, 0, OUT_OF_RESOURCES])
        by_address[0].close()
        self.wait_for(lambda: self.is_logged_in(self.log_in("127.0.0.2", "iqn.a5")),
                      "there is room for another")

    @staticmethod
    def is_logged_in(initiator):
        try:
            return initiator.expect(LOGGED_IN).status == 0
        except (EOFError, ConnectionError):
            return False

    def test_a_host_hears_from_a_standby_that_it_is_one(self):
        self.start()
        self.create("--size", "16M")
        standby = self.cluster.start_standby()
        done = subprocess.run([WEFT, "host", "attach", VOLUME, "--controller", standby.address(),
                               "--nbd-unix", self.path / "nbd.sock"], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (
            1, "weft: the controller there is not in office, or has only begun\n"))

    def test_a_refusal_says_what_would_help(self):
        self.start()
        self.create()
        for words, said in ((("member", "re-add", VOLUME, "oak"), "oak has not failed"),
                            (("scrub", VOLUME, "--stop"), "no scrub of photos runs")):
            with self.assertRaisesRegex(Failed, said + ".*photos is healthy"):
                self.cluster.tell(*words)

    def test_a_part_that_is_damaged_is_left_out_and_made_anew(self):
        self.start()
        self.create("--size", "16M")
        self.cluster.tell("volume", "create", "music", "--level", 5, "--boxes", ",".join(BOXES),
                          "--size", "16M", "--chunk", "64K")
        octets = os.urandom(4 * MIB)
        self.assertEqual(self.copy_in(self.url(), octets).returncode, 0)
        oak, expected = self.cluster.boxes["oak"], []
        oak.kill()
        # Both copies of a superblock, and both of where a journal begins.
        for name, at, size, why in ((VOLUME, 0, 8 << 10, "no superblock on it is whole"),
                                    ("music", MIB, 72 << 10, "its journal is damaged")):
            part = self.path / "oak" / f"part-{self.cluster.status(name)['identity']}"
            with open(part, "r+b") as file:
                file.seek(at)
                file.write(os.urandom(size))
            expected.append(f"{part}: {why}; the box starts without this part")
        told = subprocess.run([WEFT, "examine", self.path / "oak"], check=True, text=True,
                              timeout=PATIENCE, stdout=subprocess.PIPE).stdout
        self.assertIn("damaged, the part will be taken for lost", told)
        oak.start()
        for said in expected:
            self.assertIn(said, [each.get("what") for each in oak.news()])
        for name in (VOLUME, "music"):
            self.cluster.wait_until(name, lambda status: status["state"] == "healthy")
        self.assertEqual(self.cluster.tell("scrub", VOLUME, "--wait")["mismatches"], 0)
        self.cluster.boxes["elm"].kill()
        self.assertEqual(self.copy_out(self.url(), len(octets)), octets)

    def test_a_file_that_may_not_be_written_any_more_loses_nothing(self):
        self.start()
        self.create()
        octets = os.urandom(2 * MIB)
        self.assertEqual(self.copy_in(self.url(), octets).returncode, 0)
        # From here on the system refuses ash what lies behind. (array_full_test.py has file systems
        # without room.)
        ash = self.cluster.boxes["ash"]
        resource.prlimit(ash.process.pid, resource.RLIMIT_FSIZE, (3 * MIB, 3 * MIB))
        more = os.urandom(16 * MIB)
        self.assertEqual(self.copy_in(self.url(), more).returncode, 0, "two boxes are enough")
        self.cluster.wait_until(VOLUME, lambda status: status["members"][2]["state"] != "current")
        self.assertEqual(self.copy_out(self.url(), len(more)), more)
        self.assertTrue(ash.alive(), ash.log.read_text())
        events = self.cluster.tell("events")
        self.assertTrue(any("disk failed" in event["what"] for event in events), events)
        ash.kill()
        ash.start()
        self.cluster.tell("member", "re-add", VOLUME, "ash")
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.cluster.boxes["oak"].kill()
        self.assertEqual(self.copy_out(self.url(), len(more)), more)

    def test_a_box_with_anothers_folder_does_not_start(self):
        self.start()
        self.create()
        oak = self.cluster.boxes["oak"]
        oak.kill()

        def sentence(*words):
            done = subprocess.run([WEFT, "box", "serve", "--size", "64M", "--listen", "127.0.0.1:0",
                                   *words], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        folder = self.path / "oak"
        self.assertIn("this is the folder of box oak, not of yew",
                      sentence("--name", "yew", "--data", folder))
        self.assertIn("another weft box serve uses this folder",
                      sentence("--name", "oak", "--data", self.path / "elm"))
        # A copy of another box's part, under the right name.
        part = next(folder.glob("part-*"))
        part.rename(self.path / "kept")
        subprocess.run(["cp", "--sparse=always", self.path / "elm" / part.name, part], check=True)
        self.assertIn("this is a disk of another box", sentence("--name", "oak", "--data", folder))
        part.unlink()
        (self.path / "kept").rename(part)
        (folder / "box").rename(self.path / "box")
        self.assertIn("and no file 'box' that says whose it is",
                      sentence("--name", "oak", "--data", folder))
        (self.path / "box").rename(folder / "box")
        self.assertIn("could be taken for a place",
                      sentence("--name", "7", "--data", self.path))
        oak.start()
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")

    def test_a_stock_initiator_is_served_where_the_controller_listens_on_all_addresses(self):
        self.start("0.0.0.0:0")
        port = self.cluster.controller.address().rsplit(":", 1)[1]
        self.cluster.controller.address = lambda: f"127.0.0.1:{port}"
        self.create()
        octets = os.urandom(2 * MIB)
        written = self.copy_in(self.url(), octets)
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertEqual(self.copy_out(self.url(), len(octets)), octets)

    def test_requests_of_stock_initiators_are_slow_too(self):
        self.start()
        self.create()
        for name in ("elm", "ash"):
            self.cluster.boxes[name].process.send_signal(signal.SIGSTOP)
        source = self.path / "octets"
        source.write_bytes(os.urandom(MIB))
        waiting = subprocess.Popen([WEFT, "initiator", "write", self.url(), "0", source],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        self.wait_for(lambda: any(each["under_way"] and each["operation"] == "write"
                                  for each in self.cluster.tell("slow-ops")), "it is slow")
        for name in ("elm", "ash"):
            self.cluster.boxes[name].process.send_signal(signal.SIGCONT)
        self.assertEqual(waiting.wait(PATIENCE), 0)
        self.assertTrue(any(not each["under_way"] for each in self.cluster.tell("slow-ops")))

    def test_a_rebuild_is_watched_on_a_terminal(self):
        self.start()
        self.create()
        self.assertEqual(self.copy_in(self.url(), os.urandom(24 * MIB)).returncode, 0)
        self.cluster.tell("rebuild", "rate", VOLUME, "4M")
        self.cluster.tell("member", "fail", VOLUME, "elm")
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "degraded")
        self.assertEqual(self.copy_in(self.url(), os.urandom(24 * MIB)).returncode, 0)
        self.cluster.tell("member", "re-add", VOLUME, "elm")
        # With a journal it is first asked what it knows, and that is ended.
        self.cluster.wait_until(VOLUME, lambda status: status["rebuilds"])
        ours, theirs = pty.openpty()
        watching = subprocess.Popen([WEFT, "rebuild", "status", VOLUME, *self.cluster.by_key()],
                                    stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        seen = b""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 1)[0]:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # its end is told so
                    break
                seen += part
        os.close(ours)
        self.assertEqual(watching.wait(PATIENCE), 0)
        text = seen.decode()
        self.assertIn("place 1 [", text)
        self.assertIn("\r", text)
        shown = {line.split("]")[0].count("#") for line in text.split("\r") if "place 1 [" in line}
        self.assertGreater(len(shown), 1, text)

    def test_controller_and_host_leave_when_asked_while_nobody_answers(self):
        self.start()
        self.create()
        self.attach()
        for name in ("elm", "ash"):
            self.cluster.boxes[name].kill()
        reading = subprocess.Popen(["nbdcopy", self.uri, "null:"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(reading.wait)
        self.addCleanup(reading.kill)
        self.wait_for(lambda: self.cluster.status(VOLUME)["requests_under_way"] > 0, "it asks")
        for role in (self.cluster.hosts["host"], self.cluster.controller):
            role.ask_to_stop()
            self.assertEqual(role.wait(), 0, role.log.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
