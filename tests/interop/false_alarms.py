# SPDX-License-Identifier: Apache-2.0
"""Which events of an array say that something is broken. None of them may be about a box, a link, a
host or a controller that nobody has touched, with one exception: a box from which the controller
has heard nothing for the documented silence is absent, whatever has kept it silent."""
import math
import re
import threading

SILENCE_SECONDS = 10  # docs/failures.md, 32
SAMPLE_SECONDS = 0.3

BROKEN = re.compile(
    r"box (lost|failed|refused|fenced)|\babsent\b|fenced|removed from|unreachable"
    r"|not reach|down:|volume stopped|given up|beyond repair|could not be repaired|mismatch"
    r"|did not add up|lost a write|lost its power|has forgotten|epoch")
ABSENT = re.compile(r"box lost|\babsent\b|fenced|down:|is rebuilding")


def last_number(events):
    return max((each["number"] for each in events), default=0)


def false_alarms(events, touched=()):
    """Those that say so of none of the boxes `touched`: (box, sentence)."""
    return [(each["box"], f"'{each['box']}: {each['what']}'") for each in events
            if BROKEN.search(each["what"]) and each["box"] not in touched
            and not set(touched) & set(each["what"].split())]


class Silences(threading.Thread):
    """For how long the controllers have heard nothing from a box, as the kernel has it: looked at
    again and again, the longest is kept."""

    def __init__(self, array):
        super().__init__(daemon=True)
        self.controllers = [array.machine(role) for role in array.controllers()]
        self.boxes = {array.switch.machines[name].address: name for name in array.cluster.boxes}
        self.longest = {}  # seconds, by box
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(SAMPLE_SECONDS):
            for machine in self.controllers:
                self.sample(machine.inside("ss", "-tinOH", "state", "established"))

    def sample(self, said):
        """A line for each connection: queues, our address, the other's, and facts."""
        now = {}
        for line in said.splitlines():
            box = self.boxes.get(line.split()[3].rpartition(":")[0])
            since = re.search(r" lastrcv:(\d+)", line)
            if box and since:
                now[box] = min(now.get(box, math.inf), int(since[1]) / 1000)
        for box, seconds in now.items():
            self.longest[box] = max(self.longest.get(box, 0), seconds)

    def excuse(self, box, what):
        """Whether the box is absent for its silence. The last sample is from a little before."""
        return (ABSENT.search(what)
                and self.longest.get(box, 0) > SILENCE_SECONDS - 3 * SAMPLE_SECONDS)

    def stop(self):
        self.stopping.set()
        self.join()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
