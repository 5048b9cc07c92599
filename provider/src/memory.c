/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3: without it vm.memfd_noexec decides */
#endif

/* Past RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends programs. */
static int exceeds_limit(size_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

static int make_memfd(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* A file that goes with its last descriptor and mapping, also where the process is killed. */
static int make_unnamed(const char* directory) {
  int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s/usdt-XXXXXX", directory);
  if (length < 0 || (size_t)length >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) (void)unlink(path);
  return fd;
}

/* Never 0, 1 or 2: a program that has closed them prints into whatever file is there. */
static int behind_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int reason = errno == EINVAL ? EMFILE : errno; /* EINVAL: there may be no such descriptor (RLIMIT_NOFILE) */
  (void)close(fd);
  errno = reason;
  return moved;
}

static int map_part(const struct usdtp_memory* memory, size_t from, size_t to, int protection) {
  void* there = mmap(memory->address + from, to - from, protection, MAP_PRIVATE | MAP_FIXED, memory->fd, (off_t)from);
  return there == MAP_FAILED ? -errno : 0;
}

/* The kernel counts tracers in the data: a private mapping of the file that can be written is where it looks for them.
 */
static int map_parts(const struct usdtp_memory* memory) {
  const struct usdtp_layout* layout = &memory->layout;
  int status = map_part(memory, layout->text, layout->data, PROT_READ | PROT_EXEC);
  if (status == 0) status = map_part(memory, 0, layout->text, PROT_READ);
  if (status == 0) status = map_part(memory, layout->data, layout->notes, PROT_READ | PROT_WRITE);
  return status;
}

int usdtp_memory_write(const struct usdtp_memory* memory, size_t offset, const struct usdtp_bytes* bytes) {
  if (bytes->failed) return -ENOMEM;
  if (exceeds_limit(offset + bytes->size)) return -EFBIG;
  for (size_t done = 0; done < bytes->size;) {
    const ssize_t n = pwrite(memory->fd, bytes->data + done, bytes->size - done, (off_t)(offset + done));
    if (n < 0 && errno != EINTR) return -errno;
    if (n == 0) return -EIO;
    if (n > 0) done += (size_t)n;
  }
  return 0;
}

/*
 * There is room for all of the file, or none is made: where a file system is full, the first write to a mapping of what
 * it has no room for ends a program with SIGBUS. What else may be said here, as by a filter of system calls, is no
 * reason.
 */
static int reserve(const struct usdtp_memory* memory) {
  if (exceeds_limit(memory->layout.notes)) return -EFBIG;
  if (ftruncate(memory->fd, (off_t)memory->layout.notes) != 0) return -errno;
  const int reserved = posix_fallocate(memory->fd, 0, (off_t)memory->layout.notes);
  return reserved == ENOSPC || reserved == EDQUOT ? -reserved : 0;
}

/* The text is there from the beginning, so that no order of events leads a thread to where none is. */
static int fill(const struct usdtp_memory* memory) {
  const struct usdtp_layout* layout = &memory->layout;
  struct usdtp_bytes text = {0};
  const int reserved = reserve(memory);
  if (reserved != 0) return reserved;
  usdtp_put_stubs(&text, (layout->data - layout->text) / USDTP_STUB_SIZE);
  const int status = usdtp_memory_write(memory, layout->text, &text);
  free(text.data);
  return status;
}

static int remember(struct usdtp_memory* memory, int fd) {
  struct stat status;
  memory->fd = fd;
  if (fstat(fd, &status) != 0) return -errno;
  memory->device = status.st_dev;
  memory->inode = status.st_ino;
  return 0;
}

int usdtp_memory_is_open(const struct usdtp_memory* memory) {
  struct stat status;
  return memory->fd >= 0 && fstat(memory->fd, &status) == 0 && status.st_dev == memory->device &&
         status.st_ino == memory->inode;
}

/* Fills the file and maps it. */
static int lay_out(struct usdtp_memory* memory, int fd) {
  const size_t size = memory->layout.notes;
  const int remembered = remember(memory, fd);
  if (remembered != 0) return remembered;
  const int filled = fill(memory);
  if (filled != 0) return filled;
  void* there = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (there == MAP_FAILED) return -errno;
  memory->address = there;
  const int status = map_parts(memory);
  if (status != 0) (void)munmap(there, size);
  return status;
}

/* Tries the file `opened`, which is closed if it cannot be used, or takes what errno says. */
static int try_file(struct usdtp_memory* memory, int opened) {
  const int fd = behind_standard(opened);
  if (fd < 0) return -errno;
  const int status = lay_out(memory, fd);
  if (status == 0) return 0;
  (void)close(fd);
  memory->fd = -1;
  memory->address = NULL;
  return status;
}

/* Whether it is an outcome that trying another file would not change. */
static int is_final(int status) { return status == 0 || status == -ENOMEM || status == -EMFILE || status == -EFBIG; }

int usdtp_memory_make(struct usdtp_memory* memory, const char* name, size_t pages) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  memory->layout.page = page;
  memory->layout.text = page;
  memory->layout.data = page + pages * page;
  memory->layout.notes = page + 2 * pages * page;
  int status = try_file(memory, make_memfd(name));
  const char* const directories[] = {secure_getenv("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp"};
  for (size_t i = 0; i < sizeof directories / sizeof directories[0] && !is_final(status); ++i)
    if (directories[i] && directories[i][0] == '/') status = try_file(memory, make_unnamed(directories[i]));
  return status;
}

/* Moves part `i` of one memory to its place in another one; the parts of a file are three. */
static int move_part(const struct usdtp_memory* from, const struct usdtp_memory* to, int i) {
  const size_t bounds[] = {0, from->layout.text, from->layout.data, from->layout.notes};
  const size_t size = bounds[i + 1] - bounds[i];
  void* old = from->address + bounds[i];
  return mremap(old, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to->address + bounds[i]) == MAP_FAILED ? -errno : 0;
}

int usdtp_memory_part(struct usdtp_memory* memory, const char* name) {
  struct usdtp_memory other = {0};
  const struct usdtp_layout* layout = &memory->layout;
  int status = usdtp_memory_make(&other, name, (layout->data - layout->text) / layout->page);
  if (status != 0) return status;
  memcpy(other.address + layout->data, memory->address + layout->data, layout->notes - layout->data);
  int moved = 0;
  while (moved < 3 && (status = move_part(&other, memory, moved)) == 0) ++moved;
  if (moved == 3) {
    usdtp_memory_close(memory);
    memory->fd = other.fd;
    return 0;
  }
  /* The parts are alike: some of the one file and some of the other are as good until it is tried again. */
  const size_t left = moved == 0 ? 0 : moved == 1 ? layout->text : layout->data;
  (void)munmap(other.address + left, layout->notes - left);
  usdtp_memory_close(&other);
  return status;
}

/* Stubs and zeroes for text and data, as one mapping that takes their place at once. */
static int hide(struct usdtp_memory* memory, const struct usdtp_memory* other) {
  const struct usdtp_layout* layout = &memory->layout;
  const size_t size = layout->notes - layout->text;
  void* there = mmap(other->address + layout->text, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, other->fd,
                     (off_t)layout->text);
  if (there == MAP_FAILED) return 0;
  return mremap(there, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory->address + layout->text) != MAP_FAILED;
}

void usdtp_memory_hide(struct usdtp_memory* memory, const char* name) {
  struct usdtp_memory other = {0};
  const struct usdtp_layout* layout = &memory->layout;
  if (usdtp_memory_make(&other, name, (layout->data - layout->text) / layout->page) == 0) {
    if (hide(memory, &other)) {
      (void)munmap(memory->address, layout->text);
      (void)munmap(other.address, layout->text);
    } else {
      (void)munmap(other.address, layout->notes);
    }
    usdtp_memory_close(&other);
  }
  usdtp_memory_close(memory);
}

void usdtp_memory_finish(struct usdtp_memory* memory) {
  char path[32];
  /* The kernel reports mappings of code to tracers: by this one they learn that the file has its notes now. */
  void* again =
      mmap(NULL, memory->layout.page, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory->fd, (off_t)memory->layout.text);
  if (again != MAP_FAILED) (void)munmap(again, memory->layout.page);
  (void)fcntl(memory->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* memfds alone */
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", memory->fd);
  const int reader = behind_standard(open(path, O_RDONLY | O_CLOEXEC));
  if (reader < 0) return; /* where there is no /proc, tools see nothing of the process anyway */
  (void)close(memory->fd);
  memory->fd = reader;
}

void usdtp_memory_close(struct usdtp_memory* memory) {
  if (usdtp_memory_is_open(memory)) (void)close(memory->fd);
  memory->fd = -1;
}
