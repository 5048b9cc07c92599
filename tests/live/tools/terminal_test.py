#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the tools write on a terminal of 60, 80 and 200 columns: a pseudo terminal that the test reads as a person would."""

import collections
import fcntl
import os
import pathlib
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hostile  # noqa: E402
import puppet  # noqa: E402
from harness import AT_ONCE, Skip, check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402
from strict_text import HOSTILE, harmful  # noqa: E402

WIDTHS = (60, 80, 200)
SGR = re.compile(r"\x1b\[[0-9;]*m")
ERASE_LINE = "\r\x1b[K"  # what a progress line is taken away with
HEADINGS = ["TIME", "COMMAND", "PID/TID", "PROBE", "ARGUMENTS"]
EVENT = re.compile(r"^\d\d:\d\d:\d\d\.\d{6} ")
# An argument as it is shown: a number, a text or both.
PIECE = re.compile(r' (\w+=(?:"(?:[^"\\]|\\.)*"(?:\.\.\.)?|[^" ]+(?: "(?:[^"\\]|\\.)*"(?:\.\.\.)?)?))')

SOURCE = r"""
#include <stdio.h>
#include <sys/sdt.h>
int main(void) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghijklm";
  puts("of the program");
  fflush(stdout);
  for (int i = 0; i < 80; i++) {
    DTRACE_PROBE(terminal, none);
    DTRACE_PROBE3(terminal, numbers, i, -i * 1000, i * 100000000L);
    DTRACE_PROBE2(terminal, texts, letters + i, letters + 90 - i);
    DTRACE_PROBE4(terminal, a__probe__with__a__name__that__is__longer__than__forty__columns, i, letters + i, -i, letters + 70);
  }
  return 0;
}
"""


class Screen:
    """A program whose controlling terminal is one of the test's."""

    def __init__(self, run, argv, columns, **environment):
        try:
            self.leader, follower = os.openpty()
        except OSError as error:  # a bare chroot
            raise Skip(f"no pseudo terminals (mount -t devpts): {error}") from error
        self.resize(columns)
        clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
        self.process = run.start(*argv, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),
                                 env={**clean, "TERM": "xterm", **environment})
        os.close(follower)
        self.raw = b""

    def resize(self, columns):
        """As a terminal does: the programs on it get SIGWINCH."""
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))

    def type(self, keys):
        os.write(self.leader, keys)

    def read(self, until=None, timeout=30):
        """What is on it: until the program ends, or `until` is there as well."""
        deadline = time.monotonic() + timeout
        while until is None or until not in self.raw:
            check(time.monotonic() < deadline, f"not on the terminal within {timeout} s: {until}\n{self.raw[-2000:]}")
            if not select.select([self.leader], [], [], 0.1)[0]:
                continue
            try:
                block = os.read(self.leader, 65536)
            except OSError:
                block = b""  # EIO: the other end is closed
            if not block:
                break
            self.raw += block
        if until is None:
            os.close(self.leader)
            self.code = self.process.wait(timeout)
        return self.raw.decode(errors="surrogateescape").replace("\r\n", "\n")

    def finish(self):
        """Its lines, without colours."""
        return SGR.sub("", self.read()).split("\n")[:-1]


def on_terminal(run, argv, columns, **environment):
    return Screen(run, [str(word) for word in argv], columns, **environment).finish()


def build(run):
    require_root()
    source = run.dir / "terminal.c"
    source.write_text(SOURCE)
    return run.build("terminal", [source], ["-O1"])


def trace(run, program, columns, *options, probes="terminal:*", **environment):
    """Heading, and what follows it: each event as its lines."""
    argv = [run.tool, f"usdt:{program}:{probes}", "-q", *AT_ONCE, *options, "--", program]
    lines = on_terminal(run, argv, columns, **environment)
    check("of the program" in lines, f"what the command wrote: {lines[:3]}")
    check_equal(lines[0].split(), HEADINGS, "the heading comes first, before what the command writes")
    events = []
    for line in lines[1:]:
        if EVENT.match(line):
            events.append([line])
        elif line.startswith("    "):
            events[-1].append(line)
    return lines[0], events


def pieces(line):
    """Its arguments as they are shown."""
    return PIECE.findall(line)


