/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists probes with the types of their arguments, or traces them, from C:
 *     trace FILE                   lists, unprivileged
 *     trace PROBE MILLISECONDS     traces, as root: "usdt:./server:db:query" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <usdt/usdtc.h>

static int complain(usdtc_error* error) {
  fprintf(stderr, "trace: %s\n", usdtc_error_message(error));
  usdtc_error_free(error);
  return 1;
}

static int list(const char* file) {
  struct usdtc_search search = {.size = sizeof(search), .targets = &file, .target_count = 1};
  usdtc_selection* selection;
  usdtc_error* error;
  if (usdtc_select(&search, &selection, &error) != 0) return complain(error);
  for (size_t n = 0; n < usdtc_selection_count(selection); ++n) {
    struct usdtc_point point = {.size = sizeof(point)};
    usdtc_selection_point(selection, n, &point, NULL);
    printf("%s:%s(", point.provider, point.name);
    for (uint32_t i = 0; i < point.arg_count; ++i) {
      struct usdtc_arg arg = {.size = sizeof(arg)};
      usdtc_selection_arg(selection, n, i, &arg, NULL);
      const char letter = arg.kind == USDTC_TYPE_FLOAT ? 'f' : (arg.flags & USDTC_ARG_SIGNED) ? 'i' : 'u';
      printf("%s%c%" PRIu32, i ? ", " : "", letter, 8 * arg.bytes);
    }
    printf(")\n");
  }
  usdtc_selection_free(selection);
  return 0;
}

static void print(const usdtc_event* event, void* unused) {
  (void)unused;
  struct usdtc_event_info info = {.size = sizeof(info)};
  usdtc_event_read(event, &info, NULL);
  printf("%" PRIu32 " %s:%s", info.pid, info.provider, info.name);
  for (uint32_t n = 0; n < info.arg_count; ++n) {
    struct usdtc_value value = {.size = sizeof(value)};
    usdtc_event_value(event, n, &value, NULL);
    switch (value.kind) {
      case USDTC_VALUE_SIGNED:
        printf(" %" PRId64, value.number.i);
        break;
      case USDTC_VALUE_UNSIGNED:
        printf(" %" PRIu64, value.number.u);
        break;
      case USDTC_VALUE_FLOAT:
        printf(" %g", value.number.f);
        break;
      case USDTC_VALUE_TEXT:
        printf(" '%.*s'", (int)value.text.length, value.text.data);
        break;
      case USDTC_VALUE_UNREADABLE:
        printf(" <%.*s>", (int)value.text.length, value.text.data);
        break;
      default:
        printf(" ?");
        break; /* of a later version, or bytes that no terminal should see */
    }
  }
  printf("\n");
}

static int trace(const char* probe, int milliseconds) {
  struct usdtc_search search = {.size = sizeof(search), .patterns = &probe, .pattern_count = 1};
  struct usdtc_plan_options options = {.size = sizeof(options), .texts = USDTC_TEXTS_DESCRIBED | USDTC_TEXTS_LIKELY};
  usdtc_selection* selection = NULL;
  usdtc_plan* plan = NULL;
  usdtc_tracer* tracer = NULL;
  usdtc_error* error = NULL;
  int status = 0;
  if (usdtc_select(&search, &selection, &error) != 0 || usdtc_plan_make(selection, &options, &plan, &error) != 0 ||
      usdtc_tracer_start(plan, NULL, &tracer, &error) != 0)
    status = complain(error);
  size_t handed = 1;
  for (; status == 0 && handed > 0;) /* until nothing comes for so long */
    if (usdtc_tracer_poll(tracer, print, NULL, milliseconds, 0, &handed, &error) != 0) status = complain(error);
  usdtc_tracer_free(tracer);
  usdtc_plan_free(plan);
  usdtc_selection_free(selection);
  return status;
}

int main(int argc, char** argv) {
  if (argc == 2) return list(argv[1]);
  if (argc == 3) return trace(argv[1], atoi(argv[2]));
  fprintf(stderr, "usage: trace FILE | trace PROBE MILLISECONDS\n");
  return 2;
}
