#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ```python, ```js and ```toml blocks of the documents are Python, JavaScript and TOML."""

import ast
import functools
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@functools.cache
def blocks(language):
    """(page:line, text) of each block."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S):
            found.append((f"{page.relative_to(ROOT)}:{text[:block.start(1)].count(chr(10)) + 1}", block[1]))
    return found


class Blocks(unittest.TestCase):
    def test_python_compiles(self):
        self.assertGreaterEqual(len(blocks("python")), 5)
        for where, text in blocks("python"):
            with self.subTest(where):
                compile(text, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    def test_javascript_compiles(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("node is not installed")
        self.assertGreaterEqual(len(blocks("js")), 4)
        for where, text in blocks("js"):
            with self.subTest(where):
                # In a function that may wait, since modules of the kind that has require() may not.
                done = subprocess.run([node, "--check", "-"], input=f"async () => {{ {text}\n}}", capture_output=True, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.stderr, "")

    def test_toml_is_toml(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("this Python reads no TOML (3.11)")
        self.assertGreaterEqual(len(blocks("toml")), 1)
        for where, text in blocks("toml"):
            with self.subTest(where):
                tomllib.loads(text)


if __name__ == "__main__":
    unittest.main()
