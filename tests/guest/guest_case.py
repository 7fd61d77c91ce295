# SPDX-License-Identifier: Apache-2.0
"""What the guest's tests share: one guest for all of them, and a kernel that must stay healthy."""
import atexit
import unittest

import guest

_started = None


def shared_guest():
    """The guest of this process, booted when first asked for. Where there is none, tests skip."""
    global _started
    if _started is None:
        try:
            _started = guest.Guest()
            atexit.register(_started.stop)
        except guest.Unavailable as why:
            _started = why
    if isinstance(_started, guest.Unavailable):
        raise unittest.SkipTest(str(_started))
    return _started


def end_shared_guest():
    """For tests with a guest of their own. Who asks for the shared one next has another."""
    global _started
    if isinstance(_started, guest.Guest):
        atexit.unregister(_started.stop)
        _started.stop()
        _started = None


class GuestCase(unittest.TestCase):
    """Tests that use `self.guest`. Each begins with the stock driver and a healthy kernel."""

    def setUp(self):
        self.guest = shared_guest()
        self.guest.load_siw("stock")

    def tearDown(self):
        complaints = self.guest.kernel_complaints()
        if complaints:
            end_shared_guest()  # after an oops nothing it does means much
            self.fail("the guest's kernel complains:\n" + complaints[:3000])
