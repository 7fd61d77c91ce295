#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two controllers whose store is an etcd of three members, each in a network namespace of its own:
one is killed, one is cut off, both at once, and then the controller in office is killed too.

Runs itself in a namespace first, and is skipped where there is none to be had, or no etcd."""
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside("etcd")
import takeover_test  # noqa: E402
from cluster import Failed  # noqa: E402  (takeover_test says where it is)

MEMBERS = ("one", "two", "three")


class Member(machines.Machine):
    """A machine with an etcd on it."""

    def __init__(self, number, name, folder):
        super().__init__(name, 10 + number)
        self.folder = folder
        self.etcd = None

    def start(self, cluster):
        clients, peers = f"http://{self.address}:2379", f"http://{self.address}:2380"
        log = open(self.folder / f"etcd-{self.name}.log", "a", encoding="utf-8")
        self.etcd = subprocess.Popen(
            [*self.enter(), "etcd", "--name", self.name, "--data-dir", self.folder / self.name,
             "--listen-client-urls", clients, "--advertise-client-urls", clients,
             "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
             "--initial-cluster", cluster, "--heartbeat-interval", "100",
             "--election-timeout", "1000"], stdout=log, stderr=log)
        log.close()

    def kill(self):
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()
        self.etcd = None

    def end(self):
        self.kill()
        super().end()


class Etcd(takeover_test.TakeoverCase):
    lease = "5"  # an etcd that looks for a new leader takes a second or two of it

    def begin_store(self):
        self.addCleanup(machines.Switch().end)
        self.members = []
        for number, name in enumerate(MEMBERS):
            self.members.append(Member(number, name, self.path))
            self.addCleanup(self.members[-1].end)
        self.all = ",".join(f"{each.name}=http://{each.address}:2380" for each in self.members)
        for each in self.members:
            each.start(self.all)
        self.store = ("--etcd", ",".join(f"{each.address}:2379" for each in self.members))

    def goes_on(self, what):
        began = time.monotonic()
        self.report(what, self.time_to_resume(began))
        self.cluster.tell("volume", "status", takeover_test.VOLUME)

    def change_something(self):
        """That must be kept. Where its store is slow a controller may be in doubt for a moment."""
        for change in ("add", "remove"):
            until = time.monotonic() + 60
            while True:
                try:
                    self.cluster.tell("spare", change, "ivy")
                    break
                except Failed as refusal:
                    if "in office" not in str(refusal) or time.monotonic() > until:
                        raise
                    time.sleep(0.2)

    def test_outlives_members_and_controllers(self):
        one, two, three = self.members
        self.cluster.start_box("ivy", "64M")
        self.cluster.add_box("ivy")
        one.kill()
        self.goes_on("a member was killed")
        self.change_something()
        one.start(self.all)
        two.cut_off()
        self.goes_on("another was cut off")
        self.change_something()
        two.let_in()
        # Now there is no majority, and nobody can say who is in office.
        one.kill()
        three.cut_off()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(
                said.get("state") == "in doubt" for said in self.offices()):
            time.sleep(0.1)
        self.assertIn("in doubt", [said.get("state") for said in self.offices()])
        done = [len(writer.completed) for writer in self.writers]
        time.sleep(1)
        self.assertEqual(done, [len(writer.completed) for writer in self.writers],
                         "nothing is done under a lease that has run out")
        three.let_in()
        self.goes_on("the majority is back")
        in_office = next(said for said in self.offices() if said.get("state") == "in office")
        victim = next(role for role in (self.cluster.controller, self.cluster.standbys["standby"])
                      if role.address() == in_office["address"])
        began = time.monotonic()
        victim.kill()
        self.report("the controller was killed, with two members of three",
                    self.time_to_resume(began))
        self.finish()


if __name__ == "__main__":
    unittest.main(verbosity=2)
