#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libiscsi's suite against a volume's iSCSI export, with all its boxes and without one: minutes of
work, by `./test array`."""
import collections
import unittest

import array_test
import iscsi_suite
from array_test import VOLUME, lacks


class Suite(array_test.ArrayCase):
    def test_satisfies_libiscsis_suite_also_without_a_box(self):
        served = self.cluster.attach(VOLUME, "second", "--iscsi", "127.0.0.1:0").news()[0]
        [url] = [uri for uri in served["uris"] if uri.startswith("iscsi:")]
        for is_whole in (True, False):
            if not is_whole:
                self.cluster.boxes["fir"].kill()
                self.cluster.wait_until(VOLUME, lacks(3))
            found, said = iscsi_suite.run([url], timeout=300)
            counts = collections.Counter(outcome.verdict for outcome in found)
            failed = [outcome for outcome in found if outcome.verdict == "failed"]
            print(f"[{dict(counts)}] ", end="", flush=True)
            self.assertGreater(counts["passed"], 150, said)
            self.assertEqual(failed, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
