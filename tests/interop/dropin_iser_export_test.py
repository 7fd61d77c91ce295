#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's libiscsi over iSER, on our libraries, against our own target: one port for all of it."""
import os
import re
import time
import unittest

from dropin import HOST, WEFT, DropinCase, free_port

TARGET = "iqn.2026-11.io.weft:disk0"
INITIATOR = "iqn.2026-11.example.weft:host"
SIZE = 64 << 20


class IserExport(DropinCase):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk.img"
        with open(self.disk, "wb") as file:
            file.truncate(SIZE)
        self.port = free_port()
        self.target = self.start(
            WEFT, "export", "iscsi", "--file", self.disk, "--target", TARGET,
            "--tcp", f"{HOST}:{self.port}", port=self.port, seconds=300)
        self.unit = f"iser://{HOST}:{self.port}/{TARGET}/0"

    def ask(self, program, *words):
        return self.run_here(program, "-i", INITIATOR, *words, self.unit)

    def expect_target_lives(self):
        if self.target.is_over():
            self.give_up("the target ended")

    def test_one_port_serves_both_ways(self):
        for url in (f"iscsi://{HOST}:{self.port}", f"iscsi://{HOST}:{self.port}?iser"):
            self.must_say(re.escape(TARGET), self.run_here("iscsi-ls", "-i", INITIATOR, url))
        for unit in (self.unit, self.unit.replace("iser:", "iscsi:")):
            self.must_say(r"Vendor:", self.run_here("iscsi-inq", "-i", INITIATOR, unit))
            said = self.run_here("iscsi-readcapacity16", "-i", INITIATOR, unit)
            self.must_say(rf"Total size:{SIZE}", said)
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
        steps = []
        for number, size in enumerate((512, 4096, 8192, 8704, 65536, 200_192, 262_144)):
            at, pattern = number * (8 << 20), 0x51 + number
            steps += ["-c", f"write -P {pattern} {at} {size}",
                      "-c", f"read -P {pattern} {at} {size}"]
        said = self.run_here("qemu-io", "-f", "raw", *steps, self.unit)
        self.must_not_say(r"failed|error|Pattern verification", said)
        self.assertEqual(len(re.findall(r" ops; ", said)), 14, said)
        self.expect_target_lives()

    def test_initiators_come_and_go(self):
        for _ in range(10):
            self.ask("iscsi-inq")
        victim = self.start("iscsi-perf", "-i", INITIATOR, "-t", 20, self.unit)
        time.sleep(0.3)  # amid its reads, most likely
        victim.process.kill()
        victim.process.wait()
        self.must_say(r"Vendor:", self.ask("iscsi-inq"))
        self.expect_target_lives()


if __name__ == "__main__":
    unittest.main(verbosity=2)
