/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libusdt-c: finding and tracing probes and functions from C11, and from every language that can call C.
 *
 *   usdtc_session_new()     questions as usdt-trace is asked them, live or of recordings: their answers as values
 *                           (events, rows, accounts), as text, and in files
 *   usdtc_select()          names -> a selection: what is there, with typed arguments (a listing, too)
 *   usdtc_plan_make()       selection -> plan: what will be attached, and what not and why
 *   usdtc_tracer_start()    plan -> tracer: attached; events come out of it (usdtc_tracer_take(), usdtc_tracer_poll()),
 *                           or rows (usdtc_tracer_rows())
 *   usdtc_recording_open()  events or rows of a file that a tracer, a session or usdt-trace has recorded
 *
 * A session does what usdt-trace does: it waits, follows what comes, pairs spans, and knows percentiles. A tracer is
 * one level below, and has what a question cannot ask for: it attaches a plan that the program has looked at, with
 * texts, values and a number of its own for each trace (usdtc_plan_options), sees hits of the program itself, detaches
 * and goes on handing out what is in the ring, and is woken without an end.
 *
 * Errors: a function that can fail returns 0, or the negative errno of the error's kind (enum usdtc_error_kind). Its
 * last parameter, which may be NULL, receives the error itself: NULL on success, else one that the caller frees. The
 * library does not throw, print or exit.
 *
 * Structs begin with their size, which the caller sets: struct usdtc_X x = {.size = sizeof(x)}. In those that the
 * caller fills in, 0 means the default. A program that was built with an older header works with a newer library. One
 * that was built with a newer header works with an older library as long as the fields that this does not know are 0.
 *
 * Threads: a tracer is used by one thread at a time, and so are recordings, questions and sessions; only
 * usdtc_tracer_wake() and usdtc_session_stop() may be called by any thread at any time, and by signal handlers.
 * Selections, plans, batches, events, rows and ledgers do not change: several threads may read one at once.
 *
 * fork: a tracer gives no events to a child of the process that started it (INVALID_ARGUMENT). When the child frees it,
 * only the child's descriptors are closed, and the parent's trace goes on. A session is of no use to such a child
 * (INVALID_ARGUMENT), which frees nothing of it.
 *
 * Memory: freeing NULL does nothing. Texts live as long as the handle that they were asked of. A `const char *` ends in
 * a NUL, and is NULL where there is no text; struct usdtc_text is for text that others wrote, which may be any bytes.
 */
#ifndef USDTC_H
#define USDTC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct usdtc_error usdtc_error;
typedef struct usdtc_stop usdtc_stop;
typedef struct usdtc_selection usdtc_selection;
typedef struct usdtc_plan usdtc_plan;
typedef struct usdtc_tracer usdtc_tracer;
typedef struct usdtc_batch usdtc_batch;
typedef struct usdtc_event usdtc_event;
typedef struct usdtc_ledger usdtc_ledger;
typedef struct usdtc_rows usdtc_rows;
typedef struct usdtc_recording usdtc_recording;
typedef struct usdtc_question usdtc_question;
typedef struct usdtc_session usdtc_session;

/* Text that others wrote: any bytes, and no NUL behind them. */
struct usdtc_text {
  const char* data;
  size_t length; /* in bytes */
};

/* The library's version, "1.0.0". */
const char* usdtc_version(void);

/* ---- errors -------------------------------------------------------------------------------------------------- */

enum usdtc_error_kind {
  USDTC_ERROR_INVALID_ARGUMENT = 1, /* EINVAL: a value that makes no sense, a NULL handle, a wrong size of a struct */
  USDTC_ERROR_SYNTAX = 2,           /* EINVAL: text that does not parse; usdtc_error_column() says where */
  USDTC_ERROR_NOT_FOUND = 3,        /* ENOENT: no such file, process, probe or symbol */
  USDTC_ERROR_NO_PERMISSION = 4,    /* EPERM: the process may not do this; the message says what it takes */
  USDTC_ERROR_NOT_SUPPORTED = 5,    /* EOPNOTSUPP: this kernel, machine, file or version of the library cannot */
  USDTC_ERROR_MALFORMED = 6,        /* EBADMSG: a file whose bytes contradict its format */
  USDTC_ERROR_CHANGED = 7,          /* ESTALE: a file or process changed or vanished meanwhile */
  USDTC_ERROR_LIMIT = 8,            /* E2BIG: a limit of resources or sizes was reached */
  USDTC_ERROR_IO = 9,               /* EIO: a system call failed for another reason */
  USDTC_ERROR_TYPE_MISMATCH = 10,   /* EPROTOTYPE: a value was asked for as a type that it does not have */
  USDTC_ERROR_STOPPED = 11,         /* ECANCELED: usdtc_stop_request() */
  USDTC_ERROR_VERIFIER = 12,        /* ENOEXEC: the kernel refused a BPF program; usdtc_error_log() has why */
  USDTC_ERROR_NO_MEMORY = 13,       /* ENOMEM: there is not enough memory */
  USDTC_ERROR_INTERNAL = 14         /* ENOTRECOVERABLE: a fault of the library, or a callback that threw */
};

/* The kind of an error (enum usdtc_error_kind); of NULL 0. */
uint32_t usdtc_error_kind(const usdtc_error* error);
/* A sentence in lower case that says what failed and what can be done; of NULL "". */
const char* usdtc_error_message(const usdtc_error* error);
/* The errno of the system call that failed, a positive number; 0: no system call did. */
int usdtc_error_os_error(const usdtc_error* error);
/* The position of the error in the text that was parsed, in bytes from 0; -1: no text was parsed. */
int64_t usdtc_error_column(const usdtc_error* error);
/* All that the kernel's verifier said; "" unless the kind is USDTC_ERROR_VERIFIER. */
const char* usdtc_error_log(const usdtc_error* error);
void usdtc_error_free(usdtc_error* error);

