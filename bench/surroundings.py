# SPDX-License-Identifier: Apache-2.0
"""Where the benches run: a network namespace of their own, one core for each side, programs that
end when the bench does, and what a server has used of its processor."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/bench/bin"
HOST = "127.0.0.1"
SERVING_CORE, DRIVING_CORE = 1, 0
RUN_SECONDS_MAX = 30  # a run is meant to take a tenth of that at most
# Not bbr, which paces even the loopback. A namespace may only choose what the machine allows to
# all; reno is always among them, cubic is not.
CONGESTION_CONTROL = "reno"
MARK = "WEFT_BENCH_OUTER_NAMESPACE"


class Failed(Exception):
    """A run gave no number; the words are those of the program."""


def expect_tools(*names, jobs="build bench"):
    for name in names:
        if not shutil.which(name):
            sys.exit(f"{name} is missing; tools/install-packages {jobs} brings it")


def expect_cores():
    if not {SERVING_CORE, DRIVING_CORE} <= os.sched_getaffinity(0):
        sys.exit(f"cores {SERVING_CORE} and {DRIVING_CORE} are needed, one for each side")


def build(*targets):
    """Silent, unless it fails."""
    for command in (["cmake", "--preset", "bench"],
                    ["cmake", "--build", "--preset", "bench", "--target", *targets]):
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"{done.stdout}\nThe bench's programs could not be built; "
                     "tools/install-packages build bench brings what they need.")


def network_namespace():
    return str(os.stat("/proc/self/ns/net").st_ino)


def enter_namespace(*targets, with_mounts=False):
    """Builds these, starts this program again inside a namespace, and furnishes that. It goes when
    its last process does. With mounts: what is mounted then is seen by us alone."""
    if MARK not in os.environ:
        if targets:
            build(*targets)
        as_nobody = ["--map-root-user"] if os.geteuid() else []
        os.environ[MARK] = network_namespace()
        with_mounts = ["--mount"] if with_mounts else []
        os.execvp("unshare", ["unshare", "--net", *with_mounts, *as_nobody, sys.executable,
                              *sys.argv])
    if network_namespace() == os.environ[MARK]:
        sys.exit(f"{MARK} is set, but this is no namespace of our own; unset it")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(CONGESTION_CONTROL)


def pinned(core, command):
    """On its core, and ended by somebody else should the bench itself be killed."""
    return ["timeout", "--kill-after=1", str(RUN_SECONDS_MAX), "taskset", "--cpu-list", str(core),
            *map(str, command)]


def staying(core, command):
    """The same for a server that stays: its process is the one that is started."""
    return ["setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list", str(core),
            *map(str, command)]


def is_listening(port):
    """/proc/net/tcp: the local address is the second field, and state 0A means listening."""
    lines = [line for name in ("tcp", "tcp6")
             for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return any(fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port
               for fields in map(str.split, lines))


def wait_until_listening(server, port):
    deadline = time.monotonic() + 10
    while not is_listening(port):
        if server.poll() is not None:
            raise Failed(f"the serving side ended at once: {server.communicate()[0].strip()}")
        if time.monotonic() > deadline:
            raise Failed("the serving side does not listen")
        time.sleep(0.005)


def cpu_seconds(process):
    """What a process has used so far, all its threads together, in the kernel and outside."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    fields = stat.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
