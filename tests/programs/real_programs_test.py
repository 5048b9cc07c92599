#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs of Debian packages, traced and compared with what each is known to do."""

import json
import os
import re
import subprocess
import time

from elf_view import Memory, note
from harness import Skip, check, check_equal, main, require_file, require_root, scenario, wait_line, wait_until
from postgres import POSTGRES_BIN, Postgres

PYTHON = "/usr/bin/python3.11"
PHP = "/usr/bin/php8.2"

# --- python3.11 -------------------------------------------------------------------------------------------------------

# CPython 3.11 fires function__entry only where a frame is entered by an exception (generator throw and close), and
# function__return at every return and yield; Python/ceval.c, DTRACE_FUNCTION_ENTRY.
PYTHON_CALLS = """\
import gc, os
gc.disable()
def leaf(n):
    return n
def branch(n):
    return leaf(n) + leaf(n + 1)
def stream():
    try:
        yield 1
    except ValueError:
        yield 2
for i in range(ROUNDS):
    branch(i)
    g = stream(); next(g); g.throw(ValueError()); g.close()
os._exit(0)
"""

PYTHON_GC = """\
import gc, os
gc.disable()
class Cycle:
    def __init__(self):
        self.me = self
print("ready", flush=True)
counts = []
for generation in (0, 1, 2, 0):
    for _ in range(7 * generation + 2):
        Cycle()
    counts.append((generation, gc.collect(generation)))
import colorsys
print(counts, flush=True)
os._exit(0)
"""


def python_command(run, text):
    require_root()
    require_file(PYTHON)
    script = run.dir / "script.py"
    script.write_text(text)
    return script, [PYTHON, "-I", "-S", str(script)]


@scenario
def python_function_entry_and_return_name_file_function_and_line(run):
    rounds = 40
    script, command = python_command(run, PYTHON_CALLS.replace("ROUNDS", str(rounds)))
    result = run.trace(f"usdt:{PYTHON}:python:function__*", "--print", "str(arg0), str(arg1), arg2", command=command)
    result.check_code(0)
    result.check_accounted(len(result.events), lost=0)
    seen = {name: [event["args"][1:] for event in events if event["args"][0] == str(script)]
            for name, events in result.by_name().items()}
    entries = [["stream", 9], ["stream", 11]]
    returns = [["leaf", 4], ["leaf", 4], ["branch", 6], ["stream", 9], ["stream", 11], ["stream", 11]]
    check_equal(seen.get("function__entry"), entries * rounds, "function__entry of the script")
    check_equal(seen.get("function__return"), returns * rounds, "function__return of the script")


@scenario
def python_gc_probes_equal_what_gc_collect_returned(run):
    _, command = python_command(run, PYTHON_GC)
    result = run.trace(f"usdt:{PYTHON}:python:gc__*", command=command)
    result.check_code(0)
    seen = result.by_name()
    known = [(0, 2), (1, 9), (2, 16), (0, 2)]
    check_equal([event["args"] for event in seen["gc__start"]][-4:], [[g] for g, _ in known], "gc__start generations")
    check_equal([event["args"] for event in seen["gc__done"]][-4:], [[count] for _, count in known], "gc__done counts")


@scenario
def python_import_probes_name_the_module(run):
    _, command = python_command(run, PYTHON_GC)
    result = run.trace(f"usdt:{PYTHON}:python:import__find__load__done", "--print", "str(arg0), arg1", command=command)
    result.check_code(0)
    check(["colorsys", 1] in [event["args"] for event in result.events], f"import of colorsys\n{result.describe()}")


# --- postgresql -------------------------------------------------------------------------------------------------------


@scenario
def postgres_query_start_is_the_sql_text_sent(run):
    statements = ["SELECT 1", "SELECT 'it''s \"quoted\" \\ text' AS t", "CREATE TABLE t(a int, b text)",
                  "INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 100) g", "SELECT count(*) FROM t",
                  "SELECT 'caf\u00e9 \u20ac'"]
    with Postgres(run) as server:
        tracing = run.trace_start(f"usdt:{POSTGRES_BIN}/postgres:postgresql:query__start", "--print", "str(arg0)")
        semaphore = server.wait_semaphore("query__start")
        server.sql(*statements)
        tracing.signal(2)
        result = tracing.finish()
        result.check_code(0)
        check_equal([event["args"][0] for event in result.events], statements, "query__start")
        result.check_accounted(len(statements), lost=0)
        check_equal(semaphore(), 0, "semaphore after the trace")


