# SPDX-License-Identifier: BSD-2-Clause
"""Cgroups for tests."""

import os
import pathlib
import subprocess

from harness import Skip, check_equal, wait_until


class Cgroup:
    """A cgroup (v2) in which programs can be run."""

    def __init__(self, name):
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        trees = [words[1] for words in mounts if words[2] == "cgroup2"]
        if not trees or not os.access(trees[0], os.W_OK):
            raise Skip("no cgroup v2 that could be written to")
        if os.stat("/proc/self/ns/cgroup").st_ino != 0xEFFFFFFB:
            raise Skip("a cgroup namespace, in which it cannot be told how deep a cgroup is")
        self.name, self.path = name, pathlib.Path(trees[0]) / name

    def make(self):
        self.path.mkdir()

    def remove(self):
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), f"{self.path} without processes")
        self.path.rmdir()

    def run(self, program, count):
        """The program in the cgroup."""
        enter = f"echo $$ > {self.path}/cgroup.procs && exec {program} {count}"
        check_equal(subprocess.run(["sh", "-c", enter]).returncode, 0, "exit code of the program")
