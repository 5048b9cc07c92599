// SPDX-License-Identifier: BSD-2-Clause
#include "stack/script_names.hpp"

namespace usdt::stack {
namespace {

using interpreter::CodeState;

/// Functions that are remembered of a process: the largest programs have some 100,000, and run a few of them.
constexpr std::size_t kMostFunctions = 1 << 15;
/// Bytes of their names and lines: whoever wrote the process may have given each of them a megabyte.
constexpr std::size_t kMostBytes = 4 << 20;

}  // namespace

ScriptNames::ScriptNames(pid_t pid) : memory_(pid), found_(interpreter::find_interpreter(pid, memory_)) {
  if (found_.ruby != nullptr) ruby_names_.emplace(*found_.ruby, found_.data, found_.data_size);
}

std::optional<KeptRegisters> ScriptNames::loop_registers() const noexcept {
  if (found_.ruby == nullptr) return std::nullopt;
  return KeptRegisters{found_.ruby->loop_frame, found_.ruby->loop_instruction};
}

CodeState ScriptNames::read(const usdt_script_frame& recorded, Known& names) {
  const std::uint64_t code = recorded.code, cookie = recorded.cookie;
  if (found_.php != nullptr) return interpreter::read_function(memory_, *found_.php, code, cookie, names.php);
  if (found_.python)
    return interpreter::read_code(memory_, *found_.python, found_.code_type, code, cookie, names.names);
  return (recorded.flags & USDT_SCRIPT_IN_C) != 0
             ? interpreter::read_ruby_method(memory_, *found_.ruby, *ruby_names_, code, cookie, names.ruby)
             : interpreter::read_ruby_code(memory_, *found_.ruby, code, cookie, names.ruby);
}

ScriptNames::Known& ScriptNames::find(const usdt_script_frame& recorded) {
  // Each closure of PHP has a copy of its function, freed with it. All copies have one cookie.
  const std::uint64_t key = found_.php != nullptr ? recorded.cookie : recorded.code;
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.cookie == recorded.cookie && known->second.state == CodeState::read)
    return known->second;
  make_room();
  Known fresh{.cookie = recorded.cookie};
  fresh.state = read(recorded, fresh);
  bytes_ += fresh.bytes();
  return known_[key] = std::move(fresh);
}

std::size_t ScriptNames::Known::bytes() const noexcept {
  return names.function.size() + names.file.size() + names.lines.size() + php.function.size() + php.file.size() +
         ruby.function.size() + ruby.file.size() + ruby.lines.size() * sizeof(ruby.lines[0]) +
         ruby.ranks.size() * sizeof(ruby.ranks[0]);
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
  frame.issue = FrameIssue::script_gone;
  if (!are_known()) return frame;
  if (recorded.code == 0) {
    frame.issue = FrameIssue::script_unread;
    frame.detail = "generators that delegate to others (yield from) are not followed";
    return frame;
  }
  Known& known = find(recorded);
  if (known.state == CodeState::changed) frame.issue = FrameIssue::script_changed;
  if (known.state != CodeState::read) return frame;
  frame.issue = FrameIssue::none;
  if (found_.php != nullptr) {
    frame.function = known.php.function;
    frame.source = known.php.file;
    frame.line = line_of_php(known, recorded.instruction);
    return frame;
  }
  if (found_.ruby != nullptr) {
    frame.function = known.ruby.function;
    frame.source = known.ruby.file;
    frame.line = known.ruby.line_before(recorded.instruction);
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
