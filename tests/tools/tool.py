# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the tools share: running a tool, and making small binaries with the notes a test wants."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

USDT_LIST = os.environ.get("USDT_LIST", "usdt-list")


def usdt_list(*arguments, env=None, cwd=None, check=None):
    """Runs usdt-list without a terminal. `check`, if given, is the exit code it must have."""
    environment = {**os.environ, **(env or {})}
    result = subprocess.run([USDT_LIST, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=cwd,
                            timeout=60, errors="surrogateescape")
    if check is not None and result.returncode != check:
        raise AssertionError(f"{result.args}: exit {result.returncode}, not {check}\n{result.stdout}{result.stderr}")
    return result


def become_nobody():
    """In a child of root's, before it begins (preexec_fn): it has no privilege from then on."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def usdt_list_json(*arguments, **options):
    return [json.loads(line) for line in usdt_list("-f", "json", *arguments, **options).stdout.splitlines()]


NOTE = """
{label}: nop
.pushsection .note.stapsdt,"","note"
.balign 4
.4byte 992f-991f, 994f-993f, 3
991: .asciz "stapsdt"
992: .balign 4
993: .8byte {label}, _.stapsdt.base, {semaphore}
.asciz "{provider}"
.asciz "{name}"
.asciz "{args}"
994: .balign 4
.popsection
"""

PROGRAM = """
.text
.globl _start
_start:
nop
{notes}
.section .stapsdt.base,"aG","progbits",.stapsdt.base,comdat
.weak _.stapsdt.base
.hidden _.stapsdt.base
_.stapsdt.base: .space 1
.section .probes,"aw","progbits"
{semaphores}
.section .note.GNU-stack,"","progbits"
"""


def escaped(text):
    """For .asciz: any byte."""
    return "".join(f"\\{byte:03o}" for byte in text.encode(errors="surrogateescape"))


class Binary:
    """A program for this machine with the given sites: (provider, name, args) or (provider, name, args, True) for one
    with a semaphore. It is for listing, not for running."""

    @staticmethod
    def source(sites):
        notes, semaphores = [], {}
        for number, site in enumerate(sites):
            provider, name, args, *semaphore = site
            symbol = "0"
            if semaphore and semaphore[0]:
                symbol = semaphores.setdefault((provider, name), f"semaphore{number}")
            notes.append(NOTE.format(label=f"site{number}", semaphore=symbol, provider=escaped(provider),
                                     name=escaped(name), args=escaped(args)))
        space = "\n".join(f"{symbol}: .2byte 0" for symbol in semaphores.values())
        return PROGRAM.format(notes="".join(notes), semaphores=space)

    @staticmethod
    def build(path, sites, *flags):
        command = ["gcc", "-x", "assembler", "-", "-nostdlib", "-no-pie", "-Wl,--build-id=0xc0ffee", *flags, "-o", str(path)]
        subprocess.run(command, input=Binary.source(sites), text=True, check=True)
        return path


class TempDirCase(unittest.TestCase):
    """A test with a directory of its own, as self.dir."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="usdt-list-")
        self.addCleanup(directory.cleanup)
        self.dir = os.path.realpath(directory.name)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def list_as_nobody(self, *arguments):
        """Runs usdt-list as a user without any privilege."""
        shutil.copy(USDT_LIST, self.path("usdt-list"))
        os.chmod(self.dir, 0o755)
        return subprocess.run([self.path("usdt-list"), *arguments], capture_output=True, text=True,
                              preexec_fn=become_nobody, timeout=60)

    def binary(self, name, sites, *flags):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        return Binary.build(self.path(name), sites, *flags)


def skip_all(reason):
    """Ends the script as a skipped test."""
    print(f"SKIP: {reason}")
    sys.exit(77)


def require_x86_64():
    if platform.machine() != "x86_64":
        skip_all("the expected operands are those of x86-64")
