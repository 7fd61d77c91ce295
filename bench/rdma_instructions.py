#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per post and per poll, counted by callgrind: the same number on a noisy machine.

The program runs once for each of the two functions. Instructions are counted from its entry to its
return, with all it calls; what the kernel does is not seen. Names are matched as the debugger shows
them, with parameters; * matches anything. A name must match exactly one function on the way down,
for a second one inside the first would switch the counting off; and that function must not be
inlined. The program must call each as often as --count says.

    bench/rdma_instructions.py --post 'weft::…::post(*' --poll 'weft::…::poll(*' --count 10000 \\
        [--json] -- PROGRAM ARGUMENTS...
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE_SECONDS = 300


def instructions_within(function, command):
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder) / "counts"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--toggle-collect={function}",
             f"--callgrind-out-file={counts}", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE_SECONDS)
        if done.returncode:
            sys.exit(f"{done.stderr}\n{command[0]} ended with status {done.returncode}")
        total = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    if not total or not int(total[1]):
        sys.exit(f"{function} was never called, or was inlined; nm -C {command[0]} lists names")
    return int(total[1])


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--post", required=True, help="the function that posts")
    options.add_argument("--poll", required=True, help="the function that polls")
    options.add_argument("--count", required=True, type=int, help="calls of each")
    options.add_argument("--json", action="store_true")
    options.add_argument("command", nargs="+", metavar="PROGRAM")
    arguments = options.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing; tools/install-packages bench brings it")
    if arguments.count < 1:
        options.error("--count is at least 1")
    each = {name: instructions_within(function, arguments.command) / arguments.count
            for name, function in (("post", arguments.post), ("poll", arguments.poll))}
    if arguments.json:
        print(json.dumps({"count": arguments.count, "instructions": each}))
    else:
        print("| | instructions per call |\n|---|--:|")
        for name, instructions in each.items():
            print(f"| {name} | {instructions:.1f} |")


if __name__ == "__main__":
    main()
