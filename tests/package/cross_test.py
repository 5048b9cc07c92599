#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is cross built for arm64 (./run package cross): it is arm64's as a whole, and does there what it does here.

Programs are run by qemu-user; what traces, in a guest with a kernel of arm64. Environment: USDT_PACKAGES, USDT_PACKAGES_ARM64,
USDT_STATIC_ARM64: the directories of packages of this machine, of those of arm64, and of the tarball.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests/programs", "packaging", "tests/vm")]

import checks  # noqa: E402
import chroot  # noqa: E402
import debian  # noqa: E402
import debs  # noqa: E402
import elf_view  # noqa: E402
import in_guest  # noqa: E402
import static  # noqa: E402
from harness import Skip, check, check_equal, main, require_root, scenario  # noqa: E402
from machines import MACHINES  # noqa: E402

ARM64 = MACHINES["arm64"]
PACKAGES = pathlib.Path(os.environ.get("USDT_PACKAGES_ARM64", chroot.HOME / "debs-arm64"))
STATIC = pathlib.Path(os.environ.get("USDT_STATIC_ARM64", chroot.HOME / "static-arm64"))
NATIVE = pathlib.Path(os.environ.get("USDT_PACKAGES", chroot.HOME / "debs"))
CONTROL = (ROOT / "debian/control").read_text()
LIBRARIES = tuple(re.findall(r"^Package: (libusdt\S*\d)$", CONTROL, re.M))
RUNS = ("usdt-tools", "usdt-agent", "usdt-broker", *LIBRARIES)


def package(directory, name):
    [found] = list(directory.glob(f"{name}_*.deb")) or [None]
    if found is None:
        raise Skip(f"{directory} has no {name}")
    return found


def elf_files(directory):
    return sorted(path for path in directory.rglob("*")
                  if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF")


def readelf(*words):
    return subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True, check=True).stdout


def check_machine(path):
    machine = re.search(r"Machine:\s+(.*)", readelf("-h", path))[1]
    check_equal(machine, "AArch64", path.name)


def static_tools(run):
    """The tarball's directory, unpacked."""
    [made] = list(STATIC.glob("*.tar.xz")) or [None]
    if made is None:
        raise Skip("no tarball: ./run package static --arch arm64")
    with tarfile.open(made) as files:
        files.extractall(run.dir)
        return run.dir / files.getnames()[0].split("/")[0]


def unpacked(run, deb):
    """A directory with what a package of Debian has."""
    directory = run.dir / deb.name
    debian.unpack([deb], directory)
    return directory


class System:
    """A clean system that runs programs of arm64 by qemu-user; `seen` are directories that it sees."""

    def __init__(self, run, *seen):
        require_root()
        self.here = chroot.base("bookworm").copy(run.dir / "system")
        self.binds = tuple((path, path) for path in (PACKAGES, NATIVE, *seen) if path.exists())
        self("apt-get -qq -y --no-install-recommends install qemu-user-static")

    def __call__(self, command):
        return self.here.run("sh", "-ec", command, binds=self.binds)

    def emulated(self, program, words):
        return self(f"qemu-aarch64-static {program} {words}")


def program_of_debian(run):
    """Python of arm64, as Debian built it."""
    (scratch := run.dir / "python").mkdir()
    debian.CACHE.mkdir(parents=True, exist_ok=True)
    debian.unpack(debian.Archive("bookworm", "arm64").download(["python3.11-minimal"], scratch), scratch)
    return scratch / "usr/bin/python3.11"


def sites(text):
    """What `usdt-list --format json` says of the file: what a hit costs is of the kernel that runs."""
    listed = [json.loads(line) for line in text.splitlines()]
    for site in listed:
        for word in ("cost", "cost_reason"):
            site["site"].pop(word, None)
    return listed


@scenario
def each_program_of_the_tarball_is_static_and_of_arm64(run):
    programs = elf_files(top := static_tools(run))
    check_equal([path.name for path in programs], sorted(static.TOOLS), "programs")
    for path in programs:
        check_machine(path)
        check("INTERP" not in readelf("-l", path) and "NEEDED" not in readelf("-d", path), f"{path.name} loads libraries")
        check(debs.PLACE.encode() not in path.read_bytes(), f"{path.name} names the directory that it was built in")
    listed = json.loads((top / "usdt.spdx.json").read_text())
    inside = {each["name"]: each for each in listed["packages"]}
    for relation in listed["relationships"]:
        if relation["relationshipType"] == "STATIC_LINK":
            [each] = [each for each in inside.values() if each["SPDXID"] == relation["relatedSpdxElement"]]
            locator = each["externalRefs"][0]["referenceLocator"]
            check(re.search(r"\?arch=(arm64|all)$", locator), f"{locator} is not of arm64")
    check({"libbpf-dev", "libdw-dev", "libc6-dev", "libzydis-dev"} <= set(inside), f"{sorted(inside)}")
    for name in set(inside) - {"usdt-tools"}:
        check((top / f"LICENSES/{name}.txt").exists(), f"the licence of {name}")


