#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's perftest on our libraries: every program, all sizes, and the ways it can be told to run.

Only that they work: what they measure is for bench/dropin.py. With WEFT_LONG set in the
environment, all sizes of the latencies too.
"""
import os
import re
import unittest

from dropin import HOST, DropinCase, free_port

LONG = "WEFT_LONG" in os.environ
ALL_SIZES = [2**power for power in range(1, 24)]
OPERATIONS = ("send", "write", "read")


class Perftest(DropinCase):
    def measure(self, program, *words, sizes=(65536,), **more):
        port = free_port()
        command = [program, "-R", "-F", "-p", port, *words]
        both = self.run_pair(command, [*command, HOST], port, **more)
        self.expect_rows(both[1], sizes)
        for said in both:
            self.must_not_say(r"Couldn't|Failed|failed|Completion with error|syndrom", said)
        self.forget()

    def expect_rows(self, said, sizes):
        rows = re.findall(r"^ (\d+) +\d+ ", said, re.MULTILINE)
        if rows != [str(size) for size in sizes]:
            self.give_up(f"the sizes measured are {', '.join(rows)}")


class Bandwidth(Perftest):
    def test_all_sizes(self):
        for operation in OPERATIONS:
            with self.subTest(operation):
                self.measure(f"ib_{operation}_bw", "-a", "-n", 20, sizes=ALL_SIZES)

    def test_many_of_one_size(self):
        for operation in OPERATIONS:
            with self.subTest(operation):
                self.measure(f"ib_{operation}_bw", "-n", 5000)
                self.measure(f"ib_{operation}_bw", "-n", 20000, "-s", 64, sizes=[64])

    def test_several_queue_pairs_events_and_both_directions(self):
        for operation in OPERATIONS:
            for words in (["-q", 4], ["-e"], ["-b"], ["-b", "-q", 4], ["-e", "-q", 4],
                          ["-b", "-e"], ["-l", 8], ["-Q", 1], ["-t", 1]):
                if operation == "write" and "-e" in words:
                    continue  # of which perftest offers no events
                with self.subTest(operation, words=words):
                    self.measure(f"ib_{operation}_bw", *words, "-n", 400)

    def test_a_shared_receive_queue(self):
        # With several queue pairs it often waits for ever, on the kernel's siw with the stock
        # libraries too (9 of 12 runs): it books the credits of a shared queue to the wrong pair.
        for words in ([], ["-b"]):
            with self.subTest(words):
                self.measure("ib_send_bw", "--use-srq", *words, "-n", 500)

    def test_without_checksums_and_in_other_modes(self):
        for way in (["--crc", "off"], ["--placement", "eager"], ["--mode", "client-server"]):
            for operation in OPERATIONS:
                with self.subTest(operation, way=way):
                    self.measure(f"ib_{operation}_bw", "-n", 500, way=way)

    def test_inline(self):
        for operation in ("send", "write"):
            with self.subTest(operation):
                self.measure(f"ib_{operation}_bw", "-I", 64, "-s", 64, "-n", 1000, sizes=[64])


class Latency(Perftest):
    def test_sizes(self):
        for operation in OPERATIONS:
            for size in (2, 64, 4096, 65536, 1 << 20):
                with self.subTest(operation, size=size):
                    self.measure(f"ib_{operation}_lat", "-s", size, "-n", 20, sizes=[size])

    @unittest.skipUnless(LONG, "takes a minute: perftest measures the clock anew for every size")
    def test_all_sizes(self):
        for operation in OPERATIONS:
            with self.subTest(operation):
                self.measure(f"ib_{operation}_lat", "-a", "-n", 10, sizes=ALL_SIZES, seconds=120)

    def test_events_and_shared_receive_queues(self):
        for operation, words in (("send", ["-e"]), ("read", ["-e"]), ("send", ["--use-srq"]),
                                 ("send", ["-I", 64])):
            with self.subTest(operation, words=words):
                self.measure(f"ib_{operation}_lat", *words, "-s", 64, "-n", 200, sizes=[64])


class Atomics(Perftest):
    """Not part of iWARP of old; between two of ours, RFC 7306 has them."""

    def test_fetch_and_add_and_compare_and_swap(self):
        for program in ("ib_atomic_bw", "ib_atomic_lat"):
            for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
                with self.subTest(program, kind=kind):
                    self.measure(program, "-A", kind, "-n", 200, sizes=[8])


if __name__ == "__main__":
    unittest.main(verbosity=2)
