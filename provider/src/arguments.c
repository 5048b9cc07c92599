/* SPDX-License-Identifier: BSD-2-Clause */
#include "arguments.h"

#include <errno.h>
#include <string.h>

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_word(char c) { return is_letter(c) || is_digit(c); }

int usdtp_is_name(const char* name) {
  if (!name || !is_letter(name[0])) return 0;
  size_t length = 1;
  while (length <= USDTP_MAX_NAME && (is_word(name[length]) || name[length] == '-' || name[length] == '.')) ++length;
  return length <= USDTP_MAX_NAME && name[length] == '\0';
}

/* The words that a declaration has for types, which are those of `usdt-trace --args`. */
static const struct {
  char word[6];
  uint8_t type;
  uint8_t then; /* the type of a second argument, or 0 */
} declared_types[] = {
    {"i8", USDTP_SIGNED_CHAR, 0},
    {"i16", USDTP_SHORT, 0},
    {"i32", USDTP_INT, 0},
    {"i64", USDTP_LONG_LONG, 0},
    {"u8", USDTP_UNSIGNED_CHAR, 0},
    {"u16", USDTP_UNSIGNED_SHORT, 0},
    {"u32", USDTP_UNSIGNED_INT, 0},
    {"u64", USDTP_UNSIGNED_LONG_LONG, 0},
    {"bool", USDTP_BOOL, 0},
    {"f32", USDTP_FLOAT, 0},
    {"f64", USDTP_DOUBLE, 0},
    {"ptr", USDTP_CONST_POINTER, 0},
    {"str", USDTP_CONST_STRING, 0},
    {"text", USDTP_TEXT, USDTP_LENGTH},
    {"bytes", USDTP_BYTES, USDTP_LENGTH},
};

/* A declaration that is being read, and its output. */
struct reader {
  const char* at;
  char* out;
};

static void skip_space(struct reader* reader) {
  while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n') ++reader->at;
}

/* A run of word characters; its length, 0 if there is none. */
static size_t word_at(const char* at) {
  size_t length = 0;
  while (is_word(at[length])) ++length;
  return length;
}

static int take(struct reader* reader, char c) {
  skip_space(reader);
  if (*reader->at != c) return 0;
  ++reader->at;
  return 1;
}

/* Copies the next word to the items; 0 if there is none. */
static size_t copy_word(struct reader* reader) {
  skip_space(reader);
  const size_t length = word_at(reader->at);
  memcpy(reader->out, reader->at, length);
  reader->at += length;
  reader->out += length;
  return length;
}

static int add_type(struct usdtp_arguments* arguments, uint8_t type) {
  if (arguments->count == USDTP_MAX_ARGUMENTS) return -E2BIG;
  arguments->types[arguments->count++] = type;
  return 0;
}

static int read_type(struct reader* reader, struct usdtp_arguments* arguments) {
  skip_space(reader);
  const size_t length = word_at(reader->at);
  for (size_t i = 0; i < sizeof declared_types / sizeof declared_types[0]; ++i) {
    if (strlen(declared_types[i].word) != length || memcmp(declared_types[i].word, reader->at, length) != 0) continue;
    reader->at += length;
    const int added = add_type(arguments, declared_types[i].type);
    return added != 0 || !declared_types[i].then ? added : add_type(arguments, declared_types[i].then);
  }
  return -EINVAL;
}

/* Whether one of the items before `name` is called so. */
static int is_known(const char* items, const char* name, size_t length) {
  for (const char* item = items; item < name; ++item) {
    const size_t there = word_at(item);
    if (there == length && memcmp(item, name, length) == 0) return 1;
    item += there;
    while (item < name && *item != ',') ++item;
  }
  return 0;
}

/* Copies the text up to the next of , } and others that no name of a number has; its length without blanks around it.
 */
static size_t copy_text(struct reader* reader) {
  skip_space(reader);
  size_t length = strcspn(reader->at, ",{}[]");
  const char* end = reader->at + length;
  while (length > 0 &&
         (reader->at[length - 1] == ' ' || reader->at[length - 1] == '\t' || reader->at[length - 1] == '\n'))
    --length;
  memcpy(reader->out, reader->at, length);
  reader->at = end;
  reader->out += length;
  return length;
}

/* Copies "0=idle, 0x10=busy, -1=gone}", which follows a brace; 0: that is not what is there. */
static int copy_numbers(struct reader* reader) {
  for (;;) {
    if (take(reader, '-')) *reader->out++ = '-';
    if (!is_digit(*reader->at) || copy_word(reader) == 0 || !take(reader, '=')) return 0;
    *reader->out++ = '=';
    if (copy_text(reader) == 0) return 0;
    if (!take(reader, ',')) break;
    *reader->out++ = ',';
    skip_space(reader);
  }
  if (!take(reader, '}')) return 0;
  *reader->out++ = '}';
  return 1;
}