/* ---- ending early -------------------------------------------------------------------------------------------- */

/* Makes a stop, to be handed to functions that may take long. NULL: there is no memory. */
usdtc_stop* usdtc_stop_new(void);
/* Ends the functions that were given `stop`, within a moment, with USDTC_ERROR_STOPPED. For any thread. */
void usdtc_stop_request(usdtc_stop* stop);
/* Frees it; no function that uses it may be running. */
void usdtc_stop_free(usdtc_stop* stop);

/* ---- finding ------------------------------------------------------------------------------------------------- */

/* Which points are looked for, and where. */
struct usdtc_search {
  size_t size;
  /* Names of points, with globs in any part: "PROVIDER:NAME", "usdt:TARGET:PROVIDER:NAME", "uprobe:TARGET:FUNCTION",
   * "uretprobe:", "ucall:", "fentry:FUNCTION", "kprobe:" and so on (the README lists all). Without patterns every USDT
   * probe is meant, and it is no error if there is none. */
  const char* const* patterns;
  size_t pattern_count;
  /* The targets in which names without a target are looked for: paths, globs, directories, sonames or names of
   * programs. Without targets they are looked for in the files of `pids` or `program`; without those in the files of
   * all processes. */
  const char* const* targets;
  size_t target_count;
  /* The files that these processes have mapped; targets then choose among them. */
  const int32_t* pids;
  size_t pid_count;
  /* This program and the libraries that it needs. */
  const char* program;
  const usdtc_stop* stop; /* may be NULL */
};

enum usdtc_point_kind {
  USDTC_POINT_PROBE = 1,    /* a USDT site */
  USDTC_POINT_FUNCTION = 2, /* of a file */
  USDTC_POINT_KERNEL = 3    /* a function or tracepoint of the kernel */
};

enum usdtc_point_flags {
  USDTC_POINT_HAS_SEMAPHORE = 1, /* a counter of tracers, which the program looks at */
  USDTC_POINT_INLINED = 2        /* a copy of a function's code in another function */
};

/* One place where a program can run. Addresses are virtual ones as the file has them, not those of a process. */
struct usdtc_point {
  size_t size;
  uint32_t kind;         /* enum usdtc_point_kind */
  uint32_t flags;        /* enum usdtc_point_flags */
  const char* full_name; /* used as a pattern, it means exactly this probe or function */
  const char* file;      /* NULL: it is in the kernel */
  const char* machine;   /* "x86_64", "i386", "aarch64", "riscv64" */
  const char* provider;  /* of functions the prefix: "uprobe", "fentry" */
  const char* name;
  uint64_t pc;             /* its address; 0: not known */
  uint64_t offset;         /* where it is in the file, in bytes; UINT64_MAX: not known */
  uint64_t semaphore;      /* the address of its semaphore; 0: it has none */
  const char* args_text;   /* its arguments as its note has them; NULL: it has no note */
  const char* instruction; /* what is there, on which the cost of a hit depends: "nop", "nop,nop5"; NULL: not known */
  const char* source_file; /* NULL: not known */
  uint32_t source_line;    /* 0: not known */
  uint32_t arg_count;
  const char* refused; /* why no program can run there; NULL: one can */
};

enum usdtc_type_kind {
  USDTC_TYPE_INTEGER = 1,
  USDTC_TYPE_FLOAT = 2,
  USDTC_TYPE_BOOLEAN = 3,
  USDTC_TYPE_ENUM = 4,
  USDTC_TYPE_POINTER = 5,
  USDTC_TYPE_TEXT = 6, /* a pointer to characters */
  USDTC_TYPE_STRUCT = 7,
  USDTC_TYPE_ARRAY = 8
};

enum usdtc_arg_flags {
  USDTC_ARG_SIGNED = 1,
  USDTC_ARG_RESULT = 2,  /* not an argument but the return value */
  USDTC_ARG_DERIVED = 4, /* not passed itself, but what an argument leads to (usdtc_plan_options.values) */
  USDTC_ARG_HIDDEN = 8   /* read for another one's sake, as the length of a text */
};

/* Describes an argument at its point. */
struct usdtc_arg {
  size_t size;
  uint32_t kind;       /* enum usdtc_type_kind */
  uint32_t bytes;      /* the size of its value: 1, 2, 4 or 8, if it can be read; 0: not known */
  uint32_t flags;      /* enum usdtc_arg_flags */
  int32_t part_of;     /* of a member: the number of the argument that shows it; -1: it is no member */
  const char* name;    /* "sql"; NULL: not known */
  const char* type;    /* as C writes it, "const char *"; NULL: not known */
  const char* meaning; /* what its number stands for, "errno"; NULL: nothing but the number */
  const char* unit;    /* "us"; NULL: none */
  const char* source;  /* the operand of its note, "-4@%eax"; NULL: it is known by a declaration */
  const char* refused; /* why it cannot be read here; NULL: it can */
};

