#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is in the packages that users install, a wheel and an npm tarball: the licence and a README besides the code.

Usage: packages_test.py python|node    exit code 77: skipped
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LICENCE = (ROOT / "LICENSE").read_text()


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def check_wheel(work):
    try:
        import setuptools  # noqa: F401
        import wheel  # noqa: F401
    except ImportError as missing:
        skip(missing)
    shutil.copytree(ROOT / "bindings/python", work / "python")
    build = "import setuptools.build_meta, sys; print(setuptools.build_meta.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(work)], cwd=work / "python", check=True, stdout=subprocess.DEVNULL)
    [made] = work.glob("*.whl")
    with zipfile.ZipFile(made) as package:
        names = package.namelist()
        [licence] = [name for name in names if name.endswith("LICENSE")]
        assert package.read(licence).decode() == LICENCE
        [about] = [package.read(name).decode() for name in names if name.endswith("METADATA")]
    assert "import usdt" in about, "the README is its description"
    assert "usdt/__init__.py" in names and "usdt/py.typed" in names, names


def check_tarball(_):
    if not shutil.which("npm"):
        skip("npm is not installed")
    packed = subprocess.run(["npm", "pack", "--dry-run", "--json", "--ignore-scripts"], cwd=ROOT / "bindings/node", capture_output=True,
                            text=True, check=True).stdout
    names = {file["path"] for file in json.loads(packed)[0]["files"]}
    assert {"LICENSE", "README.md", "index.js", "index.d.ts", "src/tracing.c"} <= names, names
    assert (ROOT / "bindings/node/LICENSE").read_text() == LICENCE


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        {"python": check_wheel, "node": check_tarball}[sys.argv[1]](pathlib.Path(scratch))
