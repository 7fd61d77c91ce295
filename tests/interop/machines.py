# SPDX-License-Identifier: Apache-2.0
"""Machines of their own, as far as the network can tell: a network namespace each, with a cable to
one switch. Cables are pulled, and two are kept from each other while all others reach both.

What is lost is lost in silence, as it is on a real wire: nobody is told by an error.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

CANNOT_RUN = 77
INSIDE = "WEFT_NAMESPACE"
# Nobody has it: what is sent there reaches no one.
NOBODY = "02:00:00:00:00:fe"
NEEDED = ("ip", "unshare", "nsenter", "setpriv")
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def sh(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def namespace_words(mounts):
    words = ["unshare", "--net", *(["--mount"] if mounts else [])]
    return words if os.geteuid() == 0 else [*words, "--map-root-user"]


def run_inside(*also_needed, mounts=False):
    """Runs this very program again in a network of its own, and ends with its status; with
    `mounts`, what it mounts is its own, too. Returns in that one; ends with 77 where there is no
    such network to be had."""
    if INSIDE in os.environ:
        return
    missing = [name for name in (*NEEDED, *also_needed) if not shutil.which(name)]
    alone = [*namespace_words(mounts), "ip", "link", "set", "lo", "up"]
    refused = not missing and subprocess.run(alone, capture_output=True).returncode != 0
    if missing or refused:
        print("skipped: " + (f"{missing[0]} is not installed" if missing
                             else "there are no network namespaces for us here"))
        sys.exit(CANNOT_RUN)
    os.environ[INSIDE] = "yes"
    words = [*namespace_words(mounts), sys.executable, *sys.argv]
    os.execvp(words[0], words)


class Switch:
    """What all cables lead to. Whoever made it is reached at 10.77.0.1."""

    def __init__(self):
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "switch", "type", "bridge")
        sh("ip", "address", "add", "10.77.0.1/24", "dev", "switch")
        sh("ip", "link", "set", "switch", "up")
        self.machines = {}

    def add(self, name):
        self.machines[name] = Machine(name, 10 + len(self.machines))
        return self.machines[name]

    def mend_all(self):
        for machine in self.machines.values():
            machine.let_in()
            for other in self.machines.values():
                machine.find(other)

    def end(self):
        for machine in self.machines.values():
            machine.end()
        sh("ip", "link", "delete", "switch")


class Machine:
    def __init__(self, name, number):
        self.name = name
        self.address = f"10.77.0.{number}"
        self.cable = f"cable{number}"
        self.lost = set()
        self.process = subprocess.Popen([*DIES_WITH_US, "unshare", "--net", "sleep", "infinity"])
        # The namespace is there when it is no longer ours.
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == own:
            time.sleep(0.01)
        sh("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "port", "netns",
           self.process.pid)
        sh("ip", "link", "set", self.cable, "master", "switch", "up")
        self.inside("ip", "address", "add", f"{self.address}/24", "dev", "port")
        for device in ("port", "lo"):
            self.inside("ip", "link", "set", device, "up")

    def enter(self):
        """Words before a command that is to run on this machine."""
        return [*DIES_WITH_US, "nsenter", "--target", str(self.process.pid), "--net"]

    def inside(self, *words):
        return sh(*self.enter(), *words)

    def cut_off(self):
        sh("ip", "link", "set", self.cable, "down")

    def let_in(self):
        sh("ip", "link", "set", self.cable, "up")

    def lose(self, other):
        """What we send to it does not arrive any more; what it sends to us does."""
        self.lost.add(other.name)
        self.inside("ip", "neighbour", "replace", other.address, "lladdr", NOBODY, "dev", "port",
                    "nud", "permanent")

    def find(self, other):
        if other.name in self.lost:
            self.inside("ip", "neighbour", "delete", other.address, "dev", "port")
            self.lost.remove(other.name)

    def end(self):
        # With the namespace its end of the cable would go too, but later.
        subprocess.run(["ip", "link", "delete", self.cable], capture_output=True)
        self.process.kill()
        self.process.wait()


def cut_between(one, two):
    one.lose(two)
    two.lose(one)


def mend_between(one, two):
    one.find(two)
    two.find(one)


def on_path(*folders):
    """Makes the modules of these folders of the tree importable."""
    top = pathlib.Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(top / folder) for folder in folders]
