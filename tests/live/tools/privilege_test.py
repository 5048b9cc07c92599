#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tracing with some capabilities: what works is what the kernel allows, and what does not names what is missing.

The judge of perf uprobes is perf_event_open(2) itself, called by a process with the same capabilities."""

import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Result, Skip, check, check_equal, main, require_program, scenario  # noqa: E402
from puppet import check_beats, probe_of  # noqa: E402

NOBODY = 65534

# The errno of a perf uprobe on "/", which no file is: EINVAL once the privilege was found sufficient.
OPEN_PERF_UPROBE = """
import ctypes, struct
kind = int(open("/sys/bus/event_source/devices/uprobe/type").read())
path = ctypes.create_string_buffer(b"/")
attr = bytearray(128)
struct.pack_into("<IIQ", attr, 0, kind, 128, 0)
struct.pack_into("<Q", attr, 56, ctypes.addressof(path))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(298, (ctypes.c_char * 128).from_buffer(attr), 0, -1, -1, 0)
print(ctypes.get_errno())
"""
EINVAL = 22


class User:
    """A user with some capabilities, and copies of the tools that he may run."""

    def __init__(self, run, capabilities, uid=NOBODY):
        require_program("setpriv")
        puppet.require_root()
        run.dir.chmod(0o755)
        self.bin = run.dir / f"bin-{uid}-{len(capabilities)}"
        self.bin.mkdir()
        for tool in ("usdt-trace", "usdt-list"):
            shutil.copy(run.tool.with_name(tool), self.bin)
        caps = ",".join(["-all", *(f"+{name}" for name in capabilities)])
        user = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        self.prefix = ["setpriv", *user, f"--inh-caps={caps}", f"--ambient-caps={caps}", f"--bounding-set={caps}"]

    def run(self, *argv):
        done = subprocess.run([*self.prefix, *map(str, argv)], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        check("setpriv: " not in done.stderr, done.stderr)
        return done

    def trace(self, program, *options):
        argv = [self.bin / "usdt-trace", probe_of(program), *options, "-f", "json", "--", program, "fire:3"]
        done = self.run(*argv)
        return Result(done.returncode, done.stdout, done.stderr)

    def lines_of_doctor(self):
        return [json.loads(line) for line in self.run(self.bin / "usdt-list", "--doctor", "-f", "json").stdout.splitlines()]

    def doctor(self):
        return {line.get("name", line["type"]) if line["type"] == "feature" else line["type"]: line for line in self.lines_of_doctor()}

    def may_open_perf_uprobes(self):
        return int(self.run(sys.executable, "-c", OPEN_PERF_UPROBE).stdout) == EINVAL


def check_refused(result, *words, never=()):
    check_equal(result.code, 1, f"exit code without privilege\n{result.describe()}")
    for word in words:
        check(word in result.stderr, f"{word!r} is not named\n{result.describe()}")
    for word in never:
        check(word not in result.stderr, f"{word!r} is said\n{result.describe()}")


@scenario
def bpf_and_perfmon_are_enough_for_uprobe_multi(run):
    program = puppet.build(run)
    user = User(run, ["bpf", "perfmon"])
    told = user.doctor()
    if told["uprobe_multi"]["answer"] != "yes":
        raise Skip("this kernel has no uprobe_multi")
    check_equal(told["privilege"]["answer"], "yes", "the doctor's answer")
    check_equal(told["backend"]["name"], "uprobe_multi", "the doctor's backend")
    result = user.trace(program)
    result.check_code(0)
    check_beats(result.events, range(3))


@scenario
def calls_and_returns_without_any_privilege_are_refused_for_that_and_not_for_the_kernel(run):
    program = puppet.build(run)
    user = User(run, [])
    for kind in ("uprobe", "uretprobe", "ucall"):
        done = user.run(user.bin / "usdt-trace", f"{kind}:{program}:main", "--", program, "fire:3")
        check_refused(Result(done.returncode, done.stdout, done.stderr), "tracing needs CAP_BPF and CAP_PERFMON", never=["this kernel"])


@scenario
def each_right_that_the_doctor_names_opens_what_it_says(run):
    program = puppet.build(run)
    of_root, private = run.start(program, "pause:0"), run.dir / "private"
    shutil.copy(program, private)
    private.chmod(0o700)
    files = "probes and functions of files that everybody may read"
    asks = {files: (probe_of(program),), "processes of other users": (probe_of(program), "-p", str(of_root.pid)),
            "programs that only their users may read": (probe_of(private),)}
    opened = set()
    for n, more in enumerate(([], ["bpf"], ["bpf", "perfmon"], ["bpf", "perfmon", "sys_ptrace"], ["bpf", "perfmon", "dac_read_search"])):
        user = User(run, more, uid=NOBODY - n)
        lacks = {line["purpose"]: line["lacks"] for line in user.lines_of_doctor() if line["type"] == "right"}
        for purpose, words in asks.items():
            done = user.run(user.bin / "usdt-trace", *words, "-d", "0.2")
            missing = lacks[files] + lacks[purpose]
            check_equal(done.returncode == 0, not missing, f"{purpose} with {more}, without {missing}: {done.stderr}")
            if not missing:
                opened.add(purpose)
    check_equal(opened, set(asks), "what was opened by some capabilities")


@scenario
def the_doctors_command_gives_the_rights_that_are_missing(run):
    require_program("setcap")
    program = puppet.build(run)
    user = User(run, [])
    told = user.run(user.bin / "usdt-trace", "--doctor")
    check_equal(told.returncode, 1, told.stdout)
    command = next(line.split() for line in told.stdout.splitlines() if line.split()[:2] == ["sudo", "setcap"])
    subprocess.run(command[1:], check=True)
    user.prefix = user.prefix[:4]  # the bounding set is everybody's
    told = user.run(user.bin / "usdt-trace", "--doctor")
    check_equal((told.returncode, "setcap" in told.stdout), (0, False), told.stdout)
    result = user.trace(program)
    result.check_code(0)
    check_beats(result.events, range(3))


@scenario
def perf_uprobes_work_or_name_sys_admin_as_the_kernel_has_it(run):
    program = puppet.build(run)
    user = User(run, ["bpf", "perfmon"])
    allowed = user.may_open_perf_uprobes()
    check_equal(user.doctor()["privilege"]["perf_uprobe"], "yes" if allowed else "no", "the doctor's answer")
    result = user.trace(program, "--backend", "perf_uprobe")
    if allowed:
        result.check_code(0)
        check_beats(result.events, range(3))
    else:
        check_refused(result, "need CAP_SYS_ADMIN", "uprobe_multi")


@scenario
def sys_admin_alone_is_enough_for_both(run):
    program = puppet.build(run)
    user = User(run, ["sys_admin"])
    check(user.may_open_perf_uprobes(), "the kernel refuses perf uprobes to CAP_SYS_ADMIN")
    for backend in ("auto", "perf_uprobe"):
        result = user.trace(program, "--backend", backend)
        result.check_code(0)
        check_beats(result.events, range(3))


@scenario
def a_user_is_told_the_capability_that_is_missing(run):
    program = puppet.build(run)
    check_refused(User(run, ["bpf"]).trace(program), "tracing needs CAP_PERFMON:", "run as root")
    check_refused(User(run, []).trace(program), "tracing needs CAP_BPF and CAP_PERFMON:", "run as root")


@scenario
def root_with_few_capabilities_is_not_told_to_be_root(run):
    program = puppet.build(run)
    result = User(run, ["bpf", "chown"], uid=0).trace(program)
    check_refused(result, "tracing needs CAP_PERFMON:", "--cap-add PERFMON", never=["as root", "CAP_BPF"])


@scenario
def root_of_a_user_namespace_is_told_that_it_is_one(run):
    require_program("unshare")
    program = puppet.build(run)
    user = User(run, [])
    user.prefix += ["unshare", "--user", "--map-root-user"]
    if user.run("true").returncode != 0:
        raise Skip("this machine lets users make no user namespaces")
    check_refused(user.trace(program), "user namespace", never=["CAP_BPF"])


if __name__ == "__main__":
    main()
