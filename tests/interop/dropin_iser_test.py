#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's libiscsi over iSER, on our libraries, against two targets: Debian's tgtd, on our
libraries too, and our own. qemu comes by way of libiscsi, and our own initiator by itself.
"""
import os
import random
import re
import subprocess
import time
import unittest

from dropin import HOST, WEFT, DropinCase, free_port

TARGET = "iqn.2026-11.example.weft:disk"
INITIATOR, QEMU = "iqn.2026-11.example.weft:host", "iqn.2008-11.org.linux-kvm"
SIZE = 64 << 20


class Target:
    """What a target of either kind must bear: start_target() says how it begins."""

    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk.img"
        with open(self.disk, "wb") as file:
            file.truncate(SIZE)
        self.start_target()
        self.unit = f"iser://{HOST}:{self.port}/{TARGET}/{self.number}"

    def ask(self, program, *words):
        return self.run_here(program, "-i", INITIATOR, *words, self.unit)

    def expect_target_lives(self):
        if self.target.is_over():
            self.give_up("the target ended")

    def test_an_initiator_finds_the_target_and_asks_what_it_is(self):
        said = self.run_here("iscsi-ls", "-i", INITIATOR, f"iscsi://{HOST}:{self.port}?iser")
        self.must_say(re.escape(TARGET), said)
        self.must_say(rf"Vendor:{self.vendor}", self.ask("iscsi-inq"))
        self.must_say(rf"Total size:{SIZE}", self.ask("iscsi-readcapacity16"))
        self.expect_target_lives()

    def test_an_initiator_reads_as_fast_as_it_can(self):
        for words in ([], ["-r"], ["-m", 1], ["-m", 64, "-b", 64]):
            with self.subTest(words):
                self.must_say(r"finished|iops average", self.ask("iscsi-perf", "-t", 1, *words))
        self.expect_target_lives()

    def test_what_was_written_is_read_back(self):
        # Blocks of what libiscsi can take at a time over iSER.
        image, again = self.folder / "image", self.folder / "again"
        image.write_bytes(os.urandom(SIZE))
        copy = ["qemu-img", "dd", "-f", "raw", "-O", "raw", "bs=256k"]
        self.run_here(*copy, f"if={image}", f"of={self.unit}")
        self.assertEqual(self.disk.read_bytes(), image.read_bytes())
        self.run_here(*copy, f"if={self.unit}", f"of={again}")
        self.assertEqual(again.read_bytes(), image.read_bytes())
        self.expect_target_lives()

    def test_pieces_of_every_size(self):
        sizes = (512, 4096, 8192, 8704, 65536, 200_192, 262_144)
        steps = []
        for number, size in enumerate(sizes):
            at, pattern = number * (8 << 20), 0x51 + number
            steps += ["-c", f"write -P {pattern} {at} {size}",
                      "-c", f"read -P {pattern} {at} {size}"]
        said = self.run_here("qemu-io", "-f", "raw", *steps, self.unit)
        self.must_not_say(r"failed|error|Pattern verification", said)
        self.assertEqual(len(re.findall(r" ops; ", said)), 2 * len(sizes), said)
        self.expect_target_lives()

    def test_our_own_initiator_reads_back_what_it_wrote(self):
        image = self.folder / "image"
        image.write_bytes(os.urandom(SIZE // 2))

        def initiator(verb, *words):
            return subprocess.run([WEFT, "initiator", verb, self.unit, *words, "--initiator",
                                   INITIATOR], timeout=120, check=True,
                                  stdout=subprocess.PIPE).stdout
        self.must_say(self.vendor, initiator("inq").decode())
        initiator("write", "0", str(image))
        self.assertEqual(self.disk.read_bytes()[:SIZE // 2], image.read_bytes())
        self.assertEqual(initiator("read", "0", str(SIZE // 2)), image.read_bytes())
        self.expect_target_lives()

    def test_initiators_come_and_go(self):
        for _ in range(10):
            self.ask("iscsi-inq")
        victim = self.start("iscsi-perf", "-i", INITIATOR, "-t", 20, self.unit)
        time.sleep(0.3)  # amid its reads, most likely
        victim.process.kill()
        victim.process.wait()
        self.must_say(rf"Vendor:{self.vendor}", self.ask("iscsi-inq"))
        self.expect_target_lives()


class Tgtd(Target, DropinCase):
    vendor, number = "IET", 1

    def start_target(self):
        # tgtd has no more than 15 bits for it.
        self.port = free_port(random.sample(range(20000, 32768), 100))
        self.environment = {"TGT_IPC_SOCKET": str(self.folder / "control")}
        self.target = self.start(
            "tgtd", "-f", "--iser", f"port={self.port},pool_sz_mb=128", "--iscsi",
            f"portal={HOST}:{free_port()}", port=self.port, environment=self.environment,
            seconds=120)
        self.administer("target", "new", "--tid", 1, "--targetname", TARGET)
        self.administer("logicalunit", "new", "--tid", 1, "--lun", self.number,
                        "--backing-store", self.disk)
        # Over iSER tgtd wants to know both, an initiator's name and its address.
        self.administer("target", "bind", "--tid", 1, "--initiator-address", "ALL")
        for name in (INITIATOR, QEMU):
            self.administer("target", "bind", "--tid", 1, "--initiator-name", name)

    def tearDown(self):
        self.target.process.kill()  # as long as it has targets, it stays when it is asked to go
        super().tearDown()

    def administer(self, mode, operation, *words):
        self.run_here("tgtadm", "--lld", "iser", "--mode", mode, "--op", operation, *words,
                      environment=self.environment)


class Weft(Target, DropinCase):
    vendor, number = "WEFT", 0

    def start_target(self):
        self.port = free_port()
        self.target = self.start(
            WEFT, "export", "iscsi", "--file", self.disk, "--target", TARGET,
            "--tcp", f"{HOST}:{self.port}", port=self.port, seconds=300)

    def test_one_port_serves_both_ways(self):
        said = self.run_here("iscsi-ls", "-i", INITIATOR, f"iscsi://{HOST}:{self.port}")
        self.must_say(re.escape(TARGET), said)
        unit = self.unit.replace("iser:", "iscsi:")
        self.must_say(r"Vendor:WEFT", self.run_here("iscsi-inq", "-i", INITIATOR, unit))
        said = self.run_here("iscsi-readcapacity16", "-i", INITIATOR, unit)
        self.must_say(rf"Total size:{SIZE}", said)
        self.expect_target_lives()


if __name__ == "__main__":
    unittest.main(verbosity=2)
