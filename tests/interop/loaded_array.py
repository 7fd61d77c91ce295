# SPDX-License-Identifier: Apache-2.0
"""An array of real processes under load from several hosts, and who watches that nobody is declared
broken who is not. For array_load_test.py and array_congested_test.py.

Times and rates are printed and never judged: they are the machine's. What is judged: no request
fails, no box, link or host is said to be broken that the test has not broken, what was written is
read back, and a scrub finds nothing.
"""
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import unittest

from cluster import Failed
from false_alarms import Silences, false_alarms, last_number
from faulty_array import FaultyArray, connect_to
from loads import KIB, MIB, Singles, deep_mix, deep_reads, deep_writes, fill
from shadow import BLOCK, Shadow

VOLUME = "photos"
HOSTS = ("anna", "bert", "cleo", "dora")
LEASE = 5
REGION = 16 * MIB  # of each host; the first one is the shadow's
SECONDS = int(os.environ.get("WEFT_ARRAY_SECONDS", "8"))
DRAIN_SECONDS = 120


class Watch(threading.Thread):
    """Asks the array again and again how it is, and keeps what is wrong. `touched` says which boxes
    the test has taken out itself."""

    def __init__(self, array, touched):
        super().__init__(daemon=True)
        self.array, self.touched = array, touched
        self.stopping = threading.Event()
        self.wrong = {}  # of which box, what, and how often it was seen
        self.silences = Silences(array)
        self.last_event = last_number(self.events())
        self.said = []   # events since
        self.unanswered = 0

    def events(self):
        return self.array.cluster.tell("events")

    def run(self):
        self.silences.start()
        while not self.stopping.wait(0.3):
            try:
                self.look(self.array.cluster.status(VOLUME))
                self.listen()
            except (Failed, subprocess.TimeoutExpired):
                self.unanswered += 1

    def look(self, status):
        for member in status["members"]:
            fine = member["state"] == "current" and member["up"]
            if not fine and member["box"] not in self.touched():
                self.blame(member["box"], f"{member['box']} is {member['state']}"
                           + ("" if member["up"] else " and down"))

    def listen(self):
        fresh = [each for each in self.events() if each["number"] > self.last_event]
        self.last_event = max(self.last_event, last_number(fresh))
        self.said += fresh
        for box, alarm in false_alarms(fresh, self.touched()):
            self.blame(box, alarm)

    def blame(self, box, what):
        self.wrong[box, what] = self.wrong.get((box, what), 0) + 1

    def count(self, words):
        return sum(words in each["what"] for each in self.said)

    def end(self):
        self.stopping.set()
        self.join()
        self.silences.stop()

    def stop(self):
        """All that is wrong, and not for the silence of a box."""
        self.end()
        self.listen()
        return [what if times == 1 else f"{what} ({times} times)"
                for (box, what), times in self.wrong.items()
                if not self.silences.excuse(box, what)]

    def absent(self):
        """The boxes that were absent for their silence, as people say it."""
        return ", ".join(sorted({f"{box} ({self.silences.longest[box]:.1f} s)"
                                 for box, what in self.wrong if self.silences.excuse(box, what)}))


