#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`npm install` of the Node.js package, into a project that has nothing yet: as a tarball of the sources, whose addons are built
by node-gyp over the libraries that pkg-config finds, and as the directory that CMake installs. Nothing is downloaded.

Usage: node_install_test.py LIBUSDT_C LIBUSDT_PROVIDER ADDON_DIRECTORY    exit code 77: skipped
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings/node"
SKIP = 77

# Both addons are loaded and at work.
USES = """
const usdt = require('usdt');
const provider = new usdt.Provider('installed', {required: true});
provider.probe('here', 'i32 n');
const [point] = usdt.list([], {pids: process.pid, patterns: 'installed:*'});
console.log(JSON.stringify([require.resolve('usdt'), point.name, point.args[0].name]));
"""


def missing():
    if not shutil.which("npm") or not shutil.which("make") or not shutil.which("pkg-config"):
        return "npm, make or pkg-config is not installed"
    node = pathlib.Path(shutil.which("node")).resolve()
    if not any((prefix / "include/node/node_api.h").exists() for prefix in (node.parent.parent, pathlib.Path("/usr"))):
        return "node has no headers here"
    return None


def run(*argv, **options):
    done = subprocess.run([str(word) for word in argv], text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{argv}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def pkg_config(directory, name, library, include):
    (directory / f"{name}.pc").write_text(f"libdir={library.parent}\nName: {name}\nDescription: as built\nVersion: 0\n"
                                          f"Cflags: -I{include}\nLibs: -L${{libdir}} -l{library.stem.partition('.')[0][3:]}\n")


def installed(what, work, environment):
    """A new project with `what` as its only dependency; the package it then has."""
    project = work / f"project-{pathlib.Path(what).name}"
    project.mkdir()
    (project / "package.json").write_text('{"name": "project", "version": "1.0.0", "private": true}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", what, cwd=project, env=environment)
    resolved, probe, arg = json.loads(run("node", "-e", USES, cwd=project, env=environment))
    assert (probe, arg) == ("here", "n"), (probe, arg)
    return pathlib.Path(resolved), project


def main():
    libraries, addons = [pathlib.Path(word).resolve() for word in sys.argv[1:3]], pathlib.Path(sys.argv[3])
    why = missing()
    if why:
        print(f"SKIP {why}")
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        pkg_config(work, "usdt-c", libraries[0], ROOT / "bindings/c/include")
        pkg_config(work, "libusdt-provider", libraries[1], ROOT / "provider/include")
        environment = {key: value for key, value in os.environ.items() if key != "USDT_NODE_ADDONS"}
        environment |= {"PKG_CONFIG_PATH": str(work), "HOME": name, "npm_config_cache": f"{name}/cache"}
        run("npm", "pack", "--pack-destination", work, PACKAGE, env=environment)
        (tarball,) = work.glob("usdt-*.tgz")
        package, project = installed(tarball, work, environment)
        assert package.is_relative_to(project / "node_modules/usdt"), package
        assert (package.parent / "build/Release/usdt_tracing.node").exists()
        print("npm install of the tarball built and loaded both addons")

        directory = work / "installed"
        directory.mkdir()
        for source in (*(PACKAGE / each for each in ("package.json", "index.js", "index.d.ts", "install.js")), *addons.glob("*.node")):
            shutil.copy(source, directory)
        package, _ = installed(directory, work, environment)
        assert not (directory / "build").exists(), "addons that were there were built again"
        print("npm install of the installed directory took its addons")
    return 0


if __name__ == "__main__":
    sys.exit(main())
