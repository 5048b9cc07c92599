#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list --members: layouts of types of programs, which the programs print themselves, and of the kernel, as bpftool
has them."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

import tool
from tool import usdt_list, usdt_list_json

SOURCE = r"""
#include <stddef.h>
#include <stdio.h>
enum color { RED, GREEN = 7, BLUE = -3 };
struct request {
  char kind;
  long id;
  unsigned first : 3, second : 7;
  union { int number; struct { short low, high; }; };
  struct request *next;
  enum color color;
  char name[];
};
struct request all;
#define MEMBER(m) printf("%s %zu\n", #m, offsetof(struct request, m))
int main(void) {
  MEMBER(kind); MEMBER(id); MEMBER(number); MEMBER(low); MEMBER(high); MEMBER(next); MEMBER(color); MEMBER(name);
  printf("size %zu\n", sizeof all);
}
"""


class OfAProgram(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        self.program = self.path("prog")
        self.write("prog.c", SOURCE)
        subprocess.run(["gcc", "-g", "prog.c", "-o", "prog"], cwd=self.dir, check=True)

    def test_members_are_where_the_program_prints_them(self):
        printed = dict(line.split() for line in
                       subprocess.run([self.program], capture_output=True, text=True, check=True).stdout.splitlines())
        layout, = usdt_list_json("--members", "struct request", self.program, check=0)
        self.assertEqual(layout["size"], int(printed.pop("size")))
        ours = {row["name"]: row["offset"] for row in layout["members"] if row["name"] in printed}
        self.assertEqual(ours, {name: int(offset) for name, offset in printed.items()})
        rows = {row["name"]: row for row in layout["members"] if row["name"]}
        self.assertEqual((rows["second"]["bits"], rows["second"]["shift"]), (7, 3))
        self.assertEqual((rows["low"]["depth"], rows["number"]["depth"], rows["kind"]["depth"]), (2, 1, 0))
        self.assertEqual(rows["name"]["type"], "char []")
        hole = next(row for row in layout["members"] if row["type"] is None)
        self.assertEqual((hole["offset"], hole["size"]), (1, 7))

    def test_text_is_a_table(self):
        lines = usdt_list("-m", "request", self.program, check=0).stdout.splitlines()
        self.assertEqual(lines[0], f"struct request, 40 bytes, of {self.program}")
        self.assertEqual(lines[1].split(), ["OFFSET", "SIZE", "BITS", "NAME", "TYPE"])
        self.assertEqual(lines[2].split(), ["0", "1", "kind", "char"])
        self.assertEqual(lines[3].split(), ["1", "7", "(hole)"])
        self.assertEqual(lines[6].split(), ["16", "4", "3-9", "second", "unsigned", "int"])
        self.assertEqual(lines[8].split(), ["20", "4", "(anonymous)", "union", "{...}"])
        self.assertEqual(lines[9], "      20      4           number       int")
        self.assertEqual(lines[-1].split(), ["36", "-", "name", "char", "[]"])

    def test_an_enum_has_its_values(self):
        layout, = usdt_list_json("-m", "enum color", self.program, check=0)
        self.assertEqual([(each["name"], each["value"]) for each in layout["enumerators"]],
                         [("RED", 0), ("GREEN", 7), ("BLUE", -3)])

    @unittest.skipUnless(shutil.which("rustc"), "no rustc")
    def test_members_that_rust_has_reordered_are_shown_by_offset(self):
        self.write("point.rs", "struct Point { x: i32, y: u8, name: String }\n"
                               "fn main() { let p = Point { x: 3, y: 4, name: String::new() };\n"
                               "println!(\"{} {} {}\", p.x, p.y, p.name); }\n")
        subprocess.run(["rustc", "-g", "point.rs"], cwd=self.dir, check=True)
        layout, = usdt_list_json("-m", "point::Point", self.path("point"), check=0)
        end = 0
        for row in layout["members"]:
            self.assertEqual(row["offset"], end, layout)
            end += row["size"]
        self.assertEqual(end, layout["size"])
        self.assertEqual({row["name"] for row in layout["members"] if row["type"]}, {"x", "y", "name"})

    def test_a_mistyped_name_is_answered_by_those_near_it(self):
        result = usdt_list("--members", "struct requset", self.program, check=1)
        self.assertEqual(result.stdout, "")
        self.assertIn("did you mean request?", result.stderr)

    def test_types_of_one_name_are_all_shown_and_said_to_differ(self):
        for name, members in (("one", "int a;"), ("two", "long b, c;")):
            self.write(f"{name}.c", f"struct twice {{ {members} }}; struct twice {name};")
        self.write("main.c", "int main(void) { return 0; }")
        subprocess.run(["gcc", "-g", "one.c", "two.c", "main.c", "-o", "both"], cwd=self.dir, check=True)
        result = usdt_list("-m", "twice", self.path("both"), check=0)
        self.assertIn("2 types that differ are called 'twice'", result.stderr)
        self.assertEqual(result.stdout.count("struct twice, "), 2)

    def test_without_debug_information_it_says_so(self):
        subprocess.run(["strip", self.program], check=True)
        self.assertIn("no debug information", usdt_list("-m", "request", self.program, check=1).stderr)

    def test_it_takes_no_probes(self):
        self.assertIn("no probe", usdt_list("-m", "request", f"uprobe:{self.program}:main", check=2).stderr)


@unittest.skipUnless(pathlib.Path("/sys/kernel/btf/vmlinux").exists(), "no BTF of the kernel")
class OfTheKernel(unittest.TestCase):
    @unittest.skipUnless(shutil.which("bpftool", path="/usr/sbin:/usr/bin:/sbin:/bin"), "no bpftool")
    def test_members_are_where_bpftool_has_them(self):
        bpftool = shutil.which("bpftool", path="/usr/sbin:/usr/bin:/sbin:/bin")
        dump = json.loads(subprocess.run([bpftool, "-j", "btf", "dump", "file", "/sys/kernel/btf/vmlinux"],
                                         capture_output=True, text=True, check=True).stdout)["types"]
        for name in ("file", "list_head", "inode", "sk_buff"):
            theirs = next(each for each in dump if each["kind"] == "STRUCT" and each["name"] == name)
            layout, = usdt_list_json("--members", f"struct {name}", check=0)
            self.assertEqual(layout["size"], theirs["size"])
            self.assertIsNone(layout["file"])
            ours = [(row["name"], 8 * row["offset"] + row.get("shift", 0)) for row in layout["members"]
                    if row["depth"] == 0 and row["type"]]
            self.assertEqual(ours, [(None if member["name"] == "(anon)" else member["name"], member["bits_offset"])
                                    for member in theirs["members"]], name)

    def test_a_typedef_of_a_number_has_no_members(self):
        result = usdt_list("-m", "u32", check=0)
        self.assertEqual(result.stdout, "u32, 4 bytes, of the running kernel\n")

    def test_what_it_does_not_have_is_answered(self):
        result = usdt_list("-m", "struct tsak_struct", check=1)
        self.assertRegex(result.stderr, re.escape("kernel BTF has no type 'struct tsak_struct'; did you mean task_struct"))


if __name__ == "__main__":
    unittest.main()
