#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./run shows: an array of five boxes that loses one and heals, and is then left running.

    tools/demo.py WEFT FOLDER
"""
import hashlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

from cluster import Cluster, Failed

BOXES = ("oak", "elm", "ash", "fir", "yew")
LOST, NEWCOMER = "ash", "ivy"
VOLUME = "photos"
BOX_SIZE, VOLUME_SIZE = "128M", "320M"
DATA_BYTES = 256 << 20
NBD, ISCSI = "127.0.0.1:10809", "127.0.0.1:3260"
CONTROLLER = "127.0.0.1:7800"


def say(text=""):
    print(text, flush=True)


def make_data(path):
    """Octets that no compression and no luck could bring back; their hash."""
    hashed = hashlib.sha256()
    with open(path, "wb") as file:
        for _ in range(DATA_BYTES >> 20):
            octets = os.urandom(1 << 20)
            hashed.update(octets)
            file.write(octets)
    return hashed.hexdigest()


def hash_of(path):
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        left = DATA_BYTES
        while left:
            octets = file.read(min(left, 1 << 20))
            hashed.update(octets)
            left -= len(octets)
    return hashed.hexdigest()


class Demo:
    def __init__(self, weft, folder):
        self.cluster = Cluster(weft, folder)
        self.folder = folder
        self.data = folder / "data"
        self.back = folder / "read-back"

    def weft(self, *words):
        """In the foreground: its progress is for people to see."""
        done = subprocess.run([self.cluster.weft, *map(str, words)], stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"weft {' '.join(map(str, words))} ended with {done.returncode}")

    def build(self):
        say(f"Starting a controller and {len(BOXES)} boxes, each a process with a file for a disk.")
        self.cluster.start_controller(CONTROLLER)
        for name in BOXES:
            self.cluster.start_box(name, BOX_SIZE)
            self.cluster.add_box(name)
        volume = self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes",
                                   ",".join(BOXES), "--chunk", "128K", "--size", VOLUME_SIZE)
        self.cluster.attach(VOLUME, "host", "--nbd", NBD, "--iscsi", ISCSI)
        say(f"The volume {VOLUME} is there: {volume['size'] >> 20} MiB, RAID 5 on "
            f"{', '.join(BOXES)}.")

    def url(self):
        return f"nbd://{NBD}/{VOLUME}"

    def read_back(self, expected, when):
        self.weft("disk", "copy", self.url(), self.back)
        if hash_of(self.back) != expected:
            raise Failed(f"what was read {when} is not what was written")
        say(f"Every octet is what was written ({when}): sha256 {expected[:16]}…")
        self.back.unlink()

    def show(self):
        expected = make_data(self.data)
        say(f"\nWriting {DATA_BYTES >> 20} MiB of random data through NBD:")
        self.weft("disk", "copy", self.data, self.url())

        lost = self.cluster.boxes[LOST]
        say(f"\nNow box {LOST} dies: kill -9 {lost.process.pid}.")
        lost.kill()
        say("Reading everything back without it:")
        self.read_back(expected, f"{LOST} is gone")
        self.cluster.wait_until(VOLUME, lambda status: any(
            member["state"] == "absent" for member in status["members"]))

        say(f"\nA new, empty box {NEWCOMER} takes its place:")
        self.cluster.start_box(NEWCOMER, BOX_SIZE)
        self.cluster.add_box(NEWCOMER)
        self.cluster.tell("member", "replace", VOLUME, LOST, NEWCOMER)
        self.cluster.wait_until(VOLUME, lambda status: status["rebuilds"] or
                                status["state"] == "healthy")
        self.weft("rebuild", "status", VOLUME, *self.cluster.by_key())
        self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.cluster.tell("box", "remove", LOST)
        self.read_back(expected, f"{NEWCOMER} is whole")
        self.data.unlink()

    def leave_running(self):
        controller = shlex.join(self.cluster.by_key())
        weft = os.path.relpath(self.cluster.weft)
        say(f"""
The array stays as it is until Ctrl-C. In another terminal:

    nbdcopy --progress {self.url()} - | sha256sum
    qemu-img info {self.url()}
    iscsi-ls -s iscsi://{ISCSI}
    {weft} volume status {VOLUME} {controller}
    {weft} events {controller}
    kill -9 {self.cluster.boxes["oak"].process.pid}        # box oak; then look again
""")
        while self.cluster.controller.alive():
            time.sleep(0.2)
        raise Failed("the controller has ended")


def main():
    folder = pathlib.Path(sys.argv[2]).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    demo = Demo(sys.argv[1], folder)

    def interrupted(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, interrupted)
    status = 0
    try:
        demo.build()
        demo.show()
        demo.leave_running()
    except Failed as why:
        print(f"demo: {why}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        say("\nStopping the array.")
    finally:
        for told_twice in (signal.SIGINT, signal.SIGTERM):
            signal.signal(told_twice, signal.SIG_IGN)
        demo.cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
