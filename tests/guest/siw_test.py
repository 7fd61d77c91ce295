#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest itself: it has siw, each variant of it works, and what we see of it is true."""
import pathlib
import sys
import tempfile
import unittest

import guest
import host
import rping
from guest_case import GuestCase


class Commands(GuestCase):
    def test_it_reports_status_and_output(self):
        command = self.guest.start("echo out; echo err >&2; exit 3")
        self.assertEqual(command.wait(), 3)
        self.assertEqual(command.output, "out\nerr\n")

    def test_it_brings_long_output_home_whole(self):
        self.assertEqual(len(self.guest.run("yes | head -c 1000000")), 1000000)

    def test_it_kills_what_takes_too_long_and_all_its_children(self):
        with self.assertRaises(guest.TimedOut):
            self.guest.run("sleep 1111 & sleep 1111", timeout=0.5)
        self.assertNotIn("sleep 1111", self.guest.run("ps"))

    def test_it_stops_a_command_when_asked(self):
        self.assertEqual(self.guest.start("sleep 1111").stop(), 128 + 15)

    def test_it_fails_a_command_that_should_have_succeeded(self):
        with self.assertRaisesRegex(AssertionError, "status 1: false"):
            self.guest.run("false")


class Network(GuestCase):
    def test_it_reaches_a_program_beside_it_by_both_families(self):
        for address, url in ((guest.HOST, guest.HOST), (guest.HOST6, f"[{guest.HOST6}]")):
            with self.subTest(address), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "greeting").write_text("hello\n")
                with host.Program(sys.executable, "-m", "http.server", "--bind", address,
                                  "--directory", folder, "8000") as server:
                    server.wait_until_listening(8000)
                    said = self.guest.run(f"wget -q -O - http://{url}:8000/greeting")
                    self.assertEqual(said, "hello\n")

    def test_a_capture_holds_what_went_over_the_cable(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ping.pcap"
            with host.Capture(path):
                self.guest.run(f"ping -c 2 {guest.HOST}")
            seen = host.run("tcpdump", "-n", "-r", path)
        self.assertEqual(seen.count("ICMP echo request"), 2)
        self.assertEqual(seen.count("ICMP echo reply"), 2)
        self.assertNotIn("Flags", seen, "commands to the guest should be left out")


class Siw(GuestCase):
    def test_it_is_a_link_over_the_cable(self):
        self.assertRegex(self.guest.run("rdma link"), "link siw0/1 state ACTIVE .* netdev eth0")
        self.assertRegex(self.guest.run("ibv_devinfo -d siw0"), r"transport:\s+iWARP")

    def test_it_pings_itself_in_every_variant(self):
        for variant in guest.SIW_VARIANTS:
            for address in (guest.GUEST, guest.GUEST6):
                with self.subTest(variant, address=address):
                    self.guest.load_siw(variant)
                    pings = rping.Pings(count=3, address=address)
                    with rping.start_server(self.guest, pings) as server:
                        rping.run_client(self.guest, pings)
                        rping.finish_server(server, pings)


if __name__ == "__main__":
    unittest.main(verbosity=2)
