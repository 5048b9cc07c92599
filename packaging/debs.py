#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the packages of Debian of a commit, in a chroot that has nothing but what debian/control says they are built with.

Usage: debs.py [--suite SUITE] [--commit NAME] [--version VERSION] [--at DIRECTORY] [--no-cache] [OUTPUT]
Only what is committed is in them. OUTPUT (build/package/debs unless told, debs-SUITE of another suite) is emptied first.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import sys

import chroot
from sources import Commit, git

SUITE = "bookworm"
PLACE = "/build/usdt"  # within the chroot: the compiler's cache knows it


def builder(control, suite=SUITE):
    """The chroot that has the Build-Depends of a source; made once for each list of them."""
    wishes = re.findall(r"^Build-Depends[\w-]*:.*?(?=\n\S|\n\n)", control, re.M | re.S)
    key = hashlib.sha256("\n".join(wishes).encode()).hexdigest()[:12]
    made = chroot.Chroot(chroot.HOME / "chroots" / f"{suite}-build-{key}")
    if (made.root / "made-builder").exists():
        return made
    for old in made.root.parent.glob(f"{suite}-build-*"):
        chroot.remove(old)
    chroot.base(suite).copy(made.root)
    wanted = made.root / "wanted/debian"
    wanted.mkdir(parents=True)
    (wanted / "control").write_text(control)
    (wanted / "changelog").write_text("usdt (0) unstable; urgency=low\n\n  * None.\n\n -- A <a@b>  Thu, 01 Jan 1970 00:00:00 +0000\n")
    made.install("build-essential", "ccache")
    made.run("apt-get", "-qq", "-y", "--no-install-recommends", "build-dep", "/wanted")
    made.run("apt-get", "clean")
    (made.root / "made-builder").touch()
    return made


def build(commit, output, version=None, place=PLACE, cached=True, suite=SUITE):
    """Builds source and binary packages into the directory `output`."""
    control = git("show", f"{commit.id}:debian/control")
    home = builder(control, suite)
    here = pathlib.Path(f"{home.root}{place}")
    chroot.remove(here.parent)
    commit.unpack_package(here, version)
    binds, variables = chroot.compiler_cache() if cached else ((), {})
    try:
        said = home.run("sh", "-ec", f"cd {place} && exec dpkg-buildpackage -us -uc -F", binds=binds,
                        env={**variables, "DEB_BUILD_OPTIONS": f"parallel={len(os.sched_getaffinity(0))}"})
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        (output / "build.log").write_text(said)
        for made in here.parent.iterdir():
            if made.is_file():
                shutil.move(made, output / made.name)
    finally:
        chroot.remove(here.parent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default=SUITE, help="of Debian, whose libraries and compilers they are built with")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--version", help="instead of that of the commit")
    parser.add_argument("--at", default=PLACE, help="the directory of the sources within the chroot")
    parser.add_argument("--no-cache", action="store_true", help="compile everything")
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    options.output = options.output or chroot.HOME / ("debs" if options.suite == SUITE else f"debs-{options.suite}")
    try:
        build(Commit(options.commit), options.output, options.version, options.at, not options.no_cache,
              options.suite)
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    if git("status", "--porcelain"):
        print("package: what is not committed is not in the packages")
    for deb in sorted(options.output.glob("*.deb")):
        print(f"{deb.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(deb)}")


if __name__ == "__main__":
    main()
