# SPDX-License-Identifier: Apache-2.0
"""What a capture says: Wireshark's opinion of the frames, and the Terminate messages by hand."""
import re
import subprocess

# These guess from the bytes that applications sent, and would take our text for their own.
GUESSERS = ("rpcordma", "smb_direct")
TERMINATE = re.compile(r"4147 00000000 00000002 00000001 00000000 (.)(.)(..)".replace(" ", ""))


def tshark(capture, *words):
    command = ["tshark", "-r", str(capture), "-n", "-o", "tcp.reassemble_out_of_order:TRUE"]
    for name in GUESSERS:
        command += ["--disable-protocol", name]
    done = subprocess.run([*command, *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"tshark ends with {done.returncode}")
    return done.stdout


def complaints(capture, source):
    """What Wireshark finds wrong with the iWARP frames from that address."""
    text = tshark(capture, "-V", "-Y", f"ip.src == {source} && (iwarp_mpa || iwarp_ddp_rdmap)")
    return re.findall(r".*(?:Malformed|Bad CRC32).*", text)


def opcodes(capture, source):
    """Of all RDMAP messages from there, once each."""
    text = tshark(capture, "-Y", f"ip.src == {source}", "-T", "fields", "-e", "iwarp_rdma.opcode")
    return {int(word, 0) for word in text.replace(",", " ").split()}


def terminates(capture, source, swapped):
    """(layer, type, code) of each Terminate from there. siw swaps the first two, as it has bit
    fields where the RFC has octets."""
    text = tshark(capture, "-Y", f"ip.src == {source}", "-T", "fields", "-e", "tcp.payload")
    found = []
    for first, second, code in TERMINATE.findall(text.replace(":", "")):
        layer, kind = (second, first) if swapped else (first, second)
        found.append((int(layer, 16), int(kind, 16), int(code, 16)))
    return found
