# SPDX-License-Identifier: BSD-2-Clause
"""A PostgreSQL server of a test's own."""

import contextlib
import glob
import pwd
import shutil
import subprocess

from elf_view import Memory, note
from harness import Skip, check, require_file, require_program, require_root, wait_until

VERSIONS = "/usr/lib/postgresql/*/bin"
POSTGRES_BIN = max(glob.glob(VERSIONS), key=lambda path: int(path.split("/")[-2]), default=VERSIONS)  # the newest


def unprivileged_user():
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise Skip("no user postgres or nobody to run the server as")


class Postgres:
    """A server of its own in the scratch directory: unix socket only, gone with the scenario."""

    def __init__(self, run, *settings):
        require_root()
        require_file(f"{POSTGRES_BIN}/postgres")
        require_program("runuser")
        self.run, self.user, self.dir = run, unprivileged_user(), run.dir
        shutil.chown(self.dir, self.user)
        self._as_user("initdb", "-D", self.dir / "data", "-U", "tester", "-A", "trust", "-N", "--no-instructions")
        usual = ["listen_addresses=", f"unix_socket_directories={self.dir}", "log_checkpoints=on", "fsync=off",
                 "shared_buffers=1234kB", "autovacuum=off", "checkpoint_timeout=1h"]
        options = " ".join(f"-c {setting}" for setting in [*usual, *settings])
        self.log = self.dir / "server.log"
        self._as_user("pg_ctl", "-D", self.dir / "data", "-w", "-t", 60, "-l", self.log, "-o", options, "start")
        self.pid = int((self.dir / "data/postmaster.pid").read_text().split()[0])

    def _as_user(self, program, *words):
        argv = ["runuser", "-u", self.user, "--", f"{POSTGRES_BIN}/{program}", *[str(word) for word in words]]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, cwd=self.dir)
        check(done.returncode == 0, f"{argv}\n{done.stdout}")
        return done.stdout

    def sql(self, *statements):
        """Sends each statement as a query of its own; returns the unaligned output."""
        words = [word for statement in statements for word in ("-c", statement)]
        return self._as_user("psql", "-h", self.dir, "-U", "tester", "-d", "postgres", "-XAtq", *words).strip()

    def session(self):
        """A client that takes statements from its standard input."""
        argv = ["runuser", "-u", self.user, "--", f"{POSTGRES_BIN}/psql", "-h", self.dir, "-U", "tester", "-d", "postgres", "-XAtq"]
        return self.run.adopt(subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                               bufsize=1, cwd=self.dir))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._as_user("pg_ctl", "-D", self.dir / "data", "-m", "immediate", "-w", "stop")

    def wait_semaphore(self, name):
        memory, site = Memory(self.pid, f"{POSTGRES_BIN}/postgres"), note(f"{POSTGRES_BIN}/postgres", name)
        wait_until(lambda: memory.semaphore(site) == 1, f"semaphore of {name} up in the running server")
        return lambda: memory.semaphore(site)
