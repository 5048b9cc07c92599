#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""<usdt/probe.h> built in every way: each probe is there, once, where a nop is, with the right sizes and signs.

Prints a table of builds. Judges are usdt-list (every argument readable, every site in the code) and binutils' readelf
(the same notes). `--full` builds every combination, and traces each that this machine runs: usdt-trace (as root) and GDB read
what the program says it passed (`./run matrix`, about 20 minutes). Else it is a selection, under a minute.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from builds import check_by_gdb
from harness import Failure, why_no_m32
from static_log import check_shown

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "provider" / "include"
SKIP_CODE = 77

CXX_OF = {"gcc": "g++", "clang": "clang++"}
MACHINES = {"x86_64": [], "i386": ["-m32"], "aarch64": ["--target=aarch64-linux-gnu", "-ffreestanding"]}
CODE = {"pie": ["-fPIE"], "nopie": ["-fno-pic"], "static": ["-fno-pic"], "shared": ["-fPIC"]}
LINK = {"pie": ["-pie"], "nopie": ["-no-pie"], "static": ["-static"], "shared": ["-shared"]}
# Linker and what it is asked to do. gcc's link-time optimisation needs GNU ld; clang's, lld (no plugin is installed for ld).
LINKS = {"ld": [], "ld gc": ["-Wl,--gc-sections"], "ld lto": ["-flto"],
         "lld": [], "lld gc": ["-Wl,--gc-sections"], "lld icf": ["-Wl,--icf=all"],
         "lld gc icf": ["-Wl,--gc-sections,--icf=all"], "lld lto": ["-flto"]}

LEVELS = ("O0", "O1", "O2", "O3", "Os")

PROVIDERS = ("c", "cpp")  # others come with static libraries

Build = collections.namedtuple("Build", "compiler level machine kind link")


def every_build():
    for build in itertools.starmap(Build, itertools.product(CXX_OF, LEVELS, MACHINES, CODE, LINKS)):
        if build.machine == "aarch64" and (build.compiler != "clang" or build.kind != "shared"
                                           or build.link.startswith("ld")):
            continue
        if "lto" in build.link and build.link.split()[0] != {"gcc": "ld", "clang": "lld"}[build.compiler]:
            continue
        yield build


def is_chosen(build):
    """A selection in which every choice meets every linker."""
    if build.level == "O0":
        return build.link == "ld" and build.kind in ("pie", "shared") and build.machine != "aarch64"
    if build.level == "O3":
        return build.link == "lld gc icf" and build.kind == "pie"
    if build.level in ("O1", "Os"):
        return build.link == "ld" and build.kind == "pie" and build.machine == "x86_64"
    if build.machine == "i386":
        return build.kind == "shared" and build.link in ("ld", "ld gc", "lld gc icf")
    return build.machine == "aarch64" or build.kind == "pie" or build.link in ("ld gc", "lld gc icf")


def expected_probes(machine):
    """Sizes, negative where signed, of each probe's arguments."""
    word = 4 if machine == "i386" else 8
    char, wide = (1, 4) if machine == "aarch64" else (-1, -4)
    numbers = [-1, 1, -2, 2, -4, 4, -8, 8]
    kinds = [1, char, 4, 8, -4, 4, word, word]
    views = [word, word, word, word, -4]
    one = [[-4]]
    return {
        "c:integers": [numbers], "c:lazy_integers": [numbers], "c:stub_integers": [numbers],
        "c:others": [kinds], "c:stub_others": [kinds],
        "c:named": [[-4, word, 8, char, -4, -4, -8]],
        "c:twelve": [[-4, -8] * 6], "c:stub_twelve": [[-4, -8] * 6],
        "c:lazily": one, "c:stub_lazily": one, "c:none": [[]], "c:stub_none": [[]],
        "c:twin_one": one, "c:twin_two": one, "c:stub_twin_one": one, "c:stub_twin_two": one,
        "c:dead": one, "c:dead_stub": one, "c:places": [[-4], [-2]], "c:field": [[word, -4]],
        "cpp:types": [[-1, 1, 8, 1, 2, wide, -4, 4, word, 4]],
        "cpp:views": [views], "cpp:stub_views": [views], "cpp:temporary": [[word, word, -4]],
        "cpp:in_lambda": [[-4, -4]], "cpp:in_header": one, "cpp:lazy_in_header": one, "cpp:stub_in_header": one,
        "cpp:in_template": [[-4, word], [1, word]], "cpp:stub_in_template": [[-4], [1]],
        "cpp:in_member": [[word, -4, -4]],
    }


