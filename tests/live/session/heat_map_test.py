#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--heatmap: each hit is in one stretch of time and in the range of its value, as the program says when it passed what."""

import collections
import datetime
import fcntl
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import check, check_equal, main, require_root, scenario  # noqa: E402

def build(run):
    require_root()
    return run.build("heat", [HERE / "session/heat.c"], ["-O1"])


def bucket(value):
    return 1 << (value.bit_length() - 1)


WANTED = collections.Counter(bucket((1 << i // 4) + n % 2) for i in range(24) for n in range(10))


def seconds(text):
    whole, fraction = text.rstrip("Z").split(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + int(fraction) / 1e9


def check_rows(rows):
    totals = collections.Counter()
    for row, after in zip(rows, rows[1:]):
        check(seconds(row["from"]) < seconds(row["to"]) <= seconds(after["from"]) + 1e-6, f"stretches: {row}, {after}")
    for row in rows:
        check_equal(sum(bar["count"] for bar in row["buckets"]), row["count"], "hits of a stretch")
        for bar in row["buckets"]:
            totals[bar["first"]] += bar["count"]
    check_equal(totals, WANTED, "hits by range")
    firsts = [row["buckets"][0]["first"] for row in rows if row["buckets"]]
    check_equal(firsts, sorted(firsts), "values grow with time")
    check(len(firsts) >= 4, f"stretches with hits: {len(firsts)}")


@scenario
def stretches_of_time_have_the_hits_that_came_in_them(run):
    program = build(run)
    done = subprocess.run([run.tool, f"usdt:{program}:heat:value", "--heatmap", "arg0", "--interval", "0.2", "-f", "json", "--", program],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = [line.split() for line in done.stdout.splitlines() if not line.startswith("{")]
    rows = [line for line in lines if line["type"] == "heat"]
    check_rows(rows)
    check_equal(lines[-1]["events"], 240, "events in the summary")
    # The last hit of the program is in the last stretch that has any.
    last = [row for row in rows if row["count"]][-1]
    moment = float(said[-1][0])
    check(seconds(last["from"]) - 0.05 <= moment <= seconds(last["to"]) + 0.05, f"{moment}: {last}")


@scenario
def a_recording_is_cut_by_the_times_of_its_events(run):
    program = build(run)
    file = run.dir / "recording"
    done = subprocess.run([run.tool, f"usdt:{program}:heat:value", "--record", file, "--", program], capture_output=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    done = subprocess.run([run.tool, "--replay", file, "--heatmap", "arg0", "--interval", "0.2", "-f", "json"], capture_output=True,
                          text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    check_rows([line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "heat"])
    done = subprocess.run([run.tool, "--replay", file, "--heatmap", "arg0", "--interval", "0.2"], capture_output=True, text=True, timeout=60)
    check_picture(done.stdout.splitlines(), 80)


def check_picture(lines, width):
    """Six ranges, the largest on top, from bottom left to top right."""
    check_equal(lines[0], "arg0, by time", "title")
    rows = [line for line in lines if re.match(r" *[\[(]", line)]
    check_equal([re.match(r" *([\[(].*?[)\]])  ", row)[1] for row in rows], ["[32, 64)", "[16, 32)", "[8, 16)", "[4, 8)", "[2, 4)", "[1]"], lines)
    check(max(map(len, lines)) <= width, f"{max(map(len, lines))} columns of {width}")
    label = rows[0].index(")") + 3
    begins = [len(row[label:]) - len(row[label:].lstrip()) for row in rows]
    check_equal(begins, sorted(begins, reverse=True), rows)
    check(re.search(r"hits: .*[.:+#@·░▒▓█] \d+", lines[-1]), lines[-1])


@scenario
def a_pipe_gets_one_picture_of_everything(run):
    program = build(run)
    done = subprocess.run([run.tool, f"usdt:{program}:heat:value", "--heatmap", "arg0", "--interval", "0.1", "--", program],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    lines = [line for line in done.stdout.splitlines() if not re.match(r"\d+\.\d{9} \d+$", line)]
    check("\x1b" not in done.stdout, "no control characters")
    check_picture(lines, 80)


def on_terminal(run, program, columns, **environment):
    leader, follower = os.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("4H", 30, columns, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM", "LC_ALL", "LANG", "LC_CTYPE")}
    with subprocess.Popen([run.tool, "-q", f"usdt:{program}:heat:value", "--heatmap", "arg0", "--interval", "0.1", "--", "sh", "-c", f"exec {program} >/dev/null"],
                          stdout=follower, stderr=subprocess.DEVNULL, env={**clean, "TERM": "xterm", **environment}) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        process.wait()
    os.close(leader)
    return shown.decode()


@scenario
def a_terminal_shows_it_again_and_again_in_its_place_and_width(run):
    program = build(run)
    for columns in (60, 80, 200):
        shown = on_terminal(run, program, columns, NO_COLOR="1", LANG="C.UTF-8")
        pictures = re.split(r"\x1b\[\d+A", shown)  # each is written over the one before
        check(len(pictures) >= 5, f"shown {len(pictures)} times")
        check("\x1b[3" not in shown, "NO_COLOR")
        check("█" in pictures[-1] or "▓" in pictures[-1], pictures[-1])
        check_picture(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", pictures[-1]).replace("\r", "").splitlines(), columns)


@scenario
def colours_and_blocks_are_for_terminals_that_have_them(run):
    program = build(run)
    coloured = on_terminal(run, program, 80, LANG="C")
    check("\x1b[38;5;" in coloured, "colours")
    check(coloured.isascii(), "ASCII")


@scenario
def what_it_does_not_go_with_is_refused(run):
    program = build(run)
    for options, reason in ((["--by", "pid"], "one for all hits"), (["--hist", "arg0"], "exclude each other"), (["--top", "3"], "one for all hits"),
                            (["--print", "arg0"], "do not go with them"), (["--record", "/dev/null"], "a table has none")):
        done = subprocess.run([run.tool, f"usdt:{program}:heat:value", "--heatmap", "arg0", *options, "--", program], capture_output=True,
                              text=True, timeout=60)
        check_equal(done.returncode, 2, f"{options}: {done.stderr}")
        check(reason in done.stderr, f"{options}: {done.stderr}")


if __name__ == "__main__":
    main()
