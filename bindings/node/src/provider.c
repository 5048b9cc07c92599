/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of this process, over <usdt/provider.h>. index.js makes classes of it. */
#include <math.h>
#include <usdt/provider.h>

#include "napi_helpers.h"

/* In the order of index.js. */
enum kind { I8, I16, I32, I64, U8, U16, U32, U64, BOOL, F32, F64, PTR, STR, TEXT, BYTES };

struct probe {
  usdtp_probe* probe;
  uint32_t count; /* of arguments as JavaScript passes them: `text` and `bytes` are one */
  uint8_t kinds[USDTP_MAX_ARGUMENTS];
};

static const napi_type_tag kProvider = {0x6f1ce1a40b6f4a7dULL, 0x9d1ea9f2757e41c3ULL};
static const napi_type_tag kProbe = {0x2ad5f5f3f1c84a0eULL, 0x8e2b64b7ad1d4c55ULL};

static napi_value throw_errno(napi_env env, int number) {
  napi_value error = NULL;
  TRY(napi_create_error(env, NULL, text_value(env, strerror(number)), &error));
  set(env, error, "errno", number_value(env, -number));
  napi_throw(env, error);
  return NULL;
}

/* A provider lives as long as the process: probes of it may be fired by whoever still has one. retire() ends it. */
struct provider {
  usdtp_provider* provider;
};

static void forget(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  free(data);
}

/* create(name, flags) -> provider */
static napi_value create(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  size_t count = 2;
  uint32_t flags = 0;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  TRY(napi_get_value_uint32(env, arguments[1], &flags));
  char* name = text_of(env, arguments[0]);
  struct provider* made = calloc(1, sizeof(*made));
  int result = made ? -EINVAL : -ENOMEM;
  if (name && made) result = usdtp_provider_create(name, flags, &made->provider);
  free(name);
  if (result != 0) {
    free(made);
    return throw_errno(env, -result);
  }
  return handle_value(env, made, &kProvider, forget);
}

/* add(provider, name, declaration, kinds: Uint8Array) -> [probe, semaphore: Uint16Array] */
static napi_value add(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  size_t count = 4, kinds_count = 0;
  void* kinds = NULL;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  struct provider* provider = handle_of(env, arguments[0], &kProvider);
  if (!provider) return NULL;
  TRY(napi_get_typedarray_info(env, arguments[3], NULL, &kinds_count, &kinds, NULL, NULL));
  char* name = text_of(env, arguments[1]);
  char* declaration = text_of(env, arguments[2]);
  struct probe* made = calloc(1, sizeof(*made));
  int result = made ? -EINVAL : -ENOMEM;
  if (name && declaration && made)
    result = provider->provider ? usdtp_probe_add(provider->provider, name, declaration, &made->probe) : -EBADF;
  free(name);
  free(declaration);
  if (result == 0 && kinds_count > USDTP_MAX_ARGUMENTS) result = -E2BIG;
  if (result != 0) {
    free(made);
    return throw_errno(env, -result);
  }
  made->count = (uint32_t)kinds_count;
  if (kinds_count > 0) memcpy(made->kinds, kinds, kinds_count);
  napi_value pair = NULL, memory = NULL, semaphore = NULL;
  napi_value handle = handle_value(env, made, &kProbe, forget);
  if (!handle) return NULL;
  /* The counter itself, which lives as long as the process: looking at it is no call. */
  TRY(napi_create_external_arraybuffer(env, &made->probe->semaphore, sizeof(uint16_t), NULL, NULL, &memory));
  TRY(napi_create_typedarray(env, napi_uint16_array, 1, memory, 0, &semaphore));
  TRY(napi_create_array_with_length(env, 2, &pair));
  TRY(napi_set_element(env, pair, 0, handle));
  TRY(napi_set_element(env, pair, 1, semaphore));
  return pair;
}

/* publish(provider) */
static napi_value publish(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct provider* provider = handle_of(env, argument, &kProvider);
  if (!provider) return NULL;
  const int result = provider->provider ? usdtp_provider_publish(provider->provider) : -EBADF;
  return result == 0 ? undefined_value(env) : throw_errno(env, -result);
}

/* retire(provider) */
static napi_value retire(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct provider* provider = handle_of(env, argument, &kProvider);
  if (!provider) return NULL;
  usdtp_provider_retire(provider->provider);
  provider->provider = NULL;
  return undefined_value(env);
}

