#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The unit of the agent: what systemd says of its exposure, and the agent with just the user, the capabilities and the system
calls that the unit leaves it."""

import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "export"))
sys.path.insert(2, str(pathlib.Path(__file__).resolve().parent))

import puppet  # noqa: E402, F401 (finds the harness)
from agent import Agent, Program, agent_of, build, numbers_of, once_each, question  # noqa: E402
from collector import Collector  # noqa: E402
from harness import Skip, check, check_equal, main, require_program, require_root, scenario, wait_until  # noqa: E402

UNIT = pathlib.Path(__file__).resolve().parents[3] / "tools/usdt-agent/usdt-agent.service"
NOBODY = 65534


def values_of(key):
    return [value for line in UNIT.read_text().splitlines() if (value := re.fullmatch(f"{key}=(.*)", line))]


def words_of(key):
    return " ".join(value.group(1) for value in values_of(key)).split()


def system_calls(group):
    """The names of a group, as systemd has it."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
    names = set()
    for name in re.findall(r"^ +([@\w-]+)$", listed, re.MULTILINE):
        names |= system_calls(name) if name.startswith("@") else {name}
    return names


def allowed_system_calls():
    allowed = set()
    for value in values_of("SystemCallFilter"):
        words = value.group(1)
        groups = words.removeprefix("~").split()
        names = set().union(*(system_calls(word) if word.startswith("@") else {word} for word in groups))
        allowed = allowed - names if words.startswith("~") else allowed | names
    return allowed


# Runs a program with the system calls whose names are its first argument; all others fail with EPERM, as the unit has it.
FILTERED = """
import os, seccomp, sys
rules = seccomp.SyscallFilter(seccomp.ERRNO(1))
for name in sys.argv[1].split():
    try:
        rules.add_rule(seccomp.ALLOW, name)
    except RuntimeError:
        pass  # this machine has no such call
rules.load()
os.execv(sys.argv[2], sys.argv[2:])
"""


def as_the_unit_runs_it():
    """The words before the agent's own."""
    try:
        importlib.import_module("seccomp")
    except ImportError:
        raise Skip("no python3-seccomp") from None
    capabilities = ",".join("+" + word.removeprefix("CAP_").lower() for word in words_of("AmbientCapabilities"))
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--no-new-privs", "--inh-caps", f"-all,{capabilities}",
            "--ambient-caps", f"-all,{capabilities}", "--bounding-set", f"-all,{capabilities}", "/usr/bin/python3", "-c", FILTERED,
            " ".join(allowed_system_calls())]


@scenario
def systemd_calls_its_exposure_low(run):
    require_program("systemd-analyze")
    judged = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", UNIT], capture_output=True, text=True)
    check_equal(judged.returncode, 0, judged.stdout[-2000:] + judged.stderr)


@scenario
def hits_are_seen_with_the_capabilities_and_system_calls_of_the_unit(run):
    require_root()
    require_program("systemd-analyze", "setpriv")
    check_equal(words_of("AmbientCapabilities"), words_of("CapabilityBoundingSet"), "capabilities")
    path, collector = build(run), Collector(run)
    os.chmod(run.dir, 0o755)
    spool = run.dir / "spool"
    spool.mkdir()
    os.chown(spool, NOBODY, NOBODY)
    tool = shutil.copy(agent_of(run), run.dir / "usdt-agent")
    program = Program(run, path)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")}, "--export", f"otlp={collector.url}", "--spool", spool,
                  prefix=as_the_unit_runs_it(), tool=tool)
    agent.wait_for("attached")
    status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
    check_equal(re.search(r"^CapEff:\t(\w+)", status, re.MULTILINE).group(1), "000001c010080000", "the capabilities that it has")
    check("Seccomp:\t2" in status, status)
    leases = pathlib.Path("/proc/locks").read_text()
    check(re.search(rf"LEASE .* {agent.process.pid} ", leases), f"no lease of the file that is traced: {leases}")
    program.hit(700)
    agent.write("b", question("b", f"ucall:{path}:main", "count = true"))
    agent.reload()
    program.hit(300)
    wait_until(lambda: numbers_of(collector) == once_each(1000), f"a log record of each hit, {agent.said}")
    for times in (1, 2):
        shutil.copy(path, run.dir / "new")
        os.rename(run.dir / "new", path)
        agent.wait_for("a: followed: ", times)
    # It is told who has which file mapped. What was there before may be mapped by processes that nobody may look into.
    agent.wait_for("let go: a file: ")
    check_equal(agent.end(), 0, "exit code")


@scenario
def the_example_about_python_is_answered_as_the_unit_runs_the_agent(run):
    require_root()
    require_program("systemd-analyze", "setpriv", "python3.11")
    os.chmod(run.dir, 0o755)
    tool = shutil.copy(agent_of(run), run.dir / "usdt-agent")
    example = UNIT.parents[2] / "examples/agent/python.toml"
    agent = Agent(run, {"python": example.read_text()}, prefix=as_the_unit_runs_it(), tool=tool)
    agent.wait_for("attached", 3)
    count = "import gc\nfor n in range(17): gc.collect()\nprint(gc.get_stats()[2]['collections'])"
    done = subprocess.run(["/usr/bin/python3.11", "-I", "-c", f"import ctypes; ctypes.CDLL(None).prctl(15, b'example-prog')\n{count}"],
                          capture_output=True, text=True, check=True)
    wait_until(lambda: ("usdt_python_imports_row_hits_total", "example-prog") in agent.metrics(), f"imports, {agent.said}")
    collections = agent.metrics()["usdt_python_collections_duration_seconds_count", "example-prog"]
    check(collections >= int(done.stdout) >= 17, f"{collections} collections, of which the program knows {done.stdout}")
    check_equal(agent.end(), 0, "exit code")


if __name__ == "__main__":
    main()
