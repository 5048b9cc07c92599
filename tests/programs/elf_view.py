# SPDX-License-Identifier: BSD-2-Clause
"""The tests' own view of files and processes: notes and segments as binutils print them, code and semaphores as
/proc/PID/mem holds them. Nothing here comes from the code under test."""

import dataclasses
import pathlib
import re
import subprocess

from harness import Failure, check

INT3 = 0xCC


@dataclasses.dataclass(frozen=True)
class Note:
    provider: str
    name: str
    pc: int
    semaphore: int
    args: str


_NOTE = re.compile(r"Provider: (\S+)\s+Name: (\S+)\s+Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, "
                   r"Semaphore: (0x[0-9a-f]+)\n\s+Arguments:[ ]?([^\n]*)")


def notes(path):
    """The stapsdt notes of a file as readelf prints them."""
    text = subprocess.run(["readelf", "-nW", str(path)], capture_output=True, text=True).stdout
    return [Note(provider, name, int(pc, 16), int(semaphore, 16), args.rstrip())
            for provider, name, pc, semaphore, args in _NOTE.findall(text)]


def note(path, name):
    found = [candidate for candidate in notes(path) if candidate.name == name]
    check(bool(found), f"no note {name} in {path}")
    return found[0]


def file_offset(path, vaddr):
    """Where the file holds a virtual address, through its LOAD segments."""
    text = subprocess.run(["readelf", "-lW", str(path)], capture_output=True, text=True).stdout
    for offset, start, size in re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", text):
        if int(start, 16) <= vaddr < int(start, 16) + int(size, 16):
            return vaddr - int(start, 16) + int(offset, 16)
    raise Failure(f"{path}: no segment holds {vaddr:#x}")


class Memory:
    """A running process's code and semaphores, read through /proc/PID/mem."""

    def __init__(self, pid, path, mapped_as=None):
        self.pid, self.path = pid, path
        self._mapped_as = str(mapped_as or path)

    def _bias(self, pc):
        """Load address minus link address, from the executable mapping that holds `pc`."""
        offset = file_offset(self.path, pc)
        for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            span, permissions, start, _, _, name = (line.split(None, 5) + [""])[:6]
            low, high = (int(word, 16) for word in span.split("-"))
            mapped = int(start, 16)
            # Within a chroot, files of another mount namespace have the chroot's directory before their paths.
            if "x" in permissions and name.endswith(self._mapped_as) and mapped <= offset < mapped + high - low:
                return low + offset - mapped - pc
        raise Failure(f"process {self.pid} has not mapped {self._mapped_as}")

    def _read(self, vaddr, size, pc):
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(vaddr + self._bias(pc))
            return memory.read(size)

    def site(self, site, size=1):
        """The bytes at a site now: a breakpoint shows as 0xcc."""
        return self._read(site.pc, size, site.pc)

    def attached(self, site):
        return self.site(site)[0] == INT3

    def semaphore(self, site):
        return int.from_bytes(self._read(site.semaphore, 2, site.pc), "little")