@scenario
def columns_begin_below_their_headings(run):
    program = build(run)
    for columns in WIDTHS:
        heading, events = trace(run, program, columns)
        check(len(heading) <= columns, f"a heading of {len(heading)} columns on {columns}")
        time_at, command, pid, probe, arguments = (heading.index(word) for word in HEADINGS)
        check_equal(len(events), 320, f"events on {columns} columns")
        beside = 0
        for line, *_ in events:
            check_equal(line[time_at:command].strip(), EVENT.match(line)[0].strip(), "the time")
            check_equal(line[command:pid], f"{'terminal':<{pid - command}}", f"the command on {columns}")
            check(line[pid:probe].strip().isdigit() and line[pid] != " ", f"the process: {line}")
            name = line[probe:].split(" ")[0]
            check(name.startswith("terminal:"), f"the probe: {line}")
            if len(name) < arguments - probe and pieces(line):
                check_equal(line[probe:arguments].strip(), name, "the probe is in its column")
                check(line[arguments] != " " and line[arguments - 1] == " ", f"the arguments are not below {heading}\n{line}")
                beside += 1
        check(beside >= (80 if columns > 60 else 0), f"{beside} lines with their arguments in the column, on {columns}")


@scenario
def lines_are_as_long_as_the_terminal_allows_and_no_longer(run):
    """Longer is only what is one name or one value, and each line has all that it has room for."""
    program = build(run)
    for columns in WIDTHS:
        _, events = trace(run, program, columns)
        longer = broken = 0
        for event in events:
            for number, line in enumerate(event):
                alone = not pieces(line) if number == 0 else line == f"    {pieces(line)[0]}"
                check(len(line.rstrip()) <= columns or alone, f"{len(line)} columns of {columns}: {line}")
                longer += len(line) > columns
            for line, following in zip(event, event[1:]):
                check(len(line.rstrip()) + 1 + len(pieces(following)[0]) > columns, f"broken early on {columns}:\n{line}\n{following}")
                broken += 1
        check(broken > 100, f"only {broken} lines were broken on {columns} columns")
        check(columns < 200 or {len(event) for event in events if ":numbers" in event[0]} == {1}, "three numbers fit 200 columns")
        check((longer > 0) == (columns < 100), f"{longer} values longer than {columns} columns")


@scenario
def the_values_are_those_of_a_pipe(run):
    """Broken or not, every argument is there once and in order."""
    program = build(run)
    argv = [run.tool, f"usdt:{program}:terminal:*", "-q", "--print", "terminal:texts=str(arg0), str(arg1)",
            "--print", "terminal:numbers=arg0, arg1, hex(arg2)", "--print", "terminal:a__*=arg0, str(arg1), arg2, str(arg3)",
            "--", program]
    piped = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    check_equal(piped.returncode, 0, piped.stderr)
    wanted = [line.split("terminal:", 1)[1] for line in piped.stdout.splitlines() if EVENT.match(line)]
    for columns in WIDTHS:
        shown = []
        for line in on_terminal(run, argv, columns):
            if EVENT.match(line):
                shown.append(line.split("terminal:", 1)[1].rstrip())
            elif line.startswith("    "):
                shown[-1] += line[3:]
        check_equal([re.sub(" +", " ", each) for each in shown], [re.sub(" +", " ", each.rstrip()) for each in wanted],
                    f"on {columns} columns")


@scenario
def a_terminal_that_is_resized_gets_lines_of_its_new_width(run):
    program = puppet.build(run)
    target = Puppet(run, program)
    screen = Screen(run, [run.tool, probe_of(program), "-p", target.pid], 60)
    screen.read(until=b"ARGUMENTS")
    target.wait_attached()
    lines = {}
    for number, columns in enumerate((60, 200, 60, 80, 200)):
        screen.resize(columns)
        time.sleep(0.2)  # longer than the tool waits for events
        before = len(screen.raw)
        target.order("fire:1")
        screen.read(until=f"arg2={3 * number}\r\n".encode())
        lines.setdefault(columns, []).append(screen.raw[before:].count(b"\n"))
    check_equal(lines, {60: [2, 2], 200: [1, 1], 80: [2]}, "lines of an event, by width")
    screen.type(b"\x03")  # Ctrl-C
    text = screen.read()
    check_equal(screen.code, 0, "exit code")
    check("5 events of 5 hits" in text, f"the ledger: {text[-300:]}")
    target.wait_clean()


@scenario
def colours_are_for_terminals_that_have_them(run):
    program = build(run)
    lister = pathlib.Path(run.tool).with_name("usdt-list")
    for argv in ([run.tool, f"usdt:{program}:terminal:*", "--", program], [lister, "-v", program]):
        argv = [str(word) for word in argv]
        for environment, wanted in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
            raw = Screen(run, argv, 80, **environment).read()
            check_equal("\x1b[1m" in raw and "\x1b[0m" in raw, wanted, f"colours of {argv[0]} with {environment}")
            rest = SGR.sub("", raw).replace(ERASE_LINE, "")
            check("\x1b" not in rest and "\r" not in rest, f"other escapes of {argv[0]}: {rest!r:.300}")
        piped = subprocess.run(argv, capture_output=True, timeout=60, env={**os.environ, "TERM": "xterm"})
        check(b"\x1b" not in piped.stdout + piped.stderr, f"escapes of {argv[0]} on a pipe")
        check(b"COMMAND" not in piped.stdout and b"SEMAPHORE" not in piped.stdout, "headings are for people")


