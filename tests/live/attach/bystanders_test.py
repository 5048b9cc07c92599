#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who is not traced pays nothing: breakpoints are in the memory of the traced processes alone, and in all of theirs."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from follow_support import Later  # noqa: E402
from harness import Skip, check, check_equal, main, require_program, require_root, scenario, wait_line, wait_until  # noqa: E402

MALLOC = "uprobe:libc.so.6:malloc"


MOST = 2  # of the time untraced: a trap takes a malloc from 20 ns to a microsecond, a processor's other speed half as much


def measure(bystander):
    """Its best time for a slice of allocations, in ns, and what its malloc() begins with."""
    done = subprocess.run([bystander, "1000"], capture_output=True, text=True, check=True, timeout=60)
    best, code = done.stdout.split()
    return int(best), code


class Bystander:
    """What it needs untraced, before and after it is compared with the time beside a trace."""

    def __init__(self, run):
        self.program = run.build("bystander", [puppet.HERE / "attach/bystander.c"], ["-O1"])
        self.alone = [measure(self.program) for _ in range(5)]

    def beside(self):
        """Machines with others on them have slow spells: what a trace costs is there at any time."""
        times = []
        while len(times) < 5 or (len(times) < 60 and min(times)[0] >= MOST * min(self.alone)[0]):
            times.append(measure(self.program))
        return times

    def check_pays_nothing(self, beside, said):
        """Once the trace has ended."""
        self.alone += [measure(self.program) for _ in range(5)]
        check_equal({code for _, code in beside}, {code for _, code in self.alone}, "instructions in its memory")
        ratio = min(t for t, _ in beside) / min(t for t, _ in self.alone)
        check(ratio < MOST, f"{ratio:.3f} of its time: {beside}, untraced {self.alone}\n{said}")


def check_nobody_pays(run, *options, command=None, probes=(MALLOC,)):
    bystander = Bystander(run)
    tracing = run.trace_start(list(probes), "--count", *options, command=command)
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached", timeout=60)
    said = re.search(r"attached (\d+) site", tracing.stderr())
    check(said, tracing.stderr())
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    beside = bystander.beside()
    tracing.signal(signal.SIGINT)
    bystander.check_pays_nothing(beside, tracing.finish().stderr)


