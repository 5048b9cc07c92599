#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tracing in a user namespace of its own, with the BPF token of docs/containers.md: a user who has no capability of the
machine sees what the traced program counts.

The judge of what is delegated is /proc/PID/mountinfo, read by the machine's root."""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

import puppet  # noqa: E402
from harness import Result, Skip, check, check_equal, main, require_program, scenario, wait_until  # noqa: E402
from puppet import check_beats, probe_of  # noqa: E402

DELEGATE = HERE.parents[3] / "examples/container/delegate_bpf.py"
USER = 61003  # a number that nobody has
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all"]


def libbpf_knows_tokens(tool):
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    version = said.split("libbpf ")[1].split(",")[0].split()[0]
    return tuple(map(int, version.split(".")[:2])) >= (1, 5), version


class Container:
    """User and mount namespaces that a user without capabilities has made."""

    def __init__(self, run):
        puppet.require_root()
        require_program("setpriv", "unshare", "nsenter")
        run.dir.chmod(0o755)
        for tool in ("usdt-trace", "usdt-list"):
            shutil.copy(run.tool.with_name(tool), run.dir)
        self.bin = run.dir
        self.first = run.start(*AS_USER, "unshare", "--user", "--map-root-user", "--mount", "sleep", "600",
                               stderr=subprocess.DEVNULL)
        wait_until(lambda: self.is_made() or self.first.poll() is not None, "the namespaces")
        if self.first.poll() is not None:
            raise Skip("this machine lets users make no user namespaces")

    def is_made(self):
        try:
            return pathlib.Path(f"/proc/{self.first.pid}/comm").read_text() == "sleep\n"
        except OSError:
            return False

    def delegate(self):
        done = subprocess.run([sys.executable, DELEGATE, str(self.first.pid)], capture_output=True, text=True)
        if "Invalid argument" in done.stderr:
            raise Skip(f"this kernel knows no BPF token (Linux 6.9): {done.stderr.strip()}")
        check_equal((done.returncode, done.stderr), (0, ""), "the delegation")

    def argv(self, *words):
        inside = ["nsenter", "-t", self.first.pid, "--user", "--mount", "--preserve-credentials", *words]
        return [*AS_USER, *map(str, inside)]

    def run(self, *words):
        done = subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return Result(done.returncode, done.stdout, done.stderr)

    def trace(self, *words):
        return self.run(self.bin / "usdt-trace", "-f", "json", *words)


def with_token(run):
    container = Container(run)
    knows, version = libbpf_knows_tokens(run.tool)
    if not knows:
        raise Skip(f"libbpf {version} knows no BPF token, 1.5 or later does (Debian 13: ./run port trixie)")
    container.delegate()
    return container


@scenario
def a_user_without_capabilities_traces_by_a_token_what_the_program_counts(run):
    program = puppet.build(run)
    container = with_token(run)
    capabilities = subprocess.check_output([*AS_USER, "grep", "CapEff", "/proc/self/status"], text=True).split()[1]
    check_equal(int(capabilities, 16), 0, "capabilities that the user has of the machine")
    result = container.trace(probe_of(program), "--", program, "fire:1000")
    result.check_code(0)
    result.check_accounted(1000, lost=0)
    check_beats(result.events, range(1000))


@scenario
def filters_tables_calls_and_stacks_work_by_a_token(run):
    program = puppet.build(run)
    container = with_token(run)
    question = 'arg0 >= 990 && str(arg1) =~ "beat*"'
    asked = container.trace(probe_of(program), "--where", question, "--", program, "fire:1000")
    check_beats(asked.events, range(990, 1000))
    table = container.trace(probe_of(program), "--by", "arg0 % 2", "--", program, "fire:1000")
    rows = [row for record in table.records if record["type"] == "table" for row in record["rows"]]
    check_equal(sorted(row["count"] for row in rows), [500, 500], f"rows\n{table.describe()}")
    calls = container.trace(f"ucall:{program}:take", "--ustack", "--", program, "take:10")
    calls.check_code(0)
    calls.check_accounted(10, lost=0)


@scenario
def a_token_sees_what_other_users_run_of_the_same_file(run):
    """It is trust, as docs/containers.md says: nothing keeps what it attaches to the processes of its namespace."""
    program = puppet.build(run)
    container = with_token(run)
    of_root = puppet.Puppet(run, program)
    words = container.argv(container.bin / "usdt-trace", "-f", "json", probe_of(program), "--max-events", 5)
    tracing = run.start(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    of_root.wait_attached()
    of_root.order("fire:5")
    out, _ = tracing.communicate(timeout=60)
    check_beats(Result(tracing.returncode, out, "").events, range(5))
    of_root.wait_clean()


@scenario
def the_doctor_names_the_token_and_what_is_delegated(run):
    container = Container(run)
    container.delegate()
    mounted = pathlib.Path(f"/proc/{container.first.pid}/mountinfo").read_text().splitlines()
    options = next(line.split()[-1] for line in mounted if line.split()[4] == "/sys/fs/bpf" and "delegate" in line)
    told = container.run(container.bin / "usdt-list", "--doctor", "-f", "json").records
    tokens = [line for line in told if line["type"] == "token"]
    check_equal(len(tokens), 1, f"tokens of {told}")
    check_equal(tokens[0]["directory"], "/sys/fs/bpf", "where")
    delegated = [option for option in options.split(",") if option.startswith("delegate_")]
    check_equal(tokens[0]["delegates"], delegated, "what is delegated")
    lacks = {line["purpose"]: line["lacks"] for line in told if line["type"] == "right"}
    both = ["CAP_BPF", "CAP_PERFMON"]
    knows, version = libbpf_knows_tokens(run.tool)
    check_equal(tokens[0]["why_not"] is None, knows, f"used with libbpf {version}: {tokens[0]['why_not']}")
    check_equal(lacks["probes and functions of files that everybody may read"], [] if knows else both, "rights")
    check_equal(lacks["functions of the kernel"], both, "rights that are not delegated")
    code = container.run(container.bin / "usdt-trace", "--doctor").code
    check_equal(code, 0 if knows else 1, "exit code of usdt-trace --doctor")


@scenario
def a_libbpf_that_knows_no_token_is_named(run):
    program = puppet.build(run)
    container = Container(run)
    container.delegate()
    knows, version = libbpf_knows_tokens(run.tool)
    if knows:
        raise Skip(f"libbpf {version} uses the token")
    result = container.trace(probe_of(program), "--", program, "fire:3")
    check_equal(result.code, 1, f"exit code\n{result.describe()}")
    check(f"libbpf {version[:3]}" in result.stderr and "1.5" in result.stderr, result.describe())


@scenario
def without_a_delegation_the_refusal_names_the_token(run):
    program = puppet.build(run)
    container = Container(run)
    result = container.trace(probe_of(program), "--", program, "fire:3")
    check_equal(result.code, 1, f"exit code\n{result.describe()}")
    check("BPF token" in result.stderr, result.describe())
    told = container.run(container.bin / "usdt-list", "--doctor", "-f", "json").stdout
    check('"type":"token"' not in told, told)


if __name__ == "__main__":
    main()
