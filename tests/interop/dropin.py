# SPDX-License-Identifier: Apache-2.0
"""Starts Debian's stock RDMA programs on our libraries, by `weft run`, and sees how they end.

Every program has an end of its time. Whatever becomes of a test, what it started is ended, by its
process id. A failure's message is the command that failed and its output, and those of its peers.
"""
import contextlib
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time
import unittest

WEFT = os.environ.get("WEFT", "build/release/bin/weft")
HOST, HOST6 = "127.0.0.1", "::1"
LINES_SHOWN = 30  # of a program's first words, and of its last
SECONDS = 30  # for a program that is meant to take one or two


def free_port(among=(0,)):
    """A port nobody had a moment ago. For both families, as some programs listen on all."""
    for port in among:
        with socket.socket(socket.AF_INET6) as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            probe.bind(("::", port))
            return probe.getsockname()[1]
    raise AssertionError("no port is free")


def is_listening(port):
    """/proc/net/tcp: the local address is the second field, and state 0A means listening."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


class Program:
    """A running program, and what it said so far. `way` is how weft shall run it."""

    def __init__(self, *words, way=(), before=(), environment=None, seconds=SECONDS, stdin=None):
        self.words = [*map(str, before), WEFT, "run", *way, *map(str, words)]
        self.deadline = time.monotonic() + seconds
        # Apart, or the one would come amid a line of the other.
        self.output, self.errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.words, stdin=stdin or subprocess.DEVNULL, stdout=self.output, stderr=self.errors,
            env={**os.environ, **(environment or {})})

    def said(self):
        """On its output, and then what it said on its error output."""
        return "".join(os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
                       .decode(errors="replace") for file in (self.output, self.errors))

    def report(self):
        status = self.process.poll()
        ended = "still runs" if status is None else f"status {status}"
        lines = self.said().splitlines()
        if len(lines) > 2 * LINES_SHOWN:
            lines[LINES_SHOWN:-LINES_SHOWN] = [f"[{len(lines) - 2 * LINES_SHOWN} lines]"]
        return "\n".join([f"$ {shlex.join(self.words)}", *lines, f"[{ended}]"])

    def is_over(self):
        return self.process.poll() is not None

    def wait(self):
        """Its status; a program whose time is over is ended, and has none."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(max(self.deadline - time.monotonic(), 0))
        return None

    def end(self):
        if not self.is_over():
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
        if not self.is_over():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class DropinCase(unittest.TestCase):
    """A test of stock programs: starts them, and leaves none behind."""
    way = ()  # options of weft run, for all programs of the test
    before = ()  # words before weft itself, to run it under something

    def setUp(self):
        self.programs = []
        folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(folder.cleanup)

    def tearDown(self):
        for program in self.programs:
            program.end()
            program.output.close()
            program.errors.close()
        self.programs.clear()

    def give_up(self, why):
        raise AssertionError("\n".join([why, *(each.report() for each in self.programs)]))

    def start(self, *words, port=None, **more):
        """In the background; waits until it listens on the port, if one is given."""
        program = Program(*words, **{"way": self.way, "before": self.before, **more})
        self.programs.append(program)
        while port and not is_listening(port):
            if program.is_over() or time.monotonic() > program.deadline:
                self.give_up(f"it does not listen on port {port}")
            time.sleep(0.01)
        return program

    def wait_until(self, program, pattern):
        """It must say so, and go on."""
        while not re.search(pattern, program.said(), re.MULTILINE):
            if program.is_over() or time.monotonic() > program.deadline:
                self.give_up(f"nobody said {pattern!r}")
            time.sleep(0.01)

    def finish(self, program, *, status=0):
        """It must end by itself, with this status. Gives what it said."""
        if program.wait() != status:
            ended = "did not end in time" if not program.is_over() else "failed"
            self.give_up(f"{shlex.join(program.words)} {ended}")
        return program.said()

    def run_here(self, *words, status=0, **more):
        return self.finish(self.start(*words, **more), status=status)

    def run_pair(self, server, client, port, **more):
        """Both must succeed. Gives what the server and the client said. What an earlier part of the
        same test left is ended first."""
        self.forget()
        serving = self.start(*server, port=port, **more)
        driving = self.start(*client, **more)
        said = self.finish(driving)
        return self.finish(serving), said

    def forget(self):
        """What ran so far is ended: the next part of the same test begins afresh."""
        DropinCase.tearDown(self)

    def must_say(self, pattern, text):
        if not (found := re.search(pattern, text, re.MULTILINE)):
            self.give_up(f"nobody said {pattern!r}")
        return found

    def must_not_say(self, pattern, text):
        if found := re.search(pattern, text, re.MULTILINE):
            self.give_up(f"somebody said {found[0]!r}")
