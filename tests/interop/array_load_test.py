#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays of real processes, none of which is broken, under load from four hosts while links are
congested, packets are lost or boxes stand still for moments; and what reads, writes and rebuilds
leave to each other. Each scenario prints a line of its figures. What is judged:
loaded_array.py.

    array_load_test.py [Congestion | Loss | Moments | Fairness | Rebuilds][.test_NAME]...

`./test array` runs it. Its loads last $WEFT_ARRAY_SECONDS each (8). Skipped where there are no
network namespaces."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("fio", "tc")
machines.on_path("tools")
import load_scenarios  # noqa: E402
from network_faults import can_congest, can_lose  # noqa: E402


@unittest.skipUnless(can_congest(), "this kernel has no tbf")
class Congestion(load_scenarios.Scenario):
    """Of every level, by both ways of the data, with a journal and without."""

    def test_raid_5_without_a_box(self):
        self.congest_without("elm")

    def test_raid_5_inband_without_a_box(self):
        self.data_path = "inband"
        self.congest_without("elm")


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


@unittest.skipUnless(can_lose(), "nothing loses packets at random here (nftables)")
class Loss(load_scenarios.Scenario):
    def test_one_packet_in_500(self):
        self.lose(0.2)

    def test_one_packet_in_100(self):
        self.lose(1)

    def test_one_packet_in_20(self):
        self.lose(5)

    def test_one_packet_in_20_inband(self):
        self.data_path = "inband"
        self.lose(5)


class Moments(load_scenarios.Scenario):
    """Boxes stand still for 60 to 300 ms, one after the other, as on machines that swap, or whose
    disks pause: nobody may conclude from it that they are gone."""

    def test_alone(self):
        self.stutter("boxes pause")

    def test_while_a_box_is_replaced(self):
        self.stutter("boxes pause while one is replaced", self.replace)

    def test_while_a_box_is_replaced_inband(self):
        self.data_path = "inband"
        self.stutter("boxes pause while one is replaced", self.replace)

    def test_while_a_box_is_taken_back(self):
        self.stutter("boxes pause while one is taken back", self.rejoin)

    def test_raid_6_while_a_box_is_replaced(self):
        self.level, self.boxes, self.spares = 6, (*self.boxes, "ivy"), ("gum",)
        self.stutter("boxes pause while one is replaced", self.replace)

    def test_mirror_while_a_box_is_replaced(self):
        self.level, self.boxes = 1, self.boxes[:3]
        self.stutter("boxes pause while one is replaced", self.replace)

    def test_nothing_but_reads_while_a_box_is_replaced(self):
        self.stutter("boxes pause under reads while one is replaced", self.replace,
                     self.start_reads)

    def test_nothing_but_reads_while_a_box_is_replaced_inband(self):
        self.data_path = "inband"
        self.stutter("boxes pause under reads while one is replaced", self.replace,
                     self.start_reads)

    def test_while_it_is_scrubbed(self):
        self.stutter("boxes pause during a scrub", self.scrub)


class Fairness(load_scenarios.Scenario):
    def test_single_writes_beside_deep_reads(self):
        self.single_beside_deep("randwrite", "randread")

    def test_single_reads_beside_deep_writes(self):
        self.single_beside_deep("randread", "randwrite")

    def test_deep_writes_of_four_hosts(self):
        self.write_deeply()


class Rebuilds(load_scenarios.Rebuild):
    depths = (0, 16, 64, 128)

    def test_third_party(self):
        self.compare(self.depths)

    def test_inband(self):
        self.data_path = "inband"
        self.compare(self.depths)


if __name__ == "__main__":
    unittest.main(verbosity=2)
