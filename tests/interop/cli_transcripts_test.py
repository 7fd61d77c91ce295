#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every line "$ weft …" of tests/golden/cli/*.txt and compares what it says and its status.

A transcript reads as a terminal would show it: stdout and stderr together, then "[status N]" unless
it is 0. To take over what weft says now, run with UPDATE=1 and read the difference.

Those of golden/cli/controller ask a controller that says what is in replies.json: how weft shows
what takes a fault to come about.
"""
import json
import os
import pathlib
import shlex
import socketserver
import subprocess
import tempfile
import threading
import unittest

WEFT = os.environ["WEFT"]
GOLDEN = pathlib.Path(__file__).parent.parent / "golden/cli"
TRANSCRIPTS = sorted(GOLDEN.glob("*.txt"))
OF_A_CONTROLLER = sorted((GOLDEN / "controller").glob("*.txt"))


def replay(command, folder):
    words = shlex.split(command)
    assert words[0] == "weft", command
    done = subprocess.run([WEFT, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=20, cwd=folder)
    status = f"[status {done.returncode}]\n" if done.returncode else ""
    return f"$ {command}\n{done.stdout}{status}"


class Replies(socketserver.StreamRequestHandler):
    replies = json.loads((GOLDEN / "controller/replies.json").read_text())

    def handle(self):
        for line in self.rfile:
            reply = self.replies[json.loads(line)["do"]]
            self.wfile.write(json.dumps(reply).encode() + b"\n")


class Transcripts(unittest.TestCase):
    maxDiff = None

    def test_weft_shows_what_a_controller_tells(self):
        self.assertTrue(OF_A_CONTROLLER)
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Replies) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = "127.0.0.1:%d" % server.server_address[1]
            for path in OF_A_CONTROLLER:
                expected = path.read_text()
                commands = [line[2:] for line in expected.splitlines() if line.startswith("$ ")]
                said = "".join(replay(command.replace("CONTROLLER", address), None)
                               for command in commands).replace(address, "CONTROLLER")
                if os.environ.get("UPDATE"):
                    path.write_text(said)
                with self.subTest(path.name):
                    self.assertEqual(expected, said)
            server.shutdown()

    def test_weft_says_what_the_transcripts_say(self):
        self.assertTrue(TRANSCRIPTS)
        for path in TRANSCRIPTS:
            expected = path.read_text()
            commands = [line[2:] for line in expected.splitlines() if line.startswith("$ ")]
            with tempfile.TemporaryDirectory() as folder:
                said = "".join(replay(command, folder) for command in commands)
            if os.environ.get("UPDATE"):
                path.write_text(said)
            with self.subTest(path.name):
                self.assertEqual(expected, said)

    def test_every_command_has_a_transcript(self):
        listed = subprocess.run([WEFT, "help"], capture_output=True, text=True, check=True).stdout
        names = [" ".join(word for word in line.split()[1:3] if word.isalpha() and word.islower())
                 for line in listed.splitlines() if line.startswith("  weft ")]
        everything = "".join(path.read_text() for path in TRANSCRIPTS)
        for name in names:
            self.assertIn(f"$ weft {name}", everything)


if __name__ == "__main__":
    unittest.main(verbosity=2)
