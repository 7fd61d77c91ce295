# SPDX-License-Identifier: Apache-2.0
"""A target under attack, and somebody it must go on serving meanwhile."""
import random
import threading
import time
import unittest

from iscsi_client import BLOCK, Initiator
from weft_export import WEFT, IscsiExport

MIB = 1 << 20


class Neighbour(threading.Thread):
    """Writes, reads back and compares, until told to stop. `wrong` says what went wrong."""

    def __init__(self, export):
        super().__init__(daemon=True)
        self.initiator = Initiator(export.portal, timeout=30)
        self.initiator.log_in(export.NAME, name="iqn.2026-11.example.weft:neighbour").settled()
        self.rounds, self.wrong, self.over = 0, None, threading.Event()
        self.start()

    def run(self):
        chance = random.Random(17)
        try:
            while not self.over.is_set():
                data = chance.randbytes(8 * BLOCK)
                # Somebody may reset the unit at any time, of which everybody is told once.
                while self.initiator.write(4096, data) != 0:
                    self.initiator.settled()
                while (back := self.initiator.read(4096, 8)) is None:
                    self.initiator.settled()
                if back != data:
                    self.wrong = "it did not read what it wrote"
                    return
                self.rounds += 1
                time.sleep(0.005)
            self.initiator.log_out()
        except Exception as error:  # pylint: disable=broad-except
            self.wrong = repr(error)

    def wait_for(self, rounds):
        wanted = self.rounds + rounds
        deadline = time.monotonic() + 30
        while self.rounds < wanted and self.wrong is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.rounds >= wanted, self.wrong or "it is not served any more"


class Abuse(unittest.TestCase):
    options = ("--memory", "64M")

    def setUp(self):
        self.export = IscsiExport(*self.options)
        self.addCleanup(self.export.discard)
        self.neighbour = Neighbour(self.export)
        self.before = self.export.resident_bytes()
        self.made = []

    def tearDown(self):
        if not self.export.alive():
            self.fail("weft died: " + (self.export.path / "output").read_text()[-3000:])
        self.neighbour.wait_for(3)
        self.neighbour.over.set()
        self.neighbour.join(40)
        self.assertIsNone(self.neighbour.wrong)
        for each in self.made:
            each.close()  # or it would be asked to log out, and waited for
        self.export.stop()

    def initiator(self, timeout=20):
        self.made.append(Initiator(self.export.portal, timeout))
        return self.made[-1]

    def logged_in(self, *keys, timeout=20):
        return self.initiator(timeout).log_in(self.export.NAME, *keys).settled()

    def expect_growth_below(self, mebibytes, of_what):
        grown = (self.export.resident_bytes() - self.before) / MIB
        print(f"{of_what}: {grown:.1f} MiB", flush=True)
        if "asan" not in WEFT:  # which keeps what was freed
            self.assertLess(grown, mebibytes)
