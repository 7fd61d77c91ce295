# SPDX-License-Identifier: Apache-2.0
"""rping, rdma-core's own test program, in the guest: its server and its client.

One ping is four messages. The client tells the server where its text is; the server fetches it with
an RDMA Read and says so; the client tells it where the echo belongs; the server puts it there with
an RDMA Write and says so. The client then compares.
"""
import dataclasses

from guest import GUEST


@dataclasses.dataclass(frozen=True)
class Pings:
    """What both sides must be told alike."""

    count: int = 5
    size: int = 1000
    address: str = GUEST
    port: int = 7174

    def words(self):
        return f"-v -V -a {self.address} -p {self.port} -C {self.count} -S {self.size}"


def start_server(guest, pings):
    """A server in the guest that has begun to listen, and ends when its client leaves."""
    server = guest.start(f"rping -s {pings.words()}")
    guest.wait_until_listening(pings.port)
    return server


def run_client(guest, pings, timeout=30):
    """A client in the guest, which must get all its pings back."""
    output = guest.run(f"rping -c {pings.words()}", timeout)
    check(output, pings)


def finish_server(server, pings, timeout=30):
    """Waits for the server's end, which must be a good one, after all the pings."""
    status = server.wait(timeout)
    # At its end one of its threads may close what another has just asked for events.
    was_late = "rdma_get_cm_event: Bad file descriptor" in server.output
    if status != 0 and not was_late:
        raise AssertionError(f"status {status}: {server.text}\n{server.output}")
    check(server.output, pings)


def check(output, pings):
    """Each ping is announced with its number, as far as its size leaves room for that."""
    seen = output.count("ping data: ")
    if seen != pings.count:
        raise AssertionError(f"{seen} of {pings.count} pings:\n{output}")
