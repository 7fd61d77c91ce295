#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft box serve` as a process: what a stock initiator sees of it, what it says of itself, when it
refuses to start."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from iscsi_client import DATA_IN, RESPONSE, Initiator
from weft_export import WEFT, run

TARGET = "iqn.2026-11.io.weft:box.{}"
ARRAY_ORDER = 0xD0
CREATE_PART, DELETE_PART, NEW_EPOCH, DESCRIBE = 0x28, 0x29, 0x22, 0x27
DONE, WRONG_CLUSTER, MALFORMED, NO_SPACE = 0, 1, 6, 0x0C
GOOD, CHECK_CONDITION = 0, 2
CLUSTER, VOLUME = bytes(range(16)), bytes(range(0x20, 0x30))


class Box:
    def __init__(self, folder, *words, name="oak", size="256M"):
        self.output = open(pathlib.Path(folder).parent / f"{name}.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [WEFT, "box", "serve", "--name", name, "--data", folder, "--size", size, "--listen",
             "127.0.0.1:0", "--json", *words], stdout=self.output, stderr=subprocess.STDOUT)
        for _ in range(400):
            if '"serving"' in self.said() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        assert self.process.poll() is None, self.said()
        lines = [json.loads(line) for line in self.said().splitlines()]
        self.news = next(line for line in lines if line["event"] == "serving")
        self.portal = self.news["address"]
        self.name = name

    def said(self):
        return pathlib.Path(self.output.name).read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGTERM)

    def end(self, how):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(30)
        self.output.close()
        return status


class Controller(Initiator):
    def __init__(self, box):
        super().__init__(box.portal)
        self.log_in(TARGET.format(box.name))

    def order(self, action, parameters=b"", room=0):
        """What the box answers: status, outcome, data."""
        block = struct.pack(">BBQIxx", ARRAY_ORDER, action, 1, len(parameters))
        self.command(block, read=room, write=len(parameters), data=parameters)
        data = b""
        answer = self.hear()
        while answer.opcode == DATA_IN:
            data += answer.data
            answer = self.hear()
        assert answer.opcode == RESPONSE, answer.header.hex()
        sense = answer.data[2:]
        # Sense data in the descriptor format, also with GOOD; in it one descriptor of ours.
        assert sense[0] == 0x72 and sense[8] == 0x80, sense.hex()
        return answer.status, sense[10], data


def address(box, volume=bytes(16), cluster=CLUSTER, epoch=1):
    return cluster + volume + box + struct.pack(">QQ", 1 if volume.strip(b"\0") else 0, epoch)


