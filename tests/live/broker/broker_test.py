#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Users without privileges trace their own processes through usdt-broker, and see nothing of anybody else's.

The judge of values is the program itself, which fires what it is told; of breakpoints /proc/PID/mem, read by root; of what is
left in the kernel bpftool."""

import os
import pathlib
import pwd
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import (ANNA, BERT, Changing, Service, as_user, build_changing, build_shared, children_of, links, own_program,
                     refuses)  # noqa: E402
import puppet  # noqa: E402
from harness import LONG, Skip, check, check_equal, main, require_program, scenario, wait_until  # noqa: E402
from puppet import Puppet, beats, probe_of  # noqa: E402

CAP_PERFMON, CAP_BPF = 38, 39
FOREIGN_HITS = 1_000_000 if LONG else 100_000


def as_puppet(run, program, uid):
    return Puppet(run, program, argv=[*as_user(uid), program])


def values(tracing):
    """The first arguments of the events, in the order of time."""
    return [event["args"][0] for event in sorted(tracing.events, key=lambda event: event["ts"])]


@scenario
def an_own_process_is_traced_with_true_values(run):
    service = Service(run)
    program = own_program(run, ANNA)
    traced = as_puppet(run, program, ANNA)
    tracing = service.start(ANNA, probe_of(program), "-p", traced.pid)
    check("through usdt-broker" in tracing.stderr(), tracing.stderr())
    traced.wait_attached()
    traced.order("fire:1000")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    result.check_accounted(1000, lost=0)
    check_equal([[n, last] for n, _, last in beats(result.events)], [[n, 3 * n] for n in range(1000)], "values")
    traced.wait_clean()
    check(f"uid {ANNA}" in service.said() and "puppet:beat" in service.said(), service.said())


@scenario
def texts_stacks_and_both_ends_of_calls_come_through_it(run):
    service = Service(run)
    program = own_program(run, ANNA)
    traced = as_puppet(run, program, ANNA)
    tracing = service.start(ANNA, probe_of(program), "--print", "arg0, str(arg1)", "--ustack", "-p", traced.pid)
    traced.order("fire:3")
    tracing.signal(signal.SIGINT)
    with_texts = tracing.finish()
    check_equal([event["args"] for event in with_texts.events], [[n, "beat text"] for n in range(3)], "texts")
    for event in with_texts.events:
        names = [frame.get("function", "") for frame in event["ustack"]]
        check_equal(names[0], "beat", "the innermost function")
        check("main" in names, f"main is not in {names}")
    library, changing = build_shared(run), build_changing(run)
    os.chown(library, ANNA, ANNA)
    process = Changing(run, changing, ANNA)
    calls = service.start(ANNA, f"ucall:{library}:pass", "--print", "arg0, retval", "-p", process.pid)
    process.order("fire:10:50")
    calls.signal(signal.SIGINT)
    result = calls.finish()
    check_equal([event["args"] for event in result.events], [[50 + n, 2 * (50 + n)] for n in range(10)], "calls")
    check(all(event["duration_ns"] > 0 for event in result.events), "durations")


@scenario
def all_own_processes_that_have_the_file_are_traced_where_none_is_named(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own = [Changing(run, program, ANNA), Changing(run, program, ANNA)]
    other = Changing(run, program, BERT)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit")
    for number, process in enumerate([*own, other]):
        process.order(f"fire:5:{100 * number}")
    check(not other.attached(), "a breakpoint in another user's memory")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(sorted(values(result)), [*range(5), *range(100, 105)], "values of own processes")
    check_equal({event["pid"] for event in result.events}, {each.pid for each in own}, "processes")


@scenario
def hits_of_other_users_on_the_same_file_are_neither_seen_nor_counted(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own, other = Changing(run, program, ANNA), Changing(run, program, BERT)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "-p", own.pid)
    wait_until(own.attached, "the breakpoint in the own process")
    other.order(f"fire:{FOREIGN_HITS}:0")
    own.order("fire:7:1000")
    check(not other.attached() and other.semaphore() == 0, "another user's process was touched")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(values(result), list(range(1000, 1007)), "events")
    result.check_accounted(7, lost=0)


@scenario
def a_process_is_not_seen_while_it_is_somebody_elses(run):
    """It executes a setuid program that has mapped the same file, becomes other users, forks, protects itself, and comes
    back. The breakpoint stays where it is all the time: it is the program that looks whose the hit is."""
    service = Service(run)
    library, plain, powerful = build_shared(run), build_changing(run), build_changing(run, "powerful", setuid=True)
    process = Changing(run, plain, ANNA)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "-p", process.pid)
    process.order("fire:5:0")
    check_equal(process.order(f"exec:{powerful}"), f"{ANNA} 0", "users of the setuid program")
    check(process.attached(), "no breakpoint in the setuid program: nothing is tested")
    process.order("fire:10:100")
    process.order("fork:10:150")
    check_equal(process.order(f"become:{BERT}"), f"{BERT} {BERT}", "another user")
    process.order("fire:10:200")
    check(process.attached(), "no breakpoint: nothing is tested")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(values(result), list(range(5)), "events while it was its user's")
    result.check_accounted(5, lost=0)


@scenario
def a_process_that_comes_back_to_its_user_is_seen_again_once_it_executes_a_program_of_its_own(run):
    service = Service(run)
    library, plain, powerful = build_shared(run), build_changing(run), build_changing(run, "powerful", setuid=True)
    process = Changing(run, plain, ANNA)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "-p", process.pid)
    process.order(f"exec:{powerful}")
    process.order("fire:10:100")
    check_equal(process.order(f"become:{ANNA}"), f"{ANNA} {ANNA}", "its user's again")
    process.order("fire:10:200")  # it may still know secrets: it is not dumpable
    process.order(f"exec:{plain}")
    check(process.attached(), "no breakpoint after the program")
    process.order("fire:5:300")
    process.order("protect:0")
    process.order("fire:5:400")
    process.order("protect:1")
    process.order("fire:5:500")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(values(result), [*range(300, 305), *range(500, 505)], "events")
    result.check_accounted(10, lost=0)


@scenario
def a_number_that_another_users_process_gets_shows_nothing_of_it(run):
    """The kernel gives the number of a process that has ended to another one: here at once."""
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    first = Changing(run, program, ANNA)
    stays = Changing(run, program, ANNA)
    tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "-p", f"{first.pid},{stays.pid}")
    first.order("fire:3:0")
    number = first.pid
    first.process.stdin.close()
    first.process.wait()
    last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
    if not last.exists():
        raise Skip("this kernel lets nobody choose the next process id (CONFIG_CHECKPOINT_RESTORE)")
    for _ in range(50):
        last.write_text(str(number - 1))
        again = Changing(run, program, BERT)
        if again.pid == number:
            break
    if again.pid != number:
        raise Skip("others take the numbers of processes before this test does")
    again.order("fire:100:1000")
    stays.order("fire:3:10")
    check(not again.attached(), "a breakpoint in it")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(values(result), [0, 1, 2, 10, 11, 12], "events")


@scenario
def what_is_not_the_users_is_refused_with_a_sentence(run):
    service = Service(run)
    program = own_program(run, ANNA)
    library, changing = build_shared(run), build_changing(run)
    own, other = Changing(run, changing, ANNA), Changing(run, changing, BERT)
    refuses(service.trace(ANNA, f"usdt:{library}:shared:hit", "-p", other.pid), "another user")
    refuses(service.trace(ANNA, "kfunc:vfs_read"), "kernel")
    refuses(service.trace(ANNA, probe_of(program), "-p", own.pid, "--wait-for-pages"), "pages")
    os.chown(library, BERT, BERT)
    refuses(service.trace(ANNA, f"usdt:{library}:shared:hit", "-p", own.pid), f"user {BERT}'s")
    os.chown(library, 0, 0)
    library.chmod(0o777)
    refuses(service.trace(ANNA, f"usdt:{library}:shared:hit", "-p", own.pid), "others may write to it")
    library.chmod(0o4755)
    refuses(service.trace(ANNA, f"usdt:{library}:shared:hit", "-p", own.pid), "setuid")
    said = service.said()
    for why in (f"user {BERT}'s", "others may write", "setuid"):
        check(why in said, f"{why!r} is not in the log\n{said}")


@scenario
def an_explanation_says_who_attaches(run):
    service = Service(run)
    program = own_program(run, ANNA)
    argv = [*as_user(ANNA), "env", f"USDT_BROKER={service.socket}", service.bin / "usdt-trace", "--explain", probe_of(program)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    check(f"usdt-broker, which is at {service.socket}, attaches to your own processes" in said, said)


@scenario
def without_a_broker_it_is_said_what_is_missing_and_who_could_help(run):
    service = Service(run)
    service.process.terminate()
    service.process.wait()
    program = own_program(run, ANNA)
    refuses(service.trace(ANNA, probe_of(program), "--", program, "fire:1"), "CAP_BPF", "usdt-broker")
    refuses(service.trace(ANNA, "--no-broker", probe_of(program), "--", program, "fire:1"), "CAP_BPF")
    for asked in (["kprobe:vfs_read"], [probe_of(program), "-p", os.getpid()]):  # which it would refuse
        refused = service.trace(ANNA, *asked)
        check(refused.code == 1 and "usdt-broker" not in refused.stderr, refused.describe())


@scenario
def the_doctor_says_who_may_trace_through_a_broker(run):
    service = Service(run)

    def doctor(uid):
        return subprocess.run([*as_user(uid), "env", f"USDT_BROKER={service.socket}", service.bin / "usdt-trace", "--doctor"],
                              capture_output=True, text=True, timeout=60)

    done = doctor(ANNA)
    check_equal(done.returncode, 0, f"exit code where a broker serves\n{done.stdout}")
    check("own processes alone: by usdt-broker" in " ".join(done.stdout.split()), done.stdout)
    service.process.terminate()
    service.process.wait()
    done = doctor(ANNA)
    check_equal(done.returncode, 1, f"exit code where none does\n{done.stdout}")
    check("connect to usdt-broker" in " ".join(done.stdout.split()), done.stdout)


def start_trace(run):
    """A service, a program that is traced through it, by whom, and the links that there were before."""
    service = Service(run)
    program = own_program(run, ANNA)
    traced = as_puppet(run, program, ANNA)
    before = links()
    tracing = service.start(ANNA, probe_of(program), "-p", traced.pid)
    traced.wait_attached()
    return service, traced, tracing, before


@scenario
def a_client_that_is_killed_leaves_nothing(run):
    service, traced, tracing, before = start_trace(run)
    check(links() - before, "no link while it traces: nothing is tested")
    killed = time.monotonic()
    tracing.signal(signal.SIGKILL)
    wait_until(lambda: not links() - before, "the links go", timeout=5)
    check(time.monotonic() - killed < 1, f"the links went after {time.monotonic() - killed:.2f} s")
    traced.wait_clean()
    wait_until(lambda: not children_of(service.process.pid), "the process that served it ends")


@scenario
def a_broker_that_is_killed_leaves_nothing_and_traces_go_on(run):
    service, traced, tracing, before = start_trace(run)
    traced.order("fire:10")
    workers = children_of(service.process.pid)
    service.process.kill()
    service.process.wait()
    wait_until(lambda: not any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers), "its workers end")
    traced.order("fire:10")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_accounted(20, lost=0)
    wait_until(lambda: not links() - before, "the links go", timeout=5)
    traced.wait_clean()


def has_descriptor(names, what):
    """Whether one of these is a program or link of BPF, as /proc/PID/fd names it."""
    return any(name.removeprefix("anon_inode:").strip("[]") in (f"bpf-{what}", f"bpf_{what}") for name in names)


@scenario
def who_serves_a_client_is_nobody_with_two_capabilities(run):
    service = Service(run)
    program = own_program(run, ANNA)
    traced = as_puppet(run, program, ANNA)
    tracing = service.start(ANNA, probe_of(program), "-p", traced.pid)
    worker, = children_of(service.process.pid)
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{worker}/status").read_text().splitlines())
    nobody = pwd.getpwnam("nobody")
    check_equal(status["Uid"].split(), [str(nobody.pw_uid)] * 4, "users of the process")
    check_equal(status["Gid"].split(), [str(nobody.pw_gid)] * 4, "groups of the process")
    check_equal(status["Groups"].split(), [], "further groups")
    for capabilities in ("CapPrm", "CapEff"):
        check_equal(int(status[capabilities], 16), 1 << CAP_BPF | 1 << CAP_PERFMON, capabilities)
    check_equal(status["NoNewPrivs"], "1", "no_new_privs")
    check_equal(status["Seccomp"], "2", "a filter of system calls")

    def kept_there():
        return [os.readlink(fd) for fd in pathlib.Path(f"/proc/{worker}/fd").iterdir()]

    # It may not have come to close what it has just sent.
    wait_until(lambda: not has_descriptor(kept_there(), "link"), "no link is kept")
    kept = kept_there()
    check(has_descriptor(kept, "prog"), f"no program in {kept}: it was looked for in vain")
    held = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{tracing.process.pid}/fd").iterdir()]
    check(not has_descriptor(held, "prog"), f"the client has a program: {held}")
    check(has_descriptor(held, "link"), f"the client has no link: {held}")


@scenario
def a_socket_that_a_service_manager_hands_over_is_taken(run):
    require_program("systemd-socket-activate")
    service = Service(run)
    path = run.dir / "handed-over"
    run.start("systemd-socket-activate", "--seqpacket", "-l", path, service.bin / "usdt-broker", "-q",
              stderr=subprocess.DEVNULL)
    wait_until(path.exists, "the socket")
    path.chmod(0o666)
    program = own_program(run, ANNA)
    result = service.trace(ANNA, "--broker", path, probe_of(program), "--", program, "fire:3")
    result.check_code(0)
    check_equal(len(result.events), 3, "events")


@scenario
def one_user_cannot_take_all_connections(run):
    service = Service(run, "--connections-of-user", "2")
    program = own_program(run, ANNA)
    traced = as_puppet(run, program, ANNA)
    first = [service.start(ANNA, probe_of(program), "-p", traced.pid) for _ in range(2)]
    refuses(service.trace(ANNA, probe_of(program), "-p", traced.pid), "2 connections of user")
    theirs = own_program(run, BERT, "theirs")
    service.trace(BERT, probe_of(theirs), "--", theirs, "fire:2").check_accounted(2, lost=0)
    first[0].signal(signal.SIGINT)
    first[0].finish()
    wait_until(lambda: len(children_of(service.process.pid)) == 1, "the connection is closed")
    service.trace(ANNA, probe_of(program), "--", program, "fire:2").check_accounted(2, lost=0)


@scenario
def what_a_user_has_attached_within_an_hour_is_bounded_over_connections_that_are_closed(run):
    service = Service(run, "--places-of-user", "3")
    program = own_program(run, ANNA)
    for _ in range(3):
        service.trace(ANNA, probe_of(program), "--", program, "fire:2").check_accounted(2, lost=0)
    refuses(service.trace(ANNA, probe_of(program), "--", program, "fire:2"), "within the last hour")
    theirs = own_program(run, BERT, "theirs")
    service.trace(BERT, probe_of(theirs), "--", theirs, "fire:2").check_accounted(2, lost=0)


@scenario
def functions_of_the_systems_libraries_are_traced_in_own_processes(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own, other = Changing(run, program, ANNA), Changing(run, program, BERT)
    for name, arguments in ((f"ucall:{library}:pass", [[n, 2 * n] for n in range(5)]),
                            (f"uprobe:{library}:pass", [[n] for n in range(5)]),
                            (f"uretprobe:{library}:pass", [[2 * n] for n in range(5)]),
                            (f"ucall:{library}:jumps", [[n, 2 * n + 1] for n in range(5)])):
        shown = {"ucall": "arg0, retval", "uprobe": "arg0", "uretprobe": "retval"}[name.split(":")[0]]
        tracing = service.start(ANNA, name, "--print", shown, "-p", own.pid)
        other.order("fire:1000:5000")
        own.order("fire:5:0")
        tracing.signal(signal.SIGINT)
        check_equal([event["args"] for event in tracing.finish().events], arguments, name)


LONG_NAMES = """
#include <string>
#include <unistd.h>
template <class A, class B> struct Pair {};
template <class A> using Four = Pair<Pair<A, A>, Pair<A, A>>;
using Key = Four<Four<Four<std::string>>>;
template <class A> __attribute__((noipa)) long keep(long n) { if (n < 0) throw n; return n + 1; }
__attribute__((noipa)) void never_returns(long n) { for (;;) { keep<Key>(n++); usleep(1000); } }
int main() { never_returns(0); }
"""


@scenario
def functions_are_traced_whose_names_templates_have_made_long(run):
    service = Service(run)
    source = run.dir / "long_names.cpp"
    source.write_text(LONG_NAMES)
    program = run.build("long_names", [source], ["-O2", "-g"], "g++")
    os.chown(program, ANNA, ANNA)
    named = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    check(any("keep<" in line and len(line) > 2000 for line in named.splitlines()), named)
    result = service.trace(ANNA, f"ucall:{program}:*keep*", "-M", "3", "--", program)
    result.check_code(0)
    first = result.events[0]["args"][0]
    check_equal([(event["args"][0], event["return"]) for event in result.events],
                [(first + n, first + n + 1) for n in range(3)], "calls")


@scenario
def a_function_that_cannot_be_attached_to_is_refused_for_its_own_reason(run):
    service = Service(run)
    source = run.dir / "long_names.cpp"
    source.write_text(LONG_NAMES)
    program = run.build("long_names", [source], ["-O2", "-g"], "g++")
    os.chown(program, ANNA, ANNA)
    refused = service.trace(ANNA, f"ucall:{program}:never_returns", "--", program)
    refuses(refused, "no RET instruction")
    check("CAP_BPF" not in refused.stderr, refused.describe())


@scenario
def hits_are_chosen_by_questions_that_the_kernel_answers(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own, other = Changing(run, program, ANNA), Changing(run, program, BERT)
    for question, wanted in (("arg0 > 90 && arg0 % 2 == 0", [92, 94, 96, 98]), ('str(arg1) =~ "*other*"', []),
                             ('arg0 in {3, 5} && str(arg1) == "text of a hit"', [3, 5]),
                             (f"uid == {ANNA} && comm == \"changing\" && arg0 < 2", [0, 1])):
        tracing = service.start(ANNA, f"usdt:{library}:shared:hit", "--where", question, "-p", own.pid)
        other.order("fire:100:0")
        own.order("fire:100:0")
        tracing.signal(signal.SIGINT)
        result = tracing.finish()
        check_equal(values(result), wanted, question)
        check_equal(result.summary["hits"], 100, f"hits of {question}")


@scenario
def tables_have_the_hits_of_own_processes_alone(run):
    service = Service(run)
    library, program = build_shared(run), build_changing(run)
    own, other = Changing(run, program, ANNA), Changing(run, program, BERT)
    tracing = service.start(ANNA, f"ucall:{library}:pass", "--by", "arg0, comm", "--sum", "retval", "-p", own.pid)
    for first in (0, 0, 2):
        own.order(f"fire:3:{first}")
        other.order("fire:1000:0")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    rows = [row for record in result.records if record["type"] == "table" for row in record["rows"]]
    check_equal(sorted((row["key"][0], row["count"], row["sum"]) for row in rows),
                [(0, 2, 0), (1, 2, 4), (2, 3, 12), (3, 1, 6), (4, 1, 8)], f"rows {rows}")
    check_equal({row["key"][1] for row in rows}, {"changing"}, "threads")


def build_later(run):
    """A program that opens a library when it is told."""
    library = run.build("later.so", [puppet.HERE / "later_library.c"], ["-O2", "-shared", "-fPIC"])
    program = run.build("later", [puppet.HERE / "later.c"], ["-O2"], libs=["-ldl"])
    for file in (library, program):
        file.chmod(0o755)
    return library, program


@scenario
def a_library_that_a_process_opens_later_is_traced_from_then_on(run):
    """Its records come by the ring that the trace has had since it began."""
    service = Service(run)
    library, program = build_later(run)
    process = Changing(run, program, ANNA, first_order="fire 0")
    tracing = service.start(ANNA, "late:*", "-p", process.pid)
    process.order(f"open {library}")
    wait_until(lambda: "followed: " in tracing.stderr(), "the library is attached")
    process.order("fire 4")
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    check_equal(values(result), [0, 1, 2, 3], "values")
    check_equal({event["probe"] for event in result.events}, {f"usdt:{library}:late:hit"}, "probes")


@scenario
def a_file_that_no_process_has_yet_is_waited_for(run):
    service = Service(run)
    library, program = build_later(run)
    process = Changing(run, program, ANNA, first_order="fire 0")
    tracing = service.start(ANNA, "late:hit", "--wait", "-p", process.pid, ready="waiting")
    process.order(f"open {library}")
    wait_until(lambda: "attached " in tracing.stderr(), "the library is attached")
    process.order("fire 4")
    tracing.signal(signal.SIGINT)
    check_equal(values(tracing.finish()), [0, 1, 2, 3], "values")


@scenario
def a_ring_that_is_too_large_is_refused(run):
    service = Service(run, "--memory", "8")
    program = own_program(run, ANNA)
    refuses(service.trace(ANNA, probe_of(program), "--", program, "fire:1"), "MiB")
    service.trace(ANNA, "--ring-size", "4", probe_of(program), "--", program, "fire:1").check_accounted(1, lost=0)


if __name__ == "__main__":
    main()
