#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a tarball of the Node.js package, as `npm pack` does, with its addons and the libraries of `./run package` inside.

Usage: npm.py [OUTPUT]      OUTPUT: build/package/node unless told
"""

import json
import pathlib
import shutil
import tempfile

import bundle
import chroot

ADDONS = ("usdt_tracing.node", "usdt_provider.node")
CPU = {"x86_64": "x64", "aarch64": "arm64"}
SOURCES = ("binding.gyp", "src")  # of which npm would build them


def build(output):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        package = scratch / "package"
        shutil.copytree(chroot.ROOT / "bindings/node", package, ignore=shutil.ignore_patterns("build", *SOURCES))
        bundle.unpacked(scratch / "debs", "node-usdt", *bundle.LIBRARIES)
        [built] = (scratch / "debs").glob("usr/lib/*/nodejs/usdt")
        addons = [pathlib.Path(shutil.copy(built / name, package / name)) for name in ADDONS]
        bundle.copy_libraries(scratch / "debs", package / "native")
        for addon in addons:
            chroot.run(["patchelf", "--set-rpath", "$ORIGIN/native", addon])
        about = json.loads((package / "package.json").read_text())
        about["files"] = [name for name in about["files"] if name not in SOURCES] + [*ADDONS, "native"]
        about |= {"cpu": [CPU[bundle.machine()]], "libc": ["glibc"], "gypfile": False}
        (package / "package.json").write_text(json.dumps(about, indent=2) + "\n")
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        chroot.run(["npm", "pack", "--ignore-scripts", "--pack-destination", output.resolve()], cwd=package)
    return next(output.glob("*.tgz"))


if __name__ == "__main__":
    bundle.main(build, "node")
