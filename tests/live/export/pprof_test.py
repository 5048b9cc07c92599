#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles for pprof, read by protoc and by `go tool pprof`: functions, lines, inlined functions, addresses and numbers are
those of the traced program, of addr2line and readelf."""

import bisect
import collections
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import Skip, at_once, check, check_equal, main, require_root, require_x86_64, scenario, wait_line, wait_until  # noqa: E402
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
EVIL = "evil</script>\n\x1b[31m\udcff"  # the last one is a byte that is no UTF-8
# Unlike PROGRAM, the compiler says what is inlined.
OPTIMIZED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
__attribute__((noipa)) int leaf(int n) {
  DTRACE_PROBE1(prof, hit, n);
  return n + 1;
}
static int innermost(int n) {
  return leaf(n) + 1;
}
static int middle(int n) {
  return innermost(n) * 3;
}
__attribute__((noipa)) int left(int n) {
  return middle(n) + 2;
}
int main(int argc, char **argv) {
  int times = atoi(argv[1]), sum = 0;
  for (int i = 0; i < times; i++) sum += left(i);
  printf("left %d right 0\n", times);
  return argc == 0 ? sum : 0;
}
"""
# The driver that google/pprof is made of, which finds names elsewhere; that of `go tool pprof` does not.
DRIVER = """package main
import ("fmt"; "os"; "github.com/google/pprof/driver")
func main() {
  if err := driver.PProf(&driver.Options{}); err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
}
"""


def build(run):
    require_root()
    (run.dir / "prof.c").write_text(PROGRAM)
    # Unoptimised, all functions keep frame pointers.
    return run.build("prof", [run.dir / "prof.c"], ["-g", "-O0"])


def build_optimized(run):
    require_root()
    (run.dir / "fast.c").write_text(OPTIMIZED)
    return run.build("fast", [run.dir / "fast.c"], ["-g", "-O2", "-fno-omit-frame-pointer"])


def go(run, *words, **options):
    """What Go's tool says."""
    if not pathlib.Path(GO).exists():
        raise Skip(f"no {GO}")
    done = subprocess.run([GO, *words], capture_output=True, text=True, timeout=110, **options,
                          env={"HOME": str(run.dir), "PATH": "/usr/bin:/bin", "GOCACHE": str(run.dir / "go"), "GOPROXY": "off",
                               "GOFLAGS": "-mod=mod"})
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


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


