#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An array of real processes that is broken by chance, for as long as one likes.

    soak.py [MINUTES] [--seed N] [--json] [--no-guest] [--store etcd|file] [--gray] [--keep]

Six boxes, two controllers, three volumes with a journal, each process on a machine of its own.
Versions of every block are known on two of the volumes (shadow.py), fio verifies on one of them,
and the third is the disk of a whole Linux whose files are known (guest_load.py). Whatever is found
ends it at once, and keeps all logs. It needs $WEFT, and for the guest root and its image; a soak
without a guest, because there can be none here, ends with status 77, which is no pass."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
import machines  # noqa: E402

machines.run_inside("fio")
from faulty_array import FaultyArray, Fio, connect_to  # noqa: E402
from false_alarms import Silences, false_alarms, last_number  # noqa: E402
from faults import GRAY, Faults  # noqa: E402
from report import Report, clock, show_octets  # noqa: E402
from shadow import BLOCK, Shadow  # noqa: E402

BOXES = ("oak", "elm", "ash", "fir", "yew", "ivy")
MIB = 1 << 20
LEASE = 5
CALM_SECONDS = (0.5, 4)   # of health between two faults
END_SECONDS = 600         # what has begun by the end may take so long to end


class Guest:
    """guest_load.py, and what it said last."""

    def __init__(self, socket, export, seed, seconds, log):
        here = pathlib.Path(__file__).resolve().parent
        self.log = log
        self.last = {}
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [*machines.DIES_WITH_US, sys.executable, here / "guest_load.py", socket, export,
                 str(seed), str(seconds)], stdout=subprocess.PIPE, stderr=errors, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.last.update(json.loads(line))
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(line)

    def complain(self):
        if self.last.get("outcome", "ok") != "ok":
            raise AssertionError(f"the guest: {self.last['outcome']}")
        if self.process.poll() not in (None, 0, 77):
            raise AssertionError(f"the guest's process ended; see {self.log}")

    def unavailable(self):
        return self.last.get("unavailable")

    def wait_until_booted(self, seconds=300):
        deadline = time.monotonic() + seconds
        while not (self.last.get("booted") or self.unavailable()):
            self.complain()
            if time.monotonic() > deadline:
                raise AssertionError(f"the guest has not booted in {seconds} s")
            time.sleep(0.1)

    def wait(self):
        self.process.wait(END_SECONDS)
        time.sleep(0.5)  # the last line may still be read
        self.complain()
        if not self.unavailable() and "outcome" not in self.last:
            raise AssertionError(f"the guest has not told how it ended; see {self.log}")

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.chance = random.Random(options.seed)
        self.report = Report(options)
        self.array = self.guest = self.fio = None
        self.shadows = {}
        self.hit = []  # names of who is under a fault now

    def begin(self):
        self.say(f"seed {self.options.seed}, logs in {self.folder}")
        self.array = FaultyArray(self.folder, BOXES, box_size="512M", lease=str(LEASE),
                                 etcd=self.options.store == "etcd")
        self.array.create("photos", 5, BOXES[:5], "--size", "64M")
        self.array.create("films", 6, BOXES, "--size", "48M")
        self.array.create("disk", 6, BOXES, "--size", "160M")
        uris = {name: self.array.attach(volume, name) for volume, name in (
            ("photos", "anna"), ("photos", "bert"), ("films", "cleo"), ("disk", "dora"))}
        self.fio = Fio(uris["bert"], 32 * MIB, seconds=20, rate="3m")
        for name, first in (("anna", 32 * MIB), ("cleo", 0)):
            self.shadows[name] = Shadow(
                connect_to(uris[name]), self.options.seed, first // BLOCK, 32 * MIB // BLOCK,
                writers=3, losses=lambda name=name: self.array.kills[name])
        if self.options.guest:
            self.guest = Guest(self.folder / "dora.sock", "disk", self.options.seed,
                               self.options.minutes * 60, self.folder / "guest.log")
            self.guest.wait_until_booted()
            if self.guest.unavailable():
                self.say(f"without the guest: {self.guest.unavailable()}")
        self.fio.start()
        for shadow in self.shadows.values():
            shadow.start()
        self.began = time.monotonic()
        self.ends = self.began + self.options.minutes * 60

    def say(self, text):
        print(text, file=sys.stderr if self.options.json else sys.stdout, flush=True)

    def volumes(self):
        return ("photos", "films", "disk")

    def complain(self):
        """Raises what anybody has found."""
        for each in (*self.shadows.values(), self.fio, self.guest):
            if each:
                each.complain()
        roles = [*self.array.controllers(), *self.array.cluster.boxes.values(),
                 *self.array.cluster.hosts.values()]
        for role in roles:
            if role.name not in self.hit and not role.alive():
                raise AssertionError(f"{role.name} has ended by itself, status "
                                     f"{role.process.returncode}: {role.log.read_text()[-500:]}")

    def rest(self, seconds):
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self.complain()
            time.sleep(min(left, 0.2))

    def suffer(self):
        kind, who, fault, seconds = self.report.drawn(self.faults.draw())
        for shadow in self.shadows.values():
            shadow.pauses.fault()
        self.hit = [role for role in (*self.array.cluster.boxes, "controller", "standby")
                    if who == ["all"]] or ([] if kind in GRAY else who)
        said_before = last_number(self.array.cluster.tell("events"))
        hit_at = time.monotonic()
        with Silences(self.array) as silences:
            with fault:
                self.rest(seconds)
            over_at = time.monotonic()
            self.hit = []
            for shadow in self.shadows.values():
                shadow.wait_until_all_go_on()
            for volume in self.volumes():
                self.array.wait_until_healthy(volume, self.complain)
        self.complain()
        if kind in GRAY:
            self.expect_no_alarm(said_before, silences)
        pauses = [shadow.pauses for shadow in self.shadows.values()]
        self.report.suffered(kind, lasted=over_at - hit_at,
                             first=max(each.first for each in pauses),
                             longest=max(each.longest for each in pauses))
        now = time.monotonic()
        self.say(f"{clock(now - self.began)}, {clock(self.ends - now)} left: "
                 f"{self.report.last_line(kind, who)}, healthy {now - over_at:.1f} s after; "
                 f"{self.progress()}")

    def expect_no_alarm(self, number, silences):
        """In the events since that one: everybody was there, if late."""
        said = [each for each in self.array.cluster.tell("events") if each["number"] > number]
        if alarms := [what for box, what in false_alarms(said) if not silences.excuse(box, what)]:
            raise AssertionError("nobody was broken, but: " + "; ".join(alarms[:8]))

    def progress(self):
        counts = self.counts()
        said = f"{counts['requests']} requests, {show_octets(counts['octets'])}"
        if self.guest:
            said += f", guest {counts['guest_operations']} operations"
        return said

    def counts(self):
        def of_shadows(what):
            return sum(shadow.count(what) for shadow in self.shadows.values())
        last = self.guest.last if self.guest else {}
        return {"shadow_writes": of_shadows("writes"), "shadow_reads": of_shadows("reads"),
                "shadow_octets": of_shadows("octets"), "unanswered_writes": of_shadows("undecided"),
                "fio_requests": self.fio.requests, "fio_octets": self.fio.octets,
                "guest_operations": last.get("operations", 0),
                "guest_octets": last.get("octets", 0), "guest_rounds": last.get("rounds", 0),
                "requests": of_shadows("writes") + of_shadows("reads") + self.fio.requests,
                "octets": of_shadows("octets") + self.fio.octets + last.get("octets", 0)}

    def run(self):
        self.begin()
        self.faults = Faults(self.array, self.chance, ["anna", "cleo", "dora"], LEASE)
        if self.options.gray:
            self.faults.keep_only(GRAY)
        while time.monotonic() < self.ends:
            self.rest(self.chance.uniform(*CALM_SECONDS))
            self.suffer()
        self.say("the time is over: everything is read again, and scrubbed")
        self.fio.stop()
        for shadow in self.shadows.values():
            shadow.stop()
        if self.guest:
            self.guest.wait()
        for volume in self.volumes():
            self.report.scrubbed[volume] = self.array.scrub(volume)["mismatches"]

    def end(self):
        if self.guest:
            self.guest.end()
        if self.array:
            self.report.unclean = self.array.end()

    def keep_evidence(self):
        """What the array says of itself, while it can still be asked."""
        if not self.array:
            return
        questions = [("controller", "status"), ("events",), ("slow-ops",), ("box", "list"),
                     *(("volume", "status", volume) for volume in self.volumes())]
        for words in questions:
            try:
                said = self.array.cluster.tell(*words, timeout=20)
            except Exception as why:
                said = str(why)
            path = self.folder / f"evidence-{'-'.join(words)}.json"
            path.write_text(json.dumps(said, indent=1))


def options_of(words):
    parser = argparse.ArgumentParser(description="Breaks an array by chance, for so many minutes.")
    parser.add_argument("minutes", nargs="?", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--no-guest", dest="guest", action="store_false")
    parser.add_argument("--store", choices=("etcd", "file"), default="etcd")
    parser.add_argument("--gray", action="store_true", help="only faults that break nothing")
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    return parser.parse_args(words)


def stop_at_signal(*_):
    raise KeyboardInterrupt


def main(words):
    options = options_of(words)
    if options.store == "etcd" and not shutil.which("etcd"):
        options.store = "file"
    signal.signal(signal.SIGTERM, stop_at_signal)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-soak-"))
    soak = Soak(options, folder)
    failure = None
    try:
        soak.run()
    except BaseException as why:
        failure = why
        soak.keep_evidence()
    finally:
        counts = soak.counts() if soak.fio else {}
        soak.end()
    no_guest = soak.guest.unavailable() if soak.guest else None
    soak.report.finish(counts, failure, folder, soak.shadows.values())
    soak.report.show(no_guest)
    if failure:
        return 1
    if not options.keep:
        shutil.rmtree(folder)
    return machines.CANNOT_RUN if no_guest else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
