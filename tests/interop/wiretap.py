# SPDX-License-Identifier: Apache-2.0
"""Stands between two programs, writes down what they say, and asks tshark what it was.

No privilege is needed: the octets are those of the real conversation, the packets around them are
made here, one for each message that the caller finds in the stream.
"""
import collections
import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading

CLIENT, SERVER = 0, 1
LARGEST = 65_000  # octets a packet carries


class Conversation:
    """One connection: `said` has what each side said, in pieces, in the order they came."""

    def __init__(self, client, server):
        self.said, self.ends = [], (client, server)
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.carry, args=way, daemon=True)
                        for way in ((client, server, CLIENT), (server, client, SERVER))]
        for each in self.threads:
            each.start()

    def carry(self, source, sink, who):
        try:
            while data := source.recv(65536):
                with self.lock:  # so that no answer is written down before what it answers
                    self.said.append((who, data))
                    sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def wait(self):
        for each in self.threads:
            each.join(20)
        for each in self.ends:
            each.close()

    def of(self, who):
        return b"".join(data for speaker, data in self.said if speaker == who)

    def messages(self, length_of):
        """Who said what, message by message. `length_of(who, octets)`: of the first message of the
        octets, or none as long as that cannot be told."""
        waiting, found = [b"", b""], []
        for who, data in self.said:
            waiting[who] += data
            while waiting[who]:
                length = length_of(who, waiting[who])
                if length is None or len(waiting[who]) < length:
                    break
                found.append((who, waiting[who][:length]))
                waiting[who] = waiting[who][length:]
        assert waiting == [b"", b""], "a conversation ends within a message"
        return found


class Wiretap:
    """A door in front of a server's. `portal` is its address."""

    def __init__(self, portal):
        host, port = portal.rsplit(":", 1)
        self.server = (host, int(port))
        self.door = socket.create_server(("127.0.0.1", 0))
        self.portal = f"127.0.0.1:{self.door.getsockname()[1]}"
        self.conversations = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            while True:
                client, _ = self.door.accept()
                self.conversations.append(
                    Conversation(client, socket.create_connection(self.server)))
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self.thread.join(20)
        self.door.close()
        for each in self.conversations:
            each.wait()


# ----------------------------------------------------------------------------------- captures

def checksum(octets):
    total = sum(struct.unpack(f">{(len(octets) + 1) // 2}H", octets + bytes(len(octets) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Capture:
    """Packets, as tshark reads them."""

    def __init__(self):
        self.packets = []
        self.sent = collections.defaultdict(lambda: [1, 1])

    def add_tcp(self, number, who, octets, port=3260):
        """What one side says in a TCP connection of that number, that has begun long ago."""
        sent = self.sent[number]
        for at in range(0, len(octets), LARGEST):
            piece = octets[at:at + LARGEST]
            ports = (40000 + number, port) if who == CLIENT else (port, 40000 + number)
            hosts = bytes((10, 0, 0, 1 + who)) + bytes((10, 0, 0, 2 - who))
            header = struct.pack(">HHIIBBHHH", *ports, sent[who], sent[1 - who], 0x50,
                                 0x18, 0xFFFF, 0, 0)
            pseudo = hosts + struct.pack(">HH", 6, len(header) + len(piece))
            total = checksum(pseudo + header + piece)
            header = header[:16] + struct.pack(">H", total) + header[18:]
            outer = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(piece), len(self.packets), 0x4000,
                                64, 6, 0) + hosts
            outer = outer[:10] + struct.pack(">H", checksum(outer)) + outer[12:]
            self.packets.append(self.ethernet(0x0800) + outer + header + piece)
            sent[who] += len(piece)

    def add_roce(self, number, who, octets):
        """A message as InfiniBand over Ethernet would carry it: "send only", CRC not looked at."""
        padding = bytes(-len(octets) % 4)
        hosts = [bytes.fromhex("fe80") + bytes(13) + bytes((1 + each,)) for each in (who, 1 - who)]
        route = struct.pack(">IHBB", 0x60000000, 12 + len(octets) + len(padding) + 4, 0x1B, 0xFF)
        transport = struct.pack(">BBHII", 4, 0x40 | len(padding) << 4, 0xFFFF,
                                2 * number + 17 + who, 1)  # queue pair 1 is for management
        self.packets.append(self.ethernet(0x8915) + route + b"".join(hosts) + transport + octets +
                            padding + bytes(4))

    @staticmethod
    def ethernet(kind):
        return bytes.fromhex("020000000002020000000001") + struct.pack(">H", kind)

    def dissect(self, *options):
        """All frames' fields, each frame as a list of (name, value), and the complaints."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "capture.pcap"
            with open(path, "wb") as file:
                file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))
                for number, packet in enumerate(self.packets):
                    file.write(struct.pack("<IIII", 1, number, len(packet), len(packet)) + packet)
            done = subprocess.run(
                ["tshark", "-n", "-T", "json", "--no-duplicate-keys", "-o",
                 "tcp.check_checksum:TRUE", *options, "-r", path], check=True, timeout=120,
                capture_output=True, text=True, env={**os.environ, "WIRESHARK_CONFIG_DIR": folder})
        frames = [list(flat(packet["_source"]["layers"])) for packet in json.loads(done.stdout)]
        return frames, [(number + 1, name, value) for number, frame in enumerate(frames)
                        for name, value in frame
                        if name == "_ws.malformed" or (name == "_ws.expert.severity"
                                                       and int(value) >= 0x600000)]


def flat(value, name=""):
    """Every field of tshark's JSON, those in fields included."""
    if isinstance(value, dict):
        if name:
            yield name, ""
        for key, inner in value.items():
            yield from flat(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from flat(inner, name)
    else:
        yield name, value
