#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hits of a function are its calls, or a notice says what is different, however compilers split, inline, unroll and merge it."""

import itertools
import pathlib
import platform
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import (LONG, Skip, attach_at_once, check, check_equal, main, require_program, require_root, require_x86_64, scenario,  # noqa: E402
                     wait_line, wait_until)
from hits_support import LEVELS, SEEDS, built, calls_said, compare, compilers, coroutine_flags, hits_seen  # noqa: E402

attach_at_once()

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


def compare_by_chance(run, kind, make, helpers, builds=None):
    """Programs of `make(seed)`, built with `helpers` by each compiler at each level, or by `builds` alone (compiler, level
    and seed), and their hits against their calls."""
    require_root()
    beside = run.dir / "helpers.c"
    beside.write_text(helpers)
    table = {}
    seeds = range(SEEDS or (20 if LONG else 1))
    for compiler, level, seed in builds or itertools.product(compilers(), LEVELS, seeds):
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


CHECKED = """#include <stdio.h>
typedef int (*fn)(int);
__attribute__((noinline)) int foo(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int bar(int x) { __asm__ volatile(""); return x + 2; }
volatile fn table[2] = {foo, bar};
int main(void) { int s = 0; for (int i = 0; i < 4; i++) s += table[i & 1](i); s += foo(3); printf("%d\\n", s); return 0; }
"""


@scenario
def inlined_copies_that_end_in_another_one_are_said(run):
    """Of equal ends GCC makes one: what is left of a copy goes on in another one, by its first instruction. (GCC 12 does so
    in this program.)"""
    compare_by_chance(run, "branches", BranchesProgram, BRANCHES_HELPERS, [("gcc", "-Os", 2)])


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


