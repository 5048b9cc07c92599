#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hits of a function are its calls, or a notice says what is different, whatever compilers made of the function.

Programs count the calls themselves, where they make them, and print "FUNCTION CALLS". USDT_COMPILERS="gcc clang gcc-16"
names the compilers of C to try (g++ and clang++ with them).
"""

import os
import random
import shutil
import subprocess

from puppet import HERE  # noqa: F401 (finds the harness)
from harness import (LONG, Failure, check, check_equal, main, require_program, require_root, require_x86_64, scenario,
                     wait_line, wait_until, with_long)

COMPILERS = os.environ.get("USDT_COMPILERS", "gcc clang").split()
SEEDS = int(os.environ.get("USDT_SEEDS", "0"))
LINK = os.environ.get("USDT_LINK", "").split()  # "-static": of a compiler whose C library is newer than this machine's
GO = [go for go in os.environ.get("USDT_GO", "go:/usr/lib/go-1.19/bin/go").split(":") if shutil.which(go)][:2]
# No -O0: nothing is split or inlined there.
LEVELS = ["-O1", "-O2", "-O3", "-Os"]


def of_cpp(compiler):
    return compiler.replace("clang", "clang++") if "clang" in compiler else compiler.replace("gcc", "g++")


def compilers(language="c"):
    named = COMPILERS if language == "c" else [of_cpp(each) for each in COMPILERS]
    return [each for each in named if shutil.which(each)]


def built(run, name, sources, flags, compiler):
    return run.build(name.replace("/", "_"), sources, ["-w", *flags], compiler, LINK if "/" in compiler else [])


def calls_said(program):
    """What the program says of itself: calls by function."""
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: int(line.split()[1]) for line in out.splitlines()}


def hits_seen(run, program, names, *options, prefix="uprobe"):
    """Hits by the name that was asked for; and the tool's notices."""
    seen = {}
    result = run.trace([f"{prefix}:{program}:{name}" for name in names], "--count", *options,
                       command=["sh", "-c", f"exec {program} > /dev/null"])
    result.check_code(0)
    notices = result.stderr
    for row in result.summary["probes"]:
        name = row["probe"].split(":", 2)[2].strip('"').split("(")[0]
        seen[name] = seen.get(name, 0) + row["hits"]
    return seen, notices


def compare(run, where, program, names=None, said=None, table=None):
    said = said or calls_said(program)
    names = names or list(said)
    seen, notices = hits_seen(run, program, names)
    for name in names:
        hits = seen.get(name, 0)
        lines = [line for line in notices.splitlines() if name.split("::")[-1] in line or "other function" in line]
        missed = any("may be missed" in line for line in lines)
        rounds = any("or a round" in line for line in lines)
        twice = any("counted twice" in line for line in lines)
        fits = hits == said[name] or (missed and hits < said[name]) or ((rounds or twice) and hits > said[name])
        if table is not None:
            how = "wrong" if not fits else "said" if hits != said[name] else "equal, said" if missed or rounds else "equal"
            table[how] = table.get(how, 0) + 1
        if not fits and SEEDS:
            print(f"{where} {name}: {hits} hits of {said[name]} calls")
        else:
            check(fits, f"{where} {name}: {hits} hits of {said[name]} calls\n{notices}")


# --- functions that compilers split ----------------------------------------------------------------------------------

SPLIT_HEAD = """#include <stdio.h>
#include <string.h>
extern void escape(volatile void *);
volatile int sink;
volatile long arguments = 2;
"""
ESCAPE = "void escape(volatile void *p) { *(volatile char *)p = 1; }\n"


