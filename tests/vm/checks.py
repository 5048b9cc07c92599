# SPDX-License-Identifier: BSD-2-Clause
"""What is run in a guest, and what its outcome means. A check has steps (seconds, shell command), files for the guest,
and `judge`, which turns the outcomes of its steps into rows of the report; it is given the guest's /out and the rows so
far."""

import collections
import dataclasses
import json
import pathlib
import re
import sys

import debian
from guest import KILLED

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "programs"))
import builds
import harness
import truth
from elf_view import notes

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "provider"))
import runtime_log
from static_log import check_shown


@dataclasses.dataclass
class Cell:
    """One row of the report for one kernel: what the table shows, and for a failure what is printed."""

    text: str
    failure: str = ""
    reasons: dict = dataclasses.field(default_factory=dict)  # why tests were skipped -> how many


def _tail(text, lines=40):
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _seconds(outcomes):
    return f"{sum(outcome.seconds for outcome in outcomes):.0f} s"


def lost(outcomes, steps):
    """Why a check cannot be judged: the guest died, a command ran out of time, or the kernel complained."""
    for outcome, (seconds, command) in zip(outcomes, steps):
        if outcome.status is None:
            return f"the guest died\n{_tail(outcome.output)}".rstrip()
        if outcome.status == KILLED:
            return f"killed after {seconds} s: {command}\n{_tail(outcome.output)}"
        if outcome.complaints:
            return "the kernel complained:\n" + "\n".join(outcome.complaints)
    return ""


class Doctor:
    """What the kernel offers, as usdt-list --doctor says it, and its self-test of the red zone."""

    name = "doctor"

    def __init__(self, bin_dir):
        self.files = {"lab/usdt-list": bin_dir / "usdt-list"}
        self.steps = [(60, "usdt-list --doctor --format json")]

    def judge(self, outcomes, _out, _rows):
        lines = [line for line in outcomes[0].output.splitlines() if line.startswith("{")]
        said = [json.loads(line) for line in lines]
        rows = {}
        for line in said:
            if line["type"] == "feature":
                rows[f"features: {line['name']}"] = Cell(line["answer"])
            elif line["type"] == "backend":
                rows["chosen: USDT"] = Cell(line["name"] or "none")
            elif line["type"] == "red_zone":
                intact = {"yes": "intact", "no": f"overwritten in {line['overwritten']} of {line['calls']}"}
                rows[f"red zone: {line['nop']}"] = Cell(f"{line['cost']}, {intact.get(line['intact'], 'unknown')}"
                                                       if line["cost"] != "refused" else "refused")
        if not rows:
            return {"doctor": Cell("FAIL", f"status {outcomes[0].status}\n{_tail(outcomes[0].output)}")}
        return rows


class Program:
    """A program of the build tree: a GoogleTest whose counts are read, or (counts=False) anything whose status says
    all. It may print lines `@@MATRIX TABLE: ROW=TEXT`; each is a cell. `append`: kernel arguments that it wants, for which
    it gets a guest of its own; its lines are no cells then."""

    def __init__(self, bin_dir, program, arguments="", limit=300, counts=True, name=None, append=""):
        self.name = name or program
        self.append = append
        self.counts = counts
        self.files = {f"lab/{program}": bin_dir / program}
        self.steps = [(limit, f"{program} {arguments}".strip())]

    def judge(self, outcomes, _out, _rows):
        [outcome] = outcomes
        rows = {} if self.append else dict(re.findall(r"^@@MATRIX ([^=\n]+)=(.*)$", outcome.output, re.M))
        return {self.name: self._cell(outcome), **{key: Cell(value) for key, value in rows.items()}}

    def _cell(self, outcome):
        words, reasons, good = [], {}, outcome.status == 0
        if self.counts:
            found = re.findall(r"^\[  (\w+) *\] (\d+) test", outcome.output, re.M)
            numbers = {word: int(number) for word, number in found}
            skips = re.findall(r"^.*: Skipped\n(.+)$", outcome.output, re.M)
            reasons = collections.Counter(skips)
            words = [f"{numbers[word]} {word.lower()}" for word in ("PASSED", "FAILED", "SKIPPED") if numbers.get(word)]
            good = good and "PASSED" in numbers
        failure = "" if good else f"status {outcome.status}\n{_tail(_failures(outcome.output) or outcome.output, 60)}"
        return Cell(f"{', '.join(words) or ('ok' if good else 'FAIL')} ({_seconds([outcome])})", failure, reasons)


def _failures(output):
    """What GoogleTest printed of the tests that failed."""
    blocks = re.findall(r"^\[ RUN      \].*?^\[ +(?:OK|FAILED|SKIPPED) +\][^\n]*$", output, re.M | re.S)
    return "\n".join(block for block in blocks if "[  FAILED  ]" in block)


