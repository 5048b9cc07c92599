/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing.h"

static bool read_texts(napi_env env, napi_value object, const char* name, struct texts* texts) {
  napi_value list = NULL, each = NULL;
  uint32_t count = 0;
  texts->all = NULL;
  texts->count = 0;
  if (napi_get_named_property(env, object, name, &list) != napi_ok ||
      napi_get_array_length(env, list, &count) != napi_ok)
    return false;
  if (count == 0) return true;
  texts->all = calloc(count, sizeof(char*));
  for (uint32_t i = 0; texts->all && i < count; ++i) {
    if (napi_get_element(env, list, i, &each) != napi_ok || !(texts->all[i] = text_of(env, each))) return false;
    texts->count = i + 1;
  }
  return texts->all != NULL;
}

static void free_texts(struct texts* texts) {
  for (uint32_t i = 0; i < texts->count; ++i) free(texts->all[i]);
  free(texts->all);
}

static bool read_pids(napi_env env, napi_value object, const char* name, int32_t** pids, size_t* count) {
  napi_value list = NULL, each = NULL;
  uint32_t length = 0;
  *pids = NULL;
  *count = 0;
  if (napi_get_named_property(env, object, name, &list) != napi_ok ||
      napi_get_array_length(env, list, &length) != napi_ok)
    return false;
  if (length == 0) return true;
  if (!(*pids = calloc(length, sizeof(int32_t)))) return false;
  for (uint32_t i = 0; i < length; ++i)
    if (napi_get_element(env, list, i, &each) != napi_ok || napi_get_value_int32(env, each, &(*pids)[i]) != napi_ok)
      return false;
  *count = length;
  return true;
}

static bool read_number(napi_env env, napi_value object, const char* name, uint32_t* number) {
  napi_value value = NULL;
  return napi_get_named_property(env, object, name, &value) == napi_ok &&
         napi_get_value_uint32(env, value, number) == napi_ok;
}

/* A text or null; false: neither. */
static bool read_text(napi_env env, napi_value object, const char* name, char** text) {
  napi_value value = NULL;
  napi_valuetype type = napi_undefined;
  if (napi_get_named_property(env, object, name, &value) != napi_ok) return false;
  napi_typeof(env, value, &type);
  if (type == napi_null || type == napi_undefined) return true;
  *text = text_of(env, value);
  return *text != NULL;
}

/* A bigint. */
static bool read_signed(napi_env env, napi_value object, const char* name, int64_t* number) {
  napi_value value = NULL;
  bool lossless = false;
  return napi_get_named_property(env, object, name, &value) == napi_ok &&
         napi_get_value_bigint_int64(env, value, number, &lossless) == napi_ok && lossless;
}

static bool read_double(napi_env env, napi_value object, const char* name, double* number) {
  napi_value value = NULL;
  return napi_get_named_property(env, object, name, &value) == napi_ok &&
         napi_get_value_double(env, value, number) == napi_ok;
}

bool read_question(napi_env env, napi_value object, struct question* question) {
  napi_value table = NULL;
  napi_valuetype type = napi_undefined;
  struct usdtc_table* out = &question->table;
  if (!read_text(env, object, "where", &question->where) ||
      napi_get_named_property(env, object, "table", &table) != napi_ok)
    return false;
  napi_typeof(env, table, &type);
  if (type == napi_null || type == napi_undefined) return true;
  out->size = sizeof(*out);
  if (!read_text(env, table, "by", &question->by) || !read_text(env, table, "value", &question->value) ||
      !read_text(env, table, "histogram", &question->histogram) || !read_number(env, table, "flags", &out->flags) ||
      !read_number(env, table, "maxRows", &out->max_rows) ||
      !read_number(env, table, "detail", &out->histogram_detail) || !read_number(env, table, "digits", &out->digits) ||
      !read_signed(env, table, "from", &out->from) || !read_signed(env, table, "to", &out->to) ||
      !read_signed(env, table, "step", &out->step))
    return false;
  out->by = question->by;
  out->value = question->value;
  out->histogram = question->histogram;
  return true;
}

void free_question(struct question* question) {
  free(question->where);
  free(question->by);
  free(question->value);
  free(question->histogram);
}

const struct usdtc_table* table_of(const struct question* question) {
  return question->table.size != 0 ? &question->table : NULL;
}

bool read_search(napi_env env, napi_value object, struct wanted* wanted) {
  napi_value program = NULL;
  napi_valuetype type = napi_undefined;
  if (!read_texts(env, object, "patterns", &wanted->patterns) ||
      !read_texts(env, object, "targets", &wanted->targets) ||
      !read_pids(env, object, "searched", &wanted->pids, &wanted->pid_count) ||
      napi_get_named_property(env, object, "program", &program) != napi_ok)
    return false;
  napi_typeof(env, program, &type);
  if (type != napi_string) return true;
  wanted->program = text_of(env, program);
  return wanted->program != NULL;
}

bool read_trace(napi_env env, napi_value object, struct wanted* wanted) {
  return read_search(env, object, wanted) && read_texts(env, object, "textArgs", &wanted->text_args) &&
         read_texts(env, object, "values", &wanted->values) &&
         read_pids(env, object, "pids", &wanted->scope, &wanted->scope_count) &&
         read_pids(env, object, "family", &wanted->family, &wanted->family_count) &&
         read_number(env, object, "texts", &wanted->plan.texts) &&
         read_number(env, object, "planFlags", &wanted->plan.flags) &&
         read_number(env, object, "traceFlags", &wanted->trace.flags) &&
         read_question(env, object, &wanted->question) && read_text(env, object, "record", &wanted->record) &&
         read_number(env, object, "stringSize", &wanted->trace.string_size) &&
         read_number(env, object, "ringBytes", &wanted->trace.ring_bytes) &&
         read_number(env, object, "sample", &wanted->trace.sample) &&
         read_number(env, object, "maxRate", &wanted->trace.max_rate) &&
         read_double(env, object, "maxOverhead", &wanted->trace.max_overhead);
}

void free_wanted(struct wanted* wanted) {
  free_texts(&wanted->patterns);
  free_texts(&wanted->targets);
  free_texts(&wanted->text_args);
  free_texts(&wanted->values);
  free(wanted->pids);
  free(wanted->scope);
  free(wanted->family);
  free(wanted->program);
  free(wanted->record);
  free_question(&wanted->question);
}

int select_wanted(const struct wanted* wanted, usdtc_selection** selection, usdtc_error** error) {
  const struct usdtc_search search = {.size = sizeof(search),
                                      .patterns = (const char* const*)wanted->patterns.all,
                                      .pattern_count = wanted->patterns.count,
                                      .targets = (const char* const*)wanted->targets.all,
                                      .target_count = wanted->targets.count,
                                      .pids = wanted->pids,
                                      .pid_count = wanted->pid_count,
                                      .program = wanted->program};
  return usdtc_select(&search, selection, error);
}