@scenario
def names_and_texts_of_hostile_programs_do_nothing_to_a_terminal(run):
    require_root()
    require_x86_64()
    lister = pathlib.Path(run.tool).with_name("usdt-list")
    for number, name in enumerate(HOSTILE):
        program = hostile.build(run, number, name)
        for argv in ([run.tool, "prov*:name*", "--print", "str(arg0)", "--", program],
                     [run.tool, "prov*:name*", "--count", "--", program], [lister, "-vv", program],
                     [run.tool, b"prov:" + name.replace(b":", b""), "--", program]):
            for columns in (60, 200):
                raw = SGR.sub("", Screen(run, argv, columns).read()).replace(ERASE_LINE, "")
                check("1 hit" in raw or "1 site" in raw or "no probe" in raw, f"what there is: {argv} {raw}")
                check_equal(harmful(raw.encode(errors="surrogateescape")), [], f"{argv} on {columns} columns: {raw!r:.500}")


@scenario
def functions_are_listed_in_lines_that_fit(run):
    require_root()
    source = run.dir / "functions.c"
    source.write_text("""
        struct by_value { int a; double b; long c[4]; };
        __attribute__((noinline)) int short_one(int n) { return n + 1; }
        __attribute__((noinline)) int a_function_with_several_arguments(struct by_value* first_argument, const char* second_argument,
                                                                        unsigned long third_argument, struct by_value fourth) {
          return first_argument->a + second_argument[0] + (int)third_argument + fourth.a;
        }
        int main(void) { struct by_value v = {1, 2, {3}}; return a_function_with_several_arguments(&v, "", 3, v) - short_one(3); }""")
    program = run.build("functions", [source], ["-g", "-O1"])
    lister = pathlib.Path(run.tool).with_name("usdt-list")
    texts = set()
    for columns in WIDTHS:
        lines = on_terminal(run, [lister, f"uprobe:{program}:*o*"], columns)
        for line in lines:
            check(len(line) <= columns or line.startswith("uprobe:") and " " not in line, f"{len(line)} of {columns}: {line}")
        texts.add(re.sub(r"\s+", " ", " ".join(lines)))
    check_equal(len(texts), 1, f"the words are the same on all widths: {texts}")
    check("const char *second_argument" in texts.pop(), "the signature")


@scenario
def presets_are_listed_in_lines_that_fit(run):
    """Longer is only what is one word, and each line has all that it has room for."""
    listing = [run.tool.with_name("usdt-list"), "--presets"]
    piped = subprocess.run(listing, capture_output=True, text=True, check=True, env={**os.environ, "USDT_PRESETS": str(run.dir)}).stdout
    for columns in WIDTHS:
        lines = on_terminal(run, listing, columns, USDT_PRESETS=str(run.dir))
        check_equal([line for line in lines if len(line) > columns and " " in line.strip()], [], f"lines of more than {columns} columns")
        check_equal(" ".join(lines).split(), piped.split(), f"the words on {columns} columns")
        texts = [line for line in lines if line.startswith("    ")]
        check(max(map(len, texts)) > columns - 12, f"no line takes its room of {columns} columns")