@scenario
def manual_pages_are_those_of_the_tools_themselves(run):
    """They were written by tools of this machine; those of arm64 say the same."""
    top = static_tools(run)
    system = System(run, top)
    for tool, section in static.TOOLS.items():
        program = top / "bin" / tool
        check_equal(system.emulated(program, "--manual"), (top / f"share/man/man{section}/{tool}.{section}").read_text(), tool)
        completions = (top / f"share/bash-completion/completions/{tool}").read_text()
        check_equal(system.emulated(program, "--completion bash"), completions, f"completions of {tool}")
        check(tool in (said := system.emulated(program, "--version")), said)


@scenario
def static_tools_list_what_the_tools_of_this_machine_list(run):
    top, python = static_tools(run), program_of_debian(run)
    native = unpacked(run, package(NATIVE, "usdt-tools"))
    system = System(run, top, native, python.parent)
    system("apt-get -qq -y --no-install-recommends install libdw1 libelf1 libzstd1 libfmt9 libbpf1 libzydis4.0")
    check_equal(system.emulated(top / "bin/usdt-list", python), system(f"{native}/usr/bin/usdt-list {python}"), "text")
    listed = sites(system.emulated(top / "bin/usdt-list", f"--format json {python}"))
    check_equal(listed, sites(system(f"{native}/usr/bin/usdt-list --format json {python}")), "JSON")
    of_readelf = [(note.provider, note.name, note.pc) for note in elf_view.notes(python)]
    check(len(of_readelf) > 5, f"{len(of_readelf)} notes")
    check_equal(sorted((site["provider"], site["name"], int(site["pc"], 16)) for site in listed), sorted(of_readelf), "sites")


@scenario
def packages_of_arm64_have_what_those_of_this_machine_have(run):
    """The same files in the directories of arm64, and the same needs."""
    for name in (*RUNS, "libusdt-dev", "libusdt-provider-dev"):
        pair = []
        for deb, triple in ((package(PACKAGES, name), ARM64.triple), (package(NATIVE, name), r"x86_64-linux-gnu")):
            directory = unpacked(run, deb)
            pair.append(({re.sub(triple, "TRIPLE", str(path.relative_to(directory))) for path in directory.rglob("*")},
                         re.findall(r"(?:^|, )([\w.+-]+)", chroot.run(["dpkg-deb", "-f", deb, "Depends"]))))
            if deb.parent == PACKAGES:
                check_equal(chroot.run(["dpkg-deb", "-f", deb, "Architecture"]).strip(), "arm64", name)
                for path in elf_files(directory):
                    check_machine(path)
        (files, needs), (native_files, native_needs) = pair
        check_equal(sorted(files ^ native_files), [], f"files of {name}")
        check_equal(sorted(needs), sorted(native_needs), f"what {name} depends on")


@scenario
def packages_of_arm64_are_installed_and_run(run):
    python = program_of_debian(run)
    system = System(run, python.parent)
    system("dpkg --add-architecture arm64; apt-get -qq update")
    wanted = " ".join(str(package(PACKAGES, name)) for name in ("usdt-tools", *LIBRARIES))
    system(f"apt-get -qq -y --no-install-recommends install {wanted}")
    check("usdt-trace" in (said := system.emulated("/usr/bin/usdt-trace", "--version")), said)
    listed = system.emulated("/usr/bin/usdt-list", python)
    check(":python:gc__start" in listed, listed)


@scenario
def static_tools_trace_on_a_kernel_of_arm64(run):
    """Each value that a program passes at its probes is shown as the program itself says it, and no hit is lost."""
    require_root()
    kernel = in_guest.kernel("6.1", "arm64", "bookworm", "cloud-arm64")
    (programs := run.dir / "bin").mkdir()
    shutil.copy(static_tools(run) / "bin/usdt-trace", programs)
    shutil.copy(in_guest.build_static_probes(debs.builder(CONTROL, machine=ARM64), run.dir, ARM64.program), programs)
    in_guest.check_traces(kernel, "arm64", [checks.StaticProbes(programs)], run.dir / "out")


if __name__ == "__main__":
    main()
