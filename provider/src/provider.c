/* SPDX-License-Identifier: BSD-2-Clause */
/* Providers and their probes: what is added, shown and retired. */
#include "usdt/provider.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "probe.h"

/* Facts about a probe besides those in its slot. */
struct usdtp_record {
  usdtp_provider* provider;
  struct image* image;
  struct usdtp_slot* slot;
  struct usdtp_arguments arguments;
  const char* items;
  char name[]; /* then the items */
};

/* A file of probes; the last one of a provider takes more until it is published. */
struct image {
  struct image* next; /* made before */
  struct usdtp_memory memory;
  size_t pages; /* of text, and of data */
  size_t room;
  size_t used;
  size_t live; /* used, and not retired */
  int published;
  pid_t owner;    /* only this process may write to it, */
  unsigned forks; /* and only while it has no child that was made since */
};

struct usdtp_provider {
  usdtp_provider* next;
  struct image* images; /* the newest first */
  void* names;          /* tree of records */
  unsigned flags;
  char name[USDTP_MAX_NAME + 1];
};

/*
 * One lock for all: what it guards is rare. Providers are in a list, so that those which somebody forgets are no leaks.
 * What fire.c reads is not under it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static usdtp_provider* providers;

/*
 * Whoever has the lock gives it back: no thread is cancelled in one of the system calls that it makes meanwhile, and no
 * handler of a signal interrupts it, which might call fork() and wait for the lock for ever.
 */
static sigset_t signals_before;
static int cancelled_before;

static void enter(void) {
  sigset_t all;
  sigset_t signals;
  int cancelled;
  (void)sigfillset(&all);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled);
  (void)pthread_sigmask(SIG_BLOCK, &all, &signals);
  (void)pthread_mutex_lock(&lock);
  signals_before = signals;
  cancelled_before = cancelled;
}

static void leave(void) {
  const sigset_t signals = signals_before;
  const int cancelled = cancelled_before;
  (void)pthread_mutex_unlock(&lock);
  (void)pthread_sigmask(SIG_SETMASK, &signals, NULL);
  (void)pthread_setcancelstate(cancelled, NULL);
}

/* A child is not born into the middle of another thread's work. */
static unsigned forks;
static void leave_with_child(void) {
  ++forks;
  leave();
}
__attribute__((constructor)) static void survive_fork(void) { (void)pthread_atfork(enter, leave_with_child, leave); }

/* The probe that usdtp_probe_add() gives if it fails. */
static struct usdtp_slot no_probe;

static int by_name(const void* a, const void* b) {
  return strcmp(((const struct usdtp_record*)a)->name, ((const struct usdtp_record*)b)->name);
}

uint32_t usdtp_version(void) { return USDTP_API_MAJOR << 16 | USDTP_API_MINOR; }

int usdtp_provider_create(const char* name, unsigned flags, usdtp_provider** provider) {
  *provider = NULL;
  if (!usdtp_is_name(name) || (flags & ~(unsigned)USDTP_CLOSE_FILES) != 0) return -EINVAL;
  usdtp_provider* made = calloc(1, sizeof *made);
  if (!made) return -ENOMEM;
  made->flags = flags;
  memcpy(made->name, name, strlen(name));
  enter();
  made->next = providers;
  providers = made;
  leave();
  *provider = made;
  return 0;
}

/* ---- Adding ------------------------------------------------------------------------------------------------------ */

static void file_name(const usdtp_provider* provider, char name[USDTP_MAX_NAME + 8]) {
  (void)snprintf(name, USDTP_MAX_NAME + 8, "usdt-%s", provider->name);
}

