#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks the compiler which headers each stage can include, and compares with the order drawn in docs/architecture.md; looks up
each step of the walks there.

Usage: rooms_test.py COMPILE_COMMANDS [ARGS]     ARGS are unittest's
"""

import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Users of the library, which may be left out of a build.
OUTSIDE = ("tools", "examples", "bindings")


def drawn_order():
    """Stage -> its column in the drawing "base <- sys, btf <- ... <- tools, examples"."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    drawing = re.search(r"^base <- .*(?:\n +<- .*)*$", page, re.MULTILINE)[0]
    return {stage.strip(): column for column, stages in enumerate(drawing.split("<-")) for stage in stages.split(",")}


def stage_of(path):
    """The stage whose directory holds a source file; None: of something else."""
    parts = path.parts
    if parts[:2] == ("sdk", "src"):
        return parts[3] if parts[2] == "attach" else parts[2]
    return parts[0] if parts[0] in drawn_order() or parts[0] in OUTSIDE else None


def walks():
    """The walks: of each its steps, a function and the file that has it."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = re.search(r"^## Five walks\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    for block in re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        steps = [re.match(r"(\S+)\(\) +(\S+)", line).groups() for line in block.splitlines()]
        yield [(function, ROOT / ("" if file.startswith(("bpf/", "parsers/", "tools/")) else "sdk/src") / file)
               for function, file in steps]


@functools.cache
def commands():
    """Stage -> compiler and include roots of one of its C++ sources."""
    found = {}
    for entry in json.loads(pathlib.Path(COMPILE_COMMANDS).read_text(encoding="utf-8")):
        source = pathlib.Path(entry["file"])
        if source.parent.name == "unity":  # of usdt_unity(): it includes the sources
            source = pathlib.Path(re.search(r'^#include "(.*)"$', source.read_text(encoding="utf-8"), re.MULTILINE)[1])
        if source.suffix != ".cpp" or ROOT not in source.parents or "_fuzzed.dir" in entry["command"]:
            continue
        words = shlex.split(entry["command"])
        compiler = next(word for word in words if re.search(r"(clang\+\+|[gc]\+\+)[-0-9.]*$", word))
        roots = [word for word in words if word.startswith("-I")]
        stage = stage_of(source.relative_to(ROOT))
        if stage:
            found.setdefault(stage, [compiler, "-std=c++20", *roots])
    return found


@functools.cache
def headers():
    """Stage -> the headers of its own directory, as they are included."""
    found = {}
    for directory in (ROOT / "sdk/src", ROOT / "sdk/src/attach", ROOT):
        for stage in drawn_order():
            own = sorted(str(path.relative_to(directory)) for path in (directory / stage).rglob("*.hpp"))
            if own and stage not in OUTSIDE:
                found[stage] = own
    return found


PUBLIC = sorted(str(path.relative_to(ROOT / "sdk/include")) for path in (ROOT / "sdk/include").rglob("*.hpp"))


@functools.cache
def visible(stage):
    """Which of all headers a source of `stage` can include."""
    names = [name for own in headers().values() for name in own] + PUBLIC
    text = "".join(f'#if __has_include("{name}")\nyes {name}\n#endif\n' for name in names)
    command = [*commands()[stage], "-E", "-P", "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd="/")
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("yes ")}


def stages_seen_by(stage):
    return {other for other, own in headers().items() if other != stage and own[0] in visible(stage)}


class Rooms(unittest.TestCase):
    def test_each_drawn_stage_is_compiled(self):
        self.assertEqual(set(drawn_order()) - set(OUTSIDE), set(commands()) - set(OUTSIDE))

    def test_a_stage_sees_all_of_another_or_nothing(self):
        for stage in commands():
            for other, own in headers().items():
                self.assertIn(len(visible(stage) & set(own)), (0, len(own)), f"{other} from {stage}")

    def test_a_stage_sees_itself_and_what_is_drawn_before_it(self):
        column = drawn_order()
        for stage in headers():
            self.assertIn(headers()[stage][0], visible(stage))
            for other in stages_seen_by(stage):
                self.assertLessEqual(column[other], column[stage], f"{stage} can include headers of {other}")

    def test_no_two_stages_see_each_other(self):
        for stage in headers():
            for other in stages_seen_by(stage):
                self.assertNotIn(stage, stages_seen_by(other), f"{stage} and {other}")

    def test_tools_examples_and_bindings_see_the_public_headers_alone(self):
        for stage in OUTSIDE:
            if stage not in commands():
                continue  # not built
            self.assertEqual({"io"} if stage == "tools" else set(), stages_seen_by(stage), stage)  # by which tools print
            self.assertEqual(set(PUBLIC), visible(stage) & set(PUBLIC), stage)

    def test_public_headers_are_there_from_the_stage_on_that_implements_them(self):
        for header, first, before in (("usdt/pattern.hpp", "parsers", "arch"), ("usdt/features.hpp", "features", "backend"),
                                      ("usdt/plan.hpp", "plan", "find"), ("usdt/tracer.hpp", "event", "link")):
            self.assertIn(header, visible(first))
            self.assertNotIn(header, visible(before))

    def test_a_wrong_include_does_not_compile(self):
        for stage, wrong in (("parsers", "plan/placement.hpp"), ("elf", "usdt/plan.hpp"), ("features", "plan/kernel.hpp"), ("program", "link/backend.hpp")):
            done = subprocess.run([*commands()[stage], "-fsyntax-only", "-x", "c++", "-"], input=f'#include "{wrong}"\n',
                                  capture_output=True, text=True, cwd="/", check=False)
            self.assertNotEqual(0, done.returncode, f"{stage} includes {wrong}")
            self.assertRegex(done.stderr, rf"{wrong}.*(No such file|not found)")


TOP = {".ci", ".clang-format", ".clang-tidy", ".github", ".gitignore", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json",
       "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "LICENSES", "README.md", "SECURITY.md", "arch", "bench", "bindings", "bpf",
       "cmake", "debian", "docs", "examples", "packaging", "parsers", "provider", "run", "sdk", "tests", "tools"}


class Repository(unittest.TestCase):
    def test_the_top_level_has_what_is_meant_to_be_there(self):
        kept = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
        if kept.returncode != 0:
            self.skipTest("the sources are in no repository")
        self.assertEqual(TOP, {name.split("/")[0] for name in kept.stdout.splitlines()})


class Walks(unittest.TestCase):
    def test_there_are_six(self):
        self.assertEqual(6, len(list(walks())))

    def test_each_function_is_in_its_file(self):
        for function, file in [step for walk in walks() for step in walk]:
            name = function.split("::")
            text = file.read_text(encoding="utf-8")
            # A class's own functions may be defined within it.
            defined = rf"\b({re.escape(function)}|{name[-1]})\("
            self.assertRegex(text, defined, f"{function} in {file.relative_to(ROOT)}")
            self.assertIn(name[0], text, f"{function} in {file.relative_to(ROOT)}")

    def test_a_walk_has_at_most_one_step_in_a_tool(self):
        for walk in walks():
            in_tools = [function for function, file in walk if (ROOT / "tools") in file.parents]
            self.assertLessEqual(len(in_tools), 1, in_tools)


if __name__ == "__main__":
    COMPILE_COMMANDS = sys.argv.pop(1)
    unittest.main()
