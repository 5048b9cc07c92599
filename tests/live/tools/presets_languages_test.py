#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets about languages asked of the distribution's interpreters, of Java and of C++: their numbers are what the programs did."""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, require_file, require_program, require_root, scenario  # noqa: E402
from presets_support import PYTHON, answers, asked  # noqa: E402

PROGRAM = """
import gc
gc.disable()
def callee(n): return n + 1
for n in range(300): callee(n)
for _ in range(7): gc.collect(1)
import colorsys
"""


@asked("python.gc,imports,calls,slow-calls,flow,stat,lines,audit")
@scenario
def python_is_asked_for_collections_imports_calls_lines_and_audit_events(run):
    require_file(PYTHON)
    program = run.dir / "program.py"
    program.write_text(PROGRAM)
    got = answers(run, "python.gc,imports,calls,slow-calls,flow,stat,lines,audit", [PYTHON, "-S", program.name])
    check_equal(got.rows("gc")[1]["count"], 7, "collections of generation 1")
    check("colorsys" in [args[0] for args in got.args("imports")], f"imports: {got.args('imports')}")
    alone = answers(run, "python.calls", [PYTHON, "-S", program.name])  # what traces no lines has all calls, too
    for each in (got, alone):
        check_equal([count for (name, _), count in each.counts("calls").items() if name == "callee"], [300], "calls")
    turns = [count for (file, line), count in got.counts("lines").items() if str(program).startswith(file) and line == 5]
    check(turns and turns[0] >= 300, f"turns of a loop: {turns}")
    check(got.spans("slow-calls") > 0, "no slow calls")
    check(["cpython.run_file"] in got.args("audit"), "audit events")
    flow = got.named_args("flow")
    check_equal([(name, function) for name, function, _, line in flow if function == "callee"],
                [("function__entry", "callee"), ("function__return", "callee")] * 300, "calls and returns")
    each = got.counts("stat")
    check_equal(each["function__return"], sum(1 for args in flow if args[0] == "function__return"), "calls")
    check_equal(each["gc__start"], sum(got.counts("gc").values()), "collections")
    check("each call of a Python function is a hit" in got.said, got.said)


