/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments of a probe: their declaration, as it is read and as the notes have it. */
#ifndef USDT_PROVIDER_ARGUMENTS_H
#define USDT_PROVIDER_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <usdt/provider.h>

/* Longest name of a provider or probe, and longest declaration, in bytes. */
enum { USDTP_MAX_NAME = 127, USDTP_MAX_DECLARATION = 4095 };

struct usdtp_arguments {
  uint8_t count;                      /* of the stapsdt note: text and bytes are two */
  uint8_t types[USDTP_MAX_ARGUMENTS]; /* enum usdtp_type, 0 behind the last */
  uint8_t has_meanings;               /* or units: there is more to say than types and names */
};

/* Whether providers and probes may be called so. */
int usdtp_is_name(const char* name);

/*
 * Reads a declaration. `items` (as long as the declaration and its NUL) becomes its text without the types, as notes
 * have it: "sql, rows, took:duration[us]". Returns 0, -EINVAL or -E2BIG.
 */
int usdtp_read_arguments(const char* declaration, struct usdtp_arguments* arguments, char* items);

/* Bytes of a type on this machine, negative for signed ones, as notes write it. */
int usdtp_size_of(uint8_t type);

/* `value`, of type `from`, as one of type `to`; both in the lower bytes. */
uint64_t usdtp_convert(uint64_t value, uint8_t from, uint8_t to);

#endif
