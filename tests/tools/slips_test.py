#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What people who know other tools or languages write, and what they are told to write here."""

import os
import pathlib
import subprocess
import unittest

import tool

TRACE = os.environ["USDT_TRACE"]
SITES = [("app", "work", "-4@%edi 8@%rsi")]
SOURCE = "int handle(int req) { return req + 1; }\nint main(int argc, char **argv) { return handle(argc) & 1; }\n"


def said(*words, check=2):
    done = subprocess.run([TRACE, *map(str, words)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode != check:
        raise AssertionError(f"{done.args}: exit {done.returncode}, not {check}\n{done.stdout}{done.stderr}")
    return done.stderr


class Slips(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        self.app = self.binary("app", SITES)

    def server(self):
        source = pathlib.Path(self.path("server.c"))
        source.write_text(SOURCE)
        program = self.path("server")
        subprocess.run(["cc", "-g", "-O1", "-fno-inline", str(source), "-o", program], check=True)
        return program

    def test_operators_of_other_languages(self):
        for question, hint in (("comm == 'git'", "a text in double ones"), ("arg0 = 1", "to compare is =="), ("arg0 == 1 and pid == 2", "that is &&"),
                               ("not arg0", "not is !"), ("strlen(arg0) > 3", "there is no function 'strlen'")):
            with self.subTest(question):
                self.assertIn(hint, said("--explain", "--where", question, f"usdt:{self.app}:app:work"))

    def test_words_of_other_tools(self):
        server = self.server()
        for question, hint in (("return == 1", "(did you mean retval?)"), ("took > 10ms", "(did you mean duration?)"),
                               ("latency > 10ms", "(did you mean duration?)"), ("retvl == 1", "(did you mean retval?)"),
                               ("rek == 1", "(did you mean req?)"), ("comm == git", 'a text is in quotes: "git"'),
                               ("function == 1", "(did you mean name?)"), ("pdi == 1", "(did you mean pid?)")):
            with self.subTest(question):
                self.assertIn(hint, said("--explain", "--where", question, f"ucall:{server}:handle"))

    def test_a_return_value_is_not_proposed_where_there_is_none(self):
        self.assertNotIn("retval", said("--explain", "--where", "return == 1", f"usdt:{self.app}:app:work"))

    def test_options(self):
        self.assertIn("there is no option --interwal, but --interval", said("--interwal", "1", "app:work"))
        self.assertIn("there is no option -e: ", said("-e", "usdt:*:app:work { }"))
        self.assertIn("there is no option -l: usdt-list lists probes", said("-l", "app:*"))

    def test_options_of_other_tools(self):
        for option, hint in (("-lv", "usdt-list -v lists probes"), ("-U", "but --ustack"), ("-K", "but --kstack"),
                             ("-i", "but --interval"), ("-n", "--where 'comm == "), ("--cmd", "goes behind the probes: -- "),
                             ("--filter=arg0", "but --where"), ("--group-by", "but --by"), ("--json", "but --format json")):
            with self.subTest(option):
                self.assertIn(f"there is no option {option}", said(option, "app:work"))
                self.assertIn(hint, said(option, "app:work"))

    def test_a_program_instead_of_its_processes(self):
        self.assertIn("'nginx' is not a process id; those of a program are -p $(pgrep -d, nginx)", said("-p", "nginx", "app:work"))
        self.assertNotIn("pgrep", said("-p", "0", "app:work"))

    def test_a_pgrep_that_found_none(self):
        for words in (("-p", "app:work"), ("-p", ""), ("-p", "--count", "app:work"), ("-p", f"usdt:{self.app}:app:work")):
            with self.subTest(words):
                self.assertIn("did pgrep find none?", said(*words))

    def test_a_variable_of_the_shell_that_is_not_set(self):
        for option in ("--where", "--by", "--sum", "--hist", "--pair-by", "--print", "--format-string", "-o", "--script", "--cgroup"):
            with self.subTest(option):
                self.assertIn("empty", said(option, "", f"usdt:{self.app}:app:work"))

    def test_an_option_about_time_is_named_where_there_is_none(self):
        for option in ("--slowest", "--in-flight"):
            self.assertIn(f"{option}=3".split("=")[0] + ": ", said("--explain", f"{option}=3", f"usdt:{self.app}:app:work"))

    def test_an_arrow_that_the_shell_took(self):
        for words in (("--by", "r-"), ("--where", "r-"), ("--print", "arg0, r-"), ("--sum", "r-")):
            with self.subTest(words):
                self.assertIn("'p->member' has to be in quotes", said("--explain", *words, f"usdt:{self.app}:app:work"))

    def test_a_program_of_bpftrace(self):
        probe = f"usdt:{self.app}:app:work"
        for words, answer in (
                ((probe + " /arg0 > 1/ { @[comm] = count(); }",), f"usdt-trace '{probe}' --where 'arg0 > 1' --by 'comm'"),
                ((probe + " { @ = count(); }",), f"usdt-trace '{probe}' --count"),
                ((probe + ' { printf("%d %s\\n", arg0, str(arg1)); }',),
                 f"usdt-trace '{probe}' --print 'arg0, str(arg1)' --format-string '%d %s'"),
                ((probe, "{ @ = hist(arg0); }"), f"usdt-trace '{probe}' --hist 'arg0'"),
                ((probe, "/arg0 == 1/", "{", "@", "=", "lhist(arg0,", "0,", "100,", "10);", "}"),
                 f"usdt-trace '{probe}' --where 'arg0 == 1' --lhist 'arg0:0:100:10'"),
                ((probe + "{@=sum(arg0)}",), f"usdt-trace '{probe}' --sum 'arg0'"),
                ((probe, "/arg0 == 1/"), f"usdt-trace '{probe}' --where 'arg0 == 1'")):
            with self.subTest(words):
                self.assertIn("a program of bpftrace", said(*words))
                self.assertIn(answer, said(*words))

    def test_names_and_paths_of_other_forms_are_none_of_bpftrace(self):
        for word in ("uprobe:./server:main::{closure#0}", "uprobe:./server:foo()::{lambda(int)#1}", "/usr/lib/none:work",
                     "/srv/{a,b}:app:work"):
            with self.subTest(word):
                self.assertNotIn("bpftrace", said("--explain", word, check=1))

    def test_a_group_of_options_that_there_is_not_is_answered_by_those_that_there_are(self):
        self.assertIn("no group of options 'vals': there are all, options, processes, values", said("--help", "vals"))

    def test_a_mistyped_function_of_a_process_is_answered_by_it_and_not_by_all_that_is_stripped(self):
        program = self.path("waits")
        pathlib.Path(self.path("waits.c")).write_text("#include <unistd.h>\nint reckon(int n) { return n; }\n"
                                                      "int main(int argc, char **argv) { pause(); return reckon(argc); }\n")
        subprocess.run(["cc", "-g", "-O0", self.path("waits.c"), "-lm", "-o", program], check=True)
        process = subprocess.Popen([program], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while os.readlink(f"/proc/{process.pid}/exe") != program:
            pass
        complaint = said("--explain", "-p", process.pid, "uprobe:reckn", check=1)
        self.assertIn("; did you mean reckon?\n", complaint)
        self.assertNotIn("stripped", complaint)

    def test_help_begins_with_what_most_people_need(self):
        def printed(*words, width=None):
            done = subprocess.run([TRACE, *words], capture_output=True, text=True, timeout=60, check=True)
            return done.stdout
        brief, whole = printed("--help"), printed("--help", "all")
        self.assertEqual(printed("-h"), brief)
        self.assertLessEqual(len(brief.splitlines()), 40)
        self.assertEqual(sum(line.startswith("  -") for line in brief.splitlines()), 11, brief)
        headings = [line for line in whole.splitlines() if line.endswith(":") and not line.startswith(" ")]
        for word in ("Values", "Tables", "Limits", "Files", "Processes", "Functions", "Attaching"):
            self.assertTrue(any(line.startswith(word) for line in headings), headings)
            part = printed("--help", word.lower())
            self.assertIn(part.split("\n", 1)[1], whole)
            self.assertIn(word.lower(), brief)
        self.assertGreater(whole.count("\n  -"), 55)

    def test_a_function_alone(self):
        self.assertIn("write PROVIDER:NAME, or uprobe:malloc for a function", said("malloc"))

    def test_a_program_alone_is_one_to_start(self):
        self.assertIn("a program to start goes behind the probes: -- ls", said("-c", "ls"))

    def test_a_command_in_one_word(self):
        self.assertIn("a program to start goes behind the probes: -- ./server 3", said("-c", "./server 3", "app:work"))

    def test_arguments_of_a_return(self):
        error = said("--explain", "--print", "arg0", f"uretprobe:{self.server()}:handle")
        self.assertIn("with ucall: a return has its arguments, too", error)
        self.assertNotIn("arguments count from arg0", error)

    def test_how_long_a_probe_took(self):
        self.assertIn("(A ~~ B)", said("--explain", "--hist", "duration", f"usdt:{self.app}:app:work"))

    def test_a_function_without_a_prefix(self):
        self.assertIn("a function of a file is uprobe:./server:handle", said("./server:handle", check=1))
        self.assertIn("a function of a file is uprobe:libc.so.6:malloc", said("libc.so.6:malloc", "--", "true", check=1))

    def test_a_function_as_a_probe_of_a_file_without_probes(self):
        server = self.server()
        self.assertIn(f"there are no USDT probes in it; its functions are uprobe:{server}:handle",
                      said(f"u:{server}:handle", check=1))


if __name__ == "__main__":
    unittest.main()
