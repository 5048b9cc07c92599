# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose stacks differ from hit to hit, and what GDB shows of them at the same hits.

A program is layers of functions; each calls one of the next layer, by a seed, and the last layer has the probes
`stacks:leafN`. Some functions are inlined where the compiler likes to, some have large frames, some are variadic."""

import json
import os
import subprocess

from puppet import HERE  # noqa: F401 (finds the harness)
from harness import check, require_program

LAYERS, WIDTH = 7, 3

HEAD = """#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
extern volatile unsigned long sink;
#ifdef __cplusplus
#define OPEN(n) namespace layer##n {
#define CLOSE }
#define IN(n) layer##n::
#else
#define OPEN(n)
#define CLOSE
#define IN(n)
#endif
"""
VARIADIC = """
int {name}(unsigned seed, ...);
"""
BODY = """
{kind}int {name}(unsigned seed{dots}) {{
  volatile int room[{size}];
  int out;
  unsigned next = seed * 2654435761u + {salt};
  room[seed % {size}] = (int)seed;
  sink += room[0] & 1;
  switch ((next >> 16) % {width}) {{
{cases}
  }}
  sink += (unsigned long)out;
  return out + (room[seed % {size}] & 3);
}}
"""
LEAF = """
{kind}int {name}(unsigned seed{dots}) {{
  sink += seed & 7;
  STAP_PROBE1(stacks, {probe}, seed);
  sink += seed & 3;
  return (int)(seed & 7);
}}
"""
MAIN = """
volatile unsigned long sink;
int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; ++i) sink += (unsigned long)IN(0) f0_0((unsigned)i * 7919u + 13u);
  printf("%d\\n", rounds);
  fflush(stdout);
  if (argc > 2) usleep((unsigned)atoi(argv[2]));
  return 0;
}
"""


def _declared(layer):
    return "".join(f"OPEN({layer}) int f{layer}_{i}(unsigned seed{', ...' if i == 1 else ''}); CLOSE\n" for i in range(WIDTH))


def _layer(layer, linkage):
    text = f"OPEN({layer})\n"
    for i in range(WIDTH):
        name, dots = f"f{layer}_{i}", ", ..." if i == 1 else ""
        kind = "__attribute__((noinline)) " if i == 0 or dots else linkage
        if layer == LAYERS - 1:
            text += LEAF.format(kind=kind, name=name, dots=dots, probe=f"leaf{i}")
            continue
        cases = "\n".join(f"    {'default' if j == WIDTH - 1 else f'case {j}'}: out = IN({layer + 1}) f{layer + 1}_{j}(next); break;"
                          for j in range(WIDTH))
        text += BODY.format(kind=kind, name=name, dots=dots, size=(1, 3, 400)[(layer + i) % 3], salt=layer * 31 + i,
                            width=WIDTH, cases=cases)
    return text + "CLOSE\n"


def sources(run):
    """Two source files: the outer layers with main(), and the inner ones, which can be a library."""
    middle = LAYERS // 2
    outer = HEAD + "".join(_declared(n) for n in range(LAYERS)) + "".join(_layer(n, "") for n in range(middle)) + MAIN
    inner = HEAD + "".join(_declared(n) for n in range(LAYERS)) + "".join(_layer(n, "") for n in reversed(range(middle, LAYERS)))
    paths = []
    for name, text in (("outer", outer), ("inner", inner)):
        path = run.dir / f"{name}.c"
        path.write_text(text)
        paths.append(path)
    return paths


def build(run, name, compiler, flags, shared=False):
    """The program, and the file that has its probes."""
    outer, inner = sources(run)
    language = ["-x", "c++"] if "++" in compiler else []
    common = ["-g", "-w", *language, *flags]
    if not shared:
        program = run.build(name, [outer, inner], common, compiler)
        return program, program
    library = run.build(f"lib{name}.so", [inner], [*common, "-shared", "-fPIC"], compiler)
    program = run.build(name, [outer], [*common, "-fPIC"], compiler,
                        libs=["-x", "none", str(library), f"-Wl,-rpath,{run.dir}"])
    return program, library


GDB = r"""
import gdb, json, os
gdb.execute("set pagination off"); gdb.execute("set confirm off"); gdb.execute("set debuginfod enabled off")
gdb.execute("set breakpoint pending on"); gdb.execute("handle SIGUSR1 nostop noprint pass")
out = open(os.environ["STACKS_OUT"], "w")
def frames():
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        sal = frame.find_sal()
        found.append([frame.name(), sal.line if sal.symtab else 0, frame.type() == gdb.INLINE_FRAME,
                      os.path.basename(sal.symtab.filename) if sal.symtab else ""])
        frame = frame.older()
    return found
ended = []
gdb.events.exited.connect(lambda event: ended.append(True))
for place in os.environ["STACKS_AT"].split():
    gdb.execute("break " + place.replace("|", " "))
gdb.execute("run " + os.environ["STACKS_ARGS"] + " > /dev/null")
while not ended:
    out.write(json.dumps(frames()) + "\n")
    gdb.execute("continue")
out.close()
"""


def by_gdb(run, program, args, places):
    """For each stop, frames (name, line, whether inlined, source file), innermost first, up to main()."""
    require_program("gdb")
    script, out = run.dir / "stacks_gdb.py", run.dir / "stacks_gdb.json"
    script.write_text(GDB)
    environment = os.environ | {"STACKS_OUT": str(out), "STACKS_ARGS": " ".join(args), "STACKS_AT": " ".join(places)}
    done = subprocess.run(["gdb", "-nx", "-q", "-batch", "-x", str(script), str(program)], capture_output=True, text=True,
                          env=environment, timeout=120)
    check(done.returncode == 0 and out.exists(), f"gdb: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return [json.loads(line) for line in out.read_text().splitlines()]


def without_parameters(name):
    """"net::handle(int) const" -> "net::handle"; "(anonymous namespace)::f(int)" keeps its first parentheses."""
    end = name.rfind(")")
    if end < 0:
        return name
    depth = 0
    for at in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name[:at] if at > 0 else name
    return name


def as_gdb(frames):
    """Our frames as by_gdb() has them."""
    found = []
    for frame in frames:
        source = frame.get("source", {})
        found.append([without_parameters(frame.get("function", "?")), source.get("line", 0), frame.get("inline", False),
                      os.path.basename(source.get("file", ""))])
        if found[-1][0] == "main":
            break
    return found
