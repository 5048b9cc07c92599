#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which process and which file a trace means, and what it says when there is none."""

import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import check, check_equal, main, require_program, require_x86_64, scenario, wait_until  # noqa: E402
from puppet import PROBE, Puppet, check_beats, probe_of  # noqa: E402


@scenario
def pid_filter_keeps_other_processes_of_the_binary_out(run):
    program = puppet.build(run)
    one, other = Puppet(run, program), Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", one.pid)
    one.wait_attached()
    other.order("fire:50")
    one.order("fire:100")
    other.order("fire:50")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_only(result, (one,), 100)
    check_beats(result.events, range(100))
    one.wait_clean()


def check_only(result, processes, hits):
    result.check_code(0)
    check_equal({event["pid"] for event in result.events}, {each.pid for each in processes}, "pids seen")
    result.check_accounted(hits, lost=0)


@scenario
def several_pids_are_traced_and_no_breakpoint_is_in_others(run):
    program = puppet.build(run)
    for options in ([], ["--backend", "perf_uprobe"]):
        one, two, other = Puppet(run, program), Puppet(run, program), Puppet(run, program)
        tracing = run.trace_start(probe_of(program), "-p", f"{one.pid},{two.pid}", *options)
        one.wait_attached()
        two.wait_attached()
        other.wait_clean()
        for each, hits in ((one, 30), (other, 50), (two, 20)):
            each.order(f"fire:{hits}")
        tracing.signal(signal.SIGINT)
        check_only(tracing.finish(), (one, two), 50)
        one.wait_clean()
        two.wait_clean()


@scenario
def several_pids_are_told_apart_where_the_kernel_cannot_filter(run):
    program = puppet.build(run)
    one, two, other = Puppet(run, program), Puppet(run, program), Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", one.pid, "-p", two.pid, "-p", one.pid, "--disable-feature",
                              "uprobe_multi_pid")
    for each in (one, two, other):
        each.wait_attached()
        each.order("fire:25")
    tracing.signal(signal.SIGINT)
    check_only(tracing.finish(), (one, two), 50)


@scenario
def a_trace_of_several_pids_lasts_until_the_last_of_them_ends(run):
    program = puppet.build(run)
    one, two, gone = Puppet(run, program), Puppet(run, program), run.start(program, "exit:0")
    gone.wait()
    tracing = run.trace_start(probe_of(program), "-p", f"{one.pid},{gone.pid},{two.pid}")
    two.wait_attached()
    one.send("exit:0")
    one.process.wait()
    two.order("fire:7")
    two.send("exit:0")
    result = tracing.finish(20)
    check_only(result, (two,), 7)
    check(f"no process {gone.pid}" in result.stderr, f"the one that had ended is not named\n{result.describe()}")
    check_refused(run.trace(probe_of(program), "-p", f"{gone.pid},{one.pid}", "--duration", 5), str(gone.pid), str(one.pid))


@scenario
def a_thread_is_not_taken_for_a_process(run):
    program = puppet.build(run)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        for more in ((), ("--children",)):
            result = run.trace(probe_of(program), "-p", thread.native_id, *more, "--duration", 5)
            check_refused(result, f"{thread.native_id} is a thread of process {os.getpid()}")
    finally:
        done.set()
        thread.join()


@scenario
def a_probe_that_is_nowhere_is_said_beside_one_that_is_there(run):
    program = puppet.build(run)
    result = run.trace(probe_of(program), f"usdt:{program}:test:nosuch", command=[program, "fire:5"])
    result.check_accounted(5, lost=0)
    check("nothing matches" in result.stderr and "nosuch" in result.stderr, f"a mistake is hidden\n{result.describe()}")


@scenario
def families_of_several_pids_are_traced(run):
    program = puppet.build(run)
    one, two, stranger = Puppet(run, program), Puppet(run, program), Puppet(run, program)
    tracing = run.trace_start(probe_of(program), "-p", f"{one.pid},{two.pid}", "--children")
    for each in (one, two):
        each.wait_attached()
    for each in (one, two, stranger):
        each.order("fork:4")
        each.order("fire:3")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_accounted(14, lost=0)
    pids = {event["pid"] for event in result.events}
    check_equal((len(pids), stranger.pid in pids), (4, False), "two processes and two children")


@scenario
def without_a_pid_every_process_of_the_binary_is_seen(run):
    program = puppet.build(run)
    one, other = Puppet(run, program), Puppet(run, program)
    tracing = run.trace_start(probe_of(program))
    one.wait_attached()
    other.wait_attached()
    one.order("fire:30")
    other.order("fire:20")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_accounted(50, lost=0)
    check_equal({event["pid"] for event in result.events}, {one.pid, other.pid}, "pids seen")
    one.wait_clean()
    other.wait_clean()


