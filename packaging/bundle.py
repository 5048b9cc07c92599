# SPDX-License-Identifier: BSD-2-Clause
"""Shared libraries with all that they load, in one directory: for packages of languages, which are installed where the distribution's
libraries are not."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import chroot
import debs

# Libraries that languages load, by their packages.
LIBRARIES = {"libusdt-c0": "libusdt-c.so.0", "libusdt-provider1": "libusdt-provider.so.1"}

# Everybody has these: the C and C++ libraries, from Debian 12's on.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux.*)\.so\.\d+$")


def unpacked(directory, *packages):
    """Files of packages that `./run package` has built, below `directory`."""
    for name in packages:
        built = sorted((chroot.HOME / "debs").glob(f"{name}_*.deb"))
        if not built:
            raise chroot.Failed(f"no {name} in {chroot.HOME / 'debs'}: run ./run package")
        chroot.run(["dpkg-deb", "-x", built[0], directory])


def needed(path):
    dynamic = chroot.run(["readelf", "-dW", path])
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", dynamic)


def bundle(files, into):
    """Copies what `files`, which are in the directory, load, and what that loads, with the copyright files of their packages. Each
    looks for others there first."""
    system = debs.builder((chroot.ROOT / "debian/control").read_text())
    into.mkdir(parents=True, exist_ok=True)
    waiting, there = [name for file in files for name in needed(file)], {file.name for file in files}
    while waiting:
        name = waiting.pop()
        if name in there or OF_THE_SYSTEM.match(name):
            continue
        there.add(name)
        [found] = sorted(system.root.glob(f"usr/lib/*-linux-gnu/{name}")) or [None]
        if found is None:
            raise chroot.Failed(f"{name} is in no directory of libraries")
        target = into / name
        shutil.copy(found, target)  # what the link leads to
        chroot.run(["patchelf", "--set-rpath", "$ORIGIN", target])
        package = system.run("dpkg", "-S", f"*/{name}").split(":")[0]
        shutil.copy(system.root / f"usr/share/doc/{package}/copyright", into / f"LICENSE.{package}")
        waiting += needed(target)
    for file in files:
        chroot.run(["patchelf", "--set-rpath", "$ORIGIN", file])


def glibc_version():
    system = debs.builder((chroot.ROOT / "debian/control").read_text())
    return re.match(r"\d+\.\d+", system.run("dpkg-query", "-W", "-f", "${Version}", "libc6"))[0]


def machine():
    return subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()


def library(unpacked_in, soname):
    [found] = pathlib.Path(unpacked_in).glob(f"usr/lib/*/{soname}")
    return found.resolve()


def copy_libraries(debs_directory, native):
    """Makes `native`, with LIBRARIES out of unpacked packages and all that these load."""
    native.mkdir()
    bundle([pathlib.Path(shutil.copy(library(debs_directory, name), native / name)) for name in LIBRARIES.values()], native)


def main(build, name):
    """`build` makes a package in a directory, by default build/package/`name`, and returns its path."""
    try:
        made = build(pathlib.Path(sys.argv[1]) if sys.argv[1:] else chroot.HOME / name)
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    print(f"{made.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(made)}")
