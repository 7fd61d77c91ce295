#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft export iscsi` and Linux's own initiator, over iscsi_tcp and over ib_iser on siw: a disk is
found, used, left and found again, by whoever knows the secret."""
import contextlib
import pathlib
import tempfile
import unittest

import dissect
import guest
import guest_disk
import host
import open_iscsi
import weft_target
from open_iscsi_case import OpenIscsiCase
from weft_target import MIB, WeftTarget

USER, SECRET = "alice", "correct-horse-1"
OWN_NAME, OWN_SECRET = "weft", "battery-staple-2"
# RDMAP's operations: RDMA Write, Read Request, and Sends that ask for attention, of which the
# latter takes back the tag of its command, as the kernel has agreed to.
OUR_OPERATIONS = {0, 1, 5, 6}


@contextlib.contextmanager
def secrets():
    """A file of them, for our target."""
    with tempfile.NamedTemporaryFile("w", prefix="weft-secrets-") as file:
        file.write(f"user {USER} {SECRET}\ntarget {OWN_NAME} {OWN_SECRET}\n")
        file.flush()
        yield file.name


class Behaviour:
    """The tests, for each transport."""

    def test_a_disk_is_used_left_and_found_again(self):
        with WeftTarget() as target, self.initiator(target) as initiator:
            self.assertIn(f"{target.portal},1 {weft_target.NAME}", initiator.discover())
            initiator.login()
            [disk] = initiator.disks()
            self.say(f"found {disk}")
            guest_disk.make_file_system(self.guest, disk)
            guest_disk.mount(self.guest, disk)
            self.say(guest_disk.run_fio(self.guest, directory=guest_disk.FOLDER))
            copied = self.fill()
            guest_disk.unmount(self.guest)
            guest_disk.check_file_system(self.guest, disk)
            initiator.logout()
            initiator.disks(units=())
            self.assertEqual(target.sessions(), [])
            initiator.login()
            [disk] = initiator.disks()
            guest_disk.check_file_system(self.guest, disk)
            guest_disk.mount(self.guest, disk)
            self.assertEqual(self.digest(), copied)
            guest_disk.unmount(self.guest)
            initiator.logout()
            log = self.expect_no_trouble()
            self.assertLessEqual(log.count(guest_disk.TOLD_ON_ARRIVAL), 2, log)
            self.say("clean, and there again")

    def fill(self):
        self.guest.run(f"head -c 5000000 /dev/urandom > {guest_disk.FOLDER}/file; sync", timeout=90)
        return self.digest()

    def digest(self):
        return self.guest.run(f"sha256sum {guest_disk.FOLDER}/file", timeout=60).split()[0]

    def test_the_kernel_sees_what_the_disk_is(self):
        with WeftTarget("--physical-block", "4096") as target, \
                self.initiator(target) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            seen = {name: guest_disk.device_attribute(self.guest, disk, name)
                    for name in ("vendor", "model", "rev", "wwid", "queue_depth", "state")}
            self.say(seen)
            self.assertEqual(seen["vendor"], "WEFT")
            self.assertEqual(seen["state"], "running")
            self.assertRegex(seen["wwid"], r"^(naa|eui|t10)\.")
            for page in (0x80, 0x83, 0xb0, 0xb1, 0xb2):
                self.assertEqual(guest_disk.device_page(self.guest, disk, page)[1], page)
            queue = {name: guest_disk.queue_setting(self.guest, disk, name) for name in (
                "logical_block_size", "physical_block_size", "discard_max_bytes", "rotational",
                "max_sectors_kb", "max_hw_sectors_kb", "fua", "write_zeroes_max_bytes")}
            self.say(queue)
            self.assertEqual(queue["logical_block_size"], 512)
            self.assertEqual(queue["physical_block_size"], 4096)
            self.assertGreater(queue["discard_max_bytes"], MIB)
            self.assertEqual(queue["fua"], 1)
            size = self.guest.run(f"blockdev --getsize64 {disk}")
            self.assertEqual(int(size), 64 * MIB)
            self.expect_no_trouble()

    def test_pieces_of_every_size_arrive(self):
        with WeftTarget() as target, self.initiator(target) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            for size, depth in (("512", 32), ("8k", 16), ("72k", 8), ("1M", 4), ("4M", 2)):
                # Not in the page cache, so that each is a command, or what the queue makes of it.
                said = guest_disk.run_fio(self.guest, filename=disk, bs=size, iodepth=depth,
                                          size="128k" if size == "512" else "8M")
                self.assertIn("WRITE", said)
            # What is discarded reads as nothing, and the file has a hole there.
            self.guest.run(f"blkdiscard -o 0 -l {8 * MIB} {disk}", timeout=60)
            nothing = self.guest.run(
                f"dd if={disk} bs=1M count=8 iflag=direct 2> /dev/null | tr -d '\\0' | wc -c",
                timeout=60)
            self.assertEqual(int(nothing), 0)
            self.assertLess(target.files[0].stat().st_blocks * 512, 8 * MIB)
            self.expect_no_trouble()
            self.say("512 B to 4 MiB, discarded")

    def test_who_knows_the_secret_comes_in(self):
        with secrets() as file, WeftTarget("--chap", file) as target, \
                self.initiator(target) as initiator:
            initiator.discover()
            initiator.login(status=open_iscsi.NOT_BELIEVED)
            initiator.set("node.session.auth.authmethod", "CHAP")
            initiator.set("node.session.auth.username", USER)
            initiator.set("node.session.auth.password", "not-the-secret-3")
            initiator.login(status=open_iscsi.NOT_BELIEVED)
            self.say("refused without a secret and with a wrong one")
            initiator.set("node.session.auth.password", SECRET)
            initiator.login()
            initiator.disks()
            initiator.logout()
            # And the target proves itself.
            initiator.set("node.session.auth.username_in", OWN_NAME)
            initiator.set("node.session.auth.password_in", "not-the-secret-4")
            said = initiator.guest.run(f"{initiator.node} -l", timeout=90, status=None)
            self.assertIn("Could not log", said)
            self.assertEqual(initiator.units(), {})
            initiator.set("node.session.auth.password_in", OWN_SECRET)
            initiator.login()
            initiator.disks()
            self.say("a target that cannot prove itself is left, one that can is used")
            initiator.logout()


class OverTcp(Behaviour, OpenIscsiCase):
    transport = "tcp"

    def test_digests_protect_headers_and_data(self):
        settings = "node.conn[0].iscsi.HeaderDigest = CRC32C\n" \
                   "node.conn[0].iscsi.DataDigest = CRC32C\n"
        with WeftTarget() as target, self.initiator(target, settings) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            used = self.guest.run("cat /sys/class/iscsi_connection/connection*/*_digest").split()
            self.assertEqual(used, ["1", "1"])
            self.say(guest_disk.run_fio(self.guest, filename=disk, bs="64k"))
            self.expect_no_trouble()

    def test_an_initiator_that_waits_to_be_asked(self):
        settings = "node.session.iscsi.InitialR2T = Yes\nnode.session.iscsi.ImmediateData = No\n"
        with WeftTarget() as target, self.initiator(target, settings) as initiator:
            initiator.discover()
            initiator.login()
            [disk] = initiator.disks()
            self.say(guest_disk.run_fio(self.guest, filename=disk, bs="64k"))
            self.expect_no_trouble()

    def test_it_is_reached_by_ipv6(self):
        with WeftTarget(address=f"[{guest.HOST6}]") as target, \
                self.initiator(target) as initiator:
            self.assertIn(weft_target.NAME, initiator.discover())
            initiator.login()
            [disk] = initiator.disks()
            self.say(guest_disk.run_fio(self.guest, filename=disk, size="1M"))
            self.expect_no_trouble()


class OverIser(Behaviour, OpenIscsiCase):
    transport = "iser"

    def test_every_driver_will_do(self):
        for variant in guest.SIW_VARIANTS:
            with self.subTest(variant):
                self.guest.load_siw(variant)
                with WeftTarget() as target, self.initiator(target) as initiator:
                    initiator.discover()
                    initiator.login()
                    [disk] = initiator.disks()
                    self.say(variant)
                    guest_disk.run_fio(self.guest, filename=disk, size="1M")
                self.expect_no_trouble()

    def test_wireshark_finds_nothing_wrong_with_our_half(self):
        with tempfile.TemporaryDirectory() as folder, WeftTarget() as target, \
                self.initiator(target) as initiator:
            path = pathlib.Path(folder) / "iser.pcap"
            with host.Capture(path):
                initiator.discover()
                initiator.login()
                [disk] = initiator.disks()
                guest_disk.run_fio(self.guest, filename=disk, size="512k", bs="64k")
                initiator.logout()
            self.assertEqual(dissect.complaints(path, guest.HOST), [])
            self.assertEqual(dissect.opcodes(path, guest.HOST), OUR_OPERATIONS)
            self.say(f"{path.stat().st_size} octets captured")


if __name__ == "__main__":
    unittest.main(verbosity=2)