/* Twice the size where the one before was full: thousands of probes are a few files. */
static int open_image(usdtp_provider* provider) {
  enum { MOST_PAGES = 32 };
  const struct image* last = provider->images;
  const size_t pages = last && last->used == last->room && last->pages < MOST_PAGES ? 2 * last->pages : 1;
  struct image* made = calloc(1, sizeof *made);
  if (!made) return -ENOMEM;
  char name[USDTP_MAX_NAME + 8];
  file_name(provider, name);
  const int status = usdtp_memory_make(&made->memory, name, pages);
  if (status != 0) {
    free(made);
    return status;
  }
  made->pages = pages;
  made->room = pages * made->memory.layout.page / USDTP_PROBE_SIZE;
  made->owner = getpid();
  made->forks = forks;
  made->next = provider->images;
  provider->images = made;
  return 0;
}

/*
 * After a fork, parent and child have the same file. Probes that are not published yet move to one of their own in
 * whichever goes on with them: they would fill the same places. So do those whose file the program has closed.
 */
static int own_image(const usdtp_provider* provider, struct image* image) {
  const int is_own = image->owner == getpid() && image->forks == forks && usdtp_memory_is_open(&image->memory);
  if (image->published || is_own) return 0;
  char name[USDTP_MAX_NAME + 8];
  file_name(provider, name);
  const int status = usdtp_memory_part(&image->memory, name);
  if (status != 0) return status;
  image->owner = getpid();
  image->forks = forks;
  return 0;
}

static int image_with_room(usdtp_provider* provider) {
  struct image* last = provider->images;
  if (!last || last->published || last->used == last->room) return open_image(provider);
  return own_image(provider, last);
}

static struct usdtp_slot* slot_at(const struct image* image, size_t slot) {
  return (struct usdtp_slot*)(void*)(image->memory.address + image->memory.layout.data + slot * USDTP_PROBE_SIZE);
}

static void fill_slot(struct image* image, struct usdtp_record* record) {
  const size_t number = image->used++;
  ++image->live;
  struct usdtp_slot* slot = slot_at(image, number);
  slot->count = record->arguments.count;
  memcpy(slot->types, record->arguments.types, sizeof slot->types);
  slot->record = record;
  record->slot = slot;
  record->image = image;
  unsigned char* stub = image->memory.address + image->memory.layout.text + number * USDTP_STUB_SIZE;
  __atomic_store_n(&slot->stub, (void*)stub, __ATOMIC_RELEASE);
}

/* Under the lock: everything that can fail, then what cannot. */
static int add(usdtp_provider* provider, struct usdtp_record* record) {
  struct usdtp_record** there = tsearch(record, &provider->names, by_name);
  if (!there) return -ENOMEM;
  if (*there != record) return -EEXIST;
  const int status = image_with_room(provider);
  if (status != 0)
    (void)tdelete(record, &provider->names, by_name);
  else
    fill_slot(provider->images, record);
  return status;
}

/* Reads a declaration: NULL and a negated errno in `status` where it is none. */
static struct usdtp_record* make_record(usdtp_provider* provider, const char* name, const char* arguments,
                                        int* status) {
  *status = -EINVAL;
  if (!usdtp_is_name(name) || !arguments) return NULL;
  const size_t name_size = strlen(name) + 1;
  const size_t length = strnlen(arguments, USDTP_MAX_DECLARATION + 1);
  if (length > USDTP_MAX_DECLARATION) return NULL;
  struct usdtp_record* record = calloc(1, sizeof *record + name_size + length + 1);
  *status = record ? 0 : -ENOMEM;
  if (!record) return NULL;
  record->provider = provider;
  memcpy(record->name, name, name_size);
  record->items = record->name + name_size;
  *status = usdtp_read_arguments(arguments, &record->arguments, record->name + name_size);
  if (*status == 0) return record;
  free(record);
  return NULL;
}

