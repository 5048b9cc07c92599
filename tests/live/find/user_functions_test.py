#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of functions of programs by name. user_functions.c says what each was called with."""

import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import attach_at_once, check, check_equal, main, require_root, scenario, with_long  # noqa: E402
from user_functions_support import COMPILERS, FUNCTIONS, build, compare, compare_result, traced  # noqa: E402

attach_at_once()

LEVELS = with_long(["-O0", "-O1", "-O2", "-O3", "-Os"], ["-O0", "-O2", "-O3"])


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
    known = run.trace(f"uprobe:{program}:eight", command=[program])
    result = run.trace(f"uprobe:{program}:eight", "--args", "i32", command=[program])
    result.check_code(0)
    check("debug information knows the types of eight: its own are taken" in result.stderr, result.stderr)
    args = [[event["args"] for event in each.events] for each in (known, result)]
    check(args[0] and args[0] == args[1], f"the arguments of each call: {args}")
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
def callers_of_32_bits_are_one_key_whatever_is_behind_their_address(run):
    """It is four bytes there, and what is behind it on the stack the first argument."""
    program = build(run, level="-O1", flags=("-g", "-m32"))
    said, _, result = traced(run, program, "uprobe", ["eight"], "--by", "ustack", "--max-rows", "1")
    lost = result.summary["lost"]["table_full"]
    check_equal((len(said["eight"]) > 1, result.summary["events"], lost), (True, len(said["eight"]), 0), "rows of one stack")


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


if __name__ == "__main__":
    main()
