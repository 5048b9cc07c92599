#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files of questions for the agent as its service runs it: with the command line of the unit, and the settings it comes with."""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

import tool

AGENT = os.environ["USDT_AGENT"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = (ROOT / "tools/usdt-agent/usdt-agent.service").read_text()
SETTINGS = ROOT / "debian/usdt-agent.default"
EXAMPLES = sorted((ROOT / "examples/agent").glob("*.toml"))


def of_unit(key):
    return re.search(rf"^{key}=(.*)$", UNIT, re.M)[1]


class AgentFiles(tool.TempDirCase):
    def check(self, place):
        """Runs `usdt-agent check` with the words of the unit; a shell reads its settings, as systemd does."""
        program, words = of_unit("ExecStart").split(" ", 1)
        self.assertEqual(program, "/usr/bin/usdt-agent")
        command = f". {shlex.quote(str(SETTINGS))}; exec {shlex.quote(AGENT)} check {words}"
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, cwd="/",
                              env={**os.environ, "STATE_DIRECTORY": self.path("state"), "CONFIGURATION_DIRECTORY": str(place)})

    def test_each_example_is_taken_alone_and_beside_the_others(self):
        self.assertGreater(len(EXAMPLES), 2)
        for place in [*EXAMPLES, ROOT / "examples/agent"]:
            done = self.check(place)
            self.assertEqual((done.returncode, done.stderr), (0, ""), place)
            for example in EXAMPLES if place.is_dir() else [place]:
                for name in re.findall(r"^\[question\.(.+)\]$", example.read_text(), re.M):
                    self.assertRegex(done.stdout, rf"(?m)^  {name}: (?=.*metrics at 9435)")

    def test_the_package_has_these_examples_and_no_others(self):
        shipped = (ROOT / "debian/usdt-agent.examples").read_text().split()
        files = [file for place in shipped for file in (ROOT / place).rglob("*.toml")]
        self.assertEqual(sorted(files), EXAMPLES)

    def test_values_that_would_go_nowhere_are_refused_with_the_setting_that_sends_them(self):
        for key, value in (("print", "arg0"), ("format-string", "%{arg0}")):
            file = self.write("a.toml", f"[question.a]\nprobes = ['python:gc__start']\n{key} = '{value}'\n")
            done = self.check(file)
            self.assertEqual((done.returncode, done.stdout), (2, f"{file}\n"))
            self.assertIn(f"a.toml:1:11: a: {key}: its values would go nowhere", done.stderr)
            variable, named = re.search(r"of the service: (\w+) in (\S+)\)", done.stderr).groups()
            self.assertEqual(of_unit("EnvironmentFile"), f"-{named}")
            self.assertIn(f"${variable} ", of_unit("ExecStart"))
            self.assertRegex(SETTINGS.read_text(), f"(?m)^{variable}=")


if __name__ == "__main__":
    unittest.main()
