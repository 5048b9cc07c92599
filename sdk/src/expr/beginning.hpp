// SPDX-License-Identifier: BSD-2-Clause
// Numbers what a question asks that programs have ready among its values: of a span what is known of its beginning,
// from the record; of any hit what the thread works for. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// usdt_begin_fact (bpf/include/usdt/bpf/filter.h), each once: values of the question, behind those of
/// TypedExpression::args(), in this order.
[[nodiscard]] std::vector<std::uint8_t> beginning_facts(const TypedExpression& question);
/// Returns those among them that a question about any hit has: of HitFieldSource::context.
[[nodiscard]] std::vector<std::uint8_t> context_facts(const TypedExpression& question);
/// Returns which words take how many of them, for people: "pid and tid are one each, comm is two".
[[nodiscard]] std::string words_of_beginning();
/// Returns whether the question is about a field that is known so.
[[nodiscard]] bool asks_for(const TypedExpression& question, HitFieldSource source);

}  // namespace usdt::expr