def superblock(box, data_length):
    members = box + b"\1" + bytes(15) + (b"\x55" * 16 + b"\1" + bytes(15)) * 2
    volume = VOLUME + b"photos".ljust(64, b"\0") + struct.pack(
        ">QBBBxIQ", 1, 5, 3, 0, 65536, data_length // 65536) + members.ljust(18 * 32, b"\0")
    return b"WeftBox1" + struct.pack(">Q", 0) + CLUSTER + box + bytes(8) + struct.pack(
        ">QQQQQ", 1, 1 << 20, data_length, 0, 0) + volume


class BoxServe(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.data = pathlib.Path(self.folder.name) / "oak"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_stock_initiator_sees_an_array_controller_and_no_disk(self):
        with Box(self.data) as box:
            listed = run("iscsi-ls", f"iscsi://{box.portal}")
            self.assertIn(TARGET.format("oak"), listed)
            said = run("iscsi-inq", f"iscsi://{box.portal}/{TARGET.format('oak')}/0")
            self.assertIn("STORAGE_ARRAY_CONTROLLER", said)
            refused = subprocess.run(
                ["iscsi-readcapacity16", f"iscsi://{box.portal}/{TARGET.format('oak')}/0"],
                capture_output=True, text=True, timeout=30, check=False)
            self.assertNotEqual(refused.returncode, 0)

    def test_it_takes_commands_and_remembers_them_after_a_kill(self):
        with Box(self.data) as box:
            controller = Controller(box)
            status, outcome, data = controller.order(DESCRIBE, room=65536)
            self.assertEqual((status, outcome, data[:8]), (GOOD, DONE, b"WeftDsc3"))
            identity = data[8:24]
            self.assertEqual(identity.hex(), box.news["identity"])
            self.assertEqual(data[24:40], bytes(16), "nobody's")
            self.assertEqual(controller.order(CREATE_PART, address(identity, VOLUME))[:2],
                             (CHECK_CONDITION, WRONG_CLUSTER))
            self.assertEqual(controller.order(NEW_EPOCH, address(identity))[:2], (GOOD, DONE))
            self.assertEqual(
                controller.order(CREATE_PART, address(identity, VOLUME) +
                                   superblock(identity, 512 << 20))[:2],
                (CHECK_CONDITION, NO_SPACE))
            self.assertEqual(
                controller.order(CREATE_PART, address(identity, VOLUME) +
                                   superblock(identity, 64 << 20))[:2], (GOOD, DONE))
            self.assertEqual((self.data / f"part-{VOLUME.hex()}").stat().st_size, 65 << 20)
            self.assertEqual(controller.order(0x3E, b"what?")[:2], (CHECK_CONDITION, MALFORMED))
            controller.close()
            box.end(signal.SIGKILL)
        self.examined(identity)
        with Box(self.data) as box:
            controller = Controller(box)
            data = controller.order(DESCRIBE, room=65536)[2]
            self.assertEqual((data[8:24], data[24:40]), (identity, CLUSTER))
            size, free, limit, windows, parts = struct.unpack_from(">QQIHH", data, 120)
            self.assertEqual((size, free, parts), (256 << 20, 191 << 20, 1))
            self.assertEqual(data[152:160], b"WeftBox1")
            self.assertEqual(len(data), 152 + 776 + 4 * windows + 24)  # an address of one network
            self.assertGreaterEqual(limit, 1 << 20)
            self.assertEqual(
                controller.order(NEW_EPOCH, address(identity, cluster=bytes(range(1, 17)),
                                                      epoch=9))[:2],
                (CHECK_CONDITION, WRONG_CLUSTER))
            self.assertEqual(controller.order(DELETE_PART, address(identity, VOLUME))[:2],
                             (GOOD, DONE))
            self.assertFalse((self.data / f"part-{VOLUME.hex()}").exists())
            controller.close()
            self.assertEqual(box.end(signal.SIGTERM), 0)

    def examined(self, identity):
        """What can be seen from outside, while no box runs."""
        told = json.loads(run(WEFT, "examine", self.data, "--json"))
        self.assertEqual((told["name"], told["identity"], told["cluster"], told["epoch"]),
                         ("oak", identity.hex(), CLUSTER.hex(), 1))
        part = told["parts"][0]
        self.assertEqual((part["file"], part["size"], part["begun"], part["newest"]),
                         (f"part-{VOLUME.hex()}", 65 << 20, False, 0))
        self.assertEqual([copy["whole"] for copy in part["copies"]], [True, True])
        self.assertEqual((part["copies"][0]["volume"], part["copies"][0]["stripes"]),
                         ("photos", 1024))
        self.assertEqual([member["state"] for member in part["copies"][0]["members"]],
                         ["current"] * 3)
        self.assertIn("place 0 of volume photos: level 5, chunks of 64 KiB, 1024 stripes",
                      run(WEFT, "examine", self.data))
        path = self.data / part["file"]
        before = path.read_bytes()
        path.write_bytes(before[:100] + b"!" + before[101:])
        told = json.loads(run(WEFT, "examine", self.data, "--json"))
        self.assertEqual(told["parts"][0]["newest"], 1, "the other copy is as good")
        path.write_bytes(before[:100] + b"!" + before[101:4196] + b"!" + before[4197:])
        told = json.loads(run(WEFT, "examine", self.data, "--json"))
        self.assertIsNone(told["parts"][0]["newest"], "a superblock with a wrong octet is none")
        with Box(self.data, size="1G") as box:  # one bad part does not keep it from starting
            self.assertIn(f"{path}: no superblock on it is whole; the box starts without this part",
                          box.said())
        path.write_bytes(before)

    def refusal(self, *words):
        done = subprocess.run([WEFT, "box", "serve", "--listen", "127.0.0.1:0", *map(str, words)],
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr.strip()

    def test_it_refuses_what_is_not_its_own_in_one_sentence(self):
        with Box(self.data) as box:
            self.assertEqual(
                self.refusal("--name", "oak", "--data", self.data, "--size", "1G"),
                f"weft: {self.data}: another weft box serve uses this folder")
            self.assertEqual(box.end(signal.SIGTERM), 0)
        self.assertEqual(self.refusal("--name", "elm", "--data", self.data, "--size", "1G"),
                         f"weft: {self.data}: this is the folder of box oak, not of elm")
        (self.data / "box").write_bytes(b"nonsense")
        self.assertEqual(
            self.refusal("--name", "oak", "--data", self.data, "--size", "1G"),
            f"weft: {self.data}/box: this is not a box's file, or it is damaged")
        self.assertEqual(
            self.refusal("--name", "Oak!", "--data", self.data, "--size", "1G"),
            "weft: 'Oak!' is no name for a box: small letters, digits, '-' and '.', 63 at most")
        folder = self.data.parent / "elm"
        for name in ("Elm", "7"):
            self.refusal("--name", name, "--data", folder, "--size", "1G")
        for key, why in (("/dev/zero", "a key has at most 4096 octets"),
                         ("/dev/null", "a key has at least 16 octets"),
                         (folder / "key", "it cannot be read")):
            self.assertEqual(
                self.refusal("--name", "elm", "--data", folder, "--size", "1G", "--key", key),
                f"weft: {key}: {why}")
        self.assertFalse(folder.exists(), "what is refused leaves nothing behind")
        nowhere = self.data / "no" / "where"
        self.assertEqual(self.refusal("--name", "oak", "--data", nowhere, "--size", "1G"),
                         f"weft: {nowhere}: {os.strerror(2)}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
