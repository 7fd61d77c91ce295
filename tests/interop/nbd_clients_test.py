#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other people's NBD clients against `weft export nbd`: libnbd's tools, qemu's, fio, nbdkit."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from weft_export import WEFT, Export, run

MIB = 1 << 20


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def nbdsh(uri, script):
    """libnbd from Python: Debian's, whichever Python comes first in PATH here."""
    words = ["-u", uri] if uri else []
    return run("nbdsh", *words, "-c", script, env={**os.environ, "PATH": "/usr/bin:/bin"})


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def random_file(self, name, size):
        path = self.folder / name
        path.write_bytes(os.urandom(size))
        return path

    def disk_file(self, size=64 * MIB):
        path = self.folder / "disk.img"
        with path.open("wb") as file:
            file.truncate(size)
        return path

    def kinds(self):
        """The options of every kind of disk we serve."""
        return {"memory": ["--memory", "64M"],
                "file": ["--file", self.disk_file()],
                "file by threads": ["--file", self.disk_file(), "--file-engine", "threads"]}

    def with_each_kind(self, check):
        for kind, options in self.kinds().items():
            with self.subTest(kind), Export(*options) as export:
                check(export)


class Libnbd(Folder):
    def test_nbdinfo_sees_what_is_served(self):
        with Export("--memory", "64M", "--name", "disk0", "--description", "a test disk") as export:
            seen = json.loads(run("nbdinfo", "--json", export.uri))["exports"][0]
        self.assertEqual(seen["export-name"], "disk0")
        self.assertEqual(seen["export-size"], 64 * MIB)
        self.assertEqual(seen["description"], "a test disk")
        self.assertIn("base:allocation", seen["contexts"])
        for ability in ("can_flush", "can_fua", "can_trim", "can_zero", "can_fast_zero",
                        "can_cache", "can_multi_conn", "can_df"):
            self.assertTrue(seen[ability], ability)
        self.assertFalse(seen["is_read_only"])
        self.assertEqual(seen["block_size_maximum"], 32 * MIB)

    def test_nbdinfo_lists_many_exports(self):
        names = [f"disk{number}" for number in range(20)]
        words = [word for name in names for word in ("--memory", "1M", "--name", name)]
        with Export(*words) as export:
            listed = run("nbdinfo", "--list", "--json", f"nbd+unix:///?socket={export.socket}")
            for uri in export.uris():
                self.assertEqual(run("nbdinfo", "--size", uri).strip(), str(MIB))
        self.assertEqual([seen["export-name"] for seen in json.loads(listed)["exports"]], names)

    def test_nbdcopy_brings_back_what_it_took(self):
        source = self.random_file("source", 64 * MIB)
        def check(export):
            back = self.folder / "back"
            run("nbdcopy", source, export.uri)
            run("nbdcopy", export.uri, back)
            self.assertEqual(digest(source), digest(back))

        self.with_each_kind(check)

    def test_nbdcopy_with_large_requests_and_one_connection(self):
        source = self.random_file("source", 64 * MIB)
        back = self.folder / "back"
        with Export("--file", self.disk_file()) as export:
            run("nbdcopy", "--request-size=33554432", "--connections=1", source, export.uri)
            run("nbdcopy", "--request-size=33554432", "--connections=1", export.uri, back)
        self.assertEqual(digest(source), digest(back))

    def test_holes_stay_holes(self):
        def check(export):
            nbdsh(export.uri, "h.pwrite(b'x' * 65536, 1 << 20)")
            extents = json.loads(run("nbdinfo", "--map", "--json", export.uri))
            data = [(e["offset"], e["length"]) for e in extents if e["type"] == 0]
            self.assertEqual(data, [(1 << 20, 65536)])
            nbdsh(export.uri, "h.trim(1 << 20, 1 << 20)")
            extents = json.loads(run("nbdinfo", "--map", "--json", export.uri))
            self.assertEqual([e["type"] for e in extents], [3])

        self.with_each_kind(check)

    def test_a_read_only_export_refuses_changes(self):
        with Export("--memory", "1M", "--read-only") as export:
            seen = json.loads(run("nbdinfo", "--json", export.uri))["exports"][0]
            self.assertTrue(seen["is_read_only"])
            script = ("h.set_strict_mode(0)\n"
                      "for call in (lambda: h.pwrite(b'x' * 512, 0), lambda: h.trim(512, 0),\n"
                      "             lambda: h.zero(512, 0)):\n"
                      "    try: call(); raise SystemExit('it was allowed')\n"
                      "    except nbd.Error as e: assert e.errno == 'EPERM', e\n"
                      "assert h.pread(512, 0) == bytearray(512)\n")
            nbdsh(export.uri, script)

    def test_16_connections_at_once_over_tcp(self):
        with Export("--memory", "64M", "--tcp", "127.0.0.1:0") as export:
            uri = [uri for uri in export.uris() if uri.startswith("nbd://")][0]
            script = ("import os\nbase = {index} * (4 << 20)\n"
                      "for turn in range(20):\n"
                      "    data = os.urandom(1 << 18)\n"
                      "    h.pwrite(data, base + turn * (1 << 17))\n"
                      "    assert h.pread(len(data), base + turn * (1 << 17)) == data\n")
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                list(pool.map(lambda index: nbdsh(uri, script.format(index=index)),
                              range(16)))

    def test_the_old_handshake_works_too(self):
        script = "h.set_opt_mode(False); h.set_handshake_flags(0); h.connect_uri('{}')\n" \
                 "assert h.get_protocol() == 'newstyle', h.get_protocol()\n" \
                 "h.pwrite(b'abc' * 512, 0); assert h.pread(1536, 0) == b'abc' * 512\n"
        with Export("--memory", "1M") as export:
            nbdsh(None, script.format(export.uri))