/* Copies a meaning: a word, or the names that numbers have. */
static int copy_meaning(struct reader* reader) {
  if (!take(reader, '{')) return copy_word(reader) != 0;
  *reader->out++ = '{';
  skip_space(reader);
  return copy_numbers(reader);
}

static int read_item(struct reader* reader, struct usdtp_arguments* arguments, const char* items) {
  const int typed = read_type(reader, arguments);
  if (typed != 0) return typed;
  const char* name = reader->out;
  const size_t length = copy_word(reader);
  if (length == 0 || is_digit(name[0]) || is_known(items, name, length)) return -EINVAL;
  if (take(reader, ':')) {
    arguments->has_meanings = 1;
    *reader->out++ = ':';
    if (!copy_meaning(reader)) return -EINVAL;
  }
  if (take(reader, '[')) {
    arguments->has_meanings = 1;
    *reader->out++ = '[';
    if (copy_word(reader) == 0 || !take(reader, ']')) return -EINVAL;
    *reader->out++ = ']';
  }
  return 0;
}

int usdtp_read_arguments(const char* declaration, struct usdtp_arguments* arguments, char* items) {
  struct reader reader = {declaration, items};
  memset(arguments, 0, sizeof *arguments);
  skip_space(&reader);
  if (*reader.at == '\0') {
    *items = '\0';
    return 0;
  }
  for (;;) {
    const int status = read_item(&reader, arguments, items);
    if (status != 0) return status;
    if (!take(&reader, ',')) break;
    *reader.out++ = ',';
  }
  *reader.out = '\0';
  return *reader.at == '\0' ? 0 : -EINVAL;
}

int usdtp_size_of(uint8_t type) {
  switch ((enum usdtp_type)(type & ~USDTP_ENUM)) {
    case USDTP_BOOL:
    case USDTP_UNSIGNED_CHAR:
    case USDTP_CHAR8:
      return 1;
    case USDTP_CHAR:
      return (char)-1 < 0 ? -1 : 1;
    case USDTP_SIGNED_CHAR:
      return -1;
    case USDTP_SHORT:
      return -2;
    case USDTP_UNSIGNED_SHORT:
    case USDTP_CHAR16:
      return 2;
    case USDTP_INT:
      return -4;
    case USDTP_UNSIGNED_INT:
    case USDTP_CHAR32:
    case USDTP_FLOAT:
      return 4;
    case USDTP_WCHAR:
      return (wchar_t)-1 < 0 ? -(int)sizeof(wchar_t) : (int)sizeof(wchar_t);
    case USDTP_LONG:
      return -(int)sizeof(long);
    case USDTP_LONG_LONG:
      return -8;
    case USDTP_UNSIGNED_LONG:
    case USDTP_LENGTH:
    case USDTP_POINTER:
    case USDTP_CONST_POINTER:
    case USDTP_STRING:
    case USDTP_CONST_STRING:
    case USDTP_TEXT:
    case USDTP_BYTES:
      return (int)sizeof(long);
    case USDTP_UNSIGNED_LONG_LONG:
    case USDTP_DOUBLE:
      return 8;
    case USDTP_ENUM:
      break;
  }
  return 0;
}

/* All bits of an integer of so many bytes. */
static uint64_t widened(uint64_t value, int size) {
  const int shift = 64 - 8 * (size < 0 ? -size : size);
  return size < 0 ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static double from_bits(uint64_t bits, uint8_t type) {
  if (type == USDTP_FLOAT) {
    const uint32_t half = (uint32_t)bits;
    float single;
    memcpy(&single, &half, sizeof single);
    return (double)single;
  }
  double whole;
  memcpy(&whole, &bits, sizeof whole);
  return whole;
}

static uint64_t to_bits(double value, uint8_t type) {
  uint64_t bits = 0;
  if (type == USDTP_FLOAT) {
    const float single = (float)value;
    memcpy(&bits, &single, sizeof single); /* the lower half: all our machines are little-endian */
  } else {
    memcpy(&bits, &value, sizeof value);
  }
  return bits;
}

/* Towards zero; what is in no 64-bit number becomes what the machine's own conversion makes of such numbers. */
static uint64_t to_integer(double value) {
  const double two63 = 9223372036854775808.0;
  if (value >= -two63 && value < two63) return (uint64_t)(int64_t)value;
  if (value >= two63 && value < 2 * two63) return (uint64_t)value;
  return (uint64_t)1 << 63;
}

static int is_float(uint8_t type) { return type == USDTP_FLOAT || type == USDTP_DOUBLE; }

uint64_t usdtp_convert(uint64_t value, uint8_t from, uint8_t to) {
  if (from == to) return value;
  const int size = usdtp_size_of(from);
  if (is_float(from)) {
    const double number = from_bits(value, from);
    if (is_float(to)) return to_bits(number, to);
    return to == USDTP_BOOL ? number != 0 : to_integer(number);
  }
  if (size == 0) return 0;
  value = widened(value, size);
  if (is_float(to)) return to_bits(size < 0 ? (double)(int64_t)value : (double)value, to);
  return to == USDTP_BOOL ? value != 0 : value;
}
