# SPDX-License-Identifier: Apache-2.0
"""Starts `weft export` for a test and stops it again. Tests find the binary in $WEFT."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

WEFT = os.environ["WEFT"]


def run(*command, timeout=120, **more):
    """Runs a program that must succeed; its output otherwise is the failure's message."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=timeout, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


def receive_all(connection, size):
    """So many bytes of a socket; EOFError if it is closed before."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError(f"closed after {len(data)} of {size} bytes")
        data += part
    return data


class Serving:
    """A running export of some kind; `log` is what it said, as JSON lines."""

    def __init__(self, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.output = open(self.path / "output", "w+", encoding="utf-8")
        command = [WEFT, "export", *(str(word).format(folder=self.path) for word in words)]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=self.output)
        for _ in range(200):
            if self.lines() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        if self.process.poll() is not None or not self.lines():
            raise AssertionError(f"weft did not start: {(self.path / 'output').read_text()}")

    def lines(self):
        text = (self.path / "output").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def resident_bytes(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Asks it to stop; it must do so cleanly and say what it served."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = f"{self.process.wait()}, killed because it did not stop"
        self.output.close()
        text = (self.path / "output").read_text()
        last = self.lines()[-1] if self.lines() else {}
        self.folder.cleanup()
        assert status == 0, f"weft ended with status {status}:\n{text}"
        assert last.get("event") == "stopped", text
        return last

    def discard(self):
        """Whatever became of it, nothing of it is left."""
        self.process.kill()
        self.process.wait()
        self.output.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.stop()
        elif kind is None:
            raise AssertionError("weft died: " + (self.path / "output").read_text())


class Export(Serving):
    """Served by NBD. `uri` names its first disk."""

    def __init__(self, *options):
        super().__init__("nbd", "--json", "--unix", "{folder}/nbd.sock", *options)
        self.socket = self.path / "nbd.sock"
        self.exports = self.lines()[0]["exports"]
        self.uri = self.exports[0]["uris"][0]

    def uris(self):
        return [uri for export in self.exports for uri in export["uris"]]


class IscsiExport(Serving):
    """Served by iSCSI, on a port of its own. `uri` names its first unit, `portal` its door."""

    NAME = "iqn.2026-11.io.weft:test"

    def __init__(self, *options):
        super().__init__("iscsi", "--json", "--tcp", "127.0.0.1:0", "--target", self.NAME, *options)
        self.units = self.lines()[0]["targets"][0]["units"]
        self.uri = self.units[0]["uris"][0]
        self.portal = self.uri.split("/")[2]

    def authenticated(self, user, secret):
        """The first unit's URI for somebody with a name and a secret."""
        return self.uri.replace("iscsi://", f"iscsi://{user}%{secret}@")
