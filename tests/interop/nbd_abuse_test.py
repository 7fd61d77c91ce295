#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile or broken client can do to `weft export nbd`: nothing to anybody else.

Every test ends by checking that a well-behaved client, connected all the while, still reads and
writes, and that the server then stops cleanly. All are done twice: to a disk in memory, which lends
its memory, and to a file, for which the server must hold the payload.
"""
import os
import pathlib
import random
import resource
import socket
import struct
import tempfile
import time
import unittest

from weft_export import Export, receive_all

MIB = 1 << 20
OPTION = 0x49484156454F5054
REQUEST, SIMPLE, CHUNK = 0x25609513, 0x67446698, 0x668E33EF
EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED, SET_META = 1, 2, 3, 6, 7, 8, 10
READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, ZEROES, STATUS = range(8)
EINVAL, ENOSPC = 22, 28
HANDSHAKES_MAX = 256  # src/nbd/limits.hpp


class Client:
    """A client that says exactly what it is told to, right or wrong."""

    def __init__(self, export, tcp=False):
        if tcp:
            uri = next(uri for uri in export.uris() if uri.startswith("nbd://"))
            host, port = uri.split("/")[2].rsplit(":", 1)
            self.socket = socket.create_connection((host, port), timeout=20)
            return
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(export.socket))

    def receive(self, size):
        return receive_all(self.socket, size)

    def send(self, data):
        self.socket.sendall(data)

    def greeted(self, flags=3):
        assert self.receive(18)[:8] == b"NBDMAGIC"
        self.send(struct.pack(">I", flags))
        return self

    def option(self, option, data=b""):
        self.send(struct.pack(">QII", OPTION, option, len(data)) + data)

    def option_reply(self):
        _, option, kind, size = struct.unpack(">QIII", self.receive(20))
        return option, kind, self.receive(size)

    def go(self, structured=False):
        if structured:
            self.option(STRUCTURED)
            assert self.option_reply()[1] == 1
        self.option(GO, struct.pack(">IH", 0, 0))
        while self.option_reply()[1] != 1:
            pass
        return self

    def request(self, command, offset, length, flags=0, cookie=7, magic=REQUEST, data=b""):
        self.send(struct.pack(">IHHQQI", magic, flags, command, cookie, offset, length) + data)

    def simple_reply(self):
        magic, error, cookie = struct.unpack(">IIQ", self.receive(16))
        assert magic == SIMPLE, hex(magic)
        return error, cookie

    def closed(self):
        """True if the server hangs up instead of answering."""
        try:
            while self.socket.recv(65536):
                pass
            return True
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self):
        self.socket.close()


class Abuse:
    """What both kinds of disk must bear. `start()` says which it is."""

    def setUp(self):
        self.export = self.start()
        self.good = Client(self.export).greeted().go()
        self.written = os.urandom(4096)
        self.good.request(WRITE, 0, 4096, data=self.written)
        self.assertEqual(self.good.simple_reply(), (0, 7))

    def tearDown(self):
        if not self.export.alive():
            self.fail("weft died: " + (self.export.path / "output").read_text())
        self.good.request(READ, 0, 4096)
        self.assertEqual(self.good.simple_reply(), (0, 7))
        self.assertEqual(self.good.receive(4096), self.written)
        self.good.request(DISCONNECT, 0, 0)
        self.good.close()
        self.export.stop()

    def client(self, tcp=False):
        client = Client(self.export, tcp)
        self.addCleanup(client.close)
        return client

    def test_random_bytes(self):
        chance = random.Random(4711)
        for _ in range(200):
            client = self.client()
            try:
                client.send(chance.randbytes(chance.randrange(1, 4096)))
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.close()

    def test_random_bytes_after_the_handshake(self):
        chance = random.Random(815)
        for _ in range(100):
            client = self.client().greeted().go()
            try:
                client.send(chance.randbytes(chance.randrange(28, 4096)))
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assertTrue(client.closed())

    def test_handshakes_cut_off_anywhere(self):
        whole = struct.pack(">I", 3) + struct.pack(">QIIIH", OPTION, GO, 6, 0, 0)
        for size in range(len(whole)):
            client = self.client()
            client.send(whole[:size])
            client.close()

    def test_unknown_client_flags(self):
        self.assertTrue(self.client().greeted(flags=0x80000003).closed())

    def test_wrong_option_magic(self):
        client = self.client().greeted()
        client.send(struct.pack(">QII", OPTION ^ 1, LIST, 0))
        self.assertTrue(client.closed())

    def test_wrong_request_magic(self):
        client = self.client().greeted().go()
        client.request(READ, 0, 512, magic=REQUEST ^ 1)
        self.assertTrue(client.closed())

    def test_an_option_too_long_is_refused_and_the_talk_goes_on(self):
        client = self.client().greeted()
        client.option(INFO, bytes(100_000))
        self.assertEqual(client.option_reply()[1], 0x80000009)
        client.go()
        client.request(READ, 0, 512)
        self.assertEqual(client.simple_reply(), (0, 7))

    def test_an_option_of_4_gigabytes(self):
        client = self.client().greeted()
        client.send(struct.pack(">QII", OPTION, INFO, 0xFFFFFFFF))
        self.assertTrue(client.closed())

    def test_option_data_that_lie_about_their_lengths(self):
        client = self.client().greeted()
        for data in (b"", b"\0" * 5, struct.pack(">IH", 0xFFFFFFFF, 0), struct.pack(">IH", 0, 9),
                     struct.pack(">I", 4000) + b"x"):
            client.option(INFO, data)
            self.assertEqual(client.option_reply()[1], 0x80000003, data)
        client.option(STRUCTURED)
        client.option_reply()
        client.option(SET_META, struct.pack(">II", 0, 0xFFFFFFFF))
        self.assertEqual(client.option_reply()[1], 0x80000003)

    def test_an_unknown_option_is_unsupported(self):
        client = self.client().greeted()
        client.option(4242, b"data")
        self.assertEqual(client.option_reply()[1], 0x80000001)

    def test_an_option_flood_is_ended(self):
        client = self.client().greeted()
        with self.assertRaises((EOFError, ConnectionError)):
            for _ in range(20000):
                client.option(STRUCTURED)
                client.option_reply()

    def test_an_option_flood_nobody_reads_the_answers_of(self):
        before = self.export.resident_bytes()
        flooders = []
        for _ in range(20):
            client = self.client().greeted()
            client.socket.setblocking(False)
            try:
                while True:
                    client.option(LIST)
            except OSError:
                pass
            flooders.append(client)
        self.assertLess(self.export.resident_bytes() - before, 20 * MIB)

    def test_offsets_out_of_range(self):
        client = self.client().greeted().go()
        for command, offset, length, error in (
                (READ, 64 * MIB, 1, EINVAL), (READ, 64 * MIB - 1, 2, EINVAL),
                (READ, 0xFFFFFFFFFFFFFFFF, 2, EINVAL), (READ, 0x7FFFFFFFFFFFFFFF, 512, EINVAL),
                (TRIM, 64 * MIB, 512, EINVAL), (ZEROES, 63 * MIB, 2 * MIB, ENOSPC),
                (CACHE, 64 * MIB, 512, EINVAL), (STATUS, 0, 512, EINVAL)):
            client.request(command, offset, length, cookie=offset)
            self.assertEqual(client.simple_reply(), (error, offset), (command, offset))
        client.request(WRITE, 64 * MIB, 512, data=bytes(512))
        self.assertEqual(client.simple_reply(), (ENOSPC, 7))
        client.request(FLUSH, 0, 0)
        self.assertEqual(client.simple_reply(), (0, 7))

    def test_requests_that_are_too_long(self):
        client = self.client().greeted().go()
        client.request(READ, 0, 32 * MIB + 1)
        self.assertEqual(client.simple_reply(), (EINVAL, 7))
        client.request(READ, 0, 0xFFFFFFFF)
        self.assertEqual(client.simple_reply(), (EINVAL, 7))
        client.request(WRITE, 0, 33 * MIB, data=bytes(33 * MIB))
        self.assertEqual(client.simple_reply(), (EINVAL, 7))
        client.request(WRITE, 0, 0xFFFFFFFF)
        self.assertTrue(client.closed())

    def test_unknown_commands_and_flags(self):
        client = self.client().greeted().go()
        client.request(77, 0, 0)
        self.assertEqual(client.simple_reply(), (EINVAL, 7))
        client.request(READ, 0, 512, flags=0x8000)
        self.assertEqual(client.simple_reply(), (EINVAL, 7))
        client.request(WRITE, 0, 0)
        self.assertEqual(client.simple_reply(), (0, 7))

    def test_structured_errors_carry_a_sentence(self):
        client = self.client().greeted().go(structured=True)
        client.request(READ, 64 * MIB, 512)
        magic, flags, kind, cookie, size = struct.unpack(">IHHQI", client.receive(20))
        self.assertEqual((magic, flags, kind, cookie), (CHUNK, 1, 0x8001, 7))
        error, length = struct.unpack(">IH", client.receive(6))
        self.assertEqual(error, EINVAL)
        self.assertEqual(length, size - 6)
        self.assertIn(b"not valid", client.receive(length))

    def test_a_client_killed_in_the_middle_of_a_write(self):
        for sent in (0, 1, 4096, 1 * MIB, 8 * MIB - 1):
            client = self.client().greeted().go()
            client.request(WRITE, 32 * MIB, 8 * MIB, data=b"x" * sent)
            client.close()

    def test_a_client_killed_with_replies_outstanding(self):
        for _ in range(20):
            client = self.client().greeted().go()
            for number in range(100):
                client.request(READ, 0, 1 * MIB, cookie=number)
            client.close()

    def test_a_client_that_reads_nothing_holds_little(self):
        before = self.export.resident_bytes()
        client = self.client().greeted().go()
        client.socket.setblocking(False)
        try:
            while True:
                client.request(READ, 0, 32 * MIB)
        except OSError:
            pass
        time.sleep(0.5)
        self.assertLess(self.export.resident_bytes() - before, 72 * MIB)

    def test_export_name_that_does_not_exist(self):
        client = self.client().greeted()
        client.option(EXPORT_NAME, b"nowhere")
        self.assertTrue(client.closed())

    def test_abort_is_acknowledged(self):
        client = self.client().greeted()
        client.option(ABORT)
        self.assertEqual(client.option_reply()[1], 1)
        self.assertTrue(client.closed())

    def test_disconnect_answers_what_is_under_way(self):
        client = self.client().greeted().go()
        for number in range(50):
            client.request(READ, 4096 * number, 4096, cookie=number)
        client.request(DISCONNECT, 0, 0)
        for number in range(50):
            self.assertEqual(client.simple_reply(), (0, number))
            client.receive(4096)
        self.assertTrue(client.closed())

    def test_200_requests_sent_before_any_reply_is_read(self):
        client = self.client().greeted().go()
        for number in range(200):
            client.request(WRITE, 4096 * (number + 1), 4096, cookie=number,
                           data=bytes([number]) * 4096)
        self.assertEqual({client.simple_reply()[1] for _ in range(200)}, set(range(200)))
        for number in range(200):
            client.request(READ, 4096 * (number + 1), 4096, cookie=number)
        for _ in range(200):
            error, cookie = client.simple_reply()
            self.assertEqual(error, 0)
            self.assertEqual(client.receive(4096), bytes([cookie]) * 4096)

    def test_1000_idle_half_open_clients_cost_at_most_16_mebibytes(self):
        """The bound: 16 KiB each, if all were kept."""
        before = self.export.resident_bytes()
        clients = [self.client() for _ in range(1000)]
        for number, client in enumerate(clients[-HANDSHAKES_MAX // 2:]):
            client.receive(18)
            if number % 2:
                client.send(struct.pack(">I", 3)[: number % 4])
        time.sleep(0.5)
        grown = self.export.resident_bytes() - before
        print(f"1000 half-open clients: {grown / 1000 / 1024:.1f} KiB each", flush=True)
        self.assertLess(grown, 16 * MIB)

    def test_silent_clients_keep_nobody_out(self):
        """However many there are: the handshake begun first makes room."""
        silent = [self.client(tcp=True) for _ in range(1100)]
        started = time.monotonic()
        client = self.client(tcp=True).greeted().go()
        client.request(READ, 0, 512)
        self.assertEqual(client.simple_reply(), (0, 7))
        self.assertLess(time.monotonic() - started, 5)
        self.assertTrue(silent[0].closed())
        silent[-1].greeted().go()
        for each in silent:
            each.close()
        self.client(tcp=True).greeted().go()


class MemoryAbuse(Abuse, unittest.TestCase):
    def start(self):
        return Export("--tcp", "127.0.0.1:0", "--memory", "64M")


class FileAbuse(Abuse, unittest.TestCase):
    buffers = 256 * MIB
    reserve = MIB // 4

    def start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        disk = pathlib.Path(folder.name) / "disk.img"
        with open(disk, "wb") as file:
            file.truncate(64 * MIB)
        return Export("--tcp", "127.0.0.1:0", "--file", disk, "--buffers", self.buffers)

    def read_greedily(self, clients, size):
        """Each asks until its requests are no longer taken, and reads no answer."""
        for client in clients:
            client.socket.setblocking(False)
            try:
                while True:
                    client.request(READ, 0, size)
            except OSError:
                pass

    def expect_good_client_served(self, sizes):
        for size in sizes:
            started = time.monotonic()
            self.good.request(READ, 0, size)
            self.assertEqual(self.good.simple_reply(), (0, 7))
            self.assertEqual(self.good.receive(size)[:4096], self.written)
            self.good.request(WRITE, 0, 4096, data=self.written)
            self.assertEqual(self.good.simple_reply(), (0, 7))
            self.assertLess(time.monotonic() - started, 5)

    def test_40_clients_that_read_nothing_hold_no_more_than_the_bound(self):
        before = self.export.resident_bytes()
        clients = [self.client().greeted().go() for _ in range(40)]
        self.read_greedily(clients, 32 * MIB)
        time.sleep(1)
        grown = self.export.resident_bytes() - before
        print(f"40 clients that read nothing: {grown // MIB} MiB", flush=True)
        self.assertLess(grown, self.buffers + 41 * self.reserve + 8 * MIB)
        self.expect_good_client_served([4096] * 50 + [MIB, 8 * MIB])

    def test_greed_of_every_size_leaves_each_client_its_reserve(self):
        sizes = [32 * MIB >> shift for shift in range(14) for _ in range(6)]
        for size in sizes:
            self.read_greedily([self.client().greeted().go()], size)
        time.sleep(1)
        self.expect_good_client_served([4096, self.reserve] * 20)

    @unittest.skipIf("asan" in os.environ["WEFT"], "the address sanitizer maps terabytes")
    def test_memory_that_cannot_be_had_is_waited_for(self):
        clients = [self.client().greeted().go() for _ in range(40)]
        self.expect_good_client_served([4096])
        mapped = int(pathlib.Path(f"/proc/{self.export.process.pid}/statm").read_text().split()[0])
        bound = mapped * os.sysconf("SC_PAGE_SIZE") + 64 * MIB
        resource.prlimit(self.export.process.pid, resource.RLIMIT_AS, (bound, bound))
        self.read_greedily(clients, 32 * MIB)
        time.sleep(1)
        self.expect_good_client_served([4096] * 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
