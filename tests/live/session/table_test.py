#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables and histograms: what the kernel adds up is what the program itself says it passed."""

import collections
import fractions
import json
import math
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402
from harness import at_once, attach_at_once, check, check_equal, main, require_root, scenario  # noqa: E402
from where_hits import PROBE, Hit, build  # noqa: E402

attach_at_once()

NUMBERS = "usdt:{}:" + PROBE


class Table:
    """What one run told: its rows by key, and the summary."""

    def __init__(self, lines):
        self.tables = [line for line in lines if line["type"] == "table"]
        self.summary = lines[-1]
        self.rows = {tuple(row["key"]): row for row in self.tables[-1]["rows"]}

    def column(self, name):
        return {key: row[name] for key, row in self.rows.items()}

    def bars(self, key=()):
        return {(bar["first"], bar["last"]): bar["count"] for bar in self.rows[key]["buckets"]}


def tabled(run, program, probe, *options):
    """The table of a run of where.c, and what it said of its hits."""
    log = run.dir / "said"
    done = subprocess.run([run.tool, probe.format(program), "-f", "json", *options, *at_once([probe], options), "--", "sh", "-c",
                           f"exec {program} > {log}"], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    hits = [Hit(number, line) for number, line in enumerate(log.read_text().splitlines())]
    check_equal(len(hits), 500, "lines of the program")
    return Table([json.loads(line) for line in done.stdout.splitlines()]), hits


def tabled_text(run, program, value):
    """The one number that a table of text shows, as it is shown."""
    done = subprocess.run([run.tool, NUMBERS.format(program), "--avg", value, "--", program], capture_output=True, text=True,
                          timeout=60)
    return done.stdout.splitlines()[-1].split()[-1]


def counted(hits, key):
    return collections.Counter(key(hit) for hit in hits)


KEYS = [
    ("arg0", lambda h: (h.short,)),
    ("arg1", lambda h: (h.large,)),
    ("arg2 % 8, arg0 < 0", lambda h: (h.byte % 8, int(h.short < 0))),
    ("str(arg3)", lambda h: (h.name,)),
    ("comm, str(arg3), arg2 & 1", lambda h: ("where-O2", h.name, h.byte & 1)),
    ("name, provider, arg2 & 1", lambda h: ("numbers", "where", h.byte & 1)),
    ("ntop(arg1 & 0xffff), hex(arg2 & 3)", lambda h: (f"{h.large & 255}.{h.large >> 8 & 255}.0.0", h.byte & 3)),
    ('name == "numbers", ip * 0, arg2 & 1', lambda h: (1, 0, h.byte & 1)),
    ("arg1 >> 60, uid", lambda h: (h.large >> 60, 0)),
]


@scenario
def rows_are_the_hits_with_the_same_keys(run):
    program = build(run)
    for keys, key in KEYS:
        table, hits = tabled(run, program, NUMBERS, "--by", keys)
        check_equal(table.column("count"), dict(counted(hits, key)), keys)
        check_equal(table.summary["events"], 500, keys)


@scenario
def each_row_has_the_sum_the_average_and_the_extremes_of_its_hits(run):
    program = build(run)
    for value, number in (("arg0", lambda h: h.short), ("arg1", lambda h: h.large), ("arg2 - arg0", lambda h: h.byte - h.short)):
        table, hits = tabled(run, program, NUMBERS, "--by", "arg2 % 3", "--sum", value, "--avg", value, "--min", value,
                             "--max", value)
        groups = collections.defaultdict(list)
        for hit in hits:
            groups[(hit.byte % 3,)].append(number(hit))
        check_equal(table.column("sum"), {key: sum(all_of) for key, all_of in groups.items()}, f"sums of {value}")
        check_equal(table.column("min"), {key: min(all_of) for key, all_of in groups.items()}, f"least {value}")
        check_equal(table.column("max"), {key: max(all_of) for key, all_of in groups.items()}, f"most {value}")
        for key, all_of in groups.items():
            average = sum(all_of) / len(all_of)
            check(abs(table.rows[key]["avg"] - average) <= max(0.1, abs(average) * 1e-12), f"{value}: {table.rows[key]}")


@scenario
def rows_are_in_the_order_of_their_averages_and_not_of_whole_parts_of_them(run):
    program = build(run)
    for value in ("arg2 / 16", "0 - arg2 / 16"):
        table, hits = tabled(run, program, NUMBERS, "--by", "arg2 % 17", "--avg", value)
        averages = [row["avg"] for row in table.tables[-1]["rows"]]
        check(len(set(averages)) > 5, f"averages that differ: {averages}")
        check_equal(averages, sorted(averages, reverse=True), value)


@scenario
def an_average_is_rounded_once_and_ends_of_ranges_hold_what_is_in_them(run):
    """Of numbers whose sum is beyond 64 bits: 500 of which most are large."""
    program = build(run)
    for value in ("arg1", "arg1 | 0xffffffff00000000", "0 - arg2", "0 - arg2 / 200"):
        table, hits = tabled(run, program, NUMBERS, "--sum", value, "--avg", value)
        row = table.rows[()]
        average = fractions.Fraction(row["sum"]) / row["count"]
        shown = fractions.Fraction(tabled_text(run, program, value))
        check(abs(shown - average) <= fractions.Fraction(1, 20), f"{value}: {shown}, and not {float(average)}")
    table, hits = tabled(run, program, NUMBERS, "--lhist", "arg1:0:1000:100")
    for (first, last), count in table.bars().items():
        check_equal(sum(first <= h.large <= last for h in hits), count, f"{first} to {last}")


def log2_range(number):
    """As Python counts bits."""
    if number == 0:
        return (0, 0)
    bits = abs(number).bit_length()
    first, last = 1 << (bits - 1), (1 << bits) - 1
    return (first, last) if number > 0 else (-last, -first)


@scenario
def histograms_have_each_hit_in_the_range_it_is_in(run):
    program = build(run)
    for value, number in (("arg0", lambda h: h.short), ("arg1", lambda h: h.large)):
        table, hits = tabled(run, program, NUMBERS, "--hist", value)
        check_equal(table.bars(), dict(counted(hits, lambda h: log2_range(number(h)))), value)
        finer, _ = tabled(run, program, NUMBERS, "--hist", value, "--hist-detail", "4")
        check_equal(sum(finer.bars().values()), 500, "hits in finer ranges")
        for (first, last), count in finer.bars().items():
            check_equal(sum(first <= number(hit) <= last for hit in hits), count, f"{value} from {first} to {last}")
            check(last - first <= max(abs(first), abs(last)) / 16, f"a range of a sixteenth: {first} to {last}")
    table, hits = tabled(run, program, NUMBERS, "--lhist", "arg0:-100:90:25", "--by", "arg2 & 1")
    for odd in (0, 1):
        for (first, last), count in table.bars((odd,)).items():
            check_equal(sum(first <= h.short <= last and h.byte & 1 == odd for h in hits), count, f"{first} to {last}")
        check_equal(sum(table.bars((odd,)).values()), 250, "hits")


@scenario
def different_values_are_counted_by_row(run):
    program = build(run)
    table, hits = tabled(run, program, NUMBERS, "--distinct", "str(arg3)", "--by", "arg2 & 3")
    names = collections.defaultdict(set)
    for hit in hits:
        names[(hit.byte & 3,)].add(hit.name)
    check_equal(table.column("distinct"), {key: len(all_of) for key, all_of in names.items()}, "different names")


@scenario
def every_carrier_and_backend_fills_the_same_table(run):
    program = build(run)
    for carrier in ("table", "per-link", "ip-hash"):
        for backend in ("uprobe_multi", "perf_uprobe"):
            table, hits = tabled(run, program, NUMBERS, "--by", "str(arg3)", "--max", "arg0", "--where", "arg0 % 2 == 0",
                                 "--carrier", carrier, "--backend", backend)
            meant = [hit for hit in hits if hit.short % 2 == 0]
            check_equal(table.column("count"), dict(counted(meant, lambda h: (h.name,))), f"{carrier}, {backend}")
            check_equal(table.column("max"), {(name,): max(h.short for h in meant if h.name == name)
                                              for name in {h.name for h in meant}}, f"{carrier}, {backend}")
            check_equal((table.summary["events"], table.summary["rejected"]), (len(meant), 500 - len(meant)), carrier)


@scenario
def calls_are_put_in_rows_at_their_end(run):
    program = build(run)
    table, hits = tabled(run, program, "ucall:{}:serve", "--by", "step", "--sum", "retval")
    results = collections.Counter()
    for hit in hits:
        results[(hit.step,)] += hit.result
    check_equal(table.column("sum"), dict(results), "results")
    long_ones, _ = tabled(run, program, "ucall:{}:serve", "--hist", "duration")
    check_equal(sum(long_ones.bars().values()), 500, "calls")
    check(all(100 < first < 10**9 for first, _ in long_ones.bars()), f"durations: {long_ones.bars()}")


@scenario
def members_are_keys_and_what_cannot_be_read_is_in_no_row(run):
    program = build(run)
    table, hits = tabled(run, program, "uprobe:{}:serve", "--by", "req->peer->flags", "--sum", "req->size")
    meant = [hit for hit in hits if hit.i % 5]  # every fifth has no peer
    check_equal(table.column("count"), dict(counted(meant, lambda h: (h.flags,))), "flags")
    check_equal(table.summary["undecided"], 100, "hits without a peer")
    check_equal(table.summary["events"], 400, "hits in rows")


@scenario
def sums_and_extremes_of_threads_that_hit_at_once_are_exact(run):
    require_root()
    program = run.build("tables", [HERE / "tables.c"], ["-O2"], libs=["-lpthread"])
    threads, hits = 8, 25000
    for by in ("arg0", "probe"):
        done = subprocess.run([run.tool, f"usdt:{program}:tables:value", "-f", "json", "--by", by, "--sum", "arg1",
                               "--min", "arg1", "--max", "arg1", "--", program, str(threads), str(hits)],
                              capture_output=True, text=True, timeout=120)
        check_equal(done.returncode, 0, done.stderr)
        said = [[int(word) for word in line.split()] for line in done.stdout.splitlines() if not line.startswith("{")]
        table = Table([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])
        rows = [(row["count"], row["sum"], row["min"], row["max"]) for _, row in sorted(table.rows.items())]
        if by == "probe":
            said = [[0, threads * hits, sum(s[2] for s in said), min(s[3] for s in said), max(s[4] for s in said)]]
        check_equal(rows, [tuple(told[1:]) for told in said], by)


@scenario
def a_table_has_no_more_rows_than_it_has_room_for(run):
    """Those that came first keep all their hits; the others are counted. A replay of the events has the same."""
    program = build(run)
    for most in (1, 2, 16):
        table, hits = tabled(run, program, NUMBERS, "--by", "arg0", "--max-rows", str(most))
        first = list(dict.fromkeys((hit.short,) for hit in hits))[:most]
        kept = {key: count for key, count in counted(hits, lambda h: (h.short,)).items() if key in first}
        check_equal(table.column("count"), kept, f"rows of the first {most} keys")
        check_equal(table.summary["lost"]["table_full"], 500 - sum(kept.values()), "hits without a row")
        check_equal(table.summary["events"], sum(kept.values()), "hits in rows")


@scenario
def threads_on_all_processors_share_the_room_of_a_table(run):
    require_root()
    program = run.build("tables", [HERE / "tables.c"], ["-O2"], libs=["-lpthread"])
    threads, hits = 8, 5000
    for by, most in (("arg0", 2), ("arg1 & 1023", 64)):
        done = subprocess.run([run.tool, f"usdt:{program}:tables:value", "-f", "json", "--by", by, "--max-rows", str(most),
                               "--", program, str(threads), str(hits)], capture_output=True, text=True, timeout=120)
        check_equal(done.returncode, 0, done.stderr)
        table = Table([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])
        check_equal(len(table.rows), most, f"rows by {by}")
        in_rows = sum(table.column("count").values())
        check_equal(in_rows + table.summary["lost"]["table_full"], threads * hits, f"hits by {by}")
        if by == "arg0":
            check_equal(set(table.column("count").values()), {hits}, "a thread that has a row has all its hits there")


REALS = r"""
#include <stdio.h>
struct reals { double wide; float narrow; int group; };
__attribute__((noinline)) int take(struct reals* reals) {
  __asm__ volatile("" : "+r"(reals) : : "memory");
  return reals->group;
}
int main(void) {
  const double odd[] = {1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, -0.1, 3e-45};
  unsigned long state = 88172645463325252u;
  for (int i = 0; i < 400; i++) {
    struct reals reals;
    unsigned long bits = state ^= state << 13;
    bits = state ^= state >> 7;
    bits = state ^= state << 17;
    __builtin_memcpy(&reals.wide, &bits, 8);
    reals.group = i % 8;
    if (reals.group == 1) reals.wide = odd[i / 8 % 10];
    if (reals.group == 2) reals.wide = -(i / 10.0);
    if (reals.group == 3) reals.wide = -0.0;
    reals.narrow = (float)reals.wide;
    __builtin_memcpy(&bits, &reals.wide, 8);
    unsigned narrow;
    __builtin_memcpy(&narrow, &reals.narrow, 4);
    printf("%d %lu %u\n", reals.group, bits, narrow);
    take(&reals);
  }
  return 0;
}
"""


def as_json(real):
    """As JSON has it; 0 has no sign there."""
    return "NaN" if math.isnan(real) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(real, real + 0.0)


class Real:
    """One of them, as the program says it."""

    def __init__(self, form, bits):
        self.value = struct.unpack(form, int(bits).to_bytes(struct.calcsize(form), "little"))[0]
        self.form = form


def said_reals(run, place, form):
    """By group; NaNs are not among the numbers of a group."""
    groups, nans = collections.defaultdict(list), collections.Counter()
    for words in (line.split() for line in (run.dir / "said").read_text().splitlines()):
        real = Real(form, words[place]).value
        if math.isnan(real):
            nans[(int(words[0]),)] += 1
        else:
            groups[(int(words[0]),)].append(real)
    check(sum(nans.values()) > 0 and len(groups) == 8, "all kinds of reals")
    return groups, nans


def exact_sum(reals):
    """Rounded once, by Python's whole numbers."""
    infinities = {real for real in reals if math.isinf(real)}
    if infinities:
        return infinities.pop() if len(infinities) == 1 else math.nan
    total = sum(map(fractions.Fraction, reals), fractions.Fraction())
    try:
        return float(total)
    except OverflowError:
        return math.copysign(math.inf, total)


REAL_VALUES = (("reals->wide", 1, "<d"), ("reals->narrow", 2, "<f"))


def build_reals(run):
    require_root()
    (run.dir / "reals.c").write_text(REALS)
    return run.build("reals", [run.dir / "reals.c"], ["-O1", "-g"])


def table_of_reals(run, program, value, *view):
    """The table of a run, live; that of a recording of another run is the same."""
    command = ["--", "sh", "-c", f"exec {program} > {run.dir / 'said'}"]
    done = subprocess.run([run.tool, f"uprobe:{program}:take", "-f", "json", *view, *command], capture_output=True, text=True,
                          timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    live = Table([json.loads(line) for line in done.stdout.splitlines()])
    file = run.dir / f"recording{value[-1]}"
    if not file.exists():
        done = subprocess.run([run.tool, f"uprobe:{program}:take", "--print", f"reals->group, {value}", "--record", file, *command],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
    done = subprocess.run([run.tool, "--replay", file, "-f", "json", *view], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    again = Table([json.loads(line) for line in done.stdout.splitlines()])
    check_equal(again.tables[-1]["rows"], live.tables[-1]["rows"], f"replayed {view}")
    return live


@scenario
def sums_and_extremes_of_reals_are_those_of_their_values(run):
    program = build_reals(run)
    for value, place, form in REAL_VALUES:
        live = table_of_reals(run, program, value, "--by", "reals->group", "--sum", value, "--avg", value, "--min", value, "--max", value)
        groups, nans = said_reals(run, place, form)
        check_equal(live.column("min"), {key: as_json(min(reals)) for key, reals in groups.items()}, f"least {value}")
        check_equal(live.column("max"), {key: as_json(max(reals)) for key, reals in groups.items()}, f"most {value}")
        check_equal(live.column("count"), {key: len(reals) for key, reals in groups.items()}, f"counts of {value}")
        sums = {key: exact_sum(reals) for key, reals in groups.items()}
        check_equal(live.column("sum"), {key: as_json(each) for key, each in sums.items()}, f"sums of {value}")
        averages = {key: as_json(each / len(groups[key])) for key, each in sums.items()}
        check_equal(live.column("avg"), averages, f"averages of {value}")
        check_equal(live.summary["undecided"], sum(nans.values()), "hits that are no number")
        alone = table_of_reals(run, program, value, "--min", value)
        check_equal(alone.column("min"), {(): as_json(min(min(reals) for reals in groups.values()))}, "without a sum")


@scenario
def reals_are_keys_and_are_counted_where_they_differ(run):
    program = build_reals(run)
    for value, place, form in REAL_VALUES:
        live = table_of_reals(run, program, value, "--by", f"reals->group % 4, {value}")
        groups, nans = said_reals(run, place, form)
        wanted = collections.Counter()
        for (group,), reals in groups.items():
            for real in reals:
                wanted[(group % 4, as_json(real))] += 1
        for (group,), count in nans.items():
            wanted[(group % 4, "NaN")] += count
        check_equal(live.column("count"), dict(wanted), f"keys {value}")
        distinct = table_of_reals(run, program, value, "--distinct", value, "--by", "reals->group")
        check_equal(distinct.column("distinct"), {key: len(set(groups[key])) + (1 if nans[key] else 0) for key in set(groups) | set(nans)},
                    f"different values of {value}")


def in_range(real, low, high):
    """A range of --hist: of negative numbers it is the other end that belongs to it."""
    if low == high:
        return real == low
    return low < real <= high if high <= 0 else low <= real < high


def ranges(row):
    return [(float(bar["low"]), float(bar["high"]), bar["count"]) for bar in row["buckets"]]


@scenario
def histograms_of_reals_have_each_hit_in_the_range_it_is_in(run):
    program = build_reals(run)
    for value, place, form in REAL_VALUES:
        for detail in (0, 4):
            live = table_of_reals(run, program, value, "--hist", value, "--hist-detail", str(detail))
            groups, nans = said_reals(run, place, form)
            all_of = [real for reals in groups.values() for real in reals]
            shown = ranges(live.rows[()])
            check_equal(sum(count for _, _, count in shown), len(all_of), "hits")
            for low, high, count in shown:
                check_equal(sum(in_range(real, low, high) for real in all_of), count, f"{value} from {low} to {high}")
                least = 2.0 ** (-126 if form == "<f" else -1022)
                if low != high and min(abs(low), abs(high)) >= least and math.isfinite(high - low):
                    check((high - low) * 2**detail == 2.0 ** math.floor(math.log2(min(abs(low), abs(high)))), f"{low} to {high}")
            check_equal(live.summary["undecided"], sum(nans.values()), "hits that are no number")
        bounds = [float(f"{n / 10:.1f}") for n in range(-155, 21, 5)]
        live = table_of_reals(run, program, value, "--lhist", f"{value}:-15.5:2:0.5")
        for low, high, count in ranges(live.rows[()]):
            check(math.isinf(low) or low in bounds, f"{low} is a bound")
            check(math.isinf(high) or high in bounds, f"{high} is a bound")
            check_equal(sum(low <= real < high or (real == high and math.isinf(high)) for real in all_of), count, f"from {low} to {high}")


@scenario
def sums_of_reals_that_threads_add_at_once_are_exact(run):
    require_root()
    program = run.build("tables-g", [HERE / "tables.c"], ["-O2", "-g"], libs=["-lpthread"])
    threads, hits = 8, 20000
    done = subprocess.run([run.tool, f"uprobe:{program}:take_real", "-f", "json", "--by", "real->thread", "--sum", "real->value", "--",
                           program, str(threads), str(hits), "reals"], capture_output=True, text=True, timeout=120)
    check_equal(done.returncode, 0, done.stderr)
    table = Table([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])
    # As tables.c has them: what is large is taken away again.
    wanted = exact_sum([(-1 if i % 4 == 1 else 1) * (1e300 if i % 4 < 2 else 1e-300) * (i // 4 % 1000) for i in range(hits)])
    check(0 < wanted < 1e-290, f"what is left of it: {wanted}")
    check_equal(table.column("sum"), {(thread,): wanted for thread in range(threads)}, "sums")
    check_equal(table.column("count"), {(thread,): hits for thread in range(threads)}, "hits")


@scenario
def long_texts_are_cut_and_marked(run):
    program = build(run)
    table, hits = tabled(run, program, NUMBERS, "--by", "str(arg3), arg2 & 1, cpu * 0, pid * 0, tid * 0, uid")
    # 5 numbers leave 24 bytes for the text.
    cut = {hit.name[:23] for hit in hits}
    check_equal({row["key"][0] for row in table.rows.values()}, cut, "texts")
    check(all(row["truncated"] == [0] for row in table.rows.values()), "each is marked")
    said = "a row whose text ends in ... may be several (--key-size)"
    for keys, is_said in (("str(arg3), arg2 & 1, cpu * 0, pid * 0, tid * 0, uid", True), ("arg2 & 1", False)):
        shown = subprocess.run([run.tool, NUMBERS.format(program), "--by", keys, "--", program], capture_output=True, text=True, timeout=60).stdout
        check_equal(said in shown.splitlines(), is_said, f"{keys}: a table for people:\n{shown}")


@scenario
def long_texts_are_whole_where_there_is_room_for_them(run):
    program = build(run)
    keys = "str(arg3), arg2 & 1, cpu * 0, pid * 0, tid * 0, uid"
    table, hits = tabled(run, program, NUMBERS, "--by", keys, "--sum", "arg0", "--key-size", "400")
    wanted = counted(hits, lambda hit: (hit.name, hit.byte & 1))
    check(any(len(name) > 23 for name, _ in wanted), "no long text")
    check_equal({key[:2]: row["count"] for key, row in table.rows.items()}, wanted, "rows by whole texts")
    check_equal({key[:2]: row["sum"] for key, row in table.rows.items()},
                {key: sum(hit.short for hit in hits if (hit.name, hit.byte & 1) == key) for key in wanted}, "sums")
    check(not any("truncated" in row for row in table.rows.values()), "none is marked")
    check_equal(table.summary["events"], len(hits), "events in rows")
    # A text is one by its type alone, too.
    file = run.dir / "names.toml"
    file.write_text(f"[arguments]\n'where:numbers' = 'short, large, byte, name:string, real, peer'\n"
                    f"[question.names]\nprobes = ['{NUMBERS.format(program)}']\nby = 'args.name'\nkey-size = 400\n")
    done = subprocess.run([run.tool, "--script", file, "-f", "json", "--", program], capture_output=True, text=True, timeout=60)
    rows = [json.loads(line) for line in done.stdout.splitlines() if '"type":"table"' in line][-1]["rows"]
    check_equal({row["key"][0]: row["count"] for row in rows}, counted(hits, lambda hit: hit.name), "rows by a declared text")


@scenario
def a_terminal_shows_the_table_again_and_again_in_its_place(run):
    require_root()
    program = run.build("tables", [HERE / "tables.c"], ["-O2"], libs=["-lpthread"])
    main_end, tool_end = pty.openpty()
    with subprocess.Popen([run.tool, f"usdt:{program}:tables:value", "--by", "arg0", "--interval", "0.2", "-d", "1.2", "--",
                           program, "2", "100000000"], stdout=tool_end, stderr=subprocess.PIPE) as traced:
        os.close(tool_end)
        shown = b""
        while True:
            try:
                piece = os.read(main_end, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        traced.stderr.read()
    os.close(main_end)
    times = shown.count(b"COUNT")
    check(times >= 3, f"shown {times} times: {shown!r}")
    check_equal(len(re.findall(rb"\x1b\[\d+A", shown)), times - 1, "times it was written over the one before")


UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


@scenario
def durations_have_units_for_people_and_are_nanoseconds_for_programs(run):
    program = build(run)
    events = run.dir / "calls"
    subprocess.run([run.tool, f"ucall:{program}:serve", "--record", events, "--", program], check=True, timeout=60,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for view in ("--sum", "--avg", "--min", "--max"):
        shown, exact = [subprocess.run([run.tool, "--replay", events, "--by", "step", view, "duration", "-f", form], check=True,
                                       capture_output=True, text=True, timeout=60).stdout.splitlines()
                        for form in ("text", "json")]
        rows = {row["key"][0]: row[view[2:]] for row in json.loads(exact[0])["rows"]}
        check_equal(len(shown), 1 + len(rows), f"lines of {shown}")
        for line in shown[1:]:
            _, text, step = line.split()
            number, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text).groups()
            check(abs(float(number) * UNITS[unit] - rows[int(step)]) <= 0.05 * rows[int(step)], f"{view}: {line}, {rows}")
    plain = subprocess.run([run.tool, "--replay", events, "--sum", "duration + 0"], check=True, capture_output=True, text=True)
    check(plain.stdout.split()[-1].isdigit(), f"what is made of a duration may be anything: {plain.stdout}")


VIEWS = [
    ["--by", "arg2 % 3, str(arg3)", "--sum", "arg0", "--min", "arg0", "--max", "arg0"],
    ["--by", "comm, arg1 >> 61", "--avg", "arg1"],
    ["--by", "name, provider, probe", "--max", "arg0"],
    ["--by", "hex(arg1 >> 60), ntop(arg0), ip"],
    ["--hist", "arg1"],
    ["--hist", "arg0", "--hist-detail", "3", "--by", "arg2 & 1"],
    ["--lhist", "arg0:-50:200:33", "--by", "str(arg3)"],
    ["--distinct", "str(arg3)", "--by", "pid", "--top", "1"],
    ["--by", "100 / arg0, probe", "--where", "arg4 > 0.25"],
]


@scenario
def a_recording_makes_the_same_tables_as_the_kernel(run):
    program = build(run)
    events = run.dir / "events"
    done = subprocess.run([run.tool, NUMBERS.format(program), "--record", events, "--print", "arg0, arg1, arg2, str(arg3), arg4",
                           "--", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    for view in VIEWS:
        live, _ = tabled(run, program, NUMBERS, *view)
        done = subprocess.run([run.tool, "--replay", events, "-f", "json", *view], capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 0, done.stderr)
        replayed = [json.loads(line) for line in done.stdout.splitlines()]
        # The process is another one, that shell its parent; its numbers alone may differ.
        rows = [[{**row, "key": row["key"] if "pid" not in view else []} for row in table["rows"]]
                for table in (live.tables[-1], replayed[0])]
        check_equal(rows[1], rows[0], f"rows of {view}")
        for name in ("events", "rejected", "undecided"):
            check_equal(replayed[-1][name], live.summary[name], f"{name} of {view}")


WRONG = [
    (["--max", "arg4 * 2"], "arg4 is a real, which can only be compared"),
    (["--by", "0.5"], "a literal is the same for every hit"),
    (["--by", "hex(arg4)"], "arg4 is a real, which can only be compared"),
    (["--lhist", "arg4:0:2000:1"], "more than 1024 ranges of a real"),
    (["--lhist", "arg0:0:2.5:0.5"], "arg0 is no real"),
    (["--lhist", "arg4:0:2.:0.5"], "EXPR:FROM:TO:STEP"),
    (["--lhist", "arg4:0:1:0.0000000000000000001"], "EXPR:FROM:TO:STEP"),
    (["--lhist", "arg4:0:1:0"], "no buckets"),
    (["--by", "1 + hex(arg0)"], "a whole one"),
    (["--by", "arg0, arg9"], "arg9: there is no such argument"),
    (["--by", "arg0,"], "expected a value"),
    (["--sum", "arg0", "--max", "arg1"], "one trace has one value"),
    (["--sum", "str(arg3)"], "a text can only be compared"),
    (["--hist", "arg0", "--sum", "arg0"], "exclude each other"),
    (["--lhist", "arg0:1:2"], "EXPR:FROM:TO:STEP"),
    (["--lhist", "arg0:5:2:1"], "no buckets"),
    (["--by", "arg0,arg1,arg2,arg5,pid,tid,cpu,uid,gid"], "at most 64 fit"),
    (["--hist", "duration"], "only calls have one"),
    (["--top", "3"], "--top is about a table"),
    (["--interval", "1"], "--interval is about a table"),
    (["--by", "arg0", "--print", "arg1"], "do not go with them"),
    (["--where", "probe == 1"], "a text is compared with a number"),
]


@scenario
def what_makes_no_table_is_refused_with_the_reason(run):
    program = build(run)
    for options, reason in WRONG:
        done = subprocess.run([run.tool, f"usdt:{program}:{PROBE}", *options, "--", program], capture_output=True,
                              text=True, timeout=60)
        check_equal(done.returncode, 2, f"{options}: {done.stderr}")
        check(reason in done.stderr, f"{options}: {done.stderr}")


if __name__ == "__main__":
    main()