/* A sentence that a search, a plan or a trace has to say beside its result, and its kind. */
enum usdtc_notice_kind {
  USDTC_NOTICE_UNREADABLE = 1,   /* a file that could not be read */
  USDTC_NOTICE_SKIPPED = 2,      /* a point that will not be attached */
  USDTC_NOTICE_REFUSED = 3,      /* a point that the kernel refused */
  USDTC_NOTICE_FILE_CHANGED = 4, /* a traced file was written to (and let go), replaced or removed */
  USDTC_NOTICE_RECORDED = 5,     /* what was said when a recording was made */
  USDTC_NOTICE_SESSION = 6       /* what a session has to say: what it attached, follows, waits for, left out */
};
struct usdtc_notice {
  size_t size;
  uint32_t kind;  /* enum usdtc_notice_kind */
  uint32_t probe; /* its number in the plan; UINT32_MAX: of none */
  const char* message;
};

/* Finds the points that `search` means. Errors: SYNTAX; NOT_FOUND, whose message says what was searched and what is
 * there; for functions of the kernel NO_PERMISSION and NOT_SUPPORTED; STOPPED. */
int usdtc_select(const struct usdtc_search* search, usdtc_selection** selection, usdtc_error** error);
size_t usdtc_selection_count(const usdtc_selection* selection);
/* Point `n`. NOT_FOUND: there are fewer. */
int usdtc_selection_point(const usdtc_selection* selection, size_t n, struct usdtc_point* point, usdtc_error** error);
/* Argument `arg` of point `n`. */
int usdtc_selection_arg(const usdtc_selection* selection, size_t n, size_t arg, struct usdtc_arg* info,
                        usdtc_error** error);
/* Notice `n`: files that could not be read. NOT_FOUND: there are fewer. */
int usdtc_selection_notice(const usdtc_selection* selection, size_t n, struct usdtc_notice* notice,
                           usdtc_error** error);
void usdtc_selection_free(usdtc_selection* selection);

/* ---- planning ------------------------------------------------------------------------------------------------ */

enum usdtc_texts {
  USDTC_TEXTS_DESCRIBED = 1, /* arguments that their provider describes as texts */
  USDTC_TEXTS_TYPED = 2,     /* arguments whose type is a pointer to characters */
  USDTC_TEXTS_LIKELY = 4     /* whatever turns out to point to plain text; a hit takes 0.1 us more for each pointer */
};

enum usdtc_plan_flags {
  USDTC_PLAN_OPEN = 1,       /* structs among the arguments are read with their members */
  USDTC_PLAN_UNSAFE_NOP5 = 2 /* attaches also to 5-byte nops where Linux 6.18 may corrupt the traced program */
};

enum usdtc_table_flags {
  USDTC_TABLE_EXTREMES = 1, /* rows have the smallest and the largest value: Linux 5.12, arm64 5.18 */
  /* Keys, value and what the histogram is of may be floats and doubles, too: USDTC_VALUE_FLOAT, USDTC_ROW_REAL,
   * USDTC_RANGE_REAL. NaN is a key of its own; as the value, or in the histogram, it puts a hit in no row. */
  USDTC_TABLE_REALS = 2
};

/* A table that the kernel fills instead of writing events: hits whose keys are equal are added up in one row
 * (docs/tables.md). */
struct usdtc_table {
  size_t size;
  const char* by;            /* the keys, expressions with commas between them: "comm, str(arg0)"; NULL: one row */
  const char* value;         /* an expression, "retval", whose sum each row has; NULL: none */
  const char* histogram;     /* an expression; each row counts how many of its values are in each range; NULL: none */
  uint32_t flags;            /* enum usdtc_table_flags */
  uint32_t max_rows;         /* room for at least so many rows; other hits are counted as table_full; 0: 4096 */
  uint32_t histogram_detail; /* from one power of 2 to the next there are 2^this ranges; at most 4 */
  uint32_t digits;           /* of from, to and step behind the decimal point: 5, 20, 5 and 1 is from 0.5 to 2 by 0.5 */
  int64_t from, to, step;    /* if `step` is not 0: ranges of this width from `from` to `to`, one below and one above */
};

struct usdtc_plan_options {
  size_t size;
  /* The processes whose hits count, at most 64. None: all processes. */
  const int32_t* pids;
  size_t pid_count;
  uint64_t user_cookie; /* any number of the application's: struct usdtc_event_info has it again */
  uint32_t texts;       /* enum usdtc_texts: which pointers are followed to their texts */
  uint32_t flags;       /* enum usdtc_plan_flags */
  /* Arguments that are known to be texts, by number or name: "arg0", which ends at its NUL; "arg0,arg1", whose size in
   * bytes is the second one. */
  const char* const* text_args;
  size_t text_arg_count;
  /* Values that are read besides, members and what pointers point to: "req->peer.port". Each becomes one more argument.
   */
  const char* const* values;
  size_t value_count;
  const usdtc_stop* stop; /* may be NULL */
  /* A question that the kernel asks of each hit (docs/expressions.md): "arg1 > 4KiB && comm != \"cat\"". Only hits for
   * which the answer is yes become events or are counted in rows. NULL: all do. */
  const char* where;
  /* The rows that are filled instead of events: usdtc_tracer_rows(). NULL: events. */
  const struct usdtc_table* table;
};

/* Plans the attachment of what was selected to the running kernel; `options` may be NULL. Errors: NOT_SUPPORTED (no
 * point can be attached, with the first reason), INVALID_ARGUMENT, SYNTAX, LIMIT, STOPPED. */
int usdtc_plan_make(const usdtc_selection* selection, const struct usdtc_plan_options* options, usdtc_plan** plan,
                    usdtc_error** error);
