# SPDX-License-Identifier: Apache-2.0
"""`weft export iscsi` beside the guest. It can die and come back, with what its files hold."""
import json
import pathlib
import signal
import tempfile

import guest
import host
import peers

NAME = "iqn.2026-11.io.weft:guest"
PORT = 3260
MIB = 1 << 20


def weft(*words, timeout=60):
    return host.run(peers.program("weft"), *words, timeout=timeout)


class WeftTarget:
    """Serves `files`, a list of sizes, as its first units; and whatever the options add."""

    def __init__(self, *options, files=(64 * MIB,), address=guest.HOST):
        self.folder = tempfile.TemporaryDirectory(prefix="weft-target-")
        self.path = pathlib.Path(self.folder.name)
        self.files = [self.make_file(f"disk{number}", size) for number, size in enumerate(files)]
        self.options = options
        self.portal = f"{address}:{PORT}"
        self.control = ("--control", self.path / "control")
        self.program = None
        self.start()

    def make_file(self, name, size):
        path = self.path / name
        with open(path, "wb") as file:
            file.truncate(size)
        return path

    def start(self):
        disks = [word for file in self.files for word in ("--file", file)]
        self.program = host.Program(
            peers.program("weft"), "export", "iscsi", "--json", "--target", NAME,
            "--tcp", self.portal, *self.control, *disks, *self.options)
        self.program.wait_until_listening(PORT)

    def end(self, how):
        """It ends at once, or in its own way; in either case it has ended before this returns."""
        self.program.process.send_signal(how)
        status = self.program.process.wait(30)
        said = self.program.output
        self.program.file.close()
        if how == signal.SIGTERM and status != 0:
            raise AssertionError(f"weft ended with status {status}:\n{said}")
        return said

    def send_signal(self, which):
        self.program.process.send_signal(which)

    def ask(self, *words):
        """`weft target`, `weft session` and so on, of this very process."""
        return weft(*words, *self.control)

    def sessions(self):
        return json.loads(self.ask("session", "list", "--json"))

    def events(self):
        """What it said so far."""
        return [json.loads(line) for line in self.program.output.splitlines()
                if line.startswith("{")]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if self.program.process.poll() is None:
                said = self.end(signal.SIGTERM)
            else:
                said = self.program.output
                if kind is None:
                    raise AssertionError(f"weft died:\n{said}")
            if kind is not None:
                print(f"weft said:\n{said}")
        finally:
            self.folder.cleanup()
