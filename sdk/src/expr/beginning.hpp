// SPDX-License-Identifier: BSD-2-Clause
// Numbers what a question about a span asks of its beginning, which programs at its end know from the record. Private
// to the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// usdt_begin_fact (bpf/include/usdt/bpf/filter.h), each once: values of the question, behind those of
/// TypedExpression::args(), in this order.
[[nodiscard]] std::vector<std::uint8_t> beginning_facts(const TypedExpression& question);
/// Returns which words take how many of them, for people: "pid and tid are one each, comm is two".
[[nodiscard]] std::string words_of_beginning();
/// Returns whether the question is about whose process it was, which no record has, and which is kept beside it.
[[nodiscard]] bool asks_for_owner(const TypedExpression& question);

}  // namespace usdt::expr
