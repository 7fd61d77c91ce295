#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to mistakes, ours and the kernel's: who notices, what the Terminate says, who hears.

And what Wireshark says to all we sent.
"""
import itertools
import pathlib
import re
import tempfile
import unittest

import dissect
import guest
import host
import peers
from guest_case import GuestCase
from peers import EVERYTHING, Peers

# (layer, type, code): RDMAP 0 with remote protection 1; DDP 1 with tagged 1 and untagged 2.
# siw has fewer words for what is wrong: no right to write is "no such tag", and "too long" is
# "no buffer". And it does not look at the right to be read at all.
WHAT_WE_SAY = {
    "write-tag": (1, 1, 0), "write-bounds": (1, 1, 1), "write-rights": (0, 1, 2),
    "read-tag": (0, 1, 0), "read-bounds": (0, 1, 1), "read-rights": (0, 1, 2),
    "long-send": (1, 2, 5), "stale": (1, 1, 0),
}
WHAT_SIW_SAYS = {
    "write-tag": (1, 1, 0), "write-bounds": (1, 1, 1), "write-rights": (1, 1, 0),
    "read-tag": (0, 1, 0), "read-bounds": (0, 1, 1), "read-rights": None,
    "long-send": (1, 2, 2), "stale": (1, 1, 0),
}
ROLES = ("client", "server")  # ours


class CaptureCase(GuestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.capture = pathlib.Path(folder.name) / "cable.pcap"


class Mistakes(CaptureCase):
    def make(self, name, role, by):
        """The mistake, by "weft" or "kernel", while we are client or server."""
        steps = (["invalidate"] if name == "stale" else []) + [f"fault:{name}"]
        if (by == "weft") != (role == "client"):
            steps = peers.ask_for(steps)
        with host.Capture(self.capture), Peers(self.guest, role, steps) as conversation:
            outcome = conversation.finish()
        return outcome

    def test_ours_are_what_the_kernel_says(self):
        for (name, said), role in itertools.product(WHAT_SIW_SAYS.items(), ROLES):
            with self.subTest(name, weft=role):
                outcome = self.make(name, role, by="weft")
                self.assertEqual(dissect.terminates(self.capture, guest.GUEST, swapped=True),
                                 [said] if said else [], outcome)
                if not said:
                    self.assertIn("work completion success\n", outcome.weft)
                    self.assertIn("fault:read-rights", outcome.weft + outcome.kernel)
                    continue
                self.assertIn("event queue_pair_failed\n", outcome.weft)
                self.assertIn("connection DISCONNECTED\n", outcome.weft)
                # A write or a send is complete when it has left; a read when its answer is there.
                status = "remote_access" if name.startswith("read") else "success"
                self.assertIn(f"work completion {status}\n", outcome.weft)

    def test_the_kernels_are_what_we_say(self):
        for (name, said), role in itertools.product(WHAT_WE_SAY.items(), ROLES):
            with self.subTest(name, weft=role):
                outcome = self.make(name, role, by="kernel")
                self.assertEqual(dissect.terminates(self.capture, guest.HOST, swapped=False),
                                 [said], outcome)
                self.assertEqual(self.terminate_in_kernel_log(), said)
                self.assertEqual(dissect.complaints(self.capture, guest.HOST), [])
                violation = "request" if name == "long-send" else "access"
                self.assertIn(f"event {violation}_violation\n", outcome.weft)
                if name == "long-send":
                    self.assertIn("receive completion local_length\n", outcome.weft)
                self.assertIn("connection DISCONNECTED\n", outcome.kernel)
                if name.startswith("read"):
                    self.assertIn("work completion Work Request Flushed Error\n", outcome.kernel)

    def terminate_in_kernel_log(self):
        """The last one, as the kernel decoded it, and told right."""
        words = r"got TERMINATE. layer (\d+), type (\d+), code (\d+)"
        kind, layer, code = re.findall(words, self.guest.run("dmesg"))[-1]
        return int(layer), int(kind), int(code)


class Wireshark(CaptureCase):
    def test_it_understands_every_message_of_ours(self):
        for variant, role in itertools.product(("stock", "p2p"), ROLES):
            with self.subTest(variant, weft=role):
                self.guest.load_siw(variant)
                with host.Capture(self.capture), \
                        Peers(self.guest, role, EVERYTHING) as conversation:
                    outcome = conversation.finish()
                self.assertEqual(outcome.weft_status, 0, outcome)
                self.assertEqual(dissect.complaints(self.capture, guest.HOST), [])
                # Writes, both halves of reads, and the four Sends. Mistakes has the Terminates.
                self.assertEqual(dissect.opcodes(self.capture, guest.HOST), set(range(7)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