class Qemu(Folder):
    def test_qemu_img_converts_there_and_back(self):
        source = self.random_file("source", 64 * MIB)
        def check(export):
            back = self.folder / "back"
            run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", source, export.uri)
            run("qemu-img", "convert", "-f", "raw", "-O", "raw", export.uri, back)
            self.assertEqual(digest(source), digest(back))
            run("qemu-img", "compare", "-f", "raw", "-F", "raw", source, export.uri)

        self.with_each_kind(check)

    def test_qemu_io_writes_zeroes_discards_and_verifies(self):
        commands = ["write -P 0xaa 0 1M", "read -P 0xaa 0 1M", "write -z 4k 8k", "read -P 0 4k 8k",
                    "write -z -u 64k 64k", "read -P 0 64k 64k", "discard 128k 128k",
                    "read -P 0 128k 128k", "write -f -P 0x55 300k 4k", "read -P 0x55 300k 4k",
                    "flush", "write -P 1 1000 333", "read -P 1 1000 333", "aio_write -P 7 2M 1M",
                    "aio_flush", "aio_read -P 7 2M 4k", "aio_flush", "read -P 7 2M 1M", "map"]
        words = [word for command in commands for word in ("-c", command)]
        def check(export):
            said = run("qemu-io", "-f", "raw", *words, export.uri)
            self.assertNotIn("failed", said)

        self.with_each_kind(check)


class Fio(Folder):
    def test_fio_verifies_what_it_wrote(self):
        def check(export):
            run("fio", "--name=verify", "--ioengine=nbd", f"--uri={export.uri}", "--rw=randwrite",
                "--bsrange=512-128k", "--iodepth=16", "--size=32M", "--verify=crc32c",
                "--do_verify=1", "--verify_fatal=1", cwd=self.folder)

        self.with_each_kind(check)


class Nbdkit(Folder):
    def test_nbdkit_can_stand_in_front(self):
        source = self.random_file("source", 16 * MIB)
        back = self.folder / "back"
        proxy = self.folder / "proxy.sock"
        with Export("--memory", "16M") as export:
            run("nbdkit", "-U", proxy, "nbd", f"socket={export.socket}", "--run",
                f'nbdcopy {source} "$uri" && nbdcopy "$uri" {back}')
        self.assertEqual(digest(source), digest(back))


class OurClient(Folder):
    def test_weft_copies_from_and_to_other_servers(self):
        source = self.random_file("source", 16 * MIB)
        back = self.folder / "back"
        for server in (["nbdkit", "-U", "-", "memory", "16M", "--run"],
                       ["nbdkit", "-U", "-", "--mask-handshake=0", "memory", "16M", "--run"],
                       ["nbdkit", "-U", "-", "--no-sr", "memory", "16M", "--run"]):
            with self.subTest(server):
                back.unlink(missing_ok=True)
                run(*server, f'{WEFT} disk copy {source} "$uri" && {WEFT} disk copy "$uri" {back}')
                self.assertEqual(digest(source), digest(back))

    def test_weft_copies_to_a_server_that_cannot_flush(self):
        source = self.random_file("source", 4 * MIB)
        target = self.disk_file(4 * MIB)
        script = {"get_size": f"echo {4 * MIB}",
                  "pread": f"dd if={target} bs=1M skip=$4 count=$3 iflag=skip_bytes,count_bytes",
                  "pwrite": f"dd of={target} bs=1M seek=$4 conv=notrunc oflag=seek_bytes",
                  "can_write": "exit 0", "can_flush": "exit 3"}
        words = [f"{name}={code}" for name, code in script.items()]
        seen = run("nbdkit", "-U", "-", "eval", *words, "--run",
                   f'nbdinfo --json "$uri" >&2 && {WEFT} disk copy {source} "$uri"')
        self.assertIn("copied", seen)
        self.assertEqual(digest(source), digest(target))

    def test_weft_keeps_to_a_servers_blocks_and_refuses_half_ones(self):
        server = ["nbdkit", "-U", "-", "--filter=blocksize-policy", "memory", "2M",
                  "blocksize-minimum=4096", "blocksize-preferred=4096",
                  "blocksize-maximum=1M", "blocksize-error-policy=error", "--run"]
        whole = self.random_file("whole", MIB)
        with whole.open("r+b") as file:  # a hole that ends in the middle of a block
            file.truncate(MIB + 4096)
        back = self.folder / "back"
        run(*server, f'{WEFT} disk copy {whole} "$uri" && {WEFT} disk copy "$uri" {back}')
        self.assertEqual(whole.read_bytes(), back.read_bytes()[:MIB + 4096])
        half = self.random_file("half", 1_000_000)
        command = [*server, f'{WEFT} disk copy {half} "$uri"']
        refused = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("whole blocks of 4096 bytes", refused.stderr)
        self.assertIn("1000000 bytes", refused.stderr)

    def test_weft_copies_through_qemu_nbd_and_keeps_holes(self):
        image = self.disk_file(16 * MIB)
        socket = self.folder / "qemu.sock"
        server = subprocess.Popen(["qemu-nbd", "-t", "-e", "4", "-f", "raw", "-k", socket, image])
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        uri = f"nbd+unix:///?socket={socket}"
        while subprocess.run(["nbdinfo", "--size", uri], capture_output=True).returncode:
            self.assertIsNone(server.poll())
        source = self.random_file("source", 3 * MIB)
        os.truncate(source, 16 * MIB)
        run(WEFT, "disk", "copy", source, uri)
        copied = json.loads(run(WEFT, "disk", "copy", "--json", uri, self.folder / "back"))
        self.assertEqual(digest(source), digest(self.folder / "back"))
        self.assertEqual(copied["bytes_moved"], 3 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