def trace(run, program, words, times="60", point=None):
    """The profile, and the hits by function that the program says."""
    file = run.dir / "out.pb.gz"
    point = point or f"usdt:{program}:prof:hit"
    done = subprocess.run([run.tool, point, *words, *at_once([point], words), "--export", f"pprof={file}", "--", program, times],
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


def check_places(profile, program):
    """Compares the lines of the program with those of addr2line. Returns how many places have how many lines."""
    checked = collections.Counter()
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
        checked[len(places)] += 1
    return checked


@scenario
def inlined_functions_and_lines_are_those_of_addr2line(run):
    program = build(run)
    profile, said = trace(run, program, ["--ustack"])
    check_equal(check_places(profile, program), {1: 4, 2: 2}, "places by number of functions")
    check_equal(profile.total("within"), said["right"], "hits by way of an inlined function")
    # Lines of the source, by what is on them.
    source = PROGRAM.splitlines()
    calls = {source[line - 1].strip() for places in profile.places.values() for name, _, line in places if name == "within"}
    check_equal(calls, {"return leaf(n) +", "leaf(n + 1);"}, "lines of within()")


@scenario
def what_compilers_inline_is_several_functions_of_one_place(run):
    program = build_optimized(run)
    profile, said = trace(run, program, ["--ustack"])
    checked = check_places(profile, program)
    check(checked[3] == 1 and checked[1] >= 2, f"places by number of functions: {checked}")
    names = [[name for name, _, _ in places] for places in profile.places.values()]
    check(["innermost", "middle", "left"] in names, names)
    check_equal({name: profile.total(name) for name in ("innermost", "middle", "left", "leaf")},
                dict.fromkeys(("innermost", "middle", "left", "leaf"), said["left"]), "hits")


@scenario
def pprof_itself_reads_it(run):
    program = build(run)
    profile, said = trace(run, program, ["--ustack"])
    top = go(run, "tool", "pprof", "-top", run.dir / "out.pb.gz")
    cumulative = {line.split()[5]: int(line.split()[3]) for line in top.splitlines()
                  if re.match(r"\s+\d+\s+[\d.]+%\s+[\d.]+%\s+\d+\s", line)}
    check_equal({name: cumulative.get(name) for name in said}, said, top)
    check(f"File: {program.name}" in top, f"the first file is the program: {top}")
    raw = go(run, "tool", "pprof", "-raw", run.dir / "out.pb.gz")
    samples = re.search(r"^Samples:\n.*\n((?:.*\n)*?)Locations\n", raw, re.M)[1]
    check_equal(sorted(int(line.split(":")[0]) for line in samples.splitlines()),
                sorted(values[0] for _, values, _ in profile.samples), raw)
    places = re.findall(r"(\w+) (\S+/prof\.c):(\d+) s=0", raw)
    check_equal(sorted(places), sorted((name, file, str(line)) for number in profile.places.values() for name, file, line in number
                                       if file.endswith("/prof.c")), raw)


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
def pprof_finds_names_of_a_stripped_program_by_its_build_id(run):
    program = build_optimized(run)
    with_names, _ = trace(run, program, ["--ustack"])
    whole = program.with_name("whole")
    shutil.copy(program, whole)
    subprocess.run(["strip", "--strip-all", program], check=True)
    stripped, _ = trace(run, program, ["--ustack"])
    own = [each for each in stripped.mappings.values() if stripped.raw.string_table[each.filename] == str(program)][0]
    vendor = pathlib.Path(GO).parents[1] / "src/cmd/vendor/github.com"
    if not vendor.exists():
        raise Skip(f"no {vendor}")
    for name, text in (("google/pprof", "require github.com/ianlancetaylor/demangle v0.0.0\n"
                        "replace github.com/ianlancetaylor/demangle => ../../ianlancetaylor/demangle\n"), ("ianlancetaylor/demangle", "")):
        shutil.copytree(vendor / name, run.dir / name)
        (run.dir / name / "go.mod").write_text(f"module github.com/{name}\ngo 1.19\n{text}")
    (run.dir / "google/pprof/main.go").write_text(DRIVER)
    go(run, "build", "-o", run.dir / "pprof", ".", cwd=run.dir / "google/pprof")
    elsewhere = run.dir / "symbols" / stripped.raw.string_table[own.build_id]
    elsewhere.mkdir(parents=True)
    whole.rename(elsewhere / program.name)
    program.unlink()
    done = subprocess.run([run.dir / "pprof", "-symbolize=local", "-proto", f"-output={run.dir / 'named.pb.gz'}", run.dir / "out.pb.gz"],
                          capture_output=True, text=True, timeout=60,
                          env={"HOME": str(run.dir), "PATH": "/usr/bin:/bin", "PPROF_BINARY_PATH": str(run.dir / "symbols")})
    check_equal(done.returncode, 0, done.stderr)

    def of_source(profile):
        return sorted((name, line) for places in profile.places.values() for name, file, line in places if file.endswith("fast.c"))

    check(len(of_source(with_names)) >= 5, of_source(with_names))
    check_equal(of_source(Profile(run, run.dir / "named.pb.gz")), of_source(with_names), done.stderr)


@scenario
def functions_of_the_kernel_are_in_a_file_of_its_own(run):
    program = build(run)
    profile, _ = trace(run, program, ["--ustack", "--kstack"], "1", "raw_tp:sys_enter")
    kernel = [location for location in profile.locations.values()
              if location.mapping_id and profile.file_of(location) == "[kernel.kallsyms]"]
    check(kernel, "no function of the kernel")
    symbols = sorted((int(line.split()[0], 16), line.split()[2]) for line in pathlib.Path("/proc/kallsyms").read_text().splitlines()
                     if line.split()[1] in "tTwW" and "[" not in line)
    starts = [address for address, _ in symbols]
    for location in kernel:
        mapping = profile.mappings[location.mapping_id]
        check(mapping.memory_start <= location.address < mapping.memory_limit, location)
        start = starts[bisect.bisect_right(starts, location.address) - 1]
        check(profile.places[location.id][0][0] in [name for address, name in symbols if address == start], profile.places[location.id])
    # The kernel's functions are called by the process's.
    numbers = {location.id for location in kernel}
    for sample in profile.raw.sample:
        ours = [number in numbers for number in sample.location_id]
        check(ours[0] and ours == sorted(ours, reverse=True), ours)


@scenario
def durations_are_nanoseconds(run):
    program = build(run)
    before = time.time_ns()
    profile, said = trace(run, program, ["--by", "ustack", "--sum", "duration"], point=f"ucall:{program}:left")
    after = time.time_ns()
    check_equal(profile.types, [("hits", "count"), ("sum(duration)", "nanoseconds")], "types")
    check_equal(profile.total("left"), said["left"], "calls")
    raw = profile.raw
    check(0 < profile.total("left", 1) < raw.duration_nanos, f"{profile.total('left', 1)} ns of {raw.duration_nanos}")
    check(before < raw.time_nanos and raw.time_nanos + raw.duration_nanos < after, f"{raw.time_nanos} + {raw.duration_nanos}")


@scenario
def code_of_no_file_has_the_name_of_its_perf_map_or_says_why_it_has_none(run):
    require_root()
    require_x86_64()
    program = run.build("jit", [pathlib.Path(__file__).resolve().parents[1] / "stack/jit.c"], ["-O2", "-fno-omit-frame-pointer"])
    for mode, expected in (("map", "LazyCompile:made it.js:3"), ("none", "in no file")):
        file = run.dir / f"{mode}.pb.gz"
        process = run.start(program, "2", mode, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        pid = int(wait_line(process))
        try:
            tracing = run.trace_start(f"{program}:jit:hit", "-p", str(pid), "--ustack", "--export", f"pprof={file}")
            wait_until(lambda: "attached" in tracing.stderr(), "the trace is attached")
            process.stdin.write(b"\n\n")
            tracing.finish()
        finally:
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
        profile = Profile(run, file)
        made = [location for location in profile.locations.values() if location.address and location.mapping_id == 0]
        check_equal(len(made), 1, f"places in no file: {profile.places}")
        name = profile.places[made[0].id][0][0]
        check(name == expected if mode == "map" else expected in name and name[0] == "[", name)
        check_equal(sum(values[0] for places, values, _ in profile.samples if name in [place[0] for place in places]), 2, "hits")


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
    for words in (["--ustack"], ["--by", "ustack"]):
        profile, said = trace(run, program, [*words, "--sample", "1/10"], "2000")
        check_equal(profile.raw.period, 10, "the period")
        hits = sum(values[0] for _, values, _ in profile.samples)
        check(hits % 10 == 0 and sum(said.values()) // 2 < hits < sum(said.values()) * 2, f"about {sum(said.values())}: {hits}")


@scenario
def a_recording_gives_what_the_trace_gave(run):
    program = build(run)
    recording = run.dir / "out.usdtrec"
    live, said = trace(run, program, ["--ustack", "--record", recording])
    again = run.dir / "again.pb.gz"
    subprocess.run([run.tool, "--replay", recording, "--export", f"pprof={again}"], capture_output=True, check=True, timeout=60)
    replayed = Profile(run, again)
    check_equal(sorted(map(str, replayed.samples)), sorted(map(str, live.samples)), "samples")
    check_equal((replayed.raw.time_nanos, replayed.raw.duration_nanos), (live.raw.time_nanos, live.raw.duration_nanos), "times")
    subprocess.run([run.tool, "--replay", recording, "--by", "ustack", "--export", f"pprof={again}"], capture_output=True, check=True,
                   timeout=60)
    table = Profile(run, again)
    check_equal({name: table.total(name) for name in said}, said, "hits of a table")
    check_equal(table.raw.time_nanos, 0, "when its hits were is not known")


@scenario
def names_of_others_are_text(run):
    program = build(run)
    subprocess.run(["objcopy", f"--redefine-sym=right={EVIL}", "--strip-debug", program], check=True)
    profile, said = trace(run, program, ["--ustack"])
    check_equal(profile.total("evil</script>\\n\\x1b[31m\\xff"), said["right"], [name for names in profile.places.values() for name in names])


@scenario
def what_is_not_written_is_lost(run):
    program = build(run)
    done = subprocess.run([run.tool, f"usdt:{program}:prof:hit", "--ustack", "--export", "pprof=/dev/full", "--", program, "60"],
                          capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("120 not_written" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
