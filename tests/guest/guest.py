#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Linux kernel with its own software RDMA, siw, in an emulated machine beside the test.

The test's process moves into a network of its own, which holds nothing but itself and the guest:
no name or address can collide with anything, and all of it is gone when the last process is. The
guest's processes are killed by the kernel should the test die first. tests/guest/build makes the
image.

    tests/guest/guest.py [COMMAND...]    runs a command in a guest of its own, for people
"""
import base64
import ctypes
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

import host

HOST, GUEST = "10.77.0.1", "10.77.0.2"
HOST6, GUEST6 = "fd77::1", "fd77::2"
SIW_VARIANTS = ("stock", "crc", "p2p", "crcp2p")

BOOT_TIMEOUT_S = 120
CLONE_NEWNET = 0x40000000  # <linux/sched.h>

# Offloads off: what a capture shows is then what a wire would carry, checksums included.
NIC = "virtio-net-pci,netdev=net,romfile=,csum=off,gso=off,guest_csum=off,guest_tso4=off," \
      "guest_tso6=off,guest_ufo=off,guest_ecn=off,host_tso4=off,host_tso6=off,host_ufo=off," \
      "host_ecn=off"


class Unavailable(Exception):
    """This machine cannot run the guest; the one sentence says why."""


class TimedOut(AssertionError):
    """A command in the guest took too long; it has been killed."""


def image_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("WEFT_GUEST_CACHE") or f"{cache}/weft-guest") / "image"


def require():
    """Raises Unavailable where the guest cannot run, as far as that shows without starting it."""
    if os.geteuid() != 0:
        raise Unavailable("The guest needs root, for a network of its own.")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise Unavailable("The guest needs /dev/net/tun, which is not here.")
    for program in ("qemu-system-x86_64", "ip", "tcpdump", "setpriv"):
        if not shutil.which(program):
            raise Unavailable(f"The guest needs {program}; run tools/install-packages guest.")
    if not (image_folder() / "initramfs").exists():
        raise Unavailable("The guest's image is not built; run tests/guest/build.")


def enter_private_network():
    """Leaves this process's network for an empty one, and lays the guest's cable there."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        why = os.strerror(ctypes.get_errno())
        raise Unavailable(f"The guest needs a network of its own, and Linux says: {why}.")
    try:
        host.run("ip", "link", "set", "lo", "up")
        host.run("ip", "tuntap", "add", "dev", host.TAP, "mode", "tap")
        host.run("ip", "address", "add", f"{HOST}/24", "dev", host.TAP)
        host.run("ip", "address", "add", f"{HOST6}/64", "dev", host.TAP, "nodad")
        host.run("ip", "link", "set", host.TAP, "up")
    except AssertionError as refusal:
        raise Unavailable(f"The guest's network could not be laid: {refusal}") from None


