# SPDX-License-Identifier: Apache-2.0
"""Scenarios of an array under load, for array_load_test.py, which runs all of them, and for
array_congested_test.py, which runs the most telling for a short time."""
import time

import network_faults
from loaded_array import HOSTS, SECONDS, VOLUME, LoadCase
from loads import KIB, MIB, many_reads

CONGESTED_RATE = "1gbit"
CONGESTED_QUEUE = 12  # packets


class Scenario(LoadCase):
    spares = ("ivy",)

    def bear(self, what, fault_of):
        """The mix of loads, while every machine has this fault."""
        self.begin()
        self.start_mix(SECONDS)
        faults = {name: fault_of(machine) for name, machine in self.array.switch.machines.items()}
        with network_faults.all_of(faults) as drops:
            self.wait_for_loads()
        self.figures["network"] = network_faults.drops_text(drops)
        self.finish(what)

    def congest(self):
        """All cables at 1 Gbit, and a switch with hardly any room."""
        self.bear("congestion", lambda machine: network_faults.congested(
            machine, CONGESTED_RATE, CONGESTED_QUEUE))

    def lose(self, percent):
        self.bear(f"loss of {percent} %", lambda machine: network_faults.losing(machine, percent))

    def stutter(self, what, during=lambda: None):
        """The mix of loads, while boxes stand still for moments."""
        self.begin()
        self.start_mix(SECONDS)
        boxes = [self.array.cluster.boxes[name] for name in self.boxes]
        with network_faults.Stutter(boxes, self.chance) as pauses:
            self.tolerate(during)
            self.wait_for_loads()
        self.figures["pauses"] = f"{pauses.times}, the longest {pauses.longest * 1e3:.0f} ms"
        self.finish(what)

    def replace(self):
        self.watch.touched = {"elm", "ivy"}
        self.array.cluster.tell("member", "replace", VOLUME, "elm", "ivy")

    def rejoin(self):
        self.watch.touched = {"elm"}
        self.array.cluster.tell("member", "fail", VOLUME, "elm")
        time.sleep(1)
        self.array.cluster.tell("member", "re-add", VOLUME, "elm")

    def scrub(self):
        self.array.cluster.tell("scrub", VOLUME)

    def write_beside_reads(self):
        """What three hosts that read leave to a fourth that writes."""
        self.begin()
        self.fill(1)
        self.start_watch()
        writer, *readers = HOSTS
        alone = self.start_single_writes(writer)
        time.sleep(SECONDS / 4)
        alone.stop()
        rate, longest = alone.per_second(), alone.longest()
        self.figures["single writes alone"] = f"{rate:.0f}/s, longest {longest:.3f} s"
        for name in readers:
            self.start(many_reads(f"reads of {name}", self.uris[name], 256, *self.region(1),
                                  SECONDS))
        time.sleep(1)  # fio lays itself out
        writes = self.start_single_writes(writer)
        self.wait_for_loads(SECONDS)
        self.figures["beside 768 reads"] = (
            f"{writes.per_second():.1f}/s, longest {writes.longest():.2f} s, "
            f"{100 * writes.per_second() / rate:.1f} % of the rate alone")
        self.finish("deep reads of three hosts, single writes of a fourth")


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
            self.figures[f"stripes/s at read depth {depth}"] = (
                f"{rate:.1f} ({100 * rate / rates[0]:.0f} %)")
        self.finish("a rebuild under reads")

    def rate(self, old, new, depth):
        """Stripes per second, while the load lasts."""
        loads = []
        if depth:
            loads.append(self.start(many_reads(f"at depth {depth}", self.uris["anna"], depth, 0,
                                               self.whole, SECONDS + 2, block=64 * KIB)))
        time.sleep(len(loads))  # fio lays itself out
        self.watch.touched = {old, new}
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
