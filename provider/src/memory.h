/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a file, mapped as tools expect it of a library: code that can be executed and data of this process alone.
 */
#ifndef USDT_PROVIDER_MEMORY_H
#define USDT_PROVIDER_MEMORY_H

#include <sys/types.h>

#include "image.h"

/* A file without a name, or with one that only /proc shows, and the parts of it that are mapped. */
struct usdtp_memory {
  int fd; /* -1: closed */
  dev_t device;
  ino_t inode;
  struct usdtp_layout layout;
  unsigned char* address; /* of the head; text and data follow as in the file */
};

/*
 * Makes a file with `pages` pages of stubs and as many of data, all zeroes, and maps it. Returns 0 or a negated errno,
 * of usdtp_probe_add(). `name` is shown in /proc/PID/maps.
 */
int usdtp_memory_make(struct usdtp_memory* memory, const char* name, size_t pages);

/*
 * Whether the descriptor is still of the file. A program that becomes a daemon closes all it has, ours among them, and
 * its number may be another file's since: that one is never written to, nor closed.
 */
int usdtp_memory_is_open(const struct usdtp_memory* memory);

/*
 * Puts the data, at its addresses, into another file: for a process whose parent has the first one, too, or that has
 * closed it. If it fails, it can be tried again. Returns 0 or a negated errno.
 */
int usdtp_memory_part(struct usdtp_memory* memory, const char* name);

/* Writes to the file: 0, or a negated errno. */
int usdtp_memory_write(const struct usdtp_memory* memory, size_t offset, const struct usdtp_bytes* bytes);

/* Nobody can write to the file any more, and its descriptor can only read. */
void usdtp_memory_finish(struct usdtp_memory* memory);

/*
 * Nobody finds the file any more: in the place of text and data is one mapping of another file, without notes, with the
 * same stubs and zeroes behind them; the head is gone. A thread may be in a stub meanwhile. Where there is no memory
 * for that, the old ones stay.
 */
void usdtp_memory_hide(struct usdtp_memory* memory, const char* name);

/* Closes the file. Its mappings stay. */
void usdtp_memory_close(struct usdtp_memory* memory);

#endif
