# SPDX-License-Identifier: BSD-2-Clause
"""Tracers, and how each is asked the questions of tracers.py about compare.c: its command line, and how many hits it found
by what it printed."""

import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
QUESTIONS = ("count", "by text", "print")


class Place:
    """Where the other tracers are: `root`, a directory with a system of its own (newer ones, say), or here."""

    def __init__(self, root):
        self.root = pathlib.Path(root or "/")
        self.prefix = ["chroot", str(root)] if root else []

    def has(self, program):
        return any((self.root / each / program).exists() for each in ("usr/bin", "usr/sbin", "usr/local/bin"))


def last_word(*argv):
    """Of the first line that a program prints; where tracers name their version. Empty: it is not there, or fails."""
    if not shutil.which(argv[0]):
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return next(iter(done.stdout.split("\n", 1)[0].split()[-1:]), "")


class Tracer:
    """`unable`: why it answers nothing here; empty: it may."""

    name, unable = "", ""
    EVENT = r"(?m)^\d+ a-text$"
    VALUE = r"(?m)^value (\S+)$"

    def version(self):
        return ""

    def command(self, question, program, words):
        """None: it has no such question."""
        raise NotImplementedError

    def found(self, question, said):
        """How many of the program's hits it has."""
        if question == "print":
            return len(re.findall(self.EVENT, said))
        return sum(map(int, re.findall(self.COUNT, said)))

    def value_command(self, case, program):
        """Prints the argument of one probe of values.c as `VALUE` finds it; `case` has its name and its type."""
        raise NotImplementedError

    def value(self, case, program):
        """As it is shown; None: it is not."""
        done = subprocess.run([str(word) for word in self.value_command(case, program)], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env=environment(), timeout=300)
        found = re.search(self.VALUE, done.stdout)
        return found[1] if found else None

    def close(self):
        pass


class Ours(Tracer):
    name = "usdt-trace"
    COUNT = r"(?m)^ *(\d+) +(?:usdt:|\"a-text)"
    EVENT = r"arg0=\d+ str\(arg1\)=\"a-text\""
    ASKED = {"count": ["--count"], "by text": ["--by", "str(arg1)"], "print": ["--format", "text", "--print", "arg0, str(arg1)"]}

    def __init__(self, tool, program):
        self.tool, self.probe = tool, f"usdt:{program}:compare:hit"

    def version(self):
        return last_word(self.tool, "--version")

    def command(self, question, program, words):
        return [self.tool, self.probe, *self.ASKED[question], "--", program, *words]

    VALUE = r" arg0=(\S+)"

    def value_command(self, case, program):
        return [self.tool, f"usdt:{program}:values:{case.name}", "--format", "text", "--print", "arg0", "--", program]


class Bpftrace(Tracer):
    name = "bpftrace"
    COUNT = r"(?m)^@(?:\[.*\])?: (\d+)"
    ASKED = {"count": "@ = count();", "by text": "@[str(arg1)] = count();", "print": r'printf("%d %s\n", arg0, str(arg1));'}

    def __init__(self, place, program):
        self.words, self.probe = [*place.prefix, "bpftrace"], f"usdt:{program}:compare:hit"
        self.unable = "" if place.has("bpftrace") else "it is not installed"

    def version(self):
        return last_word(*self.words, "--version").lstrip("v")

    def command(self, question, program, words):
        return [*self.words, "-e", f"{self.probe} {{ {self.ASKED[question]} }}", "-c", shlex.join([str(program), *words])]

    def value_command(self, case, program):
        form = "%lu" if case.type.startswith("u") else "%ld"
        return [*self.words, "-e", f'usdt:{program}:values:{case.name} {{ printf("value {form}\\n", arg0); }}', "-c", program]


class Bcc(Tracer):
    """bcc compiles against the headers of the running kernel. Where there are none, those of another one stand in, in a mount
    namespace of its own; the programs here look at nothing of the kernel's."""

    name = "bcc"
    COUNT = r"(?m)^hits (\d+)"

    def __init__(self, place):
        modules = place.root / "lib/modules"
        self.headers, self.python = None, [*place.prefix, "/usr/bin/python3"]
        if not os.path.lexists(modules / platform.release() / "build"):
            self.headers = next((each for each in sorted(modules.glob("*")) if (each / "build").exists()), None)
            if self.headers is None:
                self.unable = "there are no headers of a kernel"
        if not self.version():
            self.unable = "it is not installed"

    def version(self):
        return last_word(*self.python, "-c", "import bcc; print(bcc.__version__)")

    def command(self, question, program, words):
        return self.with_headers([*self.python, "-B", str(HERE / "bcc_program.py"), question, str(program), *words])

    def value_command(self, case, program):
        return self.with_headers([*self.python, "-B", str(HERE / "bcc_program.py"), f"value {case.name} {case.type}",
                                  str(program)])

    def with_headers(self, argv):
        if self.headers is None:
            return argv
        there = f"/lib/modules/{platform.release()}"
        copy = tempfile.mkdtemp(prefix="usdt-headers-")
        links = " && ".join(f"ln -s $(readlink -f {self.headers}/{each}) {there}/{each}" for each in ("build", "source"))
        made = f"{links.replace(there, copy)} && mount -t tmpfs none /lib/modules && mkdir {there} && cp -a {copy}/. {there}"
        return ["unshare", "--mount", "sh", "-c", f'{made} && rm -r {copy} && exec "$@"', "sh", *argv]


