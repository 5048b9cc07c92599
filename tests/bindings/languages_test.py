#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The examples in Rust and Go over libusdt-c, built by their compilers alone: what they list is what readelf(1) sees, and what
they trace is what the traced program says it passed.

Usage: languages_test.py rust|go COMPILER LIBRARY PROGRAM_TO_LIST    exit code 77: skipped
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HITS = 1000

# Fires at a word, and says what it passed as the examples show it.
FIRES = """\
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <usdt/probe.h>
USDT_PROBE_DECLARE(lang, values, "small, large, part, word:string");
static const char* const words[] = {"plain", "na\\xc3\\xafve \\"text\\"", "", NULL};
static const char* const shown[] = {"\\"plain\\"", "\\"na\\xc3\\xafve \\\\\\"text\\\\\\"\\"", "\\"\\"", "null"};
int main(void) {
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  for (int n = 0; n < %d; ++n) {
    const int16_t small = (int16_t)-n;
    const uint64_t large = UINT64_MAX - (uint64_t)n;
    const double part = 0.25 + n;
    const char* word = words[n %% 4];
    USDT_PROBE(lang, values, small, large, part, word);
    printf("%%d lang:values %%d %%llu %%.2f %%s\\n", getpid(), small, (unsigned long long)large, part, shown[n %% 4]);
  }
  return 0;
}
""" % HITS


def built_by_rust(compiler, library, work):
    program = work / "trace"
    subprocess.run([compiler, "--edition", "2021", "-D", "warnings", "-O", ROOT / "examples/rust/trace.rs", "-o", program,
                    "-L", library.parent], check=True)
    return program


def built_by_go(compiler, library, work):
    """Without a network: the module needs no other one."""
    flags = f"-I{ROOT}/bindings/c/include"
    (work / "usdt-c.pc").write_text(f"Name: usdt-c\nDescription: as built\nVersion: 0\nCflags: {flags}\n"
                                    f"Libs: -L{library.parent} -lusdt-c\n")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(work), "GOFLAGS": "-mod=mod", "GOPROXY": "off",
                   "CGO_ENABLED": "1", "GO111MODULE": "on", "GOTOOLCHAIN": "local", "HOME": str(work),
                   "CGO_LDFLAGS_ALLOW": ".*"}
    subprocess.run([compiler, "vet", "./..."], cwd=ROOT / "examples/go", env=environment, check=True)
    subprocess.run([compiler, "build", "-o", work / "trace", "."], cwd=ROOT / "examples/go", env=environment, check=True)
    return work / "trace"


def seen_by_readelf(program):
    """"provider:name(i32, u64)" of each note, in order."""
    notes = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: .*\s+Arguments: ?(.*)", notes)
    def type_of(size, floating):
        return f"{'f' if floating else 'i' if size.startswith('-') else 'u'}{8 * abs(int(size))}"
    return sorted(f"{provider}:{name}({', '.join(type_of(*each) for each in re.findall(r'(-?[0-9]+)(f?)@', args))})"
                  for provider, name, args in found)


def lists(trace, program, environment):
    shown = subprocess.run([trace, program], capture_output=True, text=True, check=True, env=environment).stdout
    expected = seen_by_readelf(program)
    assert sorted(shown.splitlines()) == expected, (shown, expected)
    failed = subprocess.run([trace, "/no/such/file"], capture_output=True, text=True, env=environment)
    assert failed.returncode == 1 and "/no/such/file" in failed.stderr, failed
    return len(expected)


def traces(trace, work, environment):
    (work / "fires.c").write_text(FIRES)
    subprocess.run(["gcc", "-O2", f"-I{ROOT}/provider/include", work / "fires.c", "-o", work / "fires"], check=True)
    child = subprocess.Popen([work / "fires"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tracer = subprocess.Popen([trace, f"usdt:{work}/fires:lang:values", "4000"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert tracer.stderr.readline() == "tracing\n", tracer.stderr.read()
        said = child.communicate("x", timeout=60)[0].splitlines()
        shown = tracer.communicate(timeout=60)[0].splitlines()
    finally:
        for process in (child, tracer):
            process.kill()
            process.wait()
    assert shown[-1] == f"{HITS} hits, {HITS} delivered, 0 lost", shown[-1]
    different = [(each, other) for each, other in zip(shown, said) if each != other]
    assert len(said) == HITS and len(shown) == HITS + 1 and not different, different[:3]


def main():
    language, compiler, library, program = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve(), sys.argv[4]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        trace = {"rust": built_by_rust, "go": built_by_go}[language](compiler, library, work)
        print(f"lists {lists(trace, program, environment)} probes as readelf does")
        if os.geteuid() != 0:
            print("SKIP tracing: needs root (attaching uprobes)")
            return 77
        traces(trace, work, environment)
        print(f"traced {HITS} hits of a program, each as the program says it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