class SplitProgram:
    """Functions with an early return before a long rest, which GCC splits; called directly, with constants, by a pointer
    and by themselves."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [SPLIT_HEAD]
        self.names = [f"work{seed}_{i}" for i in range(12)]
        runs = [run for number, name in enumerate(self.names) for run in self.function(number, name)]
        says = " ".join(f'printf("{name} %d\\n", n_{name});' for name in self.names)
        self.lines.append("int main(void) { for (int i = 0; i < 4; i++) { " + " ".join(f"{run}(i);" for run in runs)
                          + " } " + says + " return 0; }")

    def source(self):
        return "\n".join(self.lines) + "\n"

    def rest(self, name):
        # No two are equal, which compilers would make one.
        return f"sink += {self.random.randrange(1 << 20)};{self.rest_of(name)}"

    def rest_of(self, name):
        again = f"if (x > 3) {{ n_{name}++; sum += {name}(x / 2, y); }}" if self.random.random() < 0.25 else ""
        return self.random.choice((
            f"for (int i = 0; i < (x & 7); i++) {{ escape(&sink); sink += i; }} {again} return y * 3;",
            f"char b[300]; snprintf(b, sizeof b, \"%d %d\", x, x + 1); sum += (int)strlen(b); {again} "
            "for (int i = 0; i < 20; i++) sum += b[i] * i; sink = sum; return sum + b[3];",
            f"long a[4]; for (int i = 0; i < 4; i++) {{ a[i] = x * i; escape(a + i); }} {again} "
            "switch (x & 3) { case 0: escape(a); return a[1]; case 1: sink += 2; return a[2]; default: return a[3] + y; }"))

    def function(self, number, name):
        early = self.random.choice(("if (x == 0) return 0;", "if (x & 1) return y;", "if (x < 0 || y == 3) return 1;",
                                    "if (!x) return y; if (y < 0) return x;", "if (__builtin_expect(x > 2, 1)) return y;"))
        static = "static " if self.random.random() < 0.5 else ""
        # On one line, as generated code and macros have it, or on several.
        space = "\n  " if self.random.random() < 0.7 else " "
        self.lines.append(f"int n_{name}; {static}long {name}(int x, long y) {{{space}long sum = 0;{space}{early}{space}"
                          f"{self.rest(name)}{space}}}")
        callers = []
        for one in range(self.random.choice((1, 2, 3))):
            # (Of a call whose result is known beforehand, as that with 0 may be, compilers leave nothing at all.)
            argument = self.random.choice(("i", "i + 1", "i & 1", "i * 5", "(int)arguments"))
            caller = f"run{number}_{one}"
            callers.append(caller)
            self.lines.append(f"__attribute__((noinline)) long {caller}(int i) {{ n_{name}++; return {name}({argument}, i) + {one}; }}")
        if self.random.random() < 0.4:
            caller = f"run{number}_p"
            callers.append(caller)
            self.lines.append(f"__attribute__((noinline)) long {caller}(int i) {{ long (*volatile f)(int, long) = {name}; "
                              f"n_{name}++; return f(i, 7); }}")
        return callers


def compare_by_chance(run, kind, make, helpers):
    """Programs of `make(seed)`, built with `helpers` by each compiler at each level, and their hits against their calls."""
    require_root()
    beside = run.dir / "helpers.c"
    beside.write_text(helpers)
    table = {}
    for compiler in compilers():
        for level in LEVELS:
            for seed in range(SEEDS or (20 if LONG else 1)):
                source = run.dir / f"{kind}.c"
                source.write_text(make(seed).source())
                name = f"{kind}-{compiler}{level}-{seed}"
                program = built(run, name, [source, beside], ["-g", level], compiler)
                compare(run, name, program, table=table)
    print(f"functions: {table}")


@scenario
def functions_that_compilers_split_and_inline_again_are_hit_once_for_each_call(run):
    compare_by_chance(run, "split", SplitProgram, ESCAPE)


@scenario
def what_was_split_off_is_only_meant_by_its_own_name(run):
    require_root()
    escape = run.dir / "escape.c"
    escape.write_text(ESCAPE)
    source = run.dir / "part.c"
    source.write_text(SPLIT_HEAD + """
        int n_work, rests;
        long work(int x) { if (x == 0) return 0; char b[300]; rests++; snprintf(b, sizeof b, "%d %d", x, x + 1);
          for (int i = 0; i < 20; i++) sink += b[i] * i; escape(b); return sink + b[3]; }
        __attribute__((noinline)) long a(int x) { n_work++; return work(x) + 1; }
        __attribute__((noinline)) long b(int x) { n_work++; return work(x + 1) + 2; }
        int main(void) { for (int i = 0; i < 5; i++) { a(i & 1); b(i); } printf("work %d\\nwork.part.0 %d\\n", n_work, rests); }
        """)
    program = built(run, "part", [source, escape], ["-g", "-O2"], "gcc")
    said = calls_said(program)
    check_equal(said, {"work": 10, "work.part.0": 7}, "calls")
    for pattern, wanted in (("work", 10), ("work*", 10), ("work.part.0", 7), ("*.part*", 7)):
        seen, _ = hits_seen(run, program, [pattern])
        check_equal(sum(seen.values()), wanted, f"hits of {pattern}")
    seen, notices = hits_seen(run, program, ["work"], prefix="ucall")
    check("2 inlined copies" in notices or "inlined" in notices, notices)
    check_equal(sum(seen.values()), 0, f"calls of work that return: {notices}")


# --- inlined copies in branches and loops ----------------------------------------------------------------------------


class BranchesProgram:
    """Functions that are inlined wherever they are called: on both sides of a branch, in arms of a switch, in loops, one
    in another, before what others do, too. Optimisers make one of equal branches, and lead ways into the midst of a copy."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [SPLIT_HEAD, "extern void put(double); extern long next(void);",
                      "int calls[16];"]
        self.names = [f"copy{seed}_{i}" for i in range(6)]
        for number, name in enumerate(self.names):
            self.copied(number, name)
        runs = [self.caller(number) for number in range(10)]
        says = " ".join(f'printf("{name} %d\\n", calls[{i}]);' for i, name in enumerate(self.names))
        self.lines.append("int main(void) { for (int i = 0; i < 6; i++) { " + " ".join(f"{run}(i);" for run in runs)
                          + " } " + says + " return 0; }")

    def source(self):
        return "\n".join(self.lines) + "\n"

    def copied(self, number, name):
        body = self.random.choice((
            "put(x); put(x * 2);", "put((float)x); sink += 1;", "if (n > 2) put(x); else sink += n;",
            "for (int i = 0; i < n; i++) sink += i; put(x);", "sink = n; put(x); return n + 1;",
            "do { sink += n; } while (--n > 0); put(x);", "switch (n & 3) { case 0: put(x); break; case 1: sink = 7; break; default: put(3); }"))
        first = self.random.choice(("", "x = x + 1; ", "n += 3; ", "double y = x * 0.5; put(y); "))
        self.lines.append(f"static inline __attribute__((always_inline)) int {name}(int n, double x) {{ {first}"
                          f"calls[{number}]++;\n  {body}\n  return n; }}")

    def call(self):
        name = self.random.choice(self.names)
        n = self.random.choice(("i", "i + 1", "3", "(int)next()", "sum"))
        x = self.random.choice(("1.5", "i", "(float)next()", "next() / 64.0", "number", "(i > 2 ? 0.5 : number)"))
        return f"sum += {name}({n}, {x});"

    def block(self, depth):
        form = self.random.choice(("call", "call", "branch", "same", "loop", "switch", "early")) if depth < 3 else "call"
        more = lambda: self.block(depth + 1)
        if form == "branch":
            return f"if (next() & 1) {{ {more()} }} else {{ {more()} }}"
        if form == "same":  # the same on both sides, but for a value
            name = self.random.choice(self.names)
            return f"if (next() & 1) sum += {name}(i, number); else sum += {name}(i + 2, number);"
        if form == "loop":
            return f"for (int k = 0; k < (int)(next() & 3); k++) {{ {more()} }}"
        if form == "switch":
            return f"switch (next() & 3) {{ case 0: {more()} break; case 1: {more()} break; case 2: {more()} }}"
        if form == "early":
            return f"if (next() == 5) return sum; {more()}"
        return self.call()

    def caller(self, number):
        number_is = self.random.choice(("i * 0.25", "(next() % 3 == 0 ? 0.0 : next() / 64.0)", "(float)next()"))
        body = " ".join(self.block(0) for _ in range(self.random.choice((1, 2, 3))))
        self.lines.append(f"__attribute__((noinline)) int run{number}(int i) {{ int sum = 0; double number = {number_is};\n"
                          f"  {body}\n  return sum; }}")
        return f"run{number}"


