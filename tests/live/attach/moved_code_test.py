#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Code that a process runs from other memory than its file's has no breakpoints, and that is said."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_root, scenario, wait_line, wait_until  # noqa: E402

MOVED = """#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#include <sys/mman.h>
__attribute__((noinline, aligned(4096))) int work(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline, aligned(4096))) int stays(int n) { __asm__ volatile("" : "+r"(n)); return n + 2; }
__attribute__((noinline, aligned(4096), section(".moves"))) static void move(void) {
  uintptr_t page = (uintptr_t)work & ~4095ul; size_t n = 4096;
  void *copy = mmap(0, n, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, (void *)page, n);
  mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)page);
}
int main(void) {
  int sum = 0;
  move();
  puts("ready"); fflush(stdout); getchar();
  for (int i = 0; i < 5; i++) sum = work(sum) + stays(i);
  return sum == 0;
}
"""


def build_moved(run, text):
    source = run.dir / "moved.c"
    source.write_text(text)
    return run.build("moved", [source], ["-w", "-g", "-O1"])


def start_moved(run):
    """A process that has moved its code, and waits for a line."""
    program = build_moved(run, MOVED)
    process = run.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    return program, process


@scenario
def code_that_a_process_moved_out_of_its_file_is_said_to_have_no_hits(run):
    require_root()
    program, process = start_moved(run)
    tracing = run.trace_start([f"uprobe:{program}:work", f"uprobe:{program}:stays"], "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    process.stdin.write(b"\n")
    process.wait()
    result = tracing.finish()
    check_equal({event["probe"].rsplit(":", 1)[1] for event in result.events}, {"stays"}, result.describe())
    said = [line for line in result.stderr.splitlines() if "no hits of" in line]
    check(len(said) == 1 and "no hits of work come from process" in said[0] and "anonymous memory" in said[0] and "stays" not in said[0],
          result.describe())


# Breakpoints that are there already are not copied with the code (a program that does dies of them, whoever set them).
FROM_FILE = """static void read_page(void *to, uintptr_t page) {
  unsigned long from, end, offset; char line[512]; FILE *maps = fopen("/proc/self/maps", "r"), *exe = fopen("/proc/self/exe", "r");
  while (fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx %*s %lx", &from, &end, &offset) == 3 && from <= page && page < end) break;
  fseek(exe, (long)(offset + (page - from)), SEEK_SET);
  if (fread(to, 1, 4096, exe) != 4096) puts("cannot read");
}
"""


@scenario
def code_that_a_command_moved_out_of_its_file_is_said_to_have_no_hits(run):
    require_root()
    program = build_moved(run, MOVED.replace("__attribute__", FROM_FILE + "__attribute__", 1)
                          .replace("memcpy(copy, (void *)page, n)", "read_page(copy, page)"))
    probes = [f"uprobe:{program}:work", f"uprobe:{program}:stays"]
    result = run.trace(probes, command=["sh", "-c", f"(sleep 2; echo) | {program} > {run.dir / 'said'}"])
    said = [line for line in result.stderr.splitlines() if "no hits of" in line]
    check(len(said) == 1 and "no hits of work come from process" in said[0] and "stays" not in said[0], result.describe())
    check_equal({event["probe"].rsplit(":", 1)[1] for event in result.events}, {"stays"}, result.describe())


@scenario
def code_that_any_process_moved_out_of_its_file_is_said_at_the_end(run):
    require_root()
    program, process = start_moved(run)
    result = run.trace(f"uprobe:{program}:work", "--duration", 1)
    check(f"no hits of work come from process {process.pid}:" in result.stderr, result.describe())
    result = run.trace(f"uprobe:{program}:stays", "--duration", 1)
    check("no hits of" not in result.stderr, result.describe())


if __name__ == "__main__":
    main()