class Perf(Tracer):
    """It counts, and it records numbers: a text is an address for it, and there are no tables by keys."""

    name = "perf"
    COUNT = r"(\d+) +sdt_compare:hit"
    EVENT = r"sdt_compare:hit: .*arg1="

    def __init__(self, place, program):
        self.directory = tempfile.mkdtemp(prefix="usdt-perf-")
        self.perf = [*place.prefix, "perf", "--buildid-dir", self.directory]
        self.added = False
        if not place.has("perf"):
            self.unable = "it is not installed"
            return
        for argv in (["buildid-cache", "--add", str(program)], ["probe", "sdt_compare:hit"]):
            done = subprocess.run([*self.perf, *argv], capture_output=True, text=True, check=False)
            if done.returncode:
                self.unable = done.stderr.strip().splitlines()[-1]
                return
        self.added = True

    def version(self):
        return last_word(*self.perf, "--version")

    def command(self, question, program, words):
        if question == "count":
            return [*self.perf, "stat", "-e", "sdt_compare:hit", str(program), *words]
        if question == "print":
            data = f"{self.directory}/data"
            record = [*self.perf, "record", "-q", "-e", "sdt_compare:hit", "-o", data, str(program), *words]
            return ["sh", "-c", f"{shlex.join(record)} && {shlex.join([*self.perf, 'script', '-i', data])}"]
        return None

    def value(self, case, program):
        event, data = f"sdt_values:{case.name}", f"{self.directory}/data"
        for argv in (["buildid-cache", "--add", str(program)], ["probe", event], ["record", "-q", "-e", event, "-o", data, str(program)],
                     ["script", "-i", data], ["probe", "-q", "-d", event]):
            done = subprocess.run([*self.perf, *argv], capture_output=True, text=True, check=False)
            if argv[0] == "script":
                found = re.search(r" arg1=(\S+)", done.stdout)
        return found[1] if found else None

    def close(self):
        if self.added:
            subprocess.run([*self.perf, "probe", "-q", "-d", "sdt_compare:hit"], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


class SystemTap(Tracer):
    name = "SystemTap"
    COUNT = r"(?m)^hits (\d+)"
    ASKED = {"count": ("global n", "n++", 'printf("hits %d\\n", n)'),
             "by text": ("global n", "n[user_string($arg2)]++", 'foreach (text in n) printf("hits %d %s\\n", n[text], text)'),
             "print": ("", 'printf("%d %s\\n", $arg1, user_string($arg2))', "")}

    def __init__(self):
        if not shutil.which("stap"):
            self.unable = "it is not installed"
            return
        tried = subprocess.run(["stap", "-e", "probe begin { exit() }"], capture_output=True, text=True, check=False, timeout=300)
        if tried.returncode:
            built = pathlib.Path("/lib/modules", platform.release(), "build").exists()
            self.unable = "it cannot make a module for this kernel" if built else \
                "it makes modules with the running kernel's headers, which are not there"

    def version(self):
        if not shutil.which("stap"):
            return ""
        done = subprocess.run(["stap", "--version"], capture_output=True, text=True, check=False)
        return (re.findall(r"version (\S+?)/", done.stdout + done.stderr) or [""])[0]

    def command(self, question, program, words):
        declared, at_hit, at_end = self.ASKED[question]
        script = f'{declared} probe process("{program}").mark("hit") {{ {at_hit} }} probe end {{ {at_end} }}'
        return ["stap", "-e", script, "-c", shlex.join([str(program), *words])]


def all_tracers(tool, root, program):
    place = Place(root)
    return [Ours(tool, program), Bpftrace(place, program), Bcc(place), Perf(place, program), SystemTap()]


def environment():
    return {**os.environ, "LC_ALL": "C"}
