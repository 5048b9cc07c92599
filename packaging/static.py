#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a tarball of the tools of a commit that need nothing of the machine they run on but its kernel, and a list (SPDX 2.3) of
what is inside them. The same commit makes the same bytes.

Usage: static.py [--commit NAME] [--at DIRECTORY] [--no-cache] [--arch MACHINE] [OUTPUT]
OUTPUT: build/package/static, or static-MACHINE, unless told
"""

import argparse
import io
import lzma
import os
import pathlib
import re
import shlex
import shutil
import sys
import tarfile

import chroot
import debs
import machines
import spdx
from sources import Commit, git

TOOLS = {"usdt-list": 1, "usdt-trace": 1, "usdt-agent": 1, "usdt-broker": 8}  # and the section of the manual
ALSO = "libbz2-dev"  # of which elfutils' archives have functions
# Zydis of the same sources as the distribution's, which has it as a shared library alone.
ZYDIS = """
sed 's/^deb /deb-src /' /etc/apt/sources.list >/etc/apt/sources.list.d/sources.list
apt-get -qq update
mkdir /zydis
cd /zydis
apt-get -qq source zydis
cmake -G Ninja -S zydis-* -B build "$@" -DCMAKE_BUILD_TYPE=Release -DZYDIS_BUILD_SHARED_LIB=OFF -DZYDIS_BUILD_TOOLS=OFF \
  -DZYDIS_BUILD_EXAMPLES=OFF -DZYDIS_BUILD_MAN=OFF -DZYDIS_BUILD_DOXYGEN=OFF -DZYAN_SYSTEM_ZYCORE=ON
ninja -C build Zydis
mkdir -p "$into"
cp build/libZydis.a "$into"
"""
# Each program beside a map of what the linker took for it.
LINK = ("<CMAKE_CXX_COMPILER> <FLAGS> <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES> "
        "-Wl,-Map=<TARGET>.map")
ABOUT = """usdt {version}: {tools} for Linux of {machine}, linked statically.

bin/ may be copied anywhere. share/ has manual pages and completions, as below /usr/share. usdt.spdx.json lists what is
inside the programs, and LICENSES/ has its licences. They were made of commit
{commit}
by `./run package static`, which makes them again of changed libraries.

They do not load libdebuginfod (--debuginfod), which would bring another C library.
"""


def words(settings):
    return [f"-D{name}={value}" for name, value in settings.items()]


def builder(control, machine):
    """The chroot that packages are built in, with what else static programs want."""
    base = debs.builder(control, machine=machine)
    made = chroot.Chroot(f"{base.root}-static")
    if not (made.root / "made-static").exists():
        base.copy(made.root)
        made.install(ALSO if machine is None else f"{ALSO}:{machine.name}")
        settings = [] if machine is None else words(machine.cmake_settings())
        into = "/usr/local/lib" if machine is None else f"/usr/local/lib/{machine.triple}"
        made.run("sh", "-ec", ZYDIS, "zydis", *settings, env={"into": into})
        (made.root / "made-static").touch()
    return made


def compile_tools(home, place, cached, machine, arch):
    """As debian/rules says: the compiler's cache knows objects of the packages."""
    binds, variables = chroot.compiler_cache() if cached else ((), {})
    variables |= {"DEB_BUILD_OPTIONS": f"parallel={len(os.sched_getaffinity(0))}"}
    link = LINK
    if machine is not None:
        # The compiler comes with a C library of the release, and looks there first: the distribution's own one has its repairs.
        link += f" -B/usr/lib/{machine.triple} -L/usr/lib/{machine.triple}"
    wanted = {"STATIC": shlex.quote(f"-DCMAKE_CXX_LINK_EXECUTABLE={link}"), "TOOLS": " ".join(TOOLS)}
    home.run("dpkg-architecture", "-f", f"-a{arch}", "-c", "make", "-C", place, "-f", "debian/rules", "static-tools",
             *(f"{name}={value}" for name, value in wanted.items()), binds=binds, env=variables)


