/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ELF file that shows probes to tools: of this machine, at address 0, each address that of its byte in the file.
 *
 *   head    one page: ELF header, program headers, .stapsdt.base, .eh_frame
 *   text    a stub of USDTP_STUB_SIZE bytes for each probe
 *   data    the probes, USDTP_PROBE_SIZE bytes each, with their semaphores
 *   notes   and other tables, which nobody maps
 */
#ifndef USDT_PROVIDER_IMAGE_H
#define USDT_PROVIDER_IMAGE_H

#include "arguments.h"
#include "bytes.h"

enum { USDTP_STUB_SIZE = 32, USDTP_PROBE_SIZE = 32 };

/* Says where the parts begin; the parts before the notes are whole pages. */
struct usdtp_layout {
  size_t page;
  size_t text;
  size_t data;
  size_t notes;
};

/* One probe as its note describes it. */
struct usdtp_noted {
  const char* name;
  const char* items; /* its arguments without their types */
  const struct usdtp_arguments* arguments;
  size_t slot; /* of its stub and its semaphore */
};

/* Puts the stubs of `count` probes. */
void usdtp_put_stubs(struct usdtp_bytes* text, size_t count);

/*
 * Puts what comes from layout->notes on into `notes`, and what the first page begins with into `head`. Written in this
 * order, the file is an ELF file from the last moment on and no sooner.
 */
void usdtp_put_tables(const struct usdtp_layout* layout, const char* provider, const struct usdtp_noted* probes,
                      size_t count, struct usdtp_bytes* notes, struct usdtp_bytes* head);

#endif
