#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What comes while a trace runs: libraries that are opened, programs that are started, files that take the place of
others, probes that are made. The programs count themselves what they do.

USDT_LONG=1: the whole storms, minutes of them."""

import collections
import contextlib
import json
import mmap
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from follow_support import Later, attach, expect_rows, finish, followed, let_go, numbers, wait_followed, wait_let_go  # noqa: E402
from harness import check, check_equal, main, require_root, scenario, wait_line, wait_until, with_long  # noqa: E402


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
    later, count = Later(run), with_long(500, 100)
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
    later, count = Later(run), with_long(50, 12)
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


@contextlib.contextmanager
def appended(path):
    """A process of its own goes on appending to the file, as its owner may; on a busy machine it is not kept from it."""
    words = ("import os, sys, time\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\n"
             "with open(sys.argv[1], 'ab', buffering=0) as own:\n  while own.write(b'x'): time.sleep(.0005)")
    writer = subprocess.Popen([sys.executable, "-c", words, path])
    size = path.stat().st_size
    try:
        wait_until(lambda: path.stat().st_size > size, "somebody writes")
        yield
    finally:
        writer.kill()
        writer.wait()


@scenario
def who_goes_on_writing_an_own_file_keeps_nobody_from_tracing_the_others(run):
    good, bad = Later(run), Later(run)
    written = run.dir / "libwritten.so"
    shutil.copy(good.library, written)
    for later, library in ((good, good.library), (bad, written)):
        later.start()
        check_equal(later.order("open", library), 0, "dlopen")
    with appended(written):
        tracing = attach(run, ["late:hit"])
        check_equal(good.order("fire", 1000), 1000, "hits by the program's own count")
        bad.order("fire", 10)
    [left_out] = [line for line in tracing.stderr().splitlines() if "not attached: " in line]
    check(f"usdt:{written}:late:hit" in left_out and left_out.endswith("attached: is somebody writing it?"), left_out)
    wait_until(lambda: f"\nfollowed: {written}" in tracing.stderr(), "the file at rest")
    bad.order("fire", 7)
    result = finish(tracing)
    by_file = collections.Counter(event["probe"].split(":")[1] for event in result.events)
    check_equal(by_file, {str(good.library): 1000, str(written): 7}, "hits by file")
    result.check_accounted(1007, lost=0)


@scenario
def a_file_that_is_named_alone_and_written_all_the_time_is_an_error(run):
    later = Later(run)
    with appended(later.library):
        result = run.trace([f"usdt:{later.library}:late:hit"], timeout=60)
    result.check_code(1)
    check(f"{later.library} changed on disk while it was being attached: is somebody writing it?" in result.stderr,
          result.describe())


def descriptors_of(tracing):
    return len(list(pathlib.Path(f"/proc/{tracing.process.pid}/fd").iterdir()))


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


@scenario
def files_that_are_gone_make_room_for_others(run):
    """A program that is replaced again and again, far more often than files can be followed at once."""
    later, count, room = Later(run), with_long(300, 16), 8
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


def descriptors_of_libraries(tracing):
    """Those of the files that it traces."""
    files = set()
    for each in pathlib.Path(f"/proc/{tracing.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            files.add(os.readlink(each))
    return sum(name.endswith(".so") and "/lib" in name for name in files)


def attached_later(tracing):
    return sum(line.startswith("followed: ") for line in tracing.stderr().splitlines())


def wait_said(tracing, words):
    wait_until(lambda: words in tracing.stderr() or not tracing.alive(), words)


@scenario
def files_that_nobody_has_mapped_make_room_for_others(run):
    """They still have their names. Once a few places are left, those go that were mapped longest ago."""
    later, count, room = Later(run), 20, 8
    kept = Later(run)  # has its library mapped all the time
    tracing = attach(run, ["late:hit"], "--wait", "--max-followed", room, ready="waiting: ")
    kept.start()
    kept.order("open", kept.library)
    wait_followed(tracing)
    later.start()
    for n in range(count):
        library = run.dir / f"lib{n}.so"
        shutil.copy(later.library, library)
        later.order("open", library)
        wait_followed(tracing, n + 2)
        check_equal(later.order("fire", 10), 10 * (n + 1), "hits by the program's own count")
        later.order("close")
        if n + 2 >= room:
            wait_until(lambda: descriptors_of_libraries(tracing) < room, "room", 60)
    check_equal(later.order("open", run.dir / "lib0.so"), 0, "dlopen")
    wait_followed(tracing, count + 2)
    later.order("fire", 10)
    kept.order("fire", 10)
    result = finish(tracing)
    result.check_accounted(10 * count + 20, lost=0)
    said = [line for line in result.stderr.splitlines() if line.startswith("let go, to make room for others: ")]
    check_equal(len(said), 1, f"times it was said\n{result.describe()}")
    check(re.search(r"  \d+ files that nobody had mapped let go, to make room", result.stderr), result.describe())


@scenario
def one_user_does_not_take_the_places_of_all_others(run):
    later, room = Later(run), 8
    where = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        os.chmod(where, 0o755)
        libraries = [where / f"lib{n}.so" for n in range(2 * room)]
        for library in libraries:
            shutil.copy(later.library, library)
            os.chown(library, 65534, 65534)
        mapped = [library.open("rb") for library in libraries]
        tracing = attach(run, ["late:hit"], "--wait", "--max-followed", room, ready="waiting: ")
        maps = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC) for file in mapped]
        wait_said(tracing, "not followed: files of a user who has as many as one may have")
        wait_until(lambda: attached_later(tracing) == room // 2, "half of the places")
        later.start()
        later.order("open", later.library)
        wait_until(lambda: attached_later(tracing) == room // 2 + 1, "the other user's")
        check_equal(later.order("fire", 1000), 1000, "hits by the program's own count")
        result = finish(tracing)
        result.check_accounted(1000, lost=0)
        for each in maps + mapped:
            each.close()
    finally:
        shutil.rmtree(where)


@scenario
def files_that_go_before_they_can_be_attached_hold_up_nobody(run):
    """Programs that come and go faster than they can be attached, as they do where the processors are busy."""
    later, count = Later(run), 300
    tracing = attach(run, ["late:own"], "--wait", "--max-followed", count, ready="waiting: ")
    time.sleep(0.05)
    for n in range(count):
        path = run.dir / f"brief{n}"
        shutil.copy(later.program, path)
        subprocess.run([path, "1"], check=True)
        os.unlink(path)
    later.start()
    wait_until(lambda: f"process {later.process.pid} runs" in tracing.stderr(), "the one that stays", 20)
    check_equal(subprocess.run([later.program, "3"]).returncode, 0, "exit code of the program")
    result = finish(tracing)
    too_late = result.stderr.count("it was gone before it could be attached")
    print(f"  {too_late} of {count} files were gone before they could be attached")
    check_equal([probe["hits"] for probe in result.summary["probes"] if probe["hits"] > 1], [3], "hits of the one that stays")


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
    program, count, room = run.tool.parent / "runtime-probes", with_long(100, 8), 4
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
    later, count = Later(run), with_long(2000, 200)
    tracing = attach(run, [f"usdt:{later.program}:late:own"])
    descriptors = pathlib.Path(f"/proc/{tracing.process.pid}/fd")
    later.start()
    before = len(list(descriptors.iterdir()))
    check_equal(later.order("run", count, later.program), count, "programs that ended well")
    check(len(list(descriptors.iterdir())) <= before, "descriptors were used up")
    finish(tracing).check_accounted(3 * count)


if __name__ == "__main__":
    main()
