#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Words of questions among what --print and --format-string show: judged by the program, readelf and the clock."""

import json
import re
import subprocess
import time

import puppet  # noqa: F401 (finds the harness)
from harness import check, check_equal, main, require_program, require_root, scenario

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
    done = subprocess.run([run.tool, *probe.format(program).split(" & "), "-o", out, *map(str, options), "--", program],
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


WRONG = [
    ("--print", "uid", "--print uid: events do not have it; --where and --by can ask for it; an argument of that name is args.uid"),
    ("--print", "ustack", "--ustack shows it"),
    ("--print", "duration", "only calls"),
    ("--print", "str(pid)", "pid is what is known of every hit"),
    ("--print", "hex(comm)", "comm is what is known of every hit"),
    ("--print", "args.pid", "no such argument"),
    ("--print", "elapse", "no such argument"),
    ("--format-string", "%{cgroup}", "events do not have it"),
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


if __name__ == "__main__":
    main()
