#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our RNIC and the kernel's siw, side against side: every message, size, role and ending."""
import itertools
import time
import unittest

import guest
from guest_case import GuestCase
from peers import EVERYTHING, MIB, Peers

ROLES = ("client", "server")  # ours
FLAGS = ((), ("--no-crc",), ("--no-peer-to-peer",), ("--standard",))
GIGABYTE = 1 << 30


class PeerCase(GuestCase):
    def converse(self, weft, steps, timeout=60, **more):
        with Peers(self.guest, weft, steps, **more) as conversation:
            return conversation.finish(timeout)

    def assertWentWell(self, outcome, steps):
        """Both ended well, after every step."""
        self.assertEqual((outcome.weft_status, outcome.kernel_status), (0, 0), outcome)
        said = (outcome.weft + outcome.kernel).splitlines()
        for step in steps:
            line = step[4:] + " by the peer ok" if step.startswith("ask:") else step + " ok"
            self.assertIn(line, said)


class EveryMessage(PeerCase):
    def test_it_goes_both_ways_with_every_driver_and_option(self):
        for variant, flags, role in itertools.product(guest.SIW_VARIANTS, FLAGS, ROLES):
            with self.subTest(variant, flags=flags, weft=role):
                self.guest.load_siw(variant)
                outcome = self.converse(role, EVERYTHING, flags=flags)
                self.assertWentWell(outcome, EVERYTHING)
                # Either side's wish is enough; siw as a server has none of its own.
                wanted = "--no-crc" not in flags or (role == "server" and "crc" in variant)
                self.assertIn(f"established, {'' if wanted else 'no '}checksums\n", outcome.weft)

    def test_it_goes_both_ways_over_ipv6(self):
        for role, address in (("client", guest.GUEST6), ("server", guest.HOST6)):
            with self.subTest(weft=role):
                outcome = self.converse(role, EVERYTHING, address=address)
                self.assertWentWell(outcome, EVERYTHING)

    def test_it_goes_both_ways_with_revision_1(self):
        # Nothing is agreed on about reads then. kernel_peer has numbers of its own, unlike rping.
        for variant in guest.SIW_VARIANTS:
            with self.subTest(variant):
                self.guest.load_siw(variant)
                outcome = self.converse("client", EVERYTHING, flags=("--revision-1",))
                self.assertWentWell(outcome, EVERYTHING)

    def test_a_gigabyte_is_one_message(self):
        # Whole, not in parts: the guest has the memory for it, and is slow.
        steps = (f"write:{GIGABYTE}", f"read:{GIGABYTE}")
        outcome = self.converse("client", steps, timeout=900, window=GIGABYTE)
        self.assertWentWell(outcome, steps)


class Connections(PeerCase):
    def test_64_at_once_all_work(self):
        steps = ("write:4096", "read:4096", "ask:write:4096", "ask:read:4096", "send", "ask:send")
        for role in ROLES:
            with self.subTest(weft=role):
                outcome = self.converse(role, steps, connections=64, window=64 << 10, timeout=180)
                self.assertWentWell(outcome, steps)
                client = outcome.weft if role == "client" else outcome.kernel
                self.assertEqual(client.count("read:4096 by the peer ok"), 64)

    def test_private_data_goes_both_ways_whole(self):
        # With the four octets of RFC 6581 that makes 255. siw cannot say 256, though it may.
        for size, role in itertools.product((1, 251), ROLES):
            with self.subTest(weft=role, size=size):
                text = ("weft" * 63)[:size]
                outcome = self.converse(role, ("write:1",), private_data=text)
                self.assertWentWell(outcome, ("write:1",))
                for said in (outcome.weft, outcome.kernel):
                    self.assertIn(f"private {text}\n", said)

    def test_a_rejection_says_why(self):
        for role in ROLES:
            with self.subTest(weft=role):
                outcome = self.converse(role, (), private_data="reject-me")
                client, server = (outcome.weft, outcome.kernel) if role == "client" else \
                    (outcome.kernel, outcome.weft)
                self.assertEqual(server, "private reject-me\n", outcome)
                self.assertEqual(client, "connection REJECTED\nprivate rejected: reject-me\n")

    def test_a_kernel_peer_killed_in_the_middle_is_noticed(self):
        size = 256 * MIB
        for role, kind in itertools.product(ROLES, ("write", "read")):
            mine, theirs = f"{kind}:{size}", f"ask:{kind}:{size}"
            step = mine if role == "client" else theirs  # by us in any case
            with self.subTest(weft=role, kind=kind), \
                    Peers(self.guest, role, (step,), window=size) as conversation:
                self.wait_until_busy()
                self.guest.run("killall -9 kernel_peer")
                self.assertIsNotNone(conversation.end_of_weft(30), "still waits for the dead")
                said = conversation.program.output
                # Its kernel may take the memory away before the connection, and then says so.
                self.assertRegex(said, "work completion (flushed|remote_access)\n")
                self.assertIn("connection DISCONNECTED\n", said)
                self.assertNotIn(f"{step} ok", said)

    def wait_until_busy(self, enough=16 * MIB):
        """Until that much has gone over the cable since now."""
        def moved():
            counters = self.guest.run("cat /sys/class/net/eth0/statistics/?x_bytes").split()
            return sum(map(int, counters))
        before, give_up = moved(), time.monotonic() + 60
        while moved() < before + enough:
            self.assertLess(time.monotonic(), give_up, "nothing moves")
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
