#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets a container with a user namespace of its own trace files, by a BPF token (Linux 6.9).

Usage, as root of the machine: delegate_bpf.py PID [DIRECTORY]
Mounts a BPF file system at DIRECTORY (/sys/fs/bpf) in the namespaces of process PID. It delegates what usdt-trace
needs for probes and functions of files, and nothing else. Whoever has CAP_BPF and CAP_PERFMON there makes a token of it.
A token is trust, not isolation: what it traces is seen of all processes of the machine (docs/containers.md).
"""

import ctypes
import os
import socket
import sys

# Numbers of enum bpf_cmd, bpf_map_type, bpf_prog_type and bpf_attach_type (include/uapi/linux/bpf.h). A kernel with BTF
# takes names, too.
DELEGATED = {
    "delegate_cmds": {"MAP_CREATE": 0, "PROG_LOAD": 5, "BTF_LOAD": 18},
    "delegate_maps": {"HASH": 1, "ARRAY": 2, "STACK_TRACE": 7, "LRU_HASH": 9, "RINGBUF": 27},
    # uprobes are of type KPROBE. RAW_TRACEPOINT is for `usdt-trace -- COMMAND`, which follows what the command starts.
    # By the two others libbpf finds out what the kernel can do.
    "delegate_progs": {"SOCKET_FILTER": 1, "KPROBE": 2, "TRACEPOINT": 5, "RAW_TRACEPOINT": 17},
    "delegate_attachs": {"none": 0, "TRACE_UPROBE_MULTI": 48, "TRACE_UPROBE_SESSION": 57},
}

# System calls of the same number on every machine (Linux 5.2), and their constants (include/uapi/linux/mount.h).
MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 429, 430, 431, 432
CLOEXEC, SET_STRING, CREATE, EMPTY_PATH = 1, 1, 6, 4
HERE = -100
libc = ctypes.CDLL(None, use_errno=True)


def call(what, function, *words):
    result = function(*(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if result < 0:
        sys.exit(f"delegate_bpf: {what}: {os.strerror(ctypes.get_errno())}")
    return result


def mount_inside(namespaces, directory, root):
    """The file system belongs to the user namespace of who opens it, and the machine's root says what it delegates."""
    for namespace in namespaces:
        call("enter the namespaces", libc.setns, namespace, 0)
    context = call("open the BPF file system", libc.syscall, FSOPEN, b"bpf", CLOEXEC)
    socket.send_fds(root, [b"-"], [context])
    if not root.recv(1):
        sys.exit(1)  # root has said why
    mounted = call("make the mount", libc.syscall, FSMOUNT, context, CLOEXEC, 0)
    call(f"mount at {directory}", libc.syscall, MOVE_MOUNT, mounted, b"", HERE, os.fsencode(directory), EMPTY_PATH)


def main(pid, directory="/sys/fs/bpf"):
    namespaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
    root, inside = socket.socketpair()
    child = os.fork()
    if child == 0:
        root.close()
        mount_inside(namespaces, directory, inside)
        return
    inside.close()
    _, contexts, _, _ = socket.recv_fds(root, 1, 1)
    for context in contexts:  # none: the child has said why
        for option, kinds in DELEGATED.items():
            mask = hex(sum(1 << number for number in kinds.values())).encode()
            call(f"set {option}", libc.syscall, FSCONFIG, context, SET_STRING, option.encode(), mask, 0)
        call("make the file system", libc.syscall, FSCONFIG, context, CREATE, None, None, 0)
        root.send(b"-")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
