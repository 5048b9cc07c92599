#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles for pprof, read by protoc and by `go tool pprof`: functions, lines, inlined functions, addresses and numbers are
those of the traced program, of addr2line and readelf."""

import collections
import gzip
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_root, scenario  # noqa: E402
from messages import compiled  # noqa: E402

GO = "/usr/lib/go-1.19/bin/go"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
static char odd[] = "odd", two[] = "two\nlines";  /* written to, so that their page is there */
__attribute__((noipa)) int leaf(int n) { DTRACE_PROBE2(prof, hit, n, n % 3 ? odd : two); return n + 1; }
static inline __attribute__((always_inline)) int within(int n) {
  return leaf(n) +
         leaf(n + 1);
}
__attribute__((noipa)) int left(int n) { return leaf(n) + 1; }
__attribute__((noipa)) int right(int n) { return within(n) + 1; }
int main(int argc, char **argv) {
  int times = atoi(argv[1]), sum = 0;
  odd[0] = 'o', two[0] = 't';
  for (int i = 0; i < times; i++) sum += left(i) + (i % 2 ? right(i) : 0);
  printf("left %d right %d\n", times, times / 2 * 2);
  return argc == 0 ? sum : 0;
}
"""
EVIL = "evil</script>\n\x1b[31m"


def build(run):
    require_root()
    (run.dir / "prof.c").write_text(PROGRAM)
    # Unoptimised, all functions keep frame pointers.
    return run.build("prof", [run.dir / "prof.c"], ["-g", "-O0"])


class Profile:
    """What a profile says, by names."""

    def __init__(self, run, file):
        self.raw = raw = compiled(run.dir, "pprof").Profile.FromString(gzip.decompress(file.read_bytes()))
        text = raw.string_table
        check_equal(text[0], "", "the first string")
        self.types = [(text[each.type], text[each.unit]) for each in raw.sample_type]
        self.mappings = {each.id: each for each in raw.mapping}
        functions = {each.id: each for each in raw.function}
        self.places = {}  # location -> [(function, file, line)], innermost first
        self.locations = {each.id: each for each in raw.location}
        for each in (self.mappings, functions, self.locations):
            check(0 not in each, "0 is no number of anything")
        for location in raw.location:
            check(location.mapping_id == 0 or location.mapping_id in self.mappings, location)
            self.places[location.id] = [(text[functions[line.function_id].name], text[functions[line.function_id].filename], line.line)
                                        for line in location.line]
        self.samples = [([place for number in sample.location_id for place in self.places[number]], list(sample.value),
                         {text[label.key]: text[label.str] if label.str else label.num for label in sample.label})
                        for sample in raw.sample]
        self.comments = [text[number] for number in raw.comment]

    def total(self, function, value=0):
        return sum(values[value] for places, values, _ in self.samples if function in [name for name, _, _ in places])

    def file_of(self, location):
        mapping = self.mappings[location.mapping_id]
        return self.raw.string_table[mapping.filename]