@scenario
def postgres_checkpoint_done_equals_the_server_log(run):
    with Postgres(run) as server:
        pages = int(server.sql("SELECT setting FROM pg_settings WHERE name = 'shared_buffers'"))
        tracing = run.trace_start(f"usdt:{POSTGRES_BIN}/postgres:postgresql:checkpoint__done")
        server.wait_semaphore("checkpoint__done")
        for round_number in range(3):
            rows = 1000 * round_number + 10
            server.sql(f"CREATE TABLE c{round_number} AS SELECT g FROM generate_series(1, {rows}) g", "CHECKPOINT")
        time.sleep(0.1)
        tracing.signal(2)
        result = tracing.finish()
        logged = re.findall(r"checkpoint complete: wrote (\d+) buffers \([\d.]+%\); "
                            r"(\d+) WAL file\(s\) added, (\d+) removed, (\d+) recycled", server.log.read_text())
    result.check_code(0)
    expected = [[int(wrote), pages, int(added), int(removed), int(recycled)]
                for wrote, added, removed, recycled in logged][-3:]
    check_equal(len(expected), 3, "checkpoints in the server log")
    check_equal([event["args"] for event in result.events], expected, "checkpoint__done against the server log")


# --- libstdc++ --------------------------------------------------------------------------------------------------------


def libstdcxx_of(program):
    text = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    found = re.search(r"libstdc\+\+\.so\.6 => (\S+)", text)
    check(found is not None, f"no libstdc++ in ldd {program}: {text}")
    path = os.path.realpath(found[1])
    if "throw" not in subprocess.run(["readelf", "-nW", path], capture_output=True, text=True).stdout:
        raise Skip(f"{path} has no probes")
    return path


def check_throws(result, lines):
    known = [json.loads(line) for line in lines if line.startswith("[")]
    check(len(known) > 0, "the program logged no exception")
    check_equal([event["args"] for event in result.events], known, "throw(object, type_info)")
    result.check_accounted(len(known), lost=0)


@scenario
def libstdcxx_throw_of_a_child_names_object_and_type(run):
    require_root()
    program = run.build("thrower", ["thrower.cpp"], ["-O1"], "g++")
    probe = f"usdt:{libstdcxx_of(program)}:libstdcxx:throw"
    out = run.dir / "thrown"
    result = run.trace(probe, command=[program, 100, out])
    result.check_code(0)
    check_throws(result, out.read_text().splitlines())


@scenario
def libstdcxx_throw_by_pid_and_soname(run):
    require_root()
    program = run.build("thrower", ["thrower.cpp"], ["-O1"], "g++")
    library = libstdcxx_of(program)
    out = run.dir / "thrown"
    process = run.start(program, 100, out, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    wait_line(process)
    tracing = run.trace_start("usdt:libstdc++.so.6:libstdcxx:throw", "-p", process.pid)
    memory, site = Memory(process.pid, library), note(library, "throw")
    wait_until(lambda: memory.attached(site), "breakpoint in libstdc++")
    process.stdin.write(b"go\n")
    check_equal(process.wait(20), 0, "exit code of the program")
    result = tracing.finish(20)  # the end of the only process named ends the trace
    result.check_code(0)
    check_throws(result, out.read_text().splitlines())


# --- php8.2-cli -------------------------------------------------------------------------------------------------------

PHP_CALLS = """\
<?php
function leaf($n) { return $n; }
class Tree { function branch($n) { return leaf($n) + leaf($n + 1); } }
$tree = new Tree;
for ($i = 0; $i < 25; $i++) $tree->branch($i);
try { throw new LogicException("known"); } catch (Exception $e) {}
"""


def trace_php(run, probe, print_list):
    require_root()
    require_file(PHP)
    script = run.dir / "script.php"
    script.write_text(PHP_CALLS)
    command = ["env", "USE_ZEND_DTRACE=1", PHP, "-n", script]
    result = run.trace(f"usdt:{PHP}:php:{probe}", "--print", print_list, command=command)
    result.check_code(0)
    result.check_accounted(len(result.events), lost=0)
    return str(script), [event["args"] for event in result.events]


@scenario
def php_function_entry_names_function_file_line_and_class(run):
    script, seen = trace_php(run, "function__entry", "str(arg0), str(arg1), arg2, str(arg3), str(arg4)")
    leaf, branch = ["leaf", script, 2, "", ""], ["branch", script, 3, "Tree", "::"]
    check_equal(seen, [["main", script, 4, "", ""]] + [branch, leaf, leaf] * 25, "function__entry")


@scenario
def php_request_startup_and_compile_name_the_script(run):
    script, startup = trace_php(run, "request__startup", "str(arg0), str(arg1), str(arg2)")
    check_equal(startup, [[script, "-", "-"]], "request__startup")
    script, compiled = trace_php(run, "compile__file__entry", "str(arg0)")
    check_equal(compiled, [[script]], "compile__file__entry")


@scenario
def php_exception_thrown_names_the_class(run):
    _, thrown = trace_php(run, "exception__thrown", "str(arg0)")
    check_equal(thrown, [["LogicException"]], "exception__thrown")


if __name__ == "__main__":
    main()
