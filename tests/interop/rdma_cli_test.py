#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft rdma` between processes, over the loopback, and what strangers on its port meet."""
import contextlib
import json
import os
import re
import socket
import subprocess
import unittest

WEFT = os.environ.get("WEFT", "build/release/bin/weft")
MPA_REQUEST = b"MPA ID Req Frame"
MPA_REPLY = b"MPA ID Rep Frame"
WAYS = ([], ["--crc", "off"], ["--markers"], ["--revision", "1"], ["--no-peer-to-peer"],
        ["--standard"], ["--placement", "eager"], ["--wait", "poll"])


def weft(*words, timeout=60):
    return subprocess.run([WEFT, *words], capture_output=True, text=True, timeout=timeout)


@contextlib.contextmanager
def serving(*words, host="127.0.0.1"):
    """`weft rdma serve` on a port of its own choice; gives its address."""
    shown = f"[{host}]" if ":" in host else host
    process = subprocess.Popen([WEFT, "rdma", "serve", "--listen", f"{shown}:0", "--json", *words],
                               stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.communicate(timeout=10)
        assert process.returncode == 0, "it should stop when asked"


class Exercise(unittest.TestCase):
    def test_pings_say_how_long_they_took(self):
        with serving() as address:
            told = weft("rdma", "ping", address, "--count", "3", "--interval", "0.01")
            self.assertEqual(told.returncode, 0, told.stderr)
            lines = told.stdout.splitlines()
            self.assertEqual(len(lines), 4)
            for line in lines[:3]:
                self.assertRegex(line, rf"^64 B from {re.escape(address)}: [0-9.]+ µs$")

    def test_it_measures_every_operation_in_every_way(self):
        for way in WAYS:
            with serving(*way) as address:
                for operation in ("send", "write", "read"):
                    with self.subTest(operation, way=way):
                        told = weft("rdma", "bench", address, "--op", operation, "--size", "64K",
                                    "--seconds", "0.1", "--round-trips", "10", "--json", *way)
                        self.assertEqual(told.returncode, 0, told.stderr)
                        result = json.loads(told.stdout)
                        self.assertGreater(result["operations"], 0)
                        self.assertGreater(result["bytes_per_second"], 0)
                        self.assertLessEqual(result["round_trip_us"]["half"],
                                             result["round_trip_us"]["99%"])
                        self.assertEqual(result["checksums"], "off" not in way)

    def test_it_works_over_ipv6(self):
        with serving(host="::1") as address:
            self.assertTrue(address.startswith("[::1]:"))
            told = weft("rdma", "ping", address, "--count", "1")
            self.assertEqual(told.returncode, 0, told.stderr)

    def test_nobody_there_is_one_sentence(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            told = weft("rdma", "ping", f"127.0.0.1:{unused.getsockname()[1]}")
        self.assertEqual(told.returncode, 1)
        self.assertEqual(len(told.stderr.splitlines()), 1, told.stderr)

    def test_a_stranger_s_words_harm_nobody(self):
        with serving() as address:
            host, port = address.rsplit(":", 1)
            for words in (b"GET / HTTP/1.1\r\n\r\n", b"", b"\0" * 4096, MPA_REQUEST[:7],
                          MPA_REQUEST + bytes([0x40, 9, 0, 0]),
                          MPA_REQUEST + bytes([0x40, 1, 2, 255]) + bytes(511)):
                with socket.create_connection((host, int(port)), timeout=5) as stranger:
                    stranger.sendall(words)
            told = weft("rdma", "ping", address, "--count", "1")
            self.assertEqual(told.returncode, 0, told.stderr)

    def test_a_request_without_its_words_is_rejected(self):
        with serving() as address:
            host, port = address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=5) as stranger:
                stranger.sendall(MPA_REQUEST + bytes([0x40, 1, 0, 0]))
                reply = stranger.recv(20, socket.MSG_WAITALL)
                self.assertEqual(reply[:16], MPA_REPLY)
                self.assertTrue(reply[16] & 0x20, "the reject flag")


class Rping(unittest.TestCase):
    def test_every_ping_comes_back_in_every_way(self):
        for port, way in enumerate(WAYS, 27471):
            with self.subTest(way=way):
                address = f"127.0.0.1:{port}"
                server = subprocess.Popen([WEFT, "rdma", "rping", "--server", address, "--size",
                                           "64K", *way], stdout=subprocess.PIPE, text=True)
                self.assertIn("Waiting on", server.stdout.readline())
                told = weft("rdma", "rping", "--client", address, "--count", "50", "--size", "3000",
                            "--json", *way)
                self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
                self.assertEqual(json.loads(told.stdout)["pings"], 50)
                self.assertIn("50 pings", server.communicate(timeout=20)[0])
                self.assertEqual(server.returncode, 0)

    def test_a_ping_larger_than_the_server_takes_is_refused(self):
        address = "127.0.0.1:27499"
        server = subprocess.Popen([WEFT, "rdma", "rping", "--server", address, "--size", "100"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("Waiting on", server.stdout.readline())
        told = weft("rdma", "rping", "--client", address, "--count", "1", "--size", "3000")
        self.assertEqual(told.returncode, 1)
        self.assertIn("offers 3000 octets", server.communicate(timeout=20)[1])
        self.assertEqual(server.returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
