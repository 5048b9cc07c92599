#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Words of questions among what --print and --format-string show: judged by the program, readelf and the clock."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, at_once, check, check_equal, main, require_program, require_root, scenario  # noqa: E402

# Its arguments are called as words are.
PROGRAM = r"""
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>
__attribute__((noinline)) long take(int pid, long name, long elapsed, int cpu) {
  __asm__ volatile("" : "+r"(pid));
  return pid + name + elapsed + cpu;
}
__attribute__((noinline)) long plain(long first) {
  __asm__ volatile("" : "+r"(first));
  usleep(1000);
  return first;
}
int main(void) {
  printf("%d\n", (int)getpid());
  fflush(stdout);
  for (int i = 0; i < 20; i++) {
    DTRACE_PROBE1(orders, received, i);
    take(-1 - i, 100 + i, 200 + i, 300 + i);
    plain(i);
    DTRACE_PROBE1(orders, done, i);
  }
  return 0;
}
"""
ALL = "pid, tid, comm, cpu, nsecs, elapsed, provider, name, probe, ip, hex(ip)"


def build(run):
    require_root()
    (run.dir / "words.c").write_text(PROGRAM)
    return run.build("words", [run.dir / "words.c"], ["-O1", "-g", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra"])


def shown(run, program, probe, *options, code=0):
    """What one run is shown as, and the number of the process by its own word."""
    out = run.dir / "shown"
    names = probe.format(program).split(" & ")
    options = [*map(str, options), *at_once([name for name in names if name != "~~"], options)]
    done = subprocess.run([run.tool, *names, "-o", out, *options, "--", program],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, code, done.stderr)
    if code:
        return done.stderr
    return out.read_text().splitlines(), int(done.stdout)


def events(lines):
    return [json.loads(line) for line in lines if '"args"' in line and '"summary"' not in line]


def place_of(program, name):
    """Where readelf has the probe."""
    require_program("readelf")
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return int(re.search(rf"Name: {name}\s+Location: (0x[0-9a-f]+)", notes)[1], 16)


@scenario
def each_word_is_what_the_program_its_file_and_the_clock_say(run):
    program = build(run)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    lines, own = shown(run, program, "usdt:{}:orders:received", "-f", "json", "--print", ALL)
    lasted = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before
    place = place_of(program, "received")
    check_equal(len(events(lines)), 20, "events")
    began = set()
    for event in events(lines):
        pid, tid, comm, cpu, nsecs, elapsed, provider, name, probe, ip, hexed = event["args"]
        check_equal((pid, tid, comm), (own, own, "words"), "who")
        check_equal((cpu, nsecs), (event["cpu"], event["ts"]), "where and when")
        check_equal((provider, name, probe), ("orders", "received", event["probe"]), "which")
        check_equal((ip, hexed), (place, hex(place)), "the address")
        check(0 < elapsed < lasted, f"{elapsed} ns since it began")
        began.add(nsecs - elapsed)
    check_equal(len(began), 1, "one beginning")
    check(before <= began.pop() <= before + lasted, "the trace began after this test")


@scenario
def lines_have_units_and_quotes_and_a_format_has_them_its_way(run):
    program = build(run)
    lines, own = shown(run, program, "usdt:{}:orders:received", "--print", "name, pid, elapsed, ip, arg0")
    place = place_of(program, "received")
    for i, line in enumerate(lines):
        check(re.search(rf' name="received" pid={own} elapsed=[\d.]+(us|ms|s) ip={place:#x} arg0={i}$', line), line)
    lines, own = shown(run, program, "usdt:{}:orders:received", "--format-string", "%{provider}/%{name} %#{ip} %5{elapsed}")
    check(all(re.fullmatch(rf"orders/received {place:#x} [\d.]+(us|ms|s)", line) for line in lines), lines[0])
    lines, own = shown(run, program, "usdt:{}:orders:received", "--print", "elapsed, pid, name, ip", "--format-string", "%d|%8d|%s|%x")
    check(all(re.fullmatch(rf"\d+\|{own:8}\|received\|{place:x}", line) for line in lines), lines[0])


@scenario
def words_mean_what_they_mean_in_questions_where_an_argument_is_called_so(run):
    program = build(run)
    wanted = "pid, args.pid, name, elapsed, args.cpu, hex(args.pid)"
    lines, own = shown(run, program, "uprobe:{}:take", "-f", "json", "--print", wanted, "--where", "args.pid < 0 && pid > 0")
    for i, event in enumerate(events(lines)):
        check_equal(event["args"], [own, -1 - i, 100 + i, 200 + i, 300 + i, hex((1 << 32) - 1 - i)], "words and arguments")
    check_equal(len(events(lines)), 20, "events")


@scenario
def calls_and_spans_have_a_duration_and_end_when_their_words_say(run):
    program = build(run)
    for probe in ("ucall:{}:plain", "usdt:{0}:orders:received & ~~ & usdt:{0}:orders:done"):
        lines, _ = shown(run, program, probe, "-f", "json", "--print", "duration, nsecs, elapsed", "--where", "duration > 0")
        check_equal(len(events(lines)), 20, probe)
        for event in events(lines):
            duration, nsecs, _ = event["args"]
            check_equal((duration, nsecs), (event["duration_ns"], event["ts"] + event["duration_ns"]), probe)
            check(duration > 900_000, f"it sleeps 1 ms: {duration}")


@scenario
def a_recording_has_the_same(run):
    program = build(run)
    file = run.dir / "recording"
    live, _ = shown(run, program, "usdt:{}:orders:received", "-f", "json", "--print", ALL, "--record", file)
    for options in ([], ["--print", ALL]):
        again = subprocess.run([run.tool, "--replay", file, "-f", "json", *options], capture_output=True, text=True, timeout=60)
        check_equal(again.returncode, 0, again.stderr)
        check_equal(events(again.stdout.splitlines()), events(live), options)


OWNERS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <unistd.h>
/* It keeps the right to become another one: root's effective user. */
static void become(unsigned uid, unsigned gid) {
  syscall(SYS_setresgid, gid, -1, -1);
  syscall(SYS_setresuid, uid, -1, -1);
}
__attribute__((noinline)) void hit(int i) {
  DTRACE_PROBE4(own, ers, i, getuid(), getgid(), getppid());
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void outer(int i) {
  hit(i);
  __asm__ volatile("" ::: "memory");
}
int main(void) {
  for (int i = 0; i < 20; i++) {
    become(i % 3 * 1000, i % 5);
    outer(i);
  }
  return 0;
}
"""


# A process and two children; each hits five times.
FAMILY = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>
static int parent(void) {
  char line[256];
  int number = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status))
    if (sscanf(line, "PPid: %d", &number) == 1) break;
  fclose(status);
  return number;
}
int main(void) {
  int depth = 0;
  while (depth < 2 && fork() == 0) depth++;
  for (int i = 0; i < 5; i++) {
    DTRACE_PROBE1(own, child, parent());
    DTRACE_PROBE(own, done);
  }
  while (wait(NULL) > 0);
  return 0;
}
"""
INITIAL_PID_NAMESPACE = 0xEFFFFFFC


def build_owners(run):
    require_root()
    (run.dir / "owners.c").write_text(OWNERS)
    return run.build("owners", [run.dir / "owners.c"], ["-O1", "-g", "-fno-inline", "-fno-omit-frame-pointer"])


def own_cgroup():
    """The number of this process's directory in the unified hierarchy; nothing: there is none here."""
    place = next(line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if (pathlib.Path(root) / "cgroup.procs").exists():
            return (pathlib.Path(root) / place.lstrip("/")).stat().st_ino
    return None


def replayed(run, file, *options):
    done = subprocess.run([run.tool, "--replay", file, *options], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


@scenario
def whose_a_process_is_was_seen_at_the_hit_and_is_recorded(run):
    program = build_owners(run)
    file = run.dir / "recording"
    done = subprocess.run([run.tool, f"usdt:{program}:own:ers", "-f", "json", "--print", "arg0, arg1, arg2, arg3, uid, gid, ppid, cgroup",
                           "--record", file, "-o", run.dir / "live", "--", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    live = (run.dir / "live").read_text().splitlines()
    real = [event["args"] for event in events(live)]
    check_equal(len(real), 20, "events")
    for i, (number, own_uid, own_gid, own_parent, uid, gid, ppid, cgroup) in enumerate(real):
        check_equal((number, own_uid, own_gid), (i, i % 3 * 1000, i % 5), "what the program says")
        check_equal((uid, gid, ppid, cgroup), (own_uid, own_gid, own_parent, real[0][7]), "what the kernel says, at the hit")
    if (cgroup := own_cgroup()) is not None:
        check_equal(real[0][7], cgroup, "the cgroup")
    check_equal(events(replayed(run, file, "-f", "json").splitlines()), events(live), "replayed")
    asked = replayed(run, file, "--where", f"gid == 3 && uid != 0 && cgroup == {real[0][7]} && ppid == {real[0][3]}", "--by", "gid, uid", "-f", "json")
    rows = [(row["key"], row["count"]) for row in json.loads(asked.splitlines()[0])["rows"]]
    check_equal(sorted(rows), [([3, 1000], 1), ([3, 2000], 1)], "asked later")


@scenario
def the_parent_is_the_one_that_the_kernel_tells_of_in_proc(run):
    """Each child says whose child it is by /proc; of spans it is the parent of what began them."""
    require_root()
    if os.readlink("/proc/self/ns/pid") != f"pid:[{INITIAL_PID_NAMESPACE}]":
        raise Skip("the tracer is not in the initial pid namespace, by which parents are numbered")
    (run.dir / "family.c").write_text(FAMILY)
    program = run.build("family", [run.dir / "family.c"], ["-O1"])
    probe = f"usdt:{program}:own:child"
    by = ["--by", "ppid, arg0", "-f", "json"]
    for question, count in ((probe, 15), (f"{probe} ~~ usdt:{program}:own:done", 15)):
        done = subprocess.run([run.tool, question, *by, "-o", run.dir / "table", "--", program], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        rows = json.loads((run.dir / "table").read_text().splitlines()[0])["rows"]
        check_equal(sum(row["count"] for row in rows), count, "hits")
        check_equal(len(rows), 3, "a parent for each of three children")
        for row in rows:
            check_equal(row["key"][0], row["key"][1], "as /proc says")
    for where, count in (("ppid == arg0", 15), ("ppid != arg0", 0)):
        done = subprocess.run([run.tool, probe, "--where", where, "--print", "arg0, ppid", "-f", "json", "-o", run.dir / "events", "--", program],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        shown = [event["args"] for event in events((run.dir / "events").read_text().splitlines())]
        check_equal(len(shown), count, where)
        check(all(parent == ppid for parent, ppid in shown), shown)


@scenario
def stacks_among_the_values_are_those_below_and_are_recorded(run):
    program = build_owners(run)
    file = run.dir / "recording"
    probe = f"usdt:{program}:own:ers"
    for method in (["--ustack=fp"], []):
        live = subprocess.run([run.tool, probe, *method, "--print", "arg0, ustack", "--record", file, "-o", "/dev/stdout", "--", program],
                              capture_output=True, text=True, timeout=60)
        check_equal(live.returncode, 0, live.stderr)
        lines = live.stdout.splitlines()
        check_equal(len(lines), 20, "nothing is below them")
        check(all(re.search(r' arg0=\d+ ustack="[^"]*main;outer;hit"$', line) for line in lines), lines[0])
        check_equal(replayed(run, file), live.stdout, "replayed")
    frames = events(replayed(run, file, "-f", "json").splitlines())[0]
    check_equal([frame["function"] for frame in frames["args"][1]][:3], ["hit", "outer", "main"], "in JSON")
    check("ustack" not in frames, "once is enough")
    formatted = replayed(run, file, "--format-string", "%{arg0} %{ustack}").splitlines()
    check(all(re.fullmatch(rf"{i} .*main;outer;hit", line) for i, line in enumerate(formatted)), formatted[0])


WRONG = [
    ("--print", "kstack", "no kernel function or raw tracepoint is traced"),
    ("--print", "str(uid)", "uid is what is known of every hit"),
    ("--print", "hex(ustack)", "ustack is what is known of every hit"),
    ("--print", "duration", "only calls"),
    ("--print", "str(pid)", "pid is what is known of every hit"),
    ("--print", "hex(comm)", "comm is what is known of every hit"),
    ("--print", "args.pid", "no such argument"),
    ("--print", "elapse", "no such argument"),
    ("--format-string", "%{str(tid)}", "tid is what is known of every hit"),
]


@scenario
def what_events_do_not_have_is_refused_with_the_reason(run):
    program = build(run)
    for option, text, reason in WRONG:
        said = shown(run, program, "usdt:{}:orders:received", option, text, code=2)
        check(reason in said, f"{option} {text}: {said}")
    said = shown(run, program, "usdt:{}:orders:received", "--print", "name, elapsed", "--format-string", "%d %d", code=2)
    check("name of usdt:" in said and "is a text" in said, said)


@scenario
def a_recording_says_what_it_does_not_have(run):
    program = build(run)
    file = run.dir / "recording"
    shown(run, program, "usdt:{}:orders:received", "--record", file)
    for options, reason in ((["--print", "gid"], "--record and --print gid has it"), (["--print", "ustack"], "--record and --ustack has them"),
                            (["--where", "uid == 0"], "--record and --print uid has it")):
        done = subprocess.run([run.tool, "--replay", file, *options], capture_output=True, text=True, timeout=60)
        check(done.returncode != 0 and reason in done.stderr, f"{options}: {done.stderr}")


if __name__ == "__main__":
    main()
