#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of programs by name. user_functions.c says what each was called with and what it returned."""

import collections
import json
import platform
import subprocess

from puppet import HERE  # noqa: F401 (finds the harness)
from harness import Skip, check, check_equal, main, require_program, require_root, require_x86_64, scenario, with_long
from said import quiet

FUNCTIONS = ["small_ones", "eight", "texts", "nothing", "with_float", "recursive", "jumps", "local_one"]
COMPILERS = ["gcc", "clang", "g++", "clang++"]  # the latter two take it for C++
LEVELS = with_long(["-O0", "-O1", "-O2", "-O3", "-Os"], ["-O0", "-O2", "-O3"])


def build(run, compiler="gcc", level="-O2", flags=("-g",)):
    require_root()
    name = f"functions-{compiler}{level}{'-'.join(flags)}".replace("+", "p").replace("=", "-")
    return run.build(name, [HERE / "user_functions.c"], [level, "-w", *flags], compiler)


def traced(run, program, prefix, functions, *options, code=0):
    """What the program said, by function; what the tool shows, by function; and the tool's result."""
    log = run.dir / "said"
    names = [f"{prefix}:{program}:{name}" for name in functions]
    result = run.trace(*names, *options, command=["sh", "-c", f"exec {program} > {log}"])
    result.check_code(code)
    said, shown = collections.defaultdict(list), collections.defaultdict(list)
    for line in log.read_text().splitlines():
        call, result_text = line.split(" -> ")
        name, *args = call.split(" ") if not call.startswith("texts ") else ["texts", *call[6:].rsplit(" ", 1)]
        said[name].append((args, result_text))
    for event in result.events:
        name = event["probe"].rsplit(":", 1)[1].strip("\"").split("(")[0]
        shown[name].append((event["args"], event.get("return")))
    return said, shown, result


