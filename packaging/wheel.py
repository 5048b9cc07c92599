#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a wheel of the Python package with the libraries of `./run package` inside.

Usage: wheel.py [OUTPUT]      OUTPUT: build/package/python unless told
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import bundle
import chroot
from sources import Commit

PYTHON = "/usr/bin/python3"  # which has Debian's setuptools and wheel
BUILD = "import setuptools.build_meta, sys; setuptools.build_meta.build_wheel(sys.argv[1], {'--build-option': ['--plat-name', sys.argv[2]]})"
LIBRARIES = {"libusdt-c0": "libusdt-c.so.0", "libusdt-provider1": "libusdt-provider.so.1"}


def build(output):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        package = scratch / "package"
        shutil.copytree(chroot.ROOT / "bindings/python", package, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".pybuild"))
        native = package / "usdt/native.libs"
        native.mkdir()
        bundle.unpacked(scratch / "debs", *LIBRARIES)
        libraries = [pathlib.Path(shutil.copy(bundle.library(scratch / "debs", name), native / name)) for name in LIBRARIES.values()]
        bundle.bundle(libraries, native)
        for file in sorted(package.rglob("*")):
            if file.is_file():  # what they are is read from the archive, too
                file.chmod(0o644)
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        platform = f"manylinux_{bundle.glibc_version().replace('.', '_')}_{bundle.machine()}"
        subprocess.run([PYTHON, "-c", BUILD, str(output.resolve()), platform], cwd=package, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(Commit().seconds)})
    return next(output.glob("*.whl"))


def main():
    try:
        made = build(pathlib.Path(sys.argv[1]) if sys.argv[1:] else chroot.HOME / "python")
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    print(f"{made.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(made)}")


if __name__ == "__main__":
    main()
