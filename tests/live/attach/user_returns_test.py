#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Returns and calls of functions of programs: what was returned, whose returns cannot be seen, and how calls are left."""

import collections
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import AT_ONCE, Skip, check, check_equal, main, require_program, require_root, require_x86_64, scenario  # noqa: E402
from user_functions_support import COMPILERS, FUNCTIONS, as_text, build, compare, compare_result, traced  # noqa: E402
from said import quiet  # noqa: E402


@scenario
def return_values_are_those_that_were_returned(run):
    for compiler in COMPILERS:
        for level in ("-O0", "-O2"):
            said, shown, _ = traced(run, build(run, compiler, level), "uretprobe", FUNCTIONS, *AT_ONCE)
            for name in FUNCTIONS:
                check_equal(len(shown[name]), len(said[name]), f"{compiler} {level} {name}: returns")
                for (_, told), (_, value) in zip(said[name], shown[name]):
                    compare_result(f"{compiler} {level} {name}", told, value, level == "-O0")


def calls_of(run, *options):
    said, shown, result = traced(run, build(run, level="-O0"), "ucall", FUNCTIONS, *options)
    for name in FUNCTIONS:
        check_equal(len(shown[name]), len(said[name]), f"{name}: calls")
        for (args, told), (values, returned) in zip(said[name], shown[name]):
            compare(name, args, values, collections.Counter())
            compare_result(name, told, returned, True)
    check_equal(result.summary["lost"]["unfinished"], 3, "calls that jumped away")


@scenario
def calls_are_one_event_with_arguments_result_and_duration(run):
    calls_of(run)


@scenario
def calls_are_the_same_by_two_programs_at_their_ends(run):
    calls_of(run, "--backend", "uprobe_multi")


@scenario
def calls_are_the_same_by_perf_uprobes(run):
    calls_of(run, "--backend", "perf_uprobe")


@scenario
def calls_are_the_same_by_probes_on_each_ret(run):
    calls_of(run, "--ret-probes")


@scenario
def return_values_are_the_same_by_probes_on_each_ret(run):
    for compiler in COMPILERS:
        for level in ("-O0", "-O2"):
            program = build(run, compiler, level, ("-g", "-fno-optimize-sibling-calls"))
            said, shown, _ = traced(run, program, "uretprobe", FUNCTIONS, "--ret-probes", *AT_ONCE)
            for name in FUNCTIONS:
                check_equal(len(shown[name]), len(said[name]), f"{compiler} {level} {name}: returns")
                for (_, told), (_, value) in zip(said[name], shown[name]):
                    compare_result(f"{compiler} {level} {name}", told, value, level == "-O0")


@scenario
def functions_that_others_return_for_are_said(run):
    source = run.dir / "jumps_away.c"
    source.write_text("""
        __attribute__((noinline)) int other(int x) { __asm__ volatile(""); return x + 1; }
        __attribute__((noinline)) int always(int x) { return other(2 * x); }
        __attribute__((noinline)) int sometimes(int x) { return x > 2 ? other(x) : x; }
        int main(void) { int sum = 0; for (int i = 0; i < 10; ++i) sum += always(i) + sometimes(i); return sum == 0; }""")
    program = run.build("jumps_away", [source], ["-O2", "-fno-inline"])
    result = run.trace([f"uretprobe:{program}:{name}" for name in ("other", "always", "sometimes")], "--ret-probes",
                       command=[str(program)])
    result.check_code(0)
    check_equal({row["probe"].rsplit(":", 1)[1]: row["hits"] for row in result.summary["probes"] if row["hits"]},
                {"other": 17, "sometimes": 3}, "returns")
    check("always at" in result.stderr and "it has no RET instruction" in result.stderr, result.stderr)
    check("sometimes: jumps to other functions" in result.stderr, result.stderr)


