# SPDX-License-Identifier: BSD-2-Clause
"""Debian in a directory, made by debootstrap from the mirror that this machine is configured with: what packages are built in,
and installed in. Root only. Nothing stays mounted: each command has mounts of its own."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOME = ROOT / "build/package"
sys.path.insert(0, str(ROOT / "tests/vm"))

import debian  # noqa: E402

# What a command sees of the machine: its processes, and the kernel that it traces with. The directory is the root of all its
# mounts, since within chroot(2) alone the kernel makes no user namespace.
MOUNTS = """
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do mkdir -p "$root$2"; mount --bind "$1" "$root$2"; shift 2; done
shift
cd "$root"
pivot_root . .
umount -l .
exec chroot . "$@"
"""
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
INSTALL = ("apt-get", "-qq", "-y", "--no-install-recommends", "install")
# dpkg need not wait for the disk here. Lists of a mirror that stands still are as good, and signed.
DPKG = "force-unsafe-io\n"
APT = 'Acquire::Check-Valid-Until "false";\nAcquire::Retries "3";\nAcquire::Languages "none";\n'


class Failed(Exception):
    """A command failed; the text has the end of what it said."""


def run(argv, **options):
    done = subprocess.run([str(word) for word in argv], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace", **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, argv))}\nended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


@functools.cache
def sources(suite):
    """Lines for apt: those of this machine's own suite with its updates; of another one the release."""
    lines = run(["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages",
                 "Origin: Debian"]).splitlines()
    own = sorted({line for line in lines if line.split()[2].startswith(suite)})
    return own or [f"deb {debian.mirror()} {suite} main"]


class Chroot:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def argv(self, *argv, binds=(), env=()):
        """The words that run a command there. binds: (directory here, directory there)."""
        bound = [str(word) for pair in binds for word in pair]
        variables = [f"{name}={value}" for name, value in {**ENVIRONMENT, **dict(env)}.items()]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", f'root="{self.root}"{MOUNTS}', "chroot", *bound, "--",
                "env", "-i", *variables, *map(str, argv)]

    def run(self, *argv, binds=(), env=()):
        proxies = {name: os.environ[name] for name in PROXIES if name in os.environ}
        return run(self.argv(*argv, binds=binds, env={**proxies, **dict(env)}))

    def install(self, *packages):
        self.run(*INSTALL, *packages)

    def copy(self, root):
        """Another one that is as this one is now."""
        root = pathlib.Path(root)
        remove(root)
        run(["cp", "-a", "--reflink=auto", self.root, root])
        return Chroot(root)


def compiler_cache():
    """Where this machine's compiler cache is, and the variables by which CMake uses it; nothing where there is none."""
    if shutil.which("ccache") is None:
        return (), {}
    directory = subprocess.run(["ccache", "-k", "cache_dir"], capture_output=True, text=True, check=True).stdout.strip()
    os.makedirs(directory, exist_ok=True)
    variables = {"CCACHE_DIR": "/ccache", "CCACHE_NOHASHDIR": "true", "CMAKE_C_COMPILER_LAUNCHER": "ccache",
                 "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
    return ((directory, "/ccache"),), variables


def remove(root):
    if pathlib.Path(root).exists():
        run(["rm", "-rf", "--one-file-system", root])


def base(suite):
    """The smallest system of a suite that can install packages; made once, and kept."""
    made = Chroot(HOME / "chroots" / suite)
    if (made.root / "made").exists():
        return made
    remove(made.root)
    made.root.parent.mkdir(parents=True, exist_ok=True)
    run(["debootstrap", "--variant=minbase", suite, made.root, debian.mirror()])
    (made.root / "etc/apt/sources.list").write_text("\n".join(sources(suite)) + "\n")
    (made.root / "etc/apt/apt.conf.d/90package").write_text(APT)
    (made.root / "etc/dpkg/dpkg.cfg.d/90package").write_text(DPKG)
    shutil.copy("/etc/resolv.conf", made.root / "etc/resolv.conf")
    made.run("apt-get", "-qq", "update")
    made.run("apt-get", "-qq", "-y", "upgrade")
    made.run("apt-get", "clean")
    (made.root / "made").touch()
    return made
