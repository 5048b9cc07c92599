#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What comes while a trace runs: libraries that are opened, programs that are started, files that take the place of
others, probes that are made. The programs count themselves what they do.

USDT_LONG=1: the whole storms, minutes of them."""

import collections
import contextlib
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time

import puppet
from harness import Skip, Tracing, check, check_equal, main, require_program, require_root, scenario, wait_line, wait_until

LONG = os.environ.get("USDT_LONG") == "1"


def times(whole, short):
    return whole if LONG else short


class Later:
    """later.c, with the library it may open."""

    def __init__(self, run):
        require_root()
        self.run = run
        self.library = self.build("liblate.so")
        self.program = run.build("later", [puppet.HERE / "later.c"], ["-O1"], libs=["-ldl"])

    def build(self, name, *flags):
        return self.run.build(name, [puppet.HERE / "later_library.c"], ["-O1", "-shared", "-fPIC", *flags])

    def start(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = self.run.start(self.program, **pipes)
        self.order("close")  # it is up and mapped
        return self.process.pid

    def order(self, *words):
        self.process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        return int(wait_line(self.process, timeout=120))


def attach(run, probes, *options, ready="attached ", **more):
    tracing = run.trace_start(probes, *options, **more)
    wait_until(lambda: ready in tracing.stderr() or not tracing.alive(), ready)
    check(tracing.alive(), tracing.stderr())
    return tracing


def wait_followed(tracing, count=1):
    wait_until(lambda: tracing.stderr().count("followed: ") >= count or not tracing.alive(), f"followed {count} times")
    check_equal(tracing.stderr().count("followed: "), count, f"times something was followed\n{tracing.stderr()}")


def finish(tracing):
    tracing.signal(signal.SIGINT)
    result = tracing.finish()
    result.check_code(0)
    return result


def followed(result):
    return [record for record in result.records if record["type"] == "followed"]


def numbers(result, name):
    return [event["args"][0] for event in result.by_name().get(name, [])]


@scenario
def a_library_opened_later_is_traced_from_then_on(run):
    later = Later(run)
    pid = later.start()
    tracing = attach(run, ["late:*"], "-p", pid)
    check_equal(later.order("open", later.library), 0, "dlopen")
    wait_followed(tracing)
    check_equal(later.order("fire", 1000), 1000, "hits by the program's own count")
    result = finish(tracing)
    check_equal(numbers(result, "hit"), list(range(1000)), "values")
    result.check_accounted(1000, lost=0)
    [record] = followed(result)
    check_equal((record["kind"], record["pid"], record["file"], record["probes"], record["sites"], record["attached"]),
                ("library", pid, str(later.library), 1, 1, 1), "what was followed")
    print(f"  attached {record['after_ns'] / 1e6:.1f} ms after it was mapped")


@scenario
def a_file_that_was_opened_again_and_again_is_attached_once(run):
    later, count = Later(run), times(500, 100)
    tracing = attach(run, ["late:*"], "-p", later.start())
    later.order("open", later.library)
    wait_followed(tracing)
    later.order("close")
    check_equal(later.order("cycle", count, later.library), count, "hits by the program's own count")
    result = finish(tracing)
    check_equal(numbers(result, "hit"), list(range(count)), "values")
    result.check_accounted(count, lost=0)
    check_equal(len(followed(result)), 1, "times it was followed")


@scenario
def nothing_is_followed_that_is_not_to_be(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--no-follow")
    later.order("open", later.library)
    later.order("fire", 10)
    result = finish(tracing)
    result.check_accounted(0)
    check_equal(followed(result), [], "followed")


@scenario
def a_program_that_a_command_starts_is_traced_with_its_children(run):
    later = Later(run)
    other = run.dir / "other"
    shutil.copy(later.program, other)
    script = f"sleep 0.5; {other} 0; sleep 1; for i in 1 2 3 4 5 6 7 8 9 10; do {other} 3; done"
    result = run.trace([f"usdt:{other}:late:own"], command=["sh", "-c", script])
    result.check_code(0)
    result.check_accounted(30, lost=0)
    anywhere = run.trace(["late:own"], "--wait", command=["sh", "-c", script])
    anywhere.check_code(0)
    anywhere.check_accounted(30, lost=0)
    check_equal([(each["kind"], each["file"]) for each in followed(anywhere)], [("program", str(other))], "followed")


@scenario
def files_that_take_the_place_of_others_are_traced(run):
    later, count = Later(run), times(50, 12)
    path, fresh = run.dir / "replaced", run.dir / "fresh"
    shutil.copy(later.program, path)
    tracing = attach(run, [f"usdt:{path}:late:own"])
    descriptors = pathlib.Path(f"/proc/{tracing.process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    for n in range(count):
        shutil.copy(later.program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    of_each = (len(list(descriptors.iterdir())) - before) / count
    check(of_each <= 5, f"descriptors of each file: {of_each}")
    result = finish(tracing)
    result.check_accounted(3 * count, lost=0)
    print(f"  {of_each:.1f} descriptors of each file")
    after = sorted(each["after_ns"] / 1e6 for each in followed(result))
    check_equal({each["kind"] for each in followed(result)}, {"file"}, "kinds")
    print(f"  attached {after[0]:.1f} to {after[-1]:.1f} ms after the file was there")


@contextlib.contextmanager
def restless(path):
    """Somebody goes on changing the file, for a second and a half."""
    begun, ended = threading.Event(), time.monotonic() + 1.5

    def change():
        while time.monotonic() < ended:
            for mode in (0o755, 0o700):
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(path, mode)
            begun.set()

    thread = threading.Thread(target=change)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        thread.join()


@scenario
def a_file_that_is_still_changed_is_traced_once_it_is_at_rest(run):
    later = Later(run)
    path, fresh = run.dir / "restless", run.dir / "fresh"
    shutil.copy(later.program, path)
    with restless(path):
        tracing = attach(run, [f"usdt:{path}:late:own"])
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    shutil.copy(later.program, fresh)
    with restless(path):
        os.rename(fresh, path)
    wait_until(lambda: "followed: " in tracing.stderr().replace("not followed: ", ""), "the file at rest")
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    finish(tracing).check_accounted(6, lost=0)


@scenario
def a_file_that_is_waited_for_and_still_changed_is_waited_for_again(run):
    later = Later(run)
    path, fresh = run.dir / "restless", run.dir / "fresh"
    tracing = attach(run, [f"usdt:{path}:late:own"], "--wait", ready="waiting: ")
    shutil.copy(later.program, fresh)
    with restless(path):
        os.rename(fresh, path)
    wait_until(lambda: "attached " in tracing.stderr(), "the file at rest")
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    finish(tracing).check_accounted(3, lost=0)


def descriptors_of(tracing):
    return len(list(pathlib.Path(f"/proc/{tracing.process.pid}/fd").iterdir()))


def let_go(tracing):
    """Files of the notices so far."""
    return sum(1 if words == "a file" else int(words.split()[0])
               for words in re.findall(r"let go: (a file|\d+ files): ", tracing.stderr()))


def everybody_can_be_looked_into():
    """Else what was there when the trace began is kept."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            process.name.isdigit() and (process / "maps").open().close()
        except PermissionError:
            return False
        except OSError:
            continue
    return True


