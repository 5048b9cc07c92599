# SPDX-License-Identifier: BSD-2-Clause
"""Files out of Debian packages of any suite and architecture, kept in a cache; nothing is installed.

apt is run with lists and a configuration of its own, so the machine's stays as it is and its signatures are checked.
"""

import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "usdt-vm"
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LISTS_LAST = 10 * 3600  # seconds; sid's pool drops a package soon after the list that names it
TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "i386": "i386-linux-gnu"}
MODULES = ("dummy",)
# What the project is built and linked against; HEADERS are headers only, which the machine has.
SYSROOT = """libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 libgcc-12-dev libstdc++6 libstdc++-12-dev libbpf-dev
             libelf-dev libdw-dev libiberty-dev liblzma-dev libseccomp2 libseccomp-dev libzstd-dev libbz2-dev zlib1g-dev libfmt-dev libgtest-dev libgmock-dev libexpected-dev
             libcli11-dev libprotozero-dev rapidjson-dev""".split()

HEADERS = ("boost", "toml++")


class Unavailable(Exception):
    """The distribution does not offer it, or cannot be reached; the text says what."""


def mirror():
    """The one this machine is configured with."""
    if os.environ.get("USDT_VM_MIRROR"):
        return os.environ["USDT_VM_MIRROR"]
    if shutil.which("apt-get") is None:
        raise Unavailable("no apt-get on this machine")
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian", "Created-By: Packages"]
    lines = subprocess.run(argv, capture_output=True, text=True).stdout.split()
    if not lines:
        raise Unavailable("apt has no Debian mirror here; set USDT_VM_MIRROR")
    return lines[0]


class Archive:
    """One suite for one architecture."""

    def __init__(self, suite, arch):
        self.suite, self.arch = suite, arch
        self.dir = CACHE / "apt" / f"{suite}-{arch}"
        self.env = {**os.environ, "APT_CONFIG": str(self.dir / "conf")}
        self._configure()
        fresh = [path for path in (self.dir / "lists").glob("*_Packages*")
                 if time.time() - path.stat().st_mtime < LISTS_LAST]
        if not fresh:
            self._run("apt-get", "-qq", "update")

    def _configure(self):
        for name in ("lists/partial", "archives/partial"):
            (self.dir / name).mkdir(parents=True, exist_ok=True)
        (self.dir / "status").touch()
        (self.dir / "list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {self.suite} main\n")
        # Mirrors of one day stand still: their lists are as good for this, and signed.
        (self.dir / "conf").write_text(f'''
Acquire::Check-Valid-Until "false"; Acquire::Retries "3";
Dir::State "{self.dir}"; Dir::State::status "{self.dir}/status"; Dir::Cache "{self.dir}";
Dir::Etc::sourcelist "{self.dir}/list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none"; APT::Architecture "{self.arch}"; APT::Architectures {{ "{self.arch}"; }};
APT::Sandbox::User "root"; APT::Update::Error-Mode "any";
''')

    def _run(self, *argv, cwd=None):
        done = subprocess.run(argv, capture_output=True, text=True, env=self.env, cwd=cwd)
        if done.returncode != 0:
            raise Unavailable(f"{self.suite} {self.arch}: {' '.join(argv[:3])}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def names(self, prefix):
        return self._run("apt-cache", "pkgnames", prefix).split()

    def version(self, package):
        return re.search(r"^Version: (.*)", self._run("apt-cache", "show", package), re.M)[1]

    def download(self, packages, directory):
        self._run("apt-get", "-qq", "download", *packages, cwd=directory)
        return sorted(pathlib.Path(directory).glob("*.deb"))


def _natural(text):
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", text)]


def unpack(debs, directory):
    for deb in debs:
        subprocess.run(["dpkg-deb", "-x", str(deb), str(directory)], check=True)


def _decompress(path):
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], check=True, capture_output=True).stdout
    return path.read_bytes()


# --- kernels --------------------------------------------------------------------------------------------------------


def kernel(name, arch, suite, flavour):
    """The directory of a kernel: `vmlinuz`, `version` and the modules."""
    home = CACHE / f"{name}-{arch}"
    wanted = ["vmlinuz", "version", *[f"{module}.ko" for module in MODULES]]
    if not all((home / file).exists() for file in wanted):
        _get_kernel(Archive(suite, arch), flavour, home)
    return home


def _get_kernel(archive, flavour, home):
    # Since 7.x the image is in linux-binary-* and the modules are in linux-modules-*; before, linux-image-* had both.
    pattern = re.compile(rf"linux-(?:image|binary)-(\d.*-{flavour})$")
    names = archive.names("linux-")
    releases = [found[1] for found in map(pattern.match, names) if found and "-rt-" not in found[1]]
    if not releases:
        raise Unavailable(f"{archive.suite} {archive.arch} has no linux-image-*-{flavour}")
    release = max(releases, key=_natural)
    packages = [f"linux-{kind}-{release}" for kind in ("binary", "modules")]
    packages = [name for name in packages if name in names] or [f"linux-image-{release}"]
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        scratch = pathlib.Path(scratch)
        unpack(archive.download(packages, scratch), scratch / "root")
        images = list(scratch.glob("root/**/vmlinuz*"))
        if not images:
            raise Unavailable(f"no vmlinuz in {' '.join(packages)}")
        home.mkdir(exist_ok=True)
        for module in MODULES:
            found = list(scratch.glob(f"root/**/{module}.ko*"))
            if not found:
                raise Unavailable(f"no {module}.ko in {' '.join(packages)}")
            (home / f"{module}.ko").write_bytes(_decompress(found[0]))
        (home / "version").write_text(archive.version(packages[0]) + "\n")
        shutil.copyfile(images[0], home / "vmlinuz.new")
        (home / "vmlinuz.new").rename(home / "vmlinuz")
    print(f"vm: {home.name}: {' '.join(packages)} {(home / 'version').read_text().strip()}", flush=True)


def busybox(arch):
    """A static busybox for an architecture."""
    path = CACHE / f"busybox-{arch}"
    if not path.exists():
        archive = Archive("bookworm", arch)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            scratch = pathlib.Path(scratch)
            unpack(archive.download(["busybox-static"], scratch), scratch / "root")
            shutil.move(scratch / "root/bin/busybox", path)
    return path


# --- sysroots -------------------------------------------------------------------------------------------------------


def sysroot(arch):
    """A directory that --sysroot takes: libraries and headers of another architecture."""
    home = CACHE / f"sysroot-{arch}"
    contents = " ".join(SYSROOT)
    if home.exists() and (home / "contents").read_text() == contents:
        _link_headers(home)
        return home
    archive = Archive("bookworm", arch)
    print(f"vm: making {home}", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        scratch = pathlib.Path(scratch)
        root = scratch / "root"
        unpack(archive.download(SYSROOT, scratch), root)
        _make_links_relative(root)
        _link_headers(root)
        (root / "contents").write_text(contents)
        shutil.rmtree(home, ignore_errors=True)
        root.rename(home)
    return home


def _link_headers(root):
    for name in HEADERS:
        link = root / "usr/include" / name
        if not link.is_symlink():
            link.symlink_to(f"/usr/include/{name}")


def _make_links_relative(root):
    """An absolute link leads out of the sysroot, to this machine's file or to none."""
    for path in root.rglob("*"):
        if path.is_symlink() and path.readlink().is_absolute():
            target = root / str(path.readlink()).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
