/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that becomes another user's, and its own user's again, while it passes a probe of a shared library
 * (hits.c). It obeys orders, each a line of standard input, and answers each with a line.
 *     fire:N        N hits, hit(FIRST + n), where FIRST is the second number of the order: fire:N:FIRST
 *     exec:PATH     executes PATH, which goes on answering
 *     become:UID    setresuid(UID, UID, UID)
 *     protect:N     prctl(PR_SET_DUMPABLE, N)
 *     fork:N:FIRST  fires in a forked child
 *     who:0         answers with "UID EUID" */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void fire_hits(long count, long first);

static void fire_forked(long count, long first) {
  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    fire_hits(count, first);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void execute(char* path) {
  char* const argv[] = {path, "again", NULL};
  execv(path, argv);
  abort();
}

static void obey(char* line) {
  char* word = strchr(line, ':');
  if (!word) exit(64);
  *word++ = '\0';
  word[strcspn(word, "\n")] = '\0';
  char* end = word;
  const long first = strtol(word, &end, 10);
  const long second = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
  if (!strcmp(line, "fire"))
    fire_hits(first, second);
  else if (!strcmp(line, "fork"))
    fire_forked(first, second);
  else if (!strcmp(line, "exec"))
    execute(word);
  else if (!strcmp(line, "become") && setresuid((uid_t)first, (uid_t)first, (uid_t)first) != 0)
    abort();
  else if (!strcmp(line, "protect") && prctl(PR_SET_DUMPABLE, first, 0, 0, 0) != 0)
    abort();
  printf("%u %u\n", getuid(), geteuid());
  fflush(stdout);
}

int main(int argc, char** argv) {
  (void)argv;
  char line[512];
  setvbuf(stdin, NULL, _IONBF, 0);
  if (argc > 1) {
    printf("%u %u\n", getuid(), geteuid()); /* of exec */
    fflush(stdout);
  }
  while (fgets(line, sizeof(line), stdin)) obey(line);
  return 0;
}
