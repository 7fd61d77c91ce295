#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A whole machine whose disk is a volume: ext4 on it, and kernel_files doing to files whatever
programs do, with fsck after every round. A process of its own, since the guest takes its network.

    guest_load.py SOCKET EXPORT SEED SECONDS

Says how far it is by lines of JSON; the last has "outcome", which is "ok", or a sentence."""
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))
import guest  # noqa: E402
import guest_disk  # noqa: E402

DISK = "/dev/vda"
ROUND_SECONDS = 120
SILENCE_SECONDS = 300  # of a load that hangs


def say(**what):
    print(json.dumps(what), flush=True)


class Load:
    def __init__(self, machine, seed, ends):
        self.machine, self.seed, self.ends = machine, seed, ends
        self.operations = self.octets = self.rounds = 0

    def one_round(self):
        seconds = max(5, min(ROUND_SECONDS, int(self.ends - time.monotonic())))
        words = f"kernel_files {guest_disk.FOLDER} {self.seed + self.rounds} {seconds}"
        guest_disk.mount(self.machine, DISK)
        with self.machine.start(words) as load:
            while load.running():
                time.sleep(1)
                counts = self.counts_in(load.output)
                say(operations=self.operations + counts[0], octets=self.octets + counts[1],
                    rounds=self.rounds)
            status = load.wait(SILENCE_SECONDS)
            if status != 0:
                raise AssertionError(f"seed {self.seed + self.rounds}: {load.output[-600:]}")
            counts = self.counts_in(load.output)
        self.operations += counts[0]
        self.octets += counts[1]
        self.rounds += 1
        self.machine.run(f"umount {guest_disk.FOLDER}", timeout=SILENCE_SECONDS)
        self.machine.run(f"fsck.ext4 -fn {DISK}", timeout=SILENCE_SECONDS)

    @staticmethod
    def counts_in(output):
        lines = [line.split() for line in output.splitlines() if line.startswith("operations ")]
        return (int(lines[-1][1]), int(lines[-1][3])) if lines else (0, 0)


def main(socket, export, seed, seconds):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        guest.require()
        guest.enter_private_network()
        machine = guest.Guest(disks=[guest_disk.served_by_nbd(socket, export)], entered=True)
    except guest.Unavailable as why:
        say(unavailable=str(why))
        return 77
    try:
        machine.run("modprobe virtio_blk")
        machine.mark_kernel_log("its disk is used")
        machine.run(f"mkfs.ext4 -q -F {DISK}", timeout=SILENCE_SECONDS)
        say(booted=True)
        load = Load(machine, int(seed), time.monotonic() + float(seconds))
        while time.monotonic() < load.ends:
            load.one_round()
        trouble = guest_disk.trouble(machine.kernel_log())
        if trouble:
            raise AssertionError("the guest's kernel says: " + "; ".join(trouble))
        say(operations=load.operations, octets=load.octets, rounds=load.rounds, outcome="ok")
        return 0
    except Exception as why:  # whatever it is, whoever started us wants it in one line
        say(outcome=f"{type(why).__name__}: {why}", console=machine.last_words())
        return 1
    finally:
        machine.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
