#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An array of real processes, managed from the command line, and by those who may not."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

WEFT = os.environ["WEFT"]
PATIENCE = 60  # seconds, for what takes a moment


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """A weft that serves, from its first line to its end."""

    def __init__(self, *words):
        self.running = subprocess.Popen([WEFT, *words, "--json"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.first = self.running.stdout.readline()

    def stop(self, how=signal.SIGTERM):
        if self.running.poll() is None:
            self.running.send_signal(how)
        self.running.stdout.read()
        status = self.running.wait(PATIENCE)
        self.running.stdout.close()
        return status


class Array(unittest.TestCase):
    BOXES = ("oak", "elm", "ash")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.processes = {}
        self.ports = {name: free_port() for name in (*self.BOXES, "bay")}
        self.controller = f"127.0.0.1:{free_port()}"
        self.start_controller()
        for name in self.BOXES:
            self.start_box(name)
        self.addCleanup(lambda: [each.stop() for each in self.processes.values()])

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def start_controller(self, *more):
        self.processes["controller"] = Process("controller", "serve", "--state", self.path("state"),
                                               "--listen", self.controller, *more)
        # Where the last one was killed, it waits for that one's lease to run out.
        first = self.processes["controller"].first
        while "waiting" in first:
            first = self.processes["controller"].running.stdout.readline()
        self.assertIn("listening", first)

    def start_box(self, name, *more):
        os.makedirs(self.path(name), exist_ok=True)
        self.processes[name] = Process("box", "serve", "--name", name, "--data", self.path(name),
                                       "--size", "64M", "--listen", f"127.0.0.1:{self.ports[name]}",
                                       *more)

    def weft(self, *words, status=0):
        done = subprocess.run([WEFT, *words, "--controller", self.controller], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def ask(self, *words):
        return json.loads(self.weft(*words, "--json"))

    def state(self):
        return self.ask("volume", "status", "photos")["state"]

    def wait_for(self, wish):
        until = time.monotonic() + PATIENCE
        while not wish():
            self.assertLess(time.monotonic(), until, self.weft("events"))
            time.sleep(0.1)

    def make_volume(self):
        for name in self.BOXES:
            self.weft("box", "add", name, f"127.0.0.1:{self.ports[name]}")
        self.weft("volume", "create", "photos", "--level", "5", "--boxes", ",".join(self.BOXES),
                  "--chunk", "64K", "--size", "32M")
        self.wait_for(lambda: self.state() == "healthy")

    def url(self):
        return f"iscsi://{self.controller}/iqn.2026-11.io.weft:volume.photos/0"

    def copy_in(self):
        contents = os.urandom(8 << 20)
        pathlib.Path(self.path("picture")).write_bytes(contents)
        subprocess.run([WEFT, "initiator", "write", self.url(), "0", self.path("picture")],
                       check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        return contents

    def copy_out(self, size):
        return subprocess.run([WEFT, "initiator", "read", self.url(), "0", str(size)], check=True,
                              timeout=PATIENCE, stdout=subprocess.PIPE).stdout

    def test_a_volume_outlives_a_box_and_the_controller(self):
        self.make_volume()
        contents = self.copy_in()
        self.assertEqual(self.copy_out(len(contents)), contents)
        self.processes.pop("elm").stop(signal.SIGKILL)
        self.wait_for(lambda: self.state() == "degraded")
        self.assertEqual(self.copy_out(len(contents)), contents)
        contents = self.copy_in()
        self.processes.pop("controller").stop(signal.SIGKILL)
        self.start_controller()
        self.wait_for(lambda: self.state() == "degraded")
        self.assertEqual(self.copy_out(len(contents)), contents)
        self.start_box("elm")
        self.wait_for(lambda: self.state() == "healthy")
        self.assertIn(" 0 mismatches", self.weft("scrub", "photos", "--wait"))
        self.processes.pop("oak").stop(signal.SIGKILL)
        self.assertEqual(self.copy_out(len(contents)), contents)

    def test_every_command_says_what_it_did(self):
        self.make_volume()
        self.start_box("bay")
        self.assertEqual(self.weft("box", "add", "bay", f"127.0.0.1:{self.ports['bay']}"),
                         "bay belongs to the array now.\n")
        self.assertIn("bay takes the place", self.weft("spare", "add", "bay"))
        self.assertIn("bay at", self.weft("spare", "list"))
        self.assertEqual([box["name"] for box in self.ask("box", "list")],
                         ["ash", "bay", "elm", "oak"])
        self.assertIn("photos: 32 MiB, RAID 5 on 3 boxes, healthy", self.weft("volume", "list"))
        self.assertEqual(self.weft("host", "list"), "")
        self.assertIn("Nothing of photos is being rebuilt",
                      self.weft("rebuild", "status", "photos"))
        self.weft("rebuild", "rate", "photos", "20M")
        self.weft("spare", "remove", "bay")
        self.weft("member", "replace", "photos", "elm", "bay")
        wanted = {"place": 1, "box": "bay", "state": "current", "up": True, "slow": False,
                  "full": False, "failing": False, "unreached": [], "misses_host": False}
        self.wait_for(lambda: self.ask("volume", "status", "photos")["members"][1] == wanted)
        self.weft("box", "remove", "elm")
        self.assertIn("photos, bay: ", self.weft("events"))
        self.assertIn("No request", self.weft("slow-ops"))
        links = [each for each in self.ask("link", "list", "--volume", "photos")["links"]
                 if each["direction"] == "outbound" and each["connections"]]
        self.assertTrue(any(each["done"] and each["network"]["segments_sent"] for each in links))
        self.assertEqual({each[what] for each in links
                          for what in ("refused", "timed_out", "unreachable")}, {0})
        self.assertIn("bay -> ", self.weft("link", "list"))
        self.assertIn("with a journal", self.weft("volume", "status", "photos"))
        self.assertEqual(self.weft("volume", "delete", "photos"), "photos is no more.\n")
        self.assertEqual(self.ask("volume", "list"), [])
        self.assertIn("without a journal",
                      self.weft("volume", "create", "papers", "--level", "5", "--boxes",
                                "oak,ash,bay", "--size", "8M", "--consistency", "none"))

    def start_letters(self):
        """What says something else to everybody who comes; where it listens."""
        class Letters(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.sendall(b"Dear reader, welcome to this port.\r\n" * 10)
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Letters)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "127.0.0.1:%d" % server.server_address[1]

    def test_what_makes_no_sense_is_refused_in_a_sentence(self):
        oak = f"127.0.0.1:{self.ports['oak']}"
        for words, sentence in (
                (("box", "add", "Oak", oak), "'Oak' is no name for a box"),
                (("volume", "create", "p" * 64, "--level", "5", "--boxes", "oak"),
                 "a name of 64 characters is too long for a volume: it may have 63"),
                (("box", "add", "yew", oak), f"yew at {oak}: the box there is called oak"),
                (("box", "add", "yew", self.controller), "listens there, and no box"),
                (("box", "add", "yew", self.start_letters()), "there is no box of Weft: "),
                (("box", "add", "yew", f"127.0.0.1:{free_port()}"), "nothing listens there: "),
                (("box", "remove", "yew"), "there is no box yew"),
                (("volume", "status", "photos"), "there is no volume photos"),
                (("volume", "create", "p", "--level", "5", "--boxes", "oak"), "RAID 5 has 3"),
                (("member", "fail", "p", "0"), "there is no volume p"),
                (("spare", "add", "yew"), "there is no box yew"),
                (("scrub", "p"), "there is no volume p")):
            with self.subTest(words=words):
                said = self.weft(*words, status=1)
                self.assertIn(sentence, said)
                self.assertEqual(said.count("\n"), 1)

    def talk(self, octets):
        host, port = self.controller.split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
            line.sendall(octets)
            line.shutdown(socket.SHUT_WR)
            return line.makefile("rb").readline()

    def test_nonsense_on_the_line_harms_nobody(self):
        for octets in (b"{\n", b'{"do": 5}\n', b'{"do": "add box"}\n', b'{"do": "create volume", '
                       b'"name": [], "level": 5}\n', b'{"do": "dance"}\n', b"{" * 5000 + b"\n",
                       b'{"do": "list boxes", "a": ' + b"[" * 400000 + b"]" * 400000 + b"}\n"):
            with self.subTest(octets=octets[:40]):
                self.assertIn("refused", json.loads(self.talk(octets)))
        self.talk(b"{" + b"x" * (2 << 20))
        self.assertEqual(self.ask("box", "list"), [])

    def test_who_comes_from_elsewhere_must_know_the_key(self):
        elsewhere = subprocess.run(["hostname", "-I"], capture_output=True,
                                   text=True).stdout.split()
        elsewhere = [address for address in elsewhere if ":" not in address]
        if not elsewhere:
            self.skipTest("this machine has no address but its own")
        self.make_keys()
        self.processes.pop("controller").stop()
        self.controller = f"{elsewhere[0]}:{self.controller.split(':')[1]}"
        self.start_controller()
        self.assertIn("without a key it obeys only its own machine",
                      self.weft("box", "list", status=1))
        self.processes.pop("controller").stop()
        self.start_controller("--key", self.path("key"))
        self.expect_key_to_be_needed()

    def test_who_comes_from_the_same_machine_must_know_it_too(self):
        self.make_keys()
        self.processes.pop("controller").stop()
        self.start_controller("--key", self.path("key"))
        self.expect_key_to_be_needed()

    def make_keys(self):
        for name, key in (("key", "a key that is long enough"), ("other", "another key, as long")):
            path = pathlib.Path(self.path(name))
            path.write_text(key + "\n")
            path.chmod(0o600)

    def expect_key_to_be_needed(self):
        self.assertIn("it has a key; say --key FILE", self.weft("box", "list", status=1))
        self.assertIn("it has another key than yours",
                      self.weft("box", "list", "--key", self.path("other"), status=1))
        self.assertEqual(self.ask("box", "list", "--key", self.path("key")), [])
        self.assertIn(b"does not know you", self.talk(b'{"do": "list boxes", "proof": "00"}\n'))

    def test_a_key_that_others_can_read_is_refused(self):
        self.make_keys()
        path = pathlib.Path(self.path("key"))
        for mode in (0o644, 0o640, 0o604, 0o620):
            path.chmod(mode)
            said = self.weft("box", "list", "--key", path, status=1)
            self.assertIn(f"{path}: its mode is {mode:04o}, so other users", said)
            self.assertIn(f"chmod 600 {path}", said)
        for mode in (0o600, 0o400):
            path.chmod(mode)
            self.assertEqual(self.ask("box", "list", "--key", path), [])

    def test_the_state_is_nobody_elses_to_read(self):
        self.make_volume()
        for path in pathlib.Path(self.folder.name).glob("state*"):
            self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)

    def test_strangers_who_say_nothing_keep_nobody_out(self):
        host, port = self.controller.split(":")
        silent = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(80)]
        for each in silent:
            each.sendall(b"{")
        self.assertEqual(self.ask("box", "list"), [])
        for each in silent:
            each.close()

    def test_boxes_and_controller_prove_that_they_know_the_key(self):
        self.make_keys()
        for name in ("controller", "oak", "elm"):
            self.processes.pop(name).stop()
        self.start_controller("--key", self.path("key"))
        self.start_box("oak", "--key", self.path("key"))
        self.start_box("elm", "--key", self.path("other"))
        key = ("--key", self.path("key"))
        self.weft("box", "add", "oak", f"127.0.0.1:{self.ports['oak']}", *key)
        for name in ("elm", "ash"):  # ash knows none
            said = self.weft("box", "add", name, f"127.0.0.1:{self.ports[name]}", *key, status=1)
            self.assertIn("it is there, and refuses this controller", said)
        self.assertEqual([box["name"] for box in self.ask("box", "list", *key)], ["oak"])

    def test_the_controller_leaves_when_asked_to(self):
        self.make_volume()
        self.assertEqual(self.processes.pop("controller").stop(signal.SIGINT), 0)

    def refusal_of_state(self, name):
        done = subprocess.run([WEFT, "controller", "serve", "--state", self.path(name),
                               "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_a_state_of_something_else_is_refused(self):
        pathlib.Path(self.path("letter")).write_text("Dear reader, " * 100)
        self.assertIn("it is no state of a controller", self.refusal_of_state("letter"))

    def test_a_copy_of_the_state_of_a_controller_that_was_killed_has_it_all(self):
        self.make_volume()
        self.processes.pop("controller").stop(signal.SIGKILL)
        shutil.copy(self.path("state"), self.path("copy"))
        for name in os.listdir(self.folder.name):
            if name.startswith("state"):
                os.remove(self.path(name))
        os.rename(self.path("copy"), self.path("state"))
        self.start_controller()
        self.wait_for(lambda: self.state() == "healthy")

    def test_a_state_that_is_damaged_is_named_with_the_record(self):
        self.make_volume()
        self.processes.pop("controller").stop()
        for wanted in ("boxes/", "volumes/", "cluster"):
            shutil.copy(self.path("state"), self.path("damaged"))
            with contextlib.closing(sqlite3.connect(self.path("damaged"))) as state, state:
                name, body = next(row for row in state.execute("SELECT name, body FROM records")
                                  if row[0].startswith(wanted))
                state.execute("UPDATE records SET body = ? WHERE name = ?",
                              (body[:20] + bytes([body[20] ^ 1]) + body[21:], name))
            said = self.refusal_of_state("damaged")
            self.assertIn(f"{self.path('damaged')}: its record '{name}' is damaged", said)
        with open(self.path("state"), "r+b") as file:
            for page in range(1, os.path.getsize(self.path("state")) // 4096):
                file.seek(page * 4096)
                file.write(b"\xff" * 4096)
        self.assertIn(f"{self.path('state')}: it is ", self.refusal_of_state("state"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