def expected_names(machine):
    """Types and names of some probes' arguments, as the provider's own note has them."""
    return {
        "c:integers": ["signed char a", "unsigned char b", "short c", "unsigned short d", "int e", "unsigned int f",
                       "long long g" if machine == "i386" else "long g",
                       "unsigned long long h" if machine == "i386" else "unsigned long h"],
        "c:stub_others": ["bool truth", "char letter", "float single", "double twice", "int colour",
                          "unsigned int flags", "const char *text", "void *pointer"],
        "c:field": ["const char *text", "int -"],
        "c:none": [],
        "cpp:types": ["enum level", "enum byte", "enum wide", "bool truth", "char16_t unit", "wchar_t character",
                      "int narrow", "unsigned int flag", "void *nothing", "float single"],
        "cpp:stub_views": ["const char *text", "size_t text_size", "const void *numbers", "size_t numbers_size",
                           "int value"],
        "cpp:in_lambda": ["int twice", "int -"],
    }


SOURCES = {"c": ("types.c",), "cpp": ("shapes.cpp", "shapes.hpp")}


def check_description(site, build):
    probe = f"{site['provider']}:{site['name']}"
    shown = [f"{arg.get('type')}{'' if arg.get('type', '').endswith('*') else ' '}{arg.get('name', '-')}"
             for arg in site["args"]]
    wanted = expected_names(build.machine).get(probe, shown)
    assert shown == wanted, f"{probe}: described as {shown}, expected {wanted}"
    assert all(arg.get("type") for arg in site["args"]), f"{probe}: an argument without a type: {site['args']}"
    source = site["source"]
    assert pathlib.Path(source["file"]).name in SOURCES[site["provider"]], f"{probe}: from {source}"
    line = (HERE / pathlib.Path(source["file"]).name).read_text().splitlines()[source["line"] - 1]
    assert site["name"] in line, f"{probe}: line {source['line']} is {line}"


def has_semaphore(probe):
    return any(word in probe for word in ("lazy", "lazily", "stub", "places"))


def is_stub(probe):
    return "stub" in probe or probe == "c:places"


def run(argv, **options):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(str(word) for word in argv)}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout


