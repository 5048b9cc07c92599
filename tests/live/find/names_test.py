#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A name that usdt-list prints selects in usdt-trace the sites that were listed, and no others."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402
from harness import attach_at_once, check, check_equal, main, scenario, with_long  # noqa: E402
from puppet import PROBE, Puppet  # noqa: E402

attach_at_once()

ODD = ["plain", "a b", " before", "behind ", "a:b", "x:puppet:beat", "usdt:x", "it's", '"', '"quoted"', "back\\slash",
       "trail\\", "a*b", "a\\*b", "aXb", "*", "\\*", "[1]", "1", "lib[1]*.so", "lib1x.so", "what?", "new\nline",
       "tab\t", "\x1b[31m", "ü", "\x9b1m", "\u202egnp", "$HOME", "`id`", "!!", "~", "{a,b}", "-p", "#", "&;|<>()",
       "gone (deleted)", "\\x41", "\\n", "k", b"\xff\xfe", b"a\xc3", "x" * 200]


def usdt_list(run, *words, cwd=None):
    """Names that usdt-list prints, of the probe puppet:beat."""
    argv = [run.tool.with_name("usdt-list"), *words]
    done = subprocess.run(argv, capture_output=True, cwd=cwd, timeout=60, stdin=subprocess.DEVNULL)
    names = [line.split("\t")[0] for line in done.stdout.decode("utf-8").splitlines()]
    return [name for name in names if name.endswith(PROBE)]


def traced(result):
    """[(name, hits)] of the probes that a trace had attached."""
    check(result.summary is not None, f"no trace\n{result.describe()}")
    return [(probe["probe"], probe["hits"]) for probe in result.summary["probes"]]


def make_odd_files(run):
    """A directory with a copy of the puppet under every odd name: [(name, path)], as bytes."""
    program = puppet.build(run)
    where = run.dir / "odd"
    where.mkdir()
    out = []
    for name in ODD:
        raw = os.fsencode(name) if isinstance(name, str) else name
        path = os.fsencode(where) + b"/" + raw
        shutil.copy(os.fsencode(program), path)
        out.append((raw, path))
    return where, out


@scenario
def listed_names_of_odd_files_select_them_and_no_others(run):
    where, files = make_odd_files(run)
    everyone = ["sh", "-c", f"for each in {where}/* {where}/.[!.]*; do [ -x \"$each\" ] && \"$each\" fire:1; done; :"]
    chosen = {path for _, path in files[::with_long(1, 2)]}  # the next scenario traces the rest
    for raw, path in files:
        names = usdt_list(run, path)
        check_equal(len(names), 1, f"names of {raw!r}")
        check(names[0].isprintable(), f"{names[0]!r} is not printable")
        if path in chosen:
            check_equal(traced(run.trace(names[0], command=everyone)), [(names[0], 1)], f"trace of {raw!r}")
        check_equal(usdt_list(run, names[0]), names, f"listed again by its name, {raw!r}")


@scenario
def listed_names_of_the_directory_one_is_in_select_the_same_there(run):
    where, files = make_odd_files(run)
    chosen = {path for _, path in files[with_long(0, 1)::with_long(1, 2)]}
    for raw, path in files:
        word = raw if b":" not in raw and not raw.startswith(b"-") and raw != b"*" else b"./" + raw
        names = usdt_list(run, word, cwd=where)
        check_equal(len(names), 1, f"names of {word!r}")
        if path not in chosen:
            continue
        result = run.trace(names[0], command=[os.fsdecode(path), "fire:2"], cwd=where)
        check_equal(traced(result), [(names[0], 2)], f"trace of {word!r}")


@scenario
def listed_names_of_a_process_select_the_same_in_it(run):
    where, files = make_odd_files(run)
    for raw, path in files[::4] + [file for file in files if b"*" in file[0] or b"[" in file[0]]:
        target = run.start(os.fsdecode(path), "pause:0")
        inode = os.stat(path).st_ino  # names are escaped there
        maps = pathlib.Path(f"/proc/{target.pid}/maps")
        puppet.wait_until(lambda: re.search(rf" r-xp \S+ \S+ {inode} ", maps.read_text(errors="replace")), "it is mapped")
        names = usdt_list(run, "-p", str(target.pid))
        check_equal(len(names), 1, f"names in the process of {raw!r}")
        result = run.trace(names[0], "-p", target.pid, "--duration", 0)
        check_equal([name for name, _ in traced(result)], names, f"trace in the process of {raw!r}")
        target.kill()
        target.wait()


@scenario
def a_shell_may_take_the_quotes_away(run):
    where, files = make_odd_files(run)
    for raw, path in files:
        if not raw.isascii() or not raw.decode().isprintable() or raw.endswith(b"\\") or b"!" in raw:
            continue  # the shell leaves \xHH as it is
        name, = usdt_list(run, path)
        word = subprocess.run(["bash", "-c", f"printf %s {name}"], capture_output=True, cwd=where, check=True).stdout
        check_equal(usdt_list(run, word), [name], f"{raw!r} pasted into a shell as {name}")


@scenario
def a_star_means_what_runs_and_not_the_directory_one_is_in(run):
    (run.dir / "stray").mkdir()
    program, stray = puppet.build(run), puppet.build(run, "stray/puppet")
    target = Puppet(run, program)
    pattern = f"*:{PROBE}"
    names = usdt_list(run, pattern, cwd=stray.parent)
    check_equal([name for name in names if str(run.dir) in name], [f"usdt:{program}:{PROBE}"], "listed")
    tracing = run.trace_start(pattern, "--no-follow", cwd=stray.parent)
    target.wait_attached()
    target.order("fire:7")
    subprocess.run([stray, "fire:5"], stdout=subprocess.DEVNULL, check=True)
    tracing.signal(signal.SIGINT)
    ours = [each for each in traced(tracing.finish()) if str(run.dir) in each[0]]
    check_equal(ours, [(f"usdt:{program}:{PROBE}", 7)], "traced")


@scenario
def a_star_means_the_process_asked_for_or_the_command(run):
    program, other = puppet.build(run), puppet.build(run, "other")
    one, two = Puppet(run, program), Puppet(run, other)
    pattern = f"*:{PROBE}"
    check_equal(usdt_list(run, pattern, "-p", str(two.pid), cwd=run.dir), [f"usdt:{other}:{PROBE}"], "listed of one")
    result = run.trace(pattern, "-p", one.pid, "--duration", 0, cwd=run.dir)
    check_equal([name for name, _ in traced(result)], [f"usdt:{program}:{PROBE}"], "traced by -p")
    result = run.trace(pattern, command=[other, "fire:3"], cwd=run.dir)
    check_equal(traced(result), [(f"usdt:{other}:{PROBE}", 3)], "traced of a command")


if __name__ == "__main__":
    main()