def trace_by_pid(run, target, probe, first=0):
    tracing = run.trace_start(probe, "-p", target.pid)
    target.wait_attached()
    target.order("fire:60")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    check_beats(result.events, range(first, first + 60))
    result.check_accounted(60, lost=0)
    target.wait_clean()


@scenario
def provider_and_name_alone_are_found_in_the_process(run):
    trace_by_pid(run, Puppet(run, puppet.build(run)), PROBE)


@scenario
def deleted_binary_that_still_runs_is_traced_by_pid(run):
    program = puppet.build(run)
    kept = shutil.copy(program, run.dir / "kept")
    target = Puppet(run, program)
    program.unlink()
    target.memory = puppet.Memory(target.pid, kept, f"{program} (deleted)")
    trace_by_pid(run, target, PROBE)


@scenario
def replaced_binary_is_traced_as_it_runs_not_as_it_is_on_disk(run):
    program, newer = puppet.build(run), puppet.build(run, "newer", ["-DPUPPET_PAD"])
    kept = shutil.copy(program, run.dir / "kept")
    target = Puppet(run, program)
    os.replace(newer, program)
    target.memory = puppet.Memory(target.pid, kept, f"{program} (deleted)")
    trace_by_pid(run, target, PROBE)


@scenario
def process_that_runs_from_a_memfd_is_traced_by_pid(run):
    program = puppet.build(run)
    fd = os.memfd_create("puppet", 0)
    os.write(fd, program.read_bytes())
    target = Puppet(run, program, "/memfd:puppet (deleted)", argv=[f"/proc/self/fd/{fd}"], pass_fds=[fd])
    os.close(fd)
    trace_by_pid(run, target, PROBE)


@scenario
def process_in_another_mount_namespace_is_traced_by_its_own_path(run):
    require_program("unshare")
    program = puppet.build(run)
    inside = run.dir / "inside"
    inside.mkdir()
    script = f"mount -t tmpfs none {inside} && cp {program} {inside}/hidden && exec {inside}/hidden"
    argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", script]
    target = Puppet(run, program, inside / "hidden", argv=argv)
    check_equal((inside / "hidden").exists(), False, "the file is visible only in the namespace")
    trace_by_pid(run, target, f"usdt:{inside}/hidden:{PROBE}")
    trace_by_pid(run, target, PROBE, first=60)


@scenario
def the_same_within_a_chroot(run):
    require_program("unshare", "chroot")
    puppet.require_root()
    root = run.dir / "root"
    root.mkdir()
    again = [sys.executable, os.path.abspath(__file__), "--tool", str(run.tool),
             process_in_another_mount_namespace_is_traced_by_its_own_path.__name__]
    inside = f"mount --rbind / {root} && exec chroot {root} {shlex.join(again)}"
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", inside], capture_output=True,
                          text=True, timeout=120)
    check_equal(done.returncode, 0, f"exit code\n{done.stdout}{done.stderr}")


@scenario
def pids_are_those_the_tracer_sees_not_those_of_a_pid_namespace(run):
    require_program("unshare")
    program = puppet.build(run)
    result = run.trace(probe_of(program), command=["unshare", "--pid", "--fork", program, "fire:5"])
    result.check_code(0)
    check_beats(result.events, range(5))
    check(all(event["pid"] > 1 for event in result.events), "pid 1 is the program's own view")


@scenario
def binary_replaced_while_attaching_is_a_trace_or_a_clear_error(run):
    program, newer = puppet.build(run), puppet.build(run, "newer", ["-DPUPPET_PAD"])
    originals = [program.read_bytes(), newer.read_bytes(), b"\x7fELF torn", b""]
    done = threading.Event()

    def replace_for_ever():
        number = 0
        while not done.is_set():
            fresh = run.dir / "fresh"
            fresh.write_bytes(originals[number % len(originals)])
            os.replace(fresh, program)
            number += 1

    thread = threading.Thread(target=replace_for_ever)
    thread.start()
    try:
        for _ in range(25):
            result = run.trace(probe_of(program), "--duration", 0.01, timeout=20)
            check(result.code in (0, 1, 2), f"neither a trace nor an error\n{result.describe()}")
            check(result.code == 0 or str(program) in result.stderr, f"the error names no file\n{result.describe()}")
    finally:
        done.set()
        thread.join()


@scenario
def process_whose_first_thread_has_ended_is_traced(run):
    program = puppet.build(run)
    for backend in ("uprobe_multi", "perf_uprobe"):
        target = Puppet(run, program)
        target.order("first-ends:0")
        puppet.wait_until(lambda: "Z (zombie)" in pathlib.Path(f"/proc/{target.pid}/status").read_text(), "first thread")
        living = [task for task in os.listdir(f"/proc/{target.pid}/task") if int(task) != target.pid]
        target.memory.pid = int(living[0])
        other = Puppet(run, program)
        tracing = run.trace_start(PROBE, "-p", target.pid, "--backend", backend)
        target.wait_attached()
        other.order("fire:5")
        target.order("fire:60")
        tracing.signal(signal.SIGINT)
        check_only(tracing.finish(), (target,), 60)
        target.wait_clean()


