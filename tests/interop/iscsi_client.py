# SPDX-License-Identifier: Apache-2.0
"""An initiator that says exactly what it is told to, right or wrong, PDU by PDU."""
import socket
import struct

from weft_export import receive_all

NOP_OUT, COMMAND, TASK_MANAGEMENT, LOGIN, TEXT, DATA_OUT, LOGOUT, SNACK = (
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10)
NOP_IN, RESPONSE, MANAGED, LOGGED_IN, TEXT_ANSWER, DATA_IN, LOGGED_OUT, READY, REJECT = (
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x3F)
IMMEDIATE, FINAL = 0x40, 0x80
NONE = 0xFFFFFFFF
BLOCK = 512
INITIATOR = "iqn.2026-11.example.weft:abuser"


def text_of(keys):
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in keys)


class Pdu:
    """What came back. Numbers are read where the kind of PDU has them."""

    def __init__(self, header, data):
        self.header, self.data = header, data
        self.opcode = header[0] & 0x3F
        self.flags = header[1]

    def word(self, at):
        return struct.unpack_from(">I", self.header, at)[0]

    @property
    def tag(self):
        return self.word(16)

    @property
    def status(self):
        """Of a login: class and detail. Of a command: its SCSI status."""
        return struct.unpack_from(">H", self.header, 36)[0] if self.opcode == LOGGED_IN else \
            self.header[3]

    def keys(self):
        pairs = [pair.partition("=") for pair in self.data.decode().split("\0") if pair]
        return {key: value for key, _, value in pairs}


class Initiator:
    def __init__(self, portal, timeout=20, source=None):
        host, port = portal.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout, source)
        self.number = 100  # CmdSN
        self.status = 0  # ExpStatSN
        self.next_tag = 1

    # ------------------------------------------------------------------------------ the wire

    def send(self, octets):
        self.socket.sendall(octets)

    def receive(self, size):
        return receive_all(self.socket, size)

    def hear(self):
        header = self.receive(48)
        length = int.from_bytes(header[5:8], "big")
        data = self.receive(header[4] * 4 + (length + 3) // 4 * 4)
        pdu = Pdu(header, data[header[4] * 4:header[4] * 4 + length])
        if pdu.opcode not in (READY, DATA_IN) or (pdu.opcode == DATA_IN and pdu.flags & 1):
            if pdu.opcode != NOP_IN or pdu.tag != NONE:
                self.status = (pdu.word(24) + 1) & NONE
        return pdu

    def expect(self, opcode):
        pdu = self.hear()
        assert pdu.opcode == opcode, (hex(pdu.opcode), pdu.header.hex(), pdu.data)
        return pdu

    def closed(self):
        """True if the target hangs up, whatever it says before."""
        try:
            while self.socket.recv(65536):
                pass
            return True
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self):
        self.socket.close()

    # ------------------------------------------------------------------------------ PDUs

    @staticmethod
    def pdu(opcode, flags=FINAL, data=b"", *, lun=0, tag=0, words=(), length=None, extra=b""):
        """`words`: what stands from octet 20 on; `length`: what it says its data has."""
        header = struct.pack(">BBxxB3sHHII", opcode, flags, len(extra) // 4,
                             (len(data) if length is None else length).to_bytes(3, "big"),
                             lun, 0, 0, tag)
        header += struct.pack(f">{len(words)}I", *words)
        return header.ljust(48, b"\0") + extra + data + bytes(-len(data) % 4)

    def say(self, opcode, *arguments, **more):
        self.send(self.pdu(opcode, *arguments, **more))

    def tags(self):
        self.next_tag += 1
        return self.next_tag

    def count(self, immediate=False):
        """CmdSN and ExpStatSN of the next request."""
        number = self.number
        if not immediate:
            self.number = (self.number + 1) & NONE
        return number, self.status

    def login_pdu(self, keys, flags=0x87, *, isid=b"\x80\0\0\0\0\1", handle=0, text=None):
        text = text_of(keys) if text is None else text
        header = struct.pack(">BBBBB3s6sHIHHII", LOGIN | IMMEDIATE, flags, 0, 0, 0,
                             len(text).to_bytes(3, "big"), isid, handle, 1, 0, 0, self.number, 0)
        return header.ljust(48, b"\0") + text + bytes(-len(text) % 4)

    def log_in(self, target, *more, name=INITIATOR, isid=b"\x80\0\0\0\0\1"):
        who = [("InitiatorName", name)]
        who += [("TargetName", target)] if target else [("SessionType", "Discovery")]
        self.send(self.login_pdu([*who, *more], isid=isid))
        answer = self.expect(LOGGED_IN)
        assert answer.status == 0, hex(answer.status)
        return self

    def settled(self):
        """Past the unit attentions of a new session."""
        while self.test_unit_ready() != 0:
            pass
        return self

    def command(self, block, *, read=0, write=0, data=b"", flags=FINAL, lun=0, immediate=False,
                tag=None):
        """Sends a SCSI command with what goes along; gives its tag."""
        tag = self.tags() if tag is None else tag
        flags |= (0x40 if read else 0) | (0x20 if write else 0) | 1
        words = (read or write, *self.count(immediate))
        padded = bytes(block).ljust(16, b"\0")
        self.say(COMMAND | (IMMEDIATE if immediate else 0), flags, data, lun=lun, tag=tag,
                 words=(*words, *struct.unpack(">4I", padded)))
        return tag

    def test_unit_ready(self):
        self.command([0])
        return self.expect(RESPONSE).status

    @staticmethod
    def block_of(opcode, address, blocks):
        return struct.pack(">BBIBHB", opcode, 0, address, 0, blocks, 0)

    def read(self, address, blocks):
        """None if there is no data but only a status."""
        self.command(self.block_of(0x28, address, blocks), read=blocks * BLOCK)
        data = b""
        while True:
            pdu = self.hear()
            if pdu.opcode == RESPONSE:
                return None
            assert pdu.opcode == DATA_IN, hex(pdu.opcode)
            data += pdu.data
            if pdu.flags & 1:
                return data

    def write(self, address, data):
        """With all of it going along; gives the status."""
        self.command(self.block_of(0x2A, address, len(data) // BLOCK), write=len(data), data=data)
        return self.expect(RESPONSE).status

    def ping(self, data=b"", tag=None):
        self.say(NOP_OUT | IMMEDIATE, FINAL, data, tag=self.tags() if tag is None else tag,
                 words=(NONE, *self.count(immediate=True)))

    def log_out(self):
        self.say(LOGOUT | IMMEDIATE, FINAL, tag=self.tags(), words=(0, *self.count(True)))
        answer = self.expect(LOGGED_OUT)
        self.close()
        return answer
