#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an initiator can do to `weft export iscsi` by data that is not what was asked for: nothing
of it reaches the disk, and nobody else notices. See iscsi_abuse_test.py for the rest.
"""
import pathlib
import tempfile
import unittest

import iscsi_abuse
from iscsi_abuse import MIB
from iscsi_client import (BLOCK, DATA_IN, DATA_OUT, FINAL, NONE, NOP_IN, READY, REJECT, RESPONSE,
                          SNACK)


class Data(iscsi_abuse.Abuse):
    """Data-Out that is not what was asked for. Nothing of it may reach the disk."""

    def begin_write(self, initiator, blocks=8):
        """A write of which nothing goes along; gives the R2T."""
        initiator.command(initiator.block_of(0x2A, 0, blocks), write=blocks * BLOCK)
        return initiator.expect(READY)

    def careful(self):
        """A session that sends nothing unasked, and a disk that has a known beginning."""
        initiator = self.logged_in(("InitialR2T", "Yes"), ("ImmediateData", "No"))
        ready = self.begin_write(initiator)
        self.answer(initiator, ready, b"\x11" * 8 * BLOCK)
        self.assertEqual(initiator.expect(RESPONSE).status, 0)
        return initiator

    @staticmethod
    def answer(initiator, ready, data, *, tag=None, transfer=None, number=0, offset=None,
               flags=FINAL):
        initiator.say(DATA_OUT, flags, data, tag=ready.tag if tag is None else tag,
                      words=(ready.word(20) if transfer is None else transfer, 0, 0, 0, number,
                             ready.word(40) if offset is None else offset))

    def expect_untouched(self, initiator):
        self.assertEqual(initiator.read(0, 8), b"\x11" * 8 * BLOCK)

    def test_tags_nobody_gave_are_not_there(self):
        initiator = self.careful()
        ready = self.begin_write(initiator)
        whole = b"\xee" * 8 * BLOCK
        for tag, transfer in ((ready.tag + 1, None), (None, ready.word(20) ^ 1),
                              (None, 0x7FFF0000), (NONE, None), (None, NONE), (NONE, NONE)):
            self.answer(initiator, ready, whole, tag=tag, transfer=transfer)
        initiator.ping()
        self.assertEqual(initiator.hear().opcode, NOP_IN)
        self.answer(initiator, ready, b"\x11" * 8 * BLOCK)
        self.assertEqual(initiator.expect(RESPONSE).status, 0)
        self.expect_untouched(initiator)

    def test_data_beyond_what_was_asked_for_fails_the_command(self):
        for offset, length in ((8 * BLOCK, BLOCK), (0, 16 * BLOCK), (0xFFFFFF00, BLOCK),
                               (7 * BLOCK, 2 * BLOCK), (0x80000000, 4)):
            initiator = self.careful()
            ready = self.begin_write(initiator)
            self.answer(initiator, ready, b"\xee" * length, offset=offset)
            self.assertEqual(initiator.expect(RESPONSE).status, 2, (offset, length))
            self.expect_untouched(initiator)

    def test_numbers_out_of_order_fail_the_command(self):
        for number in (1, 5, NONE):
            initiator = self.careful()
            ready = self.begin_write(initiator)
            self.answer(initiator, ready, b"\xee" * 8 * BLOCK, number=number)
            self.assertEqual(initiator.expect(RESPONSE).status, 2, number)
            self.expect_untouched(initiator)

    def test_less_than_was_asked_for_fails_the_command(self):
        initiator = self.careful()
        ready = self.begin_write(initiator)
        self.answer(initiator, ready, b"")
        self.assertEqual(initiator.expect(RESPONSE).status, 2)
        self.expect_untouched(initiator)

    def test_endless_data_of_no_length(self):
        initiator = self.careful()
        ready = self.begin_write(initiator)
        for number in range(2000):
            self.answer(initiator, ready, b"", number=number, flags=0)
        initiator.ping()
        self.assertEqual(initiator.hear().opcode, NOP_IN)

    def test_asked_again_for_ever_by_who_never_delivers(self):
        initiator = self.logged_in(("ErrorRecoveryLevel", "1"), ("InitialR2T", "Yes"),
                                   ("ImmediateData", "No"))
        ready = self.begin_write(initiator)
        for _ in range(1000):
            self.answer(initiator, ready, b"")
            ready = initiator.expect(READY)
        self.expect_growth_below(8, "data that never comes")

    def test_unsolicited_data_nobody_agreed_on(self):
        initiator = self.careful()
        initiator.command(initiator.block_of(0x2A, 0, 8), write=8 * BLOCK,
                          data=b"\xee" * 8 * BLOCK)
        self.assertEqual(initiator.expect(RESPONSE).status, 2)
        self.expect_untouched(initiator)

    def test_snacks_of_every_kind(self):
        for keys in ((), (("ErrorRecoveryLevel", "1"),)):
            initiator = self.logged_in(*keys)
            initiator.write(0, b"\x11" * 8 * BLOCK)
            for kind in range(16):
                for tag, first, count in ((NONE, 0, 0), (1, 0, 0), (1, NONE, NONE), (7, 3, NONE)):
                    initiator.say(SNACK, FINAL | kind, tag=tag,
                                  words=(NONE, 0, 0, 0, 0, first, count))
            initiator.ping(tag=4242)
            while (pdu := initiator.hear()).tag != 4242:
                self.assertIn(pdu.opcode, (REJECT, RESPONSE, DATA_IN, NOP_IN))

    def test_initiators_killed_amid_their_data(self):
        for sent in (0, 1, 512, 8 * BLOCK - 1):
            initiator = self.logged_in(("InitialR2T", "Yes"), ("ImmediateData", "No"))
            ready = self.begin_write(initiator)
            initiator.send(initiator.pdu(DATA_OUT, FINAL, bytes(8 * BLOCK), tag=ready.tag, words=(
                ready.word(20), 0, 0, 0, 0, 0))[:48 + sent])
            initiator.close()

    def test_initiators_killed_with_answers_outstanding(self):
        for _ in range(20):
            initiator = self.logged_in()
            for _ in range(100):
                initiator.command(initiator.block_of(0x28, 0, 2048), read=2048 * BLOCK)
            initiator.close()

    def test_commands_that_lie_about_their_lengths(self):
        initiator = self.logged_in()
        for opcode, blocks, said in ((0x28, 0xFFFF, 512), (0x28, 1, 0xFFFFFFFF), (0x28, 8, 0)):
            initiator.command(initiator.block_of(opcode, 0, blocks), read=said or 1)
            while (pdu := initiator.hear()).opcode == DATA_IN and not pdu.flags & 1:
                pass
        self.assertIn(initiator.test_unit_ready(), (0, 2))


class FileData(Data):
    """The same with a disk that lends no memory: payload lies in buffers of ours."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        disk = pathlib.Path(folder.name) / "disk.img"
        with open(disk, "wb") as file:
            file.truncate(64 * MIB)
        self.options = ("--file", disk)
        super().setUp()

    def test_sessions_that_read_nothing_hold_no_more_than_the_bound(self):
        self.neighbour.over.set()
        self.neighbour.join(40)
        self.export.stop()
        self.options = (*self.options, "--buffers", "128M")
        iscsi_abuse.Abuse.setUp(self)
        for number in range(20):
            initiator = self.initiator().log_in(self.export.NAME,
                                                isid=b"\x80\0\0\0\2" + bytes([number]))
            initiator.socket.settimeout(0.5)
            try:
                for _ in range(128):
                    initiator.command(initiator.block_of(0x28, 0, 8192), read=8192 * BLOCK)
            except TimeoutError:
                pass
        self.neighbour.wait_for(3)
        self.expect_growth_below(128 + 21 / 4 + 16, "20 sessions that read nothing")


if __name__ == "__main__":
    unittest.main(verbosity=2)
