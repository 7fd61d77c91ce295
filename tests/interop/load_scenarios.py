# SPDX-License-Identifier: Apache-2.0
"""Scenarios of an array under load, for array_load_test.py, which runs all of them, and for
array_congested_test.py, which runs the most telling for a short time."""
import time

import network_faults
from loaded_array import HOSTS, REGION, SECONDS, VOLUME, LoadCase
from loads import KIB, MIB, deep_reads, deep_writes, many

CONGESTED_RATE = "1gbit"
CONGESTED_QUEUE = 12  # packets
DEPTH = 256           # of a host
FLOOR_PERCENT = 20    # what a rebuild shall have of its rate alone; said, not judged


class Scenario(LoadCase):
    spares = ("ivy",)

    def bear(self, fault_of):
        """The mix of loads, while every machine has this fault."""
        self.start_mix(SECONDS)
        faults = {name: fault_of(machine) for name, machine in self.array.switch.machines.items()}
        with network_faults.all_of(faults) as drops:
            self.wait_for_loads()
        self.figures["network"] = network_faults.drops_text(drops)

    def congest(self):
        """All cables at 1 Gbit, and a switch with hardly any room."""
        self.begin()
        self.bear_congestion()
        self.finish("congestion")

    def congest_without(self, box):
        """The same, while a box is away and no other can be spared."""
        self.begin()
        self.array.cluster.tell("member", "fail", VOLUME, box)
        self.touched = {box}
        self.bear_congestion()
        self.array.cluster.tell("member", "re-add", VOLUME, box)
        self.finish(f"congestion without {box}")

    def bear_congestion(self):
        self.bear(lambda machine: network_faults.congested(
            machine, CONGESTED_RATE, CONGESTED_QUEUE))

    def lose(self, percent):
        self.begin()
        self.bear(lambda machine: network_faults.losing(machine, percent))
        self.finish(f"loss of {percent} %")

    def stutter(self, what, during=lambda: None, start_load=None):
        """A load, that of start_mix() if it is not another, while boxes stand still for moments."""
        self.begin()
        (start_load or self.start_mix)(SECONDS)
        boxes = [self.array.cluster.boxes[name] for name in self.boxes]
        with network_faults.Stutter(boxes, self.chance) as pauses:
            self.tolerate(during)
            self.wait_for_loads()
        self.figures["pauses"] = f"{pauses.times}, the longest {pauses.longest * 1e3:.0f} ms"
        self.finish(what)

    def start_reads(self, seconds):
        """Nothing but deep reads, of all that is there, from three hosts."""
        self.fill(*range(8))
        self.start_watch()
        for name in HOSTS[:3]:
            self.start(deep_reads(f"reads of {name}", self.uris[name], 128, 0, 8 * REGION, seconds,
                                  block=64 * KIB))

    def replace(self):
        [spare] = self.spares
        self.touched = {"elm", spare}
        self.array.cluster.tell("member", "replace", VOLUME, "elm", spare)

    def rejoin(self):
        self.touched = {"elm"}
        self.array.cluster.tell("member", "fail", VOLUME, "elm")
        time.sleep(1)
        self.array.cluster.tell("member", "re-add", VOLUME, "elm")

    def scrub(self):
        self.array.cluster.tell("scrub", VOLUME)

    def single_beside_deep(self, single, deep):
        """What three hosts with deep queues leave to a fourth that has one request at a time: as
        fio calls them, "randwrite" beside "randread" or the other way round."""
        self.begin()
        self.fill(1)
        self.start_watch()
        one, *others = HOSTS
        alone = self.start_singles(one, single)
        time.sleep(SECONDS / 4)
        alone.stop()
        rate = alone.per_second()
        self.figures["alone"] = f"{rate:.0f}/s, longest {alone.longest():.3f} s"
        for name in others:
            self.start(many(f"{name}'s", self.uris[name], deep, DEPTH, *self.region(1), SECONDS))
        time.sleep(1)  # fio lays itself out
        singles = self.start_singles(one, single)
        self.wait_for_loads(SECONDS)
        beside, longest = singles.per_second(), singles.longest()
        self.settle()
        served = sum(load.per_second(deep.removeprefix("rand")) for load in self.loads)
        turn = DEPTH * len(others) / max(served, 1)
        self.figures["beside them"] = (
            f"{beside:.1f}/s ({100 * beside / rate:.1f} %), longest {longest:.2f} s; "
            f"a turn of all {DEPTH * len(others)} takes {turn:.2f} s")
        self.judge(f"{single} of one host beside {deep} of three")

    def write_deeply(self):
        """All four hosts at once."""
        self.begin()
        self.start_watch()
        for number, name in enumerate(HOSTS):
            self.start(deep_writes(f"{name}'s", self.uris[name], DEPTH, *self.region(number),
                                   SECONDS, block=4 * KIB))
        self.wait_for_loads()
        self.finish("deep writes of four hosts")


class Rebuild(Scenario):
    """How fast what was lost comes back, under reads of so many at once."""
    whole = 256 * MIB
    size = str(whole)

    def compare(self, depths):
        self.begin(["anna"])
        self.fill(*range(16))
        self.start_watch()
        rates, places = {}, ["elm", "ivy"]
        for depth in depths:
            rates[depth] = self.rate(*places, depth)
            self.array.cluster.tell("box", "clean", places[0])  # of its old part
            places.reverse()
        for depth, rate in rates.items():
            share = 100 * rate / rates[0]
            below = f", BELOW {FLOOR_PERCENT}" if share < FLOOR_PERCENT else ""
            self.figures[f"stripes/s at read depth {depth}"] = f"{rate:.1f} ({share:.0f} %{below})"
        self.finish("a rebuild under reads")

    def rate(self, old, new, depth):
        """Stripes per second, while the load lasts."""
        loads = []
        if depth:
            loads.append(self.start(many(f"at depth {depth}", self.uris["anna"], "randread", depth,
                                         0, self.whole, SECONDS + 2, block=64 * KIB)))
        time.sleep(len(loads))  # fio lays itself out
        self.touched = {old, new}
        self.array.cluster.tell("member", "replace", VOLUME, old, new)
        rate = self.follow(time.monotonic() + SECONDS)
        for load in loads:
            load.stop()
        self.array.wait_until_healthy(VOLUME)
        return rate

    def follow(self, ends):
        began = None
        done = to_do = 0
        while time.monotonic() < ends:
            found = self.array.cluster.tell("rebuild", "status", VOLUME)
            if found:
                began = began or time.monotonic()
                done, to_do = found[0]["done"], found[0]["to_do"]
            elif began:  # it is over
                done = to_do
                break
            time.sleep(0.02)
        if not began:
            raise AssertionError("no rebuild was seen")
        return done / (time.monotonic() - began)
