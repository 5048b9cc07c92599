# SPDX-License-Identifier: BSD-2-Clause
"""Programs of Go, without cgo."""

import os
import shutil
import subprocess

import puppet  # noqa: F401 (finds the harness)
from harness import Skip, check_equal, require_root


def go_compiler():
    require_root()
    found = shutil.which("go") or shutil.which("go", path="/usr/lib/go-1.19/bin")
    if not found:
        raise Skip("go is not installed")
    return found


def build(run, source, *flags):
    program = run.dir / f"{source.stem}{''.join(flags)}".replace("=", "-").replace(" ", "")
    argv = [go_compiler(), "build", *flags, "-o", str(program), str(source)]
    environment = os.environ | {"GOCACHE": str(run.dir / "go-cache"), "GOFLAGS": "", "CGO_ENABLED": "0"}
    built = subprocess.run(argv, env=environment, capture_output=True, text=True)
    check_equal(built.returncode, 0, f"{' '.join(argv)}\n{built.stderr}")
    return program
