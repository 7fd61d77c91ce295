# SPDX-License-Identifier: Apache-2.0
"""The base of the tests with Linux's own initiator: what it is connected by, and whether the kernel
was content."""
import time

import guest_disk
from guest_case import GuestCase
from open_iscsi import OpenIscsi


class OpenIscsiCase(GuestCase):
    transport = None

    def setUp(self):
        super().setUp()
        self.guest.mark_kernel_log(self.id())
        self.began = time.monotonic()

    def say(self, words):
        print(f"[{self.transport}, {time.monotonic() - self.began:.1f} s: {words}] ", end="",
              flush=True)

    def initiator(self, target, settings=""):
        return OpenIscsi(self.guest, self.transport, target.portal, settings)

    def expect_no_trouble(self, allowed=()):
        """What the kernel said of the disk since the test began, but for what it must say."""
        log = self.guest.kernel_log()
        found = [line for line in guest_disk.trouble(log)
                 if not any(words in line for words in allowed)]
        self.assertEqual(found, [], log)
        return log
