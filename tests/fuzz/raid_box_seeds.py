#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes inputs of fuzz_raid_box: commands a controller would send, and such as it never would.

    tests/fuzz/raid_box_seeds.py        writes corpus/raid_box beside it
"""
import pathlib
import struct

FETCH, LOAD, COMBINE, CLEAR, SOLVE_PAIR, SOLVE, SEND_HOME, SEND_SLOT, COMMIT, DIGEST, FLUSH, \
    PREPARE = range(1, 13)
READ, STAGE, PARITY, HOME = range(4)
ADDRESSED, WRONG_LENGTH, LATER_EPOCH = 1, 2, 4
DISK, PEER, PEER_FAILS, SETTLE = b"\4", b"\5", b"\6\0", b"\7"
ABORT, RELEASE, EPOCH, STORE, MEET, ADMIT, DISMISS = range(0x20, 0x27)
RECALL, RESOLVE = 0x2A, 0x2B
ADDRESS = bytes(64)


def command(action, parameters, transaction=1, flags=ADDRESSED):
    assert len(parameters) % 4 == 0 and len(parameters) < 1024
    return bytes([0, action, transaction, flags, len(parameters) // 4]) + parameters


def piece(verb, *, blend=0, column=0, other=0, party=0xFF, length=4096, slot=0, home=0, at=0):
    return struct.pack(">BBBBBxxxIIQQ", verb, blend, column, other, party, length, slot, home, at)


def order(phase, *pieces, parties=0, window=0, tag=0x101, length=16384, closes=False, action=0,
          transaction=1, prepares=False, settled=0, to_prepare=0):
    header = bytes(8) + ADDRESS + struct.pack(">QQIIIIBBBBHHQ16sII", 9, 5, 3, window, tag, length,
                                              phase, 0, 2 * closes + prepares, parties,
                                              len(pieces), 0, settled, bytes([9]) + bytes(15), 0,
                                              to_prepare)
    party = struct.pack(">BBxxIQ16s", 2, 1, 0x201, 0, bytes([3]) + bytes(15))
    return command(action, header + party * parties + b"".join(pieces), transaction)


def volume(generation, stripes=8):
    members = b"".join(bytes([2 + i]) + bytes(15) + b"\1" + bytes(15) for i in range(3))
    return (bytes([3]) + bytes(15) + bytes(64) + struct.pack(">QBBBxIQ", generation, 5, 3, 0, 16384,
                                                            stripes) + members.ljust(576, b"\0"))


STAGED = order(STAGE, piece(FETCH, party=0), piece(LOAD, slot=4096, home=8192), parties=1)
PREPARED = order(STAGE, piece(FETCH, party=0, length=8192), piece(
    PREPARE, length=8192, home=8192, at=1), parties=1, prepares=True, to_prepare=8192)
SEEDS = {
    "prepared": PREPARED + PEER + DISK * 8 + command(RECALL, ADDRESS) + order(HOME, closes=True)
    + DISK * 8 + command(RECALL, ADDRESS) + order(READ, piece(DIGEST, home=8192, length=8192),
                                                   length=0, closes=True, transaction=2) + SETTLE,
    "prepared_and_released": PREPARED + SETTLE + command(RELEASE, ADDRESS) + command(
        RESOLVE, ADDRESS) + DISK * 3 + command(ABORT, ADDRESS) + SETTLE,
    "aborted_amid_preparing": PREPARED + PEER + DISK + command(ABORT, ADDRESS) + command(
        RECALL, ADDRESS) + DISK * 9 + PREPARED + SETTLE,
    "epoch_amid_preparing": PREPARED + PEER + command(
        EPOCH, ADDRESS, flags=ADDRESSED | LATER_EPOCH) + DISK * 9 + command(
        RESOLVE, ADDRESS) + SETTLE,
    "forgotten": command(ABORT, ADDRESS, transaction=7) + SETTLE + order(
        STAGE, piece(CLEAR), piece(PREPARE), prepares=True, transaction=7),
    "settled": b"".join(order(STAGE, piece(CLEAR, length=16384), piece(
        PREPARE, length=16384, home=0), prepares=True, transaction=i, settled=i,
        to_prepare=16384) + SETTLE + order(HOME, closes=True, transaction=i) + SETTLE
        for i in range(1, 14)),
    "no_room": b"".join(order(STAGE, piece(CLEAR), piece(PREPARE), prepares=True, transaction=i,
                              to_prepare=65536) + SETTLE + command(RELEASE, ADDRESS, transaction=i)
                        for i in range(1, 5)),
    "write": STAGED + PEER + DISK + order(
        PARITY, piece(COMBINE, slot=0, at=4096, blend=1)) + order(
        HOME, piece(COMMIT, home=8192), piece(FLUSH, length=0), closes=True) + DISK + DISK,
    "read": order(READ, piece(SEND_HOME, party=0, length=16384), parties=1, length=0,
                  closes=True) + DISK + PEER,
    "lost_pair": order(PARITY, piece(CLEAR), piece(CLEAR, slot=4096), piece(
        SOLVE_PAIR, column=1, other=3, at=4096), piece(SOLVE, column=2)) + order(
        READ, piece(SEND_SLOT, party=0), parties=1, closes=True) + PEER,
    "scrub": order(READ, piece(DIGEST, column=2, length=65536), length=0, closes=True) + DISK * 3,
    "peer_gone": STAGED + PEER_FAILS + command(ABORT, ADDRESS),
    "aborted_amid": STAGED + command(ABORT, ADDRESS) + PEER + command(RELEASE, ADDRESS),
    "two_windows": STAGED + order(STAGE, piece(LOAD), window=1, tag=0x301, transaction=2) + DISK
    + PEER + SETTLE,
    "epoch_amid": STAGED + command(EPOCH, ADDRESS, flags=ADDRESSED | LATER_EPOCH) + PEER
    + DISK + order(HOME, piece(COMMIT)) + SETTLE,
    "another_generation": command(STORE, ADDRESS + volume(2)) + SETTLE + STAGED + SETTLE,
    "grown": command(STORE, ADDRESS + volume(2, 1 << 40)) + SETTLE,
    "boxes_met": command(MEET, ADDRESS + b"\2" + bytes(7) + bytes(136)),
    "host": command(ADMIT, ADDRESS + bytes(64)) + command(DISMISS, ADDRESS + bytes(64)),
    "beyond_the_window": order(STAGE, piece(LOAD, slot=16384)),
    "beyond_the_disk": order(READ, piece(DIGEST, home=128 << 10)),
    "another_tag": order(STAGE, piece(CLEAR), tag=0xBAD01),
    "never_staged": order(HOME, piece(COMMIT)),
    "half_overlapping": order(PARITY, piece(COMBINE, length=8192, at=4096)),
    "no_party": order(STAGE, piece(FETCH, party=3)),
    "wrong_length": command(0, bytes(200), flags=ADDRESSED | WRONG_LENGTH),
    "strange_action": command(0x77, bytes(80)) + command(0x15, b""),
}


def main():
    folder = pathlib.Path(__file__).parent / "corpus/raid_box"
    folder.mkdir(parents=True, exist_ok=True)
    for name, octets in SEEDS.items():
        (folder / name).write_bytes(octets)


if __name__ == "__main__":
    main()
