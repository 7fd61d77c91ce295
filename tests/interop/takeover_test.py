#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two controllers of real processes: the one in office is killed, paused, and asked to step down,
under writes whose every byte is known. How long it took until the next of them completed is
printed."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import nbd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from cluster import Cluster  # noqa: E402
from weft_export import WEFT  # noqa: E402

VOLUME = "photos"
NAMES = ("oak", "elm", "ash", "fir")
MIB = 1 << 20
LEASE = os.environ.get("WEFT_LEASE", "2")
SECONDS = int(os.environ.get("WEFT_ARRAY_SECONDS", "4"))


class Writer(threading.Thread):
    """Writes to a region of its own, and knows what was acknowledged and when."""

    def __init__(self, uri, offset, size):
        super().__init__(daemon=True)
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.offset = offset
        self.shadow = bytearray(size)
        self.completed = []  # moments
        self.stopping = False
        self.failure = None

    def run(self):
        try:
            while not self.stopping:
                count = 4096 * (1 + int.from_bytes(os.urandom(1), "big") % 16)
                blocks = (len(self.shadow) - count) // 4096
                at = int.from_bytes(os.urandom(4), "big") % blocks * 4096
                octets = os.urandom(count)
                self.handle.pwrite(octets, self.offset + at)
                self.shadow[at:at + count] = octets
                self.completed.append(time.monotonic())
                if len(self.completed) % 8 == 0:
                    self.check(at, count)
        except Exception as why:  # told by whoever waits for us
            self.failure = why

    def check(self, at, count):
        if self.handle.pread(count, self.offset + at) != self.shadow[at:at + count]:
            raise AssertionError(f"what was written at {self.offset + at} is not there")

    def stop(self):
        self.stopping = True
        self.join(120)
        if self.is_alive():
            raise AssertionError("a write has not come back")
        if self.failure:
            raise self.failure
        for at in range(0, len(self.shadow), MIB):
            self.check(at, MIB)


class TakeoverCase(unittest.TestCase):
    store = ()
    lease = LEASE

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.path = pathlib.Path(kept.name)
        self.cluster = Cluster(WEFT, self.path)
        self.addCleanup(self.cluster.stop)
        self.begin_store()
        self.cluster.start_controller("127.0.0.1:0", "--standby", "--lease", self.lease,
                                      *self.store)
        self.cluster.start_standby("standby", "127.0.0.1:0", "--lease", self.lease, *self.store)
        for name in NAMES:
            self.cluster.start_box(name, "64M")
            self.cluster.add_box(name)
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(NAMES),
                          "--chunk", "64K")
        socket = self.path / "nbd.sock"
        self.cluster.attach(VOLUME, "host", "--nbd-unix", socket)
        self.uri = f"nbd+unix:///{VOLUME}?socket={socket}"
        self.writers = [Writer(self.uri, i * 8 * MIB, 8 * MIB) for i in range(4)]
        for writer in self.writers:
            writer.start()
        time.sleep(SECONDS / 4)

    def begin_store(self):
        pass

    def offices(self):
        return self.cluster.tell("controller", "status")

    def wait_for_office(self, role, seconds=60):
        """Until it is in office, by what it says of itself."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for said in self.offices():
                if said["address"] == role.address() and said.get("state") == "in office":
                    return said
            time.sleep(0.05)
        self.fail(f"{role.name} is not in office: {self.offices()}")

    def time_to_resume(self, began):
        """From a moment to the first write that completed well after it."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            # Answers that were on their way already do not count.
            after = [moment for writer in self.writers
                     for moment in writer.completed if moment > began + 0.2]
            if after:
                return min(after) - began
            for writer in self.writers:
                if writer.failure:
                    raise writer.failure
            time.sleep(0.02)
        self.fail("no write has completed since")

    def finish(self):
        time.sleep(SECONDS / 4)
        count = sum(len(writer.completed) for writer in self.writers)
        for writer in self.writers:
            writer.stop()
        found = self.cluster.tell("scrub", VOLUME, "--wait")
        self.assertGreater(found["done"], 0)
        self.assertEqual(found["mismatches"], 0, found)
        return count

    def report(self, what, seconds):
        print(f"{what}: {seconds:.2f} s to the first completed write (lease {self.lease} s)",
              flush=True)


