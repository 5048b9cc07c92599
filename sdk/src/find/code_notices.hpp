// SPDX-License-Identifier: BSD-2-Clause
// Which hits on the code of functions are no calls, and what of their returns is not seen. Private to find/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "find/file_code.hpp"
#include "usdt/function.hpp"
#include "usdt/probe_file.hpp"

namespace usdt::find {

/// Says once for the file which hits are no calls, and what is not seen of returns, or could harm, before anything is
/// attached.
class CodeNotices {
 public:
  /// Keeps a line or a place whose hits are rounds of one instruction.
  void add_repeat(std::string name) { repeat_.push_back(std::move(name)); }
  /// Keeps a function, hits of which are calls and rounds.
  void add_loop(std::string name) { begin_with_loops_.push_back(std::move(name)); }
  /// Keeps a function seen by RET instructions that jumps away, and how often.
  void add_unseen(std::string name, std::size_t jumps) { unseen_.emplace_back(std::move(name), jumps); }
  /// Keeps a function with the kernel's return probe, unasked.
  void add_by_kernel(std::string name) { by_kernel_.push_back(std::move(name)); }
  /// Keeps a function with it, asked for, that exceptions may leave.
  void add_ended_by_exceptions(std::string name) { exceptions_end_.push_back(std::move(name)); }
  /// Keeps a function whose RET instructions are all hits, whoever comes by them.
  void add_counted_by_rets(const Function& function);

  void tell(FileCode& code, ProbeFile& file) const;

 private:
  /// Says into which of those other functions lead.
  void tell_of_others_returns(FileCode& code, ProbeFile& file) const;
  void tell_of_unseen(ProbeFile& file) const;

  std::map<VirtAddr, std::pair<std::uint64_t, std::string>> counted_by_rets_;  ///< sizes and names, by address
  std::vector<std::string> repeat_;
  std::vector<std::string> begin_with_loops_;
  std::vector<std::pair<std::string, std::size_t>> unseen_;
  std::vector<std::string> by_kernel_;
  std::vector<std::string> exceptions_end_;
};

}  // namespace usdt::find
