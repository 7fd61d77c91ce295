#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How `weft export nbd` ends: with what is under way answered, and not held up by the deaf."""
import signal
import struct
import time
import unittest

from nbd_abuse_test import READ, REQUEST, Client
from weft_export import Export

MIB = 1 << 20


class Stopping(unittest.TestCase):
    def setUp(self):
        self.export = Export("--memory", "64M")
        self.addCleanup(self.export.discard)

    def deaf_client(self):
        """One that asks for more than the socket holds, and reads nothing."""
        client = Client(self.export).greeted().go()
        self.addCleanup(client.close)
        for _ in range(8):
            client.request(READ, 0, 8 * MIB)
        time.sleep(0.2)
        return client

    def test_it_stops_although_a_client_does_not_read(self):
        self.deaf_client()
        self.assertEqual(self.export.stop()["event"], "stopped")

    def test_a_second_signal_ends_it_at_once(self):
        self.deaf_client()
        self.export.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(self.export.process.poll(), "it should still wait for the client")
        self.export.process.send_signal(signal.SIGINT)
        self.assertEqual(self.export.process.wait(10), 130)

    def test_it_answers_what_was_asked_before_it_stopped(self):
        client = Client(self.export).greeted().go()
        self.addCleanup(client.close)
        # In one piece, so that the server has read them all when it answers the first.
        client.send(b"".join(struct.pack(">IHHQQI", REQUEST, 0, READ, number, 0, 8 * MIB)
                             for number in range(8)))
        client.simple_reply()
        self.export.process.send_signal(signal.SIGTERM)
        client.receive(8 * MIB)
        for number in range(1, 8):
            self.assertEqual(client.simple_reply(), (0, number))
            client.receive(8 * MIB)
        self.assertTrue(client.closed())
        self.assertEqual(self.export.process.wait(10), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
