# SPDX-License-Identifier: BSD-2-Clause
"""The sources of a commit as a source package: its files, and a debian/changelog that says which commit it is."""

import email.utils
import pathlib
import re
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def project_version(cmake_lists):
    """The one place that says it is project() of CMakeLists.txt."""
    return re.search(r"^project\(usdt VERSION (\S+)", cmake_lists, re.M)[1]


class Commit:
    def __init__(self, name="HEAD"):
        self.id = git("rev-parse", "--verify", name)
        self.seconds = int(git("log", "-1", "--format=%ct", self.id))
        self.number = project_version(git("show", f"{self.id}:CMakeLists.txt"))

    def version(self):
        """The version of a commit with the version's tag; what comes before it is ordered by time."""
        if f"v{self.number}" in git("tag", "--points-at", self.id).splitlines():
            return self.number
        stamp = git("log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd", self.id)
        return f"{self.number}~git{stamp}.{self.id[:8]}"

    def has(self, path):
        return bool(git("ls-tree", self.id, "--", path))

    def unpack(self, directory):
        """Files as git has them, nothing of the working tree."""
        directory.mkdir(parents=True)
        archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", self.id], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
            files.extractall(directory)
        if archive.wait() != 0:
            raise RuntimeError(f"git archive {self.id}")

    def unpack_package(self, directory, version=None):
        """The same, and of that version."""
        self.unpack(directory)
        changelog = directory / "debian/changelog"
        maintainer = re.search(r"^ -- (.*>)", changelog.read_text(), re.M)[1]
        changelog.write_text(f"usdt ({version or self.version()}) unstable; urgency=medium\n\n"
                             f"  * Commit {self.id}.\n\n"
                             f" -- {maintainer}  {email.utils.formatdate(self.seconds)}\n")
