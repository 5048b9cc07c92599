#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets and lines that stand for tools of the whole system: where threads wait, what people type, and what bcc's tools answer."""

import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario  # noqa: E402
from presets_support import answers, asked  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]

WAITS = """#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
static long long now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
__attribute__((noinline)) void naps(void) { usleep(50000); }
__attribute__((noinline)) void dozes(void) { usleep(5000); }
int main(void) {
  long long off = now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_MONOTONIC);
  for (int n = 0; n < 7; n++) naps();
  for (int n = 0; n < 20; n++) dozes();
  for (volatile long n = 0; n < 300000000; n++) {}
  off += now(CLOCK_MONOTONIC) - now(CLOCK_PROCESS_CPUTIME_ID);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  FILE* said = fopen("said", "w");
  fprintf(said, "%lld %ld", off, used.ru_nivcsw);
  return fclose(said);
}
"""


@asked("offcpu.waits,time,preferred")
@scenario
def where_threads_wait_and_how_long_is_told_by_stack(run):
    """All that it is off its processor is what the program finds by two clocks."""
    require_root()
    listed = subprocess.run([run.tool.with_name("usdt-list"), "raw_tp:sched_exit_tp"], capture_output=True, text=True)
    if "sched_exit_tp" not in listed.stdout:
        raise Skip("this kernel has no sched_exit_tp")
    (run.dir / "waits.c").write_text(WAITS)
    program = run.build("waits", [run.dir / "waits.c"], ["-O1", "-g"])
    got = answers(run, "offcpu.waits,time,preferred", [program])
    off, preferred = map(int, (run.dir / "said").read_text().split())

    def rows(question, function):
        return [row for row in got.objects(question, "table")[-1]["rows"] if isinstance(row["key"][1], list) and any(frame.get("function", "").startswith(function) for frame in row["key"][1])]
    for function, count, least in (("naps", 7, 50e6), ("dozes", 20, 5e6)):
        waits = rows("waits", function)
        check_equal(sum(row["count"] for row in waits), count, f"waits in {function}()")
        check(sum(row["sum"] for row in waits) >= count * least, f"how long: {waits}")
        check(all("nanosleep" in str(row["key"][2]) for row in waits), f"where in the kernel: {waits}")
    told = sum(row["sum"] for row in rows("time", "main"))
    check(0.95 * off < told < 1.05 * off, f"off for {off} ns, and told {told}")
    counted = sum(row["count"] for row in got.objects("preferred", "table")[-1]["rows"])
    check(abs(counted - preferred) <= 5 + preferred // 20, f"{preferred} times preempted, and told {counted}")


@asked("bash.lines")
@scenario
def bash_is_asked_for_lines_that_people_type(run):
    require_root()
    leader, follower = pty.openpty()
    shell = run.adopt(subprocess.Popen(["/bin/bash", "--norc", "-i"], stdin=follower, stdout=follower, stderr=follower,
                                       start_new_session=True, env={**os.environ, "PS1": "ready> ", "HISTFILE": "/dev/null"}))
    os.close(follower)
    shown = b""

    def until(text):
        nonlocal shown
        while text not in shown:
            shown += os.read(leader, 4096)

    def type_lines():
        for n in range(5):
            os.write(leader, f"echo line-$(( {n} * 2 ))\n".encode())
            until(f"line-{2 * n}\r".encode())
    until(b"ready> ")
    got = answers(run, "bashreadline", options=["-p", shell.pid], work=type_lines)
    check_equal([args[0] for args in got.args("lines")], [f"echo line-$(( {n} * 2 ))" for n in range(5)], "lines")


LINES = """#include <stdlib.h>
#include <unistd.h>
static void nap(int us) { usleep(us); }
int main(void) { for (int n = 0; n < 7; n++) nap(100); for (int n = 0; n < 5; n++) nap(50000); return 0; }
"""


def lines_of_the_page():
    """{tool of bcc: the line that docs/presets.md has instead}, each as its words."""
    page = (ROOT / "docs/presets.md").read_text().split("## Tools of bcc and bpftrace")[1]
    found = re.findall(r"^[#$] (usdt-(?:[^#\n]|\\\n)*?) *# (\w+)$", page, re.M)
    return {tool: shlex.split(line.replace("\\\n", " ")) for line, tool in found}


@scenario
def lines_that_stand_for_tools_of_bcc_answer_what_these_do(run):
    require_root()
    (run.dir / "program.c").write_text(LINES)
    run.build("program", [run.dir / "program.c"], ["-O0", "-fno-omit-frame-pointer"])
    lines, left = lines_of_the_page(), set()

    def ask(tool, **how):
        left.discard(tool)
        name, *words = lines[tool]
        words[words.index("--") if "--" in words else len(words):0] = ["-f", "json"]
        return run.adopt(subprocess.Popen([run.tool.with_name(name), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=run.dir, **how))

    def answer(tool):
        out, said = ask(tool).communicate(timeout=60)
        check(out != "", f"{tool}: {said}")
        return [json.loads(line) for line in out.splitlines()]

    def rows(tool):
        return [each for each in answer(tool) if each["type"] == "table"][-1]["rows"]
    left.update(lines)
    check_equal(sum(probe["hits"] for probe in answer("funccount")[-1]["probes"]), 12, "funccount")
    check_equal(sum(each["count"] for each in rows("funclatency")[0]["buckets"] if each["first"] >= 33554432), 5, "funclatency")
    for tool in ("funcslower", "trace"):
        check_equal([each["args"] for each in answer(tool) if each["type"] == "event"], [[50000]] * 5, tool)
    check_equal({row["key"][0]: row["count"] for row in rows("argdist")}, {100: 7, 50000: 5}, "argdist")
    check_equal(sorted(row["count"] for row in rows("stackcount") if "nap" in str(row)), [5, 7], "stackcount")
    lines["tplist"] = [str(os.getpid()) if word == "4711" else word for word in lines["tplist"]]
    check(any(each.get("provider") == "libc" or "python" in str(each) for each in answer("tplist")), "tplist")
    check_equal(left, set(), "lines that were not run")


if __name__ == "__main__":
    main()