class Command:
    """A command running in the guest, in a process group of its own."""

    ENDING = re.compile(rb"\0(\d+)\n\Z")

    def __init__(self, text):
        self.text = text
        self.written = b""
        self.changed = threading.Condition()
        self.ended = False
        self.socket = socket.create_connection((GUEST, host.AGENT_PORT), timeout=30)
        self.socket.settimeout(None)
        self.socket.sendall(base64.b64encode(text.encode()) + b"\n")
        threading.Thread(target=self._read, daemon=True).start()
        if not self._wait(lambda: b"\n" in self.written or self.ended, 30):
            raise TimedOut(f"the guest does not start commands any more: {text}")
        group, _, _ = self.written.partition(b"\n")
        self.group = int(group)

    def _read(self):
        # The reading goes on whether or not anybody waits, so that no command blocks on its output.
        while not self.ended:
            try:
                part = self.socket.recv(65536)
            except OSError:
                part = b""
            with self.changed:
                self.written += part
                self.ended = not part or bool(self.ENDING.search(self.written[-16:]))
                self.changed.notify_all()
        self.socket.close()

    def _wait(self, condition, timeout):
        with self.changed:
            return self.changed.wait_for(condition, timeout)

    @property
    def output(self):
        """What it has written so far, standard error included."""
        _, _, output = self.written.partition(b"\n")
        return self.ENDING.sub(b"", output).decode(errors="replace")

    def running(self):
        return not self.ended

    def wait(self, timeout=30):
        """Its exit status (128 and more: the signal that ended it), once it has ended."""
        if not self._wait(lambda: self.ended, timeout):
            self.kill()
            raise TimedOut(f"not done after {timeout} s: {self.text}\n{self.output}")
        found = self.ENDING.search(self.written[-16:])
        if not found:
            raise AssertionError(f"the guest hung up on: {self.text}\n{self.output}")
        return int(found[1])

    def wait_for_output(self, text, timeout=30):
        if not self._wait(lambda: text.encode() in self.written or self.ended, timeout) \
                or text not in self.output:
            raise TimedOut(f"never wrote '{text}': {self.text}\n{self.output}")

    def stop(self, timeout=10):
        """Asks it to end and returns its status."""
        if self.running():
            Command(f"kill -TERM -- -{self.group}").wait()
        return self.wait(timeout)

    def kill(self):
        """Hangs up, upon which the guest kills the whole process group."""
        if self.running():
            self.socket.shutdown(socket.SHUT_WR)
            self._wait(lambda: self.ended, 10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Guest:
    """A running guest, with siw0 over its eth0. One per process, since it takes the network.

    It may have `disks`, by whatever name QEMU knows them, or `file.driver=` and what more it wants
    to know of one: /dev/vda and so on. Who serves them must
    be there before it, in the private network, which then is `entered` already. A `launcher` is the
    words before QEMU's own, `disk_options` are for its virtio-blk."""

    def __init__(self, variant="stock", *, disks=(), disk_options="", launcher=(), entered=False):
        require()
        if not entered:
            enter_private_network()
        self.variant = None
        self.folder = tempfile.TemporaryDirectory(prefix="weft-guest-")
        self.console_log = pathlib.Path(self.folder.name) / "console"
        self.qemu_log = pathlib.Path(self.folder.name) / "qemu"
        # Without no_timer_check a machine too busy to give us the ticks it expects is a panic.
        words = f"console=ttyS0 quiet panic=-1 no_timer_check mitigations=off rdinit=/init " \
                f"weft.address={GUEST}/24 weft.address={GUEST6}/64 weft.port={host.AGENT_PORT}"
        # rep movsb is emulated octet by octet: without erms the kernel copies eight at a time.
        # KVM is for whoever knows that it works here, since where it does not, nothing says so.
        accelerator = ["-accel", "kvm", "-cpu", "host"] if os.environ.get("WEFT_GUEST_KVM") else \
            ["-accel", "tcg", "-cpu", "max,la57=off,erms=off,fsrm=off"]
        drives = [word for number, disk in enumerate(disks) for word in (
            "-drive", (disk if disk.startswith("file.") else f"file={disk}") +
            f",format=raw,if=none,id=disk{number},discard=unmap",
            "-device", f"virtio-blk-pci,drive=disk{number}{disk_options}")]
        with open(self.qemu_log, "wb") as log:
            self.process = host.start(
                *launcher, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
                "-display", "none", "-machine", "q35", *accelerator, "-smp", "1", "-m", "1792",
                "-kernel", image_folder() / "vmlinux", "-initrd", image_folder() / "initramfs",
                "-append", words, "-serial", f"file:{self.console_log}",
                "-netdev", f"tap,id=net,ifname={host.TAP},script=no,downscript=no", "-device", NIC,
                *drives, stdout=log)
        try:
            self._wait_for_agent()
            self.load_siw(variant)
        except BaseException:
            self.stop()
            raise

    def _wait_for_agent(self):
        give_up = time.monotonic() + BOOT_TIMEOUT_S
        while True:
            try:
                socket.create_connection((GUEST, host.AGENT_PORT), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > give_up:
                    raise Unavailable(f"The guest does not boot: {self.last_words()}") from None
                time.sleep(0.1)

    def last_words(self):
        said = [path.read_text(errors="replace") for path in (self.qemu_log, self.console_log)
                if path.exists()]
        return "".join(said)[-2000:] or "it said nothing."

    def start(self, command):
        """Starts a shell command in the guest and returns at once."""
        return Command(command)

    def run(self, command, timeout=30, status=0):
        """Runs a shell command that must end with that status, or with any if it is None; returns
        what it wrote."""
        with Command(command) as running:
            ended = running.wait(timeout)
            if status is not None and ended != status:
                raise AssertionError(f"status {ended}: {command}\n{running.output}")
            return running.output

    def load_siw(self, variant):
        """Takes another build of the driver, for which nothing may be using the old one."""
        assert variant in SIW_VARIANTS, variant
        if variant == self.variant:
            return
        if self.variant:
            self.run("rdma link delete siw0 && rmmod siw")
        self.variant = None
        self.run(f"insmod /siw/{variant}.ko && rdma link add siw0 type siw netdev eth0")
        self.variant = variant

    def wait_until_listening(self, port, timeout=30):
        self.run(f"until netstat -ltn | grep -q ':{port} '; do usleep 50000; done", timeout)

    def mark_kernel_log(self, words):
        """From now on, `kernel_log` begins here."""
        self.run(f"echo 'weft: {words}' > /dev/kmsg")

    def kernel_log(self):
        """What the guest's kernel said since the last mark."""
        said = self.run("dmesg").splitlines(keepends=True)
        marks = [number for number, line in enumerate(said) if "] weft: " in line]
        return "".join(said[marks[-1] + 1:] if marks else said)

    def kernel_complaints(self):
        """The guest's kernel log from the first sign of the kernel's own trouble on; or nothing."""
        log = self.run("dmesg")
        found = re.search(r"^.*\b(BUG|WARNING|Oops|general protection|blocked for more)\b", log,
                          re.MULTILINE)
        return log[found.start():] if found else ""

    def stop(self):
        host.end(self.process)
        self.folder.cleanup()


def main(words):
    try:
        guest = Guest()
    except Unavailable as why:
        print(why, file=sys.stderr)
        return 77
    try:
        command = guest.start(" ".join(words) or "rdma link")
        status = command.wait(600)
        print(command.output, end="")
        return status
    finally:
        guest.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
