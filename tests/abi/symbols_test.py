#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our libraries export what Debian 12's export: names, versions, and how versions build on another.

The lists are libibverbs.txt and librdmacm.txt beside this file. A line is "VERSION name", with the
size in bytes for data, or "VERSION builds on VERSION". What only programs of before 2008 ask for is
not in them: the symbols that are not the default of their name (ibv_*@IBVERBS_1.0). UPDATE=1 writes
the lists anew from the stock libraries.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

HERE = pathlib.Path(__file__).parent
WEFT = pathlib.Path(os.environ.get("WEFT", "build/release/bin/weft")).resolve()
OURS = WEFT.parent.parent / "dropin"
STOCK = pathlib.Path("/usr/lib/x86_64-linux-gnu")
STOCK_VERSION = "44.0-"  # of rdma-core, which the lists are of
LIBRARIES = {"libibverbs": "libibverbs1", "librdmacm": "librdmacm1"}
OUR_OWN = "WEFT_"  # versions of what our libraries say to each other
# Debian's programs, and libraries of theirs, that are loaded with symbols of ours.
CLIENTS = ("ibv_devices", "ibv_devinfo", "rping", "ucmatose", "udaddy", "mckey", "rdma_client",
           "rdma_server", "rdma_xclient", "rdma_xserver", "cmtime", "rstream", "riostream", "rcopy",
           "udpong", "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat",
           "ib_write_lat", "ib_read_lat", "ib_atomic_lat", "qperf", "fio", "tgtd", "iscsi-ls",
           "fi_info", "fi_pingpong")


def readelf(*words):
    return subprocess.run(["readelf", "--wide", *map(str, words)], capture_output=True, text=True,
                          check=True).stdout


def exported(path):
    """Every default symbol, as a line of our lists."""
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[4] == "LOCAL" or fields[6] == "UND" or "@@" not in fields[7]:
            continue
        name, version = fields[7].split("@@")
        if not version.startswith(OUR_OWN):
            yield f"{version} {name}" + (f" {fields[2]}" if fields[3] == "OBJECT" else "")


def versions(path):
    """Every version, and what it builds on."""
    definitions = readelf("--version-info", path).partition("Version definition")[2]
    definitions = definitions.partition("Version needs")[0]
    current = None
    for name, parent in re.findall(r"Flags: none .* Name: (\S+)|Parent \d+: (\S+)", definitions):
        current = name or current
        if not current.startswith(OUR_OWN):
            yield f"{current} builds on {parent}" if parent else current


def described(path):
    return {*exported(path), *versions(path)}


def in_order(lines):
    """Versions by number, not by letter: 1.9 before 1.10."""
    return sorted(lines, key=lambda line: ([int(part) if part.isdigit() else 0 for part in
                                            re.split(r"[._ ]", line.split()[0])[1:]], line))


def listed(library):
    lines = (HERE / f"{library}.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def installed_version(package):
    return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package],
                          capture_output=True, text=True).stdout


def differences(expected, found):
    missing = [f"missing: {line}" for line in in_order(expected - found)]
    added = [f"not in the stock library: {line}" for line in in_order(found - expected)]
    return "\n".join(missing + added)


class Symbols(unittest.TestCase):
    def test_ours_are_those_of_the_lists(self):
        for library in LIBRARIES:
            with self.subTest(library):
                found = described(OURS / f"{library}.so.1")
                if wrong := differences(listed(library), found):
                    self.fail(f"\n{wrong}")

    def test_the_lists_are_those_of_the_stock_libraries(self):
        for library, package in LIBRARIES.items():
            stock = STOCK / f"{library}.so.1"
            if not installed_version(package).startswith(STOCK_VERSION):
                self.skipTest(f"{package} {STOCK_VERSION}* is not installed")
            if os.environ.get("UPDATE"):
                head = (f"# What {library}.so.1 of rdma-core 44, Debian 12, exports by default.\n"
                        "# symbols_test.py says what a line means, and writes this file.\n")
                lines = "".join(f"{line}\n" for line in in_order(described(stock)))
                (HERE / f"{library}.txt").write_text(head + lines)
            with self.subTest(library):
                if wrong := differences(listed(library), described(stock)):
                    self.fail(f"\n{wrong}")

    def test_the_loader_knows_them_by_the_stock_names(self):
        for library in LIBRARIES:
            dynamic = readelf("--dynamic", OURS / f"{library}.so.1")
            self.assertIn(f"Library soname: [{library}.so.1]", dynamic)

    def test_no_stock_program_misses_anything(self):
        for name in CLIENTS:
            with self.subTest(name):
                program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
                self.assertTrue(program, f"{name} is not installed")
                told = subprocess.run([WEFT, "run", "ldd", "-r", program], capture_output=True,
                                      text=True, timeout=20)
                said = told.stdout + told.stderr
                self.assertNotRegex(said, r"undefined symbol|not found|no version information")

    @unittest.skipUnless(shutil.which("abidiff"), "abidiff is not installed")
    def test_abidiff_misses_only_what_is_not_the_default(self):
        for library, package in LIBRARIES.items():
            stock = STOCK / f"{library}.so.1"
            if not installed_version(package).startswith(STOCK_VERSION):
                self.skipTest(f"{package} {STOCK_VERSION}* is not installed")
            told = subprocess.run(["abidiff", "--no-added-syms", "--symtabs", stock,
                                   OURS / stock.name], capture_output=True, text=True, timeout=60)
            removed = re.findall(r"^\s*\[D\] (.*)$", told.stdout, re.MULTILINE)
            missed = [symbol for symbol in removed if "@@" in symbol]
            self.assertEqual(missed, [], told.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
