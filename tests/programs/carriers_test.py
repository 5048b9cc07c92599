#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One program text, four carriers of specs: the same values under each, and each is really the one asked for."""

import collections
import re

import corpusgen
import sitegen
import truth
from builds import build, build_forms
from elf_view import notes
from harness import check, check_equal, main, require_m32, require_root, require_x86_64, scenario

ANY_PROBE = ("table", "per-link", "ip-hash", "auto")  # carriers that take every spec
# Detaching perf events takes the kernel 0.1 s a site: that backend gets some of the probes, of each kind this many.
PERF_PROBES = 2


def probes_of(holder, provider, names):
    return [f"usdt:{holder}:{provider}:{name}" for name in names]


def carrier_used(result):
    found = re.search(r"specs by (.*), after", result.stderr)
    check(found is not None, f"no word about the carrier\n{result.describe()}")
    return found[1]


def check_carrier(wanted, used):
    """`used` is the notice; specs that programs of their own cannot have are named with what they have instead."""
    if wanted in ("cookie", "table", "ip-hash"):
        check_equal(used, wanted, "carrier")
    elif wanted == "per-link":
        check(used.startswith("per-link"), f"carrier: got {used}, asked for {wanted}")


def trace_by(run, carrier, program, probes, only=None, holder=None, limit=1.0, backend="auto", arguments=(),
             options=()):
    """Traces and compares; returns how often each argument was unreadable, and why."""
    log = run.dir / f"{carrier}-{backend}.log"
    log.unlink(missing_ok=True)
    result = run.trace(probes, "-v", "--carrier", carrier, "--backend", backend, *options,
                       command=["env", f"TRUTH_LOG={log}", program, *arguments])
    result.check_code(0)
    check_carrier(carrier, carrier_used(result))
    tally = truth.compare(result, log, notes(holder or program), limit, only)
    print(f"  {backend}, {carrier_used(result)}: {tally}")
    return collections.Counter((event["probe"].rsplit(":", 1)[1], index, value["error"]) for event in result.events
                               for index, value in enumerate(event["args"]) if truth.is_error(value))


def names_that_fit_cookies(run, holder, provider):
    """Those left when each probe that a forced cookie refuses by name is taken away."""
    names = sorted({note.name for note in notes(holder) if note.provider == provider})
    while names:
        result = run.trace(probes_of(holder, provider, names), "-v", "--carrier", "cookie", command=["true"])
        if result.code == 0:
            return names
        refused = re.search(r"(\w+):(\w+) at 0x[0-9a-f]+: .* do not fit an attach cookie", result.stderr)
        check(refused is not None and refused[2] in names, f"no name of a probe that does not fit\n{result.describe()}")
        names.remove(refused[2])
    return names


def check_every_carrier(run, program, provider, holder=None, arguments=()):
    """Every carrier by uprobe_multi on all probes, and by perf events on some: no value wrong, the same errors."""
    holder = holder or program
    fitting = names_that_fit_cookies(run, holder, provider)
    check(len(fitting) > 5, f"only {fitting} fit a cookie")
    rest = sorted({note.name for note in notes(holder) if note.provider == provider} - set(fitting))

    def errors(carrier, names, backend):
        return trace_by(run, carrier, program, probes_of(holder, provider, names), set(names), holder, 1.0, backend,
                        arguments)

    for backend, short, long in (("uprobe_multi", fitting, rest),
                                 ("perf_uprobe", fitting[:PERF_PROBES], rest[:PERF_PROBES])):
        seen = {carrier: errors(carrier, short + long, backend) for carrier in ANY_PROBE}
        for carrier in ANY_PROBE[1:]:
            check_equal(seen[carrier], seen["table"], f"errors by {carrier} and {backend}, beside those by table")
        expected = {key: count for key, count in seen["table"].items() if key[0] in short}
        check_equal(dict(errors("cookie", short, backend)), expected, f"errors by cookie and {backend}")


@scenario
def hand_made_forms_by_every_carrier(run):
    require_root()
    require_x86_64()
    check_every_carrier(run, build_forms(run, False, ["-mno-red-zone", "-fPIE", "-pie"]), "forms")


@scenario
def hand_made_forms_of_i386_by_every_carrier(run):
    require_root()
    require_m32()
    check_every_carrier(run, build_forms(run, True, ["-m32", "-fno-pic", "-no-pie"]), "forms")


@scenario
def compiled_program_by_every_carrier(run):
    require_root()
    program, holder = build(run, "gcc-O2-pie")
    check_every_carrier(run, program, "truth", holder, ["values", 2])


@scenario
def compiled_library_by_every_carrier(run):
    require_root()
    program, holder = build(run, "gcc-O2-shared")
    check_every_carrier(run, program, "truth", holder, ["values", 2])


# --- specs of real programs -----------------------------------------------------------------------------------------


def build_sites(run, name, sites, i386, symbols=()):
    sources = sitegen.write_program(run.dir, name, sites, i386, symbols)
    return run.build(name, sources, [*(["-m32"] if i386 else []), "-O0", "-fno-pie", "-no-pie"])