def write_many(run, body):
    """Thirty functions, f0 and f1 and so on, called as `body` says of `{name}` and `{number}`."""
    names = [f"f{i}" for i in range(30)]
    source = run.dir / "many.c"
    source.write_text(
        "#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        + "".join(f"__attribute__((noinline)) int {n}(int x) {{ __asm__ volatile(\"\" : \"+r\"(x)); return x * {i} + {i}; }}\n" for i, n in enumerate(names))
        + "int main(void) { volatile int sum = 0; " + body(names) + " return 0; }\n")
    return names, run.build("many", [source], ["-O1"])


@scenario
def each_of_many_functions_is_counted_for_itself(run):
    """At entries and at both kinds of returns."""
    require_root()
    names, program = write_many(run, lambda all: "for (int i = 0; i < 3; i++) {" + "".join(
        f"for (int k = 0; k <= {i % 7}; k++) sum += {n}(k);" for i, n in enumerate(all)) + "}")
    for probe, options in (("uprobe", []), ("uretprobe", []), ("uretprobe", ["--no-ret-probes"]), ("ucall", [])):
        result = run.trace(f"{probe}:{program}:f[0-9]*", *options, command=["/bin/sh", "-c", f"{program}; {program}"])
        check("pay for each hit" not in result.stderr, result.describe())
        expected = {n: 6 * (i % 7 + 1) for i, n in enumerate(names)}
        seen = {name: len(events) for name, events in result.by_name().items()}
        check_equal(seen, expected, f"{probe} {options}: hits by function")
        result.check_accounted(sum(expected.values()), lost=0)


@scenario
def a_tracer_that_knows_nobody_takes_nothing_away(run):
    """In a pid namespace of its own it takes all others for dead; what they have defined stays while it is in use. The
    events are in use in children, too, which begin and end all the time."""
    require_root()
    require_program("unshare")
    _, program = write_many(run, lambda all: f"int rounds = 0; for (; access(\"{run.dir}/enough\", F_OK) != 0; rounds++) {{"
                            + "".join(f"sum += {n}(rounds);" for n in all[:3])
                            + " if (fork() == 0) { f4(1); _exit(0); } wait(0); }"
                            f" fprintf(fopen(\"{run.dir}/rounds\", \"w\"), \"%d\", rounds); fflush(NULL);")
    tracing = run.trace_start(f"ucall:{program}:f[0-4]", "--count", command=[program])
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    groups = family_groups()
    check(groups, "it defined trace events")
    for _ in range(3):
        others = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", run.tool, MALLOC, "--count", "--", "true"],
                                capture_output=True, text=True, timeout=60)
        check_equal(others.returncode, 0, others.stderr)
    check(groups <= family_groups(), "what it defined is there")
    (run.dir / "enough").touch()
    result = tracing.finish(60)
    rounds = int((run.dir / "rounds").read_text())
    check(rounds > 100, f"{rounds} rounds")
    seen = {probe["probe"].rsplit(":", 1)[-1]: probe["hits"] for probe in result.summary["probes"]}
    check_equal(seen, {"f0": rounds, "f1": rounds, "f2": rounds, "f3": 0, "f4": rounds}, result.describe())


def idle(run):
    return run.start("/bin/sh", "-c", "sleep 60 & sleep 60; true")


@scenario
def of_a_command_nobody_else_has_breakpoints(run):
    require_root()
    check_nobody_pays(run, command=["/bin/sleep", "60"])


@scenario
def of_a_process_and_its_children_nobody_else_has_breakpoints(run):
    require_root()
    check_nobody_pays(run, "-p", idle(run).pid)
    check_nobody_pays(run, "-p", idle(run).pid, "--children")


def attached(tracing):
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check(tracing.alive(), tracing.stderr())


def check_said(run, reason, *options, command=None, probe=MALLOC):
    """When it attaches, and before it does, to anybody."""
    tracing = run.trace_start([probe], "--count", *options, command=command)
    attached(tracing)
    check(f"pay for each hit: {reason}" in tracing.stderr(), tracing.stderr())
    tracing.signal(signal.SIGINT)
    tracing.finish()
    argv = run.tool_argv([probe], ["--count", "--explain", *options], command, output="json")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    said = next(record["others_pay"] for record in records if record["type"] == "explanation")
    check(said is not None and reason in said, done.stdout + done.stderr)


@scenario
def where_others_pay_that_is_said(run):
    require_root()
    check_said(run, "with a limited overhead", "--max-overhead", "50", command=["/bin/sleep", "60"])
    check_said(run, "perf_uprobe was asked for", "--backend", "perf_uprobe", command=["/bin/sleep", "60"])
    check_said(run, "it is more than 64 sites", command=["/bin/sleep", "60"], probe="uprobe:libc.so.6:str*")


@scenario
def processes_of_a_cgroup_do_not_have_breakpoints_alone_and_that_is_said(run):
    require_root()
    cgroup = pathlib.Path("/proc/self/cgroup").read_text().splitlines()[-1].split(":", 2)[2]
    trees = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    if not trees:
        raise Skip("no cgroup v2")
    check_said(run, "the kernel tells no tracer of a process that is put into a cgroup", "--cgroup", trees[0] + cgroup)


@scenario
def what_a_command_opens_later_is_attached_in_its_memory_alone(run):
    """The process that opens it had been started before anything was attached; it is an orphan by then."""
    later = Later(run)
    orders = f"sleep 0.5; echo open {later.library}; sleep 1.5; echo fire 3; echo close"
    command = ["/bin/sh", "-c", f"( ({orders}) | {later.program} >/dev/null & ); sleep 3"]
    result = run.trace("late:hit", "--wait", command=command)
    check("pay for each hit" not in result.stderr, result.describe())
    result.check_accounted(3, lost=0)


@scenario
def a_library_that_another_process_waits_for_is_attached_there_alone(run):
    later = Later(run)
    pid = later.start()
    tracing = run.trace_start("late:hit", "--wait", "-p", pid)
    wait_until(lambda: "waiting" in tracing.stderr(), "waiting")
    later.order("open", later.library)
    attached(tracing)
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    later.order("fire", 3)
    tracing.signal(signal.SIGINT)
    tracing.finish().check_accounted(3, lost=0)


@scenario
def what_the_kernel_shields_from_its_user_is_said(run):
    """A program of another user: with it the kernel takes perf events from the process."""
    require_root()
    require_program("setpriv")
    if os.statvfs(run.dir).f_flag & os.ST_NOSUID:
        raise Skip("setuid programs are of no effect in the scratch directory")
    source = run.dir / "three.c"
    source.write_text("__attribute__((noinline)) void serve(int n) { __asm__ volatile(\"\" ::\"r\"(n)); }\n"
                      "int main(void) { for (int i = 0; i < 3; i++) serve(i); return 0; }\n")
    program = run.build("three", [source], ["-O1"])
    run.dir.chmod(0o755)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program]
    result = run.trace(f"uprobe:{program}:serve", command=command)
    result.check_accounted(3, lost=0)
    check("shielded" not in result.summary, result.describe())
    program.chmod(0o4755)
    result = run.trace(f"uprobe:{program}:serve", "--strict", command=command)
    check_equal(result.summary.get("shielded"), 1, result.describe())
    check("1 program executed with which the kernel took the events" in result.stderr, result.describe())
    result.check_code(3)


