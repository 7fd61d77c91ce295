#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weft export iscsi --state` keeps when it is killed, and secrets for discovery.

libiscsi, Debian's own, is the initiator: it is called as a library, since no tool of it reserves.
"""
import ctypes
import pathlib
import subprocess
import tempfile
import unittest

from weft_export import WEFT, IscsiExport, run

GOOD, CHECK_CONDITION, RESERVATION_CONFLICT = 0, 2, 0x18
REGISTER_AND_IGNORE, RESERVE = 6, 1
READ_KEYS = 0
WRITE_EXCLUSIVE = 1
KEY = 0x0123456789ABCDEF


class Parameters(ctypes.Structure):
    """struct scsi_persistent_reserve_out_basic"""
    _fields_ = [("key", ctypes.c_uint64), ("action_key", ctypes.c_uint64),
                ("specify", ctypes.c_uint8), ("all_ports", ctypes.c_uint8),
                ("persist", ctypes.c_uint8)]


class Keys(ctypes.Structure):
    """struct scsi_persistent_reserve_in_read_keys; as many keys as we ever look at"""
    _fields_ = [("generation", ctypes.c_int), ("length", ctypes.c_int), ("count", ctypes.c_int),
                ("keys", ctypes.c_uint64 * 4)]


def library():
    iscsi = ctypes.CDLL("libiscsi.so.7")
    for name in ("iscsi_create_context", "iscsi_testunitready_sync",
                 "iscsi_persistent_reserve_out_sync", "iscsi_persistent_reserve_in_sync",
                 "iscsi_write10_sync", "scsi_datain_unmarshall"):
        getattr(iscsi, name).restype = ctypes.c_void_p
    return iscsi


class Initiator:
    """A session of libiscsi at one unit."""

    def __init__(self, name, export):
        self.iscsi = library()
        self.context = ctypes.c_void_p(self.iscsi.iscsi_create_context(name.encode()))
        self.iscsi.iscsi_set_targetname(self.context, IscsiExport.NAME.encode())
        self.iscsi.iscsi_set_session_type(self.context, 2)
        if self.iscsi.iscsi_full_connect_sync(self.context, export.portal.encode(), 0) != 0:
            raise AssertionError("libiscsi could not log in")
        for _ in range(4):
            self.status(self.iscsi.iscsi_testunitready_sync(self.context, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.iscsi.iscsi_destroy_context(self.context)

    @staticmethod
    def status(task):
        """The first word of a struct scsi_task."""
        return ctypes.cast(task, ctypes.POINTER(ctypes.c_int))[0]

    def reserve_out(self, action, persist=False, key=0, action_key=0, kind=0):
        parameters = Parameters(key, action_key, 0, 0, persist)
        return self.status(self.iscsi.iscsi_persistent_reserve_out_sync(
            self.context, 0, action, 0, kind, ctypes.byref(parameters)))

    def keys(self):
        task = self.iscsi.iscsi_persistent_reserve_in_sync(self.context, 0, READ_KEYS, 1024)
        found = ctypes.cast(self.iscsi.scsi_datain_unmarshall(ctypes.c_void_p(task)),
                            ctypes.POINTER(Keys)).contents
        return [found.keys[i] for i in range(min(found.count, 4))]

    def write(self):
        data = ctypes.create_string_buffer(512)
        return self.status(self.iscsi.iscsi_write10_sync(
            self.context, 0, 0, data, 512, 512, 0, 0, 0, 0, 0))


class Reservations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name) / "made" / "when needed"

    def export(self, *options):
        export = IscsiExport("--memory", "8M", *options)
        self.addCleanup(export.discard)
        return export

    def reserve(self, export):
        with Initiator("iqn.2026-11.io.weft:one", export) as one:
            self.assertEqual(one.reserve_out(REGISTER_AND_IGNORE, persist=True, action_key=KEY),
                             GOOD)
            self.assertEqual(one.reserve_out(RESERVE, key=KEY, kind=WRITE_EXCLUSIVE), GOOD)
            self.assertEqual(one.write(), GOOD)

    def test_they_outlive_a_kill(self):
        first = self.export("--state", self.state)
        self.reserve(first)
        first.process.kill()
        first.process.wait()
        with Initiator("iqn.2026-11.io.weft:two", self.export("--state", self.state)) as two:
            self.assertEqual(two.keys(), [KEY])
            self.assertEqual(two.write(), RESERVATION_CONFLICT)

    def test_they_are_not_promised_without_a_place_for_them(self):
        with Initiator("iqn.2026-11.io.weft:one", self.export()) as one:
            self.assertEqual(one.reserve_out(REGISTER_AND_IGNORE, persist=True, action_key=KEY),
                             CHECK_CONDITION)
            self.assertEqual(one.reserve_out(REGISTER_AND_IGNORE, action_key=KEY), GOOD)
            self.assertEqual(one.keys(), [KEY])

    def test_a_damaged_file_is_not_taken_for_none(self):
        first = self.export("--state", self.state)
        self.reserve(first)
        first.process.kill()
        first.process.wait()
        kept, = (each for each in self.state.iterdir() if each.suffix != ".new")
        octets = bytearray(kept.read_bytes())
        octets[20] ^= 1
        kept.write_bytes(octets)
        done = subprocess.run(
            [WEFT, "export", "iscsi", "--memory", "8M", "--target", IscsiExport.NAME,
             "--tcp", "127.0.0.1:0", "--state", self.state],
            capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("reservations", done.stderr)


class DiscoverySecrets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        secrets = pathlib.Path(folder.name) / "secrets"
        secrets.write_text("user scout correct-horse-1\n")
        secrets.chmod(0o600)
        self.export = IscsiExport("--memory", "8M", "--discovery-chap", secrets)
        self.addCleanup(self.export.discard)

    def test_who_knows_the_secret_is_told(self):
        for tool in (["iscsi-ls"], [WEFT, "initiator", "ls"]):
            said = run(*tool, f"iscsi://scout%correct-horse-1@{self.export.portal}")
            self.assertIn(IscsiExport.NAME, said)

    def test_nobody_else_is(self):
        done = subprocess.run([WEFT, "initiator", "ls", f"iscsi://{self.export.portal}"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(IscsiExport.NAME, done.stdout)

    def test_a_wrong_secret_is_not_shown_on_the_terminal(self):
        done = subprocess.run(
            [WEFT, "initiator", "ls", f"iscsi://scout%not-my-secret-9@{self.export.portal}"],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("not-my-secret-9", done.stdout + done.stderr)

    def test_targets_are_as_open_as_before(self):
        self.assertIn("WEFT", run("iscsi-inq", self.export.uri))


if __name__ == "__main__":
    unittest.main(verbosity=2)
