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

/// Reads all files of the command line. Names of questions differ, whichever file they are in: metrics are called by
/// them. `without_privilege`: as parse_questions(). Errors: those of parse_questions(); io, not_found (no files);
/// invalid_argument (what an agent cannot be asked, names that are not different, answers that go nowhere).
[[nodiscard]] usdt::Result<std::vector<QuestionFile>> read_files(const Options& options, bool without_privilege);

}  // namespace usdt_agent
