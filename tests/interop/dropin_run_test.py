#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft run` itself: what it sets, what it hands on, and the one sentence for what it cannot do."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

WEFT = pathlib.Path(os.environ.get("WEFT", "build/release/bin/weft")).resolve()
DROPIN = WEFT.parent.parent / "dropin"


def weft(*words, **environment):
    """With only these variables, and PATH."""
    return subprocess.run([WEFT, *map(str, words)], capture_output=True, text=True, timeout=20,
                          env={"PATH": os.environ["PATH"], **environment})


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.addCleanup(folder.cleanup)

    def program(self, name, text="#!/bin/sh\n", mode=0o755):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def assert_refused(self, told, status, words):
        self.assertEqual((told.returncode, told.stdout), (status, ""), told.stderr)
        self.assertRegex(told.stderr, rf"\Aweft: .*{words}.*\n\Z")

    def test_the_program_gets_the_library_path_and_the_wishes(self):
        told = weft("run", "--crc", "off", "--mode", "revision-1", "--placement", "eager", "env")
        said = dict(line.split("=", 1) for line in told.stdout.splitlines())
        self.assertEqual(said["LD_LIBRARY_PATH"], str(DROPIN))
        self.assertEqual((said["WEFT_CRC"], said["WEFT_MODE"], said["WEFT_PLACEMENT"]),
                         ("off", "revision-1", "eager"))

    def test_a_misspelt_wish_is_said_once(self):
        told = weft("run", "rping", "-c", "-a", "127.0.0.1", "-p", "1", WEFT_MODE="revision1")
        said = 'weft: WEFT_MODE: there is no "revision1", so it is "peer-to-peer"\n'
        self.assertEqual(told.stderr.count(said), 1, told.stderr)

    def test_what_nobody_wished_is_not_set(self):
        said = weft("run", "env").stdout
        self.assertNotIn("WEFT_", said)

    def test_our_folder_comes_first_and_once(self):
        for before, after in (("/a:/b", f"{DROPIN}:/a:/b"), ("", f"{DROPIN}"),
                              (f"{DROPIN}", f"{DROPIN}"), (f"{DROPIN}:/a", f"{DROPIN}:/a"),
                              (f"/a:{DROPIN}", f"{DROPIN}:/a:{DROPIN}")):
            with self.subTest(before):
                said = weft("run", "printenv", "LD_LIBRARY_PATH", LD_LIBRARY_PATH=before).stdout
                self.assertEqual(said, after + "\n")

    def test_a_stock_program_finds_our_libraries(self):
        said = weft("run", "ldd", shutil.which("rping")).stdout
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            self.assertIn(f"{name} => {DROPIN / name} ", said)

    def test_options_after_the_program_are_the_program_s(self):
        for words in (["echo", "--crc", "--help"], ["--", "echo", "--crc", "--help"]):
            self.assertEqual(weft("run", *words).stdout, "--crc --help\n")

    def test_its_status_and_its_death_are_the_program_s(self):
        self.assertEqual(weft("run", "sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(weft("run", "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)

    def test_who_stops_reading_stops_it(self):
        told = subprocess.run(["sh", "-c", f"{WEFT} run sh -c 'kill -PIPE $$'; echo $?"],
                              capture_output=True, text=True, timeout=20)
        self.assertEqual(told.stdout, f"{128 + signal.SIGPIPE}\n")

    def test_a_script_without_a_first_line_runs_as_in_a_shell(self):
        self.assertEqual(weft("run", self.program("plain", "echo here\n")).stdout, "here\n")

    def test_print_env_is_for_eval(self):
        away = self.folder / "it's away"
        away.mkdir()
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            (away / name).symlink_to(DROPIN / name)
        script = f'eval "$({WEFT} run --crc off --print-env)" && env'
        told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=20,
                              env={"PATH": os.environ["PATH"], "WEFT_DROPIN": str(away)})
        self.assertIn(f"LD_LIBRARY_PATH={away}\n", told.stdout)
        self.assertIn("WEFT_CRC=off\n", told.stdout)

    def test_print_env_has_json(self):
        told = weft("run", "--mode", "client-server", "--print-env", "--json")
        self.assertEqual(json.loads(told.stdout), {"environment": {
            "LD_LIBRARY_PATH": str(DROPIN), "WEFT_MODE": "client-server"}})

    def test_a_program_that_is_not_there_is_127(self):
        self.assert_refused(weft("run", "no-such-program"), 127,
                            "there is no program 'no-such-program' in PATH")
        self.assert_refused(weft("run", "./no-such-program"), 127, "No such file or directory")
        self.assert_refused(weft("run", ""), 127, "there is no program ''")

    def test_a_file_that_cannot_be_run_is_126(self):
        self.assert_refused(weft("run", self.program("text", mode=0o644)), 126, "Permission denied")
        self.assert_refused(weft("run", self.folder), 126, "Is a directory")
        self.assert_refused(weft("run", "text", PATH=str(self.folder)), 126, "Permission denied")
        broken = self.program("broken", "#!/no/such/interpreter\n")
        self.assert_refused(weft("run", broken), 126, "No such file or directory")

    def test_a_statically_linked_program_cannot_be_helped(self):
        source = self.folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        static = self.folder / "static"
        subprocess.run(["cc", "-static", "-o", static, source], check=True)
        self.assert_refused(weft("run", static), 126, "statically linked")

    def test_another_machine_s_program_cannot_be_helped(self):
        header = bytearray(pathlib.Path(shutil.which("rping")).read_bytes()[:64])
        header[18:20] = (8).to_bytes(2, "little")  # MIPS
        foreign = self.program("foreign", "")
        foreign.write_bytes(header)
        self.assert_refused(weft("run", foreign), 126, "another kind of machine")

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "needs setpriv")
    def test_a_setuid_program_ignores_the_library_path_and_that_is_said(self):
        path = self.folder / "setuid"
        shutil.copy(shutil.which("true"), path)
        as_user = []
        if os.geteuid() == 0:
            as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        path.chmod(0o4755)
        told = subprocess.run([*as_user, WEFT, "run", path], capture_output=True, text=True,
                              timeout=20)
        if not as_user:  # our own file, so the bit gives us nothing
            self.assertEqual(told.returncode, 0, told.stderr)
            return
        self.assert_refused(told, 126, "more rights than yours")

    def test_libraries_that_are_not_there_are_named(self):
        self.assert_refused(weft("run", "true", WEFT_DROPIN=str(self.folder)), 1,
                            f"WEFT_DROPIN is {self.folder}, and there is no libibverbs")
        bare = self.folder / "bin/weft"
        bare.parent.mkdir()
        shutil.copy(WEFT, bare)
        told = subprocess.run([bare, "run", "true"], capture_output=True, text=True, timeout=20)
        self.assert_refused(told, 1, f"neither in {self.folder}/dropin nor in "
                            f"{self.folder}/lib/weft/dropin; set WEFT_DROPIN")

    def test_where_it_is_installed_it_finds_them_too(self):
        installed = self.folder / "bin/weft"
        libraries = self.folder / "lib/weft/dropin"
        installed.parent.mkdir()
        libraries.mkdir(parents=True)
        shutil.copy(WEFT, installed)
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            (libraries / name).touch()
        told = subprocess.run([installed, "run", "--print-env"], capture_output=True, text=True,
                              timeout=20, env={})
        self.assertEqual(told.stdout, f"export LD_LIBRARY_PATH='{libraries}'\n")

    def test_a_folder_no_library_path_can_name_is_refused(self):
        odd = self.folder / "a:b"
        odd.mkdir()
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            (odd / name).touch()
        self.assert_refused(weft("run", "true", WEFT_DROPIN=str(odd)), 1, "cannot name a folder")


if __name__ == "__main__":
    unittest.main(verbosity=2)
