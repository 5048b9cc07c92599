#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""usdt-trace --explain: what would be attached, read and paid, said to anybody, and nothing is attached."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import tool
from strict_text import HOSTILE, harmful, json_lines

TRACE = os.environ["USDT_TRACE"]
SITES = [("app", "work", "-4@%edi 8@8(%rsp) 8@$77"), ("app", "work", "8@%rax 8@%rdx 4@%xmm0"), ("app", "other", "", True)]


def explain(*words, prefix=(), check=0):
    done = subprocess.run([*prefix, TRACE, "--explain", *map(str, words)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    if done.returncode != check:
        raise AssertionError(f"{done.args}: exit {done.returncode}, not {check}\n{done.stdout}{done.stderr}")
    return done


def explained(*words, **options):
    """The objects of the sites, and that of the rest."""
    lines = [json.loads(line) for line in explain("-f", "json", *words, **options).stdout.splitlines()]
    assert [line["type"] for line in lines] == ["explained_sites"] * (len(lines) - 1) + ["explanation"], lines
    return lines[:-1], lines[-1]


class Explain(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        self.app = self.binary("app", SITES)

    def addresses(self):
        out = subprocess.run(["nm", self.app], capture_output=True, text=True, check=True).stdout
        return {line.split()[2]: int(line.split()[0], 16) for line in out.splitlines()}

    def test_a_function_that_has_types_has_its_own_not_those_by_hand(self):
        program = self.path("typed")
        provider = pathlib.Path(__file__).resolve().parents[2] / "provider/include"
        for probe in ("", "USDT_PROBE(app, done);"):
            source = f"""#include <usdt/probe.h>
__attribute__((noipa)) int work(int n) {{ return n + 1; }}
int main(void) {{ {probe} return work(1); }}
"""
            subprocess.run(["gcc", "-g", "-O1", f"-I{provider}", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
            done = explain(f"uprobe:{program}:work", "--args", "i8, ptr", check=0)
            self.assertIn("debug information knows the types of work: its own are taken", done.stderr)
            self.assertRegex(done.stdout, "records +n +int ")
            self.assertNotIn("arg1", done.stdout)

    def test_that_types_are_unknown_is_said_where_an_answer_would_be_another_one_with_them(self):
        program = self.path("untyped")
        source = "__attribute__((noipa)) int work(int n, const char *s) { return -n - !s; } int main(void) { return work(1, \"\"); }"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
        call, entry = (f"{way}:{program}:work" for way in ("ucall", "uprobe"))
        costs = [[call], [entry, "--print", "arg0"], [call, "--print", "retval"], [call, "--args", "i32, str"], [call, "--where", "retval < 0", "--count"],
                 [f"{entry} ~~ uretprobe:{program}:work", "--print", "end.retval"],
                 [entry, "--print", "uprobe:work=arg0", "--print", "pid"], [entry, "--format-string", "%{arg0}"]]
        for words in costs:
            self.assertEqual(explain(*words).stderr.count("no types of functions: "), 1, words)
        costs_nothing = [[entry, "--args", "i32, str"], [call, "--print", "str(arg1), hex(retval), pid, buf(arg1, 2), buf(arg1, arg0)"],
                         [entry, "--args", "i32", "--print", "arg0"], [entry, "--print", "((char *)arg1)[0]"], [entry, "--count"],
                         [call, "--where", "retval != 0 && duration > 1us", "--print", "duration"], [f"{entry} ~~ uretprobe:{program}:work", "--print", "tid"],
                         [entry, "--format-string", "%{str(arg1)}"]]
        for words in costs_nothing:
            self.assertNotIn("no types", explain(*words).stderr, words)

    def test_names_of_one_address_are_one_function_whichever_is_named_first(self):
        program = self.path("aliases")
        source = """long first(long n) { return n; } long second(long) __attribute__((alias("first")));
long other(long n) { return n + 1; } int main(void) { return (int)first(0); }"""
        subprocess.run(["gcc", "-O1", "-fno-ipa-icf", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
        for names in (["first", "second"], ["second", "first"], ["second", "other", "first"]):
            done = explain(*(f"uprobe:{program}:{name}" for name in names), check=0)
            self.assertNotIn("nothing matches", done.stderr)
            self.assertRegex(done.stderr, "(first and second|second and first) are one function here")
            self.assertEqual(len(re.findall(r"^ +at +0x", done.stdout, re.M)), len(names) - 1, done.stdout)
        self.assertNotIn("are one function here", explain(f"uprobe:{program}:*", check=0).stderr)

    def test_each_signature_of_a_probe_is_told_with_its_places_and_costs(self):
        sites, rest = explained(f"{self.app}:app:work")
        self.assertEqual([site["pcs"] for site in sites],
                         [[f"{self.addresses()[name]:#x}"] for name in ("site0", "site1")])
        first, second = (site["values"] for site in sites)
        self.assertEqual([(v["name"], v["type"], v.get("where"), v["reads"]) for v in first],
                         [("arg0", "i32", "edi", 0), ("arg1", "u64", "8(%rsp)", 1), ("arg2", "u64", "$77", 0)])
        self.assertEqual([v.get("where") for v in second], ["rax", "rdx", None])
        self.assertIn("vector register", second[2]["error"])
        for site in sites:
            self.assertEqual((site["cost"], site["role"], site["recorded"]), ("trap", "point", True))
            self.assertGreater(site["estimated_ns"], 500)
        self.assertEqual(sum(each["sites"] for each in rest["links"]), 2)
        self.assertEqual(rest["refused"], [])

    def test_a_question_is_told_as_it_was_understood_at_each_site(self):
        (first, second), _ = explained(f"{self.app}:app:work", "--where", "arg0 > 2 * 512 && arg1 in {76 + 1, 78}")
        for site in (first, second):
            self.assertEqual([(q["about"], q["text"]) for q in site["asked"]],
                             [("where", "(arg0 > 1024) && ((arg1 == 77) || (arg1 == 78))")])
        self.assertEqual((first["values"][0]["type"], second["values"][0]["type"]), ("i32", "u64"))

    def test_sites_that_cannot_be_asked_are_refused_with_the_reason(self):
        (site,), rest = explained(f"{self.app}:app:work", "--where", "arg2 == 77")
        self.assertEqual(site["asked"][0]["text"], "arg2 == 77")
        (refusal,) = rest["refused"]
        self.assertEqual((refusal["pc"], "vector register" in refusal["reason"]), (f"{self.addresses()['site1']:#x}", True))
        self.assertIn("refused", explain(f"{self.app}:app:work", "--where", "arg2 == 77").stdout)

    def test_keys_and_values_of_tables_have_types_and_nothing_else_is_read(self):
        (site,), rest = explained(f"{self.app}:app:work", "--where", "arg1 > 1", "--by", "comm, arg0 % 8", "--sum", "arg1")[0][:1], None
        self.assertEqual([(q["about"], q["text"], q.get("type")) for q in site["asked"]],
                         [("where", "arg1 > 1", None), ("by", "comm", "text"), ("by", "arg0 % 8", "i64"), ("value", "arg1", "u64")])
        self.assertEqual({v["name"] for v in site["values"]}, {"arg0", "arg1"})
        self.assertFalse(site["recorded"])

    def test_counting_reads_nothing_and_is_cheaper(self):
        (counted, *_), _ = explained(f"{self.app}:app:work", "--count")
        (shown, *_), _ = explained(f"{self.app}:app:work")
        self.assertEqual(counted["values"], [])
        self.assertLess(counted["estimated_ns"], shown["estimated_ns"])

    def test_texts_and_their_reads_are_named(self):
        (site, *_), _ = explained(f"{self.app}:app:work", "--print", "str(arg1)", "-Z", "50")
        self.assertEqual([(v.get("text"), v["reads"]) for v in site["values"]][1], ("up to 50 bytes", 2))

    def test_spans_are_told_by_their_ends(self):
        sites, _ = explained(f"{self.app}:app:work ~~ {self.app}:app:other", "--where", "duration > 10ms")
        self.assertEqual([site["role"] for site in sites], ["begin", "begin", "end", "span", "span"])
        twice = self.binary("twice", [("app", "work", ""), ("app", "work", ""), ("app", "other", "")])
        self.assertRegex(explain(f"{twice}:app:work ~~ {twice}:app:other").stdout, "spans +of 2 pairs of sites\n")
        self.assertEqual(sites[3]["asked"], [{"about": "where", "text": "duration > 10000000"}])
        self.assertEqual(sites[2]["asked"][0]["about"], "pair-by")

    def test_people_are_told_the_same(self):
        out = explain(f"{self.app}:app:work", "--where", "arg0 > 1").stdout
        for part in ("arg0  i32  edi", "where       arg0 > 1", "trap; ", " us a hit", "2 links of 2 sites", "8(%rsp); 2 reads", "privilege "):
            self.assertIn(part, out)

    def test_other_backends_and_carriers_are_told_as_they_would_be(self):
        _, rest = explained(f"{self.app}:app:*", "--backend", "perf_uprobe", "--carrier", "per-link")
        self.assertEqual([(l["backend"], l["links"]) for l in rest["links"]], [("perf_uprobe", 3)])
        self.assertTrue(rest["carriers"].startswith("per-link"), rest)
        _, rest = explained(f"{self.app}:app:*", "--disable-feature", "attach_cookie")
        self.assertEqual(rest["carriers"], "ip-hash")

    def test_what_makes_no_sense_is_said_as_without_it(self):
        self.assertIn("app:work(i32, u64, u64)", explain(f"{self.app}:app:work", "--where", "arg0 > str(arg1)", check=2).stderr)
        self.assertIn("app:work", explain(f"{self.app}:app:wrk", check=1).stderr, "what may have been meant")
        self.assertIn("no process", explain("a:b", "-p", "4194000", check=1).stderr)

    def test_nothing_is_started_recorded_or_waited_for(self):
        explain("app:*", "--", self.app)
        explain(f"{self.app}:app:work", "--wait", "--record", self.path("recording"))
        self.assertFalse(os.path.exists(self.path("recording")))
        mark = self.path("started")
        explain(f"{self.app}:app:*", "--", "/bin/sh", "-c", f"touch {mark}")
        self.assertFalse(os.path.exists(mark))

    def test_hostile_names_reach_no_terminal(self):
        sites = [(name.decode(errors="surrogateescape"), f"n{n}", "8@%rax 8@" + name.decode(errors="surrogateescape"))
                 for n, name in enumerate(HOSTILE)]
        self.binary("hostile", sites)
        for options in ([], ["-v"], ["-f", "json"]):
            done = subprocess.run([TRACE, "--explain", *options, self.path("hostile") + ":*:*"], capture_output=True, timeout=60)
            self.assertEqual(harmful(done.stdout + done.stderr), [], options)
        self.assertEqual(sum(len(line.get("pcs", [])) for line in json_lines(done.stdout)), len(HOSTILE))


class Unprivileged(tool.TempDirCase):
    """As a user without any capability, whoever runs the test."""

    def setUp(self):
        super().setUp()
        self.app = self.binary("app", SITES)
        self.prefix = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("no setpriv")
            os.chmod(self.dir, 0o755)
            shutil.copy(TRACE, self.path("usdt-trace"))
            self.prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]

    def explain(self, *words):
        program = self.path("usdt-trace") if self.prefix else TRACE
        done = subprocess.run([*self.prefix, program, "--explain", "-f", "json", *map(str, words)], capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_nobody_is_told_everything_but_that_he_may(self):
        *sites, rest = self.explain(f"{self.app}:app:*", "--where", "pid > 1")
        self.assertEqual(len(sites), 3)
        self.assertTrue(all(site["estimated_ns"] for site in sites))
        self.assertIn("CAP_", rest["no_privilege"])
        self.assertEqual(sum(each["sites"] for each in rest["links"]), 3)

    def test_of_the_kernel_it_assumes_what_its_release_has(self):
        *_, rest = self.explain(f"{self.app}:app:*")
        major, minor = map(int, os.uname().release.split("-")[0].split(".")[:2])
        word = "uprobe_multi" if (major, minor) >= (6, 6) else "no uprobe_multi"
        self.assertIn(word, rest["assumed"])

    def test_own_processes_are_looked_into(self):
        process = subprocess.Popen([*self.prefix, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdin.write(b"up\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"up\n")  # until then it may be setpriv, which is still root's
        try:
            *sites, _ = self.explain("uprobe:libc.so.6:getenv", "-p", process.pid)
        except AssertionError as error:
            self.skipTest(str(error)) if "libc.so.6" in str(error) else self.fail(str(error))
        self.assertIn("libc.so.6:getenv", sites[0]["probe"])


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