/* How many probes it has: each is one name in one file, or a function of the kernel. */
size_t usdtc_plan_probe_count(const usdtc_plan* plan);
/* How many points will be attached. */
size_t usdtc_plan_site_count(const usdtc_plan* plan);
/* The full name of probe `n`; NULL: there are fewer. */
const char* usdtc_plan_probe_name(const usdtc_plan* plan, size_t n);
/* Notice `n`: points that will not be attached. NOT_FOUND: there are fewer. */
int usdtc_plan_notice(const usdtc_plan* plan, size_t n, struct usdtc_notice* notice, usdtc_error** error);
void usdtc_plan_free(usdtc_plan* plan);

/* ---- tracing ------------------------------------------------------------------------------------------------- */

enum usdtc_trace_flags {
  USDTC_TRACE_COUNT_ONLY = 1,     /* no events: hits are only counted */
  USDTC_TRACE_DESCENDANTS = 2,    /* only hits of processes that descend from the calling one */
  USDTC_TRACE_WAIT_FOR_PAGES = 4, /* where memory is paged out, the traced program waits for it */
  USDTC_TRACE_NEVER_WAIT = 8      /* it never does; without either: only where `pids` were given */
};

struct usdtc_trace_options {
  size_t size;
  uint32_t flags;          /* enum usdtc_trace_flags */
  uint32_t string_size;    /* texts are cut to so many bytes; 0: 200 */
  uint32_t ring_bytes;     /* size of the ring between the kernel and the consumer; 0: 32 MiB */
  uint32_t max_open_calls; /* so many calls can be under way at once; 0: 131072, before Linux 6.1 8192 */
  /* Only hits of these processes count, and of those that they start; the plan then has no pids. */
  const int32_t* family;
  size_t family_count;
  /* The guards (docs/guards.md); what they leave out is counted. First: one in so many hits is looked at, chosen at
   * random. Events then have weights, and counts and sums of rows are estimates. 0: each hit is. */
  uint32_t sample;
  uint32_t max_rate; /* at most so many events a second; 0: any number */
  /* The most that hits may cost, as a share of what the traced processes do besides: 0.05 makes them at most 5 %
   * slower. Sites that would cost more are detached most of the time; events then have weights, and rows are estimates.
   * 0: any cost.
   */
  double max_overhead;
};

/* Whether this process may load and attach programs: 0, or NO_PERMISSION naming what it lacks. */
int usdtc_check_privilege(usdtc_error** error);

/* Loads the programs of a plan and attaches them, by the privileges of this process alone: usdt-broker is asked by
 * sessions. `options` may be NULL; the plan may be freed when this returns.
 * Errors: NO_PERMISSION, NOT_SUPPORTED, CHANGED (a file is not the one that was planned), LIMIT, VERIFIER, IO. */
int usdtc_tracer_start(const usdtc_plan* plan, const struct usdtc_trace_options* options, usdtc_tracer** tracer,
                       usdtc_error** error);

/* Takes what is in the ring, at most `limit` events (0: no limit). If it is empty, waits for an event for up to
 * `timeout_ms` milliseconds (0: does not wait; negative: a day). The batch is empty if the time was up, a signal came,
 * or usdtc_tracer_wake() was called. */
int usdtc_tracer_take(usdtc_tracer* tracer, int timeout_ms, size_t limit, usdtc_batch** batch, usdtc_error** error);

/* A callback that is given an event, which is valid until it returns; usdtc_event_copy() makes one that lasts. It must
 * not call functions of the tracer or recording that the event comes from. */
typedef void (*usdtc_on_event)(const usdtc_event* event, void* user);
/* As usdtc_tracer_take(), without copies: calls `on_event` for each event. `handed`, which may be NULL, receives how
 * many these were. While events are recorded, `on_event` may be NULL. */
int usdtc_tracer_poll(usdtc_tracer* tracer, usdtc_on_event on_event, void* user, int timeout_ms, size_t limit,
                      size_t* handed, usdtc_error** error);

/* Ends a wait for events: the one that is going on, or else the next one, ends at once. For any thread, and for signal
 * handlers. */
void usdtc_tracer_wake(const usdtc_tracer* tracer);

/* A descriptor for poll(2), epoll and event loops. It is readable while there is something to take, and after
 * usdtc_tracer_wake() until the next take; takes should then not wait (timeout 0). It belongs to the tracer: do not
 * read from it or close it. */
int usdtc_tracer_fd(usdtc_tracer* tracer, int* fd, usdtc_error** error);

/* Detaches: there are no hits from here on. Events that are in the ring can still be taken; all were once a take with
 * timeout 0 gives none. */
void usdtc_tracer_detach(usdtc_tracer* tracer);
/* Detaches, and gives up the events that are in the ring: they count as discarded. */
void usdtc_tracer_discard(usdtc_tracer* tracer);

/* Notice `n`, in the order in which they came up: points that the plan skipped, those the kernel refused, files that
 * were changed meanwhile. NOT_FOUND: there are no more yet. */
int usdtc_tracer_notice(usdtc_tracer* tracer, size_t n, struct usdtc_notice* notice, usdtc_error** error);

/* How the points are attached, in words: "uprobe_multi (3 sites), specs in cookies". */
const char* usdtc_tracer_attachment(const usdtc_tracer* tracer);

/* Detaches, and forgets what is still in the ring. Batches and events live on. */
void usdtc_tracer_free(usdtc_tracer* tracer);

/* Writes the events that take() and poll() hand out from here on to a file as well (docs/recording.md). The file is
 * created, or emptied if it is there. What has been written can be read, however the tracer ends. A tracer makes one
 * recording at a time. Errors: NO_PERMISSION, IO. */
