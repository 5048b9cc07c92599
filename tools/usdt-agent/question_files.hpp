// SPDX-License-Identifier: BSD-2-Clause
// Files with questions, as the agent asks them.
#pragma once

#include <string>
#include <vector>

#include "flags.hpp"
#include "options.hpp"

namespace usdt_agent {

/// One question, and where its answers go.
struct AskedQuestion {
  usdt_trace::Flags flags;
  std::vector<usdt_trace::ExportPart> exports;
};

/// A file as it was read.
struct QuestionFile {
  std::string path;
  std::string text;  ///< all of it, by which is told whether it has changed
  std::vector<AskedQuestion> questions;
};

/// What the files of the command line have.
struct ReadFiles {
  std::vector<QuestionFile> files;
  /// All that is wrong: errors of parse_questions(); io, not_found (no files); invalid_argument (what an agent cannot
  /// be asked, names that are not different, answers that go nowhere). Files without a place here are right.
  std::vector<usdt::Error> wrong;
};

/// Reads all files of the command line. Names of questions differ, whichever file they are in: metrics are called by
/// them. `without_privilege`: as parse_questions().
[[nodiscard]] ReadFiles read_files(const Options& options, bool without_privilege);

/// What the points of a question that are on this machine now say of it.
enum class Found { right, nothing_there, unknown };
/// Plans a question about what there is, as a trace would, without privilege. `nothing_there`: nothing of it is here,
/// so that the names in it could not be looked up; `unknown`: this user may not look. Errors: invalid_argument (names
/// that there are not, values of other types).
[[nodiscard]] usdt::Result<Found> find_now(const usdt::Question& question);

}  // namespace usdt_agent