class Truth:
    """A generated program (tests/programs) traced in the guest; what was seen is compared here with its own log."""

    MODES = (("values", 3, "truth", ""), ("threads", 2, "truth", ""),
             ("texts", 12, "text", "--print 'arg0, str(arg1), hex(arg2)'"))

    def __init__(self, bin_dir, built):
        self.name = f"generated programs: {built.name}"
        self.built = built
        self.files = {"lab/usdt-trace": bin_dir / "usdt-trace", **built.files}
        self.steps = [(120, self._command(*mode)) for mode in self.MODES]

    def _prefix(self, mode):
        return f"{self.built.name}.{mode}"

    def _command(self, mode, rounds, provider, options):
        out = f"/out/{self._prefix(mode)}"
        return (f"usdt-trace 'usdt:{self.built.holder}:{provider}:*' --format json {options} -- "
                f"env TRUTH_LOG={out}.log {self.built.program} {mode} {rounds} >{out}.json 2>{out}.err")

    def judge(self, outcomes, out, rows):
        hits = values = 0
        explained, limit = {}, truth.UNREADABLE_LIMIT
        if rows.get("features: kernel_btf", Cell("")).text == "no":
            explained, limit = {segment: "thread-local, which needs kernel BTF" for segment in ("%fs:", "%gs:")}, 0.3
        try:
            for (mode, *_), outcome in zip(self.MODES, outcomes):
                base = out / self._prefix(mode)
                texts = [base.with_name(f"{base.name}.{kind}").read_text() for kind in ("json", "err")]
                result = harness.Result(outcome.status, *texts)
                result.check_code(0)
                tally = truth.compare(result, base.with_name(f"{base.name}.log"), self.built.notes, limit,
                                      explained=explained)
                hits, values = hits + tally.hits, values + tally.readable
        except (harness.Failure, OSError) as failure:
            return {self.name: Cell("FAIL", f"{mode}: {failure}")}
        return {self.name: Cell(f"{hits} hits, {values} values ({_seconds(outcomes)})")}


class StaticProbes:
    """A program with the probes of <usdt/probe.h> (tests/provider), traced; what was seen is compared here with its own log."""

    name = "probes of probe.h"

    def __init__(self, bin_dir):
        self.files = {f"lab/{name}": bin_dir / name for name in ("usdt-trace", "static-probes")}
        self.steps = [(120, "usdt-trace 'usdt:/lab/static-probes:c*:*' --format json -- static-probes 5 /out/static.log "
                            ">/out/static.json 2>/out/static.err")]

    def judge(self, outcomes, out, _rows):
        try:
            result = harness.Result(outcomes[0].status, *[(out / f"static.{kind}").read_text() for kind in ("json", "err")])
            result.check_code(0)
            check_shown({name: [event["args"] for event in events] for name, events in result.by_name().items()},
                        out / "static.log")
        except (harness.Failure, OSError) as failure:
            return {self.name: Cell("FAIL", f"{failure}\n{_tail(outcomes[0].output)}")}
        return {self.name: Cell(f"{len(result.events)} hits ({_seconds(outcomes)})")}


class RunTimeProbes:
    """Probes that a program makes in the guest (<usdt/provider.h>), traced by its pid; what was seen is compared here with
    the program's own log."""

    name = "probes made at run time"
    STEPS = ("mkfifo /tmp/go", "runtime-probes values 12 /out/run_time.log </tmp/go >/tmp/pid & program=$!", "exec 3>/tmp/go",
             "until [ -s /tmp/pid ]; do sleep 0.2; done",
             "usdt-trace 'typed:*' -p $program --format json >/out/run_time.json 2>/out/run_time.err & tool=$!",
             "until grep -q '^attached' /out/run_time.err || ! kill -0 $tool; do sleep 0.2; done",
             "echo >&3", "wait $program && kill -INT $tool", "wait $tool")

    def __init__(self, bin_dir):
        self.files = {f"lab/{name}": bin_dir / name for name in ("usdt-trace", "runtime-probes")}
        self.steps = [(120, "; ".join(self.STEPS).replace("&;", "&"))]

    def judge(self, outcomes, out, _rows):
        try:
            result = harness.Result(outcomes[0].status, *[(out / f"run_time.{kind}").read_text() for kind in ("json", "err")])
            result.check_code(0)
            passed = runtime_log.said(out / "run_time.log")
            harness.check(len(passed) == 9, f"probes: {sorted(passed)}")
            shown = runtime_log.shown(result)
            for name, lists in passed.items():
                harness.check_equal(shown.get(name), lists, f"values of {name}")
        except (harness.Failure, OSError) as failure:
            return {self.name: Cell("FAIL", f"{failure}\n{_tail(outcomes[0].output)}")}
        return {self.name: Cell(f"{len(result.events)} hits ({_seconds(outcomes)})")}