@scenario
def calls_of_32_bits_are_paired_by_whatever_their_ends_are_seen(run):
    program = build(run, level="-O1", flags=("-g", "-m32"))
    for backend in ("auto", "uprobe_multi", "perf_uprobe"):
        said, shown, _ = traced(run, program, "ucall", ["eight", "recursive"], "--print", "arg0, retval", "--backend", backend)
        for name in ("eight", "recursive"):
            check_equal(sorted((args[0], told) for args, told in said[name]),
                        sorted(tuple(map(as_text, values)) for values, _ in shown[name]), f"{name} by {backend}")


@scenario
def where_a_program_starts_is_no_call_whose_return_could_be_seen(run):
    """The kernel would put its own address in the place of argc."""
    program = build(run)
    result = run.trace(f"ucall:{program}:_start", f"uprobe:{program}:_start", "--count", command=[program, "1", "2"])
    result.check_code(0)
    check("not attached: ucall" in result.stderr and "not called as a function" in result.stderr, result.stderr)
    check_equal([row["hits"] for row in result.summary["probes"] if row["hits"]], [1], "hits of the entry")


@scenario
def the_unlikely_half_of_a_function_is_no_function(run):
    """The function jumps there: a return probe would write into its variables."""
    require_root()
    source = run.dir / "halves.cpp"
    source.write_text("""
        #include <cstdio>
        namespace app {
        volatile int sink;
        __attribute__((cold, noinline)) void warn(int a, int b) { sink = sink + a + b; asm volatile(""); }
        __attribute__((noinline)) long work(long a, long b) {
          volatile long kept[4] = {a, b, a + b, a - b};
          if (__builtin_expect(a % 5 == 0, 0)) { warn(a, b); warn(b, a); kept[1] += 1000; warn(1, 2); }
          asm volatile("" : : : "memory", "rbx", "rbp", "r12");
          return kept[0] + kept[1] + kept[2] + kept[3];
        }
        }
        int main() {
          long sum = 0;
          for (int i = 1; i <= 20; i++) sum += app::work(i, 2 * i);
          std::printf("%ld", sum);
        }""")
    program = run.build("halves", [source], ["-O2", "-g"], "g++")
    half = "_ZN3app4workEll.cold"
    check(half in subprocess.run(["nm", program], capture_output=True, text=True).stdout, "g++ splits the function")
    alone = subprocess.run([program], capture_output=True, text=True).stdout
    for points in (["ucall:{}:app::work"], ["uretprobe:{}:app::work"], ["ucall:{}:app::work*"], ["uprobe:{}:*work*"]):
        log = run.dir / "said"
        result = run.trace(*[point.format(program) for point in points],
                           command=["sh", "-c", f"exec {program} > {log}"])
        result.check_code(0)
        check_equal(log.read_text(), alone, f"what the program says, traced by {points}")
        check_equal(len(result.events), 20, f"{points}: calls")
    result = run.trace(f"uprobe:{program}:{half}", f"uretprobe:{program}:{half}", "--count", command=quiet(program))
    result.check_code(0)
    check("nothing matches" not in result.stderr and "no return of its own" in result.stderr, result.stderr)
    check_equal([row["hits"] for row in result.summary["probes"] if row["hits"]], [4], "its half, by its own name")


THROWS = """
#include <cstdio>
#include <stdexcept>
int quarter(int n);
__attribute__((noinline)) int half(int n) { if (n % 2) throw std::runtime_error("odd"); return n / 2; }
__attribute__((noinline)) int thrice(int n) { __asm__ volatile("" : "+r"(n)); return 3 * n; }
__attribute__((noinline)) int jumps(int n) { return quarter(n + 1); }
__attribute__((noinline)) int quarter(int n) { return half(n - 1) / 2; }
int main() {
  int sum = 0;
  for (int i = 0; i < 10; i++) try { sum += half(thrice(i)); } catch (const std::exception&) { sum += 100; }
  std::printf("%d", sum + jumps(4));
}"""


