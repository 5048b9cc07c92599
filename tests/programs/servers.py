# SPDX-License-Identifier: BSD-2-Clause
"""Servers of a test's own besides PostgreSQL: in the scratch directory, by unix sockets alone, gone with the scenario."""

import os
import pwd
import re
import shutil
import subprocess

from harness import Skip, check, require_program, require_root, wait_until


def require_version(program, version):
    """Presets that were tried with one version may not be right about another."""
    require_program(program)
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    if f" {version}." not in said:
        raise Skip(f"{program} {version} is not installed, but {said}")


class Server:
    """One that runs `argv`, and is there when `socket` is."""

    def __init__(self, run, argv, socket, **popen):
        self.dir, self.socket, self.log = run.dir, socket, run.dir / "server.log"
        with open(self.log, "wb") as log:
            self.process = run.start(*argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=run.dir, **popen)
        self.pid = self.process.pid
        wait_until(lambda: socket.exists() or self.process.poll() is not None, f"{socket.name}")
        check(self.process.poll() is None, f"{argv[0]} ended: {self.log.read_text()[-2000:]}")

    def ask(self, *words, text=None, may_fail=False, **how):
        """What a client prints."""
        done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=60, cwd=self.dir, **how)
        check(done.returncode == 0 or may_fail, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


class Redis(Server):
    """Of the package redis-tools alone, whose redis-check-rdb is a server under that name, too."""

    def __init__(self, run):
        require_root()
        require_program("redis-check-rdb")
        require_version("redis-cli", "7.0")
        os.symlink(shutil.which("redis-check-rdb"), run.dir / "redis-server")
        super().__init__(run, [run.dir / "redis-server", "--port", "0", "--unixsocket", run.dir / "redis.sock", "--save", "", "--dir", run.dir,
                               "--enable-debug-command", "yes"], run.dir / "redis.sock")

    def commands(self, *lines):
        return self.ask("redis-cli", "-s", self.socket, text="".join(f"{line}\n" for line in lines))

    def statistics(self, section, pattern):
        """{what the first group of the pattern matches: the others} of a section of INFO."""
        found = re.findall(pattern, self.commands(f"info {section}"))
        return {name: tuple(map(int, numbers)) for name, *numbers in found}


class Nginx(Server):
    """One process; `locations` is what its only host has besides its files, which are in `files`."""

    def __init__(self, run, locations):
        require_root()
        require_program("nginx", "curl")
        self.files, self.access_log = run.dir / "files", run.dir / "access.log"
        self.files.mkdir()
        temporary = "".join(f"{kind}_temp_path {run.dir}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        settings = run.dir / "nginx.conf"
        settings.write_text(f"daemon off; master_process off; pid {run.dir}/nginx.pid; error_log {run.dir}/error.log; events {{}}\n"
                            f"http {{ access_log {self.access_log}; {temporary}\n"
                            f"server {{ listen unix:{run.dir}/nginx.sock; root {self.files}; {locations} }} }}\n")
        super().__init__(run, ["nginx", "-c", settings, "-p", run.dir, "-e", run.dir / "error.log"], run.dir / "nginx.sock")

    def get(self, *paths):
        """Each by a connection of its own."""
        for path in paths:
            self.ask("curl", "-s", "-o", "/dev/null", "--unix-socket", self.socket, f"http://shop{path}")

    def served(self):
        """The lines of its log: (request, status)."""
        return re.findall(r'"(\S+ \S+) HTTP/\S+" (\d+)', self.access_log.read_text())


class MariaDb(Server):
    """Without the tables that know of users, which need not be made then."""

    def __init__(self, run):
        require_root()
        require_program("mariadb")
        require_version("mariadbd", "10.11")
        data = run.dir / "data"
        data.mkdir()
        super().__init__(run, ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={run.dir}/maria.sock", "--skip-networking",
                               "--skip-grant-tables", f"--pid-file={run.dir}/maria.pid", "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M",
                               "--innodb-data-file-path=ibdata1:2M:autoextend", "--innodb-undo-tablespaces=0", "--use-stat-tables=never"], run.dir / "maria.sock")

    def client(self, *options):
        return ["mariadb", "--no-defaults", "-S", str(self.socket), "-nBN", *options]

    def sql(self, *statements, database="", may_fail=False):
        return self.ask(*self.client(database) if database else self.client(), text="".join(f"{each};\n" for each in statements), may_fail=may_fail)


class Libvirt(Server):
    """A daemon of a user's own, and a machine without disks that QEMU emulates."""

    MACHINE = ("<domain type='qemu'><name>shop</name><memory unit='MiB'>32</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type>"
               "</os><devices><emulator>{}</emulator></devices></domain>")

    def __init__(self, run):
        require_root()
        require_program("virsh", "setpriv", "qemu-system-x86_64")
        require_version("libvirtd", "9.0")
        user = pwd.getpwnam("nobody")
        home = run.dir / "home"
        home.mkdir()
        os.chown(home, user.pw_uid, user.pw_gid)
        run.dir.chmod(0o755)
        places = {name: str(home) for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
        self.environment = {"PATH": os.environ["PATH"], **places}
        self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        super().__init__(run, [*self.as_user, shutil.which("libvirtd")], home / "libvirt/libvirt-sock", env=self.environment)
        machine = home / "machine.xml"
        machine.write_text(self.MACHINE.format(shutil.which("qemu-system-x86_64")))
        self.virsh("create", machine)

    def virsh(self, *words, may_fail=False):
        return self.ask(*self.as_user, "virsh", "-c", "qemu:///session", *words, env=self.environment, may_fail=may_fail)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.virsh("destroy", "shop")
