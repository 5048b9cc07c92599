# SPDX-License-Identifier: BSD-2-Clause
# Turns the file OBJECT into the header HEADER with `NAME_object()`, a span over its bytes. They are a string, which compilers
# read ten times as fast as an array of numbers (and about whose length clang warns with -Wpedantic).
file(READ ${OBJECT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
string(REGEX REPLACE "((\\\\x..){24})" "\\1\"\n    \"" bytes "${bytes}")
file(WRITE ${HEADER} "// Generated from ${NAME}.bpf.c; do not edit.
#pragma once
#pragma GCC system_header
#include <cstddef>
#include <span>

inline std::span<const std::byte> ${NAME}_object() {
  alignas(8) static constexpr char bytes[] =
    \"${bytes}\";
  return std::as_bytes(std::span(bytes, sizeof(bytes) - 1));
}
")
