/* SPDX-License-Identifier: BSD-2-Clause */
/* What both addons do with values of JavaScript. A call of Node-API that fails leaves an exception pending. */
#ifndef USDT_NAPI_HELPERS_H
#define USDT_NAPI_HELPERS_H

#define NAPI_VERSION 8
#include <errno.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ends the function with NULL where a call fails; says so unless something is said already. */
#define TRY(call)                                                                   \
  do {                                                                              \
    if ((call) != napi_ok) {                                                        \
      bool pending = false;                                                         \
      napi_is_exception_pending(env, &pending);                                     \
      if (!pending) napi_throw_type_error(env, NULL, "usdt: bad argument: " #call); \
      return NULL;                                                                  \
    }                                                                               \
  } while (0)

static inline napi_value undefined_value(napi_env env) {
  napi_value value = NULL;
  napi_get_undefined(env, &value);
  return value;
}

static inline void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

static inline napi_value text_value(napi_env env, const char* text) {
  napi_value value = NULL;
  if (text)
    napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  else
    napi_get_null(env, &value);
  return value;
}

static inline napi_value number_value(napi_env env, double number) {
  napi_value value = NULL;
  napi_create_double(env, number, &value);
  return value;
}

static inline napi_value boolean_value(napi_env env, bool boolean) {
  napi_value value = NULL;
  napi_get_boolean(env, boolean, &value);
  return value;
}

static inline napi_value u64_value(napi_env env, uint64_t number) {
  napi_value value = NULL;
  napi_create_bigint_uint64(env, number, &value);
  return value;
}

/* NUL-terminated, to be freed; NULL: no string, no memory, or a NUL within, before which C would take it to end. */
static inline char* text_of(napi_env env, napi_value value) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  char* text = malloc(length + 1);
  if (!text) return NULL;
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (strlen(text) == length) return text;
  free(text);
  return NULL;
}

/* The pointer behind an argument that has to be a handle of `tag`. */
static inline void* handle_of(napi_env env, napi_value value, const napi_type_tag* tag) {
  bool right = false;
  void* pointer = NULL;
  if (napi_check_object_type_tag(env, value, tag, &right) != napi_ok || !right ||
      napi_unwrap(env, value, &pointer) != napi_ok) {
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) napi_throw_type_error(env, NULL, "usdt: not such a handle");
    return NULL;
  }
  return pointer;
}

/* An object that stands for `pointer` and frees it in the end. */
static inline napi_value handle_value(napi_env env, void* pointer, const napi_type_tag* tag, napi_finalize finalize) {
  napi_value object = NULL;
  TRY(napi_create_object(env, &object));
  TRY(napi_type_tag_object(env, object, tag));
  TRY(napi_wrap(env, object, pointer, finalize, NULL, NULL));
  return object;
}

struct exported {
  const char* name;
  napi_callback function;
};

static inline napi_value export_all(napi_env env, napi_value exports, const struct exported* all, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    napi_value function = NULL;
    TRY(napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH, all[i].function, NULL, &function));
    TRY(napi_set_named_property(env, exports, all[i].name, function));
  }
  return exports;
}

#endif
