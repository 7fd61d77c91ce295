#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes inputs of fuzz_raid_journal: journals as a box would have written them, and others.

    tests/fuzz/raid_journal_seeds.py        writes corpus/raid_journal beside it
"""
import pathlib

CHECKPOINT, RECORD, MARKS, OCTETS, FLIP_IN_RING, FLIP = range(6)
COMMITTED, ABORTED = 0, 1


def checkpoint(slot=0, written=1, run=1, tail=0, sequence=0, lasting=0, applied=0, settled=0,
               notes=()):
    return bytes([slot, written, run, tail, sequence, lasting, applied, settled, len(notes),
                  *(octet for note in notes for octet in note)])


def head(block, run, sequence, lasting, settled, transaction):
    return bytes([block, run, sequence, lasting, settled, transaction, 9])


def record(block, sequence, transaction, *extents, run=1, lasting=None, settled=0):
    lasting = sequence if lasting is None else lasting
    return bytes([RECORD]) + head(block, run, sequence, lasting, settled, transaction) + bytes(
        [len(extents), *(octet for extent in extents for octet in extent)])


def marks(block, sequence, *pairs, run=1):
    return bytes([MARKS]) + head(block, run, sequence, sequence, 0, 0) + bytes(
        [len(pairs), *(octet for pair in pairs for octet in pair)])


ONE = record(0, 0, 5, (1, 0, 0x11))  # home block 1, one block of 0x11
SEEDS = {
    "empty": checkpoint(),
    "prepared": checkpoint() + ONE,
    "committed": checkpoint() + ONE + marks(2, 1, (5, COMMITTED)) + record(3, 2, 6, (1, 0, 0x22)),
    "aborted": checkpoint() + ONE + marks(2, 1, (5, ABORTED)),
    "applied": checkpoint(applied=9) + ONE + marks(2, 1, (5, COMMITTED)),
    "beyond_the_disk": checkpoint() + record(0, 0, 5, (200, 0, 1)) + marks(2, 1, (5, COMMITTED)),
    "far_beyond": checkpoint() + record(0, 0, 5, (0xF0, 0, 1)),
    "twice": checkpoint() + ONE + record(2, 1, 5, (2, 1, 0x33)) + marks(5, 2, (5, COMMITTED)),
    "torn": checkpoint() + ONE + bytes([FLIP_IN_RING, 1, 9]),
    "lost": checkpoint() + ONE + record(2, 1, 6, (3, 0, 4)) + bytes([FLIP_IN_RING, 0, 9]),
    "known_to_the_checkpoint": checkpoint(lasting=1),
    "older_run_behind": checkpoint(run=2) + record(0, 0, 5, (1, 0, 1), run=2) + record(
        2, 1, 6, (2, 0, 1), run=1),
    "amid_the_end": checkpoint(tail=23, sequence=7) + record(23, 7, 5, (1, 0, 1)),
    "full": checkpoint() + b"".join(record(3 * i, i, i, (i, 1, i)) for i in range(8)),
    "notes": checkpoint(settled=8, notes=[(3, 9, 1), (4, 9, 2)]) + ONE,
    "two_checkpoints": checkpoint() + bytes([CHECKPOINT]) + checkpoint(slot=1, written=2) + ONE,
    "a_mark_alone": checkpoint() + marks(0, 0, (7, ABORTED), (8, COMMITTED)),
    "far_away": checkpoint(tail=0xFF, sequence=3) + ONE,
}


def main():
    folder = pathlib.Path(__file__).parent / "corpus/raid_journal"
    folder.mkdir(parents=True, exist_ok=True)
    for name, octets in SEEDS.items():
        (folder / name).write_bytes(octets)


if __name__ == "__main__":
    main()
