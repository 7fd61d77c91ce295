#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes inputs of fuzz_iscsi_session from what a real initiator says to our target.

    WEFT=build/release/bin/weft tests/fuzz/iscsi_session_seeds.py FOLDER

Stands between libiscsi's suite and `weft export iscsi`, and writes what each connection said behind
its login, numbered from zero as the fuzzer's own login has it. One file a connection, cut at a PDU.
"""
import hashlib
import pathlib
import struct
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "interop"))
from weft_export import IscsiExport  # pylint: disable=wrong-import-position
from wiretap import CLIENT, Wiretap  # pylint: disable=wrong-import-position

HEADER, LOGIN, LONGEST = 48, 0x03, 6000
TESTS = ("CompareAndWrite", "ExtendedCopy", "GetLBAStatus", "Inquiry", "ModeSense6", "OrWrite",
         "Prefetch10", "PreventAllow", "ProutReserve", "Read16", "ReceiveCopyResults",
         "ReportSupportedOpcodes", "Reserve6", "Sanitize.Readonly", "StartStopUnit", "Unmap",
         "Verify16", "WriteAtomic16", "WriteSame16", "WriteVerify16", "iSCSIcmdsn", "iSCSIdatasn",
         "iSCSIResiduals", "iSCSITMF")
NUMBERED = {0x00, 0x01, 0x02, 0x04, 0x06}  # requests with a CmdSN


def seed_of(said):
    """What was said behind the login, as far as it has room."""
    at, first, words = 0, None, bytearray()
    while at + HEADER <= len(said):
        header = said[at:at + HEADER]
        length = header[4] * 4 + (int.from_bytes(header[5:8], "big") + 3) // 4 * 4
        pdu = bytearray(said[at:at + HEADER + length])
        at += HEADER + length
        number, = struct.unpack_from(">I", header, 24)
        if header[0] & 0x3F == LOGIN:
            first = number
            continue
        if header[0] & 0x3F in NUMBERED:
            struct.pack_into(">I", pdu, 24, (number - first) & 0xFFFFFFFF)
        if len(words) + len(pdu) > LONGEST:
            break
        words += pdu
    return bytes(words)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with IscsiExport("--memory", "1M", "--removable") as export:
        for number, test in enumerate(TESTS):
            with Wiretap(export.portal) as tap:
                url = export.uri.replace(export.portal, tap.portal)
                subprocess.run(["iscsi-test-cu", "-d", "-S", "-t", f"ALL.{test}", url, url],
                               timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               check=False)
            for each in tap.conversations:
                if words := seed_of(each.of(CLIENT)):
                    seed = bytes((number % 64 & ~4, 255, 0, 0)) + words
                    (folder / hashlib.sha1(seed).hexdigest()[:16]).write_bytes(seed)


if __name__ == "__main__":
    main()
