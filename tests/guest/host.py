# SPDX-License-Identifier: Apache-2.0
"""This machine's half of a test with the guest: programs of ours beside it, and captures.

Whatever is started here is in the guest's network if the guest was started before, and does not
outlive the test.
"""
import signal
import subprocess
import tempfile
import time

TAP = "weft0"
AGENT_PORT = 23  # where the guest takes its commands
PACKET_MAX = 2048  # more than the cable's, and tcpdump sets aside as much for each it has not read
BUFFER_KIB = 64 << 10


def run(*command, timeout=60):
    """Runs a program that must succeed, and returns what it wrote, standard error included."""
    done = subprocess.run([str(word) for word in command], text=True, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise AssertionError(f"status {done.returncode}: {words}\n{done.stdout}")
    return done.stdout


def start(*command, **more):
    """Starts a program, which the kernel kills should the test die first."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)],
                            stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, **more)


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Program:
    """A program running beside the guest; ended, if need be, where its `with` ends."""

    def __init__(self, *command):
        self.text = " ".join(map(str, command))
        self.file = tempfile.TemporaryFile("w+", errors="replace")
        self.process = start(*command, stdout=self.file)

    @property
    def output(self):
        """What it has written so far, standard error included."""
        self.file.seek(0)
        return self.file.read()

    def wait_until_listening(self, port, timeout=10):
        give_up = time.monotonic() + timeout
        while f":{port} " not in run("ss", "-Hltn"):
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise AssertionError(f"does not listen on {port}: {self.text}\n{self.output}")
            time.sleep(0.05)

    def wait(self, timeout=30):
        """Waits for its end, which must be a good one; returns what it wrote."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = f"none after {timeout} s"
        if status != 0:
            raise AssertionError(f"status {status}: {self.text}\n{self.output}")
        return self.output

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.file.close()


class Capture:
    """Records what goes over the cable, commands to the guest left out, into a pcap file."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.process = start(
            "tcpdump", "-i", TAP, "-n", "-U", "--immediate-mode", "-s", PACKET_MAX,
            "-B", BUFFER_KIB, "-Z", "root",
            "-w", self.path, f"not tcp port {AGENT_PORT}", stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline()
        if "listening on" not in said:
            end(self.process)
            raise AssertionError(f"tcpdump does not capture: {said}")
        return self

    def __exit__(self, *_):
        time.sleep(0.2)  # what has just arrived is still on its way through tcpdump
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=30)
        if "\n0 packets dropped by kernel" not in said:
            raise AssertionError(f"tcpdump did not keep up: {said}")
