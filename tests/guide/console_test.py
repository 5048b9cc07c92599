#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every line of usdt-list and usdt-trace in the documents, as its words are written: the tools take it.

Usage: console_test.py USDT_LIST USDT_TRACE

What a line is about, a server and its functions, is not on this machine. So each is run as far as what does not need it:
usdt-trace with --explain, 4711 a process of ours. That something was not found is an answer; that the words are not
understood (exit code 2 and a text about them) fails the test. What the lines show is compared by others: tests/live/cookbook
for docs/cookbook.md.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "bindings").rglob("*.md"))]
# What ends the words of our tool: a comment, a pipe, another command, a file.
ENDS = ("#", "|", ";", ">", "&&")
NOT_FOUND = re.compile(r"No such file|no such|not found|cannot be read|no ELF file|nothing|has no |no probe|no function|does not exist|"
                       r"not a recording|cannot be opened|is not there|No such process|no program|have no|not mapped|no type", re.I)


def lines():
    """(page, line number, words) of each line of ours."""
    for page in PAGES:
        text = page.read_text()
        for block in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S):
            for line in re.finditer(r"^[#$] ((?:.*\\\n)*.*)$", block[1], re.M):
                number = text[:block.start(1) + line.start()].count("\n") + 1
                lexer = shlex.shlex(line[1].replace("\\\n", " "), posix=True, punctuation_chars=";|>")
                lexer.whitespace_split, lexer.commenters = True, "#"
                words = list(lexer)
                while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                    words.pop(0)
                end = next((n for n, word in enumerate(words) if word in ENDS), len(words))
                if words and pathlib.Path(words[0]).name in ("usdt-list", "usdt-trace"):
                    yield page.relative_to(ROOT), number, words[:end]


def prepare(directory):
    """What lines name beside the programs."""
    (directory / "examples").symlink_to(ROOT / "examples")
    (directory / "python.toml").write_bytes((ROOT / "examples/scripts/python.toml").read_bytes())
    for name in ("server", "worker", "overhead", "spans", "program.py", "query-log"):
        shutil.copy("/bin/true", directory / name)


def judge(words, tools, directory, pid):
    """The complaint, or nothing."""
    tool, *rest = words
    tool = pathlib.Path(tool).name
    argv = [str(tools[tool]), *(str(pid) if word == "4711" else word.replace("4711", str(pid)).replace("4712", str(os.getpid()))
                                for word in rest)]
    if tool == "usdt-trace" and "--explain" not in rest and "--replay" not in rest:
        argv.insert(1, "--explain")
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    if done.returncode < 0 or done.returncode > 2:
        return f"exit code {done.returncode}: {done.stderr}"
    if done.returncode == 2 and not NOT_FOUND.search(done.stderr):
        return done.stderr
    # A caret is below a word that was not understood.
    return done.stderr if re.search(r"^\s*\^", done.stderr, re.M) else ""


def main():
    tools = dict(zip(("usdt-list", "usdt-trace"), (pathlib.Path(path).resolve() for path in sys.argv[1:3])))
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch, subprocess.Popen(["sleep", "600"]) as process:
        prepare(pathlib.Path(scratch))
        try:
            for page, number, words in lines():
                count += 1
                complaint = judge(words, tools, scratch, process.pid)
                if complaint:
                    failures += 1
                    print(f"{page}:{number}: {shlex.join(words)}\n    {complaint.strip()}")
        finally:
            process.kill()
    print(f"{count} lines, {failures} not understood")
    sys.exit(0 if failures == 0 and count > 100 else 1)


if __name__ == "__main__":
    main()
