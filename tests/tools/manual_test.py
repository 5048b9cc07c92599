#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages, completions and the examples of --help: each tool makes them of its own options."""

import os
import re
import shutil
import subprocess
import unittest

import tool

TOOLS = {"usdt-list": os.environ["USDT_LIST"], "usdt-trace": os.environ["USDT_TRACE"], "usdt-agent": os.environ["USDT_AGENT"],
         "usdt-broker": os.environ["USDT_BROKER_PROGRAM"]}


def said_by(name, *arguments, **options):
    done = subprocess.run([TOOLS[name], *arguments], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, f"{name} {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def options_of(name):
    """{"--format": (["-f"], whether it takes a value)} by --help."""
    found = {}
    for line in said_by(name, "--help", "all").splitlines():
        match = re.match(r"  (?:(-\w),)?(--[\w-]+)(?: (\S+))?(?:  |$| \.\.\.)", line)
        if match:
            found[match[2]] = ([match[1]] if match[1] else [], match[3] is not None and match[3] != "")
    return found


class Manual(unittest.TestCase):
    def test_it_has_every_option_and_everything_else_of_the_help(self):
        for name in TOOLS:
            page = said_by(name, "--manual")
            text = re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
            for long, (short, _) in options_of(name).items():
                for option in [long, *short]:
                    self.assertRegex(text, rf"(?m)^(.*, )?{re.escape(option)}\b", f"{name} {option}")
            words = re.sub(r"\s+", " ", text)
            for paragraph in re.sub(r"(?m)^  -.*\n( {4,}.*\n)*|^Usage.*\n|^  (probe|what) .*\n", "", said_by(name, "--help", "all")).splitlines():
                if paragraph.strip() and not re.fullmatch(r"\w[\w ]+:", paragraph.strip()):
                    self.assertIn(re.sub(r"\s+", " ", paragraph.removeprefix("Exit code: ").strip()), words, name)

    def test_a_reader_of_manuals_has_nothing_to_complain_of(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for name in TOOLS:
            page = said_by(name, "--manual")
            shown = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou"], input=page, capture_output=True, text=True)
            self.assertEqual(shown.stderr, "", name)
            others = [f"{other}({8 if other == 'usdt-broker' else 1})" for other in TOOLS if other != name]
            referred_to = re.findall(r"usdt-\w+\(\d\)", shown.stdout.split("\nSEE ALSO\n")[1])
            self.assertEqual(sorted(referred_to), sorted(others), name)
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(shown.stdout, rf"(?m)^{heading}$", name)


class Completion(unittest.TestCase):
    def bash(self, name, *words):
        """What it offers for the last word."""
        script = f'source /dev/stdin <<< "$SCRIPT"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{name.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", name, *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SCRIPT": said_by(name, "--completion", "bash")})
        self.assertEqual(done.stderr, "", words)
        return done.stdout.split()

    def test_bash_is_offered_every_option_and_the_values_there_are(self):
        for name in TOOLS:
            self.assertEqual(set(self.bash(name, "--")), set(options_of(name)), name)
            self.assertEqual(self.bash(name, "--versi"), ["--version"])
        for name in ("usdt-list", "usdt-trace"):
            self.assertIn("--format", self.bash(name, "--form"))
            self.assertEqual(self.bash(name, "--format", ""), ["text", "json"] + (["csv", "folded", "prometheus"] if name == "usdt-trace" else []))
            self.assertEqual(self.bash(name, "--format", "=", "j"), ["json"])
            self.assertEqual(self.bash(name, "-f", "t"), ["text"])
            self.assertIn(str(os.getpid()), self.bash(name, "-p", ""))
            self.assertEqual(self.bash(name, "--args", ""), [], "anything")
        self.assertIn("per-link", self.bash("usdt-trace", "--carrier", "p"))
        self.assertIn("bash", self.bash("usdt-trace", "probe", "--", "bas"), "the command")
        self.assertIn("/usr/bin", self.bash("usdt-list", "/usr/b"), "files")

    def test_the_scripts_are_what_their_shells_take(self):
        for shell in ("bash", "zsh", "fish"):
            for name in TOOLS:
                script = said_by(name, "--completion", shell)
                for long in options_of(name):
                    self.assertIn(long if shell != "fish" else f" -l {long[2:]} ", script, f"{shell} {name}")
                if shutil.which(shell):
                    judged = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60)
                    self.assertEqual((judged.returncode, judged.stderr), (0, ""), f"{shell} {name}")

    def test_what_a_shell_says_of_an_option_is_more_than_what_it_goes_with(self):
        script = said_by("usdt-trace", "--completion", "fish")
        self.assertIn("-d 'With --record: keep only the events of the last while (10s)'", script)
        self.assertNotIn("-d 'Of spans and calls'", script)

    def test_other_shells_are_refused(self):
        for name in TOOLS:
            done = subprocess.run([TOOLS[name], "--completion", "csh"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("bash, zsh, fish", done.stderr)


if __name__ == "__main__":
    unittest.main()
