#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of docs/pictures: pages of a small server that is traced, as a browser shows them (./run pictures)."""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from browser import Page  # noqa: E402

PICTURES = pathlib.Path(__file__).resolve().parents[3] / "docs/pictures"
SERVER = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct request { int kind; const char *user; };
static void spin(long times) { for (volatile long i = 0; i < times; i++) {} }
__attribute__((noipa)) int parse(const struct request *req) { spin(4000 + req->kind * 7919 % 9000); return req->kind; }
__attribute__((noipa)) int query(const struct request *req) { usleep(req->kind % 9 == 0 ? 2500 : 150 + req->kind * 31 % 400); return 0; }
__attribute__((noipa)) int render(const struct request *req) { spin(9000); return query(req); }
__attribute__((noipa)) int handle(const struct request *req) { return parse(req) + query(req) + render(req); }
static void *serve(void *user) {
  for (int kind = 0; kind < 1500; kind++) {
    struct request req = {kind % 40, user};
    handle(&req);
    if (kind == 900) usleep(150000);
  }
  return NULL;
}
int main(void) {
  static const char *const users[] = {"ada", "grace", "linus"};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, serve, (void *)users[i]);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  return 0;
}
"""


def main(tool):
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="usdt-pictures-") as home:
        home = pathlib.Path(home)
        (home / "server.c").write_text(SERVER)
        subprocess.run(["gcc", "-O1", "-g", "-o", "server", "server.c", "-pthread"], cwd=home, check=True)
        subprocess.run([tool, *(f"ucall:./server:{name}" for name in ("handle", "parse", "query", "render")), "--print",
                        "req->kind, str(req->user), retval", "--ustack", "--ring-size", "256", "-f", "json", "-o", "/dev/null", "--export", "report=report.html",
                        "--export", "flame=flame.html", "--", "./server"], cwd=home, check=True)
        for name, height in (("report", 1180), ("flame", 290)):
            page = Page(home / f"{name}.html", width=1000, height=height)
            page.picture(PICTURES / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
