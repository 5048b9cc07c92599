// SPDX-License-Identifier: BSD-2-Clause
// Finds where programs can run when a function is called and when it returns, by its instructions or by the kernel's
// return probes. Private to find/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elf/function_flow.hpp"
#include "find/code_notices.hpp"
#include "find/file_code.hpp"
#include "find/function_values.hpp"
#include "usdt/function.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/result.hpp"

namespace usdt::find {

/// Reads what the instructions of functions say of their entries and returns.
class FunctionReturns {
 public:
  /// Both outlive this.
  FunctionReturns(FileCode& code, CodeNotices& notices) : code_(code), notices_(notices) {}

  /// Places a point at the entry and the returns of its function. `ret_probes`: as of FunctionPattern.
  void follow_code(FunctionPoint& point, const Function& function, const KnownFunction& known,
                   std::optional<bool> ret_probes);
  /// Moves from an instruction that the kernel steps to one that it emulates, where both see equal values. Debug
  /// information with parameters tells that a compiler made the code. Go's functions are entered again where the stack
  /// has grown.
  void move_to_cheaper_start(FunctionPoint& point, const Function& function, const KnownFunction& known);
  /// Empty: a program may run where the function returns.
  [[nodiscard]] std::string why_no_returns(const Function& function, const FunctionPoint& point) const;

 private:
  /// Returns where a jump of the function leads to the point, or before it, as that of a loop it begins with does.
  [[nodiscard]] std::optional<VirtAddr> comes_back_to(const FunctionPoint& point, const Function& function,
                                                      const KnownFunction& known);
  /// Calls come by a landing pad, which such a loop leaves out, and each goes by one RET instruction. Without the
  /// former nothing tells a call from a round where the function begins.
  void count_calls_alone(FunctionPoint& point, const Function& function, VirtAddr comes_back_to);
  [[nodiscard]] Result<elf::FunctionFlow> flow_of(const Function& function, const KnownFunction& known);
  void take_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  /// Returns where programs can run before each of its RET instructions.
  Result<std::vector<FileOffset>> rets_of(const elf::FunctionFlow& flow);
  /// RET instructions, where each return is one. Else the kernel's probe, which takes the place of the return address,
  /// where nobody can look at that meanwhile; where somebody may, RET instructions see what they see.
  void choose_returns(FunctionPoint& point, const Function& function, const Result<elf::FunctionFlow>& flow);
  /// The RET instructions of functions that this one jumps to are ends of its calls, too. False: that is not how its
  /// returns are seen best.
  bool take_others_returns(FunctionPoint& point, const Function& function, const elf::FunctionFlow& flow);
  bool may_take_kernels(const Function& function);
  /// Empty: the kernel's return probe may stand there, if it is asked for.
  std::string why_not_by_kernel(const Function& function);

  FileCode& code_;
  CodeNotices& notices_;
};

}  // namespace usdt::find
