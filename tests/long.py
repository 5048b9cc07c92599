#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests whose whole numbers take minutes, one after the other: of 10,000 calls in `./run test` a million here. Each
reads USDT_LONG, so that what is tested is written once.

Usage: long.py BUILD_DIRECTORY [SUBJECT...]
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


@dataclasses.dataclass
class Long:
    subject: str
    claim: str
    command: list  # words with {bin}, {build} and {tests}
    environment: dict = dataclasses.field(default_factory=dict)


def scenarios(path):
    return [sys.executable, "-B", "{tests}/" + path, "--tool", "{bin}/usdt-trace"]


TESTS_NAMED = ["--test-dir", "{build}", "--output-on-failure", "-R"]

ALL = [
    Long("sigkill", "a tracer killed at 200 moments of attaching and of detaching 3,000 sites leaves nothing",
         scenarios("live/attach/sigkill_test.py")),
    Long("expressions", "10^6 random expressions: the kernel's answers are the evaluator's",
         ["{bin}/expr_kernel_test", "--gtest_filter=*_random_*:*bucket*"]),
    Long("compiler", "10^5 random expressions: the answers are a C compiler's", ["{bin}/expr_test", "--gtest_filter=Expression.of_*"]),
    Long("spans", "10^6 pairs on 8 threads: counts, sums and extremes exact, percentiles within their bound",
         scenarios("live/event/span_test.py")),
    Long("files", "storms: 2,000 processes, 500 libraries opened, 50 files replaced", scenarios("live/session/follow_test.py")),
    Long("broker", "10^6 messages that cannot be, sent to a running usdt-broker that has AddressSanitizer: 0 crashes",
         [*scenarios("live/broker/wire_test.py"), "messages_that_cannot_be_end_their_connection_and_no_other"],
         {"USDT_BROKER_PROGRAM": "{build}/sanitize/bin/usdt-broker"}),
    Long("messages", "10^6 inputs that a fuzzer makes of messages to usdt-broker, read, planned and written with AddressSanitizer: 0 crashes",
         ["{build}/sanitize/bin/fuzz_broker", "-runs=1000000", "-timeout=5", "-verbosity=0", "-print_final_stats=1",
          "{build}/sanitize/tests/fuzz/broker", "{tests}/fuzz/corpus/broker"]),
    Long("processes", "1,000 programs held at their start, each seen from its first instruction", scenarios("live/session/follow_processes_test.py")),
    Long("shown", "what comes while a trace runs, in tables and recordings", scenarios("live/session/follow_output_test.py")),
    Long("guards", "totals of a sample of 10^6 hits within 1 %", scenarios("live/session/guard_test.py")),
    Long("overhead", "programs slowed by what --max-overhead allows, from 10^3 to 5 * 10^6 hits a second",
         scenarios("live/session/overhead_test.py")),
    Long("go", "10^7 calls of a Go program whose stacks move, seen at their returns, 0 crashes", scenarios("live/dwarf/go_test.py")),
    Long("harm", "100 runs for each name, each way to leave a function and each end of a call: no program ends otherwise",
         scenarios("live/attach/harm_test.py")),
    Long("python", "100,000 decorated calls: counts, names and nesting exact",
         [sys.executable, "-B", "{tests}/bindings/python_test.py", "ProviderLive"],
         {"USDT_LIBRARY": "{build}/bindings/c/libusdt-c.so", "USDT_TRACE": "{bin}/usdt-trace",
          "USDT_PROVIDER_LIBRARY": "{build}/provider/libusdt-provider.so"}),
    Long("node", "100,000 wrapped calls in 50 concurrent tasks: counts, names and nesting exact",
         ["node", "{tests}/bindings/node_test.js", "live"], {"USDT_NODE_ADDONS": "{build}/bindings/node"}),
    Long("scripts", "5,000 damaged scripts", [sys.executable, "-B", "{tests}/tools/script_test.py"],
         {"USDT_TRACE": "{bin}/usdt-trace"}),
    Long("values", "2,000,000 values of functions of programs by chance: 0 wrong (USDT_CHANCE_SYSROOT=DIRECTORY: with the compilers of another system, too)",
         scenarios("locate/chance_test.py")),
    Long("hostile", "3,000 damaged files, and each amplifying one in three sizes", ["ctest", *TESTS_NAMED, "^tools[.]hostile$"]),
    Long("locations", "places of values by every compiler and level: GDB's", ["ctest", *TESTS_NAMED, "^locate[.]truth$"]),
    Long("returns", "each return of functions in pieces by every compiler, level and way: objdump's",
         ["{bin}/elf_test", "--gtest_filter=FunctionFlow.*"]),
    Long("headers", "each public header alone, by g++ and by clang with libc++", ["ctest", *TESTS_NAMED, "^consumer[.](pkg_config|libcxx)$"]),
    Long("members", "members of arguments by every compiler and level", scenarios("live/resolve/members_test.py")),
    Long("arguments", "arguments by every compiler and level", scenarios("live/find/user_functions_test.py")),
    Long("objects", "objects passed by value: programs by chance", scenarios("live/resolve/passed_values_test.py")),
    Long("rust", "results of types by chance of Rust", scenarios("live/dwarf/rust_results_test.py")),
    Long("hits", "hits are calls: programs by chance that compilers split, inline and unroll", scenarios("live/find/hits_test.py")),
    Long("variants", "functions that are several, or one by several names", scenarios("live/find/function_variants_test.py")),
    Long("stacks", "3,000 processes, one row", scenarios("live/session/stack_table_test.py")),
    Long("forms", "programs by chance with probes, by each compiler, level and way to link: values are those they log",
         scenarios("programs/truth_test.py")),
    Long("heap", "live bytes within the bound in 95 of 100 runs; a planted leak first in 20 of 20", scenarios("live/tools/heap_test.py")),
    Long("names", "odd names of files: listed, traced by the names, and from their directory", scenarios("live/find/names_test.py")),
    Long("texts", "hostile texts of a program in each form of output", scenarios("live/tools/hostile_text_test.py")),
    Long("storm", "a day of an agent in ten minutes: every hit is with the server or in a count of losses", scenarios("live/agent/storm_test.py")),
    Long("libbpf", "300 specs of one probe, where libbpf itself has room for 256",
         [*scenarios("live/attach/libbpf_test.py"), "libbpf_itself_refuses_more_specs_than_its_header_has_room_for"]),
    Long("gdb", "126 functions of eight real programs: values equal to GDB's (an hour where sources have to be built)",
         scenarios("live/dwarf/against_gdb_test.py")),
]


def run(test, build):
    places = {"build": build, "bin": build / "bin", "tests": TESTS}
    command = [word.format(**places) for word in test.command]
    environment = os.environ | {"USDT_LONG": "1"} | {name: value.format(**places) for name, value in test.environment.items()}
    print(f"\n== {test.subject}: {test.claim}", flush=True)
    start = time.monotonic()
    code = subprocess.run(command, env=environment).returncode
    print(f"== {test.subject}: {'skipped' if code == SKIPPED else 'failed' if code else 'passed'} after {time.monotonic() - start:.0f} s", flush=True)
    return code


def main():
    build, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    unknown = set(wanted) - {test.subject for test in ALL}
    if unknown:
        sys.exit(f"long: {', '.join(sorted(unknown))}: none of: {' '.join(test.subject for test in ALL)}")
    codes = [run(test, build) for test in ALL if not wanted or test.subject in wanted]
    skipped = codes.count(SKIPPED)
    passed = codes.count(0)
    print(f"\n{passed} passed, {len(codes) - passed - skipped} failed, {skipped} skipped")
    sys.exit(0 if passed + skipped == len(codes) else 1)


if __name__ == "__main__":
    main()
