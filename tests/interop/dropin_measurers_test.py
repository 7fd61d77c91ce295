#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qperf, fio's rdma engine and libfabric's verbs provider, Debian's, on our libraries."""
import re
import unittest

from dropin import HOST, DropinCase, free_port

QPERF_TESTS = ("rc_bw", "rc_bi_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat",
               "rc_rdma_write_bw", "rc_rdma_write_lat", "rc_rdma_write_poll_lat")
QPERF_ATOMICS = ("rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap",
                 "ver_rc_fetch_add")


class Qperf(DropinCase):
    def measure(self, tests, *words):
        port = free_port()
        self.start("qperf", "-lp", port, port=port, seconds=120)
        for test in tests:
            with self.subTest(test, words=words):
                said = self.run_here("qperf", HOST, "-lp", port, "-cm1", "-t", 1, *words, test)
                self.must_say(rf"^{test}:\n    \w+ += +[\d.,]+ ", said)

    def test_its_reliable_connections(self):
        self.measure(QPERF_TESTS)

    def test_polling(self):
        self.measure(("rc_bw", "rc_lat"), "-cp1")

    def test_its_atomics(self):
        self.measure(QPERF_ATOMICS)


class Fio(DropinCase):
    """Of Sends both sides verify: the client marks each block with its checksum and its place."""

    def exchange(self, verb, *words):
        port = free_port()
        # The engine's own options come after its name.
        common = ["--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=16m", "--iodepth=8",
                  "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", *words]
        server = self.start("fio", "--name=server", "--rw=read", *common, port=port)
        # Who writes is the client, also of Reads.
        said = self.run_here("fio", "--name=client", "--rw=write", "--do_verify=0", *common,
                             f"--hostname={HOST}", f"--verb={verb}")
        self.must_say(r"err= 0", said)
        self.must_say(r"err= 0", self.finish(server))
        self.forget()

    def test_every_verb_in_processes_of_its_own(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb):
                self.exchange(verb)

    def test_every_verb_in_threads(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb):
                self.exchange(verb, "--thread")


class Fabric(DropinCase):
    def test_info(self):
        said = self.run_here("fi_info", "-p", "verbs")
        self.must_say(r"^provider: verbs$", said)
        self.must_say(r"FI_PROTO_IWARP", said)

    def test_ping_pong(self):
        port = free_port()
        words = ["-p", "verbs", "-e", "msg", "-c", "-I", 20]
        _, said = self.run_pair(["fi_pingpong", *words, "-B", port],
                                ["fi_pingpong", *words, "-P", port, HOST], port)
        self.assertTrue(re.findall(r"^1m\s", said, re.MULTILINE), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
