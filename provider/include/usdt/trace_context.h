/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells tracers which trace and span a thread works for: OpenTelemetry's thread context (OTEP 4947), with the process
 * context (OTEP 4719) that goes with it. A tracer that sees the thread at a probe, a function or in the kernel then
 * knows what it was done for (usdt-trace: trace_id, span_id). A header alone, for C11 and C++17; glibc or musl, on
 * x86, arm64 and riscv64.
 *
 *   usdt_context_publish("shop", NULL, 0);              once, when the program begins
 *   usdt_context_set(trace_id, span_id, 1);             a request begins, or goes on in this thread
 *   ...
 *   usdt_context_clear();                               the thread works for none now
 *
 * To set it takes some 30 stores and no system call. Threads have contexts of their own. Whoever moves work from one
 * thread to another (coroutines, executors) sets and clears it at each move.
 *
 * Programs are linked with -Wl,--export-dynamic-symbol=otel_thread_ctx_v1, since the specification wants the variable
 * among the dynamic symbols; usdt-trace finds it without, as long as the program is not stripped.
 *
 * Threads: usdt_context_set(), usdt_context_add() and usdt_context_clear() are about the calling thread; a signal
 * handler may not call them. usdt_context_publish() is called by one thread at a time.
 *
 * fork: the child has the context of the thread that forked, and no process context until it publishes one itself.
 */
#ifndef USDT_TRACE_CONTEXT_H
#define USDT_TRACE_CONTEXT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#elif defined(__STRICT_ANSI__) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
/* The C library has these, and does not say so where nothing but the standard is asked for (-std=c11). */
long syscall(long number, ...);
int madvise(void* address, size_t size, int advice);
int ftruncate(int file, off_t size);
int clock_gettime(int clock, struct timespec* time);
#endif

/* Numbers of Linux, for the same reason. */
#define USDT_CONTEXT_MAP_ANONYMOUS 0x20 /* MAP_ANONYMOUS */
#define USDT_CONTEXT_DONTFORK 10        /* MADV_DONTFORK */
#define USDT_CONTEXT_BOOTTIME 7         /* CLOCK_BOOTTIME */

/* The most bytes of all attributes of a thread; each takes two more than its text. */
#define USDT_CONTEXT_ATTRIBUTES 612

/* What tracers read of a thread, byte for byte. */
struct usdt_context_record {
  uint8_t trace_id[16];
  uint8_t span_id[8];
  uint8_t valid; /* 1: all of it is; else it is being written */
  uint8_t flags; /* of the W3C's Trace Context: bit 0, the trace is sampled */
  uint16_t attributes_size;
  uint8_t attributes[USDT_CONTEXT_ATTRIBUTES]; /* each a key's number, the size of its text, and the text */
} __attribute__((packed, aligned(8)));

/* All parts of a program have one variable, which tracers find by its name. */
__attribute__((weak, visibility("default"))) __thread struct usdt_context_record* otel_thread_ctx_v1 = NULL;
__attribute__((weak, visibility("hidden"))) __thread struct usdt_context_record usdt_context_of_thread = {
    {0}, {0}, 0, 0, 0, {0}};

/* Tracers read while the thread stands still, between two instructions: the compiler alone must not reorder. */
#define USDT_CONTEXT_BARRIER() __asm__ volatile("" ::: "memory")

/* The thread works for no trace. */
static inline void usdt_context_clear(void) {
  otel_thread_ctx_v1 = NULL;
  USDT_CONTEXT_BARRIER();
}

/* The thread works for this span, without attributes. An id of zeros is none. */
static inline void usdt_context_set(const uint8_t trace_id[16], const uint8_t span_id[8], unsigned flags) {
  struct usdt_context_record* const record = &usdt_context_of_thread;
  usdt_context_clear();
  memcpy(record->trace_id, trace_id, sizeof record->trace_id);
  memcpy(record->span_id, span_id, sizeof record->span_id);
  record->flags = (uint8_t)flags;
  record->attributes_size = 0;
  record->valid = 1;
  USDT_CONTEXT_BARRIER();
  otel_thread_ctx_v1 = record;
}

/*
 * Adds an attribute to what was set: `key` is the place of its name among those that were published. Returns 0;
 * -EINVAL (nothing is set, or more than 255 bytes); -ENOSPC.
 */
static inline int usdt_context_add(unsigned key, const char* text, size_t size) {
  struct usdt_context_record* const record = &usdt_context_of_thread;
  const size_t at = record->attributes_size;
  if (otel_thread_ctx_v1 != record || key > UINT8_MAX || size > UINT8_MAX) return -EINVAL;
  if (at + 2 + size > sizeof record->attributes) return -ENOSPC;
  record->valid = 0;
  USDT_CONTEXT_BARRIER();
  record->attributes[at] = (uint8_t)key;
  record->attributes[at + 1] = (uint8_t)size;
  memcpy(record->attributes + at + 2, text, size);
  record->attributes_size = (uint16_t)(at + 2 + size);
  USDT_CONTEXT_BARRIER();
  record->valid = 1;
  return 0;
}

/* --- The process context ------------------------------------------------------------------------------------------ */

/* The page that tracers find by its name. */
struct usdt_context_page {
  char signature[8]; /* "OTEL_CTX" */
  uint32_t version;
  uint32_t payload_size;
  uint64_t published_at; /* ns of CLOCK_BOOTTIME; 0: it is being changed */
  uint64_t payload;      /* where the message is */
};
__attribute__((weak, visibility("hidden"))) struct usdt_context_page* usdt_context_published = NULL;
__attribute__((weak, visibility("hidden"))) pid_t usdt_context_publisher = 0;

