#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is said when the kernel's verifier refuses the stock program. No kernel here does, so one is pretended:
refusing_verifier.c."""

import os

import puppet
from harness import check, check_equal, main, scenario
from puppet import probe_of


def refused_trace(run, *options):
    program = puppet.build(run)
    preload = run.build("refusing.so", [puppet.HERE / "refusing_verifier.c"], ["-shared", "-fPIC", "-O1"], libs=["-ldl"])
    env = {**os.environ, "LD_PRELOAD": str(preload), "REFUSED_PROGRAM": "usdt_trace_hit"}
    result = run.trace(probe_of(program), "--duration", 1, *options, env=env)
    check_equal(result.code, 1, f"exit code\n{result.describe()}")
    return result


@scenario
def a_refusal_of_the_verifier_is_called_so_and_shown_by_its_end(run):
    said = refused_trace(run).stderr
    check("verifier refuses the program 'usdt_trace_hit'" in said, said)
    check("1998: (b7) r0 = 0; 1999: (b7) r0 = 0; R2 is not to my taste" in said, said)
    check("CAP_" not in said and "run as root" not in said, said)
    check(len(said.splitlines()) < 5, f"the whole log on the terminal\n{said}")
    check("--verifier-log FILE" in said, said)


@scenario
def its_whole_log_is_written_where_it_is_asked_for(run):
    log = run.dir / "log"
    said = refused_trace(run, "--verifier-log", log).stderr
    check(str(log) in said and "2002 lines" in said, said)
    lines = log.read_text().splitlines()
    check_equal((lines[0], lines[-2], len(lines)), ("0: (b7) r0 = 0", "R2 is not to my taste", 2002), "log")


@scenario
def a_log_that_cannot_be_written_is_said(run):
    said = refused_trace(run, "--verifier-log", run.dir / "no" / "log").stderr
    check("No such file or directory" in said and "not to my taste" in said, said)


if __name__ == "__main__":
    main()
