#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What lists compute of values, and texts up to an address behind them, judged by what the program itself says."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import at_once, attach_at_once, check, check_equal, main, require_m32, require_root, scenario  # noqa: E402

attach_at_once()

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
struct buffer { char* pos; char* last; unsigned flags; };
__attribute__((noinline)) char* take(struct buffer* buffer, int number) {
  __asm__ volatile("" : "+r"(buffer), "+r"(number) : : "memory");
  memset(buffer->pos, '!', 100);  // a text of a call is as its caller passed it
  buffer->pos += number;
  return buffer->last;
}
int main(void) {
  // The last page of what may be read: what goes on behind it cannot be.
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  srand(7);
  for (int i = 0; i < 120; i++) {
    int size = i % 40 == 39 ? -2 : rand() % 90;
    char* begin = pages + 4096 - (i % 2 ? size : 200);
    memset(pages, 'x', 4096);
    for (int n = 0; n < size; n++) begin[n] = n == 5 && i % 7 == 0 ? 0 : 'a' + (i + n) % 26;
    struct buffer buffer = {begin, begin + size, (unsigned)rand()};
    printf("%d %u ", size, buffer.flags);
    for (int n = 0; n < size; n++) printf("%02x", (unsigned char)begin[n]);
    printf("\n");
    DTRACE_PROBE5(computed, at, begin, begin + size, i, -i, &buffer);
    buffer.pos = memcpy(pages, begin, size < 0 ? 0 : size);
    buffer.last = pages + size;
    take(&buffer, i);
    DTRACE_PROBE1(computed, done, i);
  }
  return 0;
}
"""
AT = "usdt:{}:computed:at"
POSITION, LAST = "((char **)arg4)[0]", "((char **)arg4)[1]"


class Said:
    """One line of the program."""

    def __init__(self, line):
        size, flags, *digits = line.split(" ")
        self.size, self.flags = int(size), int(flags)
        self.text = bytes.fromhex(digits[0]).decode() if self.size >= 0 else None


def build(run, *machine):
    require_root()
    (run.dir / "computed.c").write_text(PROGRAM)
    return run.build("computed", [run.dir / "computed.c"], ["-O1", "-g", *machine])


def traced(run, program, probes, *options, code=0):
    """The lines that it writes, and those of the program; of a failure what it says."""
    out = run.dir / "shown"
    probes = [probe.format(program) for probe in probes.split(" ")]
    done = subprocess.run([run.tool, *probes, "-o", out, *options, *at_once(probes, options), "--", program], capture_output=True,
                          text=True, timeout=60)
    check_equal(done.returncode, code, done.stderr)
    if code:
        return done.stderr
    return out.read_text().splitlines(), [Said(line) for line in done.stdout.splitlines()]


def events(lines):
    return [each for each in map(json.loads, lines) if each["type"] in ("event", "span")]


def args(lines):
    return [each["args"] for each in events(lines)]


def number(bits):
    """As C has the sum of an int and what has 64 bits."""
    return (bits + 2**63) % 2**64 - 2**63


@scenario
def numbers_are_those_that_the_program_would_compute(run):
    listed = ("arg2 * 3 - 1, arg3 & 0xff, hex(arg2 << 4), arg2 / (arg2 % 5), (arg2 + 1) * (arg3 - 1), arg2 > 60 && arg2 != 70, "
              "arg2 < 10 ? 1 : -1, arg2 % 3 as kind:{0=none, 1=some}, pid - pid + arg2")
    for options in ([], ["-f", "json"]):
        lines, said = traced(run, build(run), AT, "--print", listed, *options)
        check_equal(len(said), 120, "hits")
    names = {0: "none", 1: "some"}
    for i, event in enumerate(events(lines)):
        divided = i // (i % 5) if i % 5 else {"error": "a division by 0"}
        check_equal(event["args"], [i * 3 - 1, -i & 0xff, hex(i << 4), divided, (i + 1) * (-i - 1), int(i > 60 and i != 70),
                                    1 if i < 10 else -1, i % 3, i], f"hit {i}")
        check_equal(event.get("names", {}), {"7": names[i % 3]} if i % 3 in names else {}, f"names at hit {i}")


@scenario
def a_computed_number_stands_in_lines_columns_and_formats_by_its_name(run):
    program = build(run)
    lines, _ = traced(run, program, AT, "--print", "arg2 & 3 as kind:{0=none}, arg2 * 2", "--max-events", "5")
    check_equal([line.split("computed:at ")[1] for line in lines if "computed:at " in line],
                ["kind=none arg2 * 2=0", "kind=1 arg2 * 2=2", "kind=2 arg2 * 2=4", "kind=3 arg2 * 2=6", "kind=none arg2 * 2=8"], "lines")
    lines, _ = traced(run, program, AT, "--print", "arg2 & 3 as kind, arg1 - arg0 as size", "-f", "csv", "--max-events", "3")
    check("kind" in lines[0] and "size" in lines[0], f"headings: {lines[0]}")
    lines, said = traced(run, program, AT, "--print", "arg2 * 2, arg1 - arg0", "--format-string", "%04d|%x", "--max-events", "9")
    check_equal(lines[:9], [f"{2 * i:04d}|{said[i].size & (2**64 - 1):x}" for i in range(9)], "by a format")


@scenario
def texts_go_up_to_the_address_behind_them(run):
    for machine in ([], ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]):
        if machine:
            require_m32()
        program = build(run, *machine)
        listed = f"str(arg0, arg1 - arg0), str({POSITION}, {LAST} - {POSITION}) as text, arg1 - arg0, {LAST} - {POSITION}"
        lines, said = traced(run, program, AT, "--print", listed, "-f", "json")
        shown = args(lines)
        check_equal(len(shown), 120, "events")
        for i, (event, own) in enumerate(zip(shown, said)):
            text = {"error": "its length is below 0"} if own.size < 0 else own.text
            check_equal(event[:2], [text] * 2, f"texts of hit {i}")
            check_equal([number(each) for each in event[2:]], [own.size] * 2, f"lengths of hit {i}")


@scenario
def a_text_up_to_its_end_is_asked_about_and_is_a_key(run):
    program = build(run)
    text = f"str({POSITION}, {LAST} - {POSITION})"
    for shown in (text, "str(arg0, arg1 - arg0)"):
        lines, said = traced(run, program, AT, "--where", f'{shown} =~ "[a-m]*" && arg2 < 100', "--print", "arg2", "-f", "json")
        wanted = [[i] for i, own in enumerate(said[:100]) if own.text and own.text[0] <= "m"]
        check(20 < len(wanted) < 80, f"{len(wanted)} hits")
        check_equal(args(lines), wanted, f"hits by {shown}")
        lines, said = traced(run, program, AT, "--by", f"{shown} as text", "-f", "json", "--key-size", "128", "--top", "200")
        rows = next(each for each in map(json.loads, lines) if each["type"] == "table")["rows"]
        check_equal({row["key"][0]: row["count"] for row in rows}, dict(collections.Counter(own.text for own in said if own.size >= 0)),
                    f"rows by {shown}")


@scenario
def a_text_of_a_call_or_span_is_that_of_its_beginning(run):
    program = build(run)
    begins = "str(buffer->pos, buffer->last - buffer->pos)"
    lines, said = traced(run, program, "ucall:{}:take", "--print", f"{begins}, number * 2, duration / 1000000000", "-f", "json")
    for i, (event, own) in enumerate(zip(args(lines), said)):
        text = {"error": "its length is below 0"} if own.size < 0 else own.text
        check_equal(event, [text, 2 * i, 0], f"call {i}")
    where = f'{begins} =~ "[a-m]*"'
    lines, said = traced(run, program, "ucall:{}:take", "--where", where, "--print", "number", "-f", "json")
    check_equal(args(lines), [[i] for i, own in enumerate(said) if own.text and own.text[0] <= "m"], "calls by their text")
    lines, said = traced(run, program, AT + " ~~ usdt:{}:computed:done", "--pair-by", "arg2 ~~ arg0", "--print",
                         "str(arg0, arg1 - arg0), end.arg0 + arg2", "-f", "json")
    check_equal(args(lines), [[{"error": "its length is below 0"} if own.size < 0 else own.text, 2 * i] for i, own in enumerate(said)],
                "spans")


@scenario
def a_recording_shows_what_is_computed_later_too(run):
    program, recording = build(run), run.dir / "recording"
    _, said = traced(run, program, AT, "--record", recording, "--print", "str(arg0, arg1 - arg0) as text, arg2 * 2, arg3")
    for listed in (None, "str(arg0, arg1 - arg0), arg2 * 2, arg3"):
        replayed = subprocess.run([run.tool, "--replay", recording, "-f", "json", *(["--print", listed] if listed else [])],
                                  capture_output=True, text=True, check=True).stdout.splitlines()
        check_equal(args(replayed), [[{"error": "its length is below 0"} if own.size < 0 else own.text, 2 * i, -i]
                                     for i, own in enumerate(said)], f"replayed by {listed}")
    replayed = subprocess.run([run.tool, "--replay", recording, "-f", "json", "--print", "arg2 * 5 + arg3", "--where",
                               'str(arg0, arg1 - arg0) =~ "[a-m]*"'], capture_output=True, text=True, check=True).stdout.splitlines()
    check_equal(args(replayed), [[4 * i] for i, own in enumerate(said) if own.text and own.text[0] <= "m"], "asked later")


ABSENT = r"""
#include <cstdio>
#include <optional>
#include <string>
#include <vector>
struct request {
  char* text;
  std::optional<char*> end;
  std::optional<int> size;
  std::vector<int> sizes;
  std::string name;
  char fixed[8];
  double real;
  request* other;
};
extern "C" __attribute__((noinline)) int take(request* r, int n) {
  asm volatile("" : : "r"(r), "r"(n) : "memory");
  return n;
}
int main() {
  char text[] = "abcdefghijklmnop";
  for (int i = 0; i < 12; i++) {
    request r{text, text + 9, 7, {3}, "name", "fixed", 1.0, i % 3 ? &r : nullptr};
    r.sizes.reserve(4);
    r.sizes.push_back(4);
    // What was there stays in memory.
    if (i % 2 == 0) r.end.reset(), r.size.reset(), r.sizes.pop_back();
    take(&r, i);
  }
}
"""


def build_absent(run):
    require_root()
    (run.dir / "absent.cpp").write_text(ABSENT)
    return run.build("absent", [], ["-g", "-O1", "-std=c++20", str(run.dir / "absent.cpp")], "g++")


@scenario
def what_is_not_there_is_no_length_nor_number(run):
    program, recording = build_absent(run), run.dir / "recording"
    listed = ("str(r->text, r->end.value - r->text), buf(r->text, r->size.value), buf(r->end.value, 3), r->size.value * 2, "
              "n ? r->other->other == 0 : 5, 1 / (n - n) && r->other->other != 0")
    lines, _ = traced(run, program, "ucall:{}:take", "--print", listed, "-f", "json")
    shown = args(lines)
    check_equal(len(shown), 12, "calls")
    for i, event in enumerate(shown):
        end, size = ({"error": f"r->{name} is empty"} for name in ("end", "size"))
        null = {"error": "r->other is null"}
        wanted = ["abcdefghi", b"abcdefg".hex(), b"jkl".hex(), 14] if i % 2 else [end, size, end, size]
        check_equal(event, [*wanted, 5 if i == 0 else 0 if i % 3 else null, {"error": "a division by 0"}], f"call {i}")
    lines, _ = traced(run, program, "ucall:{}:take", "--print", "str(r->text, r->sizes[1]), n", "-f", "json")
    check_equal(args(lines), [["abcd" if i % 2 else {"error": "behind the last element"}, i] for i in range(12)], "by an element")
    where = 'str(r->text, r->end.value - r->text) == "abcdefghi"'
    lines, _ = traced(run, program, "ucall:{}:take", "--print", "n", "--where", where, "-f", "json")
    check_equal(args(lines), [[i] for i in range(1, 12, 2)], "calls")
    traced(run, program, "ucall:{}:take", "--record", recording, "--print", "n, str(r->text, r->end.value - r->text)")
    replayed = subprocess.run([run.tool, "--replay", recording, "-f", "json", "--print", "n", "--where", where],
                              capture_output=True, text=True, check=True).stdout.splitlines()
    check_equal(args(replayed), [[i] for i in range(1, 12, 2)], "calls of a recording")


@scenario
def a_text_is_read_in_one_way(run):
    program, recording = build_absent(run), run.dir / "recording"
    for options, why in (
            (["--print", "str(r->text, n), str(r->text)"], "a text is read once"),
            (["--print", "str(r->text, n), str(r->text, r->size.value)"], "a text is read once"),
            (["--print", "str(r->name, n)"], "r->name has another length"),
            (["--print", "str(r->fixed, n)"], "r->fixed has another length"),
            (["--print", "str(r->text, r->real)"], "cannot be read by this length"),
            (["--print", "str(r->text, r->name - r->text)"], "and no address"),
            (["--print", 'r->text == "abc"'], "texts are compared in questions"),
            (["--where", 'str(r->text) =~ "a*" && str(r->text, n) == "a"'], "a text is read in one way"),
            (["--where", 'r->text == "a" && str(r->text, n) == "a"'], "a text is read in one way"),
            (["--where", 'str(r->text, r->real) == "a"'], "no number of bytes"),
            (["--where", 'str(r->text, n) == "a"', "--by", "str(r->text)"], "a text is read in one way"),
    ):
        said = traced(run, program, "ucall:{}:take", *options, code=2)
        check(why in said, f"{options}: {said}")
    traced(run, program, "ucall:{}:take", "--record", recording, "--print", "n, str(r->text, n)")
    for options in (["--print", "str(r->text)"], ["--where", 'str(r->text) == "a"'], ["--where", 'r->text == "a"'],
                    ["--by", "str(r->text)"]):
        done = subprocess.run([run.tool, "--replay", recording, *options], capture_output=True, text=True)
        check(done.returncode == 2 and "it was recorded as str(r->text, n)" in done.stderr, f"{options}: {done.stderr}")


@scenario
def what_cannot_be_computed_is_refused_with_the_reason(run):
    program = build(run)
    for listed, why in (
            ("arg2 +", "expected a value at column 7"),
            ("arg2 + nothing", "nothing: there is no such argument"),
            ('arg2 + "text"', "a text"),
            ("str(arg0, arg1 - arg2)", "reckoned from where it begins: arg1 - arg0"),
            ("str(arg0, arg1 + 1)", "expected"),
            ("duration / 2", "duration: only calls have one"),
            ("5 + 3", "expected argN"),
    ):
        said = traced(run, program, AT, "--print", listed, code=2)
        check(why in said, f"{listed}: {said}")


if __name__ == "__main__":
    main()