int usdtc_tracer_record(usdtc_tracer* tracer, const char* path, usdtc_error** error);
/* Ends the recording with an account of all hits, and closes the file. Errors: IO, something could not be written, now
 * or before. If this is not called, usdtc_tracer_free() does it, and cannot say what went wrong. */
int usdtc_tracer_record_end(usdtc_tracer* tracer, usdtc_error** error);

/* Numbers say what became of hits, of which later versions have more: usdtc_count_describe() describes each, and a
 * ledger has them all. Once all events were taken, hits = delivered + lost + the numbers whose role is LEFT_OUT; of
 * spans there are also those whose role is PAIRING. Names are those of JSON (docs/json.md), where "lost" is an object.
 */
enum usdtc_count_role {
  USDTC_COUNT_HITS = 1,
  USDTC_COUNT_DELIVERED = 2,
  USDTC_COUNT_LOST = 3,     /* should have been delivered: "lost" is the sum of the others */
  USDTC_COUNT_LEFT_OUT = 4, /* as was asked for */
  USDTC_COUNT_PAIRING = 5,  /* of spans: how their ends came together */
  USDTC_COUNT_APART = 6     /* in no other number */
};
/* Describes a number. */
struct usdtc_count_info {
  size_t size;
  const char* name;  /* "ring_full"; valid for ever, as `words` is */
  const char* words; /* "the reader was too slow for the ring" */
  uint32_t role;     /* enum usdtc_count_role */
  uint32_t reserved;
};
/* Describes number `n` of every ledger. NOT_FOUND: there are fewer. */
int usdtc_count_describe(size_t n, struct usdtc_count_info* info, usdtc_error** error);

/* The counts as they are now; they are exact once the tracer is detached and all events were taken. */
int usdtc_tracer_ledger(const usdtc_tracer* tracer, usdtc_ledger** ledger, usdtc_error** error);
/* Number `name` ("hits", "lost", "ring_full") of probe `n` of the plan, or of all probes together if `n` is SIZE_MAX.
 * UINT64_MAX: it is not known. NOT_FOUND: there are fewer probes, or no such number. */
int usdtc_ledger_value(const usdtc_ledger* ledger, size_t n, const char* name, uint64_t* value, usdtc_error** error);
/* Writes all numbers of probe `n`, or of all probes together if `n` is SIZE_MAX, in the order of
 * usdtc_count_describe(): at most `count` of them. UINT64_MAX: it is not known. NOT_FOUND: there are fewer probes. */
int usdtc_ledger_values(const usdtc_ledger* ledger, size_t n, uint64_t* values, size_t count, usdtc_error** error);
void usdtc_ledger_free(usdtc_ledger* ledger);

enum usdtc_overhead_flags {
  USDTC_OVERHEAD_OF_PROCESSORS = 1, /* shares are of processor time; else of one processor's, all the time */
  USDTC_OVERHEAD_CLOCKED = 2        /* how long programs run was measured; else it is a rule of thumb */
};

/* Reports what hits cost under usdtc_trace_options.max_overhead. */
struct usdtc_overhead {
  size_t size;
  uint32_t flags; /* enum usdtc_overhead_flags */
  uint32_t reserved;
  double allowed;      /* the option */
  double caused;       /* what hits cost, as a share of what the processes did besides, in the mean */
  double looked_at;    /* the share of what they did in which hits were looked at; 1: always */
  uint64_t windows;    /* how often the sites were attached */
  uint64_t of_hit;     /* what one costs in the mean, ns */
  uint64_t looked_for; /* time in which hits were looked at, ns */
  uint64_t lasted;     /* of all, ns */
  const char* trouble; /* why the sites could not be attached again; NULL: they could */
};
/* The overhead by the time of the ledger, whose text `trouble` is. NOT_FOUND: no max_overhead was asked for. */
int usdtc_ledger_overhead(const usdtc_ledger* ledger, struct usdtc_overhead* overhead, usdtc_error** error);

/* ---- events -------------------------------------------------------------------------------------------------- */

size_t usdtc_batch_count(const usdtc_batch* batch);
/* Valid as long as the batch; NULL: there are fewer. */
const usdtc_event* usdtc_batch_event(const usdtc_batch* batch, size_t n);
void usdtc_batch_free(usdtc_batch* batch);

/* Copies an event; the copy outlives its batch, callback and tracer. */
int usdtc_event_copy(const usdtc_event* event, usdtc_event** copy, usdtc_error** error);
/* Frees an event that usdtc_event_copy() made, and no other. */
void usdtc_event_free(usdtc_event* event);

/* Later versions may have more kinds; pass over events of kinds that you do not know. */
enum usdtc_event_kind { USDTC_EVENT_HIT = 1 };

struct usdtc_event_info {
  size_t size;
  uint32_t kind;  /* enum usdtc_event_kind */
  uint32_t probe; /* its number in the plan */
  uint32_t site;  /* its number in the plan; arguments depend on the site */
  uint32_t arg_count;
  uint64_t time;     /* of the hit, of a call that of its entry: ns of CLOCK_MONOTONIC, of the initial time namespace */
  uint64_t duration; /* of calls ("ucall:", "fsession:") from entry to return, ns; else 0 */
  uint32_t pid;      /* the process, as the tracer's pid namespace numbers it */
  uint32_t tid;      /* the thread, likewise */
  uint32_t cpu;
  uint32_t reserved;
  uint64_t address;       /* of the site in the process; 0: it is in the kernel */
  uint64_t user_cookie;   /* usdtc_plan_options.user_cookie */
  struct usdtc_text comm; /* the name of the thread, at most 15 bytes */
  const char* full_name;  /* of the probe, as usdtc_plan_probe_name() gives it */
  const char* file;       /* NULL: the site is in the kernel */
  const char* provider;
  const char* name;
  uint64_t wall_time; /* `time` as time of day, ns since 1970 */
  double weight;      /* how many hits it stands for: 1, unless there are guards */
};
int usdtc_event_read(const usdtc_event* event, struct usdtc_event_info* info, usdtc_error** error);

