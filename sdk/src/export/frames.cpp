// SPDX-License-Identifier: BSD-2-Clause
#include "export/frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace usdt::exports {
namespace {

using io::json_hex;
using io::json_key;
using io::json_text;

std::string kernel_frame_text(const Frame& frame) {
  if (frame.function.empty()) return fmt::format("{:#x}", frame.address.value);
  std::string text = fmt::format("{}+{:#x}", frame.function, frame.distance);
  return frame.module.empty() ? text : fmt::format("{} [{}]", text, frame.module);
}

/// Where the source is: "at app.py:12"; empty: that is not known.
std::string source_text(const Frame& frame) {
  return frame.line > 0 ? fmt::format("at {}:{}", frame.source, frame.line) : std::string();
}

/// Whether it stands in place of a native function, and has no address of its own.
bool is_script(const Frame& frame) { return !frame.language.empty() && frame.address.value == 0; }

/// What is known of a function of a script that a JIT compiler has made native: "defined at cart.js:12 (javascript,
/// optimized)".
std::string compiled_text(const Frame& frame) {
  std::string text;
  if (frame.definition_line > 0) text = fmt::format("defined at {}:{} ", frame.source, frame.definition_line);
  const std::string_view tier = to_string(frame.tier);
  return text + fmt::format("({}{}{})", frame.language, tier.empty() ? "" : ", ", tier);
}

std::string script_frame_text(const Frame& frame) {
  std::string text = frame.function;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text.append(text.empty() ? "" : " ").append(part);
  };
  if (frame.issue != FrameIssue::none) add(fmt::format("<{}>", issue_text(frame)));
  add(frame.line > 0 ? source_text(frame) : frame.source.empty() ? "" : "in " + frame.source);
  add(fmt::format("({})", frame.language));
  return text;
}

void write_definition(io::JsonWriter& json, const Frame& frame) {
  json_key(json, "definition"), json.StartObject();
  json_key(json, "file"), json_text(json, frame.source);
  json_key(json, "line"), json.Uint(frame.definition_line);
  if (frame.definition_column > 0) json_key(json, "column"), json.Uint(frame.definition_column);
  json.EndObject();
}

void write_frame(io::JsonWriter& json, const Frame& frame) {
  json.StartObject();
  if (frame.address.value != 0) json_key(json, "address"), json_hex(json, frame.address.value);
  if (!frame.function.empty()) {
    json_key(json, "function"), json_text(json, frame.function);
    if (!is_script(frame)) json_key(json, "offset"), json.Uint64(frame.distance);
  }
  if (!frame.language.empty()) json_key(json, "language"), json_text(json, frame.language);
  if (frame.tier != CodeTier::unknown) json_key(json, "tier"), json_text(json, to_string(frame.tier));
  if (frame.inlined) json_key(json, "inline"), json.Bool(true);
  if (!frame.module.empty()) json_key(json, "module"), json_text(json, frame.module);
  if (!frame.build_id.empty()) json_key(json, "build_id"), json_text(json, frame.build_id);
  if (frame.offset) json_key(json, "file_offset"), json_hex(json, frame.offset->value);
  if (frame.line > 0) {
    json_key(json, "source"), json.StartObject();
    json_key(json, "file"), json_text(json, frame.source);
    json_key(json, "line"), json.Uint(frame.line);
    json.EndObject();
  }
  if (frame.definition_line > 0) write_definition(json, frame);
  if (frame.issue != FrameIssue::none) json_key(json, "error"), json_text(json, issue_text(frame));
  json.EndObject();
}

/// Returns the place of the code in its file: "libfoo.so+0x1234", as tools take it that find functions elsewhere.
/// Empty: it is in no file.
std::string place_in_file(const Frame& frame) {
  if (frame.module.empty() || !frame.offset) return {};
  return fmt::format("{}+{:#x}", frame.module.substr(frame.module.rfind('/') + 1), frame.offset->value);
}

/// Whether the code is in no file.
bool is_jit(const Frame& frame) {
  if (is_script(frame)) return false;
  return frame.issue == FrameIssue::no_file || (!frame.function.empty() && frame.module.empty() && !frame.offset);
}

std::string_view mark_of(const Frame& frame, FoldedMarks marks) {
  if (frame.kernel) return "_[k]";
  if (frame.inlined) return "_[i]";
  return marks == FoldedMarks::jit && is_jit(frame) ? "_[j]" : "";
}

}  // namespace

std::string issue_text(const Frame& frame) {
  return fmt::format("{}{}{}", to_string(frame.issue), frame.detail.empty() ? "" : ": ", frame.detail);
}

std::string frame_text(const Frame& frame) {
  if (frame.kernel) return kernel_frame_text(frame);
  if (is_script(frame)) return script_frame_text(frame);
  std::string text;
  const auto add = [&](const std::string& part) { text.append(text.empty() ? "" : " ").append(part); };
  if (frame.inlined)
    add(frame.function + " (inlined)");
  else if (!frame.function.empty())
    add(fmt::format("{}+{:#x}", frame.function, frame.distance));
  else if (const std::string place = place_in_file(frame); !place.empty())
    add(place);
  else if (frame.address.value != 0)
    add(fmt::format("{:#x}", frame.address.value));
  if (frame.issue != FrameIssue::none) add(fmt::format("<{}>", issue_text(frame)));
  if (frame.line > 0) add(source_text(frame));
  if (!frame.language.empty()) add(compiled_text(frame));
  if (!frame.module.empty()) add(fmt::format("({})", frame.module));
  return text;
}

std::vector<std::string> frame_texts(const Stack& stack) {
  std::vector<std::string> lines;
  for (const Frame& frame : stack.frames) lines.push_back(frame_text(frame));
  if (stack.end != FrameIssue::none && stack.end != FrameIssue::depth_reached)
    lines.push_back(fmt::format("<{}>", to_string(stack.end)));
  return lines;
}

void write_frames(io::JsonWriter& json, const Stack& stack) {
  json.StartArray();
  for (const Frame& frame : stack.frames) {
    if (frame.kernel)
      json_text(json, kernel_frame_text(frame));
    else
      write_frame(json, frame);
  }
  json.EndArray();
}

std::string function_text(const Frame& frame) {
  if (frame.address.value == 0 && frame.function.empty()) return fmt::format("[{}]", issue_text(frame));
  std::string name = frame.function;
  if (name.empty()) name = place_in_file(frame);
  if (name.empty()) name = fmt::format("[{}]", frame.module.substr(frame.module.rfind('/') + 1));
  return name == "[]" ? "[unknown]" : name;
}

std::string folded_word(std::string text) {
  std::ranges::replace(text, ';', ':');
  return text;
}

namespace {

std::string folded_frame(const Frame& frame, FoldedMarks marks) {
  if (frame.address.value == 0 && frame.function.empty()) return function_text(frame);
  return folded_word(function_text(frame)).append(mark_of(frame, marks));
}

}  // namespace

std::string folded_text(const Stack& stack, FoldedMarks marks) {
  std::string text;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame)
    text.append(text.empty() ? "" : ";").append(folded_frame(*frame, marks));
  return text;
}

}  // namespace usdt::exports
