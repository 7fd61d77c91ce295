#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile or broken initiator can do to `weft export iscsi`: nothing to anybody else.

All the while a well-behaved initiator writes, reads back and compares. Every test ends with a look
at what it saw, and with the target stopping cleanly.
"""
import os
import pathlib
import random
import struct
import tempfile
import time
import unittest

import iscsi_abuse
from iscsi_abuse import MIB
from iscsi_client import (BLOCK, COMMAND, DATA_OUT, FINAL, IMMEDIATE, LOGGED_IN, LOGIN, MANAGED,
                          NONE, NOP_IN, NOP_OUT, REJECT, RESPONSE, SNACK, TASK_MANAGEMENT, TEXT,
                          TEXT_ANSWER, Initiator, text_of)
from weft_export import IscsiExport, run

GONE = (EOFError, ConnectionError)


class BeforeLogin(iscsi_abuse.Abuse):
    def test_random_bytes(self):
        chance = random.Random(4711)
        for _ in range(200):
            initiator = self.initiator()
            try:
                initiator.send(chance.randbytes(chance.randrange(1, 4096)))
            except ConnectionError:
                pass
            initiator.close()

    def test_every_other_pdu_first(self):
        for opcode in range(0x40):
            if opcode == LOGIN:
                continue
            for data in (b"", bytes(512)):
                initiator = self.initiator()
                initiator.say(opcode | IMMEDIATE, data=data, tag=1, words=(NONE, 100, 0))
                self.assertTrue(initiator.closed(), hex(opcode))
                initiator.close()

    def test_logins_cut_off_anywhere(self):
        whole = self.initiator().login_pdu([("InitiatorName", "iqn.a"),
                                            ("TargetName", self.export.NAME)])
        for size in range(len(whole)):
            initiator = self.initiator()
            initiator.send(whole[:size])
            initiator.close()

    def refused(self, pdu):
        """The login is refused with this status, or none: the target hangs up."""
        initiator = self.initiator()
        initiator.send(pdu)
        try:
            answer = initiator.hear()
        except GONE:
            return None
        self.assertEqual(answer.opcode, LOGGED_IN)
        self.assertTrue(initiator.closed())
        return answer.status

    def test_headers_that_lie(self):
        pdu = self.initiator().login_pdu
        good = [("InitiatorName", "iqn.a"), ("TargetName", self.export.NAME)]
        for octet, value in ((1, 0x8F), (1, 0xC7), (1, 0x8B), (3, 0xFF), (14, 0xFF)):
            broken = bytearray(pdu(good))
            broken[octet] = value
            status = self.refused(bytes(broken))
            self.assertTrue(status is None or status >= 0x0200, (octet, value, status))
        self.assertIsNone(self.refused(pdu(good, text=b"")[:5] + b"\xff\xff\xff" + bytes(40)))
        with_extra = bytearray(pdu(good))
        with_extra[4] = 255
        self.assertNotEqual(self.refused(bytes(with_extra) + bytes(1020)), 0)

    def test_text_that_is_none(self):
        name = b"InitiatorName=iqn.a\0"
        for text in (b"\0" * 8000, b"=\0", b"InitiatorName\0", b"=x\0" + name, name[:-1],
                     b"a" * 64 + b"=1\0" + name, name + name, b"\xff\xfe=\xfd\0" + name,
                     name + b"TargetName=" + b"x" * 8000 + b"\0", name * 400,
                     b"InitiatorName=" + b"i" * 300 + b"\0", name + b"SessionType=Both\0",
                     name + b"TargetName=iqn.nobody\0", b"X-key=" + b"v" * 8000 + b"\0",
                     name + b"MaxRecvDataSegmentLength=0\0" + text_of(
                         [("TargetName", self.export.NAME)])):
            status = self.refused(self.initiator().login_pdu([], text=text))
            self.assertTrue(status is None or status >= 0x0200, (text[:60], status))

    def test_values_of_every_kind_of_nonsense(self):
        keys = ("MaxRecvDataSegmentLength", "MaxBurstLength", "FirstBurstLength", "InitialR2T",
                "MaxConnections", "DefaultTime2Wait", "HeaderDigest", "ErrorRecoveryLevel",
                "MaxOutstandingR2T", "TaskReporting", "RDMAExtensions", "AuthMethod", "CHAP_A")
        values = ("", "-1", "0", "99999999999999999999", "0x", "0b!!!", "Yes,No", "None,None",
                  "\x01", "ü" * 60, "1~0", "," * 200)
        for key in keys:
            for value in values:
                initiator = self.initiator()
                initiator.send(initiator.login_pdu(
                    [("InitiatorName", "iqn.a"), ("TargetName", self.export.NAME), (key, value)]))
                try:
                    self.assertEqual(initiator.hear().opcode, LOGGED_IN)
                except GONE:
                    pass
                initiator.close()

    def test_text_that_is_continued_for_ever(self):
        for piece in (b"", b"X-a=", b"x" * 8000, b"X-key=v\0" * 1000):
            initiator = self.initiator()
            with self.assertRaises((AssertionError, *GONE)):
                for _ in range(10_000):
                    initiator.send(initiator.login_pdu([], flags=0x44, text=piece))
                    answer = initiator.expect(LOGGED_IN)
                    self.assertEqual(answer.status, 0)
        self.expect_growth_below(8, "text continued for ever")

    def test_a_thousand_half_open_logins_leave_room_for_one_more(self):
        """The bound: 32 KiB each. Those that say nothing cost less than those that began."""
        opened = []
        beginning = self.initiator().login_pdu([("InitiatorName", "iqn.a")])
        for number in range(1000):
            initiator = self.initiator()
            opened.append(initiator)
            if number < 200:
                initiator.send(beginning[:1 + number % 60])
        self.expect_growth_below(32, "1000 half-open logins")
        self.assertEqual(self.logged_in().write(0, bytes(4096)), 0)

    def test_logins_that_begin_all_at_once_keep_nobody_out(self):
        beginning = self.initiator().login_pdu([("InitiatorName", "iqn.a")])[:10]
        for number in (200, 256):  # that many silent ones are waited for at a time
            several = [self.initiator() for _ in range(number)]
            time.sleep(0.5)
            for each in several:
                each.send(beginning)
            time.sleep(0.5)
        self.assertEqual(self.logged_in().write(0, bytes(4096)), 0)

    def test_logins_that_take_their_time_are_ended(self):
        silent, slow, begun = self.initiator(60), self.initiator(60), self.initiator(60)
        pdu = slow.login_pdu([("InitiatorName", "iqn.a"), ("TargetName", self.export.NAME)])
        begun.send(begun.login_pdu([("InitiatorName", "iqn.a"), ("SessionType", "Discovery")],
                                   flags=0x04))
        self.assertEqual(begun.expect(LOGGED_IN).status, 0)
        with self.assertRaises(ConnectionError):
            for octet in pdu:
                slow.send(bytes([octet]))
                time.sleep(0.25)
            self.assertTrue(slow.closed())
            raise ConnectionError
        self.assertTrue(silent.closed())
        self.assertTrue(begun.closed())

    def test_rdma_that_is_none(self):
        key = b"MPA ID Req Frame"
        chance = random.Random(5)
        tails = [b"", b"\x40", b"\x40\x01\x00\x00", b"\x50\x02\x00\x08" + b"\0\4\0\0\xc0\0\0\0",
                 b"\x40\x02\xff\xff" + bytes(600), b"\xff\xff\xff\xff" * 200,
                 *(b"\x40\x02\x00\x08\0\4\0\0\xc0\0\0\0" + chance.randbytes(chance.randrange(400))
                   for _ in range(60)),
                 *(b"\x00\x01\x00\x00" + chance.randbytes(2000) for _ in range(60))]
        opened = []
        for tail in tails:
            initiator = self.initiator()
            try:
                initiator.send(key + tail)
            except ConnectionError:
                pass
            opened.append(initiator)
        self.expect_growth_below(48, "RDMA that is none")


class AfterLogin(iscsi_abuse.Abuse):
    def reject_of(self, initiator):
        return initiator.expect(REJECT).header[2]

    def test_random_bytes(self):
        chance = random.Random(815)
        for _ in range(100):
            initiator = self.initiator().log_in(self.export.NAME)
            try:
                initiator.send(chance.randbytes(chance.randrange(48, 4096)))
            except ConnectionError:
                pass
            initiator.close()

    def test_damaged_pdus(self):
        """PDUs that begin well, with some octets changed. Answered, refused or left."""
        chance = random.Random(99)
        for _ in range(300):
            initiator = self.initiator().log_in(self.export.NAME)
            for _ in range(chance.randrange(1, 6)):
                whole = bytearray(initiator.pdu(
                    chance.choice((NOP_OUT, COMMAND, TASK_MANAGEMENT, TEXT, DATA_OUT, SNACK))
                    | chance.choice((0, IMMEDIATE)), chance.randrange(256),
                    bytes(chance.choice((0, 4, 512))), tag=chance.randrange(4),
                    words=(chance.choice((NONE, 512, 0)), *initiator.count(), 0x2A000000, 0, 0, 0)))
                for _ in range(chance.randrange(4)):
                    whole[chance.randrange(48)] = chance.randrange(256)
                whole[4] = whole[5] = 0  # so that it ends where the next begins
                try:
                    initiator.send(whole)
                except ConnectionError:
                    break
            initiator.close()

    def test_opcodes_that_are_none_are_rejected(self):
        initiator = self.logged_in()
        for opcode in (0x07, 0x11, 0x1C, 0x1E, 0x20, 0x21, 0x25, 0x3F):
            initiator.say(opcode | IMMEDIATE, tag=9, words=(NONE, *initiator.count(True)))
            self.assertEqual(self.reject_of(initiator), 5, hex(opcode))
        self.assertEqual(initiator.test_unit_ready(), 0)

    def test_a_second_login_is_rejected(self):
        initiator = self.logged_in()
        initiator.send(initiator.login_pdu([("InitiatorName", "iqn.a")]))
        self.assertEqual(self.reject_of(initiator), 4)
        self.assertEqual(initiator.test_unit_ready(), 0)

    def test_segments_longer_than_agreed_on_end_the_connection(self):
        for opcode in (NOP_OUT, TEXT, COMMAND, DATA_OUT):
            initiator = self.logged_in()
            initiator.say(opcode | IMMEDIATE, tag=7, words=(NONE, *initiator.count(True)),
                          length=0xFFFFFF)
            self.assertTrue(initiator.closed(), hex(opcode))

    def test_commands_outside_the_window_are_not_there(self):
        initiator = self.logged_in()
        for number in (initiator.number + 200, initiator.number - 1, initiator.number + 0x80000000,
                       initiator.number - 100):
            kept, initiator.number = initiator.number, number & NONE
            initiator.command([0])
            initiator.number = kept
        initiator.ping()
        self.assertEqual(initiator.hear().opcode, NOP_IN)
        self.assertEqual(initiator.test_unit_ready(), 0)

    def test_commands_that_never_get_their_turn_cost_little(self):
        """Each session leaves out one number and fills the rest of its window."""
        for number in range(30):
            initiator = self.initiator().log_in(self.export.NAME,
                                                isid=b"\x80\0\0\0\1" + bytes([number]))
            initiator.number += 1
            for _ in range(127):
                initiator.say(NOP_OUT, FINAL, bytes(8192), tag=initiator.tags(),
                              words=(NONE, *initiator.count()))
            initiator.ping()
            self.assertEqual(initiator.hear().opcode, NOP_IN)
        self.expect_growth_below(30 * 2, "30 sessions with full windows")

    def flood(self, initiator, pdu, most=200 * MIB):
        """Says it again and again, and reads no answer, until it is not taken any more."""
        initiator.socket.settimeout(1)
        sent = 0
        try:
            while sent < most:
                initiator.send(pdu * 64)
                sent += 64 * len(pdu)
        except (TimeoutError, ConnectionError):
            pass
        return sent

    def test_a_flood_of_pings_nobody_reads_the_answers_of(self):
        for keys in ((), (("ErrorRecoveryLevel", "1"),)):
            initiator = self.logged_in(*keys)
            pdu = initiator.pdu(NOP_OUT | IMMEDIATE, FINAL, bytes(8192), tag=7,
                                words=(NONE, initiator.number, 0))
            self.assertLess(self.flood(initiator, pdu), 200 * MIB)
        self.expect_growth_below(16, "pings nobody reads the answers of")

    def test_a_flood_of_pings_nobody_acknowledges(self):
        """With error recovery, answers are kept until the initiator says that it has them. Who
        never does is left."""
        initiator = self.logged_in(("ErrorRecoveryLevel", "1"))
        pdu = initiator.pdu(NOP_OUT | IMMEDIATE, FINAL, bytes(4096), tag=7,
                            words=(NONE, initiator.number, 0))
        with self.assertRaises(GONE):
            for _ in range(5000):
                initiator.send(pdu)
                self.assertEqual(initiator.hear().opcode, NOP_IN)
        self.expect_growth_below(8, "pings nobody acknowledges")

    def test_a_flood_of_immediate_commands(self):
        initiator = self.logged_in()
        answered = {RESPONSE: 0, REJECT: 0}
        for _ in range(100):
            for _ in range(100):
                initiator.command([0], immediate=True)
            for _ in range(100):
                answered[initiator.hear().opcode] += 1
        self.assertGreater(answered[RESPONSE], 0)
        initiator.close()
        greedy = self.logged_in()
        block = greedy.block_of(0x28, 0, 2048)
        pdu = greedy.pdu(COMMAND | IMMEDIATE, 0xC1, tag=7, words=(
            2048 * BLOCK, greedy.number, 0, *struct.unpack(">4I", block.ljust(16, b"\0"))))
        self.flood(greedy, pdu, 20 * MIB)
        self.expect_growth_below(24, "a flood of immediate commands")

    def test_a_flood_of_task_management(self):
        initiator = self.logged_in()
        answered = {MANAGED: 0, REJECT: 0}
        for number in range(3000):
            function = (1, 2, 3, 4, 5, 6, 8, 9, 0, 127)[number % 10]
            initiator.say(TASK_MANAGEMENT | IMMEDIATE, FINAL | function, tag=initiator.tags(),
                          lun=number % 3, words=(number, *initiator.count(True), number, 0))
        for _ in range(3000):
            answered[initiator.hear().opcode] += 1
        self.assertGreater(answered[MANAGED], 1000)
        self.expect_growth_below(8, "a flood of task management")

    def test_a_flood_of_text(self):
        initiator = self.logged_in()
        for text in (b"SendTargets=All\0", b"SendTargets=\0", b"X-a=" + b"b" * 200 + b"\0",
                     b"MaxRecvDataSegmentLength=512\0", b"=\0", b"nothing", b"\0" * 8192):
            for _ in range(100):
                initiator.say(TEXT | IMMEDIATE, FINAL, text, tag=5,
                              words=(NONE, *initiator.count(True)))
                self.assertIn(initiator.hear().opcode, (TEXT_ANSWER, REJECT))
        self.expect_growth_below(8, "a flood of text")

    def test_text_that_is_continued_for_ever(self):
        initiator = self.logged_in()
        transfer, answer = NONE, None
        for _ in range(500):
            initiator.say(TEXT | IMMEDIATE, 0x40, b"x" * 8192, tag=5,
                          words=(transfer, *initiator.count(True)))
            answer = initiator.hear()
            if answer.opcode == REJECT:
                break
            transfer = answer.word(20)
        self.assertEqual(answer.opcode, REJECT)
        self.assertEqual(initiator.test_unit_ready(), 0)

    def test_another_length_is_declared_amid_data(self):
        initiator = self.logged_in()
        number = initiator.number
        initiator.say(TEXT, FINAL, b"MaxRecvDataSegmentLength=512\0", tag=5,
                      words=(NONE, number + 1, 0))
        data = os.urandom(64 * BLOCK)
        initiator.command(initiator.block_of(0x2A, 0, 64), write=len(data), data=data)
        initiator.number = number + 2
        self.assertEqual({initiator.hear().opcode for _ in range(2)}, {TEXT_ANSWER, RESPONSE})
        self.assertEqual(initiator.read(0, 64), data)


class Guessing(unittest.TestCase):
    def test_guessers_wait_and_others_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            secrets = pathlib.Path(folder) / "secrets"
            secrets.write_text("user alice correct-horse-1\n")
            secrets.chmod(0o600)
            with IscsiExport("--memory", "8M", "--chap", secrets) as export:
                begin = time.monotonic()
                guessers = [Initiator(export.portal, 60) for _ in range(8)]
                for each in guessers:
                    self.guess(each, export.NAME)
                right = export.authenticated("alice", "correct-horse-1")
                self.assertIn("WEFT", run("iscsi-inq", right))
                for each in guessers:
                    self.assertEqual(each.expect(LOGGED_IN).status, 0x0201)
                    each.close()
                self.assertGreater(time.monotonic() - begin, 5, "the eighth waits longest")

    @staticmethod
    def guess(initiator, target):
        initiator.send(initiator.login_pdu([("InitiatorName", "iqn.a"), ("TargetName", target),
                                            ("AuthMethod", "CHAP")], flags=0))
        initiator.expect(LOGGED_IN)
        initiator.send(initiator.login_pdu([("CHAP_A", "5")], flags=0))
        initiator.expect(LOGGED_IN)
        initiator.send(initiator.login_pdu([("CHAP_N", "alice"), ("CHAP_R", "0x" + "ab" * 16)],
                                           flags=0x81))


if __name__ == "__main__":
    unittest.main(verbosity=2)
