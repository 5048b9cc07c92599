# SPDX-License-Identifier: BSD-2-Clause
"""Messages of protobuf, compiled from the texts beside this one."""

import importlib
import pathlib
import subprocess
import sys

from harness import Skip, require_program


def compiled(directory, name):
    """The messages of NAME.proto."""
    require_program("protoc")
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise Skip("no python3-protobuf") from None
    here = pathlib.Path(__file__).resolve().parent
    subprocess.run(["protoc", f"-I{here}", f"--python_out={directory}", f"{name}.proto"], check=True)
    sys.path.insert(0, str(directory))
    return importlib.import_module(f"{name}_pb2")
