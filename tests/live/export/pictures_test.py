#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables that redraw themselves, and pictures, as a person sees them on terminals of 60 to 200 columns."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[0]), str(HERE.parents[0] / "tools")]

import puppet  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_root, scenario, wait_line, wait_until  # noqa: E402
from terminal_test import Screen  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include <sys/sdt.h>
int main(void) {
  long n = 0, times;
  while (scanf("%ld", &times) == 1) {
    for (; times > 0; times--, n++) DTRACE_PROBE2(picture, hit, n % 3, n % 200);
    printf("%ld\n", n);
    fflush(stdout);
  }
  return 0;
}
"""
BLOCKS = "▁▂▃▄▅▆▇█"
PIECES = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[([0-9;]*)m|\x1b.|[\r\n]|[^\x1b\r\n]+")


class Paper:
    """What is on a terminal, by the few sequences that the tool may use; others are an error."""

    def __init__(self, columns):
        self.columns, self.lines, self.row, self.column, self.styles = columns, [""], 0, 0, 0

    def write(self, text):
        for piece in PIECES.finditer(text):
            number, letter = piece[1], piece[2]
            if letter == "m" or piece[3] is not None:
                self.styles += 1
            elif letter == "A":
                self.row -= int(number or 1)
                check(self.row >= 0, "it goes above what it has written")
            elif letter == "K":
                self.lines[self.row] = self.lines[self.row][:self.column]
            elif letter == "J":
                self.lines[self.row] = self.lines[self.row][:self.column]
                del self.lines[self.row + 1:]
            elif piece[0] == "\r":
                self.column = 0
            elif piece[0] == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            else:
                check("\x1b" not in piece[0], f"a sequence that not every terminal has: {piece[0]!r}")
                self.put(piece[0])

    def put(self, text):
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + text + line[self.column + len(text):]
        self.column += len(text)
        check(self.column <= self.columns, f"a line of {self.column} on {self.columns} columns: {text!r}")

    def text(self):
        return [line.rstrip() for line in self.lines]


class Redrawn:
    """A view on a terminal, of a program that waits for orders."""

    def __init__(self, run, columns, *words, **environment):
        require_root()
        (run.dir / "picture.c").write_text(PROGRAM)
        program = run.build("picture", [run.dir / "picture.c"], ["-O1"])
        self.program = run.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.json = run.dir / "out.json"
        notices_apart = ["sh", "-c", 'exec "$@" 2> /dev/null', "sh"]
        self.screen = Screen(run, [*notices_apart, run.tool, f"usdt:{program}:picture:hit", "-q", "-p", str(self.program.pid), "--export",
                                   f"json={self.json}", *words], columns, **environment)
        self.paper, self.columns = None, columns

    def hit(self, times):
        self.program.stdin.write(f"{times}\n".encode())
        wait_line(self.program)

    def hit_until_shown(self, times, mark):
        """Until there is something: it may not be attached yet."""
        def is_shown():
            self.hit(times)
            self.wait_some()
            return mark in self.screen.raw
        wait_until(is_shown, f"{mark} on the terminal", timeout=30)

    def wait_some(self):
        if select.select([self.screen.leader], [], [], 0.05)[0]:
            self.screen.raw += os.read(self.screen.leader, 65536)

    def wait_looks(self, number, mark=b"COUNT"):
        def has_them():
            self.wait_some()
            return self.screen.raw.count(mark) >= number
        wait_until(has_them, f"{number} looks", timeout=30)

    def end(self, number=signal.SIGINT):
        """The screen, and the last rows of JSON."""
        self.screen.process.send_signal(number)
        self.screen.read()
        check_equal(self.screen.code, 0, "exit code")
        paper = Paper(self.columns)
        paper.write(self.screen.raw.decode())
        lines = [json.loads(line) for line in self.json.read_text().splitlines()]
        return paper, [line for line in lines if line["type"] == "table"][-1]["rows"]


def check_table(paper, rows):
    """One table, with the rows of JSON, and nothing else; behind it an empty line for the prompt."""
    text = paper.text()
    check_equal(text[0].split()[0], "COUNT", f"the heading: {text}")
    check_equal((text[-1], paper.column), ("", 0), "the prompt has a line of its own")
    shown = {int(line.split()[-1]): int(line.split()[0]) for line in text[1:-1]}
    check_equal(len(shown), len(text) - 2, f"a line for each row: {text}")
    check_equal(shown, {row["key"][0]: row["count"] for row in rows}, f"rows: {text}")


@scenario
def a_table_stands_still_and_has_trends(run):
    for columns in (60, 80, 120, 200):
        view = Redrawn(run, columns, "--by", "arg0", "--interval", "0.1", LANG="C.UTF-8", LC_ALL="C.UTF-8")
        view.wait_looks(1)
        for times in (300, 3000, 30, 3, 300, 300):
            view.hit(times)
            view.wait_looks(view.screen.raw.count(b"COUNT") + 1)
        paper, rows = view.end()
        heading, *lines = paper.text()
        check("TREND" in heading, heading)
        at = heading.index("TREND")
        pictures = [line[at:].split("  ")[0].rstrip(" 012") for line in lines[:-1]]
        check(all(set(picture) <= set(BLOCKS + " ") and "█" in picture for picture in pictures), pictures)
        check_table(paper, rows)
        view.program.kill()


@scenario
def without_block_characters_there_are_no_pictures(run):
    view = Redrawn(run, 80, "--by", "arg0", "--interval", "0.1", LANG="C", LC_ALL="C", NO_COLOR="1")
    for _ in range(8):
        view.hit(300)
        view.wait_looks(view.screen.raw.count(b"COUNT") + 1)
    paper, rows = view.end(signal.SIGTERM)
    check("TREND" not in paper.text()[0] and view.screen.raw.isascii(), paper.text())
    check_equal(paper.styles, 0, "no colours")
    check_table(paper, rows)


@scenario
def histograms_have_bars_of_blocks(run):
    for columns in (60, 80, 200):
        view = Redrawn(run, columns, "--hist", "arg1", "--interval", "0.1", LANG="C.UTF-8", LC_ALL="C.UTF-8")
        view.hit_until_shown(2000, b"arg1")
        view.wait_looks(3, b"arg1")
        paper, rows = view.end()
        title, *lines = paper.text()
        check_equal((title, lines[-1]), ("arg1", ""), "the title, and the prompt's line")
        bars = {line.split("  ")[0].strip(): line for line in lines[:-1]}
        buckets = rows[0]["buckets"]
        check_equal(len(bars), len(buckets), f"a bar for each bucket: {lines}")
        most = max(bucket["count"] for bucket in buckets)
        for line, bucket in zip(lines, buckets):
            bar = re.search(r"[█▏▎▍▌▋▊▉]+$", line)[0]
            check_equal(int(line[:-len(bar)].split()[-1]), bucket["count"], line)
            room = columns - 1 - (len(line) - len(bar))
            length = 8 * bar.count("█") + sum(" ▏▎▍▌▋▊▉".index(each) for each in bar if each != "█")
            check_equal(length, max(1, bucket["count"] * room * 8 // most), f"eighths of {line!r}")
        view.program.kill()


@scenario
def heat_maps_stand_still(run):
    for columns, environment in ((60, {"NO_COLOR": "1"}), (200, {})):
        view = Redrawn(run, columns, "--heatmap", "arg1", "--interval", "0.1", LANG="C.UTF-8", LC_ALL="C.UTF-8", **environment)
        view.hit_until_shown(100, b"hits:")
        for times in (100, 1000, 10):
            view.hit(times)
            view.wait_looks(view.screen.raw.count(b"hits:") + 1, b"hits:")
        view.screen.process.send_signal(signal.SIGINT)
        view.screen.read()
        paper = Paper(columns)
        paper.write(view.screen.raw.decode())
        text = paper.text()
        check_equal(sum("hits:" in line for line in text), 1, f"one picture: {text}")
        check_equal((text[-1], paper.column), ("", 0), "the prompt has a line of its own")
        check_equal(paper.styles == 0, "NO_COLOR" in environment, "colours")
        view.program.kill()


if __name__ == "__main__":
    main()
