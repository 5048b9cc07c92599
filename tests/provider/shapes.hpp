// SPDX-License-Identifier: BSD-2-Clause
// Probes in code that more than one object file has: inline functions, templates, virtual members. The linker keeps
// one.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <usdt/probe.h>

#include "said.h"

/// A string_view, for compilers without a C++ library.
struct Text {
  const char* begin;
  size_t length;
  [[nodiscard]] const char* data() const { return begin; }
  [[nodiscard]] size_t size() const { return length; }
};

struct Numbers {
  const int32_t* begin;
  size_t count;
  [[nodiscard]] const int32_t* data() const { return begin; }
  [[nodiscard]] size_t size() const { return count; }
};

inline NOINLINE void in_header(int value) {
  USDT_PROBE(cpp, in_header, value);
  USDT_PROBE_LAZY(cpp, lazy_in_header, value);
  USDT_PROBE_STUB(cpp, stub_in_header, value);
  SAID("in_header", value);
  if (USDT_PROBE_ENABLED(cpp, lazy_in_header)) SAID("lazy_in_header", value);
  if (USDT_PROBE_ENABLED(cpp, stub_in_header)) SAID("stub_in_header", value);
}

template <class T>
NOINLINE void in_template(T value) {
  USDT_PROBE(cpp, in_template, value, sizeof(T));
  USDT_PROBE_STUB(cpp, stub_in_template, value);
  SAID("in_template", static_cast<long long>(value), static_cast<long long>(sizeof(T)));
  if (USDT_PROBE_ENABLED(cpp, stub_in_template)) SAID("stub_in_template", static_cast<long long>(value));
}

struct Shape {
  int sides = 3;
  virtual NOINLINE void draw(int value) {
    USDT_PROBE(cpp, in_member, this, sides, value);
    SAID("in_member", static_cast<long long>(reinterpret_cast<uintptr_t>(this)), sides, value);
  }
};
