#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rdma-core's own socket programs: here on Weft's libraries, in the guest on stock ones over siw."""
import unittest

import guest
import host
import peers
from guest_case import GuestCase

PORT = 7471


def on_weft(*command):
    return host.Program("env", f"LD_LIBRARY_PATH={peers.dropin_folder()}", *command, "-p", PORT)


class Rsockets(GuestCase):
    def stream_with_our_server(self, program, *words, address=guest.HOST):
        with on_weft(program, "-b", address, *words) as server:
            server.wait_until_listening(PORT)
            with self.guest.start(" ".join([program, "-s", address, "-p", str(PORT), *words])) as client:
                self.assertEqual(client.wait(120), 0, client.output + server.output)
            server.wait()
            return client.output

    def stream_with_our_client(self, program, *words, address=guest.GUEST):
        with self.guest.start(" ".join([program, "-b", address, "-p", str(PORT), *words])) as server:
            self.guest.wait_until_listening(PORT)
            with on_weft(program, "-s", address, *words) as client:
                output = client.wait(120)
            self.assertEqual(server.wait(30), 0, server.output)
            return output

    def test_streams_of_every_size_arrive_as_sent(self):
        for size, count, rounds in ((1, 100, 5), (64, 500, 2), (4096, 100, 2), (65536, 20, 2),
                                    (1 << 20, 5, 2)):
            words = ("-S", str(size), "-C", str(count), "-I", str(rounds), "-T", "v")
            with self.subTest(size=size):
                print(self.stream_with_our_server("rstream", *words))
                print(self.stream_with_our_client("rstream", *words))

    def test_every_way_of_waiting_works(self):
        for mode in ("-T b", "-T a", "-T n", "-T a -T b", "-T r"):
            words = ("-S", "4096", "-C", "20", "-I", "5", *mode.split())
            with self.subTest(mode):
                self.stream_with_our_server("rstream", *words)
                self.stream_with_our_client("rstream", *words)

    def test_both_speak_ipv6(self):
        words = ("-S", "4096", "-C", "20", "-I", "5")
        self.stream_with_our_server("rstream", *words, address=guest.HOST6)
        self.stream_with_our_client("rstream", *words, address=guest.GUEST6)

    def test_small_buffers_are_enough(self):
        words = ("-S", "4096", "-C", "20", "-I", "5", "-B", "4096", "-T", "v")
        self.stream_with_our_server("rstream", *words)
        self.stream_with_our_client("rstream", *words)

    def test_memory_is_written_directly(self):
        words = ("-S", "65536", "-C", "10", "-I", "5", "-T", "v")
        print(self.stream_with_our_server("riostream", *words))
        print(self.stream_with_our_client("riostream", *words))


if __name__ == "__main__":
    unittest.main(verbosity=2)
