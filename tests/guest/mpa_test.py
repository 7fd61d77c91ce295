#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How siw shakes hands: MPA start-up (RFC 5044, RFC 6581), spoken by hand over plain TCP.

None of our code takes part. These are the facts about the kernel that our own start-up relies on,
so that when a newer kernel differs, this says so before the RNIC's tests fail for unclear reasons.
"""
import contextlib
import socket
import struct
import time
import unittest

import rping
from guest_case import GuestCase

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECTED, ENHANCED = 0x80, 0x40, 0x20, 0x10
PEER_TO_PEER, WRITE_FIRST, READ_FIRST = 0x8000, 0x8000, 0x4000  # of the two enhanced words

# The first frame of a peer-to-peer connection is one of two, and then the server may speak. No CRC.
EMPTY_WRITE = bytes.fromhex("000e c140 00000001 0000000000000000 00000000")
EMPTY_READ = bytes.fromhex("002e 4141 00000000 00000001 00000001 00000000"
                           "00000001 0000000000000000 00000000 00000001 0000000000000000 00000000")
# What rping sends: "fetch from this address, with this steering tag, 64 octets".
PING = bytes.fromhex("0022 4143 00000000 00000000 00000001 00000000"
                     "0000123456789abc abcdef01 00000040 00000000")


def frame(flags, revision, words=()):
    """A request. The enhanced words, where there are any, count as private data."""
    return REQUEST + struct.pack(f">BBH{len(words)}H", flags, revision, 2 * len(words), *words)


class MpaStartup(GuestCase):
    @contextlib.contextmanager
    def connected(self):
        """A TCP connection to an rping server that waits for its client's MPA request."""
        pings = rping.Pings()
        with rping.start_server(self.guest, pings), \
                socket.create_connection((pings.address, pings.port), timeout=20) as peer:
            yield peer

    def receive(self, peer, size):
        data = b""
        while len(data) < size:
            part = peer.recv(size - len(data))
            if not part:
                raise EOFError(f"closed after {len(data)} of {size} octets: {data.hex()}")
            data += part
        return data

    def reply(self, peer):
        """(flags, revision, enhanced words) of the reply."""
        key, flags, revision, size = struct.unpack(">16sBBH", self.receive(peer, 20))
        self.assertEqual(key, REPLY)
        return flags, revision, struct.unpack(f">{size // 2}H", self.receive(peer, size))

    def answer(self, *request):
        with self.connected() as peer:
            peer.sendall(frame(*request))
            return self.reply(peer)

    def begin(self, peer, first_frame):
        """Sends the first frame, and then a ping, for which the server must fetch the text."""
        # siw looks for the frame only a moment after its reply has left, and is not told of one
        # that was there before. Whoever leaves before it has seen one brings Linux 6.1 down: the
        # close then comes in a state for which cm_close_handler() has only a BUG().
        time.sleep(0.2)
        peer.sendall(first_frame)
        if first_frame == EMPTY_READ:
            self.assertEqual(self.receive(peer, 20).hex(" ", 2)[:19], "000e c142 0000 0001")
        peer.sendall(PING)
        fetch = self.receive(peer, 52)
        self.assertEqual(fetch[:4].hex(" ", 2), "002e 4141")
        size, steering_tag, offset = struct.unpack(">IIQ", fetch[32:48])
        self.assertEqual((offset, steering_tag, size), struct.unpack(">QII", PING[20:36]))

    def test_it_takes_the_empty_write_if_both_are_offered(self):
        with self.connected() as peer:
            peer.sendall(frame(ENHANCED, 2, (PEER_TO_PEER | 1, WRITE_FIRST | READ_FIRST | 1)))
            self.assertEqual(self.reply(peer),
                             (ENHANCED, 2, (PEER_TO_PEER | 1, WRITE_FIRST | 1)))
            self.begin(peer, EMPTY_WRITE)

    def test_it_takes_the_empty_read_if_only_that_is_offered(self):
        with self.connected() as peer:
            peer.sendall(frame(ENHANCED, 2, (PEER_TO_PEER | 1, READ_FIRST | 1)))
            self.assertEqual(self.reply(peer), (ENHANCED, 2, (PEER_TO_PEER | 1, READ_FIRST | 1)))
            self.begin(peer, EMPTY_READ)

    def test_it_echoes_the_flags_that_mean_nothing(self):
        self.assertEqual(self.answer(ENHANCED | CRC | 0x0C, 2, (1, 1)),
                         (ENHANCED | CRC | 0x0C, 2, (1, 1)))

    def test_it_uses_a_crc_if_its_client_wants_one(self):
        # And only then: siw 6.1 insists on mpa_crc_required where it is the client, but as a
        # server asks for it only if the client has already.
        for variant in ("stock", "crc"):
            for asked in (0, CRC):
                with self.subTest(variant, asked=asked):
                    self.guest.load_siw(variant)
                    self.assertEqual(self.answer(ENHANCED | asked, 2, (1, 1)),
                                     (ENHANCED | asked, 2, (1, 1)))

    def test_it_answers_revision_1_in_kind(self):
        self.assertEqual(self.answer(0, 1), (0, 1, ()))
        self.assertEqual(self.answer(CRC, 1), (CRC, 1, ()))

    def test_it_hangs_up_if_it_must_read_from_a_client_of_revision_1(self):
        # Such a client cannot say how many reads it takes at once; siw concludes: none.
        with self.connected() as peer:
            peer.sendall(frame(0, 1))
            self.assertEqual(self.reply(peer), (0, 1, ()))
            time.sleep(0.2)  # as in begin()
            peer.sendall(PING)
            self.assertHangsUp(peer)

    def test_it_refuses_markers(self):
        with self.connected() as peer:
            peer.sendall(frame(MARKERS | CRC | ENHANCED, 2, (1, 1)))
            flags, revision, _ = self.reply(peer)
            self.assertEqual((flags, revision), (REJECTED | CRC | ENHANCED, 2))
            self.assertEqual(peer.recv(1), b"")

    def test_it_hangs_up_on_a_revision_it_does_not_know(self):
        with self.connected() as peer:
            peer.sendall(frame(ENHANCED, 3, (1, 1)))
            self.assertHangsUp(peer)

    def test_it_hangs_up_if_data_comes_along_with_the_request(self):
        with self.connected() as peer:
            peer.sendall(frame(ENHANCED, 2, (PEER_TO_PEER | 1, WRITE_FIRST | 1)) + EMPTY_WRITE)
            self.assertHangsUp(peer)

    def assertHangsUp(self, peer):
        try:
            self.assertEqual(peer.recv(1), b"")
        except ConnectionResetError:
            pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
