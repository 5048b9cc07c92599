# SPDX-License-Identifier: BSD-2-Clause
"""Machines that packages are built for, named as Debian does. For another one than this they are cross built: the compiler runs
here, the libraries are those of the other machine, and nothing of the other machine is run."""

import dataclasses

import chroot


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str    # dpkg's
    cpu: str     # what `uname -m` says there
    triple: str  # the compiler's
    suite: str   # the distribution that it is built with

    def program(self, name):
        """One of the binutils and compilers that make and read its programs."""
        return f"/usr/bin/{self.triple}-{name}"

    def cmake_settings(self):
        """What dh_auto_configure says of a cross build, for what is built without it."""
        return {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": self.cpu, "CMAKE_C_COMPILER": self.program("gcc"),
                "CMAKE_CXX_COMPILER": self.program("g++"), "PKG_CONFIG_EXECUTABLE": self.program("pkg-config")}


# Debian 12 has no packages for riscv64.
MACHINES = {machine.name: machine for machine in (
    Machine("arm64", "aarch64", "aarch64-linux-gnu", "bookworm"),
    Machine("riscv64", "riscv64", "riscv64-linux-gnu", "trixie"),
)}


def add_option(parser):
    parser.add_argument("--arch", choices=sorted(MACHINES), help="cross builds for another machine")


def chosen(arch):
    """The machine that --arch names; None: this one."""
    if arch is None or arch == chroot.run(["dpkg", "--print-architecture"]).strip():
        return None
    return MACHINES[arch]


def output(name, machine):
    """Where what is built for a machine goes, unless told."""
    return chroot.HOME / (name if machine is None else f"{name}-{machine.name}")