@scenario
def counts_so_far_and_rates_of_now_are_told_apart(run):
    """The program collects 30 times in each second or so."""
    require_root()
    require_file(PYTHON)
    program = "import gc, time\ngc.disable()\nfor _ in range(90): gc.collect(); time.sleep(0.03)"
    done = subprocess.run([run.tool, "--preset", "python.stat", "--", PYTHON, "-S", "-c", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, 0, done.stderr)
    headings = re.findall(r"^ *(COUNT.*\S) +name$", done.stdout, re.M)
    check(len(headings) >= 3, f"a table each second: {done.stdout}")
    check_equal(headings, ["COUNT SO FAR  PER SECOND NOW"] * (len(headings) - 1) + ["COUNT  PER SECOND"], "headings")
    counts = [int(count) for count in re.findall(r"^ *(\d+) .* gc__start$", done.stdout, re.M)]
    check(counts == sorted(counts) and counts[-1] >= 90, f"collections so far: {counts}")


SCRIPT = """<?php
for ($i = 0; $i < 3; $i++) echo $nope;
trigger_error("too hot", E_USER_WARNING);
function f($n) { if ($n % 3 == 0) throw new RuntimeException("no"); return $n; }
for ($i = 0; $i < 30; $i++) { try { f($i); } catch (Exception $e) {} }
include __DIR__ . "/shelf.php";
"""


@asked("php.requests,exceptions,errors,functions,slow-functions,files,flow,stat")
@scenario
def php_is_asked_for_requests_exceptions_errors_functions_and_files(run):
    require_program("php8.2")
    program = run.dir / "program.php"
    program.write_text(SCRIPT)
    shelf = run.dir / "shelf.php"
    shelf.write_text("<?php return 3;")
    command = ["php8.2", program.name]
    got = answers(run, "php", command)
    check_equal(got.counts("exceptions"), {"RuntimeException": 10}, "exceptions")
    check_equal(got.spans("requests"), 1, "requests")
    file = str(program)
    check_equal(got.args("errors"), [[2, file, 2, "Undefined variable $nope"]] * 3 + [[512, file, 3, "too hot"]], "errors")
    silent = answers(run, "phpcalls", command)
    check_equal(silent.counts("functions"), {}, "functions without the variable")
    check("its probes fire only if it was started with USE_ZEND_DTRACE=1 in its environment, and the command is not" in silent.said, silent.said)
    got = answers(run, "php.functions,slow-functions,files,flow,stat", command, {"USE_ZEND_DTRACE": "1"})
    called = {(name, path): count for (_, _, name, path), count in got.counts("functions").items()}
    check_equal({of: called.get(of) for of in (("f", file), ("main", file), ("main", str(shelf)))}, {("f", file): 30, ("main", file): 1, ("main", str(shelf)): 1},
                f"calls by whole paths: {called}")
    check(got.spans("slow-functions") > 0, "no slow functions")
    flow = [(args[0], args[3]) for args in got.named_args("flow")]
    check_equal([flow.count((name, "f")) for name in ("function__entry", "function__return")], [30, 30], "calls and returns of f")
    check_equal(got.counts("stat"), {"function__entry": sum(1 for name, _ in flow if name == "function__entry"), "exception__thrown": 10,
                                     "request__startup": 1, "compile__file__entry": 2}, "how many of each")
    check_equal(sorted(args[0] for args in got.args("files")), [str(program), str(shelf)], "files")


RUBY = """class Shop; def initialize(n); @n = n; end; end
50.times { |n| Shop.new(n) }
12.times { begin; raise ArgumentError, "no"; rescue ArgumentError; end }
require "set"
GC.start
def work(n); n; end
def traced; TracePoint.new(:call, :return) {}.enable { 40.times { |n| work(n) } }; end
traced
500.times { "text".swapcase }
"""


@asked("ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods,flow,stat")
@scenario
def ruby_is_asked_for_exceptions_allocations_files_collections_and_methods(run):
    require_program("ruby3.1")
    program = run.dir / "program.rb"
    program.write_text(RUBY)
    got = answers(run, "ruby.exceptions,allocations,strings,requires,marking,sweeping,methods,c-methods,flow,stat", ["ruby3.1", program])
    file = str(program)
    check_equal(got.counts("exceptions")[("ArgumentError", file, 3)], 12, "exceptions")
    check_equal(got.counts("allocations")[("Shop", file, 2)], 50, "objects")
    check_equal(got.counts("methods")[("Object", "work", file)], 40, "methods within a TracePoint")
    check("its probes fire only if the program has a TracePoint" in got.said, got.said)
    check_equal(got.counts("c-methods")[("String", "swapcase")], 500, "methods in C")
    check(got.spans("marking") > 0 and got.spans("sweeping") > 0, "collections")
    check(any("set" in str(args) for args in got.args("requires")), "required files")
    check(got.rows("strings"), "strings")
    flow = [(args[0], args[2]) for args in got.named_args("flow")]
    check_equal([flow.count((name, "work")) for name in ("method__entry", "method__return")], [40, 40], "calls and returns of a method")
    each = got.counts("stat")
    check_equal((each["raise"], each["cmethod__entry"]), (sum(got.counts("exceptions").values()), sum(1 for name, _ in flow if name == "cmethod__entry")), "how many of each")


THROWS = """#include <stdexcept>
int main() { for (int i = 0; i < 9; i++) try { if (i % 3) throw std::runtime_error("x"); throw i; } catch (...) {} }
"""


@asked("libstdc++.thrown,places,unwinding")
@scenario
def exceptions_of_cpp_are_told_by_type_and_time(run):
    (run.dir / "throws.cpp").write_text(THROWS)
    program = run.build("throws", [run.dir / "throws.cpp"], compiler="g++")
    got = answers(run, "libstdc++.thrown,places,unwinding", [program])
    check_equal(got.counts("thrown"), {"St13runtime_error": 6, "i": 3}, "exceptions by type")
    places = got.objects("places", "table")[-1]["rows"]
    check_equal(sum(row["count"] for row in places if "main" in str(row["key"])), 9, f"exceptions by stack: {places}")
    check_equal(got.spans("unwinding"), 9, "exceptions that were caught")


JAVA = """
public class Shop {
  static int work(int n) { return n + 1; }
  static final Object lock = new Object();
  public static void main(String[] args) throws Exception {
    System.gc();
    for (int n = 0; n < 50000; n++) work(n);
    for (int n = 0; n < 20000; n++) args = new String[] {"" + new Shop()};
    Thread other = new Thread(() -> { for (int n = 0; n < 5; n++) synchronized (lock) { pause(20); } }, "till");
    other.start();
    for (int n = 0; n < 5; n++) { synchronized (lock) { pause(20); } }
    other.join();
  }
  static void pause(int ms) { try { Thread.sleep(ms); } catch (InterruptedException e) {} }
}
"""


@asked("hotspot.gc,safepoints,threads,classes,monitors,allocations,methods,stat")
@scenario
def java_is_asked_for_pauses_threads_classes_monitors_allocations_and_methods(run):
    require_program("java", "javac")
    (run.dir / "Shop.java").write_text(JAVA)
    subprocess.run(["javac", "Shop.java"], cwd=run.dir, check=True)
    command = ["java", "-Xint", "-Xmx64m", "Shop"]
    got = answers(run, "hotspot", command)
    check(got.spans("gc") >= 1 and got.spans("safepoints") >= 1, "collections and safepoints")
    check(any("till" in str(args) for args in got.args("threads")), f"threads {got.args('threads')}")
    silent = answers(run, "hotspot.methods", command)
    check("its probes fire only if it was started with -XX:+DTraceMethodProbes" in silent.said, silent.said)
    flags = ["java", "-Xint", "-Xmx64m", "-XX:+DTraceMonitorProbes", "-XX:+DTraceAllocProbes", "-XX:+DTraceMethodProbes", "Shop"]
    got = answers(run, "hotspot.threads,classes,monitors,allocations,methods,stat", flags)
    check_equal(got.counts("methods").get(("Shop", "work")), 50000, f"methods {list(got.counts('methods').items())[:5]}")
    check_equal(got.counts("allocations").get("Shop"), 20000, "objects")
    check(got.spans("monitors") >= 1, "contended monitors")
    check(any("Shop" in str(args) for args in got.args("classes")), "classes")
    each = got.counts("stat")
    check(each["method__entry"] >= 50000 and each["object__alloc"] >= 20000 and each["gc__begin"] >= 1, f"how many of each: {each}")
    check_equal(each["class__loaded"], len(got.args("classes")), "classes")
    started = sum(event["probe"].endswith(":thread__start") for event in got.objects("threads", "event"))
    check_equal(each["thread__start"], started, "threads that start")


if __name__ == "__main__":
    main()
