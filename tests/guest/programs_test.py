#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock programs here on Weft's libraries, and the same programs in the guest on siw, each the
other's server and client: rping, and perftest's bandwidths and latencies. What they measure is of
no interest, since the guest is emulated: that they work is."""
import itertools
import re
import unittest

import guest
import peers
import rping
from guest_case import GuestCase

PORT = 7272
WISHES = ((), ("--crc", "off"), ("--mode", "client-server"))
OPERATIONS = ("send", "write", "read")


class Rping(GuestCase):
    def ping_with_our_server(self, pings, wishes=()):
        with peers.on_weft("rping", "-s", *pings.words().split(), wishes=wishes) as server:
            server.wait_until_listening(pings.port)
            rping.run_client(self.guest, pings)
            rping.check(server.wait(), pings)

    def ping_with_our_client(self, pings, wishes=()):
        with rping.start_server(self.guest, pings) as server:
            with peers.on_weft("rping", "-c", *pings.words().split(), wishes=wishes) as client:
                rping.check(client.wait(), pings)
            rping.finish_server(server, pings)

    def test_every_driver_will_do(self):
        for variant, wishes in itertools.product(guest.SIW_VARIANTS, WISHES):
            with self.subTest(variant, wishes=wishes):
                self.guest.load_siw(variant)
                self.ping_with_our_server(rping.Pings(address=guest.HOST), wishes)
                self.ping_with_our_client(rping.Pings(), wishes)

    def test_both_speak_ipv6(self):
        self.ping_with_our_server(rping.Pings(address=guest.HOST6))
        self.ping_with_our_client(rping.Pings(address=guest.GUEST6))

    def test_pings_may_be_many_and_large(self):
        for pings in (dict(size=65535, count=20), dict(size=64, count=500)):
            self.ping_with_our_server(rping.Pings(address=guest.HOST, **pings))
            self.ping_with_our_client(rping.Pings(**pings))


class Perftest(GuestCase):
    def measure_both_ways(self, program, *words, sizes):
        command = (program, "-R", "-F", "-p", str(PORT), *map(str, words))
        # Once in some thirty runs the guest's side, client or server, has measured everything and
        # then fails its last word with LOC_QP_OP_ERR, though that has come: ours has all it waits
        # for by then and hangs up, while the emulated machine is still at its send. Not explained
        # further; it has a second attempt.
        for measure in self.measure_with_our_server, self.measure_with_our_client:
            if not measure(command, sizes, is_last=False):
                measure(command, sizes, is_last=True)

    def measure_with_our_server(self, command, sizes, is_last):
        with peers.on_weft(*command) as server:
            server.wait_until_listening(PORT)
            with self.guest.start(" ".join((*command, guest.HOST))) as client:
                status = client.wait(60)
                if not is_last and self.lost_its_last_word(client.output):
                    return False
                self.assertEqual(status, 0, client.output + server.output)
                self.expect_rows(client.output, sizes)
            server.wait()
        return True

    def measure_with_our_client(self, command, sizes, is_last):
        with self.guest.start(" ".join(command)) as server:
            self.guest.wait_until_listening(PORT)
            with peers.on_weft(*command, guest.GUEST) as client:
                self.expect_rows(client.wait(60), sizes)
            status = server.wait()
            if not is_last and self.lost_its_last_word(server.output):
                return False
            self.assertEqual(status, 0, server.output)
        return True

    @staticmethod
    def lost_its_last_word(said):
        return "Bad wc status 2" in said and "Failed to close connection" in said

    def expect_rows(self, said, sizes):
        rows = re.findall(r"^ (\d+) +\d+ ", said, re.MULTILINE)
        self.assertEqual(rows, [str(size) for size in sizes], said)
        self.assertNotRegex(said, r"Couldn't|Failed|failed|Completion with error|syndrom")

    def test_bandwidths(self):
        for operation, size in itertools.product(OPERATIONS, (64, 65536, 1 << 20)):
            with self.subTest(operation, size=size):
                self.measure_both_ways(f"ib_{operation}_bw", "-n", 50, "-s", size, sizes=[size])

    def test_latencies(self):
        for operation, size in itertools.product(OPERATIONS, (64, 65536)):
            with self.subTest(operation, size=size):
                self.measure_both_ways(f"ib_{operation}_lat", "-n", 50, "-s", size, sizes=[size])

    def test_all_sizes(self):
        every = [2**power for power in range(1, 24)]
        for operation in OPERATIONS:
            with self.subTest(operation):
                self.measure_both_ways(f"ib_{operation}_bw", "-a", "-n", 5, sizes=every)

    def test_several_queue_pairs_and_both_directions(self):
        for operation, words in itertools.product(OPERATIONS, (("-q", 4), ("-b",))):
            with self.subTest(operation, words=words):
                self.measure_both_ways(f"ib_{operation}_bw", *words, "-n", 50, sizes=[65536])


if __name__ == "__main__":
    unittest.main(verbosity=2)