def corpus_program(run, i386):
    """(the program of all argument texts of the corpus, its sites)"""
    require_root()
    require_m32() if i386 else require_x86_64()
    distinct = corpusgen.shapes(i386)
    rows = [row for row in distinct if corpusgen.can_be_generated(row)]
    print(f"  {len(rows)} of {len(distinct)} argument texts")
    check(len(rows) > 0.95 * len(distinct), f"only {len(rows)} of {len(distinct)} argument texts can be generated")
    sites = corpusgen.sites(rows, i386)
    program = build_sites(run, "corpus", sites, i386, corpusgen.symbols(rows))
    check_equal(len(notes(program)), len(rows), "notes of the generated program")
    return program, sites


def check_corpus(run, i386):
    program, sites = corpus_program(run, i386)
    for carrier in ("table", "ip-hash", "auto"):
        trace_by(run, carrier, program, [f"usdt:{program}:*"], limit=0)
    short = {site.name for site in sites if site.provider == "short"}
    print(f"  {len(short)} of {len(sites)} fit a cookie beside the number of their site")
    trace_by(run, "cookie", program, [f"usdt:{program}:short:*"], short, limit=0)
    refused = run.trace(f"usdt:{program}:*", "--carrier", "cookie", command=["true"])
    check("do not fit an attach cookie" in refused.stderr, refused.describe())


def check_corpus_per_link(run, i386):
    program, sites = corpus_program(run, i386)
    trace_by(run, "per-link", program, [f"usdt:{program}:*"], limit=0, options=["--max-programs", len(sites)])


@scenario
def specs_of_real_programs_by_cookie_table_and_address(run):
    check_corpus(run, False)


@scenario
def specs_of_real_programs_each_with_its_program(run):
    check_corpus_per_link(run, False)


@scenario
def specs_of_real_i386_programs_by_cookie_table_and_address(run):
    check_corpus(run, True)


@scenario
def specs_of_real_i386_programs_each_with_its_program(run):
    check_corpus_per_link(run, True)


# --- many specs on one probe ----------------------------------------------------------------------------------------


class ManySpecs:
    """Sites of one probe, no two with the same argument text; some operands cannot be read."""

    KINDS = 6

    def __init__(self):
        self.memory = sitegen.Memory(False)
        base = self.memory.address + 0x8000
        self.registers = {"rbx": base, "rbp": base + 0x4000, "rsp": base + 0x8000, "rcx": 3, "r12": 0,
                          "r13": 0x8000000000000000}
        self.values = {**sitegen.default_values(False), **self.registers}

    def register(self, name, size, signed=False, shift=0):
        return sitegen.log_value(self.values[name] >> shift, size, signed)

    def at(self, displacement, base, size, index=0):
        return sitegen.log_value(self.memory.read(self.values[base] + displacement + index, size), size, False)

    def site(self, i):
        args, expect = zip(*getattr(self, f"_kind_{i % self.KINDS}")(i))
        return sitegen.Site("many", "probe", " ".join(args), expect, self.registers)

    def _kind_0(self, i):
        return [(f"-4@${-i}", sitegen.log_value(-i, 4, True)), ("8@%rbx", self.register("rbx", 8))]

    def _kind_1(self, i):
        return [(f"8@{8 * i}(%rbp)", self.at(8 * i, "rbp", 8)), ("-4@%esi", self.register("rsi", 4, True)),
                (f"2@{-i}(%rsp)", self.at(-i, "rsp", 2))]

    def _kind_2(self, i):  # twenty, and now and then forty
        count = 40 if i % 60 == 2 else 20
        return [(f"8@{4 * i + 16 * n}(%rbx)", self.at(4 * i + 16 * n, "rbx", 8)) for n in range(count)]

    def _kind_3(self, i):
        return [("4@%zork", sitegen.ERROR), (f"8@{8 * i}(%rsp)", self.at(8 * i, "rsp", 8)),
                ("16@%rax", sitegen.ERROR), ("1@%ah", self.register("rax", 1, shift=8))]

    def _kind_4(self, i):
        return [(f"8@{i}(%r12)", sitegen.ERROR), (f"4@{i}(%rbx)", self.at(i, "rbx", 4)),
                (f"8@{i}(%r13)", sitegen.ERROR), ("-4@$5", sitegen.log_value(5, 4, True))]

    def _kind_5(self, i):
        return [(f"8@{-4 * i}(%rbp,%rcx,8)", self.at(-4 * i, "rbp", 8, 24)), ("4@nosuch(%rip)", sitegen.ERROR),
                ("-8@%r15", self.register("r15", 8, True))]


@scenario
def three_hundred_specs_on_one_probe(run):
    require_root()
    require_x86_64()
    many = ManySpecs()
    sites = [many.site(i) for i in range(300)]
    check_equal(len({site.args for site in sites}), 300, "different argument texts")
    program = build_sites(run, "many", sites, False)
    check_equal(len(notes(program)), 300, "notes")
    seen = {carrier: trace_by(run, carrier, program, f"usdt:{program}:many:probe") for carrier in ANY_PROBE}
    check_equal(sum(seen["table"].values()), 50 * (2 + 2 + 1), "unreadable operands")
    seen["few programs"] = trace_by(run, "per-link", program, f"usdt:{program}:many:probe",
                                    options=["--max-programs", 4])
    for carrier, errors in seen.items():
        check_equal(errors, seen["table"], f"errors by {carrier}, beside those by table")


if __name__ == "__main__":
    main()
