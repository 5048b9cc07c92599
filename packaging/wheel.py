#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a wheel of the Python package with the libraries of `./run package` inside.

Usage: wheel.py [OUTPUT]      OUTPUT: build/package/python unless told
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

import bundle
import chroot
from sources import Commit

PYTHON = "/usr/bin/python3"  # which has Debian's setuptools and wheel
BUILD = "import setuptools.build_meta, sys; setuptools.build_meta.build_wheel(sys.argv[1], {'--build-option': ['--plat-name', sys.argv[2]]})"


def build(output):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        package = scratch / "package"
        shutil.copytree(chroot.ROOT / "bindings/python", package, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".pybuild"))
        bundle.unpacked(scratch / "debs", *bundle.LIBRARIES)
        bundle.copy_libraries(scratch / "debs", package / "usdt/native.libs")
        for file in sorted(package.rglob("*")):
            if file.is_file():  # what they are is read from the archive, too
                file.chmod(0o644)
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        platform = f"manylinux_{bundle.glibc_version().replace('.', '_')}_{bundle.machine()}"
        subprocess.run([PYTHON, "-c", BUILD, str(output.resolve()), platform], cwd=package, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(Commit().seconds)})
    return next(output.glob("*.whl"))


if __name__ == "__main__":
    bundle.main(build, "python")
