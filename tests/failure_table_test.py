#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every case of the failure table has a test of its name and a row in docs/failures.md."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = range(1, 42)
TEST = re.compile(r"^TEST(?:_F|_P)?\(FailureTable\w*,\s*Case(\d\d)_(\w+)\)", re.MULTILINE)
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)


def tests():
    found = {}
    for path in sorted((ROOT / "src").rglob("*_test.cpp")):
        for case, name in TEST.findall(path.read_text()):
            found.setdefault(int(case), []).append(name)
    return found


class FailureTable(unittest.TestCase):
    def test_has_a_test_for_every_case(self):
        found = tests()
        self.assertEqual([case for case in CASES if case not in found], [], "cases without a test")
        self.assertEqual([case for case in found if case not in CASES], [], "no such cases")

    def test_names_say_the_case_and_its_outcome(self):
        for case, names in tests().items():
            for name in names:
                self.assertRegex(name, r"^[A-Z]\w+_[A-Z]\w+$", f"case {case}")

    def test_is_told_to_people_row_by_row(self):
        text = (ROOT / "docs/failures.md").read_text()
        rows = [int(number) for number, _ in ROW.findall(text)]
        self.assertEqual(sorted(rows), list(CASES))

    def test_reads_no_clock_that_people_set(self):
        """Case 33. What is shown to people may be told in their time; nothing else may."""
        def readers(pattern):
            return {
                str(path.relative_to(ROOT))
                for folder in ("src", "include")
                for path in (ROOT / folder).rglob("*.?pp")
                if not path.name.endswith("_test.cpp") and re.search(pattern, path.read_text())
            }
        clock = r"\b(system_clock|CLOCK_REALTIME|gettimeofday|time\(nullptr\))"
        self.assertEqual(readers(clock), {"src/cli/controller_desk.cpp", "src/linux/world.hpp"})
        # What happened, and when a slow request began.
        self.assertEqual(readers(r"(\.|->)date\(\)"),
                         {"src/cli/controller_desk.cpp", "src/node/event_book.cpp"})


if __name__ == "__main__":
    unittest.main()