def build_family(run):
    return run.build("family", [puppet.HERE / "attach/family.c"], ["-O1"], libs=["-lpthread"])


def calls(run):
    """As the processes counted them, in memory they share."""
    return int.from_bytes((run.dir / "calls").read_bytes()[:8], sys.byteorder)


@scenario
def whatever_a_command_forks_clones_and_executes_is_counted(run):
    require_root()
    program = build_family(run)
    for rounds in (1, 400):
        result = run.trace(f"uprobe:{program}:serve", command=[program, str(rounds), run.dir / "calls"])
        check("pay for each hit" not in result.stderr, result.describe())
        check(calls(run) > rounds, result.describe())
        result.check_accounted(calls(run), lost=0)


@scenario
def whatever_children_of_a_process_fork_is_counted(run):
    require_root()
    program = build_family(run)
    process = run.start(program, "400", run.dir / "calls", "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    tracing = run.trace_start(f"uprobe:{program}:serve", "-p", process.pid, "--children")
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    check("pay for each hit" not in tracing.stderr(), tracing.stderr())
    process.stdin.write(b"\n")
    wait_line(process, timeout=60)
    tracing.signal(signal.SIGINT)
    tracing.finish().check_accounted(calls(run), lost=0)


@scenario
def nothing_is_left_of_a_tracer_that_was_killed(run):
    require_root()
    tracing = run.trace_start([MALLOC], "--count", command=["/bin/sleep", "60"])
    wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
    groups = family_groups()
    check(groups, "it defined trace events")
    tracing.signal(signal.SIGKILL)
    tracing.process.wait()
    check_nobody_pays(run, command=["/bin/sleep", "60"])
    wait_until(lambda: not groups & family_groups(), "what it defined is gone")


USURPED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* Gives the first number of a trace event that is read when somebody else has it by then. */
int openat(int directory, const char* path, int flags, ...) {
  static int before;
  int (*real)(int, const char*, int, int) = dlsym(RTLD_NEXT, "openat");
  const int fd = real(directory, path, flags, 0600);
  const size_t length = strlen(path);
  if (fd < 0 || length < 3 || strcmp(path + length - 3, "/id") != 0 || before++ != 0) return fd;
  char text[32];
  const int kept = memfd_create("id", 0);
  if (write(kept, text, read(fd, text, sizeof(text))) <= 0 || lseek(kept, 0, SEEK_SET) != 0) _exit(3);
  close(fd);
  close(creat("read", 0600));
  while (access("taken", F_OK) != 0) usleep(1000);
  return kept;
}
int openat64(int directory, const char* path, int flags, ...) { return openat(directory, path, flags); }
"""


@scenario
def a_trace_event_that_somebody_removes_before_it_is_used_is_not_taken_for_his(run):
    """As a tracer of another pid namespace may, to whom its process seems to have ended."""
    require_root()
    program = puppet.build(run)
    other = run.dir / "other"
    shutil.copy(program, other)
    (run.dir / "usurped.c").write_text(USURPED)
    library = run.build("usurped.so", [run.dir / "usurped.c"], ["-O1", "-shared", "-fPIC"], libs=["-ldl"])
    tracing = run.trace_start(puppet.probe_of(program), command=["sh", "-c", f"while ! test -e {run.dir}/go; do sleep 0.01; done; exec {program} fire:3"],
                              env={**os.environ, "LD_PRELOAD": str(library)}, cwd=run.dir)
    wait_until((run.dir / "read").exists, "a number was read")
    group = next(name for name in family_groups() if f"_{tracing.process.pid}_" in name)
    site = next(line for line in commands_of_tracefs("cat $at/uprobe_events").splitlines() if group in line).split()[1]
    place = site.split(":")[1]
    commands_of_tracefs(f"echo '-:{group}/' >> $at/uprobe_events; echo 'p:usurper/beat {other}:{place}' >> $at/uprobe_events")
    try:
        (run.dir / "taken").touch()
        wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
        subprocess.run([other, "fire:50"], stdout=subprocess.DEVNULL, check=True, timeout=60)
        (run.dir / "go").touch()
        tracing.finish().check_accounted(3, lost=0)
    finally:
        commands_of_tracefs("echo '-:usurper/beat' >> $at/uprobe_events")


def commands_of_tracefs(commands):
    """What they say, with tracefs at $at in a mount namespace of its own."""
    mounted = f"at=/sys/kernel/tracing; test -e $at/events || mount -t tracefs nodev $at; {commands}"
    return subprocess.run(["unshare", "-m", "sh", "-c", mounted], capture_output=True, text=True, timeout=60, check=True).stdout


def family_groups():
    """Groups of trace events."""
    return {name for name in commands_of_tracefs("ls $at/events").split() if name.startswith("usdt_family_")}


if __name__ == "__main__":
    main()
