#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The shadow itself: on a disk that keeps its promises it finds nothing, and on each that breaks
one it finds just that."""
import pathlib
import sys
import unittest

import nbd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from shadow import BLOCK, Pauses, Writer, Wrong, block_of  # noqa: E402

BLOCKS = 64
STEPS = 3000


class Disk:
    """In memory. `mischief` is asked before every write: what is to be written, and may do more."""

    def __init__(self, mischief=lambda disk, at, octets: octets):
        self.octets = bytearray(BLOCKS * BLOCK)
        self.mischief = mischief
        self.writes = 0
        self.kills = 0

    def connect(self):
        return self

    def pwrite(self, octets, at):
        self.writes += 1
        octets = self.mischief(self, at, octets)
        self.octets[at:at + len(octets)] = octets

    def pread(self, count, at):
        return self.octets[at:at + count]

    def kill(self):
        self.kills += 1
        raise nbd.Error("gone", 0)


class ShadowTest(unittest.TestCase):
    def suffer(self, mischief):
        disk = Disk(mischief)
        writer = Writer(disk.connect, 7, 0, BLOCKS, Pauses(), losses=lambda: disk.kills)
        for _ in range(STEPS):
            writer.step()
        writer.check_all()
        return writer

    def expect(self, words, mischief):
        with self.assertRaises(Wrong) as found:
            self.suffer(mischief)
        self.assertIn(words, str(found.exception))

    def test_finds_nothing_where_nothing_is_wrong(self):
        writer = self.suffer(lambda disk, at, octets: octets)
        self.assertGreater(writer.writes, STEPS / 2)
        self.assertGreater(writer.reads, STEPS / 4)

    def test_takes_either_for_right_where_nobody_was_told(self):
        def sometimes(disk, at, octets):
            if disk.writes % 10 == 0:
                disk.kill()  # before
            if disk.writes % 10 == 5:
                disk.octets[at:at + len(octets)] = octets
                disk.kill()  # after
            return octets
        writer = self.suffer(sometimes)
        self.assertGreater(writer.undecided, 100)

    def test_finds_a_write_that_was_acknowledged_and_lost(self):
        self.expect("is the last sure one",
                    lambda disk, at, octets: b"" if disk.writes % 50 == 0 else octets)

    def test_finds_an_older_version_that_is_done_again(self):
        kept = []

        def again(disk, at, octets):
            if disk.writes % 50 == 0:
                kept.append((at, octets))
            if disk.writes % 50 == 25 and kept:
                late, what = kept[-1]
                disk.octets[late:late + len(what)] = what
            return octets
        self.expect("is the last sure one", again)

    def test_finds_a_version_nobody_was_told_of_after_a_newer_one(self):
        kept = []

        def late(disk, at, octets):
            if disk.writes % 200 == 0:
                kept.append((at, octets))
                disk.kill()
            if disk.writes % 200 == 100 and kept:
                where, what = kept[-1]
                disk.octets[where:where + len(what)] = what
            return octets
        self.expect("is the last sure one", late)

    def test_finds_half_a_write(self):
        def half(disk, at, octets):
            if disk.kills == 0 and disk.writes > 100 and len(octets) > BLOCK:
                disk.octets[at:at + BLOCK] = octets[:BLOCK]
                disk.kill()
            return octets
        self.expect("only a part is there", half)

    def test_finds_a_block_that_is_mixed_or_misplaced(self):
        def mixed(disk, at, octets):
            wrong = disk.writes % 50 == 0
            return octets[:-1] + bytes([octets[-1] ^ 1]) if wrong else octets
        self.expect("is not all of it", mixed)

        def elsewhere(disk, at, octets):
            if disk.writes % 50 == 0:
                disk.octets[at ^ BLOCK:(at ^ BLOCK) + BLOCK] = octets[:BLOCK]
            return octets
        self.expect("what was never written there", elsewhere)

    def test_finds_a_server_that_fails_though_nobody_killed_it(self):
        def fails(disk, at, octets):
            if disk.writes == 900:
                raise nbd.Error("input/output error", 5)
            return octets
        self.expect("though its server was not killed", fails)

    def test_makes_a_block_of_its_number_and_version(self):
        self.assertEqual(block_of(1, 2, 0), bytes(BLOCK))
        different = ((1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3))
        self.assertEqual(len({block_of(*each) for each in different}), len(different))


if __name__ == "__main__":
    unittest.main()
