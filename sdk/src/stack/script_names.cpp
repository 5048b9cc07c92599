// SPDX-License-Identifier: BSD-2-Clause
#include "stack/script_names.hpp"

namespace usdt::stack {
namespace {

using interpreter::CodeState;

/// Functions that are remembered of a process: the largest programs have some 100,000, and run a few of them.
constexpr std::size_t kMostFunctions = 1 << 15;
/// Bytes of their names and lines: whoever wrote the process may have given each of them a megabyte.
constexpr std::size_t kMostBytes = 4 << 20;

std::size_t bytes_of(const interpreter::CodeNames& names, const interpreter::PhpNames& php) {
  return names.function.size() + names.file.size() + names.lines.size() + php.function.size() + php.file.size();
}

}  // namespace

ScriptNames::ScriptNames(pid_t pid) : memory_(pid), found_(interpreter::find_interpreter(pid, memory_)) {}

ScriptNames::Known& ScriptNames::find(std::uint64_t code, std::uint64_t cookie) {
  // Each closure of PHP has a copy of its function, freed with it. All copies have one cookie.
  const std::uint64_t key = found_.php != nullptr ? cookie : code;
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.cookie == cookie && known->second.state == CodeState::read)
    return known->second;
  make_room();
  Known fresh{.cookie = cookie};
  fresh.state = found_.php != nullptr
                    ? interpreter::read_function(memory_, *found_.php, code, cookie, fresh.php)
                    : interpreter::read_code(memory_, *found_.python, found_.code_type, code, cookie, fresh.names);
  bytes_ += bytes_of(fresh.names, fresh.php);
  return known_[key] = std::move(fresh);
}

void ScriptNames::make_room() {
  if (known_.size() < kMostFunctions && bytes_ < kMostBytes) return;
  known_.clear();
  bytes_ = 0;
}

/// Lines are read with the names, while the process lives.
std::uint32_t ScriptNames::line_of_php(Known& known, std::uint64_t instruction) {
  constexpr std::size_t bytes_of_line = 32;
  const auto [line, is_new] = known.lines.try_emplace(instruction);
  if (is_new) bytes_ += bytes_of_line;
  if (is_new) line->second = interpreter::line_of(memory_, *found_.php, known.php, instruction);
  return line->second;
}

std::optional<Frame> ScriptNames::frame_of(const usdt_script_frame& recorded) {
  Frame frame;
  frame.language = found_.php != nullptr ? "php" : "python";
  frame.issue = FrameIssue::script_gone;
  if (!are_known()) return frame;
  if (recorded.code == 0) {
    frame.issue = FrameIssue::script_unread;
    frame.detail = "generators that delegate to others (yield from) are not followed";
    return frame;
  }
  Known& known = find(recorded.code, recorded.cookie);
  if (known.state == CodeState::changed) frame.issue = FrameIssue::script_changed;
  if (known.state != CodeState::read) return frame;
  frame.issue = FrameIssue::none;
  if (found_.php != nullptr) {
    frame.function = known.php.function;
    frame.source = known.php.file;
    frame.line = line_of_php(known, recorded.instruction);
    return frame;
  }
  const auto distance = static_cast<std::int64_t>(recorded.instruction - recorded.code - found_.python->code_start);
  if (!known.names.has_begun(distance, recorded.flags >> USDT_SCRIPT_OWNER)) return std::nullopt;
  frame.function = known.names.function;
  frame.source = known.names.file;
  frame.line = known.names.line_at(distance);
  return frame;
}

}  // namespace usdt::stack
