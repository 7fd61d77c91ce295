#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays of real processes, nobody of whom is broken, under load from four hosts while the network
is congested, loses packets, or boxes stand still for moments; and what reads, writes and rebuilds
leave to each other. Each scenario prints a line of its figures. loaded_array.py says what is judged.

    array_load_test.py [Congestion | Loss | Moments | Fairness | Rebuild][.test_NAME]

`./test array` runs it. Its loads last $WEFT_ARRAY_SECONDS each (8). Skipped where there are no
network namespaces."""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("fio", "nft", "tc")
machines.on_path("tools")
import network_faults  # noqa: E402
from loaded_array import HOSTS, SECONDS, VOLUME, LoadCase  # noqa: E402
from loads import KIB, MIB, many_reads  # noqa: E402

CONGESTED_RATE = "1gbit"
CONGESTED_QUEUE = 12  # packets


class Trouble(LoadCase):
    def everybody(self):
        return {name: machine for name, machine in self.array.switch.machines.items()}

    def bear(self, what, fault_of):
        """The mix of loads, while every machine has this fault."""
        self.begin()
        self.start_mix(SECONDS)
        faults = {name: fault_of(machine) for name, machine in self.everybody().items()}
        with network_faults.all_of(faults) as drops:
            self.wait_for_loads()
        self.figures["network"] = network_faults.drops_text(drops)
        self.finish(what)


class Congestion(Trouble):
    """All cables at 1 Gbit, and a switch with hardly any room."""

    def congest(self):
        self.bear("congestion", lambda machine: network_faults.congested(
            machine, CONGESTED_RATE, CONGESTED_QUEUE))


def congestion_of(level, data_path, consistency):
    def test(self):
        self.level, self.data_path, self.consistency = level, data_path, consistency
        if level == 1:
            self.boxes = self.boxes[:3]
        self.congest()
    return test


for LEVEL in (1, 5, 6):
    for DATA_PATH in ("third-party", "inband"):
        for CONSISTENCY in ("journal", "none"):
            NAME = f"test_raid_{LEVEL}_{DATA_PATH.replace('-', '_')}_{CONSISTENCY}"
            setattr(Congestion, NAME, congestion_of(LEVEL, DATA_PATH, CONSISTENCY))


class Loss(Trouble):
    def lose(self, percent):
        self.bear(f"loss of {percent} %", lambda machine: network_faults.losing(machine, percent))

    def test_one_packet_in_500(self):
        self.lose(0.2)

    def test_one_packet_in_100(self):
        self.lose(1)

    def test_one_packet_in_20(self):
        self.lose(5)

    def test_one_packet_in_20_inband(self):
        self.data_path = "inband"
        self.lose(5)


class Moments(Trouble):
    """Boxes stand still for 60 to 300 ms, one after the other, as on machines that swap, or whose
    disks pause: nobody may conclude from it that they are gone."""
    spares = ("ivy",)

    def stutter(self, what, during):
        self.begin()
        self.start_mix(SECONDS)
        boxes = [self.array.cluster.boxes[name] for name in self.boxes]
        with network_faults.Stutter(boxes, self.chance) as pauses:
            during()
            self.wait_for_loads()
        self.figures["pauses"] = f"{pauses.times}, the longest {pauses.longest * 1e3:.0f} ms"
        self.finish(what)

    def rebuild(self):
        self.watch.touched = {"elm", "ivy"}
        self.array.cluster.tell("member", "replace", VOLUME, "elm", "ivy")

    def rejoin(self):
        self.watch.touched = {"elm"}
        self.array.cluster.tell("member", "fail", VOLUME, "elm")
        time.sleep(1)
        self.array.cluster.tell("member", "re-add", VOLUME, "elm")

    def test_alone(self):
        self.stutter("boxes pause", lambda: None)

    def test_while_a_box_is_replaced(self):
        self.stutter("boxes pause while one is replaced", self.rebuild)

    def test_while_a_box_is_replaced_inband(self):
        self.data_path = "inband"
        self.stutter("boxes pause while one is replaced", self.rebuild)

    def test_while_a_box_is_taken_back(self):
        self.stutter("boxes pause while one is taken back", self.rejoin)

    def test_while_it_is_scrubbed(self):
        self.stutter("boxes pause during a scrub",
                     lambda: self.array.cluster.tell("scrub", VOLUME))


class Fairness(LoadCase):
    """What one host leaves to another."""

    def test_single_writes_beside_deep_reads(self):
        self.begin()
        self.fill(1)
        self.start_watch()
        writer, *readers = HOSTS
        alone = self.start_single_writes(writer)
        time.sleep(SECONDS / 4)
        alone.stop()
        before = alone.per_second(), alone.longest()
        for name in readers:
            self.start(many_reads(f"reads of {name}", self.uris[name], 256, *self.region(1),
                                  SECONDS))
        time.sleep(1)  # fio lays itself out
        writes = self.start_single_writes(writer)
        for load in self.loads:
            load.join(SECONDS)
        with_reads = writes.per_second(), writes.longest()
        self.figures["single writes alone"] = f"{before[0]:.0f}/s, longest {before[1]:.3f} s"
        self.figures["beside 768 reads"] = (
            f"{with_reads[0]:.1f}/s, longest {with_reads[1]:.2f} s, "
            f"{100 * with_reads[0] / before[0]:.1f} % of the rate alone")
        self.finish("deep reads of three hosts, single writes of a fourth")


class Rebuild(LoadCase):
    """How fast what was lost comes back, under reads of so many at once."""
    spares = ("ivy",)
    whole = 256 * MIB
    size = str(whole)
    depths = (0, 16, 64, 128)

    def rate(self, old, new, depth):
        """Stripes per second while the load lasts, and whether it was done meanwhile."""
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
        done = 0
        while time.monotonic() < ends:
            found = self.array.cluster.tell("rebuild", "status", VOLUME)
            if found:
                began = began or time.monotonic()
                done, to_do = found[0]["done"], found[0]["to_do"]
            elif began:  # it is over
                done = to_do
                break
            time.sleep(0.02)
        return done / (time.monotonic() - began) if began else 0.0

    def compare(self):
        self.begin(["anna"])
        self.fill(*range(16))
        self.start_watch()
        rates, places = {}, ["elm", "ivy"]
        for depth in self.depths:
            rates[depth] = self.rate(*places, depth)
            self.array.cluster.tell("box", "clean", places[0])  # of its old part
            places.reverse()
        for depth, rate in rates.items():
            self.figures[f"stripes/s at read depth {depth}"] = (
                f"{rate:.1f} ({100 * rate / rates[0]:.0f} %)")
        self.finish("a rebuild under reads")

    def test_third_party(self):
        self.compare()

    def test_inband(self):
        self.data_path = "inband"
        self.compare()


if __name__ == "__main__":
    unittest.main(verbosity=2)
