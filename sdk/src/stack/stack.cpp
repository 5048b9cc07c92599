// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/stack.hpp"

#include <array>
#include <cstddef>

namespace usdt {
inline namespace v1 {

std::string_view to_string(FrameIssue issue) noexcept {
  switch (issue) {
    case FrameIssue::none:
      break;
    case FrameIssue::process_gone:
      return "the process ended or became another program before its mappings could be read";
    case FrameIssue::no_permission:
      return "the process's mappings may not be read";
    case FrameIssue::not_mapped:
      return "nothing is mapped there";
    case FrameIssue::no_file:
      return "code that is in no file";
    case FrameIssue::file_unreadable:
      return "the mapped file cannot be read";
    case FrameIssue::file_changed:
      return "the mapped file was written to since";
    case FrameIssue::no_symbol:
      return "no symbol has this address";
    case FrameIssue::callers_skipped:
      return "no frame pointer is kept there: callers may be missing";
    case FrameIssue::by_frame_pointer:
      return "no unwind information: what follows was found by the frame pointer";
    case FrameIssue::depth_reached:
      return "as many frames as were asked for";
    case FrameIssue::chain_ended:
      return "the chain of frame pointers ends here";
    case FrameIssue::copy_ended:
      return "the recorded copy of the stack ends here";
    case FrameIssue::no_rule:
      return "no unwind information, and no frame pointer";
    case FrameIssue::lost_value:
      return "what is needed to find the caller was not kept, or is on another stack";
    case FrameIssue::return_probe:
      return "a return probe keeps the address of the caller";
    case FrameIssue::script_late:
      return "functions of the script are missing: where the process has its interpreter was not known yet";
    case FrameIssue::script_unread:
      return "functions of the script are missing";
    case FrameIssue::script_cut:
      return "there are more functions of the script than were asked for";
    case FrameIssue::script_alone:
      return "functions of the script alone from here on";
    case FrameIssue::script_apart:
      return "functions of the script that could not be placed among those above";
    case FrameIssue::script_changed:
      return "its code was freed before its name could be read";
    case FrameIssue::script_gone:
      return "the process ended before its name could be read";
    case FrameIssue::script_unnamed:
      return "an interpreted function of the script, whose name is not known";
    case FrameIssue::code_listed:
      return "as its perf map said at another time";
    case FrameIssue::code_replaced:
      return "other code may have been there at that time";
  }
  return {};
}

std::string_view to_string(CodeTier tier) noexcept {
  constexpr std::array<std::string_view, 4> words{"", "interpreted", "baseline", "optimized"};
  return words.at(static_cast<std::size_t>(tier));
}

}  // namespace v1
}  // namespace usdt
