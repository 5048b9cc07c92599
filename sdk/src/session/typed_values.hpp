// SPDX-License-Identifier: BSD-2-Clause
// Whether an answer would be another one if the types of a file's functions were known.
#pragma once

#include "usdt/probe_file.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// Whether a question shows or compares values of the file's functions that only their types can make right: a negative
/// `int` without its type is a large number. What str(), buf() and hex() show, casts, and types that were said by hand
/// need none.
[[nodiscard]] bool rests_on_types(const Question& question, const ProbeFile& file);

}  // namespace usdt::session
