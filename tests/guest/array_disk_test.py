#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole machine whose disk is a volume of an array: boxes are killed while its file system is
written, and rebuilt; the guest notices nothing, and fsck finds nothing to mend."""
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import guest  # noqa: E402
import guest_case  # noqa: E402
import guest_disk  # noqa: E402
import peers  # noqa: E402
from cluster import Cluster  # noqa: E402

DISK = "/dev/vda"
VOLUME = "photos"
BOXES = ("oak", "elm", "ash", "fir", "yew")


def is_healthy(status):
    return status["state"] == "healthy" and not status["rebuilds"]


class ArrayDisk(unittest.TestCase):
    def setUp(self):
        guest_case.end_shared_guest()
        try:
            guest.require()
            guest.enter_private_network()
        except guest.Unavailable as why:
            self.skipTest(str(why))
        folder = tempfile.TemporaryDirectory(prefix="weft-array-")
        self.addCleanup(folder.cleanup)
        self.cluster = Cluster(peers.program("weft"), folder.name)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_controller()
        for name in BOXES:
            self.cluster.start_box(name, "64M")
            self.cluster.add_box(name)
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(BOXES),
                          "--chunk", "64K")
        socket = pathlib.Path(folder.name) / "nbd.sock"
        self.cluster.attach(VOLUME, "host", "--nbd-unix", socket)
        self.machine = guest.Guest(disks=[f"nbd+unix:///{VOLUME}?socket={socket}"], entered=True)
        self.addCleanup(self.machine.stop)
        self.machine.run("modprobe virtio_blk")
        self.machine.mark_kernel_log("its disk is used")

    def kill_under_load(self, name):
        words = guest_disk.fio_words(directory=guest_disk.FOLDER, size="16M", rate="2M,8M",
                                     iodepth=8)
        with self.machine.start(words) as load:
            time.sleep(3)  # of the eight that it takes at least
            self.cluster.boxes[name].kill()
            self.assertEqual(load.wait(240), 0, load.output)
            print(f"[{name} killed: {guest_disk.summary_of(load.output)}] ", end="", flush=True)

    def check(self):
        guest_disk.unmount(self.machine)
        guest_disk.check_file_system(self.machine, DISK)
        guest_disk.mount(self.machine, DISK)

    def test_keeps_its_file_system_when_boxes_are_killed_under_load(self):
        guest_disk.make_file_system(self.machine, DISK)
        guest_disk.mount(self.machine, DISK)
        for name in ("ash", "oak"):
            self.kill_under_load(name)
            self.check()
            self.cluster.boxes[name].start()
            self.cluster.wait_until(VOLUME, is_healthy)
            self.check()
        guest_disk.unmount(self.machine)
        self.assertEqual(self.cluster.tell("scrub", VOLUME, "--wait")["mismatches"], 0)
        self.assertEqual(guest_disk.trouble(self.machine.kernel_log()), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
