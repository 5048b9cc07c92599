# SPDX-License-Identifier: BSD-2-Clause
"""Boots a kernel under qemu's software emulation and runs commands in it.

Everything goes through two things every kernel has: the initramfs, which holds busybox and the files a run needs, and
the serial line, on which `init` frames what the commands print, their status, and the files they leave in /out.
"""

import base64
import dataclasses
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

import debian

HERE = pathlib.Path(__file__).resolve().parent
BOOT_LIMIT = 120  # seconds
KILLED = 137  # a command's status when its time was over


@dataclasses.dataclass(frozen=True)
class Machine:
    """What qemu emulates for an architecture."""

    emulator: str
    model: str
    cpu: str
    console: str


MACHINES = {
    # cx16=off: qemu 7.2 spoils the flags after cmpxchg16b, with which 6.12 panics at random.
    "amd64": Machine("qemu-system-x86_64", "q35", "max,cx16=off", "ttyS0"),
    "i386": Machine("qemu-system-i386", "q35", "Haswell", "ttyS0"),
    "arm64": Machine("qemu-system-aarch64", "virt", "neoverse-n1", "ttyAMA0"),
}
# thread=single: a probe rewrites code that other processors may be running, and with a thread for each of them the
# emulator lets them run halves of instructions.
ACCELERATOR = "tcg,thread=single"
PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "qemu-system-i386": "qemu-system-x86",
            "qemu-system-aarch64": "qemu-system-arm", "cpio": "cpio", "clang": "clang", "ld.lld": "lld"}


@dataclasses.dataclass
class Outcome:
    """One command: what it printed, its status (None: the guest died under it or before), seconds, and what the kernel
    complained of meanwhile."""

    output: str = ""
    status: int | None = None
    seconds: float = 0.0
    complaints: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Boot:
    """One guest's life. `death`: how it ended before its last command did, if so; `last_words`: the console then."""

    outcomes: list
    release: str = ""
    up_after: float = 0.0
    complaints: list = dataclasses.field(default_factory=list)
    death: str = ""
    last_words: list = dataclasses.field(default_factory=list)


def missing(arch):
    """What this machine lacks to build for an architecture and emulate it: names of packages."""
    programs = [MACHINES[arch].emulator, "cpio", *(["clang", "ld.lld"] if arch != "amd64" else [])]
    return sorted({PACKAGES[program] for program in programs if shutil.which(program) is None})


def run(kernel, arch, files, steps, out, append=""):
    """Boots the image `kernel`. `files`: path in the guest -> file here. `steps`: (seconds, shell command) pairs, run
    in /lab. `out`: where the guest's /out comes to. `append`: more kernel arguments."""
    with tempfile.TemporaryDirectory(prefix="usdt-vm-") as scratch:
        initramfs = _initramfs(pathlib.Path(scratch), arch, files, steps)
        machine = MACHINES[arch]
        argv = [machine.emulator, "-M", machine.model, "-accel", ACCELERATOR, "-cpu", machine.cpu, "-smp", "2",
                "-m", "1024", "-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot", "-kernel", str(kernel),
                "-initrd", str(initramfs), "-append", f"console={machine.console} quiet panic=-1 {append}"]
        qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            return _Line(qemu, steps, out).read()
        finally:
            if qemu.poll() is None:
                qemu.send_signal(signal.SIGKILL)
            qemu.wait()


def _initramfs(scratch, arch, files, steps):
    root = scratch / "root"
    for name in ("bin", "dev", "lab", "out", "proc", "root", "sys", "tmp"):
        (root / name).mkdir(parents=True)
    for target, source in {"bin/busybox": debian.busybox(arch), "init": HERE / "init", **files}.items():
        path = root / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        path.chmod(0o755)
    (root / "lab/steps").write_text("".join(f"{seconds} {command}\n" for seconds, command in steps))
    names = "\n".join(os.path.relpath(path, root) for path in sorted(root.rglob("*")))
    with open(scratch / "initramfs", "wb") as archive:
        argv = ["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"]
        subprocess.run(argv, cwd=root, input=names.encode(), stdout=archive, check=True)
    return scratch / "initramfs"


class _Line:
    """The serial line of one guest."""

    def __init__(self, qemu, steps, out):
        self.qemu, self.steps, self.out = qemu, steps, out
        self.boot = Boot([Outcome() for _ in steps])
        self.started = time.monotonic()
        self.deadline = self.started + BOOT_LIMIT
        self.current = self.last = None  # the command that runs, the one that ran
        self.since = self.started
        self.console = []  # what belongs to no command: the kernel's last words
        self.files = None
        self.ended = False
        self.late = False

    def read(self):
        for line in self._lines():
            self._take(line)
        if not self.ended:
            self._say_how_it_died()
        elif self.files:
            self._unpack()
        return self.boot

    def _lines(self):
        """Lines until the machine stops or its time is over."""
        selector = selectors.DefaultSelector()
        selector.register(self.qemu.stdout, selectors.EVENT_READ)
        rest = b""
        while not self.ended:
            if not selector.select(max(0.0, self.deadline - time.monotonic())):
                self.late = True
                break
            piece = os.read(self.qemu.stdout.fileno(), 1 << 16)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace").rstrip("\r")
        if rest:
            yield rest.decode(errors="replace")

    def _take(self, line):
        before, mark, word = line.partition("@@LAB ")
        if not mark:
            self._plain(line)
            return
        if before:  # a command's last line had no newline
            self._plain(before)
        name, _, value = word.partition(" ")
        getattr(self, f"_on_{name.lower()}", self._plain)(value)

    def _plain(self, line):
        if self.files is not None:
            self.files.append(line)
        elif self.current is not None:
            self.boot.outcomes[self.current].output += line + "\n"
        else:
            self.console.append(line)

    def _on_up(self, release):
        self.boot.release = release
        self.boot.up_after = time.monotonic() - self.started

    def _on_kernel(self, text):
        (self.boot.complaints if self.last is None else self.boot.outcomes[self.last].complaints).append(text)

    def _on_step(self, number):
        self.current = int(number)
        self.since = time.monotonic()
        # Its own limit comes first, unless the guest hangs.
        self.deadline = self.since + self.steps[self.current][0] + 60

    def _on_exit(self, status):
        outcome = self.boot.outcomes[self.current]
        outcome.status = int(status)
        outcome.seconds = time.monotonic() - self.since
        self.last, self.current = self.current, None
        self.deadline = time.monotonic() + 60

    def _on_files(self, _):
        self.files = []
        self.deadline = time.monotonic() + 120

    def _on_end(self, _):
        self.ended = True

    def _unpack(self):
        self.out.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "xz", "-C", str(self.out)], input=base64.b64decode("".join(self.files)), check=True)

    def _say_how_it_died(self):
        if self.boot.release == "":
            what = "did not come up"
        elif self.current is None:
            what = "stopped between commands"
        else:
            what = f"died under: {self.steps[self.current][1]}"
        reason = "time is over" if self.late else f"qemu ended with status {self.qemu.wait()}"
        self.boot.death = f"{what} ({reason})"
        self.boot.last_words = [line for line in self.console if line][-25:]
