#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whether this kernel still lets go of a uprobe. After an oops in a task that was at a breakpoint it waits for that task
for ever, and so does whoever detaches: each test that attaches would hang, until the machine is started again.

Exit code 0: it does, or nothing can be attached here; 1: it does not, and a sentence says so.
"""

import ctypes
import os
import pathlib
import signal
import struct
import sys
import time

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
SECONDS = 20
TYPE = pathlib.Path("/sys/bus/event_source/devices/uprobe/type")


def attach_and_detach():
    """A breakpoint at getppid() of libc, for this process, which does not call it."""
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.cast(libc.getppid, ctypes.c_void_p).value
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        words = line.split()
        begin, end = (int(word, 16) for word in words[0].split("-"))
        if begin <= address < end:
            path, offset = ctypes.create_string_buffer(words[5].encode()), address - begin + int(words[2], 16)
    # struct perf_event_attr: type, size, five words of no use here, config1: the path, config2: the offset
    attributes = struct.pack("=II6QQQ", int(TYPE.read_text()), 72, 0, 0, 0, 0, 0, 0, ctypes.addressof(path), offset)
    fd = libc.syscall(PERF_EVENT_OPEN[os.uname().machine], attributes, os.getpid(), -1, -1, 0)
    if fd < 0:
        print("no breakpoint:", os.strerror(ctypes.get_errno()))
        return
    os.close(fd)


def main():
    if os.geteuid() != 0 or not TYPE.exists() or os.uname().machine not in PERF_EVENT_OPEN:
        return 0
    child = os.fork()
    if child == 0:
        try:
            attach_and_detach()
        finally:
            os._exit(0)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0] == child:
            return 0
        time.sleep(0.1)
    print(f"this kernel has not let go of a uprobe for {SECONDS} s (dmesg says why): start the machine again; "
          "until then tests that attach would hang")
    os.kill(child, signal.SIGKILL)
    return 1


if __name__ == "__main__":
    sys.exit(main())
