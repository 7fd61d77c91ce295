#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""iSER between Debian's tgtd and Debian's libiscsi, both on our libraries; and qemu on libiscsi."""
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


class Iser(DropinCase):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk.img"
        with open(self.disk, "wb") as file:
            file.truncate(SIZE)
        # tgtd has no more than 15 bits for it.
        self.port = free_port(random.sample(range(20000, 32768), 100))
        self.environment = {"TGT_IPC_SOCKET": str(self.folder / "control")}
        self.target = self.start(
            "tgtd", "-f", "--iser", f"port={self.port},pool_sz_mb=128", "--iscsi",
            f"portal={HOST}:{free_port()}", port=self.port, environment=self.environment,
            seconds=120)
        self.unit = f"iser://{HOST}:{self.port}/{TARGET}/1"
        self.administer("target", "new", "--tid", 1, "--targetname", TARGET)
        self.administer("logicalunit", "new", "--tid", 1, "--lun", 1, "--backing-store", self.disk)
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

    def ask(self, program, *words):
        return self.run_here(program, "-i", INITIATOR, *words, self.unit)

    def expect_target_lives(self):
        if self.target.is_over():
            self.give_up("tgtd ended")

    def test_an_initiator_finds_the_target_and_asks_what_it_is(self):
        said = self.run_here("iscsi-ls", "-i", INITIATOR, f"iscsi://{HOST}:{self.port}?iser")
        self.must_say(re.escape(TARGET), said)
        self.must_say(r"Vendor:IET", self.ask("iscsi-inq"))
        self.must_say(r"Total size:", self.ask("iscsi-readcapacity16"))
        self.expect_target_lives()

    def test_an_initiator_reads_as_fast_as_it_can(self):
        for words in ([], ["-r"], ["-m", 1], ["-m", 64, "-b", 64]):
            with self.subTest(words):
                said = self.ask("iscsi-perf", "-t", 1, *words)
                self.must_say(r"finished|iops average", said)
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
        steps = []
        for number, size in enumerate((512, 4096, 65536, 200_192, 262_144)):
            at, pattern = number * (8 << 20), 0x51 + number
            steps += ["-c", f"write -P {pattern} {at} {size}",
                      "-c", f"read -P {pattern} {at} {size}"]
        said = self.run_here("qemu-io", "-f", "raw", *steps, self.unit)
        self.must_not_say(r"failed|error|Pattern verification", said)
        self.assertEqual(len(re.findall(r" ops; ", said)), 10, said)
        self.expect_target_lives()

    def test_our_own_initiator_reads_back_what_it_wrote(self):
        image = self.folder / "image"
        image.write_bytes(os.urandom(SIZE // 2))
        mine = ["--initiator", INITIATOR]

        def initiator(verb, *words):
            return subprocess.run([WEFT, "initiator", verb, self.unit, *words, *mine], timeout=120,
                                  check=True, stdout=subprocess.PIPE).stdout
        self.must_say(r"IET", initiator("inq").decode())
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
        self.must_say(r"Vendor:IET", self.ask("iscsi-inq"))
        self.expect_target_lives()


if __name__ == "__main__":
    unittest.main(verbosity=2)
