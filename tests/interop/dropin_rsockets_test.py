#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's rsocket programs, on our librdmacm: rstream, riostream, rcopy.

With WEFT_LONG set in the environment, their own full runs and a file of 1 GiB.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import unittest

from dropin import HOST, HOST6, DropinCase, free_port

LONG = "WEFT_LONG" in os.environ
PRELOAD = pathlib.Path("/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so")
FORK_SAFE = {"LD_PRELOAD": str(PRELOAD), "RDMAV_FORK_SAFE": "1"}
FORK_LOCK = pathlib.Path("/dev/shm/sem.rsocket_fork")  # the preload's, of all its children
SIZES = (1, 64, 4096, 65536, 1 << 20)


def options(letters):
    return [word for letter in letters for word in ("-T", letter)]


class Streams(DropinCase):
    def stream(self, program, *words, host=HOST, rows=1, **more):
        port = free_port()
        for said in self.run_pair([program, "-b", host, "-p", port, *words],
                                  [program, "-s", host, "-p", port, *words], port, **more):
            # name, size, transfers, iterations, bytes, seconds, Gb/sec, µs per transfer
            found = re.findall(r"^\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+[\d.]+s\s+\S+\s+\S+$", said,
                               re.MULTILINE)
            if len(found) != rows:
                self.give_up(f"{rows} rows were expected, and there are {len(found)}")
            self.must_not_say(r"verif|: [A-Z][a-z]+ .*|failed", said.partition("\n")[2])
        self.forget()

    def test_every_test_option_of_rstream(self):
        for letters in ("", "b", "n", "a", "r", "v", "bv", "nv", "av", "anv", "rbv", "ranv"):
            with self.subTest(letters):
                self.stream("rstream", *options(letters), "-I", 10, "-C", 20, "-S", 20000)

    def test_sizes_of_rstream(self):
        for size in SIZES:
            with self.subTest(size):
                self.stream("rstream", *options("v"), "-I", 5, "-C", 20, "-S", size)

    def test_buffers_inline_and_keepalive_of_rstream(self):
        for words in (["-B", 4096], ["-B", 1 << 22], ["-i", 0], ["-i", 16], ["-k", 10],
                      ["-f", "ip"]):
            with self.subTest(words):
                self.stream("rstream", *options("v"), *words, "-I", 5, "-C", 50, "-S", 10000)

    def test_rstream_over_ipv6(self):
        self.stream("rstream", *options("v"), "-I", 5, "-C", 50, "-S", 10000, host=HOST6)

    def test_rstream_with_plain_sockets_and_fork(self):
        for letters in ("sv", "fv"):
            with self.subTest(letters):
                port = free_port()
                words = [*options(letters), "-I", 5, "-C", 50, "-S", 10000, "-p", port]
                self.run_pair(["rstream", "-b", HOST, *words], ["rstream", "-s", HOST, *words],
                              port)
                self.forget()

    def test_plain_sockets_become_rsockets_by_the_stock_preload(self):
        self.stream("rstream", *options("sv"), "-I", 5, "-C", 50, "-S", 10000,
                    environment={"LD_PRELOAD": str(PRELOAD)})

    def without_lock(self):
        """A child that was killed holds it for ever."""
        FORK_LOCK.unlink(missing_ok=True)
        self.addCleanup(FORK_LOCK.unlink, missing_ok=True)

    def test_a_forked_child_serves_by_rsockets(self):
        """As librdmacm has it: `-T f` uses plain sockets, the preload makes rsockets of them, and
        RDMAV_FORK_SAFE lets it do so in the child, which listens on the port of its parent's TCP
        socket. Without that the peers would wait for each other for ever."""
        self.without_lock()
        for host in (HOST, HOST6):
            for letters in ("f", "fbv", "fnv"):
                with self.subTest(letters, host=host):
                    port = free_port()
                    words = [*options(letters), "-I", 5, "-C", 50, "-S", 10000, "-p", port]
                    said = self.run_pair(["rstream", "-b", host, *words],
                                         ["rstream", "-s", host, *words], port,
                                         environment=FORK_SAFE)
                    self.must_say(r"^custom +\S+ .*s +\S+ +\S+$", said[1])
                    self.forget()

    def test_a_forking_server_goes_on_by_tcp_for_others(self):
        """Its two tests by itself: two connections, each with a child of its own."""
        self.without_lock()
        port = free_port()
        words = [*options("f"), "-p", port]
        said = self.run_pair(["rstream", "-b", HOST, *words], ["rstream", "-s", HOST, *words],
                             port, environment=FORK_SAFE, seconds=600)
        self.must_say(r"^64_lat ", said[1])
        self.must_say(r"^1m_bw ", said[1])

    def test_every_test_option_of_riostream(self):
        for letters in ("", "b", "n", "a", "v", "bv", "nv", "av", "anv"):
            with self.subTest(letters):
                self.stream("riostream", *options(letters), "-I", 10, "-C", 20, "-S", 20000)

    def test_sizes_of_riostream(self):
        for size in SIZES:
            with self.subTest(size):
                self.stream("riostream", *options("v"), "-I", 5, "-C", 20, "-S", size)

    @unittest.skipUnless(LONG, "takes minutes")
    def test_all_that_they_do_by_themselves(self):
        for program in ("rstream", "riostream"):
            for words in ([], ["-S", "all"], options("a"), options("n"), options("v")):
                with self.subTest(program, words=words):
                    rows = 36 if "all" in words else 8
                    self.stream(program, *words, rows=rows, seconds=600)


class Copies(DropinCase):
    def copy(self, size, seconds):
        port = free_port()
        source, target = self.folder / "source", self.folder / "target"
        digest = hashlib.sha256()
        with open(source, "wb") as file:
            for _ in range(size >> 20):
                file.write(block := os.urandom(1 << 20))
                digest.update(block)
        self.start("rcopy", "-p", port, port=port, seconds=seconds)
        self.run_here("rcopy", source, f"{HOST}:{target}", "-p", port, seconds=seconds)
        with open(target, "rb") as file:
            arrived = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") \
                else hashlib.sha256(file.read())
        self.assertEqual(arrived.hexdigest(), digest.hexdigest())

    def test_a_file_arrives_as_it_was(self):
        self.copy(1 << 30 if LONG else 256 << 20, 300 if LONG else 60)

    def test_several_files_one_after_the_other(self):
        port = free_port()
        self.start("rcopy", "-p", port, port=port)
        for number, size in enumerate((1, 4095, 65536, 1_000_003)):
            source, target = self.folder / f"from{number}", self.folder / f"to{number}"
            source.write_bytes(os.urandom(size))
            self.run_here("rcopy", source, f"{HOST}:{target}", "-p", port)
            subprocess.run(["cmp", source, target], check=True, timeout=20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