int usdtp_probe_add(usdtp_provider* provider, const char* name, const char* arguments, usdtp_probe** probe) {
  *probe = &no_probe.shown;
  if (!provider) return -EINVAL;
  int status;
  struct usdtp_record* record = make_record(provider, name, arguments, &status);
  if (!record) return status;
  enter();
  status = add(provider, record);
  leave();
  if (status == 0)
    *probe = &record->slot->shown;
  else
    free(record);
  return status;
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

static size_t note_live(const struct image* image, struct usdtp_noted* noted) {
  size_t count = 0;
  for (size_t i = 0; i < image->used; ++i) {
    const struct usdtp_record* record = slot_at(image, i)->record;
    if (record) noted[count++] = (struct usdtp_noted){record->name, record->items, &record->arguments, i};
  }
  return count;
}

/* The head comes last: until then nobody takes the file for one. */
static int write_image(const usdtp_provider* provider, const struct image* image, const struct usdtp_noted* noted,
                       size_t count) {
  struct usdtp_bytes notes = {0};
  struct usdtp_bytes head = {0};
  const struct usdtp_layout* layout = &image->memory.layout;
  usdtp_put_tables(layout, provider->name, noted, count, &notes, &head);
  int status = usdtp_memory_write(&image->memory, layout->notes, &notes);
  if (status == 0) status = usdtp_memory_write(&image->memory, 0, &head);
  free(notes.data);
  free(head.data);
  return status;
}

static int publish_image(usdtp_provider* provider, struct image* image) {
  if (image->published || image->live == 0) return 0;
  struct usdtp_noted* noted = calloc(image->used, sizeof *noted);
  if (!noted) return -ENOMEM;
  const size_t count = note_live(image, noted);
  int status = own_image(provider, image);
  if (status == 0) status = write_image(provider, image, noted, count);
  free(noted);
  if (status != 0) return status;
  image->published = 1;
  usdtp_memory_finish(&image->memory);
  if (provider->flags & USDTP_CLOSE_FILES) usdtp_memory_close(&image->memory);
  USDT_PROBE(usdtp, published, (const char*)provider->name, (uint32_t)count, (const void*)image->memory.address);
  return 0;
}

int usdtp_provider_publish(usdtp_provider* provider) {
  if (!provider) return -EINVAL;
  int status = 0;
  enter();
  for (struct image* image = provider->images; image && status == 0; image = image->next)
    status = publish_image(provider, image);
  leave();
  return status;
}

/* ---- Retiring ---------------------------------------------------------------------------------------------------- */

/* The slot stays, and its stub: a thread may be on its way there. */
static void retire(struct usdtp_slot* slot) {
  struct usdtp_record* record = slot->record;
  if (!record) return;
  __atomic_store_n(&slot->stub, NULL, __ATOMIC_RELEASE);
  slot->record = NULL;
  --record->image->live;
  (void)tdelete(record, &record->provider->names, by_name);
  free(record);
}

/* Takes an image without probes out of its provider, and from the eyes of tools. */
static void drop(usdtp_provider* provider, struct image* image) {
  struct image** link = &provider->images;
  while (*link != image) link = &(*link)->next;
  *link = image->next;
  char name[USDTP_MAX_NAME + 8];
  file_name(provider, name);
  usdtp_memory_hide(&image->memory, name);
  free(image);
}

void usdtp_probe_retire(usdtp_probe* probe) {
  if (!probe) return;
  struct usdtp_slot* slot = (struct usdtp_slot*)(void*)probe;
  enter();
  if (slot->record) {
    usdtp_provider* provider = slot->record->provider;
    struct image* image = slot->record->image;
    retire(slot);
    if (image->published && image->live == 0) drop(provider, image);
  }
  leave();
}

static void unlist(const usdtp_provider* provider) {
  usdtp_provider** link = &providers;
  while (*link && *link != provider) link = &(*link)->next;
  if (*link) *link = provider->next;
}

void usdtp_provider_retire(usdtp_provider* provider) {
  if (!provider) return;
  enter();
  unlist(provider);
  while (provider->images) {
    struct image* image = provider->images;
    for (size_t i = 0; i < image->used; ++i) retire(slot_at(image, i));
    drop(provider, image);
  }
  leave();
  free(provider);
}
