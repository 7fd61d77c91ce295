#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An array of real processes, none of which is broken, under load: its network is congested, its
boxes stand still for moments, it is read deeply while it writes and rebuilds. No request fails,
nobody is declared broken, nothing is lost. The short form of array_load_test.py, in which all
scenarios are. Skipped where there are no network namespaces."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("fio", "tc")
machines.on_path("tools")
import load_scenarios  # noqa: E402
from network_faults import can_congest  # noqa: E402


class Congested(load_scenarios.Scenario):
    @unittest.skipUnless(can_congest(), "this kernel has no tbf")
    def test_goes_on_over_congested_links(self):
        self.congest()

    def test_reads_inband_while_boxes_pause_and_one_is_replaced(self):
        self.data_path = "inband"
        self.stutter("boxes pause under reads while one is replaced", self.replace,
                     self.start_reads)

    def test_writes_beside_deep_reads(self):
        self.single_beside_deep("randwrite", "randread")


class Rebuilding(load_scenarios.Rebuild):
    def test_rebuilds_under_deep_reads(self):
        self.compare((0, 128))


if __name__ == "__main__":
    unittest.main(verbosity=2)
