#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""debian/ agrees with the rest: what is built with, what is installed, what libraries export, which version it is.

Usage: lists_test.py BUILD_DIRECTORY [ARGS]     ARGS are unittest's
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = None
# In the list of `run` for a machine of ours, which has the compiler without asking, and keeps what it compiled.
NOT_BUILT_WITH = {"g++", "ccache"}
# Built with, of which a machine of ours has its own.
BUILT_WITH_BESIDES = {"debhelper-compat", "nodejs", "libnode-dev"}
OF_ALL_MACHINES_BESIDES = {"dh-sequence-python3", "dh-sequence-sphinxdoc", "pybuild-plugin-pyproject", "python3-all", "python3-setuptools"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def build_depends(name="Build-Depends"):
    field = re.search(rf"^{name}: (.*?)\n\S", read("debian/control"), re.M | re.S)[1]
    field = field.split("\n\n")[0]
    return {re.match(r"\s*([\w.+-]+)", each)[1] for each in field.split(",") if each.strip()}


def packages_of_run(what):
    return set(re.search(rf'\[{what}\]="(.*?)"', read("run"), re.S)[1].split())


def lines(path):
    return [line.split()[0] for line in read(path).splitlines() if line.strip() and not line.startswith("#")]


class Packages(unittest.TestCase):
    def test_it_is_built_with_what_run_installs_for_a_build(self):
        self.assertEqual(packages_of_run("build") - NOT_BUILT_WITH, build_depends() - BUILT_WITH_BESIDES)

    def test_its_pages_are_made_with_what_run_installs_for_them(self):
        self.assertEqual(packages_of_run("docs") - {"python3"}, build_depends("Build-Depends-Indep") - OF_ALL_MACHINES_BESIDES)

    def test_there_is_one_version(self):
        version = re.search(r"^project\(usdt VERSION (\S+)", read("CMakeLists.txt"), re.M)[1]
        self.assertEqual(version, re.search(r"^usdt \(([^)]+)\)", read("debian/changelog"))[1])
        self.assertEqual(version, re.search(r'^version = "(.*)"', read("bindings/python/pyproject.toml"), re.M)[1])
        self.assertEqual(version, json.loads(read("bindings/node/package.json"))["version"])
        self.assertIn(f"## {version} ", read("CHANGELOG.md"))

    def test_the_name_of_a_library_s_package_is_its_soname(self):
        version = re.search(r"^project\(usdt VERSION (\d+\.\d+)", read("CMakeLists.txt"), re.M)[1]
        named = {f"libusdt{version}"}
        for library, listing in (("libusdt-c", "bindings/c/CMakeLists.txt"), ("libusdt-provider", "provider/CMakeLists.txt")):
            named.add(library + re.search(r"SOVERSION (\d+)", read(listing))[1])
        packages = set(re.findall(r"^Package: (\S+)", read("debian/control"), re.M))
        self.assertEqual(named, {name for name in packages if re.match(r"libusdt.*\d$", name)})

    def test_symbols_are_those_of_the_version_scripts(self):
        for symbols, script in (("libusdt-c0", "bindings/c/usdt-c.map"), ("libusdt-provider1", "provider/provider.map")):
            exported = set(re.findall(r"^    (\w+);", read(script), re.M))
            listed = set(re.findall(r"^ ([a-z]\w+)@", read(f"debian/{symbols}.symbols"), re.M))
            self.assertGreater(len(exported), 5)
            self.assertEqual(exported, listed, symbols)


class Installed(unittest.TestCase):
    """What CMake installs, and the lists of which package has it."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        subprocess.run(["cmake", "--install", BUILT, "--prefix", f"{cls.scratch.name}/usr"], check=True, stdout=subprocess.DEVNULL)
        root = pathlib.Path(cls.scratch.name)
        # A build by hand has the library's archive, and may have libraries in one directory for all machines.
        cls.files = {re.sub(r"^usr/lib/(?!systemd/|\w+-linux-gnu/)", "usr/lib/any/", str(path.relative_to(root)))
                     for path in root.rglob("*") if not path.is_dir()}
        cls.files = {re.sub(r"libusdt\.a$", "libusdt.so", file) for file in cls.files}
        cls.files |= {file + ".1.0" for file in cls.files if file.endswith("/libusdt.so")}
        cls.lists = {path.name: [line for line in lines(path) if line.startswith("usr/")]  # others CMake does not install
                     for path in sorted((ROOT / "debian").glob("*.install"))}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @staticmethod
    def has(pattern, file):
        return fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file, pattern + "/*")

    def test_each_line_of_a_list_is_something_that_is_installed(self):
        for name, patterns in self.lists.items():
            for pattern in patterns:
                if name == "node-usdt.install" and not any("node_modules" in file for file in self.files):
                    continue  # node has no headers here
                self.assertTrue(any(self.has(pattern, file) for file in self.files), f"{name}: {pattern}")

    def test_everything_that_is_installed_is_in_a_list(self):
        patterns = [pattern for each in self.lists.values() for pattern in each] + lines("debian/not-installed")
        lost = [file for file in sorted(self.files) if not any(self.has(pattern, file) for pattern in patterns)]
        self.assertEqual([], lost)


if __name__ == "__main__":
    BUILT = sys.argv.pop(1)
    unittest.main(verbosity=2)
