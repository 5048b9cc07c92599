#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that change while they are traced. The kernel keeps breakpoints by inode and offset: once a library is written
to in place, every program that starts from then on gets them in the middle of other code."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import Skip, check, check_equal, main, require_program, scenario, wait_line, wait_until  # noqa: E402
from puppet import Puppet, check_beats, probe_of  # noqa: E402

SOURCES = puppet.HERE / "attach"


class Library:
    """The library in two builds, and programs that use it."""

    def __init__(self, run, where=None):
        puppet.require_root()
        self.run, self.where = run, where or run.dir
        flags = ["-O1", "-shared", "-fPIC", "-nostartfiles"]
        older = run.build("older.so", [SOURCES / "shared_code.c"], flags)
        self.newer = run.build("newer.so", [SOURCES / "shared_code.c"], [*flags, "-DNEWER"])
        sites = [puppet.note(path, "code").pc for path in (older, self.newer)]
        check(sites[0] + 1000 < sites[1], f"the older site is no place in the newer computation: {sites}")
        self.path = self.where / "libshared.so"
        shutil.copy(older, self.path)
        libs = [f"-L{self.where}", "-lshared", f"-Wl,-rpath,{self.where}"]
        self.user = run.build("user", [SOURCES / "shared_user.c"], ["-O1"], libs=libs)
        self.probe = f"usdt:{self.path}:shared:code"

    def trace(self, *more, **options):
        tracing = self.run.trace_start([self.probe, *more], **options)
        wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "attached")
        check(tracing.alive(), tracing.stderr())
        return tracing

    def start_user(self):
        """A process that has the library mapped; returns what calls it once."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        process = self.run.start(self.user, **pipes)

        def call():
            process.stdin.write(b"\n")
            return int(wait_line(process))

        call()
        return call

    def use(self, calls=3):
        """The exit code of a new process that calls the library: 0 where all goes well."""
        return subprocess.run([self.user, str(calls)], timeout=30).returncode

    def check_unharmed(self):
        for _ in range(3):
            check_equal(self.use(), 0, "exit code of a new process")


def overwrite(path, newer):
    """As cp does."""
    with open(newer, "rb") as source, open(path, "wb") as target:
        target.write(source.read())


def changes(result):
    return [(pathlib.Path(each["file"]).name, each["change"], each["let_go"]) for each in result.summary["changed"]]


def finish(tracing):
    tracing.signal(signal.SIGINT)
    return tracing.finish()


def overwritten_with(run, *options):
    library, program = Library(run), puppet.build(run)
    other = Puppet(run, program)
    tracing = library.trace(probe_of(program), *options)
    other.wait_attached()
    check_equal(library.use(), 0, "exit code before")
    overwrite(library.path, library.newer)
    library.check_unharmed()
    wait_until(lambda: "was written to" in tracing.stderr(), "notice")
    check(f"{library.path} was written to" in tracing.stderr(), tracing.stderr())
    other.order("fire:5")
    result = finish(tracing)
    result.check_code(0)
    check_equal(changes(result), [("libshared.so", "written", 1)], "changes in the summary")
    check_equal(len(result.by_name()["code"]), 3, "events of the library before it was written to")
    check_beats(result.by_name()["beat"], range(5))
    result.check_accounted(8, lost=0)
    check(f"{library.path}" in result.stderr.split(" events of ")[-1], f"not in the account\n{result.describe()}")
    other.wait_clean()


@scenario
def a_library_overwritten_in_place_is_let_go_and_the_others_are_traced_on(run):
    overwritten_with(run)


@scenario
def the_same_by_perf_uprobes(run):
    overwritten_with(run, "--backend", "perf_uprobe")


@scenario
def who_has_the_library_open_for_writing_before_the_trace_is_seen(run):
    library = Library(run)
    with open(library.path, "r+b", buffering=0) as writer:
        tracing = library.trace(probe_of(puppet.build(run)))
        check_equal(library.use(), 0, "exit code before")
        # Of another size and in small pieces, so that the trace lets go amid the writing.
        content = library.newer.read_bytes()
        for at in range(0, len(content), 512):
            writer.write(content[at:at + 512])
            time.sleep(0.002)
        wait_until(lambda: "was written to" in tracing.stderr(), "notice", timeout=2)
        time.sleep(0.1)
        library.check_unharmed()
    result = finish(tracing)
    result.check_code(0)
    check_equal(changes(result), [("libshared.so", "written", 1)], "changes in the summary")


@scenario
def a_library_replaced_by_mv_is_said_and_traced_on_where_it_runs(run):
    library = Library(run)
    call = library.start_user()
    tracing = library.trace("--no-follow")
    fresh = library.where / "fresh"
    shutil.copy(library.newer, fresh)
    os.rename(fresh, library.path)
    wait_until(lambda: "names another file now" in tracing.stderr(), "notice")
    library.check_unharmed()
    for i in range(4):
        check_equal(call(), 4001 + i, "result in the process that runs")
    result = finish(tracing)
    result.check_code(0)
    check_equal(changes(result), [("libshared.so", "replaced", 0)], "changes in the summary")
    check_equal([event["args"] for event in result.events], [[4001 + i] for i in range(4)], "events")


@scenario
def strict_does_not_call_a_trace_whole_that_let_a_file_go(run):
    library = Library(run)
    tracing = library.trace(probe_of(puppet.build(run)), "--strict")
    overwrite(library.path, library.newer)
    wait_until(lambda: "was written to" in tracing.stderr(), "notice")
    finish(tracing).check_code(3)


@scenario
def a_trace_with_nothing_left_to_trace_ends_and_says_so(run):
    library = Library(run)
    tracing = library.trace()
    check_equal(library.use(), 0, "exit code before")
    overwrite(library.path, library.newer)
    library.check_unharmed()
    result = tracing.finish(10)
    result.check_code(1)
    result.check_accounted(3, lost=0)
    check("nothing is left to trace" in result.stderr, result.describe())


@scenario
def a_library_copied_up_by_overlayfs_is_said_and_harms_nobody(run):
    require_program("mount")
    puppet.require_root()
    lower, upper, work, merged = (run.dir / name for name in ("lower", "upper", "work", "merged"))
    for directory in (lower, upper, work, merged):
        directory.mkdir()
    mount = ["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged]
    below = Library(run, lower)
    if subprocess.run([str(word) for word in mount], capture_output=True).returncode != 0:
        raise Skip("no overlayfs on this directory's file system")
    try:
        library = Library(run, merged)  # written to the upper layer
        shutil.copystat(below.path, library.path)
        (upper / library.path.name).unlink()  # and now it is the lower one's
        subprocess.run(["umount", str(merged)], check=True)
        subprocess.run([str(word) for word in mount], check=True)
        tracing = library.trace()
        check_equal(library.use(), 0, "exit code before")
        overwrite(library.path, library.newer)
        check((upper / library.path.name).exists(), "not copied up")
        library.check_unharmed()
        wait_until(lambda: str(library.path) in tracing.stderr() and "was written to" in tracing.stderr(), "notice")
        result = tracing.finish(10) if not tracing.alive() else finish(tracing)
        check_equal([change for _, change, _ in changes(result)], ["written"], "changes in the summary")
        check_equal(below.path.read_bytes() == library.newer.read_bytes(), False, "the lower file is as it was")
    finally:
        for process in run._processes:
            process.kill()
            process.wait()
        subprocess.run(["umount", str(merged)], check=False)


if __name__ == "__main__":
    main()
