#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The documents: the tools take each command line of README.md and docs/, lines fit, links lead somewhere. What the
lines print is compared elsewhere, that of docs/cookbook.md in tests/live/cookbook."""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

import tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = {"usdt-list": os.environ["USDT_LIST"], "usdt-trace": os.environ["USDT_TRACE"]}
SOME_PROCESSES = r"\b471[12]\b"
ENDS = ("|", "<", ">", "2>", "&")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "bindings").glob("*/*.md")), ROOT / "LICENSES/README.md"]
COLUMNS = 120
README_WORDS = 900


def command_lines(document):
    """The lines of consoles that begin with one of the tools, each as its words up to a pipe or a comment."""
    for line in re.findall(r"^[$#] ((?:\w+=\S+ )*usdt-(?:list|trace)\b(?:.*\\\n)*.*)$", document.read_text(), re.M):
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        while words[0] not in TOOLS:  # of its environment
            del words[0]
        yield words[: min((words.index(end) for end in ENDS if end in words), default=len(words))]


def prose(text):
    """The numbered lines of a page that are in no block of code."""
    within = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            within = not within
        elif not within:
            yield number, line


def too_long(text):
    """The numbers of lines that do not fit; an address may be as long as it is."""
    return [number for number, line in prose(text) if len(re.sub(r"https?://\S+", "", line)) > COLUMNS]


def anchors(text):
    """What links into a page may name: its headings, as GitHub spells them."""
    headings = [match[1] for _, line in prose(text) if (match := re.match(r"#+ (.*)", line))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page):
    """The links of a page that lead to no file of the repository, or to no heading of one."""
    for _, line in prose(page.read_text()):
        for path, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", line):
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
                yield f"{path}#{anchor}"


class Pages(unittest.TestCase):
    def test_lines_are_no_longer_than_120_columns(self):
        for page in PAGES:
            self.assertEqual([], too_long(page.read_text()), f"lines of {page.relative_to(ROOT)}")

    def test_a_long_line_is_noticed_and_code_is_none(self):
        line = "a " * COLUMNS
        address = f"https://a.b/{'c' * COLUMNS}"
        self.assertEqual([2, 7], too_long(f"a\n{line}\n```console\n{line}\n```\n{address}\n| {line} |\n"))

    def test_the_readme_has_at_most_900_words(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().split()), README_WORDS)

    def test_each_link_leads_to_a_file_and_to_a_heading_of_it(self):
        for page in PAGES:
            self.assertEqual([], list(dead_links(page)), f"links of {page.relative_to(ROOT)}")

    def test_headings_are_known_by_their_links(self):
        page = "# What a hit costs\n## `<usdt-probe.h>`\n```\n# no\n```\n"
        self.assertEqual({"what-a-hit-costs", "usdt-probeh"}, anchors(page))


class Documents(tool.TempDirCase):
    def setUp(self):
        super().setUp()
        os.symlink(ROOT / "examples", self.path("examples"))
        for script in (ROOT / "examples/scripts").iterdir():
            os.symlink(script, self.path(script.name))

    def say(self, name, *words):
        """What the tool says of the words. Whatever it would attach is only explained."""
        words = [re.sub(SOME_PROCESSES, str(os.getpid()), word) for word in words]
        explain = ["--explain"] if name == "usdt-trace" and "--replay" not in words else []
        done = subprocess.run([TOOLS[name], *explain, *words], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, cwd=self.dir, timeout=60)
        self.assertIn(done.returncode, (0, 1, 2), f"{words}\n{done.stderr}")
        return done.stderr

    def test_there_is_no_line_that_the_tools_do_not_understand(self):
        """What a line names may not be there on this machine; what is wrong with the line itself ends in "see --help".
        """
        lines = 0
        for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for words in command_lines(document):
                lines += 1
                with self.subTest(document=document.name, line=shlex.join(words)):
                    self.assertNotIn("see --help", self.say(*words))
        self.assertGreater(lines, 100)

    def test_a_wrong_line_is_noticed(self):
        for line in ("usdt-trace --no-such a:b", "usdt-trace a:b --where 'arg0 >'", "usdt-list --no-such"):
            self.assertIn("see --help", self.say(*shlex.split(line)), line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
