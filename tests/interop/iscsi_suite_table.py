#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs libiscsi's suite against every kind of target, and writes the table docs/iscsi-suite.md.

    WEFT=build/release/bin/weft iscsi_suite_table.py [COLUMN]... [--output FILE]

Without names all columns are run. It fails if a test of a column of ours did not pass or skip, and
the tool itself is not known to be the reason: see iscsi_suite_notes.py.
"""
import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import iscsi_suite
from dropin import free_port
from iscsi_suite_notes import LEGEND, NOTES
from weft_export import IscsiExport, run

TOGETHER = {"iSCSITMF"}  # its second test reads what only its first sets
ERASING = {"Sanitize.Reset": ("--erasure-time", "8")}  # it looks whether the erasure still goes on
SECONDS = 150  # Sanitize.Reset sleeps for a minute


@dataclasses.dataclass
class Column:
    name: str
    words: str  # what is tested, for people
    options: tuple = ()
    scheme: str = "iscsi"
    paths: int = 1
    ours: bool = True
    flags: tuple = ("-d",)  # of the suite
    apart: bool = True  # each test in a process of its own, on a fresh target
    only: str = ""


BEST = ("--memory", "128M", "--removable")
COLUMNS = [
    Column("plain", "ours, iscsi://, as it comes, one process", ("--memory", "128M"), apart=False),
    Column("thick", "ours, iscsi://, `--thick`, one process", ("--memory", "128M", "--thick"),
           apart=False),
    Column("best", "ours, iscsi://, removable, two paths, `-S`", BEST, paths=2, flags=("-d", "-S")),
    Column("large", "ours, the same with physical blocks of 4096",
           (*BEST, "--physical-block", "4096"), paths=2, flags=("-d", "-S")),
    Column("protected", "ours, iscsi://, write-protected, without `-d`",
           ("--memory", "128M", "--read-only"), flags=()),
    Column("read-only", "ours, iscsi://, write-protected, `-d`, the test made for it",
           ("--memory", "128M", "--read-only"), only="ReadOnly.ReadOnlySBC"),
    Column("iser", "ours, iser://, removable, two paths, `-S`", BEST, scheme="iser", paths=2,
           flags=("-d", "-S")),
    Column("iser-large", "ours, iser://, the same with physical blocks of 4096",
           (*BEST, "--physical-block", "4096"), scheme="iser", paths=2, flags=("-d", "-S")),
    Column("iser-read-only", "ours, iser://, write-protected, `-d`, the test made for it",
           ("--memory", "128M", "--read-only"), scheme="iser", only="ReadOnly.ReadOnlySBC"),
    Column("tgtd", "tgtd 1.0.85, iscsi://, as it comes, one process", ours=False, apart=False),
    Column("tgtd-best", "tgtd, thin, removable, two paths, `-S`, one target for all",
           ("thin_provisioning=1,removable=1",), ours=False, paths=2, flags=("-d", "-S")),
]


def all_tests():
    listed = run("iscsi-test-cu", "-l").split()
    return [name[4:] for name in listed if name.startswith("ALL.") and name.count(".") == 2]


class Tgtd:
    """Debian's target with one unit in a file, on ports of its own."""

    NAME = "iqn.2026-11.example.weft:tgtd"

    def __init__(self, parameters=()):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name)
        disk = path / "disk.img"
        with open(disk, "wb") as file:
            file.truncate(100 << 20)
        port = free_port()
        self.environment = {**os.environ, "TGT_IPC_SOCKET": str(path / "control")}
        self.process = subprocess.Popen(
            ["tgtd", "-f", "--iscsi", f"portal=127.0.0.1:{port}"], env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.uri = f"iscsi://127.0.0.1:{port}/{self.NAME}/1"
        for _ in range(100):
            with contextlib.suppress(AssertionError):
                self.administer("target", "new", "--tid", "1", "--targetname", self.NAME)
                break
            time.sleep(0.1)
        self.administer("logicalunit", "new", "--tid", "1", "--lun", "1", "--backing-store", disk)
        for each in parameters:
            self.administer("logicalunit", "update", "--tid", "1", "--lun", "1", "--params", each)
        self.administer("target", "bind", "--tid", "1", "--initiator-address", "ALL")

    def administer(self, mode, operation, *words):
        run("tgtadm", "--lld", "iscsi", "--mode", mode, "--op", operation, *words,
            env=self.environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # as long as it has targets, it stays when it is asked to go
        self.process.wait()
        self.folder.cleanup()


def target_of(column, test=None):
    if not column.ours:
        return Tgtd(column.options)
    return IscsiExport(*column.options, *ERASING.get(test, ()))


def run_part(column, test, expected, shared=None):
    """Outcomes of one process, and one for each test that it did not come to."""
    with contextlib.nullcontext(shared) if shared else target_of(column, test) as target:
        uri = target.uri.replace("iscsi:", f"{column.scheme}:")
        found, ended, _ = iscsi_suite.run_process(
            [uri] * column.paths, f"ALL.{test}" if test else "ALL", column.flags,
            SECONDS if test else 900)
    found = {each.name: each for each in found}
    for name in expected:
        if name not in found or (ended and name == list(found)[-1]):
            found[name] = iscsi_suite.Outcome(name, "crashed", ended or "it did not come to it")
    return [found[name] for name in expected]


def run_column(column, tests):
    tests = [name for name in tests if column.only in name]
    if not column.apart:
        return run_part(column, None, tests)
    found, done = [], set()
    with contextlib.ExitStack() as stack:
        shared = None if column.ours else stack.enter_context(target_of(column))
        for test in tests:
            suite = test.split(".")[0]
            if suite in done:
                continue
            if suite in TOGETHER:
                done.add(suite)
                found += run_part(column, suite, [each for each in tests
                                                  if each.startswith(f"{suite}.")], shared)
            else:
                found += run_part(column, test, [test], shared)
    return found


def note_of(column, outcome):
    """Why the tool itself is the reason, if that is known."""
    return NOTES.get((column.scheme if column.ours else "tgtd", outcome.name)) or NOTES.get(
        (column.name, outcome.name))


def table(columns, results, tests):
    """The whole document."""
    signs = {"passed": "·", "skipped": "skip", "failed": "**fail**", "crashed": "**crash**"}
    lines = [LEGEND, "", "| column | target | passed | failed | of those the tool's | skipped |",
             "|---|---|--:|--:|--:|--:|"]
    for column in columns:
        counts = collections.Counter(each.verdict for each in results[column.name].values())
        excused = sum(each.verdict in ("failed", "crashed") and note_of(column, each) is not None
                      for each in results[column.name].values())
        lines.append(f"| {column.name} | {column.words} | {counts['passed']} | "
                     f"{counts['failed'] + counts['crashed']} | {excused} | {counts['skipped']} |")
    lines += ["", "| test | " + " | ".join(column.name for column in columns) + " |",
              "|---|" + "---|" * len(columns)]
    reasons = {}
    for test in tests:
        cells = []
        for column in columns:
            outcome = results[column.name].get(test)
            cell = signs[outcome.verdict] if outcome else ""
            if outcome and outcome.verdict in ("failed", "crashed"):
                if note := note_of(column, outcome):
                    cell += f" ({reasons.setdefault(note, len(reasons) + 1)})"
            cells.append(cell)
        lines.append(f"| {test} | " + " | ".join(cells) + " |")
    lines += ["", "## Where the tool is the reason", ""]
    lines += [f"{number}. {note}" for note, number in reasons.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("columns", nargs="*", metavar="COLUMN")
    parser.add_argument("--output", type=pathlib.Path)
    wishes = parser.parse_args()
    columns = [each for each in COLUMNS if not wishes.columns or each.name in wishes.columns]
    tests, results, unexplained = all_tests(), {}, []
    for column in columns:
        began = time.monotonic()
        results[column.name] = {each.name: each for each in run_column(column, tests)}
        counts = collections.Counter(each.verdict for each in results[column.name].values())
        print(f"{column.name}: " +
              ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) +
              f", {time.monotonic() - began:.0f} s", flush=True)
        for each in results[column.name].values():
            bad = each.verdict in ("failed", "crashed")
            if bad and column.ours and note_of(column, each) is None:
                unexplained.append(each)
                print(f"  {each.name} {each.verdict}: {each.why}", flush=True)
    text = table(columns, results, tests)
    if wishes.output:
        wishes.output.write_text(text, encoding="utf-8")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