BRANCHES_HELPERS = ESCAPE + """
volatile double seen; static unsigned long state = 88172645463325252ul;
void put(double x) { seen = x; }
long next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return (long)(state >> 40); }
"""


@scenario
def inlined_copies_in_branches_and_loops_are_hit_once_for_each_call(run):
    compare_by_chance(run, "branches", BranchesProgram, BRANCHES_HELPERS)


# --- coroutines -------------------------------------------------------------------------------------------------------

COROUTINES = """
#include <coroutine>
#include <cstdio>
#include <string>
struct task { struct promise_type {
  task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
  std::suspend_always initial_suspend() noexcept { return {}; } std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {} void unhandled_exception() {} }; std::coroutine_handle<promise_type> h; };
int n_serve, n_give, n_other, n_local, n_self;
volatile int sink;
__attribute__((noinline)) void leaf(int x) { sink = sink + x; }
task serve(int n, long id) { for (int i = 0; i < n; i++) { leaf(i + (int)id); co_await std::suspend_always{}; } }
namespace net { struct host { int id = 3; __attribute__((noinline)) task give(const std::string &s) { leaf((int)s.size() + id); co_await std::suspend_always{}; leaf(2); } }; }
__attribute__((noinline)) task other(int n) { leaf(n); co_await std::suspend_always{}; leaf(n); co_await std::suspend_always{}; }
static task local(int n) { leaf(n); if (n > 1) co_return; co_await std::suspend_always{}; leaf(n); }
__attribute__((noinline)) void run(task t) { while (!t.h.done()) t.h.resume(); t.h.destroy(); }
void keep(task t) { t.h.resume(); t.h.destroy(); }
int main() {
  net::host host; std::string text = "text";
  for (int k = 0; k < 3; k++) { n_serve++; task t = serve(2, 100 + k); while (!t.h.done()) t.h.resume(); t.h.destroy(); }
  for (int k = 0; k < 4; k++) { n_give++; run(host.give(text)); }
  for (int k = 0; k < 5; k++) { n_other++; run(other(k)); n_other++; keep(other(k)); }
  for (int k = 0; k < 3; k++) { n_local++; run(local(k)); n_local++; keep(local(k)); }
  std::printf("serve %d\\nnet::host::give %d\\nother %d\\nlocal %d\\n", n_serve, n_give, n_other, n_local);
}
"""


def coroutine_flags(compiler):
    return ["-std=c++20", *(["-stdlib=libstdc++"] if "clang" in compiler else [])]


@scenario
def calls_of_a_coroutine_are_what_makes_it(run):
    require_root()
    source = run.dir / "coroutines.cpp"
    source.write_text(COROUTINES)
    for compiler in compilers("c++"):
        for level in ["-O0", *LEVELS]:
            name = f"coroutines-{compiler}{level}"
            program = built(run, name, [source], ["-g", level, *coroutine_flags(compiler)], compiler)
            compare(run, name, program)