class LoadCase(unittest.TestCase):
    level, boxes, consistency, data_path = 5, ("oak", "elm", "ash", "fir", "yew"), "journal", None
    spares = ()  # boxes that are added, and have no place yet
    size = f"{8 * REGION // MIB}M"
    box_size = "160M"

    def begin(self, hosts=HOSTS):
        """The array with its volume, and `uris` of its hosts' exports."""
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        serves = ["--data-path", self.data_path] if self.data_path else []
        self.array = FaultyArray(self.folder, (*self.boxes, *self.spares), self.box_size,
                                 str(LEASE), serves=serves)
        self.addCleanup(self.array.end)
        self.array.create(VOLUME, self.level, self.boxes, "--size", self.size,
                          consistency=self.consistency)
        self.uris = {name: self.array.attach(VOLUME, name) for name in hosts}
        self.seed = int(os.environ.get("WEFT_SEED", random.randrange(1 << 32)))
        self.chance = random.Random(self.seed)
        self.loads, self.failures, self.figures = [], [], {}
        self.shadow = self.single = None
        self.touched = set()  # boxes the test has taken out, or put in
        self.array.wait_until_healthy(VOLUME)

    def region(self, number):
        """(offset, size)"""
        return number * REGION, REGION

    def fill(self, *regions):
        for number in regions:
            fill(self.uris["anna"], *self.region(number))

    def start_shadow(self, host="anna", writers=4):
        self.shadow = Shadow(connect_to(self.uris[host]), self.seed, 0, REGION // BLOCK,
                             writers=writers).start()

    def start_watch(self):
        self.watch = Watch(self.array, lambda: self.touched)
        self.watch.start()
        self.addCleanup(self.watch.end)

    def start(self, load):
        self.loads.append(load.start())
        self.addCleanup(load.stop)
        return load

    def start_mix(self, seconds, depth=64):
        """What all scenarios of trouble have to bear: a shadow that knows all versions, mixed
        requests that are verified, deep reads, deep writes, each from a host of its own."""
        first, last = 3, 7
        self.fill(*range(first, last + 1))
        self.start_watch()
        self.start_shadow()
        self.start(deep_mix("mix", self.uris["bert"], depth, *self.region(1), seconds,
                            block=64 * KIB))
        self.start(deep_writes("writes", self.uris["cleo"], depth, *self.region(2), seconds))
        self.start(deep_reads("reads", self.uris["dora"], 4 * depth, first * REGION,
                              (last - first + 1) * REGION, seconds))

    def start_singles(self, host, operation):
        self.single = Singles(connect_to(self.uris[host]), operation, *self.region(0), self.chance)
        self.single.start()
        return self.single

    def wait_for_loads(self, seconds=None):
        for load in self.loads:
            load.join(seconds)

    def settle(self):
        """Ends the load, and gathers what went wrong: each a sentence in `failures`."""
        for load in self.loads:
            load.stop()
            if load.failure:
                self.failures.append(load.failure)
        if self.single:
            self.single.stop()
            if self.single.failure:
                self.failures.append(self.single.failure)
            else:
                self.tolerate(self.single.check)
        if self.shadow:
            self.figures["longest of the shadow"] = f"{self.shadow.pauses.longest_ever:.2f} s"
            self.tolerate(self.shadow.stop)
        self.tolerate(self.array.wait_until_healthy, VOLUME, lambda: None, DRAIN_SECONDS)
        self.tolerate(self.array.scrub, VOLUME)
        self.failures += self.watch.stop()
        self.note_loads()

    def tolerate(self, what, *arguments):
        """A failure is told at the end, with all others."""
        try:
            what(*arguments)
        except Exception as why:
            self.failures.append(f"{type(why).__name__}: {why}")

    def note_loads(self):
        for load in self.loads:
            for direction in ("read", "write"):
                if load.count[direction]:
                    self.figures[f"{load.name} {direction}s"] = (
                        f"{load.per_second(direction):.0f}/s, longest "
                        f"{load.longest[direction]:.2f} s")
        hedged = self.array.cluster.status(VOLUME)["counters"]["hedged_reads"]
        self.figures["hedged"] = str(hedged)
        if self.watch.absent():
            self.figures["absent after silence"] = self.watch.absent()
        if self.watch.unanswered:
            self.figures["questions not answered"] = str(self.watch.unanswered)
        self.figures["said to be slow"] = str(self.watch.count("answers slowly"))

    def name_of_array(self):
        return (f"RAID {self.level}, {self.data_path or 'third-party'}, "
                f"consistency {self.consistency}")

    def finish(self, what):
        self.settle()
        self.judge(what)

    def judge(self, what):
        """The line of figures, and the verdict."""
        said = "; ".join(f"{name} {figure}" for name, figure in self.figures.items())
        print(f"{what}; {self.name_of_array()}: {said}; "
              f"{len(self.failures)} complaints (seed {self.seed})", flush=True)
        if self.failures:
            self.fail("\n  " + "\n  ".join(self.failures))
