#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft export iscsi` and Linux's own initiator, amid writes: the target is killed, stopped and
frozen, and units come and go. What was written is verified afterwards."""
import signal
import time
import unittest

import guest_disk
import weft_target
from open_iscsi_case import OpenIscsiCase
from weft_target import MIB, WeftTarget


class Behaviour:
    """The tests, for each transport."""

    def test_it_goes_on_when_the_target_was_killed(self):
        self.expect_to_outlive(signal.SIGKILL)

    def test_it_goes_on_when_the_target_was_stopped(self):
        self.expect_to_outlive(signal.SIGTERM)

    def expect_to_outlive(self, how):
        """The target ends and begins again, twice, amid writes that are verified afterwards."""
        with WeftTarget() as target, self.initiator(target) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            words = guest_disk.fio_words(filename=disk, size="16M", rate="2M,8M", iodepth=8)
            with self.guest.start(words) as load:
                for _ in range(2):
                    self.wait_for_writing(target)
                    target.end(how)
                    time.sleep(1)  # it is tried again, in vain
                    target.start()
                self.assertEqual(load.wait(240), 0, load.output)
                self.say(guest_disk.summary_of(load.output))
            self.assertEqual(initiator.session(), "LOGGED_IN")
            log = self.guest.kernel_log()
            self.assertNotRegex(log, r"I/O error|Sense Key|offlin|hung")

    def wait_for_writing(self, target):
        """Until something more has been written, so that the load is under way."""
        def written():
            return target.files[0].stat().st_mtime_ns
        before, give_up = written(), time.monotonic() + 60
        while written() == before:
            self.assertLess(time.monotonic(), give_up, "nothing is written")
            time.sleep(0.05)
        time.sleep(0.5)

    def test_a_target_that_stands_still_is_asked_to_abort(self):
        # Pings are off, so that it is the commands themselves that are given up.
        settings = "node.conn[0].timeo.noop_out_interval = 0\n" \
                   "node.conn[0].timeo.noop_out_timeout = 0\n"
        with WeftTarget() as target, self.initiator(target, settings) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            self.guest.run(f"echo 2 > /sys/block/{disk.removeprefix('/dev/')}/device/timeout")
            words = guest_disk.fio_words(filename=disk, size="16M", rate="2M,8M", iodepth=8)
            with self.guest.start(words) as load:
                self.wait_for_writing(target)
                target.send_signal(signal.SIGSTOP)
                time.sleep(6)
                target.send_signal(signal.SIGCONT)
                self.assertEqual(load.wait(240), 0, load.output)
                self.say(guest_disk.summary_of(load.output))
            self.assertNotRegex(self.guest.kernel_log(), r"I/O error|offlin|hung")
            self.assertEqual(initiator.session(), "LOGGED_IN")
            asked = initiator.statistic("tmfcmd_pdus")
            self.say(f"asked {asked} times to abort or reset")
            self.assertGreater(asked, 0)

    def test_units_are_several_and_come_and_go(self):
        with WeftTarget("--memory", "32M", "--memory", "16M",
                        "--lun", "0", "--lun", "3", "--lun", "200") as target, \
                self.initiator(target) as initiator:
            initiator.discover()
            initiator.login()
            disks = initiator.disks((0, 3, 200))
            sizes = [int(self.guest.run(f"blockdev --getsize64 {disk}")) for disk in disks]
            self.assertEqual(sizes, [64 * MIB, 32 * MIB, 16 * MIB])
            words = guest_disk.fio_words(filename=disks[0], rate="1M,8M")
            with self.guest.start(words) as load:
                target.ask("unit", "add", weft_target.NAME, "--memory", "8M", "--lun", "7")
                initiator.rescan()
                disks = initiator.disks((0, 3, 7, 200))
                guest_disk.make_file_system(self.guest, disks[2])
                guest_disk.check_file_system(self.guest, disks[2])
                self.say("one more while the first is written")
                self.assertEqual(load.wait(120), 0, load.output)
            for disk in disks:
                guest_disk.run_fio(self.guest, filename=disk, size="512k")
            self.expect_no_trouble(allowed=("LUN assignments on this target have changed",))
            target.ask("unit", "remove", weft_target.NAME, "--lun", "3")
            said = self.guest.run(f"dd if={disks[1]} of=/dev/null count=1 iflag=direct", status=1)
            self.assertIn("error", said)
            guest_disk.run_fio(self.guest, filename=disks[0], size="512k")
            self.say("one fewer, and the rest goes on")


class OverTcp(Behaviour, OpenIscsiCase):
    transport = "tcp"


class OverIser(Behaviour, OpenIscsiCase):
    transport = "iser"


if __name__ == "__main__":
    unittest.main(verbosity=2)