def what_is_inside(home, place, built):
    """Paths of the system that code of the programs came from: members of archives, start files, headers."""
    archives, headers = set(), set()
    for tool in TOOLS:
        said = pathlib.Path(f"{home.root}{built}/bin/{tool}.map").read_text(errors="replace")
        archives |= {os.path.normpath(path) for path in re.findall(r"^(/\S+\.a)\(\S+\)$", said, re.M)}
        archives |= {os.path.normpath(path) for path in re.findall(r"^LOAD (/\S+\.o)$", said, re.M)}
    for path in home.run("ninja", "-C", built, "-t", "deps").split():
        if path.startswith("/usr/"):
            headers.add(os.path.normpath(path))
    ours = f"{place}/"
    return {path for path in archives if not path.startswith(ours)}, headers


def add_text(files, name, text):
    files[name] = (text.encode(), 0o644)


def collect(home, place, built, commit, cpu, arch):
    """What the tarball has: {name: (bytes, mode)}."""
    sources, made_in = pathlib.Path(f"{home.root}{place}"), pathlib.Path(f"{home.root}{built}")
    version, files = commit.version(), {}
    for tool, section in TOOLS.items():
        made, page = made_in / "tools" / tool, f"{tool}.{section}"
        files[f"bin/{tool}"] = ((made_in / "bin" / tool).read_bytes(), 0o755)
        for source, name in ((page, f"man/man{section}/{page}"), (f"{tool}.bash", f"bash-completion/completions/{tool}"),
                             (f"_{tool}", f"zsh/site-functions/_{tool}"), (f"{tool}.fish", f"fish/vendor_completions.d/{tool}.fish")):
            add_text(files, f"share/{name}", (made / source).read_text())
    packages = spdx.packages_of(home, *what_is_inside(home, place, built), arch)
    for package in packages:
        add_text(files, f"LICENSES/{package.name}.txt", home.run("cat", f"/usr/share/doc/{package.name}/copyright"))
    add_text(files, "LICENSE", (sources / "LICENSE").read_text())
    for name in ("GPL-2.0.txt", "README.md"):
        add_text(files, f"LICENSES/{name}", (sources / "LICENSES" / name).read_text())
    for name in ("GPL-3", "LGPL-2", "LGPL-2.1", "LGPL-3", "Apache-2.0"):  # to which Debian's texts refer
        add_text(files, f"LICENSES/{name}.txt", home.run("cat", f"/usr/share/common-licenses/{name}"))
    add_text(files, "README.txt", ABOUT.format(version=version, tools=", ".join(TOOLS), machine=cpu, commit=commit.id))
    add_text(files, "usdt.spdx.json", spdx.document(commit, f"usdt-tools-{version}-linux-{cpu}", packages))
    return files


def tarball(top, files, seconds):
    """Sorted, of nobody, and of the commit's time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, seconds
            tar.addfile(entry, io.BytesIO(content))
    return lzma.compress(made.getvalue(), preset=9)


def build(commit, output, place=debs.PLACE, cached=True, machine=None):
    home = builder(git("show", f"{commit.id}:debian/control"), machine)
    here = pathlib.Path(f"{home.root}{place}")
    chroot.remove(here.parent)
    commit.unpack(here)
    try:
        if machine is None:
            arch, cpu, triple = home.run("sh", "-ec", "dpkg --print-architecture; uname -m; dpkg-architecture -qDEB_HOST_GNU_TYPE").split()
        else:
            arch, cpu, triple = machine.name, machine.cpu, machine.triple
        compile_tools(home, place, cached, machine, arch)
        home.run(f"{triple}-strip", *(f"{place}/obj-{triple}/bin/{tool}" for tool in TOOLS))
        files = collect(home, place, f"{place}/obj-{triple}", commit, cpu, arch)
    finally:
        chroot.remove(here.parent)
    top = f"usdt-tools-{commit.version()}-linux-{cpu}"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / f"{top}.tar.xz").write_bytes(tarball(top, files, commit.seconds))
    (output / f"{top}.spdx.json").write_bytes(files["usdt.spdx.json"][0])
    return output / f"{top}.tar.xz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--at", default=debs.PLACE, help="the directory of the sources within the chroot")
    parser.add_argument("--no-cache", action="store_true", help="compile everything")
    machines.add_option(parser)
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    machine = machines.chosen(options.arch)
    output = options.output or machines.output("static", machine)
    try:
        made = build(Commit(options.commit), output, options.at, not options.no_cache, machine)
    except chroot.Failed as why:
        sys.exit(f"package: {why}")
    print(f"{made.stat().st_size / 1e6:8.2f} MB  {os.path.relpath(made)}")


if __name__ == "__main__":
    main()