/* Writes a message of protobuf; `to` NULL: its size alone is wanted. */
struct usdt_context_writer {
  uint8_t* to;
  size_t size;
};

static inline void usdt_context_bytes(struct usdt_context_writer* writer, const void* bytes, size_t size) {
  if (writer->to) memcpy(writer->to + writer->size, bytes, size);
  writer->size += size;
}

/* The head of a field that has so many bytes. */
static inline void usdt_context_field(struct usdt_context_writer* writer, unsigned number, size_t size) {
  uint8_t byte = (uint8_t)(number << 3 | 2);
  usdt_context_bytes(writer, &byte, 1);
  do {
    byte = (uint8_t)((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
    usdt_context_bytes(writer, &byte, 1);
  } while ((size >>= 7) > 0);
}

static inline void usdt_context_text(struct usdt_context_writer* writer, unsigned number, const char* text) {
  usdt_context_field(writer, number, strlen(text));
  usdt_context_bytes(writer, text, strlen(text));
}

/* An AnyValue: one text, or a list of them. */
static inline void usdt_context_value(struct usdt_context_writer* writer, const char* const* texts, size_t count,
                                      int is_list) {
  struct usdt_context_writer list = {NULL, 0};
  struct usdt_context_writer* to = &list;
  if (!is_list) {
    usdt_context_text(writer, 1, texts[0]);
    return;
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t n = 0; n < count; ++n) {
      struct usdt_context_writer each = {NULL, 0};
      usdt_context_text(&each, 1, texts[n]);
      usdt_context_field(to, 1, each.size);
      usdt_context_text(to, 1, texts[n]);
    }
    if (pass == 0) usdt_context_field(writer, 5, list.size);
    to = writer;
  }
}

/* A KeyValue, as field `number` of what is around it. */
static inline void usdt_context_attribute(struct usdt_context_writer* writer, unsigned number, const char* name,
                                          const char* const* texts, size_t count, int is_list) {
  struct usdt_context_writer value = {NULL, 0}, pair = {NULL, 0};
  usdt_context_value(&value, texts, count, is_list);
  usdt_context_text(&pair, 1, name);
  usdt_context_field(&pair, 2, value.size);
  usdt_context_field(writer, number, pair.size + value.size);
  usdt_context_text(writer, 1, name);
  usdt_context_field(writer, 2, value.size);
  usdt_context_value(writer, texts, count, is_list);
}

/* The whole message: ProcessContext { Resource resource = 1; repeated KeyValue attributes = 2 }. */
static inline void usdt_context_message(struct usdt_context_writer* writer, const char* service,
                                        const char* const* names, size_t count) {
  const char* const version = "tlsdesc_v1_dev";
  struct usdt_context_writer resource = {NULL, 0};
  if (service) {
    usdt_context_attribute(&resource, 1, "service.name", &service, 1, 0);
    usdt_context_field(writer, 1, resource.size);
    usdt_context_attribute(writer, 1, "service.name", &service, 1, 0);
  }
  usdt_context_attribute(writer, 2, "threadlocal.schema_version", &version, 1, 0);
  usdt_context_attribute(writer, 2, "threadlocal.attribute_key_map", names, count, 1);
}

/* A page that tracers find among the mappings of the process by its name; NULL: there is no memory. */
static inline struct usdt_context_page* usdt_context_make_page(size_t size) {
  void* made = MAP_FAILED;
  const int file = (int)syscall(SYS_memfd_create, "OTEL_CTX", 1U /* MFD_CLOEXEC */);
  if (file >= 0 && ftruncate(file, (off_t)size) == 0)
    made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (file >= 0) (void)close(file);
  if (made == MAP_FAILED)
    made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | USDT_CONTEXT_MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return NULL;
  (void)madvise(made, size, USDT_CONTEXT_DONTFORK);
  return (struct usdt_context_page*)made;
}

/*
 * Publishes what is true of all threads, or publishes it anew: the service's name (NULL: none is said), and the names
 * of attributes, at most 256. Names are added behind those that were published before, and none is taken away. The
 * memory of earlier versions is kept, since a tracer may be reading it. Returns 0; -EINVAL; -ENOMEM.
 */
static inline int usdt_context_publish(const char* service, const char* const* names, size_t count) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  struct usdt_context_writer writer = {NULL, 0};
  struct timespec now;
  if (count > 256 || (count > 0 && !names)) return -EINVAL;
  usdt_context_message(&writer, service, names, count);
  uint8_t* const payload = (uint8_t*)malloc(writer.size);
  if (!payload) return -ENOMEM;
  if (usdt_context_publisher != getpid()) usdt_context_published = NULL; /* a fork left it behind */
  struct usdt_context_page* there = usdt_context_published;
  if (!there) there = usdt_context_make_page(page);
  if (!there) {
    free(payload);
    return -ENOMEM;
  }
  writer.to = payload;
  writer.size = 0;
  usdt_context_message(&writer, service, names, count);
  __atomic_store_n(&there->published_at, 0, __ATOMIC_SEQ_CST);
  memcpy(there->signature, "OTEL_CTX", sizeof there->signature);
  there->version = 2;
  there->payload_size = (uint32_t)writer.size;
  there->payload = (uint64_t)(uintptr_t)payload;
  (void)clock_gettime(USDT_CONTEXT_BOOTTIME, &now);
  __atomic_store_n(&there->published_at, (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec, __ATOMIC_SEQ_CST);
  usdt_context_published = there;
  usdt_context_publisher = getpid();
#ifdef PR_SET_VMA
  /* Linux 5.17, with CONFIG_ANON_VMA_NAME: the name also tells tracers that it was published anew. */
  (void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, there, page, "OTEL_CTX");
#endif
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif /* USDT_TRACE_CONTEXT_H */