def as_text(value):
    """A value of JSON output as printf() says it; None: it has none."""
    if isinstance(value, dict):
        return None if "error" in value else str(value.get("value", value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def compare(where, told, seen, unreadable):
    """Each value that is shown is the one that was passed; `unreadable` counts the others."""
    check_equal(len(seen), len(told), f"{where}: values")
    for number, (said, value) in enumerate(zip(told, seen)):
        text = as_text(value)
        if text is None:
            unreadable[where] += 1
        else:
            check_equal(text, said, f"{where}: value {number} of {told}")


def compare_result(where, told, value, must_be_read):
    """`told` is what the program said that it returns."""
    if told == "void":
        return check_equal(value, None, f"{where} returns nothing")
    text = as_text(value)
    if text is None:
        return check(not must_be_read or "with_float" in where, f"{where}: {value}")
    return check_equal(text, told, where)


def in_order_of_calls(name, calls):
    """Calls that have a call of themselves within begin in the other order than they end."""
    if name != "recursive":
        return calls
    runs, run = [], []
    for call in calls:
        if run and int(call[0][0]) == 0:
            runs.append(run)
            run = []
        run.append(call)
    runs.append(run)
    return [call for each in runs for call in reversed(each)]


@scenario
def arguments_are_those_that_were_passed_whatever_compiler_made_the_program(run):
    table = {}
    for compiler in COMPILERS:
        for level in LEVELS:
            program = build(run, compiler, level)
            said, shown, _ = traced(run, program, "uprobe", FUNCTIONS)
            unreadable = collections.Counter()
            for name in FUNCTIONS:
                told = in_order_of_calls(name, said[name])
                if name == "jumps":  # those that jumped away did not say so
                    told = told + [([str(value)], "?") for value in (3, 4, 5)]
                check_equal(len(shown[name]), len(told), f"{compiler} {level} {name}: calls")
                for (args, _), (values, _) in zip(told, shown[name]):
                    compare(f"{compiler} {level} {name}", args, values, unreadable)
            if level == "-O0":
                check_equal({where for where in unreadable}, {f"{compiler} {level} with_float"}, "unreadable at -O0")
            table[compiler, level] = sum(unreadable.values())
    print("values that could not be read, all others were right:")
    for compiler in COMPILERS:
        print(f"  {compiler:8}", *(f"{level} {table[compiler, level]:3}" for level in LEVELS))


@scenario
def return_values_are_those_that_were_returned(run):
    for compiler in COMPILERS:
        for level in ("-O0", "-O2"):
            said, shown, _ = traced(run, build(run, compiler, level), "uretprobe", FUNCTIONS)
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
            said, shown, _ = traced(run, program, "uretprobe", FUNCTIONS, "--ret-probes")
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
def inlined_copies_are_seen_each(run):
    for compiler in COMPILERS:
        for level in ("-O1", "-O2", "-O3"):
            said, shown, _ = traced(run, build(run, compiler, level), "uprobe", ["copied"])
            check_equal(len(shown["copied"]), len(said["copied"]), f"{compiler} {level}: calls of an inlined function")
            for (args, _), (values, _) in zip(said["copied"], shown["copied"]):
                compare(f"{compiler} {level}", args, values, collections.Counter())


@scenario
def what_is_assigned_at_once_is_not_taken_for_what_was_passed(run):
    """With no instruction between the two, debug information may have the second one alone."""
    source = run.dir / "assigned.c"
    source.write_text("""
        void use(unsigned long);
        __attribute__((noinline)) int with_register(int p, long q) { p += 1; q -= 100; use(p); use(q); return p; }
        __attribute__((noinline)) static int with_constant(int p, long q) { p += 1; q -= 100; use(p); use(q); return p; }
        static inline __attribute__((always_inline)) int copied(int p, long q) { p += 1; q -= 100; use(p); use(q); return p; }
        __attribute__((noinline)) int outer(int c) { use(3); int sum = copied(5, 7); use(4); return sum + copied(c, 7); }
        int main(int c, char** v) { return 256 * (with_register(5, 7) + with_constant(5, 7) + outer(5)); }""")
    other = run.dir / "use.c"
    other.write_text('void use(unsigned long x) { __asm__ volatile("" : : "r"(x)); }')
    used = run.build("use.o", [other], ["-c"])
    for compiler in COMPILERS:
        language = ["-x", "c"] if compiler in ("gcc", "clang") else ["-fpermissive", "-x", "c"]
        link_time = ["-flto", "-fuse-ld=lld"] if compiler.startswith("clang") else ["-flto"]
        for flags in (["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-O2", *link_time]):
            name = f"assigned-{compiler}{''.join(flags)}".replace("+", "p").replace("=", "-")
            program = run.build(name, [], ["-g", *flags, *language, str(source), "-x", "none", str(used)], compiler)
            result = run.trace([f"uprobe:{program}:{name}" for name in ("with_register", "with_constant", "copied")],
                               command=[str(program)])
            result.check_code(0)
            check(len(result.events) >= 2, f"{name}: {result.describe()}")
            for event in result.events:
                for value, passed in zip(event["args"], (5, 7)):
                    check(isinstance(value, dict) or value == passed, f"{name}: {event['probe']} {event['args']}")


@scenario
def parameters_that_take_each_others_values_in_an_inlined_copy_are_no_arguments(run):
    """A swap takes no instruction: from the copy's first one each is where the other one was."""
    source = run.dir / "swapped.c"
    source.write_text("""
        void use(unsigned long);
        static inline __attribute__((always_inline)) void copied(long p, long q, const long kept) {
            long t = p; p = q; q = t; use(p); use(q); use(kept); }
        volatile long first = 5, second = 7, third = 9;
        __attribute__((noinline)) void outer(void) { use(1); copied(first, second, third); use(2); }
        int main(void) { outer(); return 0; }""")
    other = run.dir / "use.c"
    other.write_text('void use(unsigned long x) { __asm__ volatile("" : : "r"(x)); }')
    kept = 0
    for compiler in ("gcc", "clang"):
        link_time = ["-flto", "-fuse-ld=lld"] if compiler == "clang" else ["-flto"]
        for machine in ([], ["-m32"]):
            used = run.build(f"use{''.join(machine)}.o", [other], ["-c", *machine])
            for flags in (["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", *link_time]):
                name = f"swapped-{compiler}{''.join([*machine, *flags])}".replace("=", "-")
                program = run.build(name, [source, used], ["-g", *machine, *flags], compiler)
                result = run.trace(f"uprobe:{program}:copied", command=[str(program)])
                result.check_code(0)
                check(len(result.events) >= 1, f"{name}: {result.describe()}")
                args = result.events[0]["args"]
                for value, passed in zip(args, (5, 7, 9)):
                    check(isinstance(value, dict) or value == passed, f"{name}: {args}")
                kept += compiler == "clang" and args[2] == 9
    check(kept >= 8, f"{kept} of Clang's copies have the value of a parameter that is const")


@scenario
def arguments_on_the_stack_of_32_bit_functions_are_read_at_every_level(run):
    """Clang lists them only behind the instructions that the function begins with."""
    source = run.dir / "words.c"
    source.write_text("""
        void use(unsigned long);
        struct pair { int first, second; };
        __attribute__((noinline)) int external(int a, short b, long long c, struct pair *p, const char *text) {
            use(a); use(b); use(c); use(p->second); use(text[0]); return a; }
        __attribute__((noinline)) static int local(int a, int b, int c, unsigned d, struct pair *p) {
            use(a); use(b); use(c); use(d); use(p->first); return c; }
        __attribute__((noinline, regparm(3))) int by_registers(int a, int b, int c, int d) { use(d); use(c); use(a); return b; }
        __attribute__((noinline)) int swapped(int a, int b, int c) { int t = a; a = b; b = t; use(a); use(b); use(c); return c; }
        struct pair object = {1, 2};
        int main(int count, char **v) {
            (void)v;
            external(-5, count - 8, 0x123456789abcdefll, &object, "words"); local(11, 12, count + 12, 14u, &object);
            return !(by_registers(21, 22, count + 22, 24) + swapped(31, 32, count + 32));
        }""")
    other = run.dir / "use.c"
    other.write_text('void use(unsigned long x) { __asm__ volatile("" : : "r"(x)); }')
    used = run.build("use32.o", [other], ["-c", "-m32"])
    wanted = {"external": [-5, -7, 0x123456789abcdef, None, None], "local": [11, 12, 13, 14, None], "by_registers": [21, 22, 23, 24],
              "swapped": [31, 32, 33]}
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            name = f"words-{compiler}{level}"
            program = run.build(name, [source, used], ["-g", "-m32", level], compiler)
            result = run.trace([f"uprobe:{program}:{function}" for function in wanted], command=[str(program)])
            result.check_code(0)
            check_equal(len(result.events), 4, f"{name}: {result.describe()}")
            for event in result.events:
                function = event["probe"].rsplit(":", 1)[1]
                for value, passed in zip(event["args"], wanted[function]):
                    check(isinstance(value, dict) or passed in (None, value), f"{name}: {function} {event['args']}")
                if function == "external":
                    check(not any(isinstance(value, dict) for value in event["args"]), f"{name}: {event['args']}")
                    check_equal(event["args"][4], "words", f"{name}: text")


@scenario
def members_of_copied_objects_that_callers_leave_out_are_no_arguments(run):
    """Callers that know what a function reads need not write the rest; those of a function that may be replaced do."""
    source = run.dir / "copied.cpp"
    source.write_text("""
        extern "C" void use(unsigned long);
        struct Object { long a, b; Object(long x, long y) : a(x), b(y) {} Object(const Object &o) : a(o.a), b(o.b) {} };
        __attribute__((noinline)) void reads_none(Object) { use(1); }
        __attribute__((noinline)) void reads_one(Object object) { use(object.b); }
        __attribute__((noinline)) void calls() { use(3); reads_none(Object(5, 7)); reads_one(Object(5, 7)); use(4); }
        """)
    other = run.dir / "use.c"
    other.write_text('void use(unsigned long x) { __asm__ volatile("" : : "r"(x)); }')
    start = run.dir / "start.cpp"
    start.write_text("void calls(); int main() { calls(); }")
    used = run.build("use.o", [other], ["-c", "-fPIC"])
    read = collections.Counter()
    for compiler in ("g++", "clang++"):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            for pic in ([], ["-fPIC", "-shared"]):
                name = f"copied-{compiler}{level}{''.join(pic)}".replace("+", "p")
                if pic:
                    file = run.build(f"lib{name}.so", [source, used], ["-g", level, *pic], compiler)
                    program = run.build(name, [start, file], [f"-Wl,-rpath,{run.dir}"], compiler)
                else:
                    file = program = run.build(name, [source, start, used], ["-g", level], compiler)
                result = run.trace(f"uprobe:{file}:reads_*", "--print", "arg0.a, arg0.b", command=[str(program)])
                result.check_code(0)
                check_equal(len(result.events), 2, f"{name}: {result.describe()}")
                for event in result.events:
                    for value, passed in zip(event["args"], (5, 7)):
                        check(isinstance(value, dict) or value == passed, f"{name}: {event['probe']} {event['args']}")
                        read[level == "-O0", compiler, bool(pic)] += value == passed
    check_equal(read[True, "g++", False], 4, "values without optimisation")
    check_equal(read[False, "g++", True], 16, "values of a function that may be replaced")


@scenario
def without_debug_information_arguments_are_words_of_registers(run):
    program = build(run, flags=("-s", "-rdynamic"))
    said, shown, result = traced(run, program, "ucall", ["eight", "recursive"], "--print", "arg0, retval")
    for (args, told), (values, _) in zip(said["eight"], shown["eight"]):
        check_equal(values[0] & 0xffffffff, int(args[0]) & 0xffffffff, "first word")
        check_equal(values[1] & 0xffffffff, int(told) & 0xffffffff, "result")
    check_equal(len(shown["recursive"]), len(said["recursive"]), "calls")


@scenario
def without_debug_information_types_may_be_said_by_hand(run):
    by_hand = {"small_ones": "bool, i8, u8, i16, u16", "eight": "i32, i64, u32, i64, u64, i32, i16, u32",
               "texts": "str, i32", "with_float": "i32, f64, i32"}
    for flags in (("-s", "-rdynamic"), ("-s", "-rdynamic", "-m32")):
        program = build(run, level="-O1", flags=flags)
        for name, types in by_hand.items():
            said, shown, _ = traced(run, program, "uprobe", [name], "--args", types)
            check_equal(len(shown[name]), len(said[name]), f"{name}: calls")
            unreadable = collections.Counter()
            for (args, _), (values, _) in zip(said[name], shown[name]):
                compare(name, args, values, unreadable)
            floats = len(said[name]) if name == "with_float" and "-m32" not in flags else 0
            check_equal(sum(unreadable.values()), floats, f"{name} {flags}: floats are in vector registers")


@scenario
def types_said_by_hand_do_not_override_those_that_are_known(run):
    program = build(run)
    result = run.trace(f"uprobe:{program}:eight", "--args", "i32", command=[program])
    result.check_code(2)
    check("has debug information, which knows the types" in result.stderr, result.stderr)
    result = run.trace(f"uprobe:{program}:eight", "--args", "i32, sting", command=[program])
    result.check_code(2)
    check("'sting' is no type of an argument" in result.stderr, result.stderr)


@scenario
def programs_of_32_bits_pass_arguments_on_the_stack(run):
    program = build(run, level="-O1", flags=("-g", "-m32"))
    said, shown, _ = traced(run, program, "uprobe", FUNCTIONS)
    for name in ("small_ones", "eight", "texts", "nothing"):
        check_equal(len(shown[name]), len(said[name]), f"{name}: calls")
        for (args, _), (values, _) in zip(said[name], shown[name]):
            compare(name, args, values, collections.Counter())


@scenario
def calls_of_32_bits_are_paired_by_whatever_their_ends_are_seen(run):
    program = build(run, level="-O1", flags=("-g", "-m32"))
    for backend in ("auto", "uprobe_multi", "perf_uprobe"):
        said, shown, _ = traced(run, program, "ucall", ["eight", "recursive"], "--print", "arg0, retval", "--backend", backend)
        for name in ("eight", "recursive"):
            check_equal(sorted((args[0], told) for args, told in said[name]),
                        sorted(tuple(map(as_text, values)) for values, _ in shown[name]), f"{name} by {backend}")


@scenario
def callers_of_32_bits_are_one_key_whatever_is_behind_their_address(run):
    """It is four bytes there, and what is behind it on the stack the first argument."""
    program = build(run, level="-O1", flags=("-g", "-m32"))
    said, _, result = traced(run, program, "uprobe", ["eight"], "--by", "ustack", "--max-rows", "1")
    lost = result.summary["lost"]["table_full"]
    check_equal((len(said["eight"]) > 1, result.summary["events"], lost), (True, len(said["eight"]), 0), "rows of one stack")


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


@scenario
def breakpoints_move_to_where_the_kernel_emulates_and_hits_and_values_stay(run):
    """Two optimised functions that begin with a test and one that begins with what the loop comes back to."""
    require_root()
    source = run.dir / "starts.c"
    source.write_text("""
        #include <stdio.h>
        __attribute__((noinline)) long bits(long n) {
          long s = 0;
          while (n) { s += n & 1; n = (unsigned long)n >> 1; __asm__ volatile("" : "+r"(s)); }
          return s;
        }
        __attribute__((noinline)) long clamp(long n, const long *most) { return n < 0 ? 0 : n > *most ? *most : n; }
        int main(void) {
          const long most = 70;
          for (long i = -50; i < 100; i += 3) {
            printf("bits %ld -> %ld\\n", i, bits(i));
            printf("clamp %ld %lu -> %ld\\n", i, (unsigned long)&most, clamp(i, &most));
          }
        }""")
    moved = 0
    for compiler in ("gcc", "clang"):
        for level in ("-O1", "-O2", "-Os"):
            program = run.build(f"starts-{compiler}{level}", [source], [level, "-g"], compiler)
            tool = run.tool.with_name("usdt-list")
            listed = [json.loads(subprocess.run([tool, "--format=json", f"uprobe:{program}:{name}"], capture_output=True,
                                                check=True).stdout) for name in ("bits", "clamp")]
            moved += sum("moved" in row["site"] for row in listed)
            for row in listed:
                check("moved" not in row["site"] or row["site"]["class"] == "emulated", row)
            for prefix in ("uprobe", "ucall"):
                said, shown, _ = traced(run, program, prefix, ["bits", "clamp"])
                for name in ("bits", "clamp"):
                    check_equal(len(shown[name]), 50, f"{compiler} {level} {prefix}:{name}: hits")
                    for (args, told), (values, returned) in zip(said[name], shown[name]):
                        compare(name, args, values, collections.Counter())
                        if prefix == "ucall":
                            compare_result(name, told, returned, True)
    check(moved >= 4, f"{moved} of 12 begin with what is stepped and come to what is emulated")


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


if __name__ == "__main__":
    main()
