#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the packages of Debian of a commit, in a chroot that has nothing but what debian/control says they are built with.

Usage: debs.py [--suite SUITE | --arch MACHINE] [--commit NAME] [--version VERSION] [--at DIRECTORY] [--no-cache] [--no-debug]
               [--unless-there] [OUTPUT]
Only what is committed is in them. OUTPUT (build/package/debs unless told, debs-SUITE of another suite, debs-MACHINE for
another machine) is emptied first.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import sys

import chroot
import machines
from sources import Commit, git

SUITE = "bookworm"
PLACE = "/build/usdt"  # within the chroot: the compiler's cache knows it
# Of a cross build: Node.js has no headers that two machines may have installed at once.
PROFILES = "cross,nocheck,pkg.usdt.nonode"


def builder(control, suite=SUITE, machine=None):
    """The chroot that has the Build-Depends of a source, for this machine or for another one; made once for each list of them."""
    fields = "Build-Depends(-Arch|-Indep)?" if machine is None else "Build-Depends(-Arch)?"
    wishes = [field[0] for field in re.finditer(rf"^{fields}:.*?(?=\n\S|\n\n)", control, re.M | re.S)]
    key = hashlib.sha256("\n".join(wishes).encode()).hexdigest()[:12]
    suite, kind = (suite, "build") if machine is None else (machine.suite, f"for-{machine.name}")
    made = chroot.Chroot(chroot.HOME / "chroots" / f"{suite}-{kind}-{key}")
    if (made.root / "made-builder").exists():
        return made
    for old in made.root.parent.glob(f"{suite}-{kind}-*"):
        chroot.remove(old)
    chroot.base(suite).copy(made.root)
    wanted = made.root / "wanted/debian"
    wanted.mkdir(parents=True)
    (wanted / "control").write_text(control)
    (wanted / "changelog").write_text("usdt (0) unstable; urgency=low\n\n  * None.\n\n -- A <a@b>  Thu, 01 Jan 1970 00:00:00 +0000\n")
    made.install("build-essential", "ccache")
    cross = ()
    if machine is not None:
        made.run("dpkg", "--add-architecture", machine.name)
        made.run("apt-get", "-qq", "update")
        made.install(f"crossbuild-essential-{machine.name}")
        cross = ("--arch-only", f"-a{machine.name}", f"-P{PROFILES}")
    made.run("apt-get", "-qq", "-y", "--no-install-recommends", *cross, "build-dep", "/wanted")
    made.run("apt-get", "clean")
    (made.root / "made-builder").touch()
    return made


def build(commit, output, version=None, place=PLACE, cached=True, suite=SUITE, machine=None, options=()):
    """Builds source and binary packages into the directory `output`; for another machine those that depend on the machine.
    `options`: more words for DEB_BUILD_OPTIONS."""
    control = git("show", f"{commit.id}:debian/control")
    home = builder(control, suite, machine)
    what = "-F" if machine is None else f"-B -a{machine.name} -P{PROFILES}"
    here = pathlib.Path(f"{home.root}{place}")
    chroot.remove(here.parent)
    commit.unpack_package(here, version)
    binds, variables = chroot.compiler_cache() if cached else ((), {})
    options = " ".join([f"parallel={len(os.sched_getaffinity(0))}", *options])
    try:
        said = home.run("sh", "-ec", f"cd {place} && exec dpkg-buildpackage -us -uc {what}", binds=binds,
                        env={**variables, "DEB_BUILD_OPTIONS": options})
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
    parser.add_argument("--no-debug", action="store_true", help="no packages of debug information, which take most of the time")
    parser.add_argument("--unless-there", action="store_true", help="nothing, if OUTPUT has packages of that version")
    machines.add_option(parser)
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    machine = machines.chosen(options.arch)
    of_suite = chroot.HOME / f"debs-{options.suite}" if options.suite != SUITE else machines.output("debs", machine)
    options.output = options.output or of_suite
    commit = Commit(options.commit)
    if options.unless_there and list(options.output.glob(f"usdt_{options.version or commit.version()}_*.changes")):
        return
    try:
        build(commit, options.output, options.version, options.at, not options.no_cache, options.suite, machine,
              ("noautodbgsym",) if options.no_debug else ())
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    if git("status", "--porcelain"):
        print("package: what is not committed is not in the packages")
    for deb in sorted(options.output.glob("*.deb")):
        print(f"{deb.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(deb)}")


if __name__ == "__main__":
    main()
