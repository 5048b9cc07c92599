#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions that are several by one name, or one by several names: which are meant, and whose calls the hits are."""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import AT_ONCE, Failure, attach_at_once, check, check_equal, main, require_root, scenario, wait_line, wait_until, with_long  # noqa: E402
from hits_support import LEVELS, built, calls_said, compare, compilers, coroutine_flags, hits_seen  # noqa: E402

attach_at_once()

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


HIDDEN = """
#include <cstdlib>
namespace net { namespace { [[gnu::noinline]] int hidden(int n) { __asm__ volatile(""); return n + 1; } } }
volatile int sum;
int main(int, char** argv) { for (int i = 0; i < std::atoi(argv[1]); ++i) sum = sum + net::hidden(i); }
"""


@scenario
def what_is_in_an_anonymous_namespace_has_the_name_of_the_source(run):
    (run.dir / "hidden.cpp").write_text(HIDDEN)
    for compiler in ("g++", "clang++"):
        program = run.build(f"hidden-{compiler}", [run.dir / "hidden.cpp"], ["-O1", "-g"], compiler=compiler)
        for name in ("net::hidden", "net::(anonymous namespace)::hidden", "net::hidden(int)"):
            probe = f"ucall:{program}:{name}"
            result = run.trace(probe, "--print", f"{probe}=n, retval", command=[program, "3"])
            result.check_code(0)
            result.check_accounted(3, lost=0)
            check("nothing matches" not in result.stderr, f"{compiler}, {name}: {result.stderr}")
            check_equal([event["args"] for event in result.events], [[0, 1], [1, 2], [2, 3]], f"{compiler}, {name}")


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
                result = run.trace(f"uprobe:{program}:{name}", "--count", *AT_ONCE, command=["sh", "-c", f"exec {program} > {out}"])
                check_equal(out.read_text(), said, f"{where}: {name}: what the program says\n{result.stderr}")
                # (Without debug information of the first file nothing is known of its copies.)
                if name == "leaf" and otherwise != "-g0" and "calls may be missed" not in result.stderr:
                    check_equal(result.summary["hits"], int(said.split()[1]), f"{where}: calls of leaf\n{result.stderr}")


if __name__ == "__main__":
    main()
