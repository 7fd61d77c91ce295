#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real conversations of our target, over TCP and over iSER, as Wireshark's dissectors see them.

Each PDU that was said must be one that they saw, with the same opcode, and they must have nothing
to complain of. Their iSER knows InfiniBand only: the iWARP around it is looked at as it is, and
what its Sends carry is shown once more as InfiniBand would carry it.
"""
import os
import subprocess
import unittest

import iscsi_suite
from weft_export import WEFT, IscsiExport, run
from wiretap import Capture, Wiretap

LOGIN = 0x03
SENDS, WRITE, READ_REQUEST, READ_RESPONSE = (3, 4, 5, 6), 0, 1, 2
ISER_HEADER = 28


def values(frames, name):
    return [int(value, 0) for frame in frames for key, value in frame if key == name]


def length_of_pdu(_, octets):
    if len(octets) < 48:
        return None
    return 48 + octets[4] * 4 + (int.from_bytes(octets[5:8], "big") + 3) // 4 * 4


def without_guesses(carrier):
    """Dissectors of other protocols claim some of what RDMA carries, if they are asked."""
    return [word for name in ("rpcrdma", "smb_direct")
            for word in ("--disable-heuristic", f"{name}_{carrier}")]


class Heard(unittest.TestCase):
    def setUp(self):
        self.export = IscsiExport("--memory", "64M", "--removable")
        self.addCleanup(self.export.discard)

    def overhear(self, scheme, talk):
        """What is said while `talk` is done with the URL it is given."""
        with Wiretap(self.export.portal) as tap:
            url = self.export.uri.replace(self.export.portal, tap.portal)
            talk(url.replace("iscsi:", f"{scheme}:"))
        self.assertTrue(tap.conversations)
        return tap.conversations

    def read_and_write(self, url):
        run(WEFT, "initiator", "inq", url)
        image = self.export.path / "image"
        image.write_bytes(os.urandom(1 << 20))
        run(WEFT, "initiator", "write", url, "0", image)
        done = subprocess.run([WEFT, "initiator", "read", url, "0", "1M"], timeout=60, check=True,
                              stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, image.read_bytes())


class OverTcp(Heard):
    def expect_well_formed(self, conversations):
        capture, said = Capture(), []
        for number, conversation in enumerate(conversations):
            for who, pdu in conversation.messages(length_of_pdu):
                capture.add_tcp(number, who, pdu)
                said.append(pdu[0] & 0x3F)
        frames, complaints = capture.dissect()
        self.assertEqual(complaints, [])
        self.assertEqual(values(frames, "iscsi.opcode"), said)
        return set(said)

    def test_our_own_initiator(self):
        opcodes = self.expect_well_formed(self.overhear("iscsi", self.read_and_write))
        self.assertLessEqual({0x01, 0x03, 0x05, 0x06, 0x21, 0x23, 0x25, 0x26, 0x31}, opcodes)

    def test_the_suite_of_libiscsi(self):
        for test in ("iSCSITMF", "PreventAllow", "ProutReserve", "Inquiry", "Unmap"):
            def talk(url, name=test):
                subprocess.run(["iscsi-test-cu", "-d", "-t", f"ALL.{name}", url], timeout=60,
                               check=True, stdout=subprocess.DEVNULL)
            with self.subTest(test):
                self.expect_well_formed(self.overhear("iscsi", talk))


class OverIser(Heard):
    """RDMA first, as libiscsi and Linux begin it: MPA, then FPDUs."""

    @staticmethod
    def length_of_fpdu(_, octets):
        if octets.startswith(b"MPA ID"):
            return 20 + int.from_bytes(octets[18:20], "big") if len(octets) >= 20 else None
        return (int.from_bytes(octets[:2], "big") + 5) // 4 * 4 + 4 if len(octets) >= 2 else None

    def expect_well_formed(self, conversations):
        """Which RDMA operations and which PDUs there were."""
        wire, messages, operations, opcodes = Capture(), Capture(), [], []
        for number, conversation in enumerate(conversations):
            for who, octets in conversation.messages(self.length_of_fpdu):
                wire.add_tcp(number, who, octets)
                if octets.startswith(b"MPA ID"):
                    continue
                operations.append(octets[3] & 0x0F)
                if operations[-1] in SENDS:
                    payload = octets[20:2 + int.from_bytes(octets[:2], "big")]
                    messages.add_roce(number, who, payload)
                    opcodes.append(payload[ISER_HEADER] & 0x3F)
        frames, complaints = wire.dissect(*without_guesses("iwarp"))
        self.assertEqual(complaints, [])
        self.assertEqual(values(frames, "iwarp_rdma.opcode"), operations)
        frames, complaints = messages.dissect("-d", "infiniband,iser",
                                              *without_guesses("infiniband"))
        self.assertEqual(complaints, [])
        self.assertEqual(set(values(frames, "iser.flags.opcode")), {1})
        self.assertEqual(values(frames, "iscsi.opcode"), opcodes)
        return set(operations), set(opcodes)

    def test_our_own_initiator(self):
        operations, opcodes = self.expect_well_formed(self.overhear("iser", self.read_and_write))
        self.assertLessEqual({WRITE, READ_REQUEST, READ_RESPONSE}, operations)
        self.assertLessEqual({0x01, 0x03, 0x06, 0x21, 0x23, 0x26}, opcodes)

    def test_libiscsi(self):
        def talk(url):
            for test in ("Inquiry", "Write10.Simple", "Read10.Simple", "ProutReserve.Simple"):
                found, ended, text = iscsi_suite.run_process([url], f"ALL.{test}")
                self.assertTrue(found and not ended, text[-2000:])
        operations, opcodes = self.expect_well_formed(self.overhear("iser", talk))
        self.assertLessEqual({WRITE, READ_REQUEST, READ_RESPONSE, 3}, operations)
        self.assertLessEqual({0x01, LOGIN, 0x06, 0x21, 0x23, 0x26}, opcodes)


del Heard  # it has no tests of its own

if __name__ == "__main__":
    unittest.main(verbosity=2)