TABLES = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/sdt.h>
int main(int argc, char** argv) {
  static const char* keys[] = {"short", "caf\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "e\xcc\x81tude", "\033[31mred", "back\\slash",
    "/a/path/with/very/many/directories/that/nobody/would/read/until/the/name/of/the/file/comes.c",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"};
  for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
    for (unsigned n = 0; n <= i; n++) 
      DTRACE_PROBE3(tables, a__probe__of__tables__whose__name__goes__on, keys[i], 9000000000000000000L + i, -900000000000000000L * (i + 1L));
  if (argc > 1 && argv[1][0]) usleep(300000);
  return 0;
}
"""

VIEWS = {
    "a count": ["--count"],
    "long keys": ["--by", "str(arg0),probe"],
    "numbers of all kinds": ["--by", "str(arg0),arg1,comm", "--sum", "arg2", "--min", "arg2", "--max", "arg2"],
    "a value of a long name": ["--by", "arg1", "--avg", "arg2 - arg2 + arg2 - arg2 + arg2 - arg2 + arg2 - arg2 + arg2"],
    "a histogram": ["--hist", "arg2"],
    "a histogram of each": ["--by", "str(arg0),arg1", "--hist", "arg2"],
    "wide ranges": ["--lhist", "arg1:8999999999999999999:9000000000000000009:2"],
}


def columns_of(line):
    """As a terminal shows it."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.combining(c) > 0 for c in line)


def looks_of(text):
    """The tables that were written over each other."""
    looks = re.split(r"\x1b\[\d+A", text)
    return [re.sub(r"\x1b\[[KJ]|\r", "", look) for look in looks]


def tables_of(run, program, columns, options):
    """Lines of the last one, on a terminal or, without columns, in a pipe."""
    argv = [str(word) for word in [run.tool, f"usdt:{program}:tables:*", "-q", *AT_ONCE, *options, "--", program, *(["wait"] if "--interval" in options else [])]]
    if columns is None:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = looks_of("\n".join(on_terminal(run, argv, columns)))[-1].split("\n")
    check("36 of 36 hits" in lines[-1] or "36 hits" in lines[-1], f"the account comes last: {lines}")
    return lines[:-1]


def build_tables(run):
    require_root()
    source = run.dir / "tables.c"
    source.write_text(TABLES)
    return run.build("a-program-in-a-file-whose-name-is-long", [source], ["-O1"])


def numbers_of(lines):
    """Those between spaces or brackets; process ids differ from run to run, and there are none."""
    return sorted(word for line in lines for word in re.findall(r"(?<![^\s\[(])-?\d+(?:\.\d+)?[KMGTPE]?(?=[\s,\])]|$)", line))


@scenario
def tables_have_each_number_whole_and_cut_words_with_a_mark(run):
    program = build_tables(run)
    for what, options in VIEWS.items():
        whole_lines = tables_of(run, program, None, options)
        whole = numbers_of(whole_lines)
        check(len(whole) > 0, f"{what} has numbers")
        for columns in WIDTHS:
            for again in ([], ["--interval", "0.1"]):
                if again and "--count" in options:
                    continue
                lines = tables_of(run, program, columns, options + again)
                shown = f"{what} on {columns} columns{' again and again' if again else ''}:\n" + "\n".join(lines)
                rows = sum(1 for line in whole_lines if re.match(r" *-?\d", line)) if again and "PER SECOND" in shown else 0
                more = collections.Counter(numbers_of(lines))
                more.subtract(whole)
                check(min(more.values(), default=0) >= 0 and more.total() == rows, f"a rate more for each row, and nothing else: {more}\n{shown}")
                check(all(columns_of(line) < columns for line in lines), f"lines fit: {shown}")
        cut = "\n".join(tables_of(run, program, 60, options))
        if what in ("a count", "long keys"):
            check(re.search(r"\w\.\.\.\w", cut), f"what is left out has a mark:\n{cut}")


@scenario
def a_key_that_is_below_its_numbers_has_the_whole_line(run):
    options = ["--by", "str(arg0)", "--sum", "arg2", "--min", "arg2", "--max", "arg2"]
    lines = tables_of(run, build_tables(run), 60, options)
    keys = [line for line in lines if line.startswith('    "/a/path/')]
    check_equal([columns_of(key) for key in keys], [59], "the columns that the long key takes, of 59:\n" + "\n".join(lines))


@scenario
def a_table_that_is_too_high_says_what_is_missing_and_in_the_end_has_all_of_it(run):
    program = build(run)
    probes = [f"usdt:{program}:terminal:{name}" for name in ("numbers", "texts", "a__*")]
    lines = on_terminal(run, [run.tool, *probes, "-q", "--by", "arg0,probe", "--sample", "1/2", "--top", "200", "--interval", "0.1",
                              "--", "sh", "-c", f"{program}; sleep 1"], 80)
    pictures = looks_of("\n".join(lines).removeprefix("of the program\n"))
    live, last = pictures[-2].split("\n"), pictures[-1].split("\n")
    check_equal(live[-2:-1], ["estimated from one in 2 hits"], f"what the numbers are\n{pictures[-2]}")
    rows = [line for line in live if re.match(r"\s+\d", line)]
    left_out = re.fullmatch(r"\.\.\. and (\d+) lines? more on a higher terminal", live[-3])
    check(left_out is not None, f"what is missing: {live}")
    check(len(live) <= 39 and len(rows) + int(left_out[1]) > 38, f"{len(live)} lines of 40: {live}")
    check("estimated from one in 2 hits" in last, f"in the end, too: {last}")
    all_rows = [line for line in last if re.match(r"\s+\d+\s+[\d.]+\s", line)]
    check_equal(len(all_rows), len(rows) + int(left_out[1]), f"rows of the last table, which scrolls: {last}")


@scenario
def keys_of_any_language_have_their_columns_below_each_other(run):
    program = build_tables(run)
    lines = tables_of(run, program, 200, ["--by", "str(arg0),arg1"])
    ends = {columns_of(line[:line.rindex(" ") + 1]) for line in lines if re.match(r" *\d", line)}
    check_equal(len(ends), 1, "columns where the last key begins:\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
