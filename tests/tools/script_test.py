#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Scripts: what usdt-trace makes of a TOML file, and what it says of one that is wrong, with the place. --explain shows
what each question became, so that no privilege is needed."""

import json
import os
import pathlib
import random
import subprocess
import unittest

import tool
from strict_text import HOSTILE, harmful

TRACE = os.environ["USDT_TRACE"]
EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples/scripts").glob("*.toml"))

GOOD = """title = "of the tests"
needs = ["linux 4.1", "usdt-trace 1.0", "feature uprobe_multi", "program sh"]
string-size = 50

[question.second]
probes = ["{app}:app:work"]
by = "arg0 % 8"
sum = "arg1"

[question.first]
probes = "{app}:app:work ~~ {app}:app:other"
where = "duration > 1ms"
string-size = 60
"""


class Scripts(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        self.app = self.binary("app", [("app", "work", "-4@%edi 8@%rsi"), ("app", "other", "8@%rax")])

    def run_script(self, text, *words, check=None):
        file = self.write("s.toml", text.replace("{app}", self.app) if isinstance(text, str) else text)
        done = subprocess.run([TRACE, "--explain", "--script", file, *words], capture_output=True, text=True, timeout=60,
                              errors="surrogateescape", stdin=subprocess.DEVNULL)
        if check is not None:
            self.assertEqual(done.returncode, check, (text, done.stdout, done.stderr))
        return done

    def test_questions_are_asked_in_their_order_and_called_by_their_names(self):
        lines = [json.loads(line) for line in self.run_script(GOOD, "-f", "json", check=0).stdout.splitlines()]
        self.assertEqual([line["question"] for line in lines if line["type"] == "explanation"], ["second", "first"])
        second = [line for line in lines if line["question"] == "second"]
        self.assertEqual([q["text"] for q in second[0]["asked"]], ["arg0 % 8", "arg1"])
        self.assertEqual([line["role"] for line in lines if line["question"] == "first" and "role" in line], ["begin", "end", "span"])
        text = self.run_script(GOOD, check=0).stdout
        self.assertLess(text.index("== second"), text.index("== first"))

    def test_what_is_said_of_all_is_overruled_by_a_question_and_by_the_command_line(self):
        script = GOOD.replace("by = \"arg0 % 8\"\nsum = \"arg1\"", "print = 'str(arg1)'").replace('where = "duration > 1ms"', "print = 'str(arg1)'")
        texts = {}
        for line in map(json.loads, self.run_script(script, "-f", "json", check=0).stdout.splitlines()):
            texts.setdefault(line["question"], set()).update(v["text"] for v in line.get("values", []) if "text" in v)
        self.assertEqual(texts, {"second": {"up to 50 bytes"}, "first": {"up to 60 bytes"}})
        self.run_script("format = 'nonsense'\n" + GOOD, check=2)
        self.run_script("format = 'text'\n" + GOOD, "-f", "json", check=0)

    # What is wrong, and what is said of it behind the file's name.
    WRONG = [
        ("", ":1:1: no question"),
        ("title = 'x'", ":1:1: no question"),
        ("[question.a]\nprobes = []", ":2:10: probes is empty"),
        ("[question.a]\nwhere = 'pid == 1'", ":1:11: question 'a' has no probes"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwere = 'pid == 1'", ":3:1: there is no 'were': 'where'?"),
        ("[question.a]\nprobes = ['{app}:app:work']\nheat-map = 'arg0'", ":3:1: there is no 'heat-map': 'heatmap'?"),
        ("durations = 3\n[question.a]\nprobes = ['{app}:app:work']", ":1:1: there is no 'durations': 'duration'?"),
        ("[question.a]\nprobe = ['{app}:app:work']", ":1:11: question 'a' has no probes"),
        ("[question.a]\nprobes = ['{app}:app:work']\nduration = 3", ":3:1: duration is of all questions"),
        ("where = 'pid == 1'\n[question.a]\nprobes = ['{app}:app:work']", ":1:1: where is of one question"),
        ("explain = true\n[question.a]\nprobes = ['{app}:app:work']", ":1:1: explain is of the command line"),
        ("last = '10s'\n[question.a]\nprobes = ['{app}:app:work']", ":1:1: last is of one question"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwait = true", ":3:1: wait is of all questions"),
        ("script = 'other.toml'\n[question.a]\nprobes = ['{app}:app:work']", ":1:1: script is of the command line"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwhere = true", ":3:1: where takes a EXPR"),
        ("[question.a]\nprobes = ['{app}:app:work']\ncount = 'yes'", ":3:1: count is true or false"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwhere = ''", ":3:9: where is empty"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwhere = 1979-05-27", ":3:9: where is a date"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwhere = {{a = 1}}".replace("{{", "{").replace("}}", "}"), ":3:9: where is a table"),
        ("[question.a]\nprobes = ['{app}:app:work']\nwhere = 'arg0 >'", ":3:1: a: --where"),
        ("[question.a]\nprobes = ['{app}:app:work']\nby = 'arg0'\nhist = 'arg0'\nlhist = 'arg0:1'", "exclude each other"),
        ("[question.a]\nprobes = ['{app}:app:work']\ntop = 0\nby = 'pid'", ":3:1: a: --top"),
        ("[question.a]\nprobes = ['--output=/tmp/x']", ":2:10: '--output=/tmp/x' is no probe"),
        ("[question.a]\nprobes = ['usdt::']", ":1:11: a: empty probe name"),
        ("[question.a]\nprobes = ['{app}:app:work']\nrecord = '/dev/null'\n[question.b]\nprobes = ['{app}:app:work']\nrecord = '/dev/null'",
         ":4:11: b: another question records to /dev/null, too"),
        ("question = 3", ":1:12: question is a table of questions"),
        ("[question]\na = 3", ":2:5: 'a' is a whole number, and no question"),
        ("needs = ['linux 999']\n[question.a]\nprobes = ['{app}:app:work']", ":1:10: needs linux 999: this is linux"),
        ("needs = ['a new kernel']\n[question.a]\nprobes = ['{app}:app:work']", ":1:10: 'a new kernel' is no need"),
        ("needs = ['feature warp']\n[question.a]\nprobes = ['{app}:app:work']", ":1:10: 'feature warp' is no need"),
        ("needs = ['program no-such-program']\n[question.a]\nprobes = ['{app}:app:work']", ":1:10: needs program no-such-program"),
        ("[question.a]\nprobes = ['{app}:app:work'\n", ":2:"),
        ("[question.a]\n[question.a]", ":2:"),
        ("a = = 3", ":1:5: "),
        ("# \u00e4 '\n[question.a]\nprobes = \"{app}:app:work\\\"\u00e4\"\n'\u00e4\\' = '\u00e4' \u00e4", ":4:12: a character that is not ASCII"),
        ("[question.\u00e4]", ":1:11: a character that is not ASCII"),
        ("title = \"\"\"\n\u00e4\n\"\"\"\n\u00a0", ":4:1: a character that is not ASCII"),
        ("[\n[question.a]\nprobes = ['{app}:app:work']", ":1:2: "),
        (b"\xff\xfe\x00", ":1:1: "),
        (b"title = '\x00'", ":1:"),
        ("x = " + "[" * 5000, ":1:"),
        ("\n".join(f"[question.q{n}]\nprobes = ['{{app}}:app:work']" for n in range(65)), "more than 64 questions"),
    ]

    def test_what_is_wrong_is_said_with_its_place(self):
        for text, reason in self.WRONG:
            done = self.run_script(text)
            self.assertIn(done.returncode, (1, 2), (text, done.stdout))
            self.assertEqual(done.stdout, "", text)
            self.assertIn(reason, done.stderr, text)
            if reason.startswith(":"):
                self.assertIn("s.toml" + reason, done.stderr, text)

    def test_what_no_recording_can_answer_is_said_with_its_place(self):
        recording = pathlib.Path(__file__).resolve().parents[1] / "stable/1.0/spans.rec"
        file = self.write("s.toml", "[question.open]\nprobes = ['shop:begin ~~ shop:end']\nin-flight = 10\n")
        done = subprocess.run([TRACE, "--replay", recording, "--script", file], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("s.toml:3:1: open: --in-flight: a recording has no beginnings without an end", done.stderr)

    def test_all_that_is_missing_is_named_at_once(self):
        done = self.run_script("needs = ['linux 999', 'usdt-trace 99', 'program no-such-one']\n[question.a]\nprobes = 'a:b'", check=2)
        for part in (":1:10: needs linux 999", ":1:23: needs usdt-trace 99", ":1:40: needs program no-such-one"):
            self.assertIn(part, done.stderr)

    def test_options_that_are_about_one_question_do_not_go_beside_a_script(self):
        for words in (["--where", "pid == 1"], ["a:b"], ["--count"], ["--last", "10s"]):
            self.assertIn("does not go with --script", self.run_script(GOOD, *words, check=2).stderr)
        done = subprocess.run([TRACE, "-f", "x.toml"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, "--script FILE" in done.stderr), (2, True))

    def test_files_that_are_none_are_refused(self):
        for file in ("/no/such/file", self.dir, "/dev/zero"):
            done = subprocess.run([TRACE, "--explain", "--script", file], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), file)
            self.assertIn(file, done.stderr)

    def test_values_and_keys_that_are_nested_without_end_are_refused(self):
        levels = "x = " + "".join("[{a" + ".a" * 250 + " = \n" for _ in range(127)).replace("= \n[", "= [\n")
        for text in ("x = " + "[" * 500_000, "x = " + "{a = " * 200_000, ".".join("a" * 500_000) + " = 1",
                     "[" + ".".join("a" * 500_000) + "]", levels):
            done = self.run_script(text, check=2)
            self.assertRegex(done.stderr, "256 dots in one line|nested value depth|Error while parsing", text[:20])

    def test_damaged_scripts_end_in_order(self):
        """Bytes changed, left out and doubled at random: an answer or a reason each time."""
        whole = GOOD.replace("{app}", self.app).encode()
        chance = random.Random(16)
        for _ in range(60 if not os.environ.get("USDT_LONG") else 5000):
            text = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(text))
                end = at + chance.randint(1, 12)
                text[at:end] = chance.choice((bytes([chance.randrange(256)]), b"", text[at:end] * 2, b"[", b'"""', b"\xff", b"= {"))
            done = self.run_script(bytes(text))
            self.assertIn(done.returncode, (0, 1, 2), (bytes(text), done.stderr))
            self.assertEqual(harmful((done.stdout + done.stderr).encode(errors="surrogateescape")), [], bytes(text))

    def test_names_of_questions_reach_no_terminal_raw(self):
        for name in HOSTILE:
            quoted = json.dumps(name.decode(errors="replace"))
            for text in (f"[question.{quoted}]\nprobes = ['{{app}}:app:work']", f"[question.{quoted}]\nprobes = ['{{app}}:no:such']",
                         f"{quoted} = 3\n[question.a]\nprobes = ['a:b']"):
                for options in ([], ["-f", "json"]):
                    done = self.run_script(text, *options)
                    self.assertEqual(harmful((done.stdout + done.stderr).encode(errors="surrogateescape")), [], text)


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
