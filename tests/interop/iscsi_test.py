#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft export iscsi` and other people's initiators: libiscsi's tools and suite, and qemu."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import iscsi_suite
from weft_export import WEFT, IscsiExport, run

MIB = 1 << 20


class Discovery(unittest.TestCase):
    def setUp(self):
        self.export = IscsiExport("--memory", "64M", "--memory", "8M", "--lun", "0", "--lun", "5",
                                  "--initiator", "iqn.2026-11.io.weft:friend")
        self.addCleanup(self.export.discard)

    def list_as(self, name):
        return run("iscsi-ls", "-s", "-i", name, f"iscsi://{self.export.portal}")

    def test_it_tells_targets_and_units_to_whom_it_serves(self):
        said = self.list_as("iqn.2026-11.io.weft:friend")
        self.assertIn(f"Target:{IscsiExport.NAME} Portal:{self.export.portal},1", said)
        # It takes the last block's address for the number of blocks, and rounds down.
        self.assertRegex(said, r"Lun:0 .*Size:63M")
        self.assertRegex(said, r"Lun:5 .*Size:7M")

    def test_it_tells_strangers_nothing_and_lets_none_in(self):
        self.assertNotIn("Target:", self.list_as("iqn.2026-11.io.weft:stranger"))
        done = subprocess.run(["iscsi-inq", "-i", "iqn.2026-11.io.weft:stranger", self.export.uri],
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Target not found", done.stdout + done.stderr)


class Tools(unittest.TestCase):
    def setUp(self):
        self.export = IscsiExport("--memory", "256M")
        self.addCleanup(self.export.discard)

    def test_it_says_what_it_is(self):
        self.assertIn("WEFT", run("iscsi-inq", self.export.uri))
        said = run("iscsi-readcapacity16", self.export.uri)
        self.assertIn(f"Total size:{256 * MIB}", said)

    def test_what_qemu_writes_it_reads(self):
        self.qemu_io("-c", "write -P 0x5a 0 1M", "-c", "write -P 0xa5 200M 4M", "-c", "flush")
        self.qemu_io("-c", "read -P 0x5a 0 1M", "-c", "read -P 0xa5 200M 4M",
                     "-c", "read -P 0 1M 1M")
        self.qemu_io("-c", "write -z 200M 2M", "-c", "discard 0 1M",
                     "-c", "read -P 0 200M 2M", "-c", "read -P 0xa5 202M 2M")

    def test_an_image_copied_there_and_back_is_the_same(self):
        here, back = self.export.path / "here.img", self.export.path / "back.img"
        here.write_bytes(bytes(range(256)) * (256 * MIB // 256 // 16) + bytes(240 * MIB))
        run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", here, self.export.uri)
        run("qemu-img", "convert", "-f", "raw", "-O", "raw", self.export.uri, back)
        self.assertEqual(here.read_bytes(), back.read_bytes())

    def test_it_is_measured(self):
        said = subprocess.run(["iscsi-perf", "-t", "2", "-m", "32", "-b", "8", self.export.uri],
                              capture_output=True, text=True, timeout=60, check=False).stdout
        self.assertTrue(re.findall(r"iops average (\d+)", said), said)

    def qemu_io(self, *commands):
        said = run("qemu-io", "-f", "raw", *commands, self.export.uri)
        self.assertNotIn("Pattern verification failed", said)


class Secrets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        secrets = pathlib.Path(folder.name) / "secrets"
        secrets.write_text("user alice correct-horse-1\ntarget weft battery-staple-2\n")
        secrets.chmod(0o600)
        self.export = IscsiExport("--memory", "8M", "--chap", secrets)
        self.addCleanup(self.export.discard)

    def test_who_knows_the_secret_comes_in(self):
        self.assertIn("WEFT", run("iscsi-inq",
                                  self.export.authenticated("alice", "correct-horse-1")))

    def test_target_proves_itself_too(self):
        uri = self.export.authenticated("alice", "correct-horse-1")
        uri += "?target_user=weft&target_password=battery-staple-2"
        self.assertIn("WEFT", run("iscsi-inq", uri))

    def test_who_guesses_waits_longer_each_time(self):
        waited = []
        for _ in range(2):
            begin = time.monotonic()
            done = subprocess.run(
                ["iscsi-inq", self.export.authenticated("alice", "not-my-secret-3")],
                capture_output=True, text=True, timeout=60, check=False)
            waited.append(time.monotonic() - begin)
            self.assertNotEqual(done.returncode, 0)
        self.assertGreater(waited[0], 0.9)
        self.assertGreater(waited[1], 1.9)

    def test_nobody_comes_in_without(self):
        done = subprocess.run(["iscsi-inq", self.export.uri], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)


class Changes(unittest.TestCase):
    """Targets that come and go while others are served."""

    def setUp(self):
        self.export = IscsiExport("--memory", "8M", "--control", "{folder}/control")
        self.addCleanup(self.export.discard)
        self.control = ("--control", self.export.path / "control")
        self.more = "iqn.2026-11.io.weft:more"

    def weft(self, *words):
        return run(WEFT, *words, *self.control)

    def test_a_target_is_added_used_and_removed(self):
        disk = self.export.path / "disk.img"
        disk.write_bytes(bytes(MIB))
        self.weft("target", "add", self.more, "--file", disk, "--memory", "2M")
        listed = json.loads(self.weft("target", "list", "--json"))
        self.assertEqual([target["name"] for target in listed], [IscsiExport.NAME, self.more])
        self.assertEqual([unit["size"] for unit in listed[1]["units"]], [MIB, 2 * MIB])
        uri = self.export.uri.replace(IscsiExport.NAME, self.more)
        run("qemu-io", "-f", "raw", "-c", "write -P 7 0 64k", uri)
        self.weft("target", "remove", self.more)
        self.assertEqual(disk.read_bytes()[:65536], b"\7" * 65536)
        self.assertNotIn(self.more, self.weft("target", "list"))
        self.assertIn("WEFT", run("iscsi-inq", self.export.uri))

    def test_a_target_in_use_is_taken_away(self):
        self.weft("target", "add", self.more, "--memory", "64M")
        uri = self.export.uri.replace(IscsiExport.NAME, self.more)
        reader = subprocess.Popen(["iscsi-perf", "-t", "30", uri], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        for _ in range(100):
            sessions = json.loads(self.weft("session", "list", "--json"))
            if sessions:
                break
            time.sleep(0.05)
        self.assertEqual(sessions[0]["target"], self.more)
        self.weft("target", "remove", self.more)
        for _ in range(100):
            left = json.loads(self.weft("session", "list", "--json"))
            if not left:
                break
            time.sleep(0.05)
        self.assertEqual(left, [])
        self.assertTrue(self.export.alive())

    def test_a_unit_is_added_used_and_removed(self):
        disk = self.export.path / "disk.img"
        disk.write_bytes(bytes(MIB))
        said = self.weft("unit", "add", IscsiExport.NAME, "--file", disk, "--lun", "5")
        self.assertIn("has LUN 5 now", said)
        self.assertEqual(json.loads(self.weft("unit", "add", IscsiExport.NAME, "--memory", "2M",
                                              "--json"))["lun"], 1)
        listed = json.loads(self.weft("target", "list", "--json"))
        self.assertEqual([unit["lun"] for unit in listed[0]["units"]], [0, 5, 1])
        run("qemu-io", "-f", "raw", "-c", "write -P 7 0 64k", self.export.uri[:-1] + "5")
        self.weft("unit", "remove", IscsiExport.NAME, "--lun", "5")
        self.assertEqual(disk.read_bytes()[:65536], b"\7" * 65536)
        self.assertNotIn("disk.img", self.weft("target", "list"))
        self.assertIn("WEFT", run("iscsi-inq", self.export.uri))

    def test_a_unit_in_use_is_taken_away(self):
        self.weft("unit", "add", IscsiExport.NAME, "--memory", "64M", "--lun", "3")
        reader = subprocess.Popen(["iscsi-perf", "-t", "30", self.export.uri[:-1] + "3"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        time.sleep(0.5)
        self.weft("unit", "remove", IscsiExport.NAME, "--lun", "3")
        self.assertIn("WEFT", run("iscsi-inq", self.export.uri))
        self.assertTrue(self.export.alive())

    def test_what_cannot_be_of_a_unit_is_refused(self):
        for words in (("add", IscsiExport.NAME, "--memory", "1M", "--lun", "0"),
                      ("add", self.more, "--memory", "1M"),
                      ("add", IscsiExport.NAME, "--file", "/no/such/file"),
                      ("remove", IscsiExport.NAME, "--lun", "9"),
                      ("remove", self.more, "--lun", "0")):
            done = subprocess.run([WEFT, "unit", *words, *map(str, self.control)], timeout=20,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done)
            self.assertTrue(done.stderr.startswith("weft: "), done)

    def test_what_cannot_be_is_refused(self):
        for words in (("add", IscsiExport.NAME, "--memory", "1M"),
                      ("add", "disk", "--memory", "1M"),
                      ("add", self.more, "--file", "/no/such/file"), ("remove", self.more)):
            done = subprocess.run([WEFT, "target", *words, *map(str, self.control)], timeout=20,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done)
            self.assertTrue(done.stderr.startswith("weft: "), done)


class Files(unittest.TestCase):
    def test_targets_come_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "targets.toml"
            file.write_text("""
[[target]]
name = "iqn.2026-11.io.weft:one"
[[target.lun]]
memory = "16M"
[[target.lun]]
memory = "8M"
number = 9
read_only = true
[[target]]
name = "iqn.2026-11.io.weft:two"
initiators = ["iqn.2026-11.io.weft:nobody"]
[[target.lun]]
memory = '1M'
""")
            with IscsiExport("--memory", "1M", "--targets", file) as export:
                said = run("iscsi-ls", "-s", f"iscsi://{export.portal}")
        self.assertIn("Target:iqn.2026-11.io.weft:one", said)
        self.assertRegex(said, r"Lun:9 .*Size:7M")
        self.assertNotIn("Target:iqn.2026-11.io.weft:two", said)


@unittest.skipIf("asan" in os.environ.get("WEFT", ""),
                 "minutes more, for commands that the unit tests give the sanitizer")
class Suite(unittest.TestCase):
    """libiscsi's tests. Nothing may fail; what one disk makes it skip, another does not. All the
    disks there are, iSER and tgtd beside ours: `./test suite`."""

    def expect_no_failure(self, *options, paths=1):
        with IscsiExport("--memory", "128M", *options) as export:
            found, text = iscsi_suite.run([export.uri] * paths)
        self.assertGreaterEqual(len(found), 230, text[-2000:])
        self.assertEqual([outcome for outcome in found if outcome.verdict == "failed"], [])
        return {outcome.name for outcome in found if outcome.verdict == "skipped"}

    def expect_all_to_pass(self, tests, *options):
        """One at a time: some leave behind what the next trips over."""
        for test in tests:
            with self.subTest(test), IscsiExport("--memory", "128M", *options) as export:
                found, text = iscsi_suite.run([export.uri] * 2, f"ALL.{test}", sanitize=True)
                self.assertEqual([outcome.verdict for outcome in found], ["passed"], text[-2000:])

    def test_a_removable_disk_on_two_paths(self):
        skipped = self.expect_no_failure("--removable", paths=2)
        self.assertEqual({name.split(".")[0] for name in skipped}, {
            "CompareAndWrite", "ReadOnly", "Sanitize", "WriteSame10", "WriteSame16"})

    def test_erasing_a_disk(self):
        """Ten of eleven: Sanitize.Reset sleeps for a minute, and is left to ./test suite."""
        self.expect_all_to_pass([f"Sanitize.{test}" for test in (
            "BlockErase", "BlockEraseReserved", "CryptoErase", "CryptoEraseReserved",
            "ExitFailureMode", "InvalidServiceAction", "Overwrite", "OverwriteReserved", "Readonly",
            "Reservations")])

    def test_a_disk_with_large_blocks(self):
        self.expect_all_to_pass(["CompareAndWrite.InvalidDataOutSize", "WriteSame10.UnmapUnaligned",
                                 "WriteSame16.UnmapUnaligned"], "--physical-block", "4096")

    def test_a_disk_that_cannot_be_written(self):
        self.expect_all_to_pass(["ReadOnly.ReadOnlySBC"], "--read-only")


if __name__ == "__main__":
    unittest.main(verbosity=2)
