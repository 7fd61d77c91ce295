#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that the kernel refuses io_uring, as the seccomp filters of containers do.

    without_io_uring.py PROGRAM ARGS…
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06  # of a word at an offset, with a number, a verdict
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | errno.EPERM
IO_URING = (425, 426, 427)  # setup, enter, register: the same numbers on every machine


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def main():
    steps = [instruction(LOAD, 0)]  # the number of the system call
    for left, number in zip(range(len(IO_URING), 0, -1), IO_URING):
        steps.append(instruction(EQUALS, number, if_true=left))
    steps += [instruction(RETURN, ALLOW), instruction(RETURN, REFUSE)]
    code = ctypes.create_string_buffer(b"".join(steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