@scenario
def exceptions_leave_functions_whose_return_is_traced(run):
    """With optimisation the throw is in the function's unlikely half."""
    require_root()
    source = run.dir / "throws.cpp"
    source.write_text(THROWS)
    for level in ("-O0", "-O1", "-O2"):
        program = run.build("throws" + level, [source], [level, "-g"], "g++")
        log = run.dir / "said"
        names = [f"ucall:{program}:half", f"ucall:{program}:thrice", f"uretprobe:{program}:quarter"]
        result = run.trace(names, command=["sh", "-c", f"exec {program} > {log}"])
        result.check_code(0)
        check_equal(log.read_text(), "531", f"{level}: the program's sum")
        returned = {name: [event["return"] for event in events] for name, events in result.by_name().items()}
        check_equal(returned, {"half(int)": [0, 3, 6, 9, 12, 2], "thrice(int)": [3 * i for i in range(10)],
                               "quarter(int)": [1]}, f"{level}: calls that returned")
        check_equal(result.summary["lost"].get("unfinished"), 5, f"{level}: calls that an exception left")
        check("ends the program" not in result.stderr, result.stderr)


@scenario
def no_return_probe_of_the_kernel_is_taken_unasked_where_an_exception_may_pass(run):
    """jumps() returns by what it jumps to; thrice() is left by nothing."""
    require_root()
    source = run.dir / "throws.cpp"
    source.write_text(THROWS)
    program = run.build("throws", [source], ["-O2", "-g"], "g++")
    command = ["sh", "-c", f"exec {program} >&2"]
    refused = run.trace(f"uretprobe:{program}:jumps", command=command)
    refused.check_code(1)
    check("it has no RET instruction" in refused.stderr and "--no-ret-probes" in refused.stderr, refused.stderr)
    for name, option, returns in (("jumps", "--no-ret-probes", [1]), ("thrice", "--ret-probes", [3 * i for i in range(10)]),
                                  ("thrice", "--no-ret-probes", [3 * i for i in range(10)])):
        result = run.trace(f"uretprobe:{program}:{name}", option, command=command)
        result.check_code(0)
        check_equal([event["return"] for event in result.events], returns, f"{name} {option}")
        check_equal("ends the program" in result.stderr, option == "--no-ret-probes", f"{name} {option}: {result.stderr}")


@scenario
def calls_that_go_on_in_another_function_end_there_and_with_no_call_of_its_own(run):
    """Behind an exception, other() is called at the same place of the stack."""
    require_root()
    source = run.dir / "goes_on.cpp"
    source.write_text("""
        #include <cstdio>
        #include <stdexcept>
        __attribute__((noinline)) int other(int n) { if (n % 5 == 0) throw std::runtime_error("five"); return n; }
        __attribute__((noinline)) int either(int n) { return n % 2 ? other(n) : 2 * n; }
        int main() {
          int sum = 0;
          for (int i = 0; i < 20; i++) {
            try { sum += either(i); } catch (const std::exception&) { sum += 100; }
            sum += other(1);
          }
          std::printf("%d", sum);
        }""")
    program = run.build("goes_on", [source], ["-O2", "-g"], "g++")
    log = run.dir / "said"
    result = run.trace(f"ucall:{program}:either", command=["sh", "-c", f"exec {program} > {log}"])
    result.check_code(0)
    check_equal(log.read_text(), subprocess.run([program], capture_output=True, text=True, check=True).stdout, "output")
    check_equal([(event["args"], event["return"]) for event in result.events],
                [([n], n if n % 2 else 2 * n) for n in range(20) if n not in (5, 15)], "calls that returned")
    check_equal(result.summary["lost"]["unfinished"], 2, "calls that an exception left")
    check("unseen" not in result.stderr, result.stderr)