/* Describes argument `n` at the event's site. NOT_FOUND: there are fewer. */
int usdtc_event_arg(const usdtc_event* event, size_t n, struct usdtc_arg* info, usdtc_error** error);

enum usdtc_value_kind {
  USDTC_VALUE_SIGNED = 1,
  USDTC_VALUE_UNSIGNED = 2,
  USDTC_VALUE_FLOAT = 3,
  USDTC_VALUE_TEXT = 4,      /* UTF-8 */
  USDTC_VALUE_BYTES = 5,     /* text that is not UTF-8 */
  USDTC_VALUE_UNREADABLE = 6 /* there is no value; `text` says why */
};
enum usdtc_value_flags {
  USDTC_VALUE_TRUNCATED = 1, /* the text was cut to usdtc_trace_options.string_size */
  USDTC_VALUE_NULL = 2       /* with UNREADABLE: a null pointer was passed instead of a text */
};

struct usdtc_value {
  size_t size;
  uint32_t kind; /* enum usdtc_value_kind */
  uint32_t flags;
  union {
    int64_t i;  /* of SIGNED */
    uint64_t u; /* of UNSIGNED; of TEXT and BYTES: their address */
    double f;   /* of FLOAT */
  } number;
  struct usdtc_text text;       /* of TEXT and BYTES, without a closing NUL; of UNREADABLE the reason */
  struct usdtc_text enumerator; /* of an enum's value its name; empty: it has none */
};
/* The value of argument `n` at this hit. NOT_FOUND: there are fewer arguments. */
int usdtc_event_value(const usdtc_event* event, size_t n, struct usdtc_value* value, usdtc_error** error);

/* ---- tables -------------------------------------------------------------------------------------------------- */

/* The integer high * 2^64 + low: wide enough for the sum of any number of values. */
struct usdtc_wide {
  uint64_t low;
  int64_t high;
};

enum usdtc_row_flags {
  USDTC_ROW_REAL = 1, /* the value is a float or double: real_sum, real_minimum, real_maximum; the wide ones are 0 */
  USDTC_ROW_DISTINCT_AT_LEAST = 2 /* `distinct` may be more: of long texts only the beginning was compared */
};

struct usdtc_row {
  size_t size;
  uint64_t count; /* its hits; with guards this, the sums and the ranges are estimates */
  struct usdtc_wide sum;
  struct usdtc_wide minimum; /* USDTC_TABLE_EXTREMES; else 0 */
  struct usdtc_wide maximum;
  uint32_t key_count;
  uint32_t range_count; /* of the histogram: those that are not empty */
  uint32_t flags;       /* enum usdtc_row_flags */
  uint32_t reserved;
  double real_sum;     /* the exact sum, rounded once: it does not depend on the order of the values */
  double real_minimum; /* USDTC_TABLE_EXTREMES; else 0 */
  double real_maximum;
  uint64_t distinct; /* how many values there were, with the option "distinct" of a question; else 0 */
};

enum usdtc_range_flags {
  USDTC_RANGE_REAL = 1 /* real_first and real_end; the wide ones are 0 */
};

/* A range of a histogram. Integers: from `first` to `last`, both included; the outermost ranges of usdtc_table.step go
 * on to INT64_MIN and UINT64_MAX. Reals: from real_first on and below real_end; but negative ranges between powers of 2
 * are above real_first and up to real_end. If both are equal, only that number: 0, or an infinity. */
struct usdtc_range {
  size_t size;
  struct usdtc_wide first;
  struct usdtc_wide last;
  uint64_t count; /* hits */
  uint32_t flags; /* enum usdtc_range_flags */
  uint32_t reserved;
  double real_first;
  double real_end;
};

/* The rows as they are now, in the order of their keys; they are exact once the tracer is detached. INVALID_ARGUMENT:
 * no table was asked for. */
int usdtc_tracer_rows(const usdtc_tracer* tracer, usdtc_rows** rows, usdtc_error** error);
size_t usdtc_rows_count(const usdtc_rows* rows);
/* The expression of key `key`, as it was written: "str(arg0)"; NULL: there are fewer keys. */
const char* usdtc_rows_key_name(const usdtc_rows* rows, size_t key);
/* Row `n`. NOT_FOUND: there are fewer. */
int usdtc_rows_row(const usdtc_rows* rows, size_t n, struct usdtc_row* row, usdtc_error** error);
/* Key `key` of row `n`: a number, or a text, which is cut where USDTC_VALUE_TRUNCATED says so. Of the key "probe" the
 * text is the probe's full name, and number.u its number in the plan. */
int usdtc_rows_key(const usdtc_rows* rows, size_t n, size_t key, struct usdtc_value* value, usdtc_error** error);
/* Range `range` of row `n`, in the order of their numbers. */
int usdtc_rows_range(const usdtc_rows* rows, size_t n, size_t range, struct usdtc_range* out, usdtc_error** error);
/* The duration, ns, that `permille` of 1000 hits of row `n` do not exceed: at most 1/16 too large. INVALID_ARGUMENT:
 * the rows are not those of a question with the option "latency". */