@scenario
def what_goes_on_with_a_coroutine_has_its_frame(run):
    """GCC's .actor and .destroy, by their own names; without optimisation, too."""
    require_root()
    source = run.dir / "coroutines.cpp"
    source.write_text(COROUTINES)
    for compiler in compilers("c++"):
        if "clang" in compiler:
            continue
        for level in ("-O0", "-O2"):
            program = built(run, f"frames{level}", [source], ["-g", level, *coroutine_flags(compiler)], compiler)
            result = run.trace([f"uprobe:{program}:*other*.actor*", f"uprobe:{program}:*other*.destroy*"],
                               command=["sh", "-c", f"exec {program} > /dev/null"])
            result.check_code(0)
            frames = [event["args"][0] for event in result.events]
            check(len(frames) >= 15, f"{compiler} {level}: {result.describe()}")
            check(all(isinstance(frame, int) and frame > 0 for frame in frames), f"{compiler} {level}: {frames[:5]}")


# --- functions whose code is equal ------------------------------------------------------------------------------------

FOLDED = """#include <stdio.h>
struct a { int x; }; struct b { int y; };
volatile int sink;
int n_get_a, n_get_b, n_set_a, n_set_b, n_known;
__attribute__((noinline)) int get_a(struct a *p) { return p->x * 3 + 1; }
__attribute__((noinline)) int get_b(struct b *q) { return q->y * 3 + 1; }
static __attribute__((noinline)) int set_a(struct a *p) { sink += 2; return p == 0; }
static __attribute__((noinline)) int set_b(struct b *q) { sink += 2; return q == 0; }
__attribute__((noinline)) int known(struct a *p) { return p->x * 5 + 9; }
int alias(struct a *) __attribute__((alias("known")));
int main(void) {
  struct a a = {1}; struct b b = {2}; int s = 0;
  for (int i = 0; i < 3; i++) { __asm__ volatile("" ::: "memory"); n_get_a++; n_set_a++; n_known++; s += get_a(&a) + set_a(&a) + known(&a); }
  for (int i = 0; i < 5; i++) { __asm__ volatile("" ::: "memory"); n_get_b++; n_set_b++; n_known++; s += get_b(&b) + set_b(&b) + alias(&a); }
  printf("get_a %d\\nget_b %d\\nset_a %d\\nset_b %d\\nknown %d\\n", n_get_a, n_get_b, n_set_a, n_set_b, n_known);
  return s == 0;
}
"""
FOLDING = [("clang", ["-O2", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all"]),
           ("gcc", ["-O2", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all"]),
           ("gcc", ["-O2"]), ("gcc", ["-Os", "-fPIC"])]


@scenario
def functions_whose_code_was_made_one_are_said_and_lend_nobody_their_types(run):
    require_root()
    source = run.dir / "folded.c"
    source.write_text(FOLDED)
    others = {"get_a": "get_b", "get_b": "get_a", "set_a": "set_b", "set_b": "set_a"}
    types = {"get_a": "struct a *", "get_b": "struct b *", "set_a": "struct a *", "set_b": "struct b *"}
    folded = 0
    for compiler, flags in FOLDING:
        if "-fuse-ld=gold" in flags and not shutil.which("ld.gold") or "-fuse-ld=lld" in flags and not shutil.which("ld.lld"):
            continue
        program = built(run, f"folded-{compiler}{''.join(flags)}".replace(",", "").replace("=", ""), [source], ["-g", *flags], compiler)
        said = calls_said(program)
        for name, other in others.items():
            where = f"{compiler} {flags} {name}"
            try:
                seen, notices = hits_seen(run, program, [name])
            except Failure as failure:
                check("no function matches" in str(failure), f"{where}: {failure}")  # gold leaves no symbol of one of two
                continue
            hits = seen.get(name, 0)
            told = f"{name} has the code of {other}" in notices
            folded += told
            check(hits == said[name] or (told and hits == said[name] + said[other]), f"{where}: {hits} {said} {notices}")
            listed = subprocess.run([run.tool.parent / "usdt-list", f"uprobe:{program}:{name}"], capture_output=True, text=True)
            check(types[other] not in listed.stdout, f"{where}: {listed.stdout}")
        seen, notices = hits_seen(run, program, ["alias"])
        check("has the code of" not in notices, f"{compiler} {flags}: an alias is one function: {notices}")
        check_equal(sum(seen.values()), said["known"], f"{compiler} {flags} alias")
    check(folded >= 4, f"{folded} functions were folded")


# What `icf.c` of an issue was, with aliases beside: of one function, and spellings as libraries have them.
FOLDED_WITHOUT_TYPES = """
volatile int sink;
__attribute__((noinline)) void one(int x) { sink = sink + x; }
__attribute__((noinline)) void two(int x) { sink = sink + x; }
__attribute__((noinline)) void __thing(int x) { sink = sink - x; }
void thing(int x) __attribute__((weak, alias("__thing")));
int main(void) { for (int i = 0; i < 3; i++) { one(i); two(100 + i); thing(i); } return 0; }
"""


@scenario
def without_debug_information_two_names_of_one_address_are_said(run):
    require_root()
    source = run.dir / "one_address.c"
    source.write_text(FOLDED_WITHOUT_TYPES)
    said = "two names of one function, or equal code that was made one"
    folded = 0
    for compiler, flags in FOLDING:
        if "-fuse-ld=gold" in flags and not shutil.which("ld.gold") or "-fuse-ld=lld" in flags and not shutil.which("ld.lld"):
            continue
        program = built(run, f"one-address-{compiler}{''.join(flags)}".replace(",", "").replace("=", ""), [source], flags, compiler)
        symbols = {}
        for line in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines():
            address, _, name = line.rpartition(" ")
            symbols[name] = address.split()[0] if address.split() else ""
        result = run.trace(f"uprobe:{program}:one", command=[program])
        is_one = "two" in symbols and "one" in symbols and symbols["one"] == symbols["two"]
        folded += is_one
        check_equal(said in result.stderr, is_one, f"{compiler} {flags}: {symbols} {result.stderr}")
        check_equal(result.summary["hits"], 6 if is_one else 3, f"{compiler} {flags}: hits")
        alias = run.trace(f"uprobe:{program}:thing", command=[program])
        check(said not in alias.stderr, f"{compiler} {flags}: an alias is one function: {alias.stderr}")
    check(folded > 0, "no linker folded anything")
    libc = run.trace("uprobe:libc.so.6:*write*", "--count", command=["true"])
    check(said not in libc.stderr, libc.stderr)


# --- destructors -------------------------------------------------------------------------------------------------------

DESTRUCTORS = """#include <cstdio>
#include <new>
volatile int sink;
int plain, simple, with_base, middle, outer, local, made;
struct Plain { int x; __attribute__((noinline)) ~Plain(); }; Plain::~Plain() { sink = sink + x; }
struct Simple { virtual ~Simple(); int y = 1; }; Simple::~Simple() { sink = sink + y; }
struct Base { virtual ~Base(); virtual int f(); }; Base::~Base() { sink = sink + 1; } int Base::f() { return 1; }
struct Middle : virtual Base { Middle(int); ~Middle() override; int z; };
__attribute__((noinline)) Middle::Middle(int v) : z(v) { sink = sink + v; }
Middle::~Middle() { sink = sink + z; }
struct Outer : Middle { Outer() : Middle(2) {} ~Outer() override; }; Outer::~Outer() { sink = sink + 3; }
namespace { struct Local { virtual ~Local(); int q = 2; }; Local::~Local() { sink = sink + q; } }
template <class T> __attribute__((noinline)) void drop(T *p) { delete p; }
int main() {
  for (int i = 0; i < 3; i++) {
    plain++; drop(new Plain{i}); { plain++; Plain p{i}; sink = p.x; }
    simple++; drop(new Simple); { simple++; Simple s; sink = s.y; }
    made++, middle++, with_base++; drop(new Middle(i)); { made++, middle++, with_base++; Middle m(i); sink = m.z; }
    made++, outer++, middle++, with_base++; drop(new Outer); { made++, outer++, middle++, with_base++; Outer o; sink = o.z; }
    local++; drop(new Local); { local++; Local l; sink = l.q; }
  }
  std::printf("Plain::~Plain %d\\nSimple::~Simple %d\\nBase::~Base %d\\nMiddle::~Middle %d\\nMiddle::Middle %d\\nOuter::~Outer %d\\n",
              plain, simple, with_base, middle, made, outer);
}
"""


@scenario
def destructions_are_hits_of_a_destructor_once_each(run):
    """Compilers make up to three functions of one, which call each other."""
    require_root()
    source = run.dir / "destructors.cpp"
    source.write_text(DESTRUCTORS)
    for compiler in compilers("c++"):
        for flags in with_long((["-O0"], ["-O1"], ["-O2"], ["-Os"], ["-O2", "-fno-inline"], ["-O0", "-fPIC"], ["-O2", "-fPIC"]),
                               (["-O0"], ["-O2"], ["-O2", "-fPIC"])):
            name = f"destructors-{compiler}{''.join(flags)}"
            program = built(run, name, [source], ["-g", *flags], compiler)
            said = calls_said(program)
            for each in said:
                compare(run, name, program, [each], said)


# --- lambda expressions --------------------------------------------------------------------------------------------------

LAMBDAS = """#include <cstdio>
volatile int sink;
int adds, stats, other_stats, members, generics;
template <class F> __attribute__((noinline)) void apply(F f, int x) { f(x); f(x + 1); }
namespace net { struct host { int k = 2; __attribute__((noinline)) void go(int n) {
  auto l = [this, n](int x) { members++; sink = sink + x + k + n; };
  for (int i = 0; i < n; i++) l(i); apply(l, n); } }; }
static __attribute__((noinline)) void stat(int n) {
  auto a = [](int x) { stats++; sink = sink + x; }; a(n);
  auto b = [&](long y) { other_stats++; sink = sink * 3 + y; }; b(n); apply(b, n); apply(a, n); }
int main() {
  int s = 0;
  auto add = [&s](int x) { adds++; s += x; sink = s; };
  for (int i = 0; i < 3; i++) add(sink); apply(add, 3);
  net::host h; h.go(3); stat(4);
  auto gen = [](auto x) { generics++; sink = sink + x; }; gen(3); gen(4L); apply(gen, 1);
  std::printf("main*lambda(int)* %d\\nstat*lambda(int)* %d\\nstat*lambda(long)* %d\\nnet::host::go*lambda* %d\\n", adds, stats, other_stats, members);
}
"""


@scenario
def lambda_expressions_are_called_alike_whether_or_not_they_were_inlined(run):
    require_root()
    source = run.dir / "lambdas.cpp"
    source.write_text(LAMBDAS)
    for compiler in compilers("c++"):
        if "clang" in compiler:
            continue  # it calls them "$_0", everywhere
        for level in ("-O0", "-O1", "-O2", "-Os", "-O3"):
            program = built(run, f"lambdas-{compiler}{level}", [source], ["-g", "-std=c++20", level], compiler)
            for pattern, calls in calls_said(program).items():
                pattern = pattern.replace("lambda", "{lambda") + "operator()*"
                seen, notices = hits_seen(run, program, [pattern])
                check("may be missed" in notices or sum(seen.values()) == calls, f"{compiler} {level} {pattern}: {seen} of {calls}\n{notices}")


# --- functions that are chosen when a program starts -----------------------------------------------------------------

CHOSEN = """#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile size_t size = 5;
static int fast(int x) { return x + 1; }
static int slow(int x) { return x + 2; }
static int (*choose(void))(int) { return size > 3 ? fast : slow; }
int chosen(int) __attribute__((ifunc("choose")));
int main(int argc, char **argv) {
  char text[64] = "some text"; volatile size_t sum = 0;
  size_t (*volatile length)(const char *) = strlen;
  if (argc > 1) { puts("ready"); fflush(stdout); getchar(); }
  for (int i = 0; i < 7; i++) sum += length(text) + (size_t)chosen(i);
  printf("%zu\\n", sum);
  return 0;
}
"""


CHECKED = """#include <stdio.h>
typedef int (*fn)(int);
__attribute__((noinline)) int foo(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int bar(int x) { __asm__ volatile(""); return x + 2; }
volatile fn table[2] = {foo, bar};
int main(void) { int s = 0; for (int i = 0; i < 4; i++) s += table[i & 1](i); s += foo(3); printf("%d\\n", s); return 0; }
"""


@scenario
def entries_of_a_table_of_checked_calls_are_not_the_function(run):
    """Clang's CFI: indirect calls come by `foo`, which jumps to `foo.cfi`; direct ones do not."""
    require_root()
    require_program("clang", "ld.lld")
    source = run.dir / "checked.c"
    source.write_text(CHECKED)
    for debug in ("-g", "-g0"):
        flags = ["-O2", debug, "-flto", "-fvisibility=hidden", "-fsanitize=cfi", "-fuse-ld=lld"]
        program = run.build("checked" + debug, [source], flags, "clang")
        for prefix in ("uprobe", "ucall", "uretprobe"):
            for name in ("foo", "fo*", "foo.cfi"):
                result = run.trace(f"{prefix}:{program}:{name}", "--count", command=[program])
                check_equal((result.summary or {}).get("hits"), 3, f"{debug} {prefix}:{name}\n{result.stderr}")


ENTERED_WITHIN = """#include <stdio.h>
__asm__(".text; .globl whole; .type whole,@function; whole: mov $1,%eax; within: add $1,%eax; ret; .size whole,.-whole");
__asm__(".globl into; .type into,@function; into: mov $2,%eax; jmp within; .size into,.-into");
int whole(void), into(void);
int main(void) { int s = 0; for (int i = 0; i < 10; i++) s += whole(); for (int i = 0; i < 20; i++) s += into(); printf("%d\\n", s); return 0; }
"""


@scenario
def returns_of_who_jumps_into_the_midst_of_a_function_are_said(run):
    """As mempcpy() does into memmove() of glibc. Calls are told apart by the stack."""
    require_root()
    require_x86_64()
    source = run.dir / "within.c"
    source.write_text(ENTERED_WITHIN)
    program = run.build("within", [source], ["-O1"])
    for prefix, hits, told in (("uretprobe", 30, True), ("ucall", 10, False), ("uprobe", 10, False)):
        result = run.trace(f"{prefix}:{program}:whole", "--count", command=[program])
        check_equal((result.summary or {}).get("hits"), hits, f"{prefix}: {result.stderr}")
        check_equal("lead into the midst of whole" in result.stderr, told, f"{prefix}: {result.stderr}")


@scenario
def a_function_that_is_chosen_at_the_start_is_the_one_that_processes_use(run):
    require_root()
    source = run.dir / "chosen.c"
    source.write_text(CHOSEN)
    program = built(run, "chosen", [source], ["-g", "-O1", "-fno-builtin"], "gcc")
    result = run.trace("uprobe:libc.so.6:strlen", "--count", command=["sh", "-c", f"exec {program} > /dev/null"])
    result.check_code(0)
    check(result.summary["hits"] >= 7, result.describe())
    check("hits of strlen (" in result.stderr and "which is chosen when a program starts" in result.stderr, result.stderr)
    # Of a program, what a running process of it chose.
    process = run.start(program, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    tracing = run.trace_start(f"uprobe:{program}:chosen", "-p", process.pid)
    wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
    process.stdin.write(b"\n")
    process.wait()
    result = tracing.finish()
    check_equal([event["args"] for event in result.events], [[i] for i in range(7)], result.describe())
    check("fast" in result.stderr, result.stderr)
    result = run.trace(f"uprobe:{program}:chosen", command=[str(program)])
    check("STT_GNU_IFUNC" in result.stderr and "no process" in result.stderr, result.describe())


# --- notices of many functions -------------------------------------------------------------------------------------------

MANY_HEAD = """
#include <coroutine>
#include <cstdio>
struct task { struct promise_type {
  task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
  std::suspend_always initial_suspend() noexcept { return {}; } std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {} void unhandled_exception() {} }; std::coroutine_handle<promise_type> h; };
volatile int sink;
extern "C" {
#define LOOP(name) asm(".text\\n.globl " #name "\\n.type " #name ",@function\\n" #name ": decl (%rdi)\\n jg " #name "\\n ret\\n" \\
                       ".size " #name ",.-" #name "\\n"); void name(int *)
#define CHOSEN(name) static int own_##name(int x) { return x + __LINE__; } \\
  int (*choose_##name(void))(int) { return own_##name; } int name(int) __attribute__((ifunc("choose_" #name)))
"""
MANY = 30


def many_functions():
    """A program with many functions of each kind that a notice is given of; and how each is called."""
    loops, chosen, coroutines = ([f"{kind}{i:02}" for i in range(MANY)] for kind in ("rounds_", "chosen_", "goes_on_"))
    lines = [*(f"LOOP({name});" for name in loops), *(f"CHOSEN({name});" for name in chosen), "}",
             "__attribute__((noinline)) void leaf(int x) { sink = sink + x; }",
             *(f"task {name}(int n, long id) {{ for (int i = 0; i < n; i++) {{ leaf(i + {i} + (int)id); co_await std::suspend_always{{}}; }} }}"
               for i, name in enumerate(coroutines)),
             "int main(int argc, char **) { if (argc > 1) { puts(\"ready\"); fflush(stdout); getchar(); }",
             *(f"{{ int n = 2; {name}(&n); }}" for name in loops), *(f"sink = sink + {name}(1);" for name in chosen),
             *(f"{{ task t = {name}(2, 3); while (!t.h.done()) t.h.resume(); t.h.destroy(); }}" for name in coroutines), "}"]
    return MANY_HEAD + "\n".join(lines) + "\n"


@scenario
def many_functions_of_one_kind_are_one_notice(run):
    require_root()
    require_x86_64()
    require_program("clang++")
    source = run.dir / "many.cpp"
    source.write_text(many_functions())
    program = built(run, "many", [source], ["-g", "-O1", *coroutine_flags("clang++")], "clang++")
    process = run.start(program, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    for names, notice in (("rounds_*", "a loop begins with"), ("chosen_*", "what running processes use"),
                          ("goes_on_*", "all that a coroutine does")):
        tracing = run.trace_start(f"uprobe:{program}:{names}", "--count", "-p", process.pid)
        wait_until(lambda: "attached" in tracing.stderr() or not tracing.alive(), "attached")
        tracing.signal(2)
        said = [line for line in tracing.finish().stderr.splitlines() if notice in line]
        check(len(said) == 1, f"notices of {names}, {len(said)}:\n" + "\n".join(said))
        check(f"and {MANY - 3} other functions" in said[0] and len(said[0]) < 400, said[0])
    process.stdin.write(b"\n")
    process.wait()


# --- Go programs without symbols -----------------------------------------------------------------------------------------

STRIPPED_GO = """package main
import "fmt"
type host struct{ id int }
//go:noinline
func work(n int) int { return n * 2 }
//go:noinline
func (h *host) give(n int) int { return h.id + n }
//go:noinline
func key[K comparable, V any](m map[K]V, k K) V { return m[k] }
func main() {
	h := &host{3}
	sum := 0
	for i := 0; i < 5; i++ { sum += work(i); sum += h.give(i); sum += key(map[string]int{"k": i}, "k") }
	fmt.Println(sum)
}
"""


def damaged_tables(program, generator):
    """The program with bytes of its table of functions changed."""
    sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    line = next(line for line in sections.splitlines() if "gopclntab" in line)
    offset, size = (int(word, 16) for word in line.split("gopclntab")[1].split()[2:4])
    whole = program.read_bytes()
    for _ in range(200 if LONG else 25):
        changed = bytearray(whole)
        for _ in range(generator.choice((1, 2, 8))):
            at = offset + (generator.randrange(72) if generator.random() < 0.7 else generator.randrange(size))
            changed[at] = generator.choice((0, 0xff, generator.randrange(256)))
        yield bytes(changed)


@scenario
def functions_of_a_go_program_without_symbols_have_the_names_of_its_runtime(run):
    require_root()
    for go in GO:
        directory = run.dir / f"go{GO.index(go)}"
        directory.mkdir()
        (directory / "main.go").write_text(STRIPPED_GO)
        (directory / "go.mod").write_text("module work\ngo 1.18\n")
        environment = {**os.environ, "GOCACHE": str(run.dir / "cache"), "HOME": str(run.dir), "GOFLAGS": "-mod=mod"}
        for mode in ("exe", "pie"):
            program = directory / mode
            made = subprocess.run([go, "build", f"-buildmode={mode}", "-ldflags=-s -w", "-o", str(program), "."], cwd=directory,
                                  env=environment, capture_output=True, text=True)
            check(made.returncode == 0, made.stderr)
            seen, notices = hits_seen(run, program, ["main.work", "main.(*host).give", "main.key*"])
            check_equal(sum(hits for name, hits in seen.items() if "work" in name), 5, f"{go} {mode} {seen} {notices}")
            check_equal(sum(seen.values()), 15, f"{go} {mode} {seen} {notices}")
            result = run.trace(f"uprobe:{program}:main.nothing", command=[str(program)])
            check("exports no function" not in result.stderr, result.stderr)
        hurt = directory / "hurt"
        for changed in damaged_tables(directory / "exe", random.Random(1)):
            hurt.write_bytes(changed)
            listed = subprocess.run([run.tool.parent / "usdt-list", f"uprobe:{hurt}:main.*"], capture_output=True, timeout=20)
            check(listed.returncode in (0, 1, 2), f"{go}: exit {listed.returncode}")


# Functions that two files have, of which the linker keeps one copy.
SHARED = {
    "shared.h": r"""
extern volatile long sink;
extern volatile int other;
extern volatile long calls;
inline __attribute__((always_inline)) long leaf(long x, int y) {
  calls = calls + 1; long t = x * y; sink = t; return t + 1; }
inline __attribute__((noinline)) long first(long a, long b) {
  other = 0x11223344; long r = leaf(a, 3); other = 5; r += leaf(b, 7) / 3; other = r; return r * b; }
inline __attribute__((noinline)) long second(long *p, int n) {
  long s = p[0]; other = n; s += leaf(p[1], n); p[2] = s; s ^= leaf(n, p[3]); return s + p[0]; }
inline __attribute__((noinline)) long third(int n) {
  long v[4] = {n, n + 1, n + 2, n + 3}; long s = 0;
  for (int i = 0; i < 4; i++) { other = i; s += leaf(v[i], i); }
  return s + leaf(n, n + 5); }
""",
    "one.cc": r"""
#include "shared.h"
__attribute__((noinline)) long one(int n, long *p) { return first(n, 2) + second(p, n) + third(n); }
""",
    "two.cc": r"""
#include "shared.h"
#include <stdio.h>
volatile long sink;
volatile int other;
volatile long calls;
long numbers[4] = {1, 2, 3, 4};
long one(int n, long *p);
int main(int argc, char **) {
  long r = one(argc, numbers) + first(argc, 3) + second(numbers, argc) + third(argc);
  printf("leaf %ld\n%ld %ld %x\n", calls, r, (long)sink, (int)other);
}
"""}
# What the second file is compiled with otherwise than the first, which is by -g -O2.
OTHERWISE = ["", "-fno-schedule-insns2", "-O1", "-fomit-frame-pointer -fno-inline-functions", "-mtune=znver3", "-g0"]


def built_of_two(run, compiler, otherwise, number):
    for name, text in SHARED.items():
        (run.dir / name).write_text(text)
    objects = [run.dir / f"{name}{number}.o" for name in ("one", "two")]
    for each, flags in zip(objects, ([], otherwise.split())):
        # (The copy that is kept is the first one's.)
        flags = ["-g", "-O2"] + (["-g0"] if "-g0" in flags and "one" in each.name else [f for f in flags if f != "-g0"])
        subprocess.run([compiler, *flags, "-c", run.dir / f"{each.name[:3]}.cc", "-o", each], check=True)
    program = run.dir / f"two_files_{number}"
    subprocess.run([compiler, *objects, "-o", program], check=True)
    return program


@scenario
def functions_that_two_files_have_are_those_of_the_copy_that_was_kept(run):
    """GNU ld lets the debug information of both files describe it."""
    require_root()
    for compiler in compilers("c++"):
        for number, otherwise in enumerate(OTHERWISE):
            where = f"{compiler}: -g -O2 and {otherwise}"
            program = built_of_two(run, compiler, otherwise, number)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
            for name in ["leaf", "first", *(f"@shared.h:{line}" for line in (6, 8, 10, 13))]:
                out = run.dir / "out"
                result = run.trace(f"uprobe:{program}:{name}", "--count", command=["sh", "-c", f"exec {program} > {out}"])
                check_equal(out.read_text(), said, f"{where}: {name}: what the program says\n{result.stderr}")
                # (Without debug information of the first file nothing is known of its copies.)
                if name == "leaf" and otherwise != "-g0" and "calls may be missed" not in result.stderr:
                    check_equal(result.summary["hits"], int(said.split()[1]), f"{where}: calls of leaf\n{result.stderr}")


if __name__ == "__main__":
    main()
