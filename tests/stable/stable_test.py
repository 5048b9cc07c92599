#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What released versions wrote and were asked is read and answered as it was then: recordings and question files in the
directories of their versions (make.py), with the JSON of that time. Fields may have come since; none may have gone or
changed."""

import hashlib
import json
import os
import pathlib
import subprocess
import unittest

TRACE = os.environ["USDT_TRACE"]
HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())


def files(ending):
    return [file for version in VERSIONS for file in sorted(version.glob(f"*{ending}"))]


def answer(recording, *words):
    """(exit code, objects, notices) of a replay."""
    done = subprocess.run([TRACE, "--replay", recording, "-f", "json", *words], capture_output=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(errors="replace")


def lost_of(was, now, where=""):
    """What was in a value then and is not now, as texts; objects may have more fields."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [line for key in was for line in
                (lost_of(was[key], now[key], f"{where}.{key}") if key in now else [f"{where}.{key} is gone"])]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [line for n, pair in enumerate(zip(was, now)) for line in lost_of(*pair, f"{where}[{n}]")]
    return [] if was == now and type(was) is type(now) else [f"{where} was {was!r}, and is {now!r}"]


class Stable(unittest.TestCase):
    def check_as_then(self, file, recording, *words):
        code, now, said = answer(recording, *words)
        was = [json.loads(line) for line in file.with_suffix(".json").read_bytes().splitlines()]
        self.assertTrue(was)
        self.assertEqual(code, 1 if file.name == "cut.rec" else 0, said)
        self.assertEqual([each["type"] for each in was], [each["type"] for each in now])
        self.assertEqual([], lost_of(was, now))

    def test_there_are_files_of_a_version(self):
        self.assertIn("1.0", [version.name for version in VERSIONS])

    def test_files_are_those_of_the_release(self):
        for version in VERSIONS:
            known = dict(line.split("  ")[::-1] for line in (version / "SHA256SUMS").read_text().splitlines())
            there = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in version.iterdir() if file.name != "SHA256SUMS"}
            self.assertEqual(known, there, "made once, at the release, and never again")

    def test_recordings_are_read_as_then(self):
        for file in files(".rec"):
            with self.subTest(file):
                self.check_as_then(file, file)

    def test_questions_are_answered_as_then(self):
        for file in files(".toml"):
            with self.subTest(file):
                self.check_as_then(file, file.with_name(file.name.split(".")[0] + ".rec"), "--script", file)

    def test_a_comparison_finds_what_is_lost_and_lets_fields_come(self):
        was = {"a": [1, {"b": "x"}], "c": None}
        self.assertEqual([], lost_of(was, {"a": [1, {"b": "x", "new": 1}], "c": None, "d": 2}))
        for now in ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}], "c": None}, {"a": [1], "c": None}, {"a": [True, {"b": "x"}], "c": None},
                    {"a": [1.0, {"b": "x"}], "c": None}):
            self.assertNotEqual([], lost_of(was, now), now)


if __name__ == "__main__":
    unittest.main()
