# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list's JSON of real binaries of three machines equals the corpus: every note, every argument, every key."""

import collections
import json
import os
import pathlib
import tarfile
import tempfile
import unittest

import tool

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("USDT_CORPUS", ROOT.parent / "shared" / "corpus"))
ARCH_NAMES = {"amd64": "x86_64", "i386": "i386", "arm64": "aarch64"}


def table(name):
    with open(CORPUS / name, encoding="ascii") as file:
        columns = next(file).lstrip("#").rstrip("\n").split("\t")
        return [dict(zip(columns, line.rstrip("\n").split("\t"))) for line in file]


def path_of(row):
    return f"dev/{row['arch']}/{row['package']}/{row['path']}"


class Corpus(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="usdt-corpus-")
        cls.addClassCleanup(directory.cleanup)
        with tarfile.open(CORPUS / "bin-dev.tar.xz") as archive:
            archive.extractall(directory.name)
        cls.listed = collections.defaultdict(list)
        for site in tool.usdt_list_json("dev", cwd=directory.name, check=0):
            cls.listed[site["file"]].append(site)
        cls.expected = cls.expected_rows(pathlib.Path(directory.name))

    @staticmethod
    def expected_rows(directory):
        """Rows by path, of those versions that the archive of binaries holds."""
        held = set()
        for row in table("files-dev.tsv"):
            path = directory / path_of(row)
            if path.exists() and path.stat().st_size == int(row["size"]):
                held.add((path_of(row), row["version"]))
        rows = collections.defaultdict(list)
        for row in table("probes-dev.tsv"):
            if (path_of(row), row["version"]) in held:
                member = row["file"].partition("(")[2]
                rows[path_of(row) + (f"({member}" if member else "")].append(row)
        return rows

    def pairs(self):
        for path, rows in self.expected.items():
            yield from ((path, row, site) for row, site in zip(rows, self.listed[path]))

    def test_every_file_has_as_many_sites_as_it_has_notes(self):
        self.assertGreater(sum(map(len, self.expected.values())), 5000)
        self.assertEqual({path: len(rows) for path, rows in self.expected.items()},
                         {path: len(sites) for path, sites in self.listed.items()})

    def test_every_note_is_listed_word_for_word(self):
        for path, row, site in self.pairs():
            has_semaphore = row["semaphore"] != "0x0" or row["sema_section"] != "-"
            expected = {"v": 1, "file": path, "arch": ARCH_NAMES[row["arch"]], "provider": row["provider"],
                        "name": row["name"], "pc": row["pc"], "base": row["base"],
                        "semaphore": row["semaphore"] if has_semaphore else None,
                        "offset": None if row["pc_off"] == "-" else row["pc_off"], "args_text": row["args"]}
            self.assertEqual({key: site[key] for key in expected}, expected)

    def test_every_argument_is_decoded_as_the_corpus_says(self):
        with open(CORPUS / "decode-dev.jsonl", encoding="ascii") as file:
            decoded = {(entry["arch"], entry["args"]): entry["decoded"] for entry in map(json.loads, file)}
        for path, row, site in self.pairs():
            reference = decoded[row["arch"], row["args"]]
            self.assertEqual(len(site["args"]), len(reference), path)
            for ours, theirs in zip(site["args"], reference):
                theirs = {key: value for key, value in theirs.items() if key != "flags"}
                self.assertEqual({key: ours.get(key, "absent") for key in theirs}, theirs, path)

    def test_an_unreadable_argument_says_why_and_a_readable_one_has_no_reason(self):
        for path, _, site in self.pairs():
            for argument in site["args"]:
                self.assertEqual(argument["readable"], "reason" not in argument, path)
                self.assertTrue(argument["readable"] or argument["reason"], path)

    def test_sites_of_linked_files_show_the_instruction_there(self):
        for path, row, site in self.pairs():
            if row["pc_off"] == "-":
                self.assertEqual((site["site"]["bytes"], site["site"]["class"]), ("", "unknown"), path)
            else:
                self.assertRegex(site["site"]["class"], "nop", path)
                self.assertRegex(site["site"]["bytes"], "^(90|1f2003d5)", path)


if __name__ == "__main__":
    if not (CORPUS / "bin-dev.tar.xz").exists():
        tool.skip_all(f"no corpus of real binaries at {CORPUS} (set USDT_CORPUS)")
    unittest.main()