def wait_let_go(tracing, count):
    wait_until(lambda: let_go(tracing) >= count or not tracing.alive(), f"{count} files let go")
    check_equal(let_go(tracing), count, f"files let go\n{tracing.stderr()}")


@scenario
def files_that_are_gone_make_room_for_others(run):
    """A program that is replaced again and again, far more often than files can be followed at once."""
    later, count, room = Later(run), times(300, 16), 8
    path, fresh = run.dir / "replaced", run.dir / "fresh"
    shutil.copy(later.program, path)
    tracing = attach(run, [f"usdt:{path}:late:own"], "--max-followed", room)
    time.sleep(0.05)  # inodes know to some milliseconds when they were made
    before = descriptors_of(tracing)
    for n in range(count):
        shutil.copy(later.program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
        if n >= room - 2:
            wait_until(lambda: let_go(tracing) > n + 2 - room, "room")  # the first one is none that came
    wait_let_go(tracing, count if everybody_can_be_looked_into() else count - 1)  # all but the last
    check(descriptors_of(tracing) <= before + 8, f"descriptors: {before}, and {descriptors_of(tracing)} afterwards")
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    result = finish(tracing)
    result.check_accounted(3 * count + 3, lost=0)
    check_equal(sum(probe["hits"] > 0 for probe in result.summary["probes"]), count, "files with hits of their own")
    notices = [line for line in result.stderr.splitlines() if line.startswith("let go: ")]
    print(f"  {let_go(tracing)} files let go by {len(notices)} notices")


@scenario
def a_file_that_is_gone_is_traced_as_long_as_somebody_runs_it(run):
    """By those that have it mapped, whatever became of its name; and by who had it open, and maps it again."""
    later = Later(run)
    pid = later.start()
    tracing = attach(run, ["late:*"], "-p", pid)
    gone = later.build("libgone.so")
    check_equal(later.order("open", gone), 0, "dlopen")
    wait_followed(tracing)
    with open(gone, "rb") as kept:
        os.unlink(gone)
        later.order("fire", 5)
        wait_until(lambda: "libgone.so was removed" in tracing.stderr(), "notice")
        time.sleep(1.5)
        check_equal(let_go(tracing), 0, f"files let go\n{tracing.stderr()}")
        later.order("fire", 5)
        later.order("close")
        wait_let_go(tracing, 1)
        check_equal(later.order("open", f"/proc/{os.getpid()}/fd/{kept.fileno()}"), 0, "dlopen")
        wait_followed(tracing, 2)
        later.order("fire", 7)
    result = finish(tracing)
    result.check_accounted(17, lost=0)
    check_equal(numbers(result, "hit"), list(range(17)), "values")


@scenario
def probes_that_processes_made_go_with_them(run):
    """Code in files without a name, of processes that live for a moment."""
    require_root()
    program, count, room = run.tool.parent / "runtime-probes", times(100, 8), 4
    tracing = attach(run, ["ticks:tick"], "--wait", "--max-followed", room, "--by", "arg0", ready="waiting: ")
    time.sleep(0.05)
    before = descriptors_of(tracing)
    for n in range(count):
        process = run.start(program, "tick", 3, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        wait_line(process)
        wait_followed(tracing, n + 1)
        process.stdin.write(b"\n")
        check_equal(process.wait(60), 0, "exit code of the program")
        if n >= room:
            wait_until(lambda: let_go(tracing) > n + 1 - room, "room")  # the first one was waited for
    wait_let_go(tracing, count)
    print(f"  descriptors: {before} before, {descriptors_of(tracing)} with all of {count} gone")
    expect_rows(finish(tracing), {(n,): count for n in range(3)})


@scenario
def a_program_of_a_container_is_there_also_when_nobody_runs_it(run):
    """Of a mount namespace that others live in; once they are gone, so is the program."""
    later = Later(run)
    script = ("mount -t tmpfs none /mnt && echo up && read line && "
              f"cp {shlex.quote(str(later.program))} /mnt/later && sleep 1 | /mnt/later && /mnt/later 3 && echo ran && read line && /mnt/later 3 && echo again && read line")
    container = run.start("unshare", "-m", "sh", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    check_equal(wait_line(container), "up", "the container")
    tracing = attach(run, ["late:own"], "--wait", ready="waiting: ")
    time.sleep(0.05)
    container.stdin.write(b"\n")
    check_equal(wait_line(container), "ran", "the container")
    wait_followed(tracing)
    time.sleep(1.5)
    container.stdin.write(b"\n")
    check_equal(wait_line(container), "again", "the container")
    check_equal(let_go(tracing), 0, f"files let go\n{tracing.stderr()}")
    container.stdin.write(b"\n")
    container.wait(10)
    wait_let_go(tracing, 1)
    finish(tracing).check_accounted(6, lost=0)


@scenario
def a_file_that_is_not_there_yet_is_waited_for(run):
    later = Later(run)
    path = run.dir / "not-yet" / "program"
    tracing = run.trace_start([f"usdt:{path}:late:own"], "--wait")
    wait_until(lambda: "waiting: " in tracing.stderr(), "notice")
    path.parent.mkdir()
    shutil.copy(later.program, path)
    wait_followed(tracing)
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    finish(tracing).check_accounted(3, lost=0)


@scenario
def a_file_is_waited_for_while_others_start_programs_without_a_pause(run):
    """Nothing tells of a directory that is not there yet: it is looked for, however much else there is to hear of."""
    later = Later(run)
    path = run.dir / "not-yet" / "program"
    tracing = run.trace_start([f"usdt:{path}:late:own"], "--wait")
    wait_until(lambda: "waiting: " in tracing.stderr(), "notice")
    storm = [run.start("sh", "-c", "while :; do /bin/true; done") for _ in range(os.cpu_count() + 1)]
    path.parent.mkdir()
    shutil.copy(later.program, path)
    wait_followed(tracing)
    for each in storm:
        each.kill()
    check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    finish(tracing).check_accounted(3, lost=0)


@scenario
def waiting_ends_when_it_is_asked_to(run):
    tracing = run.trace_start(["usdt:/nowhere/at/all:late:own"], "--wait")
    wait_until(lambda: "waiting: " in tracing.stderr(), "notice")
    tracing.signal(signal.SIGINT)
    result = tracing.finish(10)
    result.check_code(0)
    check("nothing came that matches" in result.stderr, result.describe())


@scenario
def waiting_ends_by_the_signal_that_would_write_a_recording(run):
    tracing = attach(run, ["no_such:probe"], "--wait", "--record", run.dir / "flight", "--last", "10s", "--dump-on",
                     "signal", ready="waiting: ")
    tracing.process.send_signal(signal.SIGUSR1)
    tracing.process.wait(10)
    check_equal(tracing.process.returncode, 0, "exit code")
    check("nothing came that matches" in tracing.stderr(), tracing.stderr())


@scenario
def who_waited_in_vain_has_a_summary(run):
    done = subprocess.run([str(run.tool), "no_such:probe", "--wait", "-f", "json", "-d", "0.2"], capture_output=True,
                          timeout=30)
    check_equal(done.returncode, 0, done.stderr.decode())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check_equal([(each["type"], each["hits"], each["probes"]) for each in lines], [("summary", 0, [])], "lines")


@scenario
def a_path_without_a_file_is_waited_for(run):
    """Its file was removed, and nobody runs it: that is not the end."""
    later = Later(run)
    path, fresh = run.dir / "again", run.dir / "fresh"
    tracing = attach(run, [f"usdt:{path}:late:own"], "--wait", ready="waiting: ")
    time.sleep(0.2)  # it says so before it looks; and inodes know to some milliseconds when they were made
    for n in range(2):
        shutil.copy(later.program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
        path.unlink()
        wait_let_go(tracing, n + 1)
        time.sleep(0.3)
        check(tracing.alive(), tracing.stderr())
    finish(tracing).check_accounted(6, lost=0)


@scenario
def short_lived_processes_exhaust_nothing(run):
    """Each hit of the processes that began after the file was attached is delivered or counted as lost."""
    later, count = Later(run), times(2000, 200)
    tracing = attach(run, [f"usdt:{later.program}:late:own"])
    descriptors = pathlib.Path(f"/proc/{tracing.process.pid}/fd")
    later.start()
    before = len(list(descriptors.iterdir()))
    check_equal(later.order("run", count, later.program), count, "programs that ended well")
    check(len(list(descriptors.iterdir())) <= before, "descriptors were used up")
    finish(tracing).check_accounted(3 * count)


CONTAINER = "0123456789abcdef" * 4


class Cgroup:
    """A cgroup (v2) in which programs can be run."""

    def __init__(self, name):
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        trees = [words[1] for words in mounts if words[2] == "cgroup2"]
        if not trees or not os.access(trees[0], os.W_OK):
            raise Skip("no cgroup v2 that could be written to")
        if os.stat("/proc/self/ns/cgroup").st_ino != 0xEFFFFFFB:
            raise Skip("a cgroup namespace, in which it cannot be told how deep a cgroup is")
        self.name, self.path = name, pathlib.Path(trees[0]) / name

    def make(self):
        self.path.mkdir()

    def remove(self):
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), f"{self.path} without processes")
        self.path.rmdir()

    def run(self, program, count):
        """The program in the cgroup."""
        enter = f"echo $$ > {self.path}/cgroup.procs && exec {program} {count}"
        check_equal(subprocess.run(["sh", "-c", enter]).returncode, 0, "exit code of the program")


def trace_cgroup(run, name, *options):
    """Hits of a program in a cgroup and outside, in one below it, and in another one made under the same name."""
    require_root()
    later, cgroup = Later(run), Cgroup(name)
    cgroup.make()
    inner = Cgroup(f"{name}/inner")
    try:
        tracing = attach(run, [f"usdt:{later.program}:late:own"], *options)
        subprocess.run([later.program, "100"], check=True)
        cgroup.run(later.program, 3)
        inner.make()
        inner.run(later.program, 4)
        inner.remove()
        cgroup.remove()
        wait_followed(tracing, 1)
        cgroup.make()
        wait_followed(tracing, 2)
        cgroup.run(later.program, 5)
        result = finish(tracing)
    finally:
        for each in (inner, cgroup):
            if each.path.exists():
                each.remove()
    result.check_accounted(3 + 4 + 5, lost=0)


@scenario
def processes_of_a_cgroup_are_traced_also_when_it_comes_again(run):
    name = f"usdt-test-{os.getpid()}"
    trace_cgroup(run, name, "--cgroup", name)


@scenario
def a_container_is_found_by_the_beginning_of_its_id(run):
    identifier = f"{os.getpid():012x}{CONTAINER}"[:64]
    trace_cgroup(run, f"docker-{identifier}.scope", "--container", identifier[:12])


def table(result):
    """The last one's rows by key."""
    return {tuple(row["key"]): row for row in [line for line in result.records if line["type"] == "table"][-1]["rows"]}


def expect_rows(result, counts):
    check_equal({key: row["count"] for key, row in table(result).items()}, counts, result.describe())
    check_equal((result.summary["events"], result.summary["hits"]), (sum(counts.values()),) * 2, "hits in the summary")


def open_two(later, tracing, first, second):
    """`first` calls of a library that is opened while it is traced, then `second` of another one."""
    other = later.build("libother.so")
    for number, (library, count) in enumerate(((later.library, first), (other, second)), 1):
        later.order("close")
        check_equal(later.order("open", library), 0, "dlopen")
        wait_followed(tracing, number)
        later.order("fire", count)
    return other


@scenario
def tables_have_the_hits_of_what_came_while_they_were_filled(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "probe, arg0 & 1", "--sum", "arg0")
    other = open_two(later, tracing, 7, 4)  # 0 to 6, and 7 to 10
    result = finish(tracing)
    first, second = f"usdt:{later.library}:late:hit", f"usdt:{other}:late:hit"
    expect_rows(result, {(first, 0): 4, (first, 1): 3, (second, 0): 2, (second, 1): 2})
    check_equal({key: row["sum"] for key, row in table(result).items()},
                {(first, 0): 12, (first, 1): 9, (second, 0): 18, (second, 1): 16}, "sums")


@scenario
def what_comes_finds_as_much_room_in_a_table_as_is_left(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "arg0", "--max-rows", "9")
    open_two(later, tracing, 7, 4)  # 0 to 6, and 7 to 10
    result = finish(tracing)
    check_equal(table(result).keys(), {(n,) for n in range(9)}, "rows")
    check_equal((result.summary["events"], result.summary["lost"]["table_full"]), (9, 2), "hits")


@scenario
def a_table_grows_while_it_is_shown(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "name", "--hist", "arg0", "--interval", "0.05",
                     "--top", "3")
    open_two(later, tracing, 5, 3)
    wait_until(lambda: tracing.stdout().count('"table"') > 3, "tables")
    result = finish(tracing)
    [row] = table(result).values()
    check_equal([(bar["first"], bar["last"], bar["count"]) for bar in row["buckets"]],
                [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 4)], "ranges of 0 to 7")


@scenario
def rows_of_a_file_that_was_replaced_and_waited_for_are_in_one_table(run):
    later, count = Later(run), times(50, 6)
    path, fresh = run.dir / "replaced", run.dir / "fresh"
    tracing = run.trace_start([f"usdt:{path}:late:own"], "--wait", "--by", "arg0")
    wait_until(lambda: "waiting: " in tracing.stderr(), "notice")
    for n in range(count):
        shutil.copy(later.program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        check_equal(subprocess.run([path, "3"]).returncode, 0, "exit code of the program")
    expect_rows(finish(tracing), {(n,): count for n in range(3)})


@scenario
def what_would_be_a_row_of_another_kind_is_refused_and_said(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "arg0")
    later.order("open", later.build("libunsigned.so", "-DTYPE=unsigned long"))
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    later.order("fire", 10)
    later.order("close")
    later.order("open", later.library)
    wait_until(lambda: "\nfollowed: " in tracing.stderr(), "followed")
    check_equal(later.order("fire", 2), 12, "calls by the program's own count")
    result = finish(tracing)
    check("arg0: a key of another type" in result.stderr, result.stderr)
    check_equal([each.get("error", "")[:4] for each in followed(result)], ["arg0", ""], "what was followed")
    expect_rows(result, {(10,): 1, (11,): 1})


@scenario
def stacks_of_what_came_are_keys_as_others(run):
    later = Later(run)
    tracing = attach(run, ["late:*"], "-p", later.start(), "--by", "ustack")
    later.order("open", later.library)
    wait_followed(tracing)
    later.order("fire", 9)
    result = finish(tracing)
    [row] = [line for line in result.records if line["type"] == "table"][-1]["rows"]
    check_equal((row["count"], row["key"][0][0]["function"]), (9, "late_fire"), result.describe())


def recorded(run, form, *options):
    """What was shown of a trace of two libraries that were opened meanwhile, and its recording."""
    later = Later(run)
    recording, shown = run.dir / "recording", run.dir / "shown"
    argv = run.tool_argv(["late:*"], ["-p", later.start(), "--record", recording, *options], output=form)
    tracing = Tracing([*argv, "-o", str(shown)], run.dir)
    run.adopt(tracing.process)
    wait_until(lambda: "attached " in tracing.stderr(), "attached")
    open_two(later, tracing, 500, 3)
    finish(tracing)
    return recording, shown


def replay(run, recording, *options):
    return subprocess.run([run.tool, "--replay", recording, *options], capture_output=True, text=True, timeout=60)


@scenario
def a_recording_has_what_came_while_it_was_made(run):
    for form in ("text", "json"):
        for options in ([], ["--print", "arg0", "--print", "late:*=hex(arg0)"]):
            recording, shown = recorded(run, form, *options)
            done = replay(run, recording, "-f", form)
            check_equal((done.returncode, done.stderr.count("followed: ")), (0, 2), done.stderr)
            check_equal(done.stdout, shown.read_text(), f"{form} {options}")
            check_equal(len(re.findall("late:hit.* *args?", done.stdout)), 503, "events")


@scenario
def a_recording_that_was_cut_is_read_up_to_what_came_then(run):
    recording, _ = recorded(run, "json")
    whole = recording.read_bytes()
    cut, seen = run.dir / "cut", set()
    for size in range(16, len(whole), max(1, len(whole) // 200)):
        cut.write_bytes(whole[:size])
        done = replay(run, cut, "-f", "json", "-q")
        if done.returncode == 2:  # nothing of what was traced is there yet
            continue
        check_equal(done.returncode, 1, f"{size} of {len(whole)} bytes: {done.stderr}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        args = [line["args"][0] for line in lines if line["type"] == "event"]
        check_equal(args, list(range(len(args))), f"{size} of {len(whole)} bytes")
        seen.add((sum(line["type"] == "followed" for line in lines), len(args)))
    check({0, 1, 2} == {came for came, _ in seen}, f"what came, and events: {sorted(seen)}")


@scenario
def tables_of_a_recording_have_what_came(run):
    recording, _ = recorded(run, "json")
    done = replay(run, recording, "-f", "json", "--by", "name, arg0 >= 500")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check_equal({tuple(row["key"]): row["count"] for line in lines if line["type"] == "table" for row in line["rows"]},
                {("hit", 0): 500, ("hit", 1): 3}, done.stderr)


def spans_program(run):
    require_root()
    return run.build("spans-of", [puppet.HERE / "spans.c"], ["-O2", "-g"], libs=["-lpthread"])


def expect_spans(lines, count):
    """`count` runs of `spans pairs 2 100`: what each end said, and that its account adds up."""
    spans = [line for line in lines if line["type"] == "span"]
    by_process = collections.defaultdict(list)
    for span in spans:
        check_equal(span["end_args"], [span["args"][0], span["args"][0] % 10_000_000 % 1000 - 300], f"{span}")
        by_process[span["pid"]].append(span["args"])
    expected = sorted([thread * 10_000_000 + n, thread] for thread in range(2) for n in range(100))
    check_equal([sorted(args) for args in by_process.values()], [expected] * count, "spans of each process")
    summary = lines[-1]
    check_equal((summary["events"], summary["hits"]), (200 * count, 400 * count), "events and hits")
    check_equal(sum(probe.get("paired", 0) for probe in summary["probes"]), 200 * count, "pairs")
    check_equal([key for probe in summary["probes"] for key in ("in_flight", "unmatched") if probe.get(key)], [], "rest")


def trace_replaced_spans(run, *options):
    """A program that is not there yet, and is replaced again and again."""
    program, count, path, fresh = spans_program(run), times(50, 4), run.dir / "spans", run.dir / "fresh"
    path.unlink(missing_ok=True)
    tracing = attach(run, [f"usdt:{path}:spans:begin", "~~", f"usdt:{path}:spans:end"], "--wait", *options, ready="waiting: ")
    for n in range(count):
        shutil.copy(program, fresh)
        os.rename(fresh, path)
        wait_followed(tracing, n + 1)
        subprocess.run([path, "pairs", "2", "100"], check=True, stdout=subprocess.DEVNULL)
    return finish(tracing), count


@scenario
def spans_of_a_program_that_is_waited_for_and_replaced_are_traced(run):
    result, count = trace_replaced_spans(run)
    expect_spans(result.records, count)
    check_equal({(each["probes"], each["sites"], each["attached"]) for each in followed(result)}, {(2, 11, 11)}, "followed")


@scenario
def spans_that_came_are_in_the_same_table_and_recording(run):
    result, count = trace_replaced_spans(run, "--by", "arg1", "--sum", "end.arg1")
    expected = {(thread,): count * sum(n - 300 for n in range(100)) for thread in range(2)}
    check_equal({key: row["sum"] for key, row in table(result).items()}, expected, "sums")
    recording = run.dir / "recording"
    trace_replaced_spans(run, "--record", recording)
    done = replay(run, recording, "-f", "json")
    check_equal(done.returncode, 0, done.stderr)
    expect_spans([json.loads(line) for line in done.stdout.splitlines()], count)


@scenario
def spans_are_waited_for_until_both_their_ends_are_there(run):
    program = spans_program(run)
    begins, ends = run.dir / "begins", run.dir / "ends"
    names = [f"usdt:{begins}:spans:begin", "~~", f"usdt:{ends}:spans:end"]
    tracing = attach(run, names, "--wait", "--pair-by", "arg0", ready="waiting: ")
    fresh = run.dir / "fresh"
    for path in (ends, begins):
        shutil.copy(program, fresh)
        os.rename(fresh, path)
        wait_until(lambda: " on: " in tracing.stderr(), "notice")
    wait_followed(tracing)
    for each in (begins, ends):
        subprocess.run([each, "pairs", "1", "100"], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(program, fresh)
    os.rename(fresh, begins)
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    result = finish(tracing)
    check("spans only begin in it" in result.stderr, result.stderr)
    spans = [line for line in result.records if line["type"] == "span"]
    check_equal([(span["args"][0], span["end_args"][0]) for span in spans], [(n, n) for n in range(100)], "spans")


@scenario
def a_print_list_of_a_probe_that_comes_later_is_checked_then(run):
    later = Later(run)
    lists = ["--print", "pid", "--print", "late:hit=hex(arg0)"]
    tracing = attach(run, ["late:*"], "-p", later.start(), *lists)
    check("late:hit=...' is for no probe of this trace yet: late:own" in tracing.stderr(), tracing.stderr())
    later.order("open", later.library)
    wait_followed(tracing)
    later.order("fire", 3)
    check_equal(numbers(finish(tracing), "hit"), ["0x0", "0x1", "0x2"], "values")
    tracing = attach(run, ["late:*"], "-p", later.start(), "--print", "late:hit=nosuch")
    later.order("open", later.library)
    wait_until(lambda: "not followed: " in tracing.stderr(), "notice")
    result = finish(tracing)
    check("--print nosuch: no such argument: late:hit(" in result.stderr, result.stderr)
    refused = run.trace(["late:*"], "-p", later.start(), "--print", "late:hit=arg0", "--no-follow")
    refused.check_code(2)
    check("is for no probe of this trace, or only" in refused.stderr, refused.stderr)


class Children:
    """A process that starts copies of its program, and is traced with them."""

    def __init__(self, run, *options, copies=5):
        self.later = Later(run)
        self.copies = [run.dir / f"copy{n}" for n in range(copies)]
        for path in self.copies:
            shutil.copy(self.later.program, path)
        pid = self.later.start()
        self.tracing = attach(run, ["late:own"], "-p", pid, "--children", *options)

    def run(self, count):
        """Each copy `count` times."""
        for path in self.copies:
            check_equal(self.later.order("run", count, path), count, "programs that ended well")


@scenario
def programs_held_at_their_start_are_seen_from_their_first_instruction(run):
    count = times(200, 40)
    children = Children(run, "--hold-exec")
    children.run(count)
    result = finish(children.tracing)
    print(*(line for line in result.stderr.splitlines() if " held at their start" in line))
    check("went on after a second" not in result.stderr, result.describe())
    check_equal({each["file"] for each in followed(result)}, {str(path) for path in children.copies}, result.describe())
    seen = collections.Counter(event["pid"] for event in result.events)
    check_equal((len(seen), set(seen.values())), (count * len(children.copies), {3}), result.describe())
    result.check_accounted(3 * count * len(children.copies), lost=0)


@scenario
def programs_are_held_once_the_tracer_says_that_it_has_attached(run):
    """Whatever the time is that it takes to be told of programs, here a fifth of a second."""
    require_program("strace")
    slow = run.dir / "slow"
    slow.write_text("#!/bin/sh\nexec strace -D -f -qq -o /dev/null -e trace=fanotify_init "
                    f"-e inject=fanotify_init:delay_enter=200000 {shlex.quote(str(run.tool))} \"$@\"\n")
    slow.chmod(0o755)
    run.tool = slow
    children = Children(run, "--hold-exec", copies=1)
    children.run(5)
    finish(children.tracing).check_accounted(3 * 5, lost=0)


@scenario
def a_tracer_that_is_killed_leaves_nothing_held(run):
    children = Children(run, "--hold-exec", copies=1)
    children.run(1)
    children.tracing.signal(signal.SIGSTOP)
    order = f"run 5 {children.copies[0]}\n".encode()
    children.later.process.stdin.write(order)
    ready, _, _ = select.select([children.later.process.stdout], [], [], 0.2)
    children.tracing.signal(signal.SIGKILL)
    check_equal(ready, [], "programs that ran while who holds them did not")
    check_equal(int(wait_line(children.later.process)), 5, "programs that ended well")


@scenario
def ctrl_z_does_not_stop_who_holds_programs(run):
    children = Children(run, "--hold-exec", copies=1)
    children.run(1)
    # A process group without a parent in its session is stopped by no terminal, so that sending it may show nothing.
    status = pathlib.Path(f"/proc/{children.tracing.process.pid}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\s*(\w+)", status, re.M).group(1), 16)
    for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        check(ignored >> (number - 1) & 1, f"{number.name} would stop it")
    children.tracing.signal(signal.SIGTSTP)
    children.run(5)
    finish(children.tracing).check_accounted(3 * 6, lost=0)


if __name__ == "__main__":
    main()