class EveryFunction:
    """usdt-trace on every function there is, and the kernel's own list (fdinfo, 7.2) of what it attached: each function's
    cookie says which site the tool takes it for."""

    name = "fentry:*"
    AT_LEAST = 40_000
    STEPS = ("usdt-trace --count --carrier table 'fentry:*' --format json >/out/every.json 2>/out/every.err & tool=$!",
             "until grep -q '^attached' /out/every.err || ! kill -0 $tool; do sleep 1; done",
             "cat /proc/$tool/fdinfo/* >/out/every.fdinfo", "kill -INT $tool", "wait $tool",
             "awk '$1 == at { print name, $3 } { at = $1; name = $3 }' /proc/kallsyms >/out/every.aliases")

    def __init__(self, bin_dir):
        self.files = {"lab/usdt-trace": bin_dir / "usdt-trace"}
        self.steps = [(400, "; ".join(self.STEPS))]

    def judge(self, outcomes, out, _rows):
        said = ""
        try:
            said, seen, listed, aliases = [(out / f"every.{kind}").read_text()
                                           for kind in ("err", "json", "fdinfo", "aliases")]
            summary = json.loads(seen.splitlines()[-1])
        except (OSError, IndexError, ValueError) as failure:
            return {self.name: Cell("FAIL", f"status {outcomes[0].status}, {failure}\n{_tail(said)}")}
        skipped = {site["probe"] for site in summary["skipped"]}
        sites = [probe for probe in summary["probes"] if probe["probe"] not in skipped]
        aliases = {frozenset(line.split()) for line in aliases.splitlines()}
        listed = re.findall(r"^\d+\s+\d+\s+(\d+)\s+(\S+?)\+0x", listed, re.M)
        shown = dict(enumerate(site["probe"].removeprefix("fentry:") for site in sites))
        pairs = [(name, shown.get(int(cookie) >> 32)) for cookie, name in listed]
        wrong = [f"{name} is shown as {ours}" for name, ours in pairs
                 if name != ours and frozenset((name, ours)) not in aliases]
        failure = "\n".join(wrong[:20])
        if len(listed) < self.AT_LEAST or len(listed) != len(sites):
            failure += f"\n{len(listed)} attached of {len(sites)}; {len(skipped)} skipped\n{_tail(said, 5)}"
        if not any(site["hits"] for site in sites):
            failure += "\nnone was hit"
        words = f"{len(listed)} attached, {len(wrong)} wrong names, {sum(site['hits'] > 0 for site in sites)} hit"
        return {self.name: Cell(f"{words} ({_seconds(outcomes)})", failure.strip())}


# Dynamic linker and C library: of the sysroot, or of this machine (-m32: from libc6-i386) for its own architecture.
LIBRARIES = {"amd64": ("lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6"),
             "amd64-m32": ("lib/ld-linux.so.2", "lib32/libc.so.6"),
             "arm64": ("lib/ld-linux-aarch64.so.1", "lib/aarch64-linux-gnu/libc.so.6"),
             "i386": ("lib/ld-linux.so.2", "lib/i386-linux-gnu/libc.so.6")}


def libraries(arch, wants):
    """Files for a guest that has programs with libraries; `wants`: of LIBRARIES."""
    root = pathlib.Path("/") if arch == "amd64" else debian.sysroot(arch)
    return {path: root / path for path in LIBRARIES[wants]}


def cross_flags(arch):
    """Those of clang for another machine than x86; sys/sdt.h is an architecture's header on Debian although it is the same
    for all."""
    return [f"--target={debian.TRIPLES[arch]}", f"--sysroot={debian.sysroot(arch)}", "-fuse-ld=lld",
            "-idirafter", "/usr/include/x86_64-linux-gnu"]


class Built:
    """A generated program for an architecture, with what it needs to run in a guest that has no libraries."""

    def __init__(self, name, arch):
        self.name = name
        self._run = harness.Run(None, starts_programs=False)
        self.program, self.holder = builds.build(self._run, name, cross_flags(arch) if arch == "arm64" else None)
        self.notes = notes(self.holder)
        self.files = {str(path): path for path in {self.program, self.holder}}
        self.files |= libraries(arch, f"{arch}-m32" if arch == "amd64" and name.endswith("-m32") else arch)

    def close(self):
        self._run.close()
