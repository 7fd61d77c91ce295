#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole machine whose disk is ours: QEMU, by libiscsi, from `weft export iscsi`. Over iser:// it
is libiscsi on our libraries, by `weft run`. The guest knows nothing of it."""
import unittest

import guest
import guest_case
import guest_disk
import peers
import weft_target
from weft_target import MIB, WeftTarget

DISK = "/dev/vda"
# libiscsi 1.19 takes no more at a time over iSER, and does not say so to QEMU, which would also
# join what the guest asks for.
ISER_TRANSFER_KIB = 256


class QemuDisk(unittest.TestCase):
    def boot_and_use(self, scheme, launcher=(), transfer_kib=None):
        guest_case.end_shared_guest()
        try:
            guest.require()
            guest.enter_private_network()
        except guest.Unavailable as why:
            self.skipTest(str(why))
        with WeftTarget() as target:
            disk = f"{scheme}://{target.portal}/{weft_target.NAME}/0"
            machine = guest.Guest(
                disks=[disk], disk_options=",request-merging=off" if transfer_kib else "",
                launcher=launcher, entered=True)
            try:
                self.use(machine, target, transfer_kib)
            finally:
                machine.stop()

    def use(self, machine, target, transfer_kib):
        machine.run("modprobe virtio_blk")
        machine.mark_kernel_log("its disk is used")
        self.assertEqual(int(machine.run(f"blockdev --getsize64 {DISK}")), 64 * MIB)
        if transfer_kib:
            machine.run(f"echo {transfer_kib} > /sys/block/vda/queue/max_sectors_kb")
        [session] = target.sessions()
        guest_disk.make_file_system(machine, DISK)
        guest_disk.mount(machine, DISK)
        said = guest_disk.run_fio(machine, directory=guest_disk.FOLDER)
        print(f"[{session['initiator']}: {said}] ", end="", flush=True)
        machine.run(f"head -c 5000000 /dev/urandom > {guest_disk.FOLDER}/file", timeout=60)
        digest = machine.run(f"sha256sum < {guest_disk.FOLDER}/file")
        machine.run(f"fstrim {guest_disk.FOLDER}", timeout=60)
        guest_disk.unmount(machine)
        guest_disk.check_file_system(machine, DISK)
        guest_disk.mount(machine, DISK)
        self.assertEqual(machine.run(f"sha256sum < {guest_disk.FOLDER}/file"), digest)
        guest_disk.unmount(machine)
        self.assertEqual(guest_disk.trouble(machine.kernel_log()), [])

    def test_over_iscsi(self):
        self.boot_and_use("iscsi")

    def test_over_iser(self):
        self.boot_and_use("iser", (peers.program("weft"), "run"), ISER_TRANSFER_KIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
