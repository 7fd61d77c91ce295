#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our iSCSI initiator against Debian's tgtd, over TCP."""
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

from dropin import WEFT, free_port, is_listening

TARGET = "iqn.2026-11.example.weft:disk"
USER, SECRET = "weft", "a secret of ours"
SIZE = 32 << 20


class Tgtd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.disk = self.folder / "disk.img"
        with open(self.disk, "wb") as file:
            file.truncate(SIZE)
        self.port = free_port(random.sample(range(20000, 32768), 100))
        self.environment = {**os.environ, "TGT_IPC_SOCKET": str(self.folder / "control")}
        self.daemon = None
        self.accounts = []
        self.start_target()
        self.addCleanup(self.stop_target)
        self.portal = f"iscsi://127.0.0.1:{self.port}"
        self.unit = f"{self.portal}/{TARGET}/1"

    def start_target(self):
        self.log = open(self.folder / "log", "ab")
        self.daemon = subprocess.Popen(
            ["tgtd", "-f", "--iscsi", f"portal=127.0.0.1:{self.port}"], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 30
        while not is_listening(self.port):
            self.assertIsNone(self.daemon.poll(), "tgtd ended")
            self.assertLess(time.monotonic(), until, "tgtd does not listen")
            time.sleep(0.02)
        self.administer("target", "new", "--tid", "1", "--targetname", TARGET)
        self.administer("logicalunit", "new", "--tid", "1", "--lun", "1",
                        "--backing-store", str(self.disk))
        for words in self.accounts:
            self.administer("account", *words)
        self.administer("target", "bind", "--tid", "1", "--initiator-address", "ALL")

    def stop_target(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        self.log.close()

    def administer(self, mode, operation, *words):
        subprocess.run(["tgtadm", "--lld", "iscsi", "--mode", mode, "--op", operation, *words],
                       env=self.environment, check=True, timeout=30)

    def weft(self, *words, status=0, **more):
        done = subprocess.run([WEFT, *words], capture_output=True, timeout=120, check=False, **more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout if status == 0 else done.stderr.decode()

    def test_it_finds_targets_and_says_what_a_unit_is(self):
        said = self.weft("initiator", "ls", self.portal).decode()
        self.assertIn(TARGET, said)
        self.assertIn(f"127.0.0.1:{self.port},1", said)
        unit = json.loads(self.weft("initiator", "inq", self.unit, "--json"))
        self.assertEqual(unit["vendor"], "IET")
        self.assertEqual(unit["size"], SIZE)
        self.assertEqual(unit["block"], 512)

    def test_it_says_why_there_is_nothing(self):
        said = self.weft("initiator", "inq", f"{self.portal}/iqn.none/1", status=1)
        self.assertIn("there is no such target", said)
        self.weft("initiator", "inq", f"{self.portal}/{TARGET}/77", status=1)
        said = self.weft("initiator", "inq", f"iscsi://127.0.0.1:1/{TARGET}/1", status=1)
        self.assertIn("weft:", said)

    def test_what_it_writes_is_there_and_what_is_there_it_reads(self):
        image = self.folder / "image"
        for options in ("", "?header_digest=crc32c", "?header_digest=crc32c&data_digest=crc32c"):
            # tgtd has digests only where it is told to.
            for name, key in (("HeaderDigest", "header_digest"), ("DataDigest", "data_digest")):
                self.administer("target", "update", "--tid", "1", "--name", name, "--value",
                                "CRC32C" if key in options else "None")
            for size in (512, 4096, 65536, 262144 + 512, 3 << 20):
                with self.subTest(options=options, size=size):
                    content = os.urandom(size)
                    image.write_bytes(content)
                    at = random.randrange((SIZE - size) // 512) * 512
                    self.weft("initiator", "write", self.unit + options, str(at), str(image))
                    with open(self.disk, "rb") as disk:
                        disk.seek(at)
                        self.assertEqual(disk.read(size), content)
                    back = self.weft("initiator", "read", self.unit + options, str(at), str(size))
                    self.assertEqual(back, content)

    def test_a_disk_is_copied_there_and_back(self):
        image, again = self.folder / "image", self.folder / "again"
        image.write_bytes(os.urandom(SIZE))
        self.weft("disk", "copy", str(image), self.unit)
        self.assertEqual(self.disk.read_bytes(), image.read_bytes())
        self.weft("disk", "copy", self.unit, str(again))
        self.assertEqual(again.read_bytes(), image.read_bytes())

    def test_many_requests_at_once(self):
        for words in (["--depth", "1"], ["--depth", "128"], ["--size", "256k", "--depth", "8"],
                      ["--write", "--depth", "32"], ["--write", "--size", "1M", "--depth", "4"]):
            with self.subTest(words):
                said = json.loads(self.weft("initiator", "bench", self.unit, "--seconds", "0.5",
                                            "--json", *words))
                self.assertGreater(said["requests"], 10)

    def test_it_proves_who_it_is(self):
        self.accounts = [("new", "--user", USER, "--password", SECRET),
                         ("bind", "--tid", "1", "--user", USER)]
        for words in self.accounts:
            self.administer("account", *words)
        said = self.weft("initiator", "inq", self.unit, status=1)
        self.assertIn("does not believe", said)
        place = f"127.0.0.1:{self.port}/{TARGET}/1"
        self.weft("initiator", "inq", f"iscsi://{USER}%{SECRET}@{place}")
        said = self.weft("initiator", "inq", f"iscsi://{USER}%another long secret@{place}",
                         status=1)
        self.assertIn("does not believe", said)

    def test_the_target_proves_who_it_is(self):
        for words in (("new", "--user", USER, "--password", SECRET),
                      ("new", "--user", "disk", "--password", "the secret of the disk"),
                      ("bind", "--tid", "1", "--user", USER),
                      ("bind", "--tid", "1", "--user", "disk", "--outgoing")):
            self.administer("account", *words)
        place = f"{USER}%{SECRET}@127.0.0.1:{self.port}/{TARGET}/1"
        right = "target_user=disk&target_password=the secret of the disk"
        self.weft("initiator", "inq", f"iscsi://{place}?{right}")
        self.weft("initiator", "inq", f"iscsi://{place}?{right}!", status=1)

    def test_it_goes_on_when_the_target_comes_back(self):
        image = self.folder / "image"
        image.write_bytes(os.urandom(SIZE))
        copy = subprocess.Popen([WEFT, "disk", "copy", str(image), self.unit],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            # Not before it has begun: a target that was never there is an answer, not a loss.
            while copy.poll() is None and self.disk.stat().st_blocks == 0:
                time.sleep(0.001)
            for _ in range(2):
                self.stop_target()
                self.start_target()
                time.sleep(0.02)
            said, _ = copy.communicate(timeout=100)
        finally:
            if copy.poll() is None:
                copy.kill()
                copy.wait()
        self.assertEqual(copy.returncode, 0, said.decode())
        self.assertEqual(self.disk.read_bytes(), image.read_bytes())

    def test_requests_under_way_outlive_the_target(self):
        bench = subprocess.Popen(
            [WEFT, "initiator", "bench", self.unit, "--write", "--seconds", "3", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for _ in range(2):
                time.sleep(0.7)
                self.stop_target()
                self.start_target()
            said, _ = bench.communicate(timeout=100)
        finally:
            if bench.poll() is None:
                bench.kill()
                bench.wait()
        self.assertEqual(bench.returncode, 0, said.decode())
        self.assertEqual(json.loads(said)["logins"], 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
