#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command lines of README.md and docs/: the tools take each of them. What they print is compared elsewhere, that of
docs/cookbook.md in tests/live/cookbook."""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

import tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = {"usdt-list": os.environ["USDT_LIST"], "usdt-trace": os.environ["USDT_TRACE"]}
SOME_PROCESSES = r"\b471[12]\b"
ENDS = ("|", "<", ">", "2>", "&")


def command_lines(document):
    """The lines of consoles that begin with one of the tools, each as its words up to a pipe or a comment."""
    for line in re.findall(r"^[$#] ((?:\w+=\S+ )*usdt-(?:list|trace)\b(?:.*\\\n)*.*)$", document.read_text(), re.M):
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        while words[0] not in TOOLS:  # of its environment
            del words[0]
        yield words[: min((words.index(end) for end in ENDS if end in words), default=len(words))]


class Documents(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        os.symlink(ROOT / "examples", self.path("examples"))
        for script in (ROOT / "examples/scripts").iterdir():
            os.symlink(script, self.path(script.name))

    def say(self, name, *words):
        """What the tool says of the words. Whatever it would attach is only explained."""
        words = [re.sub(SOME_PROCESSES, str(os.getpid()), word) for word in words]
        explain = ["--explain"] if name == "usdt-trace" and "--replay" not in words else []
        done = subprocess.run([TOOLS[name], *explain, *words], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, cwd=self.dir, timeout=60)
        self.assertIn(done.returncode, (0, 1, 2), f"{words}\n{done.stderr}")
        return done.stderr

    def test_there_is_no_line_that_the_tools_do_not_understand(self):
        """What a line names may not be there on this machine; what is wrong with the line itself ends in "see --help".
        """
        lines = 0
        for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for words in command_lines(document):
                lines += 1
                with self.subTest(document=document.name, line=shlex.join(words)):
                    self.assertNotIn("see --help", self.say(*words))
        self.assertGreater(lines, 100)

    def test_a_wrong_line_is_noticed(self):
        for line in ("usdt-trace --no-such a:b", "usdt-trace a:b --where 'arg0 >'", "usdt-list --no-such"):
            self.assertIn("see --help", self.say(*shlex.split(line)), line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
