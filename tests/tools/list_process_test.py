# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list -p: the files that processes run, deleted and hidden ones too."""

import os
import shutil
import subprocess
import unittest

import tool
from tool import usdt_list, usdt_list_json

SOURCE = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) { puts("ready"); fflush(stdout); for (;;) pause(); }
"""


class Process(tool.TempDirCase):
    """Each test runs a copy of one program: a C program with the notes of a listing-only binary linked in."""

    def program(self, name="program", sites=(("app", "start", "8@%rdi"), ("app", "stop", ""))):
        notes = tool.Binary.source(sites).replace(".globl _start\n_start:", ".globl notes\nnotes:")
        self.write("notes.s", notes)
        self.write("main.c", SOURCE)
        subprocess.run(["gcc", "-o", self.path(name), self.path("main.c"), self.path("notes.s")], check=True)
        return self.path(name)

    def start(self, *command, **options):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        if process.stdout.readline() != "ready\n":
            self.fail(f"{command} did not start")
        return process.pid

    def test_a_process_lists_the_probes_of_its_files(self):
        program = self.program()
        pid = self.start(program)
        sites = [site for site in usdt_list_json("-p", pid, check=0) if site["provider"] == "app"]
        self.assertEqual([(site["file"], site["name"]) for site in sites], [(program, "start"), (program, "stop")])

    def test_provider_and_name_choose_among_them(self):
        pid = self.start(self.program())
        self.assertEqual([site["name"] for site in usdt_list_json("-p", pid, "app:st?p", check=0)], ["stop"])

    def test_a_target_chooses_among_the_files(self):
        program = self.program()
        pid = self.start(program)
        for target in (program, "program", f"{self.dir}/prog*", self.dir):
            with self.subTest(target):
                self.assertEqual(len(usdt_list_json("-p", pid, target, check=0)), 2)
        result = usdt_list("-p", pid, "/no/such/lib.so", check=1)
        self.assertIn(f"'/no/such/lib.so' is not among the files of process {pid}", result.stderr)

    def test_two_processes_of_one_file_list_it_once(self):
        program = self.program()
        pids = f"{self.start(program)},{self.start(program)}"
        self.assertEqual(len(usdt_list_json("-p", pids, "app:*", check=0)), 2)

    def test_a_deleted_program_has_a_name_that_pastes_back(self):
        program = self.program()
        pid = self.start(program)
        os.remove(program)
        lines = usdt_list("-p", pid, "app:*", check=0).stdout.splitlines()
        self.assertEqual([line.split("\t")[0] for line in lines],
                         [f"usdt:/proc/{pid}/exe:app:start", f"usdt:/proc/{pid}/exe:app:stop"])
        self.assertEqual(usdt_list(lines[0].split("\t")[0], check=0).stdout.splitlines(), lines[:1])
        site = usdt_list_json("-p", pid, "app:start", check=0)[0]
        self.assertEqual((site["mapped_path"], site["deleted"]), (program, True))

    def test_a_replaced_program_lists_what_runs_not_what_is_on_disk(self):
        program = self.program()
        pid = self.start(program)
        os.rename(self.program("next", [("app", "upgraded", "")]), program)
        self.assertEqual({s["name"] for s in usdt_list_json("-p", pid, "app:*", check=0)}, {"start", "stop"})
        self.assertEqual({s["name"] for s in usdt_list_json(program, check=0)}, {"upgraded"})

    def test_a_program_of_another_mount_namespace_is_opened_through_its_root(self):
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("needs root and unshare(1)")
        program = self.program()
        os.mkdir(self.path("mnt"))
        inside = self.path("mnt/program")
        script = f"mount -t tmpfs none {self.path('mnt')} && cp {program} {inside} && exec {inside}"
        pid = self.start("unshare", "-m", "sh", "-c", script)
        lines = usdt_list("-p", pid, "app:*", check=0).stdout.splitlines()
        self.assertEqual(lines[0].split("\t")[0], f"usdt:/proc/{pid}/root{inside}:app:start")
        self.assertEqual(usdt_list(lines[0].split("\t")[0], check=0).stdout.splitlines(), lines[:1])

    def test_without_a_target_every_process_is_looked_at(self):
        self.start(self.program(sites=[("only_in_this_test", "here", "")]))
        self.assertEqual([s["name"] for s in usdt_list_json("only_in_this_test:*", check=0)], ["here"])

    def test_a_process_that_is_gone_is_an_error_and_the_others_are_listed(self):
        with subprocess.Popen(["true"]) as gone:
            pass
        pid = self.start(self.program())
        result = usdt_list("-p", f"{gone.pid},{pid}", "app:*", check=2)
        self.assertEqual(result.stderr, f"usdt-list: no process {gone.pid}\n")
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_without_privilege_it_says_what_would_help(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become another user")
        pid = self.start(self.program())
        result = self.list_as_nobody("-p", str(pid))
        self.assertEqual(result.returncode, 2)
        self.assertIn("run as root or with CAP_SYS_PTRACE", result.stderr)


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
