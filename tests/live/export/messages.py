# SPDX-License-Identifier: BSD-2-Clause
"""Messages of protobuf, compiled from the texts beside this one."""

import importlib
import pathlib
import subprocess
import sys

from harness import Skip, require_program


HERE = pathlib.Path(__file__).resolve().parent


def compiled(directory, name, room=HERE):
    """The messages of NAME.proto in a room of tests."""
    require_program("protoc")
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise Skip("no python3-protobuf") from None
    subprocess.run(["protoc", f"-I{room}", f"--python_out={directory}", f"{name}.proto"], check=True)
    sys.path.insert(0, str(directory))
    return importlib.import_module(f"{name}_pb2")