def trace(run, program, words, times="60"):
    file = run.dir / "out.pb.gz"
    done = subprocess.run([run.tool, f"usdt:{program}:prof:hit", *words, "--export", f"pprof={file}", "--", program, times],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    said = re.search(r"^left (\d+) right (\d+)$", done.stdout, re.M)
    return Profile(run, file), {"left": int(said[1]), "right": int(said[2])}


@scenario
def functions_have_the_hits_that_the_program_says(run):
    program = build(run)
    for words in (["--ustack"], ["--by", "ustack"]):
        profile, said = trace(run, program, words)
        check_equal(profile.types, [("hits", "count")], "types")
        check_equal({name: profile.total(name) for name in said}, said, f"hits, {words}")
        check_equal(profile.total("leaf"), sum(said.values()), "all")
        check_equal(profile.comments, ["prof:hit", f"{sum(said.values())} hits; 0 lost"], "comments")


@scenario
def inlined_functions_and_lines_are_those_of_addr2line(run):
    program = build(run)
    profile, said = trace(run, program, ["--ustack"])
    checked = 0
    for number, location in profile.locations.items():
        if location.mapping_id == 0 or profile.file_of(location) != str(program):
            continue
        offset = location.address - profile.mappings[location.mapping_id].memory_start  # of a file that is mapped as it is
        lines = subprocess.run(["addr2line", "-f", "-i", "-e", program, hex(offset)], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        places = [(name, *place.split(" ")[0].split(":")) for name, place in zip(lines[::2], lines[1::2])]
        if places[0][2] == "?":
            continue
        check_equal([(name, file, str(line)) for name, file, line in profile.places[number]], places, f"places of {offset:#x}")
        checked += len(places)
    check(checked >= 6, f"{checked} lines of the program")
    check_equal(profile.total("within"), said["right"], "hits by way of an inlined function")


@scenario
def pprof_itself_reads_it(run):
    if not pathlib.Path(GO).exists():
        raise Skip(f"no {GO}")
    program = build(run)
    _, said = trace(run, program, ["--ustack"])
    top = subprocess.run([GO, "tool", "pprof", "-top", run.dir / "out.pb.gz"], capture_output=True, text=True, timeout=120,
                         env={"HOME": str(run.dir), "PATH": "/usr/bin:/bin", "GOCACHE": str(run.dir / "go")})
    check_equal(top.returncode, 0, top.stderr)
    cumulative = {line.split()[5]: int(line.split()[3]) for line in top.stdout.splitlines()
                  if re.match(r"\s+\d+\s+[\d.]+%\s+[\d.]+%\s+\d+\s", line)}
    check_equal({name: cumulative.get(name) for name in said}, said, top.stdout)


@scenario
def a_stripped_program_keeps_addresses_and_build_id(run):
    program = build(run)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    subprocess.run(["strip", "--strip-all", program], check=True)
    profile, said = trace(run, program, ["--ustack"])
    own = [each for each in profile.mappings.values() if profile.raw.string_table[each.filename] == str(program)]
    check_equal({profile.raw.string_table[each.build_id] for each in own}, {build_id}, "the build ID")
    check_equal([each.has_functions for each in own], [False], "functions have no names: pprof may find them elsewhere")
    places = [location for location in profile.locations.values() if location.mapping_id == own[0].id]
    check(len(places) >= 3 and all(not each.line and own[0].memory_start <= each.address < own[0].memory_limit for each in places),
          places)
    check_equal(sum(values[0] for _, values, _ in profile.samples), sum(said.values()), "hits")


@scenario
def sums_and_other_keys_go_with_stacks(run):
    program = build(run)
    profile, said = trace(run, program, ["--by", "ustack, comm, arg0 % 2, str(arg1)", "--sum", "arg0"])
    check_equal(profile.types, [("hits", "count"), ("sum(arg0)", "count")], "types")
    check_equal(profile.raw.string_table[profile.raw.default_sample_type], "sum(arg0)", "the one that is shown")
    hits = [n for i in range(60) for n in [i, *([i, i + 1] if i % 2 else [])]]
    expected = collections.Counter()
    for n in hits:
        expected[n % 2, "odd" if n % 3 else "two\\nlines"] += n
    shown = collections.Counter()
    for _, values, labels in profile.samples:
        check_equal(labels["comm"], "prof", labels)
        shown[labels["arg0 % 2"], labels["str(arg1)"]] += values[1]
    check_equal(shown, expected, "sums by label")
    check_equal(profile.total("left", 1), sum(range(60)), "the sum below one function")


@scenario
def samples_have_their_weight(run):
    program = build(run)
    profile, said = trace(run, program, ["--ustack", "--sample", "1/10"], "2000")
    check_equal(profile.raw.period, 10, "the period")
    hits = sum(values[0] for _, values, _ in profile.samples)
    check(hits % 10 == 0 and sum(said.values()) // 2 < hits < sum(said.values()) * 2, f"about {sum(said.values())}: {hits}")


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    recording = run.dir / "out.usdtrec"
    live, _ = trace(run, program, ["--ustack", "--record", recording])
    again = run.dir / "again.pb.gz"
    subprocess.run([run.tool, "--replay", recording, "--export", f"pprof={again}"], capture_output=True, check=True, timeout=60)
    check_equal(sorted(map(str, Profile(run, again).samples)), sorted(map(str, live.samples)), "samples")


@scenario
def names_of_others_are_text(run):
    program = build(run)
    subprocess.run(["objcopy", f"--redefine-sym=right={EVIL}", "--strip-debug", program], check=True)
    profile, said = trace(run, program, ["--ustack"])
    check_equal(profile.total("evil</script>\\n\\x1b[31m"), said["right"], [name for names in profile.places.values() for name in names])


@scenario
def what_is_not_written_is_lost(run):
    program = build(run)
    done = subprocess.run([run.tool, f"usdt:{program}:prof:hit", "--ustack", "--export", "pprof=/dev/full", "--", program, "60"],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("120 not_written" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