class Sqlite(TakeoverCase):
    def test_a_killed_controller_is_followed_by_the_standby_and_the_other_way_round(self):
        first, second = self.cluster.controller, self.cluster.standbys["standby"]
        for victim, heir in ((first, second), (second, first)):
            epoch = self.wait_for_office(victim)["epoch"]
            time.sleep(1)  # events are kept a moment after they happen
            began = time.monotonic()
            victim.kill()
            self.report("killed", self.time_to_resume(began))
            self.assertGreater(self.wait_for_office(heir)["epoch"], epoch)
            victim.start()
            self.assertEqual(victim.news()[0]["event"], "waiting")
        self.finish()
        events = self.cluster.tell("events")
        numbers = [each["number"] for each in events]
        self.assertEqual(numbers, sorted(set(numbers)))
        offices = [each["what"] for each in events if "took office" in each["what"]]
        self.assertEqual([each.split()[3].rstrip(",") for each in offices],
                         [first.address(), second.address(), first.address()], offices)

    def test_a_paused_controller_finds_itself_deposed_and_changes_nothing(self):
        first, second = self.cluster.controller, self.cluster.standbys["standby"]
        self.wait_for_office(first)
        began = time.monotonic()
        first.process.send_signal(signal.SIGSTOP)
        self.report("paused", self.time_to_resume(began))
        epoch = self.wait_for_office(second)["epoch"]
        first.process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not any(
                "another controller has taken office" in each.get("what", "")
                for each in first.news()):
            time.sleep(0.05)
        self.assertTrue(any("another controller has taken office" in each.get("what", "")
                            for each in first.news()), first.log.read_text())
        self.assertEqual(self.wait_for_office(second)["epoch"], epoch)
        # It was told to wait when it is not in office: so it does.
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and first.news()[-1].get("event") != "waiting":
            time.sleep(0.05)
        self.assertEqual(first.news()[-1].get("event"), "waiting", first.log.read_text())
        self.finish()
        self.assertEqual(self.wait_for_office(second)["epoch"], epoch)

    def test_a_controller_that_steps_down_is_followed_at_once(self):
        first, second = self.cluster.controller, self.cluster.standbys["standby"]
        self.wait_for_office(first)
        began = time.monotonic()
        self.cluster.tell("controller", "step-down")
        self.report("stepped down", self.time_to_resume(began))
        self.wait_for_office(second)
        began = time.monotonic()
        second.ask_to_stop()
        self.report("told to stop", self.time_to_resume(began))
        self.assertEqual(second.wait(), 0, second.log.read_text())
        self.wait_for_office(first)
        self.finish()

    def test_a_host_that_attaches_amid_a_takeover_waits_for_the_next_in_office(self):
        first, second = self.cluster.controller, self.cluster.standbys["standby"]
        self.wait_for_office(first)
        first.kill()
        self.cluster.attach(VOLUME, "another", "--nbd-unix", self.path / "another.sock")
        self.wait_for_office(second)
        # One of them is dead, and has no say in what there is.
        for pair in ((first, second), (second, first)):
            done = subprocess.run(
                [WEFT, "host", "attach", "music", "--nbd-unix", self.path / "music.sock",
                 "--controller", ",".join(each.address() for each in pair)],
                capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "weft: there is no volume of that name\n"))
        self.finish()

    def test_a_second_controller_that_does_not_wait_is_refused(self):
        command = [word for word in self.cluster.standbys["standby"].command if word != "--standby"]
        command[command.index("--listen") + 1] = "127.0.0.1:0"
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("another controller is in office, at " + self.cluster.controller.address(),
                      done.stderr)
        self.finish()

    def test_a_host_verifies_with_fio_while_controllers_are_killed(self):
        for writer in self.writers:
            writer.stop()
        self.writers.clear()
        load = subprocess.Popen(
            ["fio", "--name=verify", "--ioengine=nbd", f"--uri={self.uri}", "--rw=randrw",
             "--bs=4k-64k", "--size=48M", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1",
             "--verify_backlog=64", "--verify_state_save=0", "--time_based",
             f"--runtime={5 * SECONDS}", "--randrepeat=0", "--output-format=terse"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        roles = [self.cluster.controller, self.cluster.standbys["standby"]]
        while load.poll() is None:
            time.sleep(SECONDS / 2)
            roles[0].kill()
            self.wait_for_office(roles[1])
            roles[0].start()
            roles.reverse()
        output, _ = load.communicate(timeout=120)
        self.assertEqual(load.returncode, 0, output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
