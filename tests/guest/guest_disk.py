# SPDX-License-Identifier: Apache-2.0
"""What the guest does with a disk: a file system on it, load with verification, a look at it."""
import re

FOLDER = "/tmp/mounted"
# What the kernel says where a disk of its own gives it trouble.
TROUBLE = re.compile(r"error|hung|sense key|add\. sense|timed? ?out|abort|\breset\b|fail|corrupt",
                     re.IGNORECASE)
# Told once to whoever comes anew; any disk says so.
TOLD_ON_ARRIVAL = "Power-on or device reset occurred"


def make_file_system(machine, disk):
    machine.run(f"mkfs.ext4 -q -F {disk}", timeout=120)


def mount(machine, disk):
    machine.run(f"mkdir -p {FOLDER} && mount -t ext4 {disk} {FOLDER}", timeout=60)


def unmount(machine):
    machine.run(f"umount {FOLDER}", timeout=60)


def check_file_system(machine, disk):
    """fsck must find nothing to mend."""
    return machine.run(f"fsck.ext4 -fn {disk}", timeout=120)


def fio_words(**more):
    """Writes all of a `filename` or a file in a `directory` in random order, and reads it back."""
    options = dict(name="verify", rw="randwrite", bs="4k", size="4M", direct=1, ioengine="libaio",
                   iodepth=16, verify="crc32c", do_verify=1, verify_fatal=1)
    options.update(more)
    return "fio " + " ".join(f"--{name}={value}" for name, value in options.items())


def run_fio(machine, timeout=180, **more):
    return summary_of(machine.run(fio_words(**more), timeout=timeout))


def summary_of(said):
    """The two lines that say how much was written and read back."""
    return "; ".join(" ".join(line.split()) for line in said.splitlines()
                     if re.match(r" +(READ|WRITE): ", line))


def queue_setting(machine, disk, name):
    return int(machine.run(f"cat /sys/block/{disk.removeprefix('/dev/')}/queue/{name}"))


def device_attribute(machine, disk, name):
    return machine.run(f"cat /sys/block/{disk.removeprefix('/dev/')}/device/{name}").strip()


def device_page(machine, disk, page):
    """A page of vital product data, as the kernel has read it."""
    path = f"/sys/block/{disk.removeprefix('/dev/')}/device/vpd_pg{page:02x}"
    return bytes.fromhex(machine.run(f"xxd -p {path} | tr -d '\\n'"))


def trouble(log):
    """The lines of the kernel's log that speak of trouble."""
    return [line for line in log.splitlines()
            if TROUBLE.search(line) and TOLD_ON_ARRIVAL not in line]


def served_by_nbd(socket, export, patience=300):
    """A disk's name for QEMU, which comes back to a server that was killed for so many seconds, and
    asks again for what was not answered."""
    return f"file.driver=nbd,file.server.type=unix,file.server.path={socket}," \
           f"file.export={export},file.reconnect-delay={patience}"
