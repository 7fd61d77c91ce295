#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock programs on our libraries where kernel RDMA cannot be had: as an ordinary user, in a
network namespace made without privileges, and with io_uring refused as containers refuse it.

The class Outside copies what is needed to where anybody may read it, and there runs this very file
again, with the tests of Inside.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from dropin import HOST, WEFT, DropinCase, free_port

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # not one from somebody's home
NAMESPACE = ["unshare", "--map-root-user", "--net"]
WITH_LOOPBACK = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
SECONDS = 120


class Inside(DropinCase):
    def test_devices(self):
        self.must_say(r"PORT_ACTIVE", self.run_here("ibv_devinfo", "-v"))

    def test_rping(self):
        port = free_port()
        self.run_pair(["rping", "-s", "-a", HOST, "-p", port, "-V"],
                      ["rping", "-c", "-a", HOST, "-p", port, "-V", "-C", 100], port)

    def test_perftest(self):
        for program in ("ib_write_bw", "ib_read_lat", "ib_send_bw"):
            with self.subTest(program):
                port = free_port()
                command = [program, "-R", "-F", "-n", 100, "-p", port]
                self.run_pair(command, [*command, HOST], port)
                self.forget()

    def test_rstream(self):
        port = free_port()
        words = ["-p", port, "-T", "v", "-I", 5, "-C", 20, "-S", 10000]
        self.run_pair(["rstream", "-b", HOST, *words], ["rstream", "-s", HOST, *words], port)


class Outside(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        weft = pathlib.Path(WEFT).resolve()
        (self.folder / "bin").mkdir()
        shutil.copy(weft, self.folder / "bin/weft")
        shutil.copytree(weft.parent.parent / "dropin", self.folder / "dropin")
        for name in ("dropin.py", "without_io_uring.py", pathlib.Path(__file__).name):
            shutil.copy(HERE / name, self.folder / name)
        self.without_io_uring = [PYTHON, str(self.folder / "without_io_uring.py")]
        self.as_user = []
        if os.geteuid() == 0:
            self.as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def run_inside(self, *before):
        command = [*self.as_user, *before, PYTHON, str(self.folder / pathlib.Path(__file__).name),
                   "Inside"]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS, cwd="/",
                              env={**os.environ, "WEFT": str(self.folder / "bin/weft"),
                                   "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(told.returncode, 0, f"{' '.join(command)}\n{told.stdout}")

    def namespace(self):
        """The words that make one; a machine may forbid it to everybody."""
        told = subprocess.run([*self.as_user, *NAMESPACE, "true"], capture_output=True, text=True,
                              timeout=20, cwd="/")
        if told.returncode:
            self.skipTest(f"no namespaces for users here: {told.stderr.strip()}")
        return [*NAMESPACE, *WITH_LOOPBACK]

    def test_an_ordinary_user_needs_no_rights(self):
        self.run_inside()

    def test_a_namespace_of_one_s_own_is_enough(self):
        self.run_inside(*self.namespace())

    def test_nobody_misses_io_uring(self):
        self.run_inside(*self.without_io_uring)

    def test_all_of_it_at_once(self):
        self.run_inside(*self.namespace(), *self.without_io_uring)


if __name__ == "__main__":
    unittest.main(verbosity=2, defaultTest="Outside")
