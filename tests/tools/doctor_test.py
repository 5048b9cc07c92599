#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list --doctor: its command line, its two formats, and what it says to those who may not trace."""

import json
import os
import unittest

import tool
from tool import usdt_list

FEATURES = ["uprobe_multi", "uprobe_multi_pid", "attach_cookie", "ref_ctr", "nop5", "nop10", "kernel_btf", "kprobe_multi",
            "kprobe_session", "tracing", "tracing_session", "tracing_multi", "func_arg", "tp_btf_func_arg",
            "tracing_cookie", "raw_tp_cookie", "sleepable_uprobe", "growing_hash", "uprobe_session"]


class Usage(unittest.TestCase):
    def test_it_takes_no_file_probe_or_process(self):
        for arguments in (["/bin/sh"], ["app:*"], ["-l", "c"], ["-p", str(os.getpid())]):
            with self.subTest(arguments):
                result = usdt_list("--doctor", *arguments, check=2)
                self.assertEqual(result.stdout, "")
                self.assertIn("--doctor is about the kernel", result.stderr)

    def test_help_names_it(self):
        self.assertIn("--doctor", usdt_list("--help", check=0).stdout)


class Unprivileged(tool.TempDirCase):
    def doctor(self, *arguments):
        return self.list_as_nobody("--doctor", *arguments)

    def lines(self):
        return [json.loads(line) for line in self.doctor("-f", "json").stdout.splitlines()]

    def test_it_cannot_tell_and_says_so_by_its_exit_code_too(self):
        result = self.doctor()
        self.assertEqual((result.returncode, result.stderr), (2, ""))
        self.assertIn("could not tell", result.stdout)
        self.assertRegex(result.stdout, r"privilege +no +tracing needs CAP_BPF and CAP_PERFMON: run as root")

    def test_json_is_one_versioned_object_a_line(self):
        lines = self.lines()
        self.assertEqual({line["v"] for line in lines}, {1})
        self.assertEqual([line["type"] for line in lines],
                         ["kernel", *["feature"] * len(FEATURES), "privilege", "backend", *["right"] * 7, *["red_zone"] * 3,
                          *["verdict"] * 3])
        self.assertEqual(lines[0], {"v": 1, "type": "kernel", "release": os.uname().release,
                                    "machine": os.uname().machine})
        self.assertEqual([line["name"] for line in lines if line["type"] == "feature"], FEATURES)
        for line in lines:
            self.assertIn(line.get("answer", "no"), ("yes", "no", "unknown"))

    def test_no_nop_is_called_safe_that_was_not_tried(self):
        lines = self.lines()
        for test in (line for line in lines if line["type"] == "red_zone"):
            self.assertEqual((test["intact"], test["calls"], test["overwritten"]), ("unknown", 0, 0))
            self.assertTrue(test["detail"])
        for verdict in (line for line in lines if line["type"] == "verdict"):
            self.assertFalse(verdict["known"])
            self.assertNotIn("safe", verdict["text"])

    def test_the_nops_are_told_apart_without_privilege(self):
        answers = {line["name"]: line["answer"] for line in self.lines() if line["type"] == "feature"}
        self.assertNotEqual((answers["nop5"], answers["nop10"]), ("yes", "yes"))
        used = {line["nop"]: line["used"] for line in self.lines() if line["type"] == "verdict"}
        self.assertEqual(used["nop5"], answers["nop5"] == "no" or answers["nop10"] == "yes")


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