int usdtc_rows_percentile(const usdtc_rows* rows, size_t n, unsigned permille, struct usdtc_wide* out,
                          usdtc_error** error);
void usdtc_rows_free(usdtc_rows* rows);

/* ---- recordings ---------------------------------------------------------------------------------------------- */

struct usdtc_replay_options {
  size_t size;
  const char* where;               /* only events for which the answer is yes, as of usdtc_plan_options; NULL: all */
  const struct usdtc_table* table; /* rows instead of events: usdtc_recording_rows(); NULL: events */
};

struct usdtc_recording_info {
  size_t size;
  const char* made_by; /* "usdt-trace 1.0.0" */
  const char* kernel;  /* the release of the kernel that it was made on */
  const char* machine; /* the machine of that, "x86_64" */
  const char* cut;     /* where it breaks off, and why; NULL: it is whole, as far as it was read */
};

/* Opens a recording of usdtc_tracer_record() or `usdt-trace --record`. It takes neither privilege nor the files that
 * were traced. `options` may be NULL. Errors: NOT_FOUND, NO_PERMISSION, IO, MALFORMED, NOT_SUPPORTED, LIMIT; SYNTAX,
 * INVALID_ARGUMENT (a question about what was not recorded). */
int usdtc_recording_open(const char* path, const struct usdtc_replay_options* options, usdtc_recording** recording,
                         usdtc_error** error);
int usdtc_recording_read(const usdtc_recording* recording, struct usdtc_recording_info* info, usdtc_error** error);
/* The plan of what was traced, with the names of its probes and notices. It cannot be attached, and lives as long as
 * the recording. */
const usdtc_plan* usdtc_recording_plan(const usdtc_recording* recording);
/* Takes the next events, at most `limit` (0: all). An empty batch: there are no more. Errors: IO, MALFORMED. */
int usdtc_recording_take(usdtc_recording* recording, size_t limit, usdtc_batch** batch, usdtc_error** error);
/* Hands the next events to a callback, as usdtc_tracer_poll(). */
int usdtc_recording_poll(usdtc_recording* recording, usdtc_on_event on_event, void* user, size_t limit, size_t* handed,
                         usdtc_error** error);
/* The rows of all events of the file, in the order of their keys. INVALID_ARGUMENT: no table was asked for. */
int usdtc_recording_rows(usdtc_recording* recording, usdtc_rows** rows, usdtc_error** error);
/* The account of all hits when it was recorded. NOT_FOUND: the file ends before any account. */
int usdtc_recording_ledger(const usdtc_recording* recording, usdtc_ledger** ledger, usdtc_error** error);
void usdtc_recording_free(usdtc_recording* recording);

/* ---- questions ----------------------------------------------------------------------------------------------- */

enum usdtc_option_flags {
  USDTC_OPTION_REPEATS = 1, /* may be set again and again, each time with another value */
  USDTC_OPTION_BARE = 2,    /* may be set without a value */
  USDTC_OPTION_REPLAY = 4   /* goes with "replay", too; other options are about tracing alone */
};
/* Describes an option that a question may be asked with: one of usdt-trace. Its texts are valid for ever. */
struct usdtc_option {
  size_t size;
  const char* name;        /* "max-events" */
  const char* value_name;  /* what its value is called in help, "N"; NULL: it has none */
  const char* group;       /* the heading it has in help */
  const char* description; /* what it does */
  uint32_t flags;          /* enum usdtc_option_flags */
  uint32_t reserved;
};
/* Describes option `n`, in the order of help. NOT_FOUND: there are fewer. */
int usdtc_option_describe(size_t n, struct usdtc_option* option, usdtc_error** error);

/* Makes a question without points and options. NULL: there is no memory. */
usdtc_question* usdtc_question_new(void);
/* Adds the name of a point, "python:gc__start", or of a span, "python:gc__start ~~ python:gc__done". */
int usdtc_question_add(usdtc_question* question, const char* point, usdtc_error** error);
/* Sets an option; `value` is NULL where it has none. Errors: NOT_FOUND (no option has this name, the message proposes
 * others), INVALID_ARGUMENT (the value has another form). */
int usdtc_question_set(usdtc_question* question, const char* option, const char* value, usdtc_error** error);
/* Checks that all of it makes sense together. That takes no privilege. Errors: SYNTAX, INVALID_ARGUMENT. */
int usdtc_question_check(const usdtc_question* question, usdtc_error** error);
void usdtc_question_free(usdtc_question* question);

/* ---- sessions ------------------------------------------------------------------------------------------------ */

/* Describes a form that answers are written in. Its texts are valid for ever. */
struct usdtc_format {
  size_t size;
  const char* name; /* "json" */
  const char* description;
  uint32_t has_lines; /* 1: lines of text; 0: a file for other programs */
  uint32_t is_sent;   /* 1: to a server by HTTP: usdtc_sink.file is "http://HOST:PORT" */
};
/* Describes form `n`. NOT_FOUND: there are fewer. */
int usdtc_format_describe(size_t n, struct usdtc_format* format, usdtc_error** error);

/* A callback that is given text that was written, pieces of whole lines without a NUL behind them. 0: go on; another
 * number: it takes no more, and the session ends. It must not call functions of the session. */
typedef int (*usdtc_on_text)(const char* text, size_t length, void* user);