MANY_HEAD = """
#include <coroutine>
#include <cstdio>
struct task { struct promise_type {
  task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
  std::suspend_always initial_suspend() noexcept { return {}; } std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {} void unhandled_exception() {} }; std::coroutine_handle<promise_type> h; };
volatile int sink;
static volatile int other;  // keeps resolvers open: clang calls directly what they cannot but choose
extern "C" {
#define LOOP(name) asm(".text\\n.globl " #name "\\n.type " #name ",@function\\n" #name ": decl (%rdi)\\n jg " #name "\\n ret\\n" \\
                       ".size " #name ",.-" #name "\\n"); void name(int *)
#define CHOSEN(name) static int own_##name(int x) { return x + __LINE__; } \\
  int (*choose_##name(void))(int) { return other ? 0 : own_##name; } int name(int) __attribute__((ifunc("choose_" #name)))
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


@scenario
def copies_in_a_loop_that_was_unrolled_are_said_to_be_more_than_debug_information_tells(run):
    require_root()
    source = run.dir / "unrolled.c"
    source.write_text("""
        volatile int sink;
        int numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        static inline __attribute__((always_inline)) int in_loop(int v) {
            sink = v;
            return v * 3;
        }
        static inline __attribute__((always_inline)) int once(int v) {
            sink = v;
            return v * 5;
        }
        int main(void) {
            int sum = 0;
            for (int i = 0; i < 8; i++)
                sum += in_loop(numbers[i]);
            sum += once(sum);
            return sum == 0;
        }""")
    for compiler, level, function, calls in (("gcc", "-O3", "in_loop", 8), ("clang", "-O2", "in_loop", 8),
                                             ("gcc", "-O1", "in_loop", 8), ("gcc", "-O3", "once", 1), ("clang", "-O2", "once", 1)):
        program = run.build(f"unrolled-{compiler}{level}", [source], ["-g", level], compiler)
        result = run.trace(f"uprobe:{program}:{function}", command=[str(program)])
        result.check_code(0)
        said = f"calls may be missed of 1 inlined copy ({function})" in result.stderr
        check_equal(said, len(result.events) < calls, f"{compiler} {level}: {function}\n{result.describe()}")


@scenario
def rounds_of_a_loop_that_a_function_begins_with_are_no_calls(run):
    """Compilers begin functions so at -Os, and hand-written locks do."""
    if platform.machine() != "x86_64":
        raise Skip("its functions are written for x86-64")
    source = run.dir / "rounds.c"
    source.write_text("""
        #define LOOP(name, pad) asm(".globl " #name "\\n.type " #name ",@function\\n" #name ": " pad \\
            " 2: cmpl $0,(%rdi)\\n je 1f\\n decl (%rdi)\\n jmp 2b\\n 1: mov $7,%eax\\n ret\\n .size " #name ",.-" #name "\\n");
        LOOP(bare, "") LOOP(padded, "endbr64\\n")
        int bare(int *), padded(int *);
        int main(void) {
            int rounds = 5, sum = bare(&rounds);
            rounds = 5, sum += padded(&rounds);
            return sum - 14;
        }""")
    program = run.build("rounds", [source], ["-O1"])

    def hits(name, code=0):
        result = run.trace(f"{name.split(':')[0]}:{program}:{name.split(':')[1]}", command=[str(program)])
        result.check_code(code)
        return len(result.events), result.stderr

    for kind in ("uprobe", "uretprobe", "ucall"):
        check_equal(hits(f"{kind}:padded")[0], 1, f"{kind}: calls come by the landing pad, rounds do not")
    check_equal(hits("uretprobe:bare")[0], 1, "returns, by the RET instruction")
    count, said = hits("uprobe:bare")
    check_equal(count, 6, "a call and five rounds")
    check("a loop begins with the first instruction of bare: a hit is a call or a round" in said, said)
    check("where a call and a round look alike" in hits("ucall:bare", code=1)[1], "the reason of the refusal")


@scenario
def rounds_of_an_instruction_that_repeats_itself_are_no_calls(run):
    """rep stos and the like, where a function, an inlined copy or a line begins."""
    require_root()
    require_x86_64()
    source = run.dir / "repeats.c"
    source.write_text("""
        char room[100];
        __attribute__((noipa)) void clear(void *to, long unused, long unused_too, long size);
        __asm__(".text; .globl clear; .type clear,@function; clear: rep stosb; ret; .size clear,.-clear");
        __asm__(".globl landed; .type landed,@function; landed: endbr64; rep stosb; ret; .size landed,.-landed");
        void landed(void *to, long unused, long unused_too, long size);
        static inline __attribute__((always_inline)) void copy(void *to, long size) {
          __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(0) : "memory");
        }
        __attribute__((noipa)) void copies(void *to, long unused, long unused_too, long size) {
          __asm__ volatile("nop" : : "a"(0), "D"(to), "c"(size));
          copy(to, size);
        }
        int main(void) {
          for (int i = 0; i < 3; i++) { clear(room, 0, 0, 100); landed(room, 0, 0, 100); copies(room, 0, 0, 100); }
          return 0;
        }""")
    program = run.build("repeats", [source], ["-O2", "-g"])
    for probe, options, hits, said in (
            ("uprobe:clear", [], 300, "a hit is a call or a round"), ("uretprobe:clear", [], 3, ""),
            ("uretprobe:clear", ["--no-ret-probes"], 3, ""), ("uprobe:landed", [], 3, ""), ("ucall:landed", [], 3, ""),
            ("uprobe:landed+4", [], 300, "repeats itself"), ("uprobe:copy", [], 300, "begin with a loop")):
        prefix, name = probe.split(":")
        result = run.trace(f"{prefix}:{program}:{name}", *options, "--count", command=[program])
        check_equal((result.summary or {}).get("hits"), hits, f"{probe} {options}: {result.stderr}")
        check(said in result.stderr, f"{probe} {options}: {result.stderr}")
    refused = run.trace(f"ucall:{program}:clear", command=[program])
    check(refused.code == 1 and "a call and a round look alike" in refused.stderr, refused.describe())


if __name__ == "__main__":
    main()
