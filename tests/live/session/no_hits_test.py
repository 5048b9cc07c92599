#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Nothing was hit: the tool says what it can know of why, and nothing where there is no such reason."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402
from puppet import probe_of  # noqa: E402

# Its memory is its own, or the C library's; it says whose.
ALLOCATES = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  void* volatile kept = malloc(100);
  free(kept);
  fprintf(stderr, "done\n");
  return 0;
}
"""
# A library with a malloc() of its own, as jemalloc and tcmalloc are.
ALLOCATOR = r"""
#include <stddef.h>
static char room[1 << 20] __attribute__((aligned(16)));
static size_t used;
void* malloc(size_t size) {
  void* const place = room + used;
  used += (size + 15) & ~(size_t)15;
  return place;
}
void free(void* place) { (void)place; }
void* calloc(size_t count, size_t size) { return malloc(count * size); }
void* realloc(void* place, size_t size) { return place ? NULL : malloc(size); }
"""


def told(run, *words, command):
    """What a trace says of a command that it counted nothing of, or something."""
    done = subprocess.run([run.tool, *words, "--count", "--", *command], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return done.stderr


def build_allocating(run):
    require_root()
    (run.dir / "allocates.c").write_text(ALLOCATES)
    (run.dir / "allocator.c").write_text(ALLOCATOR)
    library = run.build("liballocator.so", [run.dir / "allocator.c"], ["-shared", "-fPIC", "-fno-builtin"])
    linked = run.build("linked", [run.dir / "allocates.c"], ["-O0"], libs=[str(library), f"-Wl,-rpath,{run.dir}"])
    return library, linked, run.build("plain", [run.dir / "allocates.c"], ["-O0"])


@scenario
def a_command_that_is_another_program_is_named_with_what_is_traced(run):
    require_root()
    program = puppet.build(run)
    said = told(run, probe_of(program), command=["true"])
    true = os.path.realpath(subprocess.run(["which", "true"], capture_output=True, text=True, check=True).stdout.strip())
    line = next((line for line in said.splitlines() if "the command ran" in line), "")
    ran, traced = line.partition("; what is traced is in ")[::2]
    check_equal(os.path.realpath(ran.split()[-1]), true, f"what ran, of {said}")
    check(traced.startswith(f"{program},"), f"what is traced, of {said}")
    # Nothing of the kind where it was the program, whether or not it was hit, or came to it by others.
    for command in ([program], [program, "fire:1"], ["sh", "-c", f"{program} fire:1; true"]):
        said = told(run, probe_of(program), command=command)
        check("the command ran" not in said, f"{command}: {said}")


@scenario
def another_library_that_has_the_function_is_named(run):
    library, linked, plain = build_allocating(run)
    for function in ("malloc", "free"):
        said = told(run, f"uprobe:libc.so.6:{function}", command=[linked])
        check(f"{function} of libc.so.6 had no hits; {library.name} has one, too, which comes first where that is loaded before: "
              f"uprobe:{library}:{function}" in said, f"{function} of the C library, {said}")
        # What it says is what helps, and the same of who uses the C library's.
        said = told(run, f"uprobe:{library}:{function}", command=[linked])
        check("1 hit counted" in said and "comes first" not in said, f"{function} of the program's library, {said}")
        said = told(run, f"uprobe:libc.so.6:{function}", command=[plain])
        check("had no hits" not in said, f"{function} of a program that has no other, {said}")


if __name__ == "__main__":
    main()
