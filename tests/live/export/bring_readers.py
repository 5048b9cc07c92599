#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bring_readers.py DIRECTORY: puts readers of exports there that Debian 12 does not have, for readers_test.py: packages of Debian
sid, unpacked and not installed (DIRECTORY/sid), and packages of npm (DIRECTORY/node_modules). Those that cannot be had are named,
and the scenarios that need them are skipped."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

import debian  # noqa: E402

# The programs run on Debian 12: of its libraries they want little. The modules are Python, for protobuf 3.21, which both have.
OF_SID = ("victoria-metrics", "python3-opentelemetry-proto", "prometheus", "promtool")
OF_NPM = ("speedscope@1.25.0", "@duckdb/node-api@1.5.6-r.1")


def bring_of_sid(home):
    """Packages whose versions are in DIRECTORY/sid are there already."""
    wanted = [name for name in OF_SID if not (home / f"{name}.version").exists()]
    if not wanted:
        return
    home.mkdir(parents=True, exist_ok=True)
    machine = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    archive = debian.Archive("sid", machine)
    for name in wanted:
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            debian.unpack(archive.download([name], scratch), home)
        (home / f"{name}.version").write_text(archive.version(name) + "\n")


def bring_of_npm(home):
    if shutil.which("npm") is None:
        print("readers: no npm (Debian: nodejs npm), so none of " + ", ".join(OF_NPM))
        return
    home.mkdir(parents=True, exist_ok=True)
    for name in OF_NPM:
        subprocess.run(["npm", "install", "--prefix", home, "--no-fund", "--no-audit", "--loglevel=error", name], check=False)


def main():
    home = pathlib.Path(sys.argv[1])
    try:
        bring_of_sid(home / "sid")
    except debian.Unavailable as why:
        print(f"readers: none of sid: {why}")
    bring_of_npm(home)


if __name__ == "__main__":
    main()
