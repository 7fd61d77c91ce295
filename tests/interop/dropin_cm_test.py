#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's ibverbs-utils and the connection programs of its rdmacm-utils, on our libraries."""
import re
import socket
import struct
import unittest

from dropin import HOST, HOST6, DropinCase, free_port

WAYS = ((), ("--crc", "off"), ("--placement", "eager"), ("--mode", "peer-to-peer"),
        ("--mode", "client-server"), ("--mode", "revision-1"))


class Devices(DropinCase):
    def test_every_interface_is_a_device(self):
        said = self.run_here("ibv_devices")
        names = re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", said, re.MULTILINE)
        self.assertTrue(names, said)
        self.assertEqual(len(names), len(set(names)), said)
        listed = self.run_here("ibv_devinfo", "-l")
        self.assertEqual(re.findall(r"^\s+(\S+)$", listed, re.MULTILINE), names)
        for name in names:
            with self.subTest(name):
                said = self.run_here("ibv_devinfo", "-v", "-d", name)
                self.must_say(r"transport:\s+iWARP \(1\)", said)
                self.must_say(r"state:\s+PORT_(ACTIVE \(4\)|DOWN \(1\))", said)
                self.must_say(r"link_layer:\s+Ethernet", said)
                self.must_say(r"phys_port_cnt:\s+1$", said)
                self.must_not_say(r"[Ff]ailed", said)

    def test_the_loopback_is_one_and_active(self):
        said = self.run_here("ibv_devinfo", "-d", "weft_lo")
        self.must_say(r"state:\s+PORT_ACTIVE \(4\)", said)

    def test_the_first_is_one_to_work_with(self):
        """Many programs take it without a look."""
        said = self.run_here("ibv_devinfo")
        state = self.must_say(r"state:\s+(\S+)", said)[1]
        self.assertEqual(state, "PORT_ACTIVE", said)

    def test_the_list_is_the_same_twice(self):
        self.assertEqual(self.run_here("ibv_devices"), self.run_here("ibv_devices"))


