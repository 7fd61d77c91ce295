# SPDX-License-Identifier: Apache-2.0
"""LIO, the Linux kernel's own target, in the guest: set up by configfs alone, over TCP and iSER.

siw listens on a TCP port as anybody does, but LIO opens the TCP socket of every portal before RDMA
can be asked for, and on the same port. That socket belongs to the network of whoever makes the
portal; so who wants RDMA makes it in an empty network, and asks for RDMA in the real one.
"""
import guest

NAME = "iqn.2026-11.org.example:lio"
ROOT = "/sys/kernel/config/target"
CORE = f"{ROOT}/core"
FABRIC = f"{ROOT}/iscsi"
GROUP = f"{FABRIC}/{NAME}/tpgt_1"
PORT = 3260
PAGE = 4096
MIB = 1 << 20


class Lio:
    """One target with units in memory, and at last one in a file. `scheme` is iscsi or iser."""

    def __init__(self, machine, scheme, sizes=(32 * MIB, 8 * MIB), attributes=(), parameters=()):
        self.guest = machine
        self.scheme = scheme
        self.sizes = sizes
        self.portal = f"{scheme}://{guest.GUEST}:{PORT}"
        machine.run("modprobe -a target_core_mod iscsi_target_mod target_core_file")
        if scheme == "iser":
            machine.run("modprobe ib_isert")
        machine.run("grep -q configfs /proc/mounts || mount -t configfs none /sys/kernel/config")
        try:
            self._set_up(attributes, parameters)
        except BaseException:
            self.stop()
            raise

    def _set_up(self, attributes, parameters):
        self.guest.run(f"mkdir -p {GROUP}")
        for number, size in enumerate(self.sizes):
            self._add_unit(number, size, in_file=number == len(self.sizes) - 1)
        open_to_all = (("authentication", 0), ("generate_node_acls", 1), ("cache_dynamic_acls", 1),
                       ("demo_mode_write_protect", 0))
        for name, value in (*open_to_all, *attributes):
            self.guest.run(f"echo {value} > {GROUP}/attrib/{name}")
        for name, value in parameters:
            self.guest.run(f"echo '{value}' > {GROUP}/param/{name}")
        place = f"{GROUP}/np/{guest.GUEST}:{PORT}"
        if self.scheme == "iser":
            self.guest.run(f"unshare -n mkdir {place} && echo 1 > {place}/iser")
        else:
            self.guest.run(f"mkdir {place}")
        self.guest.run(f"echo 1 > {GROUP}/enable")

    def _add_unit(self, number, size, in_file):
        store = f"{CORE}/fileio_{number}/disk" if in_file else f"{CORE}/rd_mcp_{number}/disk"
        what = f"fd_dev_name=/tmp/lio{number},fd_dev_size={size}" if in_file else \
            f"rd_pages={size // PAGE}"
        if in_file:
            self.guest.run(f"truncate -s {size} /tmp/lio{number}")
        unit = f"{GROUP}/lun/lun_{number}"
        self.guest.run(f"mkdir -p {store} && echo {what} > {store}/control && "
                       f"echo -n weft{number} > {store}/wwn/vpd_unit_serial && "
                       f"echo 1 > {store}/enable && mkdir {unit} && ln -s {store} {unit}/disk")

    def set_secrets(self, user, secret, own_name="", own_secret=""):
        """From now on, who logs in must prove himself; with the latter two, the target does too."""
        self.guest.run(f"cd {GROUP}/auth && echo -n {user} > userid && echo -n {secret} > password")
        if own_name:
            self.guest.run(f"cd {GROUP}/auth && echo -n {own_name} > userid_mutual && "
                           f"echo -n {own_secret} > password_mutual")
        self.guest.run(f"echo 1 > {GROUP}/attrib/authentication")

    def unit(self, number, user="", options=""):
        who = f"{user}@" if user else ""
        return f"{self.scheme}://{who}{guest.GUEST}:{PORT}/{NAME}/{number}{options}"

    def stop(self):
        """Nothing of it is left, as far as it had come."""
        self.guest.run(f"""cd {GROUP} 2> /dev/null && {{
    echo 0 > enable
    for portal in np/*; do if [ -d "$portal" ]; then rmdir "$portal"; fi; done
    for unit in lun/lun_*; do
        if [ -d "$unit" ]; then rm -f "$unit/disk"; rmdir "$unit"; fi
    done
    cd / && rmdir {GROUP} {FABRIC}/{NAME}
}}
for store in {CORE}/*/disk; do if [ -d "$store" ]; then rmdir "$store"; fi; done
for adapter in {CORE}/rd_mcp_* {CORE}/fileio_*; do
    if [ -d "$adapter" ]; then rmdir "$adapter"; fi
done
rm -f /tmp/lio*""", timeout=60, status=None)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print("the kernel said:\n" + self.guest.kernel_log()[-4000:])
        self.stop()
