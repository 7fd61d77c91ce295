# SPDX-License-Identifier: Apache-2.0
"""A whole array of real processes, each on a machine of its own, and what can happen to it: kills,
pauses, cables pulled. For array_faults_test.py and the soak."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time

import machines
import nbd

machines.on_path("tools")
from cluster import Cluster, Failed  # noqa: E402

WEFT = os.environ["WEFT"]
HEALTHY_SECONDS = 180
INTERRUPTED = 130


class Store:
    """An etcd of one member, on a machine of its own."""

    def __init__(self, machine, folder):
        self.address = f"{machine.address}:2379"
        clients, peers = f"http://{self.address}", f"http://{machine.address}:2380"
        with open(folder / "etcd.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*machine.enter(), "etcd", "--name", "one", "--data-dir", folder / "etcd",
                 "--listen-client-urls", clients, "--advertise-client-urls", clients,
                 "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                 "--initial-cluster", f"one={peers}"], stdout=log, stderr=log)

    def end(self):
        self.process.kill()
        self.process.wait()


class FaultyArray:
    """Two controllers and these boxes; volumes are added, and hosts. end() ends all of it.
    `serves` are further words for both controllers."""

    def __init__(self, folder, boxes, box_size="96M", lease="2", etcd=False, serves=()):
        self.folder = folder
        self.serves = serves
        self.switch = machines.Switch()
        self.store = None
        self.cluster = Cluster(WEFT, folder, before=self.before)
        self.kills = {}  # by name
        try:
            self.begin(boxes, box_size, lease, etcd)
        except BaseException:
            self.end()
            raise

    def begin(self, boxes, box_size, lease, etcd):
        words = ["--lease", lease, *self.serves]
        if etcd:
            self.store = Store(self.switch.add("store"), self.folder)
            words += ["--etcd", self.store.address]
        for name in ("controller", "standby", *boxes):
            self.switch.add(name)
        self.cluster.start_controller(self.door("controller"), "--standby", *words)
        self.cluster.start_standby("standby", self.door("standby"), *words)
        for name in boxes:
            self.cluster.start_box(name, box_size, self.door(name))
            self.cluster.add_box(name)

    def before(self, name):
        machine = self.switch.machines.get(name)
        return machine.enter() if machine else []

    def door(self, name):
        return f"{self.switch.machines[name].address}:7800"

    def machine(self, role):
        return self.switch.machines[role.name]

    def create(self, volume, level, boxes, *more, consistency="journal"):
        return self.cluster.tell("volume", "create", volume, "--level", level, "--boxes",
                                 ",".join(boxes), "--chunk", "64K", "--consistency", consistency,
                                 *more)

    def attach(self, volume, name):
        """A host of that name, on a machine of its own; how to connect to its export."""
        self.switch.add(name)
        socket = self.folder / f"{name}.sock"
        self.cluster.attach(volume, name, "--nbd-unix", socket, "--name", name)
        self.kills[name] = 0
        return f"nbd+unix:///{volume}?socket={socket}"

    def controllers(self):
        return [self.cluster.controller, *self.cluster.standbys.values()]

    def in_office(self, seconds=60):
        """The controller that says so of itself, and the other."""
        deadline = time.monotonic() + seconds
        said = []
        while time.monotonic() < deadline:
            with contextlib.suppress(Failed):
                said = self.cluster.tell("controller", "status")
            holding = [each["address"] for each in said if each.get("state") == "in office"]
            if len(holding) == 1:
                return sorted(self.controllers(), key=lambda role: role.address() != holding[0])
            time.sleep(0.1)
        raise Failed(f"no controller is in office: {json.dumps(said)}")

    def is_healthy(self, volume):
        try:
            status = self.cluster.status(volume)
        except Failed:
            return False
        return status["state"] == "healthy" and not status["rebuilds"]

    def wait_until_healthy(self, volume, meanwhile=lambda: None, seconds=HEALTHY_SECONDS):
        deadline = time.monotonic() + seconds
        while not self.is_healthy(volume):
            meanwhile()
            if time.monotonic() > deadline:
                raise Failed(f"{volume} has not become healthy in {seconds} s: "
                             + json.dumps(self.cluster.status(volume)))
            time.sleep(0.2)

    def scrub(self, volume):
        found = self.cluster.tell("scrub", volume, "--wait", timeout=600)
        if found["done"] == 0 or found["mismatches"] != 0:
            raise Failed(f"the scrub of {volume} found {json.dumps(found)}")
        return found

    # What can happen. Each is undone when its block is left.

    @contextlib.contextmanager
    def killed(self, *roles):
        for role in roles:  # all of them, before any is waited for
            if role.name in self.kills:
                self.kills[role.name] += 1
            role.process.kill()
        for role in roles:
            role.kill()
        yield
        for role in roles:
            self.start_again(role)

    def start_again(self, role, seconds=90):
        """As whoever watches over processes would: again and again, until it stays."""
        deadline = time.monotonic() + seconds
        while True:
            self.keep_log(role)
            try:
                return role.start()
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def keep_log(self, role):
        number = 1
        while (kept := role.log.with_suffix(f".{number}.log")).exists():
            number += 1
        role.log.rename(kept)

    def locks_state(self, role):
        """Whether this controller, which is stopped, keeps the file from the other one."""
        if self.store or role not in self.controllers():
            return False
        try:
            opened = sqlite3.connect(self.folder / "state.db", timeout=0.3)
            with contextlib.closing(opened) as state:
                state.execute("BEGIN IMMEDIATE")
                state.rollback()
        except sqlite3.OperationalError:
            return True
        return False

    @contextlib.contextmanager
    def paused(self, role):
        role.process.send_signal(signal.SIGSTOP)
        while self.locks_state(role):  # stopped amid a transaction: see docs/failures.md
            role.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
            role.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            role.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def cut_off(self, role):
        self.machine(role).cut_off()
        yield
        self.machine(role).let_in()

    @contextlib.contextmanager
    def apart(self, one, other):
        """Roles, or the name of a machine."""
        pair = [self.switch.machines[getattr(each, "name", each)] for each in (one, other)]
        machines.cut_between(*pair)
        yield
        machines.mend_between(*pair)

    def end(self):
        """Everything; the names of those that did not end well."""
        self.switch.mend_all()
        unclean = self.cluster.stop()
        if self.store:
            self.store.end()
        self.switch.end()
        roles = {role.name: role for role in self.controllers() if role}
        # A controller that was told to stop while it waited says that it was interrupted.
        return [name for name in unclean
                if name not in roles or roles[name].process.returncode != INTERRUPTED]


def connect_to(uri):
    def connect():
        handle = nbd.NBD()
        handle.connect_uri(uri)
        return handle
    return connect


class Fio(threading.Thread):
    """fio that verifies what it wrote, a round after the other, until it is stopped."""

    def __init__(self, uri, size, seconds=8, rate="8m"):
        super().__init__(daemon=True)
        self.words = [
            "fio", "--name=verify", "--ioengine=nbd", f"--uri={uri}", "--rw=randrw", "--bs=16k",
            f"--size={size}", "--iodepth=4", "--verify=crc32c", "--verify_fatal=1",
            "--verify_backlog=64", "--verify_state_save=0", "--time_based", f"--runtime={seconds}",
            f"--rate={rate}", "--randrepeat=0", "--output-format=json"]
        self.stopping = False
        self.failure = None
        self.requests = self.octets = self.rounds = 0

    def run(self):
        while not self.stopping and not self.failure:
            done = subprocess.run(self.words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            if done.returncode != 0:
                self.failure = AssertionError(f"fio: status {done.returncode}\n{done.stdout}")
                return
            job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
            self.rounds += 1
            self.requests += job["read"]["total_ios"] + job["write"]["total_ios"]
            self.octets += job["read"]["io_bytes"] + job["write"]["io_bytes"]

    def complain(self):
        if self.failure:
            raise self.failure

    def stop(self, seconds=180):
        self.stopping = True
        self.join(seconds)
        self.complain()
        if self.is_alive():
            raise AssertionError(f"fio has not ended for {seconds} s")
