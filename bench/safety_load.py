# SPDX-License-Identifier: Apache-2.0
"""Random writes to an NBD export, so many at a time, each durable by itself (FUA) or not: what no
tool at hand can ask for. As little as that takes of the protocol, over a Unix socket."""
import os
import random
import socket
import statistics
import struct
import time

from surroundings import Failed

MAGIC_OPTION, MAGIC_OPTION_REPLY = 0x49484156454F5054, 0x3E889045565A9
MAGIC_REQUEST, MAGIC_REPLY = 0x25609513, 0x67446698
OPTION_GO, REPLY_ACKNOWLEDGE, REPLY_INFORMATION = 7, 1, 3
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
FLAG_FUA, CAN_FUA = 1, 1 << 3
WRITE, DISCONNECT, FLUSH = 1, 2, 3
REQUEST, REPLY = struct.Struct(">IHHQQI"), struct.Struct(">IIQ")
PAYLOADS = 16
PATIENCE_SECONDS = 60


class Client:
    def __init__(self, path, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(str(path))
        self.octets = b""
        self.next = 0
        self.greet(name.encode())

    def take(self, size):
        while len(self.octets) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise Failed("the export has closed the connection")
            self.octets += more
        taken, self.octets = self.octets[:size], self.octets[size:]
        return taken

    def greet(self, name):
        self.take(18)
        self.socket.sendall(struct.pack(">I", FIXED_NEWSTYLE | NO_ZEROES))
        wish = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self.socket.sendall(struct.pack(">QII", MAGIC_OPTION, OPTION_GO, len(wish)) + wish)
        while True:
            magic, _, kind, length = struct.unpack(">QIII", self.take(20))
            data = self.take(length)
            if magic != MAGIC_OPTION_REPLY or kind not in (REPLY_ACKNOWLEDGE, REPLY_INFORMATION):
                raise Failed(f"the export refuses, with {kind:#x}")
            if kind == REPLY_ACKNOWLEDGE:
                return
            if struct.unpack_from(">H", data)[0] == 0:
                self.size, flags = struct.unpack_from(">QH", data, 2)
                if not flags & CAN_FUA:
                    raise Failed("the export does not know durable writes")

    def ask(self, command, flags=0, offset=0, payload=b"", length=None):
        self.next += 1
        length = len(payload) if length is None else length
        head = REQUEST.pack(MAGIC_REQUEST, flags, command, self.next, offset, length)
        self.socket.sendall(head + payload)
        return self.next

    def answer(self):
        """The next that comes, of whichever request."""
        magic, error, cookie = REPLY.unpack(self.take(REPLY.size))
        if magic != MAGIC_REPLY or error:
            raise Failed(f"a request failed with {error}")
        return cookie

    def flush(self):
        self.ask(FLUSH)
        self.answer()

    def close(self):
        self.ask(DISCONNECT)
        self.socket.close()


def write_all(client, size):
    """Once over, so that no run is the first to write somewhere."""
    octets = os.urandom(1 << 20)
    for offset in range(0, size, len(octets)):
        client.ask(WRITE, offset=offset, payload=octets)
        client.answer()
    client.flush()


def run(client, size, depth, durable, area, seconds):
    """Writes of one size at random places of the first `area` octets. What was begun in time
    counts, to its end."""
    payloads = [os.urandom(size) for _ in range(PAYLOADS)]
    flags = FLAG_FUA if durable else 0
    places = area // size
    begun, took = {}, []
    started = time.perf_counter()
    until = started + seconds

    def go():
        offset = random.randrange(places) * size
        at = time.perf_counter()
        begun[client.ask(WRITE, flags, offset, payloads[offset // size % PAYLOADS])] = at

    for _ in range(depth):
        go()
    while begun:
        at = begun.pop(client.answer())
        now = time.perf_counter()
        took.append(now - at)
        if now < until:
            go()
    elapsed = time.perf_counter() - started
    took.sort()
    return {"octets": len(took) * size, "writes": len(took),
            "mib_per_second": len(took) * size / 2**20 / elapsed,
            "writes_per_second": len(took) / elapsed,
            "latency_us": statistics.fmean(took) * 1e6,
            "latency_99_us": took[len(took) * 99 // 100] * 1e6}
