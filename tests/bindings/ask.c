/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question in C: ask-c FILE POINT... -- NAME=VALUE... NAME...      answers go to FILE, as JSON */
#include <stdio.h>
#include <string.h>
#include <usdt/usdtc.h>

static int complain(usdtc_error* error) {
  fprintf(stderr, "ask-c: %s\n", usdtc_error_message(error));
  usdtc_error_free(error);
  return 1;
}

static int answer(usdtc_session* session) {
  usdtc_error* error = NULL;
  int more = 1;
  if (usdtc_session_begin(session, &error) != 0) return complain(error);
  while (more)
    if (usdtc_session_step(session, 50, &more, &error) != 0) return complain(error);
  return usdtc_session_finish(session, &error) == 0 ? 0 : complain(error);
}

int main(int count, char** words) {
  usdtc_error* error = NULL;
  usdtc_question* question = usdtc_question_new();
  int n = 2;
  for (; n < count && strcmp(words[n], "--") != 0; ++n)
    if (usdtc_question_add(question, words[n], &error) != 0) return complain(error);
  for (++n; n < count; ++n) {
    char* value = strchr(words[n], '=');
    if (value) *value++ = '\0';
    if (usdtc_question_set(question, words[n], value, &error) != 0) return complain(error);
  }
  const struct usdtc_sink json = {.size = sizeof(json), .file = words[1]};
  const struct usdtc_sink* const sinks[] = {&json};
  usdtc_session* session = usdtc_session_new();
  if (usdtc_session_ask(session, question, NULL, sinks, 1, &error) != 0) return complain(error);
  const int result = answer(session);
  usdtc_session_free(session);
  usdtc_question_free(question);
  return result;
}
