#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs libiscsi's test suite and says truly how each test ended.

    iscsi_suite.py URL [URL] [--test NAME] [--sanitize] [--json] [--output FILE]

iscsi-test-cu counts a test that skipped itself as passed. What it prints with -V tells them apart:
a test is skipped if it said so anywhere, and failed if an assertion of it did.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HEADING = re.compile(r"(?m)^(Suite|  Test): (.*?)(?: \.\.\.|$)")
ASSERTION = re.compile(r"(?m)^\s+\d+\. .*:\d+ ")
FAILED = re.compile(r"(?m)^FAILED|\.\.\.FAILED")
SKIPPED = re.compile(r"\[SKIPPED\] *(.*)")
SAID = re.compile(r"\[FAILED\] *(.*)")

Outcome = collections.namedtuple("Outcome", "name verdict why")


def outcomes(text):
    """Each test of the suite's output, in order."""
    headings = list(HEADING.finditer(text))
    suite = ""
    found = []
    for heading, following in zip(headings, headings[1:] + [None]):
        if heading[1] == "Suite":
            suite = heading[2].strip()
            continue
        body = text[heading.start():following.start() if following else len(text)]
        skipped, said = SKIPPED.findall(body), SAID.findall(body)
        if FAILED.search(body) or ASSERTION.search(body):
            verdict, why = "failed", said[:1] or ["an assertion"]
        elif skipped:
            verdict, why = "skipped", skipped[:1]
        else:
            verdict, why = "passed", [""]
        found.append(Outcome(f"{suite}.{heading[2].strip()}", verdict, why[0]))
    return found


def run_process(urls, test="ALL", flags=("-d",), timeout=900):
    """The outcomes of a run against these URLs (a second one is a second path), how the tool ended
    if not by itself, and what it said. Over iSER it runs on our libraries."""
    command = ["iscsi-test-cu", "-V", *flags, "-t", test, *urls]
    environment = {}
    if urls[0].startswith("iser:"):
        command = [os.environ["WEFT"], "run", *command]
        # Its own faults, of which it would die otherwise: see iscsi_suite_notes.py.
        zeroed = pathlib.Path(os.environ["WEFT"]).parent / "libzeroed_malloc.so"
        environment = {"LIBISCSI_CACHE_ALLOCATIONS": "0", "LD_PRELOAD": str(zeroed)}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, env={**os.environ, **environment})
        ended = None
        try:
            status = process.wait(timeout)
            if status < 0:
                ended = f"signal {-status}, {signal.Signals(-status).name}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            ended = f"it did not end in {timeout} seconds"
        output.seek(0)
        text = output.read().decode(errors="replace")
    return outcomes(text), ended, text


def run(urls, test="ALL", sanitize=False, timeout=900):
    """The outcomes of a run of destructive tests, and its output."""
    found, _, text = run_process(urls, test, ("-d", "-S") if sanitize else ("-d",), timeout)
    return found, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--test", default="ALL")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", help="keep what the suite said here")
    wishes = parser.parse_args()
    found, text = run(wishes.urls, wishes.test, wishes.sanitize)
    if wishes.output:
        with open(wishes.output, "w", encoding="utf-8") as file:
            file.write(text)
    if wishes.json:
        print(json.dumps([outcome._asdict() for outcome in found], indent=1))
        return
    counts = collections.Counter(outcome.verdict for outcome in found)
    print(f"{len(found)} tests: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['skipped']} skipped")
    for outcome in found:
        if outcome.verdict != "passed":
            print(f"  {outcome.name} {outcome.verdict}: {outcome.why}")
    sys.exit(1 if counts["failed"] or not found else 0)


if __name__ == "__main__":
    main()