@scenario
def children_of_the_process_are_named_when_only_they_hit(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    tracing = run.trace_start(PROBE, "-p", target.pid)
    target.wait_attached()
    child = int(target.order("child:0"))
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(result.summary["hits"], 0, "hits of the process itself")
    check(f"--children" in result.stderr and str(child) in result.stderr, f"no hint\n{result.describe()}")


@scenario
def children_are_traced_where_they_are_asked_for(run):
    program = puppet.build(run)
    target, stranger = Puppet(run, program), Puppet(run, program)
    child = int(target.order("child:0"))  # there before the trace
    tracing = run.trace_start(PROBE, "-p", target.pid, "--children")
    # Breakpoints are there a moment before what they start.
    wait_until(lambda: "attached " in tracing.stderr(), "the tracer has attached to both")
    target.order("fire:3")
    target.order("fork:4")
    stranger.order("fire:5")
    wait_until(lambda: f'"pid":{child},' in tracing.stdout(), "a hit of the old child")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    check(child not in (target.pid, stranger.pid), "the child's number")
    pids = {event["pid"] for event in result.events}
    check(target.pid in pids and stranger.pid not in pids, f"pids seen: {pids}")
    check_equal(len([event for event in result.events if event["pid"] == child]) > 0, True, "the old child's hits")
    check_equal(len([event for event in result.events if event["pid"] not in (child,)]), 7, "hits of the others")


def check_refused(result, *words):
    """An error of its own: a code that is not success, and a message with these words."""
    check(result.code in (1, 2), f"exit code of a refused trace\n{result.describe()}")
    for word in words:
        check(word.lower() in result.stderr.lower(), f"the message does not say {word!r}\n{result.describe()}")
    check_equal(result.events, [], "events of a refused trace")


@scenario
def pid_that_is_gone_is_named(run):
    program = puppet.build(run)
    ended = run.start(program, "exit:0")
    ended.wait()
    check_refused(run.trace(probe_of(program), "-p", ended.pid, "--duration", 5), str(ended.pid))


@scenario
def probe_that_matches_nothing_is_named(run):
    program = puppet.build(run)
    check_refused(run.trace(f"usdt:{program}:puppet:nosuch", "--duration", 5), "nosuch")
    check_refused(run.trace(f"usdt:{program}:nosuch:*", command=[program, "exit:0"]), "nosuch")


@scenario
def file_that_does_not_exist_is_named(run):
    puppet.require_root()
    check_refused(run.trace("usdt:/nonexistent/file:a:b", "--duration", 5), "/nonexistent/file",
                  "no such file")


@scenario
def file_without_probes_and_file_that_is_no_elf_are_told_apart(run):
    puppet.require_root()
    text = run.dir / "text"
    text.write_text("not an ELF file\n")
    check_refused(run.trace(f"usdt:{text}:a:b", "--duration", 5), str(text), "ELF")
    check_refused(run.trace("usdt:/bin/true:a:b", "--duration", 5), "a:b")


@scenario
def file_of_another_machine_is_refused_with_the_reason(run):
    require_x86_64()
    program = puppet.build(run)
    foreign = run.dir / "foreign"
    image = bytearray(program.read_bytes())
    image[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64; this kernel runs x86
    foreign.write_bytes(image)
    check_refused(run.trace(probe_of(foreign), "--duration", 5), str(foreign), "aarch64", "does not run")
    result = run.trace([probe_of(foreign), probe_of(program)], command=[program, "fire:4"])
    result.check_accounted(4, lost=0)
    check("aarch64" in result.stderr, f"the other file is not refused\n{result.describe()}")


@scenario
def malformed_probe_and_unknown_option_are_usage_errors(run):
    puppet.require_root()
    for words in (["usdt:::"], [], ["--nonsense"]):
        done = subprocess.run([run.tool, *words], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
        check_equal(done.returncode, 2, f"exit code of usdt-trace {words}\n{done.stderr}")
        check(done.stderr.strip() != "", f"usdt-trace {words} says nothing on stderr")


@scenario
def missing_privilege_names_the_capability(run):
    require_program("setpriv")
    program = puppet.build(run)
    run.dir.chmod(0o755)
    tool = shutil.copy(run.tool, run.dir / "usdt-trace")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    done = subprocess.run([*drop, tool, probe_of(program), "--duration", "5"], capture_output=True, text=True,
                          timeout=30, stdin=subprocess.DEVNULL)
    check_equal(done.returncode, 1, f"exit code without privilege\n{done.stderr}")
    named = [name for name in ("CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN") if name in done.stderr]
    check(bool(named), f"no capability named\n{done.stderr}")


if __name__ == "__main__":
    main()
