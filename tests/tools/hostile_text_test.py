# SPDX-License-Identifier: BSD-2-Clause
"""Names that others chose, on their way through usdt-list and usdt-trace to a terminal: in lists, in notices, in error
texts. None may write to the terminal, forge a line, or make JSON that a strict parser refuses."""

import os
import subprocess
import unittest

import tool
from strict_text import HOSTILE, harmful, json_lines

TOOLS = [tool.USDT_LIST] + ([os.environ["USDT_TRACE"]] if "USDT_TRACE" in os.environ else [])


def raw(*words, stderr=subprocess.PIPE):
    done = subprocess.run(list(words), stdout=subprocess.PIPE, stderr=stderr, timeout=60)
    return done.stdout, done.stderr


class HostileText(tool.TempDirCase):
    def check_harmless(self, output, what):
        self.assertEqual(harmful(output), [], (what, output))

    def test_names_in_notes_in_text_and_json(self):
        sites = [(name.decode(errors="surrogateescape"), f"n{number}", "8@%rax 8@" + name.decode(errors="surrogateescape"))
                 for number, name in enumerate(HOSTILE)]
        app = self.binary("app", sites)
        for options in ([], ["-v"], ["-vv"], ["-f", "json"]):
            out, err = raw(tool.USDT_LIST, *options, app)
            self.check_harmless(out + err, options)
        self.assertEqual(len(json_lines(out)), len(HOSTILE))
        lines = raw(tool.USDT_LIST, app)[0].decode().splitlines()
        self.assertEqual(len(lines), len(HOSTILE), "a line feed in a name made a line")

    def test_file_names(self):
        for number, name in enumerate(HOSTILE):
            directory = os.path.join(self.dir.encode(), b"%d" % number)
            os.mkdir(directory)
            self.binary("app", [("p", "n", "")])
            path = os.path.join(directory, name.replace(b"/", b""))
            os.rename(self.path("app"), path)
            for words in ([path], ["-v", directory], ["-f", "json", path], [path, "no:such"]):
                out, err = raw(tool.USDT_LIST, *words)
                self.check_harmless(out, words)
                self.check_harmless(err, words)

    def test_mistyped_words_in_errors_of_both_tools(self):
        for each in TOOLS:
            for word in HOSTILE:
                for words in ([word], [word + b":x"], [b"/" + word + b":a:b"], [b"--" + word], [b"-p", word], [b"-f", word],
                              [b"kprobe:" + word], [b"a:b", word + b":"]):
                    out, err = raw(each, *words, b"-d0" if each is not tool.USDT_LIST else b"-v")
                    self.check_harmless(out, (each, words))
                    self.check_harmless(err, (each, words))
                    self.assertNotIn(b"usdt-list: forged", [line[:17] for line in err.splitlines()])


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
