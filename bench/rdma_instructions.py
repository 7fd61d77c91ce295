#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per post and per poll, counted by callgrind: the same number on a noisy machine.

bench/rdma/post_and_poll_main.cpp marks each kind of call, and callgrind counts what is executed
inside, with all it calls; what the kernel does, and the moving of the bytes in between, is not
counted.

    bench/rdma_instructions.py [--rounds 100] [--json]
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/bench/bin/bench_post_and_poll"
PATIENCE_SECONDS = 300


def build():
    for command in (["cmake", "--preset", "bench"],
                    ["cmake", "--build", "--preset", "bench", "--target", PROGRAM.name]):
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"{done.stdout}\n{PROGRAM.name} could not be built; "
                     "tools/install-packages build bench brings what it needs")


def count(rounds):
    """By name of the call: instructions each."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--combine-dumps=no",
             f"--callgrind-out-file={folder}/counts", PROGRAM, str(rounds)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
        if done.returncode:
            sys.exit(f"{done.stderr}\n{PROGRAM.name} ended with status {done.returncode}")
        found = {}
        dumps = pathlib.Path(folder).iterdir()
        for dump in sorted(dumps, key=lambda path: path.stat().st_mtime_ns):
            text = dump.read_text()
            label = re.search(r"^desc: Trigger: Client Request: (.*) (\d+)$", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if label and total:
                found[label[1]] = int(total[1]) / int(label[2])
    if not found:
        sys.exit("callgrind left no counts")
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=100, help="of sixteen calls each")
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    if arguments.rounds < 1:
        options.error("--rounds is at least 1")
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing; tools/install-packages bench brings it")
    build()
    found = count(arguments.rounds)
    if arguments.json:
        print(json.dumps({"rounds": arguments.rounds, "instructions": found}))
        return
    print("| call | instructions |\n|---|--:|")
    for name, each in found.items():
        print(f"| {name} | {each:.0f} |")


if __name__ == "__main__":
    main()
