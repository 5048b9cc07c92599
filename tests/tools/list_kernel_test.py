#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list on kernel functions and raw tracepoints: signatures, places, errors. Runs on whatever kernel there is."""

import json
import os
import re
import unittest

import tool
from tool import usdt_list, usdt_list_json


def symbols():
    """Names and addresses of the kernel's functions."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        rows = [line.split() for line in file]
    return {row[2]: int(row[0], 16) for row in rows if row[1] in "tT" and len(row) == 3}


class Tracepoints(unittest.TestCase):
    def test_a_line_is_a_name_and_a_typed_signature(self):
        line = usdt_list("raw_tp:sys_enter", check=0).stdout
        self.assertEqual(line, "raw_tp:sys_enter\t(struct pt_regs *regs, long int id)\n")

    def test_a_glob_lists_each_once_and_sorted(self):
        lines = usdt_list("raw_tp:sched_*", "raw_tp:sched_switch", check=0).stdout.splitlines()
        names = [line.split("\t")[0] for line in lines]
        self.assertIn("raw_tp:sched_switch", names)
        self.assertEqual(names, sorted(set(names)))
        self.assertTrue(all(line.split("\t")[1].startswith("(") for line in lines), lines)

    def test_v_says_where_each_argument_is(self):
        lines = usdt_list("-v", "tp_btf:sys_enter", check=0).stdout.splitlines()
        self.assertEqual(lines[0].split("\t")[0], "tp_btf:sys_enter")
        self.assertEqual(lines[1].split(), ["module", "vmlinux"])
        self.assertRegex(lines[2], r"^  btf id +[0-9]+$")
        self.assertEqual([re.split(r"  +", line.strip()) for line in lines[3:]],
                         [["regs", "struct pt_regs *", "slot 0"], ["id", "long int", "slot 1"]])

    def test_json_is_one_object_a_line(self):
        found, = usdt_list_json("raw_tp:sys_enter", check=0)
        self.assertEqual((found["v"], found["probe"], found["module"], found["address"]),
                         (1, "raw_tp:sys_enter", "vmlinux", None))
        self.assertEqual(found["type"], "(struct pt_regs *regs, long int id)")
        self.assertGreater(found["btf_id"], 0)
        self.assertEqual([(arg["name"], arg["type"], arg["size"], arg["signed"], arg["readable"]) for arg in found["args"]],
                         [("regs", "struct pt_regs *", 8, False, True), ("id", "long int", 8, True, True)])
        self.assertNotIn("return", found)
        self.assertNotIn("refused", found)

    def test_a_name_that_is_none_is_answered_by_names_like_it(self):
        result = usdt_list("raw_tp:sched_swich", check=1)
        self.assertEqual(result.stdout, "")
        self.assertIn("no raw tracepoint 'sched_swich'; near: sched_switch", result.stderr)

    def test_one_bad_name_hides_no_good_one(self):
        result = usdt_list("raw_tp:sched_swich", "raw_tp:sys_exit", check=0)
        self.assertEqual(result.stdout, "raw_tp:sys_exit\t(struct pt_regs *regs, long int ret)\n")
        self.assertIn("near: sched_switch", result.stderr)


class Functions(unittest.TestCase):
    def setUp(self):
        if "vfs_read" not in symbols():
            self.skipTest("this kernel has no function vfs_read to be seen")

    def test_a_kprobe_finds_arguments_in_registers(self):
        found, = usdt_list_json("kprobe:vfs_read", check=0)
        self.assertEqual(found["type"], "ssize_t (struct file *file, char *buf, size_t count, loff_t *pos)")
        self.assertEqual([arg["name"] for arg in found["args"]], ["file", "buf", "count", "pos"])
        self.assertEqual([arg["reg"] for arg in found["args"]], ["rdi", "rsi", "rdx", "rcx"])
        self.assertNotIn("return", found)
        address = symbols()["vfs_read"]
        self.assertEqual(found["address"], hex(address) if address else None)

    def test_a_kretprobe_has_the_return_value_and_a_ksession_both(self):
        at_return, = usdt_list_json("kretprobe:vfs_read", check=0)
        self.assertEqual((at_return["args"], at_return["return"]["type"], at_return["return"]["reg"]), ([], "ssize_t", "rax"))
        whole, = usdt_list_json("ksession:vfs_read", check=0)
        self.assertEqual((len(whole["args"]), whole["return"]["signed"]), (4, True))

    def test_every_prefix_pastes_back(self):
        for prefix in ("kfunc", "kretfunc", "kcall", "kprobe", "kretprobe", "ksession"):
            with self.subTest(prefix):
                self.assertTrue(usdt_list(f"{prefix}:vfs_read", check=0).stdout.startswith(f"{prefix}:vfs_read\t"))
        self.assertTrue(usdt_list("kprobe:vmlinux:vfs_read", check=0).stdout.startswith("kprobe:vfs_read\t"))

    def test_a_typing_error_is_answered_by_names_like_it(self):
        self.assertIn("no kernel function 'vfs_raed'; near: vfs_read", usdt_list("kprobe:vfs_raed", check=1).stderr)

    def test_a_kernel_without_kprobes_says_so(self):
        without = not os.path.exists("/sys/bus/event_source/devices/kprobe")
        said = usdt_list("kprobe:vfs_read", check=0).stderr
        self.assertEqual("kprobe: this kernel has no kprobes" in said, without, said)

    def test_an_unknown_module_is_named(self):
        self.assertIn("no module 'nosuch'", usdt_list("kprobe:nosuch:vfs_read", check=1).stderr)

    def test_files_and_functions_are_listed_together(self):
        result = usdt_list("kprobe:vfs_read", "/bin/true")
        self.assertTrue(result.stdout.startswith("kprobe:vfs_read\t"), result.stdout)
        self.assertEqual(result.returncode, 0)


class Usage(unittest.TestCase):
    def test_syntax_errors_point_at_the_place(self):
        for word in ("kprobe:", "kprobe:a:b:c", "raw_tp:"):
            with self.subTest(word):
                result = usdt_list(word, check=2)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"(?m)^ *\^$")

    def test_help_names_the_prefixes(self):
        text = usdt_list("--help", check=0).stdout
        for prefix in ("kprobe", "fexit", "kcall", "raw_tp", "tp_btf"):
            self.assertIn(prefix, text)

    def test_doctor_takes_no_function(self):
        self.assertIn("--doctor is about the kernel", usdt_list("--doctor", "kprobe:vfs_read", check=2).stderr)


class Unprivileged(tool.TempDirCase):
    def test_what_cannot_be_read_is_named_and_the_rest_is_listed(self):
        tracepoint = self.list_as_nobody("-f", "json", "raw_tp:sys_enter")
        self.assertEqual(tracepoint.returncode, 0, tracepoint.stderr)
        glob = self.list_as_nobody("-f", "json", "kprobe:vfs_*")
        if glob.returncode != 0:
            self.assertEqual(glob.returncode, 2)
            self.assertRegex(glob.stderr, "run as root|mount -t tracefs|CONFIG_DYNAMIC_FTRACE")
        for line in glob.stdout.splitlines():
            self.assertEqual(json.loads(line)["v"], 1)


if __name__ == "__main__":
    tool.require_x86_64()
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        tool.skip_all("this kernel has no type information (BTF)")
    unittest.main()
