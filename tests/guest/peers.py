# SPDX-License-Identifier: Apache-2.0
"""weft_peer here and kernel_peer in the guest, in either role, as peer_script.hpp has it."""
import dataclasses
import os
import pathlib

import guest
import host

PORT = 7200
MIB = 1 << 20
# By whoever connects, and by the other side when asked.
SIZES = (0, 1, 4096, MIB)
MOVES = tuple(f"{kind}:{size}" for kind in ("write", "read") for size in SIZES)
SENDS = ("send", "solicited", "invalidate", "solicited-invalidate")
EVERYTHING = tuple(who + step for who in ("", "ask:") for step in MOVES + SENDS)


def program(name):
    """A program of the build that is under test."""
    weft = os.environ.get("WEFT")
    folder = pathlib.Path(weft).parent if weft else \
        pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"
    return folder / name


def on_weft(*command, wishes=()):
    """A stock program here, on the libraries of that build, by `weft run WISHES...`."""
    return host.Program(program("weft"), "run", *wishes, *command)


def ask_for(steps):
    return tuple("ask:" + step for step in steps)


@dataclasses.dataclass
class Outcome:
    """What both said, and how they ended."""

    weft: str
    weft_status: int
    kernel: str
    kernel_status: int

    def __str__(self):
        return f"weft, status {self.weft_status}:\n{self.weft}\n" \
               f"kernel, status {self.kernel_status}:\n{self.kernel}"


class Peers:
    """One conversation; `weft` is the role of our side, "client" or "server"."""

    def __init__(self, machine, weft, steps, *, flags=(), private_data="", connections=1,
                 window=MIB, address=None):
        self.guest = machine
        self.weft = weft
        both = ["--window", window, "--connections", connections]
        client = [*(["--private", private_data] if private_data else []), *steps]
        if weft == "client":
            self.address = address or guest.GUEST
            ours, theirs = ["connect", *self.place()], ["serve", *self.place()]
            self.ours, self.theirs = ours + both + list(flags) + client, theirs + both
        else:
            self.address = address or guest.HOST
            ours, theirs = ["serve", *self.place()], ["connect", *self.place()]
            self.ours, self.theirs = ours + both + list(flags), theirs + both + client

    def place(self):
        return self.address, PORT

    def __enter__(self):
        command = "kernel_peer " + " ".join(map(str, self.theirs))
        if self.weft == "client":
            self.kernel = self.guest.start(command)
            self.guest.wait_until_listening(PORT)
            self.program = host.Program(program("weft_peer"), *self.ours)
        else:
            self.program = host.Program(program("weft_peer"), *self.ours)
            self.program.wait_until_listening(PORT)
            self.kernel = self.guest.start(command)
        return self

    def __exit__(self, *_):
        self.kernel.stop()
        self.program.__exit__()

    def finish(self, timeout=60):
        """Waits for both to end. Who does not has no status."""
        first, second = (self.end_of_weft, self.end_of_kernel) if self.weft == "client" else \
            (self.end_of_kernel, self.end_of_weft)
        statuses = {first: first(timeout), second: second(15)}
        return Outcome(self.program.output, statuses[self.end_of_weft], self.kernel.output,
                       statuses[self.end_of_kernel])

    def end_of_weft(self, timeout):
        try:
            return self.program.process.wait(timeout)
        except host.subprocess.TimeoutExpired:
            return None

    def end_of_kernel(self, timeout):
        try:
            return self.kernel.wait(timeout)
        except guest.TimedOut:
            return None
