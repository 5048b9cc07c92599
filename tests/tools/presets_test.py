#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets: what usdt-list --presets says of them and of processes, and which questions usdt-trace makes of them. --explain
shows the questions, so that no privilege is needed."""

import json
import os
import pathlib
import re
import subprocess
import unittest

import tool

TRACE = os.environ["USDT_TRACE"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tools/presets").glob("*.toml"))

OWN = """title = "of the tests"
programs = ["app"]

[arguments]
"app:work" = "count, customer:string"

[question.counts]
title = "by count"
probes = ["app:work"]
by = "count"

[question.each]
title = "one by one"
probes = ["app:work"]
on-request = true
cost = "each is a line"
fires-only-if = ["environment APP_PROBES=1", "argument --pro*"]
otherwise = "counts"
known-as = ["appsnoop", "usnoop"]

[question.hidden]
title = "nobody knows"
probes = ["app:work"]
on-request = true
fires-only-if = ["unseen its journal is on"]

[question.absent]
title = "of another version"
probes = ["app:gone"]
on-request = true
known-as = ["appstat"]
"""


class Presets(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        self.app = self.binary("app", [("app", "work", "-4@%edi 8@%rsi")])
        self.folder = pathlib.Path(self.write("presets/own.toml", OWN)).parent

    def trace(self, *words, folder=None, cwd=None, **environment):
        return subprocess.run([TRACE, *map(str, words)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=cwd,
                              env={**os.environ, "USDT_PRESETS": str(folder or self.folder), **environment})

    def listed(self, *words, check=0):
        done = tool.usdt_list("--presets", "-f", "json", *words, env={"USDT_PRESETS": str(self.folder)}, check=check)
        return {(each["preset"], each["question"]): each for each in map(json.loads, done.stdout.splitlines())}

    def questions(self, *words, **environment):
        done = self.trace("--explain", "-f", "json", *words, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(dict.fromkeys(json.loads(line)["question"] for line in done.stdout.splitlines())), done.stderr

    def test_all_that_are_built_in_are_listed_with_a_title_for_each_question(self):
        listed = self.listed()
        self.assertEqual({preset for preset, _ in listed} - {"own"}, {file.stem for file in FILES})
        for each in listed.values():
            self.assertTrue(each["title"] and each["about"], each)
            self.assertIsNone(each["file"] if each["preset"] != "own" else None, each)
        for file in FILES:
            self.assertTrue(any(not each["on_request"] for each in listed.values() if each["preset"] == file.stem), file)

    def test_the_page_has_each_preset(self):
        page = (ROOT / "docs/presets.md").read_text()
        self.assertEqual({file.stem for file in FILES}, set(re.findall(r"^\| `([^`]+)` \|", page, re.M)))

    def test_the_page_has_each_name_of_another_tracer_s_tool_and_what_it_means(self):
        listed = self.listed()
        means = {}
        for (preset, question), each in listed.items():
            for name in each["known_as"] if preset != "own" else []:
                means.setdefault(name, {}).setdefault(preset, []).append(question)
        page = (ROOT / "docs/presets.md").read_text().split("## Tools of bcc and bpftrace")[1]
        rows = re.findall(r"^\| (\w[\w, ]+) \| (.*?) \|", page, re.M)[1:]  # without the heading
        self.assertEqual(set(means), {name for names, _ in rows for name in names.split(", ")})
        for names, here in rows:
            said = dict(re.findall(r"`([^`.]+)\.([^`]+)`", here))
            for name in names.split(", ") if said else []:
                for preset, questions in means[name].items():
                    self.assertEqual(said[preset].split(","), questions, name)

    def test_a_name_asks_all_but_those_on_request_and_a_question_that_alone(self):
        at = ["--", self.app]
        self.assertEqual(self.questions("--preset", "own", *at)[0], ["counts"])
        self.assertEqual(self.questions("--preset", "own.hidden", *at)[0], ["hidden"])
        self.assertEqual(self.questions("--preset", "own.hidden,counts", *at)[0], ["hidden", "counts"])

    def test_a_question_has_the_name_of_another_tracer_s_tool_too(self):
        self.assertEqual(self.questions("--preset", "appsnoop", "--", self.app)[0], ["each"])
        self.assertEqual(self.listed()["own", "each"]["known_as"], ["appsnoop", "usnoop"])
        self.assertEqual(self.listed()["own", "hidden"]["known_as"], [])
        self.assertIn("known as appsnoop, usnoop", tool.usdt_list("--presets", env={"USDT_PRESETS": str(self.folder)}).stdout)
        self.assertIn("there is no preset 'appsnop': 'appsnoop'?", self.trace("--preset", "appsnop").stderr)

    def test_a_name_that_several_presets_have_is_answered_with_them(self):
        self.write("presets/other.toml", OWN.replace('"appsnoop", ', "").replace("appstat", "usnoop"))
        done = self.trace("--preset", "usnoop", "--", self.app)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'usnoop' is asked by other.each,absent, own.each: name one", done.stderr)

    def test_of_several_that_have_a_name_the_one_is_meant_that_is_about_the_process_or_the_command(self):
        os.makedirs(self.path("waiting"))
        self.write("presets/other.toml", OWN.replace('programs = ["app"]', 'programs = ["another"]').replace("appstat", "usnoop"))
        for words in (["--", self.app], ["-p", self.waiting(APP_PROBES="1")]):
            self.assertEqual(self.questions("--preset", "usnoop", *words)[0], ["each"])
        self.assertIn("name one", self.trace("--preset", "usnoop", "--", "/bin/true").stderr)

    def test_a_preset_comes_before_what_another_is_known_as(self):
        self.write("presets/appsnoop.toml", OWN)
        self.assertEqual(self.questions("--preset", "appsnoop", "--", self.app)[0], ["counts"])

    def test_names_that_are_none_get_the_one_that_was_meant(self):
        for word, said in (("pyhton", "there is no preset 'pyhton': 'python'?"), ("own.count", "called 'count': 'counts'?"),
                           ("pythongc.gc", "'pythongc' has no questions of its own: it means python.gc"),
                           ("zzzzzz", "there are bash, ")):
            done = self.trace("--preset", word)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
        self.assertIn("one of them", self.trace("--preset", "own", "--script", "x").stderr)
        self.assertIn("does not go with --preset", self.trace("--preset", "own", "app:work").stderr)

    def test_one_question_goes_with_limits_of_the_command_line_and_several_do_not(self):
        of_events = (["--max-events", "3"], ["-M3"], ["--record", "x.rec"], ["--max-overhead", "5"], ["--max-rate", "9/s"], ["--sample", "1/8"],
                     ["--string-size", "30"])
        of_tables = (["--top", "3"], ["--interval", "1"], ["--max-rows", "9"], ["--key-size", "99"], ["--max-overhead", "5"], ["--sample", "1/8"])
        for option in of_tables:
            self.assertEqual(self.questions("--preset", "own.counts", *option, "--", self.app)[0], ["counts"], option)
        for option in of_events:
            name = "--max-events" if option == ["-M3"] else option[0]
            self.assertEqual(self.questions("--preset", "own.each", *option, "--", self.app)[0], ["each"], option)
            done = self.trace("--explain", "--preset", "own.each,hidden", *option, "--", self.app)
            self.assertEqual((done.returncode, done.stdout), (2, ""), option)
            self.assertIn(f"{name} is of one question, and preset 'own' asks 2: each, hidden; name one: --preset own.each", done.stderr)
        for option, why in ((["--max-events", "3"], "nor do tables"), (["--record", "x.rec"], "--record is of events, and a table has none"),
                            (["--max-rate", "9/s"], "--max-rate is about events")):
            done = self.trace("--explain", "--preset", "own.counts", *option, "--", self.app)
            self.assertEqual((done.returncode, done.stdout), (2, ""), option)
            self.assertRegex(done.stderr, f"preset 'own.counts': .*{why}")

    def test_the_question_that_stands_for_another_is_without_limits_of_the_command_line(self):
        os.makedirs(self.path("waiting"))
        asked, said = self.questions("--preset", "own.each", "--max-events", "3", "--record", "x.rec", "-p", self.waiting(A="b"))
        self.assertEqual(asked, ["counts"])
        self.assertIn("'counts' is asked instead, without --max-events, --record", said)

    def test_a_word_for_what_a_preset_is_about_is_answered_with_its_name(self):
        self.write("presets/own.toml", 'known-as = ["application"]\n' + OWN)
        for word, name in (("application", "own"), ("application.counts", "own"), ("java", "hotspot"), ("mysql", "mariadb"), ("ssl", "openssl")):
            done = self.trace("--preset", word)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"there is no preset '{word.split('.')[0]}': '{name}' is about it; see usdt-list --presets", done.stderr)
        self.assertIn("usdt-list --presets", self.trace("--presets").stderr)

    def test_several_presets_are_refused_with_how_several_questions_are_named(self):
        for words in ("own,python", "own.counts,python", "own.counts,python.gc", "appsnoop,appstat"):
            done = self.trace("--preset", words, "--", self.app)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"'{words}': one preset at a time; several questions of one are NAME.QUESTION,QUESTION", done.stderr)
        self.write("presets/own.toml", OWN.replace("[question.hidden]", "[question.python]"))
        self.assertEqual(self.questions("--preset", "own.counts,python", "--", self.app)[0], ["counts", "python"])

    def test_functions_are_asked_of_no_process_that_runs_another_program(self):
        os.makedirs(self.path("waiting"))
        self.write("presets/work.toml", 'programs = ["worker", "workers*"]\n[question.calls]\nprobes = ["uprobe:app:main"]\n')
        pid = self.waiting()
        done = self.trace("--explain", "--preset", "work", "-p", pid)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"process {pid} runs nothing that preset 'work' is about: worker, workers*", done.stderr)
        self.write("presets/work.toml", 'programs = ["app"]\n[question.calls]\nprobes = ["uprobe:app:main"]\n')
        self.assertEqual(self.questions("--preset", "work", "-p", pid)[0], ["calls"])

    def test_arguments_have_the_names_that_a_preset_gives_them(self):
        done = self.trace("--explain", "-f", "json", "--preset", "own.hidden", "--", self.app)
        names = [value.get("name") for line in done.stdout.splitlines() for value in json.loads(line).get("values", [])]
        self.assertEqual(names, ["count", "customer"], done.stdout + done.stderr)

    def test_a_file_of_the_user_s_takes_the_place_of_one_that_is_built_in(self):
        self.write("presets/python.toml", OWN)
        self.assertEqual({question for preset, question in self.listed() if preset == "python"}, {"counts", "each", "hidden", "absent"})

    def test_a_file_that_others_may_write_to_is_passed_over_with_the_reason(self):
        path = self.write("presets/open.toml", OWN)
        os.chmod(path, 0o666)
        done = tool.usdt_list("--presets", env={"USDT_PRESETS": str(self.folder)}, check=2)
        self.assertIn("open.toml: passed over: others may write to it", done.stderr)
        self.assertNotIn("open.counts", done.stdout)
        self.assertIn("own.counts", done.stdout)
        self.assertIn("others may write to it", self.trace("--preset", "open").stderr)

    def test_what_is_no_regular_file_is_not_waited_for(self):
        os.mkfifo(self.path("presets/pipe.toml"))
        done = tool.usdt_list("--presets", env={"USDT_PRESETS": str(self.folder)}, check=2)
        self.assertIn("pipe.toml: it is no regular file", done.stderr)
        self.assertIn("own.counts", done.stdout)

    def test_names_may_have_dots(self):
        self.write("presets/own.new.toml", OWN.replace("[question.hidden]", '[question."hidden.2"]'))
        self.assertEqual(self.questions("--preset", "own.new", "--", self.app)[0], ["counts"])
        self.assertEqual(self.questions("--preset", "own.new.hidden.2", "--", self.app)[0], ["hidden.2"])
        self.assertEqual(self.questions("--preset", "own.counts", "--", self.app)[0], ["counts"])

    def test_what_is_wrong_with_a_file_is_said_with_its_place(self):
        for text, said in ((OWN.replace("[arguments]\n", "[arguments.x]\n"), "'x' is not PROVIDER:NAME"), (OWN.replace('"app:work" =', '"work" ='), "is not PROVIDER:NAME"),
                           (OWN.replace("unseen its", "sometimes its"), "is no condition"), (OWN.replace('otherwise = "counts"', 'otherwise = "x"'), "otherwise is 'x'"),
                           (OWN.replace("on-request = true", "on-request = 1"), "on-request is true or false"),
                           (OWN.replace('"count, ', '"state:{0=idle, busy}, '), "arguments of app:work: 'state:{0=idle, busy}': 'busy' is not NUMBER=NAME"),
                           (OWN.replace('"count, ', '"the count, '), "'the count' is no name")):
            self.write("presets/bad.toml", text)
            done = tool.usdt_list("--presets", env={"USDT_PRESETS": str(self.folder)}, check=2)
            self.assertIn(said, done.stderr)

    def test_an_error_about_a_question_names_its_preset_and_a_file_only_where_there_is_one(self):
        nothing_there = ["--explain", "--", "/bin/true"]
        done = self.trace("--preset", "python.calls", *nothing_there)
        self.assertIn("built-in preset 'python.calls': no probe matches python:function__return", done.stderr)
        self.assertNotIn(".toml", done.stderr)
        place = f"{self.folder}/own.toml:{OWN.splitlines().index('[question.absent]') + 1}:"
        for folder in (self.folder, "presets"):  # a place is the same to whoever reads the error, wherever
            done = self.trace("--preset", "appstat", *nothing_there, folder=folder, cwd=self.folder.parent)
            self.assertRegex(done.stderr, rf"preset 'own.absent': {re.escape(place)}\d+: no probe matches app:gone")
        self.write("presets/own.toml", OWN.replace("[arguments]", "format = 'x'\n[arguments]"))
        self.assertIn(f"preset 'own': {self.folder}/own.toml:4:1: --format: ", self.trace("--preset", "own").stderr)
        self.write("presets/own.toml", OWN + "top = 0")
        self.assertRegex(self.trace("--preset", "own.absent").stderr, rf"preset 'own.absent': {self.folder}/own.toml:\d+:1: --top")

    def test_a_file_that_is_no_preset_is_told_where_it_is_asked_for_and_only_there(self):
        self.write("presets/down.toml", "title = 1\n[question")
        done = self.trace("--preset", "down.counts")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"preset 'down': {self.folder}/down.toml:2:", done.stderr)
        self.assertIn("there is no preset 'own2'", self.trace("--preset", "own2").stderr)

    def waiting(self, *words, **environment):
        """The process id of a program called app that has the probe and waits."""
        source = "#include <sys/sdt.h>\n#include <unistd.h>\nint main(int c, char **v) { DTRACE_PROBE2(app, work, c, *v); puts(\"\"); fflush(stdout); pause(); }"
        self.write("app.c", "#include <stdio.h>\n" + source)
        subprocess.run(["gcc", self.path("app.c"), "-o", self.path("waiting/app")], check=True)
        process = subprocess.Popen([self.path("waiting/app"), *words], env=environment, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return str(process.pid)

    def test_a_process_is_told_what_it_can_be_asked(self):
        os.makedirs(self.path("waiting"))
        usual = {"counts": "ready", "each": "ready", "hidden": "may not fire", "absent": "not there"}
        there = self.listed("-p", self.waiting())
        self.assertRegex(there["own", "absent"]["reason"], r"^process \d+ has no app:gone$")
        for words, environment, each in (([], {"APP_PROBES": "1"}, "ready"), (["--probes"], {"A": "b"}, "ready"), ([], {"A": "b"}, "does not fire")):
            listed = self.listed("-p", self.waiting(*words, **environment))
            self.assertEqual({question: found["state"] for (preset, question), found in listed.items() if preset == "own"}, {**usual, "each": each})
            if each != "ready":
                self.assertEqual(listed["own", "each"]["reason"], "its probes fire only if it was started with --pro*, or with "
                                 "APP_PROBES=1 in its environment")

    def test_what_a_question_costs_and_when_its_probes_fire_is_said_before_it_is_asked(self):
        asked, said = self.questions("--preset", "own.each", "--", self.app)
        self.assertEqual(asked, ["each"])
        self.assertIn("each: each is a line", said)
        self.assertIn("each: its probes fire only if it was started with --pro*, or with APP_PROBES=1 in its environment, "
                      "and the command is not", said)
        self.assertNotIn("fire only if", self.questions("--preset", "own.each", "--", self.app, "--probes")[1])
        script = self.write("s.toml", OWN.replace('probes = ["app:gone"]', 'probes = ["app:work"]'))
        self.assertIn("each: each is a line", self.questions("--script", script, "--", self.app)[1])

    def test_a_condition_of_several_questions_is_said_once_with_their_names(self):
        def page(*words, text=OWN):
            self.write("presets/own.toml", text)
            return tool.usdt_list("--presets", *words, env={"USDT_PRESETS": str(self.folder), "COLUMNS": "500"}).stdout
        condition = "it was started with --pro*, or with APP_PROBES=1 in its environment"
        self.assertEqual(page().count(f"only if {condition}"), 1)
        self.assertNotIn("each: only if", page())  # of one question it is below that
        shared = OWN.replace("unseen its journal is on\"]", 'environment APP_PROBES=1", "argument --pro*"]')
        self.assertRegex(page(text=shared), rf"own.toml\n +each, hidden: only if {re.escape(condition)}\n\* own.counts")
        self.assertEqual(page(text=shared).count(condition), 1)
        every = re.sub("^fires-only-if.*\n", "", shared, flags=re.M).replace("probes =", 'fires-only-if = ["unseen its journal is on"]\nprobes =')
        self.assertIn(" all: only if its journal is on\n", page(text=every))
        os.makedirs(self.path("waiting"))
        said = page("-p", self.waiting(A="b"), text=shared)
        self.assertEqual((said.count(condition), len(re.findall(r"^ +does not fire$", said, re.M))), (1, 2), said)

    def test_a_form_of_one_question_takes_one_of_a_preset_and_of_several_says_which_they_are(self):
        at = ["--", self.app]
        for form in (["--format", "csv"], ["--export", "report=/dev/null"]):
            done = self.trace("--explain", "--preset", "own.counts", *form, *at)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.trace("--explain", "--preset", "own.hidden,counts", *form, *at)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{form[0]} {form[1].split('=')[0]} is of one question, and preset 'own' asks 2: hidden, counts; "
                          "name one: --preset own.hidden", done.stderr)
        script = self.write("s.toml", OWN)
        self.assertIn(f"{script} asks 4: counts, each, hidden, absent; a script of one question has it",
                      self.trace("--explain", "--script", script, "-f", "csv", *at).stderr)

    def test_a_preset_is_of_the_command_line(self):
        script = self.write("s.toml", "preset = 'python'\n" + OWN)
        done = self.trace("--explain", "--script", script)
        self.assertIn("s.toml:1:1: preset is of the command line, not of scripts", done.stderr)


if __name__ == "__main__":
    unittest.main()
