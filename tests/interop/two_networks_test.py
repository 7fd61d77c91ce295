#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real processes, each on a machine of its own with a cable to each of two switches. The switch
between boxes that they prefer loses everything, in silence, under writes and reads: no request
fails, no data goes by way of the controller, and links come back by themselves. The controller's
sessions go over it, too, so boxes are lost for a moment until those are over the other. Skipped
where there are no network namespaces."""
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402

machines.run_inside()
machines.on_path("tools")
import nbd  # noqa: E402
from cluster import Cluster  # noqa: E402
from machines import sh  # noqa: E402

WEFT = os.environ["WEFT"]
VOLUME = "photos"
NAMES = ("oak", "elm", "ash", "fir")
KIB, MIB = 1 << 10, 1 << 20
LOST_SECONDS = 25


class SecondSwitch:
    """Another cable for every machine there is."""

    def __init__(self, switch):
        sh("ip", "link", "add", "further", "type", "bridge")
        sh("ip", "address", "add", "10.78.0.1/24", "dev", "further")
        sh("ip", "link", "set", "further", "up")
        for machine in switch.machines.values():
            number = machine.address.rsplit(".", 1)[1]
            sh("ip", "link", "add", f"second{number}", "type", "veth", "peer", "name", "port2",
               "netns", machine.process.pid)
            sh("ip", "link", "set", f"second{number}", "master", "further", "up")
            machine.inside("ip", "address", "add", f"10.78.0.{number}/24", "dev", "port2")
            machine.inside("ip", "link", "set", "port2", "up")

    def end(self):
        sh("ip", "link", "delete", "further")


class Writer(threading.Thread):
    """Writes and reads back, one after the other; how long each took."""

    def __init__(self, uri):
        super().__init__(daemon=True)
        self.uri, self.took, self.failure, self.stopping = uri, [], None, False

    def run(self):
        try:
            handle = nbd.NBD()
            handle.connect_uri(self.uri)
            for i in range(1 << 30):
                if self.stopping:
                    break
                payload, at = os.urandom(16 * KIB), i % 256 * 16 * KIB
                began = time.monotonic()
                handle.pwrite(payload, at)
                if bytes(handle.pread(len(payload), at)) != payload:
                    raise AssertionError(f"what was read at {at} is not what was written")
                self.took.append((began, time.monotonic() - began))
            handle.shutdown()
        except Exception as error:  # told by who joins it
            self.failure = error


class TwoNetworks(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="weft-")
        self.addCleanup(kept.cleanup)
        folder = pathlib.Path(kept.name)
        self.switch = machines.Switch()
        self.addCleanup(self.switch.end)
        for name in ("controller", "host", *NAMES):
            self.switch.add(name)
        further = SecondSwitch(self.switch)
        self.addCleanup(further.end)
        self.cluster = Cluster(WEFT, folder, before=self.before)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_controller(self.door("controller"), "--listen",
                                      self.door("controller", 78))
        for name in NAMES:
            self.cluster.start_box(name, "96M", self.door(name), "--listen", self.door(name, 78))
            self.cluster.add_box(name)
        self.cluster.tell("volume", "create", VOLUME, "--level", 5, "--boxes", ",".join(NAMES),
                          "--chunk", "64K")
        self.socket = folder / "host.sock"
        # By the network that stays, and by the other.
        attach = self.cluster.role(
            "host", "host", "attach", VOLUME, "--controller",
            f"{self.door('controller', 78)},{self.door('controller')}", "--nbd-unix", self.socket)
        self.cluster.hosts["host"] = attach.start()

    def before(self, name):
        machine = self.switch.machines.get(name)
        return machine.enter() if machine else []

    def door(self, name, network=77):
        number = self.switch.machines[name].address.rsplit(".", 1)[1]
        return f"10.{network}.0.{number}:7800"

    def networks_of_links(self):
        links = self.cluster.tell("link", "list", "--volume", VOLUME)["links"]
        return {each["remote"].split(":")[0].rsplit(".", 2)[0] for each in links
                if each["direction"] == "outbound" and each["to"] in NAMES
                and each["state"] not in ("down", "connecting")}

    def test_the_loss_of_one_is_survived(self):
        writer = Writer(f"nbd+unix:///{VOLUME}?socket={self.socket}")
        writer.start()
        time.sleep(3)
        self.assertEqual(self.networks_of_links(), {"10.77"})
        for name in NAMES:
            self.switch.machines[name].cut_off()
        lost_at = time.monotonic()
        time.sleep(LOST_SECONDS)
        # A link that nobody needed meanwhile has not noticed.
        self.assertIn("10.78", self.networks_of_links())
        for name in NAMES:
            self.switch.machines[name].let_in()
        back_at = time.monotonic()
        while self.networks_of_links() != {"10.77"}:
            self.assertLess(time.monotonic(), back_at + 60, "links did not come back")
            time.sleep(1)
        print(f"links were back after {time.monotonic() - back_at:.0f} s")
        writer.stopping = True
        writer.join(60)
        if writer.failure:
            raise writer.failure
        during = [took for at, took in writer.took if lost_at - 1 < at < back_at]
        print(f"{len(during)} writes and reads while one network was lost, the slowest took "
              f"{max(during):.1f} s", flush=True)
        status = self.cluster.wait_until(VOLUME, lambda status: status["state"] == "healthy")
        self.assertEqual(status["counters"]["relayed_bytes"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