class Builder:
    """Compiles each source once for all links that can share it."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.objects = {}

    def object(self, source, build):
        sections = ["-ffunction-sections", "-fdata-sections"] if "gc" in build.link or "icf" in build.link else []
        lto = ["-flto"] if "lto" in build.link else []
        key = (source, build.compiler, build.level, build.machine, CODE[build.kind][0], bool(sections), bool(lto))
        if key not in self.objects:
            out = self.dir / f"{len(self.objects)}.o"
            is_c = source.endswith(".c")
            argv = [build.compiler, "-std=c11"] if is_c else [CXX_OF[build.compiler], "-std=c++20"]
            run(["nice", "-n", "5", *argv, f"-{build.level}", "-Wall", "-Wextra", "-Werror", *MACHINES[build.machine], *CODE[build.kind],
                 *sections, *lto, f"-I{INCLUDE}", f"-I{HERE}", "-c", HERE / source, "-o", out])
            self.objects[key] = out
        return self.objects[key]

    def link(self, build):
        """The file with the probes, and the program that runs them (none for other machines)."""
        linker = build.link.split()[0]
        argv = [CXX_OF[build.compiler], f"-{build.level}", *MACHINES[build.machine], *LINK[build.kind], *LINKS[build.link],
                f"-fuse-ld={'bfd' if linker == 'ld' else linker}"]
        probes = [self.object(source, build) for source in ("types.c", "shapes.cpp", "more.cpp")]
        out = self.dir / "built"
        if build.machine == "aarch64":
            run([*argv, "-nostdlib", *probes, "-o", out])
            return out, None
        main = self.object("main.c", build)
        if build.kind != "shared":
            run([*argv, *probes, main, "-o", out])
            return out, out
        library = self.dir / "libprobes.so"
        run([*argv, *probes, "-Wl,-soname,libprobes.so", "-o", library])
        machine = MACHINES[build.machine]
        lto = ["-flto"] if "lto" in build.link else []
        run([CXX_OF[build.compiler], *machine, *lto, f"-fuse-ld={'bfd' if linker == 'ld' else linker}", "-pie", main, library, f"-Wl,-rpath,{self.dir}", "-o", out])
        return library, out


def notes_by_readelf(path):
    """(provider, name, pc, base, semaphore, arguments) of each note, as binutils read them."""
    text = run(["readelf", "-nW", path])
    pattern = (r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x(\w+), Base: 0x(\w+), Semaphore: 0x(\w+)\s+"
               r"Arguments: ?([^\n]*)")
    return sorted((provider, name, int(pc, 16), int(base, 16), int(semaphore, 16), arguments.strip())
                  for provider, name, pc, base, semaphore, arguments in re.findall(pattern, text)
                  if provider in PROVIDERS)


def section_address(path, section):
    found = re.search(rf"\] {re.escape(section)}\s+\S+\s+(\w+)", run(["readelf", "-SW", path]))
    return int(found[1], 16) if found else None


def sites_of(tool, path):
    sites = [json.loads(line) for line in run([tool, "--format", "json", path]).splitlines()]
    return [site for site in sites if site["provider"] in PROVIDERS]


def check_site(site, build, base):
    what = f"{site['provider']}:{site['name']} at {site['pc']} ({site['args_text']})"
    assert site["offset"] is not None, f"{what}: a note without its code"
    first = site["site"]["bytes"].replace(" ", "")
    nop = "1f2003d5" if build.machine == "aarch64" else "90"
    assert first.startswith(nop), f"{what}: no nop but {first}"
    assert int(site["base"], 16) == base, f"{what}: base {site['base']}, .stapsdt.base is at {base:#x}"
    check_description(site, build)
    for arg in site["args"]:
        assert arg["readable"], f"{what}: {arg}"
        assert not arg.get("symbol"), f"{what}: memory named by a symbol"
    probe = f"{site['provider']}:{site['name']}"
    assert (site["semaphore"] is not None) == has_semaphore(probe), f"{what}: semaphore {site['semaphore']}"
    if is_stub(probe) and build.machine == "x86_64":
        assert site["site"]["class"] == "nop,nop10", f"{what}: {site['site']}"
        assert "0f1f440000" not in first, f"{what}: a nop5 in the stub, of which Linux 6.18 makes a call: {first}"


def check_file(tool, path, build):
    sites = sites_of(tool, path)
    base = section_address(path, ".stapsdt.base")
    expected = expected_probes(build.machine)
    signatures = collections.defaultdict(list)
    places = {}
    for site in sites:
        check_site(site, build, base)
        probe = f"{site['provider']}:{site['name']}"
        signatures[probe].append([-arg["size"] if arg["signed"] else arg["size"] for arg in site["args"]])
        assert places.setdefault(site["pc"], probe) == probe, f"{probe} and {places[site['pc']]} are one site"
    dropped = {"c:dead", "c:dead_stub"}
    for probe, wanted in expected.items():
        if probe in dropped and probe not in signatures:
            continue
        got = signatures[probe]
        assert sorted(map(str, wanted)) == sorted(set(map(str, got))), f"{probe}: {got}, expected {wanted}"
        if is_stub(probe):
            assert len(got) == len(wanted), f"{probe}: {len(got)} stubs of {len(wanted)} signatures"
    assert set(signatures) <= set(expected), f"unexpected: {set(signatures) - set(expected)}"
    if "gc" in build.link and build.kind != "shared":
        assert not dropped & set(signatures), "dead code is gone, its notes are not"
    ours = sorted((s["provider"], s["name"], int(s["pc"], 16), int(s["base"], 16), int(s["semaphore"] or "0", 16),
                   s["args_text"]) for s in sites)
    assert ours == notes_by_readelf(path), "readelf reads other notes"
    return len(sites)


ROUNDS = 5


def check_live(path, program, log):
    """Who of usdt-trace and GDB could be asked read what the program says it passed."""
    try:
        if os.geteuid() == 0 and os.environ.get("USDT_TRACE"):
            shown = collections.defaultdict(list)
            text = run([os.environ["USDT_TRACE"], f"usdt:{path}:c*:*", "--format", "json", "--", program, ROUNDS, log])
            for event in map(json.loads, text.splitlines()):
                if event["type"] == "event":
                    shown[event["probe"].rsplit(":", 1)[1]].append(event["args"])
            check_shown(shown, log)
        if shutil.which("gdb"):
            check_by_gdb(program, log)
    except Failure as failure:
        raise AssertionError(str(failure)) from None


def missing_tool(build):
    if build.compiler == "clang" and not shutil.which("clang++"):
        return "no clang"
    if build.link.startswith("lld") and not shutil.which("ld.lld"):
        return "no lld"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", metavar="WORDS", help='builds with these words: "gcc O2 i386"')
    options = parser.parse_args()
    tool = os.environ["USDT_LIST"]
    if os.uname().machine != "x86_64":
        print("the builds are for x86-64 hosts")
        sys.exit(SKIP_CODE)
    m32 = why_no_m32("g++") == ""
    table = collections.defaultdict(dict)
    failures = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="usdt-matrix-") as directory:
        builder = Builder(directory)
        for build in every_build():
            if options.only not in " ".join(build):
                continue
            if not options.full and not is_chosen(build) or missing_tool(build) or (build.machine == "i386" and not m32):
                continue
            row = (build.compiler, build.level, build.machine, build.kind)
            try:
                path, program = builder.link(build)
                count = check_file(tool, path, build)
                if program:
                    run([program, 2])
                if program and options.full:
                    check_live(path, program, builder.dir / "said")
                table[row][build.link] = str(count)
            except AssertionError as error:
                table[row][build.link] = "FAIL"
                print(f"{' '.join(build)}: {error}", file=sys.stderr, flush=True)
                failures.append(f"{' '.join(build)}: {error}")
    print("sites of each build, all of them right; FAIL is explained below")
    print(f"{'':28}" + "".join(f"{link:>11}" for link in LINKS))
    for row, cells in table.items():
        print(f"{' '.join(row):28}" + "".join(f"{cells.get(link, '-'):>11}" for link in LINKS))
    built = sum(len(cells) for cells in table.values())
    traced = ", those of this machine traced" if options.full else ""
    print(f"{built} builds{traced}, {len(failures)} wrong, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failures or built == 0 else 0)


if __name__ == "__main__":
    main()
