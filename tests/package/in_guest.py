# SPDX-License-Identifier: BSD-2-Clause
"""Tools of packages in a guest: on the kernel of a distribution, with programs that they trace (tests/vm)."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests/programs", "packaging", "tests/vm")]

import debian  # noqa: E402
import elf_view  # noqa: E402
import guest  # noqa: E402
from checks import Cell, lost  # noqa: E402
from harness import Failure, Result, Skip, check, check_equal  # noqa: E402

CALLS = 1000
PROGRAM = f"""
def called(number): return number
for number in range({CALLS}): called(number)
"""


def kernel(version, arch, suite, flavour):
    """The directory of a kernel; where it cannot be had or run, the scenario is skipped."""
    if lacking := guest.missing(arch):
        raise Skip(f"not installed: {' '.join(lacking)}")
    debian.CACHE.mkdir(parents=True, exist_ok=True)
    try:
        return debian.kernel(version, arch, suite, flavour)
    except debian.Unavailable as reason:
        raise Skip(str(reason))


def build_static_probes(builder, directory, program=lambda name: name):
    """tests/provider's program with probes, linked statically by the compilers of a chroot; `program` names them there."""
    builder.run("sh", "-ec", f"""CC='{program("gcc")} -O2' CXX='{program("g++")} -O2 -std=c++20'; cd /program
        $CC -I/sources/provider/include -c /sources/tests/provider/types.c /sources/tests/provider/main.c
        $CXX -I/sources/provider/include -c /sources/tests/provider/shapes.cpp /sources/tests/provider/more.cpp
        $CXX -static types.o main.o shapes.o more.o -o static-probes""", binds=((ROOT, "/sources"), (directory, "/program")))
    return directory / "static-probes"


def check_traces(image, arch, checks, out):
    """Boots a kernel once for all checks, each of which is judged by what it left."""
    files = {path: source for each in checks for path, source in each.files.items()}
    boot = guest.run(image / "vmlinuz", arch, files, [step for each in checks for step in each.steps], out)
    check(not boot.death, "\n".join([boot.death, *boot.last_words]))
    print(f"Linux {boot.release}: up after {boot.up_after:.0f} s")
    rest = list(boot.outcomes)
    for each in checks:
        outcomes, rest = rest[:len(each.steps)], rest[len(each.steps):]
        check(not (why := lost(outcomes, each.steps)), f"{each.name}: {why}")
        cell = each.judge(outcomes, out, {})[each.name]
        check(not cell.failure, f"{each.name}: {cell.failure}")
        print(f"{each.name}: {cell.text}")


# Each list that holds itself is garbage, and the collector says how much it found; how often it came before, too.
COLLECTIONS = """
import gc, os
gc.disable()
with open("/out/python.log", "w") as log:
    print(sum(each["collections"] for each in gc.get_stats()), file=log)
    for number in range(300):
        for each in range(number):
            garbage = []
            garbage.append(garbage)
        garbage = None
        print(number % 3, gc.collect(number % 3), file=log)
os._exit(0)
"""


class Python:
    """Probes of the Python of Debian 11: they are listed, and traced with the values that the program has logged."""

    name = "Python 3.9"
    PYTHON = "usr/bin/python3.9"
    STEPS = (f"usdt-list --format json /{PYTHON} >/out/listed.json",
             f"usdt-trace 'python:gc__*' --format json -- /{PYTHON} collector.py >/out/python.json 2>/out/python.err",
             f"usdt-trace python:function__entry --where 'str(arg1) == \"called\"' --print 'str(arg0), str(arg1), arg2' "
             f"--format json -- /{PYTHON} calls.py >/out/calls.json 2>/out/calls.err")

    def __init__(self, run, system, tools):
        system("apt-get -qq -y --no-install-recommends install python3")
        root = system.here.root
        loaded = re.findall(r"(/\S+) \(0x", system(f"ldd /{self.PYTHON}"))
        library = [str(path.relative_to(root)) for path in (root / "usr/lib/python3.9").rglob("*.py")
                   if not path.is_symlink()]
        self.python = root / self.PYTHON
        sources = system(f"realpath {' '.join(loaded)}").split()  # as links lead there
        self.files = {path: root / source.lstrip("/") for path, source in zip(loaded, sources)}
        self.files |= {path: root / path for path in (self.PYTHON, *library)}
        for name, text in (("calls.py", PROGRAM), ("collector.py", COLLECTIONS)):
            (run.dir / name).write_text(text)
            self.files[f"lab/{name}"] = run.dir / name
        self.files |= {f"lab/{tool}": tools / tool for tool in ("usdt-list", "usdt-trace")}
        self.steps = [(120, step) for step in self.STEPS]

    def judge(self, outcomes, out, _rows):
        try:
            return {self.name: Cell(self.compare(outcomes, out))}
        except (Failure, OSError) as failure:
            return {self.name: Cell("FAIL", f"{failure}\n{[outcome.output for outcome in outcomes]}")}

    def compare(self, outcomes, out):
        check_equal([outcome.status for outcome in outcomes], [0, 0, 0], "what the tools ended with")
        listed = [json.loads(line) for line in (out / "listed.json").read_text().splitlines()]
        of_readelf = [(note.provider, note.name, note.pc) for note in elf_view.notes(self.python)]
        check(len(of_readelf) > 5, f"{len(of_readelf)} notes")
        check_equal(sorted((site["provider"], site["name"], int(site["pc"], 16)) for site in listed), sorted(of_readelf), "sites")
        collected, called = [Result(0, *[(out / f"{name}.{kind}").read_text() for kind in ("json", "err")])
                             for name in ("python", "calls")]
        [before], *passed = [[int(word) for word in line.split()] for line in (out / "python.log").read_text().splitlines()]
        check_equal(len(passed), 300, "lines of the log")
        collected.check_accounted(2 * (before + len(passed)), lost=0)
        for at, probe in enumerate(("gc__start", "gc__done")):
            shown = [event["args"] for event in collected.by_name()[probe]]
            check_equal(shown[before:], [[line[at]] for line in passed], f"values of {probe}")
        check_equal(sum(called.summary["lost"].values()), 0, f"lost {called.summary['lost']}")
        line = PROGRAM.splitlines().index("def called(number): return number") + 1
        check_equal([event["args"] for event in called.events], CALLS * [["/lab/calls.py", "called", line]], "calls")
        return f"{len(listed)} sites, {len(collected.events)} hits of its collector, {len(called.events)} calls"