/* Where answers to a question are written. */
struct usdtc_sink {
  size_t size;
  const char* format;    /* a name of usdtc_format_describe(); NULL: "json", an object a line (docs/json.md) */
  usdtc_on_text on_text; /* NULL: `file` is written to */
  void* user;            /* for on_text */
  const char* file;      /* is made, or emptied once answers begin; NULL: standard output; or a URL (is_sent) */
  uint32_t flags;        /* enum usdtc_sink_flags */
  uint32_t reserved;
  usdtc_on_event on_event; /* with USDTC_SINK_VALUES: is given each event, and `user`; NULL: usdtc_session_take() */
  /* The most that is kept for usdtc_session_take() and usdtc_session_text(), in bytes of memory. Events that come while
   * so much is kept are lost, and the ledger counts them as not_written. A sink that would keep more text takes no
   * more: its question has its answers, events without a line count as not_written, and usdtc_session_finish() says so
   * (LIMIT). 0: 256 MiB, or 8 times the ring if that is more. UINT64_MAX: no limit. */
  uint64_t max_kept;
  /* "ADDRESS:PORT", "[ADDRESS]:PORT", or "PORT" of 127.0.0.1: a page of metrics is served there while the session
   * lives, as "/metrics" (docs/exports.md). `format` is "prometheus", or NULL for it; on_text and file are NULL. */
  const char* listen;
};
enum usdtc_sink_flags {
  USDTC_SINK_KEEP = 1, /* the text is kept for usdtc_session_text(); on_text and file are NULL */
  /* Events are values, as those of a tracer; format, on_text and file are NULL. Not for heat maps and for stacks as
   * keys of rows, which are text alone. */
  USDTC_SINK_VALUES = 2
};

/* Makes a session, which answers questions: it finds what they name, waits for what is not there yet, attaches, takes
 * in what comes later, and accounts for every hit. NULL: there is no memory. */
usdtc_session* usdtc_session_new(void);
/* Asks a question, all of them before usdtc_session_begin(); it may be freed then. `name` stands before what is about
 * it, and in its JSON as "question"; NULL: there is one question. `sinks` are `sink_count` pointers. What the option
 * "record" names is written besides. The questions are all live, or all of recordings ("replay"). Errors: those of
 * usdtc_question_check(); INVALID_ARGUMENT (no such format, or one that cannot have this question; no place to listen
 * at; a file that another sink of the session writes to, or that is replayed; two sinks with USDTC_SINK_VALUES; a
 * session that has begun), NO_PERMISSION, IO (the files). Opening a named pipe waits for its reader. */
int usdtc_session_ask(usdtc_session* session, const usdtc_question* question, const char* name,
                      const struct usdtc_sink* const* sinks, size_t sink_count, usdtc_error** error);
/* Finds and attaches what there is. Where this process may not attach, usdt-broker does, if it is there
 * (docs/broker.md), to processes of this user alone; a notice says so. Errors: NOT_FOUND, NO_PERMISSION, NOT_SUPPORTED,
 * CHANGED, LIMIT, VERIFIER, IO. */
int usdtc_session_begin(usdtc_session* session, usdtc_error** error);
/* Hands on what has come, and waits for that for up to `timeout_ms`, at most 50 (negative: does not wait). `more`
 * receives 0 when the session is over: by "duration" or "max-events", since its processes have ended, since it was
 * asked to stop, or behind usdtc_session_finish(). */
int usdtc_session_step(usdtc_session* session, int timeout_ms, int* more, usdtc_error** error);
/* Detaches, and writes what is left and the accounts. Errors: IO (something could not be written; the message says what
 * and why), LIMIT (usdtc_sink.max_kept). */
int usdtc_session_finish(usdtc_session* session, usdtc_error** error);
/* Asks the session to end: a step says so within 50 ms. For any thread and signal handlers. */
void usdtc_session_stop(usdtc_session* session);
/* A descriptor for event loops, readable when a step has something to do. It belongs to the session. */
int usdtc_session_fd(usdtc_session* session, int* fd, usdtc_error** error);
/* Gives the text that sinks with USDTC_SINK_KEEP have been given, from byte `from` of all of it on: whole lines of a
 * form that has lines. What is before `from` is forgotten, so that whoever is interrupted in between asks again and
 * misses nothing. It is valid until the next call with this session. INVALID_ARGUMENT: what is there begins behind
 * `from`, or ends before it. */
int usdtc_session_text(usdtc_session* session, uint64_t from, struct usdtc_text* text, usdtc_error** error);
/* Takes the oldest events that are kept of question `n`, at most `limit` (0: all): those of its sink with
 * USDTC_SINK_VALUES. Questions have numbers from 0 on, in the order in which they were asked. With the options
 * "slowest" and "in-flight" they come at the end, the slowest first. */
int usdtc_session_take(usdtc_session* session, size_t n, size_t limit, usdtc_batch** batch, usdtc_error** error);
/* The rows of the table that question `n` is about, as they were last looked at: every "interval", and at the end. The
 * largest come first. NOT_FOUND: nobody has looked yet. INVALID_ARGUMENT: it is about no table. */
int usdtc_session_rows(const usdtc_session* session, size_t n, usdtc_rows** rows, usdtc_error** error);
/* The account of question `n` as it was within the last second, and in the end the exact one. NOT_FOUND: there is none
 * yet. */
int usdtc_session_ledger(const usdtc_session* session, size_t n, usdtc_ledger** ledger, usdtc_error** error);
/* Notice `n`, in the order in which they came up. NOT_FOUND: there are no more yet. */
int usdtc_session_notice(const usdtc_session* session, size_t n, struct usdtc_notice* notice, usdtc_error** error);
/* Detaches all, if usdtc_session_finish() has not. */
void usdtc_session_free(usdtc_session* session);

#ifdef __cplusplus
}
#endif

#endif
