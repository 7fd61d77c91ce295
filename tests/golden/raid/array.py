#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden bytes of the array's own formats, from the field lists below.

Nobody else speaks these formats, so no capture can be had. This script knows nothing of our
encoders and they nothing of it: a layout is written down twice, here and in src/wire, and both
must agree.

    tests/golden/raid/array.py        writes the .hex files beside it
"""
import pathlib

CLUSTER, VOLUME, BOX = bytes(range(0x10, 0x20)), bytes(range(0x20, 0x30)), bytes(range(0x30, 0x40))
OTHER_BOX, HOST_IDENTITY = bytes(range(0x40, 0x50)), bytes(range(0x50, 0x60))


def number(size, value):
    return value.to_bytes(size, "big")


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def field(text, size):
    return text.encode().ljust(size, b"\0")


ADDRESS = [(CLUSTER, "cluster"), (VOLUME, "volume"), (BOX, "box"), (number(8, 7), "generation"),
           (number(8, 3), "epoch")]

ORDER = [
    (b"\xd0", "operation: array order"), (b"\x00", "action: vectored order"),
    (number(8, 0x1122334455667788), "transaction"), (number(4, 144 + 2 * 32 + 3 * 32), "length"),
    (b"\0", "reserved"), (b"\0", "control"),
    (b"WOR2", "key"), (number(4, 0), "reserved"), *ADDRESS,
    (number(8, 0x0A0B0C0D), "host session"), (number(8, 0x99), "host command"),
    (number(4, 0b10001), "participants: boxes 0 and 4"), (number(4, 2), "window"),
    (number(4, 0x00012345), "window tag"), (number(4, 8192), "window length"),
    (b"\x02", "phase: parity"), (b"\x01", "round"), (b"\x01", "prepares"), (b"\x02", "parties"),
    (number(2, 3), "pieces"), (number(2, 0), "reserved"),
    (number(8, 0x1122334455667700), "settled"), (HOST_IDENTITY, "host"),
    (number(4, 5000), "lease, milliseconds"), (number(4, 4096), "to prepare"),
    (b"\x00\x00", "party: a host"), (number(2, 0), "reserved"), (number(4, 0xABCDEF01), "tag"),
    (number(8, 0x7F0000001000), "base"), (number(8, 0) + number(8, 0x0A0B0C0D), "its session"),
    (b"\x02\x03", "party: box 3"), (number(2, 0), "reserved"), (number(4, 0x00045607), "tag"),
    (number(8, 0), "base"), (OTHER_BOX, "its identity"),
    (b"\x01\x00\x00\x00", "fetch, copy"), (b"\x00", "from party 0"), (number(3, 0), "reserved"),
    (number(4, 4096), "length"), (number(4, 0), "slot"), (number(8, 0), "home"),
    (number(8, 0x2000), "at"),
    (b"\x01\x02\x05\x00", "fetch, add diagonals of column 5"), (b"\x01", "from party 1"),
    (number(3, 0), "reserved"), (number(4, 4096), "length"), (number(4, 4096), "slot"),
    (number(8, 0), "home"), (number(8, 0x3000), "at"),
    (b"\x02\x01\x00\x00", "load, add"), (b"\xff", "no party"), (number(3, 0), "reserved"),
    (number(4, 4096), "length"), (number(4, 0), "slot"), (number(8, 0x40000), "home"),
    (number(8, 0), "at"),
]

ANSWER = [
    (b"\x80\x62", "descriptor type and length"), (b"\x09", "outcome: passive side failed"),
    (b"\x01", "party"), (number(2, 2), "piece"), (number(2, 0), "reserved"),
    (number(8, 0x1122334455667788), "transaction"), (number(8, 8), "generation"),
    (number(8, 4), "epoch"), (number(4, 0xDEADBEEF), "row digest"),
    (b"".join(number(4, 0x100 + i) for i in range(16)), "diagonal digests"),
]

RECALL = [
    (b"WeftRcl1", "key"), (number(8, 3 << 40 | 16), "settled"), (number(4, 1), "transactions"),
    (number(4, 1), "notes"),
    (number(8, 3 << 40 | 17), "transaction"), (number(8, 7), "generation"),
    (number(8, 0x0A0B0C0D), "host session"), (HOST_IDENTITY, "host"),
    (number(8, 0x99), "host command"), (number(8, 1 << 20), "home"), (number(8, 8192), "length"),
    (number(4, 0b10001), "participants"), (b"\x02", "state: committed"),
    (number(3, 0x923456), "restores, sum"),
    (number(8, 3 << 40 | 15), "note: transaction"), (HOST_IDENTITY, "host"),
    (number(8, 0x98), "host command"),
]



def sealed(fields):
    """Filled with zeroes to a block, of which the last four octets are a CRC32C."""
    body = b"".join(octets for octets, _ in fields)
    rest = bytes(4092 - len(body))
    return fields + [(rest, "zeroes"), (number(4, crc32c(body + rest)), "CRC32C")]


def journal_record(kind, entries, blocks, sequence, transaction):
    return [
        (b"WJR1", "record"), (bytes([kind, 0, 0, 0]), "kind: prepared" if kind == 1 else "marks"),
        (number(4, entries), "entries"), (number(4, blocks), "blocks"),
        (number(4, 0b10001), "participants"), (bytes(4), "reserved"), (number(8, 2), "run"),
        (number(8, sequence), "sequence"), (number(8, 16), "lasting below"),
        (number(8, 3 << 40 | 16), "settled below"), (number(8, transaction), "transaction"),
        (number(8, 7), "generation"), (number(8, 0x0A0B0C0D), "host session"),
        (HOST_IDENTITY, "host"), (number(8, 0x99), "host command"),
    ]


JOURNAL = [
    *sealed([
        (b"WeftJcp1", "checkpoint"), (number(8, 5), "written"), (number(8, 2), "run"),
        (number(8, 8192), "tail"), (number(8, 14), "tail's sequence"),
        (number(8, 16), "lasting below"), (number(8, 15), "applied below"),
        (number(8, 3 << 40 | 16), "settled below"), (number(4, 1), "notes"), (bytes(4), "reserved"),
        (number(8, 3 << 40 | 15), "note: transaction"), (HOST_IDENTITY, "host"),
        (number(8, 0x98), "host command")]),
    *sealed(journal_record(1, 2, 3, 17, 3 << 40 | 17) + [
        (number(8, 4096) + number(4, 0b101) + number(4, 8192), "extent: home, columns, length"),
        (number(8, 1 << 20) + number(4, 1 << 31 | 0b10) + number(4, 4096),
         "extent: home, columns, made anew, length"),
        (number(4, 1) + number(4, 2) + number(4, 3), "checksums of the blocks")]),
    *sealed(journal_record(2, 1, 0, 18, 3 << 40 | 17) + [
        (number(8, 3 << 40 | 17) + b"\x02" + bytes(7), "mark: committed")]),
]

MEMBERS = b"".join(
    identity + bytes([state]) + bytes(7) + number(8, rebuilt)
    for identity, state, rebuilt in
    [(BOX, 1, 0), (OTHER_BOX, 3, 77), (bytes(16), 2, 0)] + [(bytes(16), 0, 0)] * 15)

THE_VOLUME = [
    (VOLUME, "volume"), (field("photos", 64), "name"), (number(8, 7), "generation"),
    (b"\x05", "level"), (b"\x03", "boxes"), (b"\x01", "consistency: journal"), (b"\0", "reserved"),
    (number(4, 128 * 1024), "chunk"), (number(8, 8192), "stripes"),
    (MEMBERS, "members: current, rebuilding up to 77, absent, fifteen times none"),
]

SUPERBLOCK = [
    (b"WeftBox1", "key"), (number(8, 42), "written"), (CLUSTER, "cluster"), (BOX, "box"),
    (b"\x00", "place"), (b"\x02", "columns with versions"), (bytes(6), "reserved"),
    (number(8, 3), "epoch"),
    (number(8, 1 << 20), "data offset"), (number(8, 1 << 30), "data length"),
    (number(8, 8192), "journal offset"), (number(8, 1 << 19), "journal length"), *THE_VOLUME,
]


def record(kind, body):
    head = b"WAR" + bytes([kind]) + number(4, len(body))
    return [(head, "record head"), (body, "body"), (number(4, crc32c(head + body)), "CRC32C")]


RECORDS = [
    *record(1, CLUSTER + number(8, 3) + OTHER_BOX),
    *record(3, BOX + field("oak", 64) + field("127.0.0.1:3260", 64) + number(8, 1 << 30)),
    *record(4, OTHER_BOX),
    *record(5, field("desk", 64) + number(8, 0x0A0B0C0D) + VOLUME),
    *record(6, VOLUME + b"\x01\x01" + bytes(6) + number(8, 77) + number(8, 50_000_000)),
    *record(8, number(8, 41) + number(8, 1_790_000_000_000_000_000) + field("photos", 64) +
            field("oak", 64) + field("member absent", 256)),
]

GREETINGS = [
    (b"WeftGrt1", "greeting"), (CLUSTER, "cluster"), (number(8, 3), "epoch"),
    (b"\x01\0\0\0" + BOX, "from a box"), (b"\x02\0\0\0" + bytes(8) + number(8, 9), "to a host"),
    (bytes(range(32)), "fresh"),
    (b"WeftWlc1", "welcome"), (number(8, 3), "epoch"), (bytes(range(32, 64)), "fresh"),
    (bytes(range(64, 96)), "proof"),
    (b"WeftPrf1", "proof"), (bytes(range(96, 128)), "proof"), (b"WeftRdy1", "ready"),
    *ADDRESS, (b"\x01", "boxes"), (bytes(7), "reserved"),
    (OTHER_BOX, "box"), (b"\x03", "place"), (b"\0", "reserved"), (number(2, 3260), "port"),
    (bytes(10) + b"\xff\xff\x7f\x00\x00\x01", "address"), (bytes(range(32)), "secret"),
    *ADDRESS, (number(8, 9), "host session"), (number(2, 4000), "port"), (bytes(6), "reserved"),
    (bytes(15) + b"\x01", "address"), (bytes(range(32)), "secret"),
]

BOX_FILES = [
    (b"WeftDsc3", "description"), (BOX, "box"), (CLUSTER, "cluster"), (number(8, 3), "epoch"),
    (number(8, 0x0102030405060708), "boot"),
    (field("oak", 64), "name"), (number(8, 1 << 30), "size"), (number(8, 1 << 29), "free"),
    (number(4, 4 << 20), "window limit"), (number(2, 32), "windows"), (number(2, 2), "parts"),
    (number(2, 1), "left out"), (bytes(6), "reserved"),
    (VOLUME, "left out: its volume"), (number(8, 1 << 28), "size"), (bytes(7) + b"\x01", "damaged"),
    (b"WeftIde1", "a box's file"), (BOX, "box"), (CLUSTER, "cluster"), (number(8, 3), "epoch"),
    (field("oak", 64), "name"), (number(2, 1), "parts"), (bytes(6), "reserved"),
    (VOLUME, "part: its volume"), (number(8, 1 << 29), "size"), (bytes(4), "reserved"),
    (number(4, 5 << 1 | 1), "number, begun"),
]

HOST = [
    (b"\xd0\x40", "operation: array; action: hello"), (number(8, 0), "command"),
    (number(4, 120), "length"), (bytes(2), "reserved, control"),
    (b"WeftHlo2", "hello"), (field("desk", 64), "name"), (number(8, 8), "previous session"),
    (number(2, 4000), "port"), (bytes(6), "reserved"), (bytes(15) + b"\x01", "address"),
    (bytes(range(0x50, 0x60)), "identity"),
    (b"\x81\x66", "welcome: descriptor type and length"), (b"\x00", "outcome: done"),
    (bytes(5), "reserved"), (number(8, 9), "session"), (CLUSTER, "cluster"), (VOLUME, "volume"),
    (number(8, 3), "epoch"), (number(8, 1 << 40), "size"), (number(4, 1 << 20), "request limit"),
    (number(4, 4), "roster"), (bytes(range(32)), "secret"),
    (b"\xd0\x42", "operation: array; action: write"), (number(8, 77), "command"),
    (number(4, 56), "length"), (bytes(2), "reserved, control"),
    (b"WeftHtr1", "transfer"), (number(8, 9), "session"), (number(8, 77), "command"),
    (number(8, 1 << 33), "offset"), (number(4, 12288), "length"), (number(4, 0xABCDEF01), "tag"),
    (number(8, 0x1000), "base"), (b"\x03", "repeated, durable"),
    (number(3, 0x10203), "released"), (number(4, 4), "heard"),
    (b"\x80\x16", "answer: descriptor type and length"), (b"\x04", "outcome: later"),
    (b"\x01", "leaves writers"), (bytes(4), "reserved"), (number(8, 77), "command"),
    (number(8, 1 << 40), "size"),
    (b"\x82\x16", "news: descriptor type and length"), (bytes(2), "may come: no; reserved"),
    (number(4, 5), "number"), (bytes(range(0x30, 0x40)), "box"),
    (b"\x82\x16", "news: descriptor type and length"), (b"\x01\x00", "may come: yes; reserved"),
    (number(4, 6), "number"), (bytes(range(0x40, 0x50)), "box"),
    (b"\x83\x0e", "release: descriptor type and length"), (bytes(1), "reserved"),
    (number(3, 0x10204), "number"), (bytes(2), "reserved"), (number(8, 77), "command"),
]


def write(name, about, fields):
    lines, at = [f"# {about}", "# Source: tests/golden/raid/array.py."], 0
    for octets, text in fields:
        for i in range(0, len(octets), 16):
            part = octets[i:i + 16].hex(" ")
            lines.append(f"{at + i:04x}  {part:47} | {text if i == 0 else ''}".rstrip())
        at += len(octets)
    (pathlib.Path(__file__).parent / name).write_text("\n".join(lines) + "\n")


def main():
    write("order.hex", "A vectored order: command block, header, two parties, three pieces.", ORDER)
    write("answer.hex", "The answer to an order, as a descriptor of sense data.", ANSWER)
    write("recall.hex", "What a journal remembers: the Data-In of recall.", RECALL)
    write("journal.hex", "A journal's checkpoint, and two records without blocks.", JOURNAL)
    body = b"".join(octets for octets, _ in SUPERBLOCK)
    rest = bytes(4092 - len(body))
    write("superblock.hex", "A box's superblock.", SUPERBLOCK + [
        (rest, "zeroes"), (number(4, crc32c(body + rest)), "CRC32C")])
    write("records.hex", "Records of a controller's store, one behind another.", RECORDS)
    write("executed.hex", "Which writes of a volume were executed, as the store has it.",
          record(9, VOLUME + bytes(8) + bytes(range(0x50, 0x60)) + number(8, 77)))
    write("box.hex", "What a box says of itself, and what it keeps of itself.", BOX_FILES)
    write("greetings.hex", "How the ends of a connection introduce themselves.", GREETINGS)
    write("host.hex", "A host says hello, is welcomed, writes, is answered, and told of boxes.",
          HOST)


if __name__ == "__main__":
    main()
