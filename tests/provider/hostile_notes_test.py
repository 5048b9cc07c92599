#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files whose provider notes lie: usdt-list shows what the stapsdt notes say, and what is left of the description fits it."""

import json
import os
import random
import re
import struct
import subprocess
import tempfile
import unittest
import pathlib

from builds import INCLUDE

TOOL = os.environ["USDT_LIST"]
TEXT = """
#include <usdt/probe.h>
USDT_PROBE_DECLARE(p, declared, "one:errno, two:duration[us]");
int main(int argc, char** argv) {
  USDT_PROBE(p, declared, argc, argv);
  USDT_PROBE(p, plain, argc, argv[0], 2.5, (_Bool)argc);
  return 0;
}
"""


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.scratch.name) / "program"
        subprocess.run(["gcc", "-O1", "-xc", "-", f"-I{INCLUDE}", "-o", cls.path], input=TEXT.encode(), check=True)
        cls.whole = cls.path.read_bytes()
        dump = subprocess.run(["readelf", "-SW", cls.path], capture_output=True, text=True, check=True).stdout
        cls.sections = {name: (int(offset, 16), int(size, 16)) for name, offset, size in
                        re.findall(r"\] (\.note\.usdt\S*)\s+NOTE\s+\w+\s+(\w+)\s+(\w+)", dump)}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def listed(self, data):
        self.path.write_bytes(data)
        done = subprocess.run([TOOL, "--format", "json", self.path], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {site["name"]: site for site in map(json.loads, done.stdout.splitlines())}, done.stderr

    def test_untouched_notes_are_shown(self):
        sites, _ = self.listed(self.whole)
        args = sites["declared"]["args"]
        self.assertEqual([(arg["name"], arg["meaning"], arg.get("unit")) for arg in args],
                         [("one", "errno", None), ("two", "duration", "us")])
        self.assertEqual([arg.get("name") for arg in sites["plain"]["args"]], ["argc", None, None, None])
        self.assertEqual([arg["type"] for arg in sites["plain"]["args"]], ["int", "char *", "double", "bool"])
        self.assertEqual([arg["float"] for arg in sites["plain"]["args"]], [False, False, True, False])

    def test_types_that_do_not_fit_the_stapsdt_note_are_left_out(self):
        start, _ = self.sections[".note.usdt"]
        types = self.whole.index(struct.pack("<I", 6), start) + 4  # behind the line of p:plain
        self.assertEqual(self.whole[types:types + 5], bytes([7, 21, 14, 1, 0]))
        lying = self.whole[:types] + bytes([14, 7, 13, 6, 0]) + self.whole[types + 5:]
        sites, _ = self.listed(lying)
        self.assertEqual([arg.get("type") for arg in sites["plain"]["args"]], [None] * 4)
        more = self.whole[:types] + bytes([7, 21, 14, 1, 7]) + self.whole[types + 5:]
        sites, _ = self.listed(more)
        self.assertEqual([arg.get("type") for arg in sites["plain"]["args"]], [None] * 4)
        unknown = self.whole[:types] + bytes([255, 200, 14, 1, 0]) + self.whole[types + 5:]
        sites, _ = self.listed(unknown)
        self.assertEqual([arg.get("type") for arg in sites["plain"]["args"]], [None, None, "double", "bool"])

    def test_sizes_that_lie_are_said(self):
        start, _ = self.sections[".note.usdt"]
        for size in (0, 3, 0x7fffffff, 0xffffffff):
            data = bytearray(self.whole)
            data[start + 4:start + 8] = struct.pack("<I", size)
            sites, notices = self.listed(bytes(data))
            self.assertEqual(set(sites), {"declared", "plain"})
            self.assertTrue(size > 100 or "description" in notices or not notices)

    def test_any_bytes_leave_the_stapsdt_notes_as_they_are(self):
        rng = random.Random(15)
        plain, _ = self.listed(self.whole)
        for _ in range(150):
            data = bytearray(self.whole)
            start, size = self.sections[rng.choice(sorted(self.sections))]
            for _ in range(rng.randrange(1, 9)):
                data[start + rng.randrange(size)] = rng.choice((0, 1, 7, 0x22, 0x2c, 0x5b, 0x7f, 0x80, 0xff, rng.randrange(256)))
            sites, _ = self.listed(bytes(data))
            for name, site in sites.items():
                self.assertEqual([arg["text"] for arg in site["args"]], [arg["text"] for arg in plain[name]["args"]])
                self.assertEqual([arg["size"] for arg in site["args"]], [arg["size"] for arg in plain[name]["args"]])


if __name__ == "__main__":
    unittest.main(verbosity=1)