/* What is fired: words, and texts that are to be freed then. */
struct values {
  uint64_t words[USDTP_MAX_ARGUMENTS + 2];
  size_t count;
  void* texts[USDTP_MAX_ARGUMENTS];
  size_t text_count;
};

static bool integer_of(napi_env env, napi_value value, napi_valuetype type, enum kind kind, uint64_t* word) {
  const unsigned bits = kind == PTR ? 64 : 8U << (kind % 4);
  const bool is_signed = kind <= I64;
  if (type == napi_bigint) {
    bool exact = false;
    int64_t number = 0;
    if (is_signed) {
      napi_get_value_bigint_int64(env, value, &number, &exact);
      *word = (uint64_t)number;
      return exact && (bits == 64 || (number >= -(1LL << (bits - 1)) && number < 1LL << (bits - 1)));
    }
    napi_get_value_bigint_uint64(env, value, word, &exact);
    return exact && (bits == 64 || *word >> bits == 0);
  }
  double number = 0;
  if (type != napi_number || napi_get_value_double(env, value, &number) != napi_ok || number != floor(number))
    return false;
  const double most = is_signed ? ldexp(1, (int)bits - 1) : ldexp(1, (int)bits);
  if (number >= most || number < (is_signed ? -most : 0)) return false;
  *word = is_signed ? (uint64_t)(int64_t)number : (uint64_t)number;
  return true;
}

/* Text, or the bytes of a Buffer, and a NUL behind them; null and undefined: a null pointer. */
static bool text_words(napi_env env, napi_value value, napi_valuetype type, bool sized, struct values* values) {
  char* copy = NULL;
  size_t length = 0;
  if (type == napi_string) {
    if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok || !(copy = malloc(length + 1)))
      return false;
    napi_get_value_string_utf8(env, value, copy, length + 1, &length);
  } else if (type == napi_object) {
    void* bytes = NULL;
    bool is_buffer = false;
    if (napi_is_buffer(env, value, &is_buffer) != napi_ok || !is_buffer ||
        napi_get_buffer_info(env, value, &bytes, &length) != napi_ok || !(copy = malloc(length + 1)))
      return false;
    if (length > 0) memcpy(copy, bytes, length);
    copy[length] = '\0';
  } else if (type != napi_null && type != napi_undefined) {
    return false;
  }
  if (copy) values->texts[values->text_count++] = copy;
  values->words[values->count++] = (uint64_t)(uintptr_t)copy;
  if (sized) values->words[values->count++] = length;
  return true;
}

static bool add_value(napi_env env, napi_value value, enum kind kind, struct values* values) {
  napi_valuetype type = napi_undefined;
  napi_typeof(env, value, &type);
  if (kind >= STR) return text_words(env, value, type, kind != STR, values);
  uint64_t* word = &values->words[values->count++];
  if (kind == F32 || kind == F64) {
    double number = 0;
    if (napi_get_value_double(env, value, &number) != napi_ok) return false;
    const float narrow = (float)number;
    *word = 0;
    kind == F64 ? memcpy(word, &number, sizeof(number)) : memcpy(word, &narrow, sizeof(narrow));
    return true;
  }
  if (kind == BOOL) {
    bool boolean = false;
    napi_value coerced = NULL;
    if (napi_coerce_to_bool(env, value, &coerced) != napi_ok) return false;
    napi_get_value_bool(env, coerced, &boolean);
    *word = boolean;
    return true;
  }
  return integer_of(env, value, type, kind, word);
}

/* fire(probe, ...values) -> whether they fit. Their number is the caller's business. */
static napi_value fire(napi_env env, napi_callback_info info) {
  napi_value arguments[1 + USDTP_MAX_ARGUMENTS];
  size_t count = 1 + USDTP_MAX_ARGUMENTS;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  const struct probe* probe = handle_of(env, arguments[0], &kProbe);
  if (!probe) return NULL;
  struct values values;
  values.count = values.text_count = 0;
  bool fit = count == 1 + probe->count;
  for (uint32_t i = 0; fit && i < probe->count; ++i)
    fit = add_value(env, arguments[1 + i], (enum kind)probe->kinds[i], &values);
  if (fit) fit = usdtp_fire(probe->probe, values.words, values.count) == 0;
  for (size_t i = 0; i < values.text_count; ++i) free(values.texts[i]);
  return boolean_value(env, fit);
}

NAPI_MODULE_INIT() {
  static const struct exported all[] = {
      {"create", create}, {"add", add}, {"publish", publish}, {"retire", retire}, {"fire", fire}};
  return export_all(env, exports, all, sizeof(all) / sizeof(all[0]));
}
