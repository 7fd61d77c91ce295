# SPDX-License-Identifier: Apache-2.0
"""What a network does that is not broken: it loses packets at random, its links are congested, and
the machines at its ends stand still for moments. Faults of machines.py's machines and of processes.

There is no delay among them: that takes netem, which many kernels lack. The queue of a congested
link delays what it does not drop.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import machines

ETHERNET_HEADER = 14  # not counted by the MTU
LOSS_RULES = """
table netdev losing {{
    counter arrived {{
    }}
    counter lost {{
    }}
    chain arriving {{
        type filter hook ingress device "port" priority 0; policy accept;
        counter name "arrived"
        numgen random mod 10000 < {per_10000} counter name "lost" drop
    }}
}}
"""


def can_lose():
    """Whether packets can be lost at random here: nft, and a kernel that obeys it."""
    if not shutil.which("nft"):
        return False
    probe = LOSS_RULES.format(per_10000=1).replace('"port"', '"lo"')
    done = subprocess.run(["unshare", "--net", "nft", "-f", "-"], input=probe, text=True,
                          capture_output=True)
    return done.returncode == 0


def can_congest():
    words = "unshare --net tc qdisc add dev lo root tbf rate 1gbit burst 16k limit 16k".split()
    return shutil.which("tc") and subprocess.run(words, capture_output=True).returncode == 0


class Drops:
    """How many packets were to arrive at a machine, and how many of them did not."""

    def __init__(self, packets=0, dropped=0):
        self.packets, self.dropped = packets, dropped

    def percent(self):
        return 100 * self.dropped / self.packets if self.packets else 0.0


def drops_text(drops):
    """Of several machines, by name: all together, and the one that lost most."""
    total = Drops(sum(each.packets for each in drops.values()),
                  sum(each.dropped for each in drops.values()))
    worst = max(drops, key=lambda name: drops[name].percent())
    return (f"{total.percent():.1f} % of {total.packets} packets dropped, "
            f"{drops[worst].percent():.1f} % at {worst} ({congestion_control()})")


def congestion_control():
    """Of TCP: what is dropped depends on it, too."""
    path = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return path.read_text(encoding="ascii").strip()


@contextlib.contextmanager
def one_packet_each(machine):
    """The kernel hands over up to 64 KiB as one packet between such machines, as long as no
    device refuses it: it would be dropped as one, too."""
    ends = [([], machine.cable), (machine.enter(), "port")]
    for enter, device in ends:
        machines.sh(*enter, "ip", "link", "set", "dev", device, "gso_max_segs", "1")
    try:
        yield
    finally:
        for enter, device in ends:
            machines.sh(*enter, "ip", "link", "set", "dev", device, "gso_max_segs", "65535")


@contextlib.contextmanager
def losing(machine, percent):
    """Of the packets that arrive at the machine, each is lost with this probability. Its counts
    are complete when the block is left."""
    drops = Drops()
    rules = LOSS_RULES.format(per_10000=round(percent * 100))
    with one_packet_each(machine):
        subprocess.run([*machine.enter(), "nft", "-f", "-"], input=rules, text=True, check=True,
                       capture_output=True)
        try:
            yield drops
        finally:
            said = json.loads(machine.inside("nft", "-j", "list", "counters"))["nftables"]
            counts = {each["counter"]["name"]: each["counter"]["packets"]
                      for each in said if "counter" in each}
            drops.packets, drops.dropped = counts["arrived"], counts["lost"]
            machine.inside("nft", "delete", "table", "netdev", "losing")


@contextlib.contextmanager
def congested(machine, rate, queue_packets):
    """What goes to the machine goes at this rate (as tc has it: "1gbit") through a queue of so
    many full packets, and what finds the queue full is dropped: a port of a small switch."""
    full = 1500 + ETHERNET_HEADER
    words = ["root", "tbf", "rate", rate, "burst", str(8 * full), "limit",
             str(queue_packets * full)]
    drops = Drops()
    machines.sh("tc", "qdisc", "add", "dev", machine.cable, *words)
    try:
        yield drops
    finally:
        [said] = json.loads(machines.sh("tc", "-s", "-j", "qdisc", "show", "dev", machine.cable,
                                        "root"))
        drops.packets, drops.dropped = said["packets"] + said["drops"], said["drops"]
        machines.sh("tc", "qdisc", "delete", "dev", machine.cable, "root")


@contextlib.contextmanager
def all_of(faults):
    """Several faults at once, by name; yields what each of them yields."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(fault) for name, fault in faults.items()}


class Stutter(threading.Thread):
    """Stops a process for a moment, drawn from `moments`, then another, again and again. Each of
    them is in the roles it is given, and goes on when stop() returns."""

    def __init__(self, roles, chance, moments=(0.06, 0.3), rests=(0.05, 0.3)):
        super().__init__(daemon=True)
        self.roles, self.chance, self.moments, self.rests = list(roles), chance, moments, rests
        self.stopping = threading.Event()
        self.times = 0
        self.longest = 0.0

    def run(self):
        while not self.stopping.wait(self.chance.uniform(*self.rests)):
            process = self.chance.choice(self.roles).process
            if process is None or process.poll() is not None:
                continue
            began = time.monotonic()
            os.kill(process.pid, signal.SIGSTOP)
            try:
                self.stopping.wait(self.chance.uniform(*self.moments))
            finally:
                os.kill(process.pid, signal.SIGCONT)
            self.times += 1
            self.longest = max(self.longest, time.monotonic() - began)

    def stop(self):
        self.stopping.set()
        self.join()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
