# SPDX-License-Identifier: Apache-2.0
"""Linux's own initiator in the guest: open-iscsi and the kernel's iscsi_tcp or ib_iser.

There is no udev. Disks are found where the kernel shows them, in sysfs, and devtmpfs makes their
nodes. The daemon is a command like any other, and so it ends with the test.
"""
import re
import time

import weft_target

INITIATOR = "iqn.2026-11.org.example:guest"
NOT_BELIEVED = 24  # iscsiadm's status: "login failed due to authorization failure"
MODULES = {"tcp": "iscsi_tcp", "iser": "ib_iser"}
INTERFACES = {"tcp": "default", "iser": "iser"}
# As Debian has it, but for patience: the emulated machine may stand still for some seconds.
SETTINGS = """
node.startup = manual
node.session.timeo.replacement_timeout = 120
node.conn[0].timeo.login_timeout = 30
node.conn[0].timeo.logout_timeout = 30
node.conn[0].timeo.noop_out_interval = 5
node.conn[0].timeo.noop_out_timeout = 20
node.session.err_timeo.abort_timeout = 30
node.session.err_timeo.lu_reset_timeout = 30
node.session.initial_login_retry_max = 4
node.session.cmds_max = 128
node.session.queue_depth = 32
node.session.iscsi.InitialR2T = No
node.session.iscsi.ImmediateData = Yes
node.session.iscsi.FirstBurstLength = 262144
node.session.iscsi.MaxBurstLength = 16776192
node.conn[0].iscsi.MaxRecvDataSegmentLength = 262144
node.session.scan = auto
"""


class OpenIscsi:
    """The initiator, for one target. `settings` are lines for its configuration."""

    def __init__(self, machine, transport, portal, settings=""):
        self.guest = machine
        self.transport = transport
        self.portal = portal
        self.node = f"iscsiadm -m node -T {weft_target.NAME} -p {portal}"
        machine.run(f"modprobe -a {MODULES[transport]} sd_mod")
        machine.run(f"""rm -rf /etc/iscsi /var/lib/iscsi; mkdir -p /etc/iscsi /run/lock/iscsi
echo InitiatorName={INITIATOR} > /etc/iscsi/initiatorname.iscsi
echo '{SETTINGS}{settings}' > /etc/iscsi/iscsid.conf""")
        self.daemon = machine.start("exec iscsid -f")
        machine.run("until grep -q ISCSIADM /proc/net/unix; do usleep 50000; done", timeout=20)

    def discover(self):
        """Asks which targets there are, and keeps what it is told."""
        return self.guest.run(f"iscsiadm -m discovery -t st -p {self.portal} "
                              f"-I {INTERFACES[self.transport]}", timeout=60)

    def set(self, name, value):
        self.guest.run(f"{self.node} -o update -n '{name}' -v '{value}'")

    def login(self, status=0):
        return self.guest.run(f"{self.node} -l", timeout=90, status=status)

    def logout(self):
        return self.guest.run(f"{self.node} -u", timeout=90)

    def rescan(self):
        return self.guest.run(f"{self.node} -R", timeout=60)

    def session(self):
        """How the kernel's session is."""
        return self.guest.run("cat /sys/class/iscsi_session/session*/state").strip()

    def statistic(self, name):
        """What the kernel has counted in this session."""
        said = self.guest.run("iscsiadm -m session -s")
        return int(re.search(rf"{name}: (\d+)", said)[1])

    def disks(self, units=(0,), timeout=30):
        """The devices of these units, once all of them have appeared and there are no others."""
        give_up = time.monotonic() + timeout
        while True:
            found = self.units()
            if sorted(found) == sorted(units):
                return [f"/dev/{found[unit]}" for unit in units]
            if time.monotonic() > give_up:
                raise AssertionError(f"units {units} were to appear; there are {found}\n"
                                     + self.guest.kernel_log())
            time.sleep(0.1)

    def units(self):
        """{number: name} of all disks of all sessions."""
        listed = self.guest.run(
            "ls -d /sys/class/iscsi_session/session*/device/target*/*:*:*:*/block/* 2> /dev/null",
            status=None)
        return {int(number): name
                for number, name in re.findall(r":(\d+)/block/(\w+)$", listed, re.MULTILINE)}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.guest.run("iscsiadm -m node -u", timeout=90, status=None)
        finally:
            if kind is not None:
                print(f"iscsid said:\n{self.daemon.output}\nthe kernel said:\n"
                      + self.guest.kernel_log()[-6000:])
            self.daemon.kill()
