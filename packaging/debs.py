#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the packages of Debian of a commit, in a chroot that has nothing but what debian/control says they are built with.

Usage: debs.py [--commit NAME] [--version VERSION] [--at DIRECTORY] [--no-cache] [OUTPUT]
Only what is committed is in them. OUTPUT (build/package/debs unless told) is emptied first.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import chroot
from sources import Commit, git

SUITE = "bookworm"
PLACE = "/build/usdt"  # within the chroot: the compiler's cache knows it


def builder(control):
    """The chroot that has the Build-Depends of a source; made once for each list of them."""
    wishes = re.search(r"^Build-Depends:.*?(?=\n\S|\n\n)", control, re.M | re.S)[0]
    key = hashlib.sha256(wishes.encode()).hexdigest()[:12]
    made = chroot.Chroot(chroot.HOME / "chroots" / f"{SUITE}-build-{key}")
    if (made.root / "made-builder").exists():
        return made
    for old in made.root.parent.glob(f"{SUITE}-build-*"):
        chroot.remove(old)
    chroot.base(SUITE).copy(made.root)
    wanted = made.root / "wanted/debian"
    wanted.mkdir(parents=True)
    (wanted / "control").write_text(control)
    (wanted / "changelog").write_text("usdt (0) unstable; urgency=low\n\n  * None.\n\n -- A <a@b>  Thu, 01 Jan 1970 00:00:00 +0000\n")
    made.install("build-essential", "ccache")
    made.run("apt-get", "-qq", "-y", "--no-install-recommends", "build-dep", "/wanted")
    made.run("apt-get", "clean")
    (made.root / "made-builder").touch()
    return made


def cache():
    """Where this machine's compiler cache is, and the variables by which CMake uses it; nothing where there is none."""
    if shutil.which("ccache") is None:
        return (), {}
    directory = subprocess.run(["ccache", "-k", "cache_dir"], capture_output=True, text=True, check=True).stdout.strip()
    os.makedirs(directory, exist_ok=True)
    variables = {"CCACHE_DIR": "/ccache", "CCACHE_NOHASHDIR": "true", "CMAKE_C_COMPILER_LAUNCHER": "ccache",
                 "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
    return ((directory, "/ccache"),), variables


def build(commit, output, version=None, place=PLACE, cached=True):
    """Builds source and binary packages into the directory `output`."""
    control = git("show", f"{commit.id}:debian/control")
    home = builder(control)
    here = pathlib.Path(f"{home.root}{place}")
    chroot.remove(here.parent)
    commit.unpack_package(here, version)
    binds, variables = cache() if cached else ((), {})
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
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--version", help="instead of that of the commit")
    parser.add_argument("--at", default=PLACE, help="the directory of the sources within the chroot")
    parser.add_argument("--no-cache", action="store_true", help="compile everything")
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=chroot.HOME / "debs")
    options = parser.parse_args()
    try:
        build(Commit(options.commit), options.output, options.version, options.at, not options.no_cache)
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    if git("status", "--porcelain"):
        print("package: what is not committed is not in the packages")
    for deb in sorted(options.output.glob("*.deb")):
        print(f"{deb.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(deb)}")


if __name__ == "__main__":
    main()