@scenario
def a_return_probe_of_the_kernel_is_told_of_before_it_is_there(run):
    """What it does to programs that switch stacks."""
    require_root()
    source = run.dir / "jumps.c"
    source.write_text("""
        __attribute__((noinline)) int other(int x) { __asm__ volatile(""); return x + 1; }
        __attribute__((noinline)) int away(int x) { return other(2 * x); }
        __attribute__((noinline)) int switches(int x) {
          switch (x) { case 0: return other(3); case 1: return 7; case 2: return other(x) * 9; case 3: return 11;
                       case 4: return other(8) - 1; case 5: return 1; case 6: return 5; case 7: return 2; }
          return x;
        }
        int main(void) { int sum = 0; for (int i = 0; i < 10; ++i) sum += away(i) + switches(i); return sum == 0; }""")
    program = run.build("jumps", [source], ["-O2", "-fno-inline", "-fno-optimize-sibling-calls"])
    for name, flags, told in (("away", [], False), ("switches", [], False), ("away", ["-foptimize-sibling-calls"], True)):
        program = run.build("jumps" + name + "".join(flags), [source], ["-O2", "-fno-inline", "-fno-optimize-sibling-calls", *flags])
        result = run.trace(f"uretprobe:{program}:{name}", "--count", command=[program])
        result.check_code(0)
        check_equal("switches stacks" in result.stderr, told, f"{name} {flags}: {result.stderr}")
        check_equal(result.summary["hits"], 10, f"{name} {flags}: returns")


@scenario
def returns_that_the_kernel_does_not_remember_are_counted(run):
    """It gives up where a thread is in 64 calls with its return probes."""
    require_root()
    source = run.dir / "down.c"
    source.write_text("""
        #include <stdlib.h>
        static volatile long sink;
        __attribute__((noinline)) long down(int n) { long r = 1; if (n > 1) r += down(n - 1); sink = r; return r; }
        int main(int argc, char **argv) { return down(atoi(argv[1])) != atoi(argv[1]); }""")
    program = run.build("down", [source], ["-g", "-O1", "-fno-optimize-sibling-calls"])
    for prefix in ("uretprobe", "ucall"):
        for depth in (64, 65, 100, 300):
            result = run.trace(f"{prefix}:{program}:down", "--count", "--strict", command=[program, str(depth)])
            result.check_code(0)
            check_equal((result.summary["hits"], result.summary["missed"]), (depth, 0), f"{prefix} {depth}: by RET")
            result = run.trace(f"{prefix}:{program}:down", "--no-ret-probes", "--count", "--strict",
                               command=[program, str(depth)])
            deeper = max(depth - 64, 0)
            result.check_code(3 if deeper else 0)
            returns = depth if prefix == "ucall" else depth - deeper
            check_equal((result.summary["hits"], result.summary["missed"]), (returns, deeper), f"{prefix} {depth}: the kernel's")
            check_equal("more calls than the kernel's return probes remember" in result.stderr, deeper > 0, result.stderr)


@scenario
def fibers_of_ruby_go_on_whatever_returns_are_seen(run):
    """Its fibers have stacks of their own, which its C functions change."""
    require_root()
    require_program("ruby")
    library = subprocess.run("ldd $(readlink -f $(which ruby)) | grep -o '/[^ ]*libruby[^ ]*'", shell=True, text=True,
                             capture_output=True, check=False).stdout.strip()
    if not library:
        raise Skip("ruby has no library of its own")
    script = run.dir / "fibers.rb"
    script.write_text("""
        a = Fiber.new { |x| 20.times { |i| x = Fiber.yield(x + i) }; :a }
        b = Fiber.new { |x| 20.times { |i| x = Fiber.yield(x * 2) }; :b }
        e = Enumerator.new { |y| 10.times { |i| y << i * i } }
        sum = 0
        20.times { |i| sum += a.resume(i) + b.resume(i) }
        10.times { sum += e.next }
        puts sum""")
    command = ["ruby", str(script)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in ("rb_fiber_*", "rb_*ensure*", "rb_obj_*", "rb_protect"):
        for prefix in ("ucall", "uretprobe"):
            log = run.dir / "said"
            log.unlink(missing_ok=True)
            result = run.trace(f"{prefix}:{library}:{name}", "--count", command=["sh", "-c", f"exec ruby {script} > {log}"])
            check_equal((result.code, log.read_text()), (0, told), f"{prefix}:{name}: {result.stderr}")
            check(result.summary["hits"] > 0, f"{prefix}:{name} {result.stderr}")


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


if __name__ == "__main__":
    main()
