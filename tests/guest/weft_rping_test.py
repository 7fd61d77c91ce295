#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft rdma rping` and rdma-core's own, on siw: each the other's server and client."""
import itertools
import unittest

import guest
import host
import peers
import rping
from guest_case import GuestCase

OPTIONS = ((), ("--crc", "off"), ("--no-peer-to-peer",), ("--standard",))


def weft_rping(role, pings, *options):
    address = f"[{pings.address}]" if ":" in pings.address else pings.address
    return host.Program(peers.program("weft"), "rdma", "rping", f"--{role}",
                        f"{address}:{pings.port}", "--count", pings.count, "--size", pings.size,
                        *options)


class WeftRping(GuestCase):
    def ping_with_our_server(self, pings, options):
        with weft_rping("server", pings, *options) as server:
            server.wait_until_listening(pings.port)
            rping.run_client(self.guest, pings)
            self.assertIn(f"{pings.count} pings", server.wait())

    def ping_with_our_client(self, pings, options):
        with rping.start_server(self.guest, pings) as server, \
                weft_rping("client", pings, *options) as client:
            self.assertIn(f"{pings.count} pings", client.wait())
            rping.finish_server(server, pings)

    def test_our_server_satisfies_every_driver(self):
        for variant, options in itertools.product(guest.SIW_VARIANTS, OPTIONS):
            with self.subTest(variant, options=options):
                self.guest.load_siw(variant)
                self.ping_with_our_server(rping.Pings(address=guest.HOST), options)

    def test_our_client_satisfies_every_driver(self):
        for variant, options in itertools.product(guest.SIW_VARIANTS, OPTIONS):
            with self.subTest(variant, options=options):
                self.guest.load_siw(variant)
                self.ping_with_our_client(rping.Pings(), options)

    def test_both_speak_ipv6(self):
        self.ping_with_our_server(rping.Pings(address=guest.HOST6), ())
        self.ping_with_our_client(rping.Pings(address=guest.GUEST6), ())

    def test_pings_may_be_large(self):
        self.ping_with_our_server(rping.Pings(address=guest.HOST, size=65535, count=50), ())
        self.ping_with_our_client(rping.Pings(size=65535, count=50), ())

    def test_a_client_of_revision_1_is_let_down_by_the_kernel(self):
        # Such a request says nothing about reads. siw takes that for none, and ends the connection
        # where rping's server would fetch the first ping.
        pings = rping.Pings()
        for variant in guest.SIW_VARIANTS:
            with self.subTest(variant):
                self.guest.load_siw(variant)
                with rping.start_server(self.guest, pings), \
                        weft_rping("client", pings, "--revision", "1") as client:
                    self.assertEqual(client.process.wait(30), 1, client.output)
                    self.assertIn("ended after 0 of 5 pings", client.output)

    def test_markers_are_refused_by_the_kernel(self):
        pings = rping.Pings()
        with rping.start_server(self.guest, pings), \
                weft_rping("client", pings, "--markers") as client:
            self.assertEqual(client.process.wait(30), 1, client.output)
            self.assertIn("rejected", client.output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
