# SPDX-License-Identifier: Apache-2.0
"""An array of processes on one machine: a controller, boxes and hosts, each a `weft` of its own.

For the demo of ./run, the tests and the bench. Everything is in one folder, which the caller owns;
what was started is stopped by stop(), whatever became of it.
"""
import json
import pathlib
import secrets
import signal
import subprocess
import time

START_SECONDS = 30


class Failed(Exception):
    """A sentence for people."""


class Role:
    """A running `weft`; `news` is what it said, as JSON lines."""

    def __init__(self, name, command, log):
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.process = None

    def start(self):
        with open(self.log, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while not self.serves() and self.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not self.alive() or not self.serves():
            self.kill()
            raise Failed(f"{self.name} did not start: {self.log.read_text().strip()}")
        return self

    def serves(self):
        """A controller whose forerunner was killed waits for that one's lease to run out."""
        waits = ("news",) if "--standby" in self.command else ("news", "waiting")
        return any(each.get("event") not in waits for each in self.news())

    def news(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    def address(self):
        return next(each["address"] for each in self.news() if "address" in each)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """As the loss of a machine is: without a word."""
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def ask_to_stop(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=30):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Cluster:
    """`before` are words that go before a role's command, by its name: to have it in a network
    namespace of its own, for instance. What people would type is called "management"."""

    def __init__(self, weft, folder, before=lambda name: []):
        self.weft = str(weft)
        self.folder = pathlib.Path(folder)
        self.before = before
        self.key = self.folder / "key"  # by which controller and boxes know each other
        self.key.write_text(secrets.token_hex(32) + "\n")
        self.key.chmod(0o600)
        self.controller = None
        self.standbys = {}
        self.boxes = {}
        self.hosts = {}

    def role(self, name, *words):
        command = [*self.before(name), self.weft, *words, "--json"]
        return Role(name, command, self.folder / f"{name}.log")

    def make_controller(self, name, listen, *more):
        store = () if "--etcd" in more else ("--state", self.folder / "state.db")
        made = self.role(name, "controller", "serve", *store, "--listen", listen, "--key",
                         self.key, *more).start()
        # Its hosts and boxes know it by its port: the next one of it has the same.
        made.command[made.command.index("--listen") + 1] = made.address()
        return made

    def start_controller(self, listen="127.0.0.1:0", *more):
        self.controller = self.make_controller("controller", listen, *more)
        return self.controller

    def start_standby(self, name="standby", listen="127.0.0.1:0", *more):
        self.standbys[name] = self.make_controller(name, listen, "--standby", *more)
        return self.standbys[name]

    def controllers(self):
        """Where they are, whichever is in office."""
        return ",".join(role.address() for role in (self.controller, *self.standbys.values()))

    def start_box(self, name, size, listen="127.0.0.1:0", *more):
        box = self.role(name, "box", "serve", "--name", name, "--data", self.folder / name,
                        "--size", size, "--listen", listen, "--key", self.key, *more).start()
        box.command[box.command.index("--listen") + 1] = box.address()
        self.boxes[name] = box
        return box

    def attach(self, volume, name="host", *more):
        self.hosts[name] = self.role(name, "host", "attach", volume, "--controller",
                                     self.controllers(), *more).start()
        return self.hosts[name]

    def by_key(self):
        """The options of a command to the controllers, which have a key."""
        return ["--controller", self.controllers(), "--key", str(self.key)]

    def tell(self, *words, timeout=120):
        """A command of `weft` to the controller; its JSON."""
        command = [*self.before("management"), self.weft, *map(str, words), *self.by_key(),
                   "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def add_box(self, name):
        return self.tell("box", "add", name, self.boxes[name].address())

    def status(self, volume):
        return self.tell("volume", "status", volume)

    def wait_until(self, volume, true_of, seconds=120):
        """Until something is true of the volume's status."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.status(volume)
            if true_of(status):
                return status
            time.sleep(0.1)
        raise Failed(f"waited {seconds} s in vain; {volume} is {json.dumps(status)}")

    def stop(self):
        """Everything, hosts first; the names of those that did not end well."""
        unclean = []
        for roles in (self.hosts.values(), self.standbys.values(), [self.controller],
                      self.boxes.values()):
            present = [role for role in roles if role and role.alive()]
            for role in present:
                role.ask_to_stop()
            unclean += [role.name for role in present if role.wait() != 0]
        return unclean