class Rping(DropinCase):
    def ping(self, *words, host=HOST, count=1000, way=()):
        port = free_port()
        _, said = self.run_pair(["rping", "-s", "-a", host, "-p", port, "-V", *words],
                                ["rping", "-c", "-a", host, "-p", port, "-v", "-V", "-C", count,
                                 *words], port, way=way)
        self.must_say(rf"^ping data: rdma-ping-{count - 1}: ", said)
        self.assertEqual(len(re.findall(r"^ping data: ", said, re.MULTILINE)), count)
        self.forget()

    def test_every_ping_comes_back(self):
        for host in (HOST, HOST6):
            with self.subTest(host):
                self.ping(host=host)

    def test_queue_pairs_the_program_makes_and_moves_itself(self):
        for host in (HOST, HOST6):
            with self.subTest(host):
                self.ping("-q", host=host)

    def test_sizes(self):
        for size in (64, 4096, 65535):
            with self.subTest(size):
                self.ping("-S", size, count=50)

    def test_every_way_weft_can_run_it(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.ping(count=50, way=way)

    def test_sides_that_were_told_differently_agree(self):
        port = free_port()
        for one, other in ((WAYS[1], ()), ((), WAYS[4]), (WAYS[4], ()), ((), WAYS[5])):
            with self.subTest(server=one, client=other):
                port = free_port()
                server = self.start("rping", "-s", "-a", HOST, "-p", port, port=port, way=one)
                client = self.start("rping", "-c", "-a", HOST, "-p", port, "-C", 50, "-V",
                                    way=other)
                self.finish(client)
                self.finish(server)
                self.forget()

    def test_a_persistent_server_serves_twenty_clients(self):
        port = free_port()
        server = self.start("rping", "-s", "-P", "-a", HOST, "-p", port, port=port)
        # It notes one request at a time, so two must not come at once; what goes on may.
        for _ in range(20):
            client = self.start("stdbuf", "-oL", "rping", "-c", "-a", HOST, "-p", port, "-v",
                                "-C", 100, "-V")
            self.wait_until(client, "^ping data")
        for client in self.programs[1:]:
            self.finish(client)
        if server.is_over():
            self.give_up("the server ended")

    def test_nobody_there_is_an_error_and_no_wait(self):
        said = self.run_here("rping", "-c", "-a", HOST, "-p", free_port(), "-C", 1, status=255)
        self.must_say(r"RDMA_CM_EVENT_REJECTED|REJECTED|UNREACHABLE", said)

    def test_a_client_that_is_killed_leaves_the_server_well(self):
        port = free_port()
        server = self.start("rping", "-s", "-P", "-a", HOST, "-p", port, "-S", 60000,
                            port=port)
        victim = self.start("stdbuf", "-oL", "rping", "-c", "-a", HOST, "-p", port, "-v",
                            "-S", 60000)
        self.wait_until(victim, "^ping data")
        self.run_here("rping", "-c", "-a", HOST, "-p", port, "-C", 10, "-V")
        victim.process.kill()
        victim.process.wait()
        self.run_here("rping", "-c", "-a", HOST, "-p", port, "-C", 10, "-V")
        if server.is_over():
            self.give_up("the server ended")


class HostilePeers(DropinCase):
    """Peers that ask for a connection and leave: a server serves the next one."""
    ASKS = b"MPA ID Req Frame"
    PEER_TO_PEER = ASKS + b"\x50\x02\0\x04" + struct.pack(">HH", 0x8004, 0xC004)
    CLIENT_SERVER = ASKS + b"\x40\x01\0\0"

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.server = self.start("rping", "-s", "-P", "-a", HOST, "-p", self.port, port=self.port)

    def ask_and_leave(self, request, *, reads_answer=True, resets=False, says=b""):
        with socket.create_connection((HOST, self.port), timeout=5) as peer:
            peer.sendall(request)
            if reads_answer:
                self.assertEqual(peer.recv(20, socket.MSG_WAITALL)[:16], b"MPA ID Rep Frame")
            peer.sendall(says)
            if resets:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def must_serve(self):
        self.run_here("rping", "-c", "-a", HOST, "-p", self.port, "-C", 10, "-V")
        if self.server.is_over():
            self.give_up("the server ended")

    def test_peers_that_leave_before_they_are_ready(self):
        for request in (self.PEER_TO_PEER, self.CLIENT_SERVER):
            for more in ({}, {"resets": True}, {"reads_answer": False},
                         {"reads_answer": False, "resets": True}, {"says": b"\0\x12"},
                         {"says": bytes(64)}):
                with self.subTest(request=request, **more):
                    self.ask_and_leave(request, **more)
                    self.must_serve()

    def test_a_peer_that_says_nothing_hears_why_it_is_left(self):
        """A payload too short for any header: a Terminate (MPA, marker and length disagree)."""
        for size in (0, 1, 5):
            with self.subTest(size), socket.create_connection((HOST, self.port), timeout=5) as peer:
                peer.sendall(b"MPA ID Req Frame\0\x01\0\0")
                peer.recv(20, socket.MSG_WAITALL)
                fpdu = struct.pack(">H", size) + bytes(size)
                peer.sendall(fpdu + bytes(-len(fpdu) % 4) + bytes(4))
                said = b""
                while part := peer.recv(100):
                    said += part
                self.assertEqual(said[2:4], b"\x41\x47", said.hex())
                self.assertEqual(said[20:22], b"\x20\x03", said.hex())
            self.must_serve()


class Others(DropinCase):
    def test_ucmatose(self):
        for words in ([], ["-c", 10, "-C", 100, "-S", 1000], ["-c", 5, "-m"], ["-t", 8]):
            for host in (HOST, HOST6):
                with self.subTest(host, words=words):
                    port = free_port()
                    for said in self.run_pair(
                            ["ucmatose", "-b", host, "-p", port, *words],
                            ["ucmatose", "-s", host, "-p", port, *words], port):
                        self.must_say(r"^return status 0$", said)
                    self.forget()

    def test_rdma_client_and_server(self):
        for host in (HOST, HOST6):
            port = free_port()
            server, client = self.run_pair(["rdma_server", "-s", host, "-p", port],
                                           ["rdma_client", "-s", host, "-p", port], port)
            self.must_say(r"^rdma_server: end 0$", server)
            self.must_say(r"^rdma_client: end 0$", client)
            self.forget()

    def test_the_same_over_a_shared_receive_queue(self):
        port = free_port()
        server, client = self.run_pair(["rdma_xserver", "-p", port],
                                       ["rdma_xclient", "-s", HOST, "-p", port], port)
        for said in (server, client):
            self.must_say(r"end 0$", said)

    def test_cmtime(self):
        port = free_port()
        self.start("cmtime", "-b", HOST, "-p", port, port=port)
        said = self.run_here("cmtime", "-s", HOST, "-p", port, "-c", 200)
        self.must_not_say(r"fail|error|unexpected", said)
        for step in ("create id", "resolve addr", "resolve route", "create qp", "connect",
                     "disconnect", "destroy"):
            self.must_say(rf"^{step}\s*:", said)


class Absent(DropinCase):
    """What iWARP does not have is refused, and nobody crashes or waits."""

    def must_refuse(self, *words):
        program = self.start(*words)
        status = program.wait()
        if status is None or status <= 0:
            self.give_up("it should have ended with a status of its own that is not 0")

    def test_datagrams(self):
        self.must_refuse("udaddy", "-s", HOST)

    def test_extended_connections(self):
        self.must_refuse("rdma_xclient", "-s", HOST, "-p", free_port(), "-c", "x")


if __name__ == "__main__":
    unittest.main(verbosity=2)
