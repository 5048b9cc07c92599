// SPDX-License-Identifier: BSD-2-Clause
// One readable line for each event:
//     14:03:07.123456 python3.11       4711    python:function__entry  arg0=94210342342340 arg1=... arg2=12
// Arguments with names are shown by them.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "output.hpp"

namespace usdt_trace {
namespace {

using Buffer = fmt::memory_buffer;

void append(Buffer& out, std::string_view text) { out.append(text.data(), text.data() + text.size()); }

/// `"text"` with C escapes for what a terminal should not get; bytes from 0x80 on pass, being mostly UTF-8.
void append_quoted(Buffer& out, const usdt::Text& text) {
  out.push_back('"');
  for (const char c : text.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      append(out, "\\n");
    } else if (c == '\t') {
      append(out, "\\t");
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  append(out, text.truncated ? "\"..." : "\"");
}

/// An unsigned word that can only be an address of this kind of process: Linux maps x86-64 and arm64 programs, heaps,
/// libraries and stacks at 0x55... to 0x7f..., where no ordinary count is.
/// What kernel types call a pointer is one.
bool looks_like_address(const usdt::Arg& arg, std::uint64_t value) {
  if (!arg.type.empty()) return arg.type.back() == '*' && value != 0;
  return arg.size == 8 && value >= 0x5500'0000'0000 && value < 0x8000'0000'0000;
}

class TextOutput final : public Output {
 public:
  TextOutput(const usdt::AttachPlan& plan, const Flags& flags)
      : plan_(plan), print_(flags.print), count_only_(flags.count_only), columns_(plan, flags.print) {
    timespec real{}, monotonic{};
    ::clock_gettime(CLOCK_REALTIME, &real);
    ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
    wall_offset_ns_ = (real.tv_sec - monotonic.tv_sec) * 1'000'000'000LL + (real.tv_nsec - monotonic.tv_nsec);
    for (const usdt::PlannedProbe& probe : plan.probes)
      names_.push_back(fmt::format("{}:{}", probe.provider, probe.name));
  }

  void event(const usdt::Event& event) override {
    append_time(event.timestamp());
    fmt::format_to(std::back_inserter(out_), " {:<15} {:<7} {}", event.comm(), event.pid(), names_[event.site().probe]);
    if (print_.empty()) {
      for (std::size_t n = 0; n < event.arg_count(); ++n) append_named(event, n);
    }
    for (std::size_t i = 0; i < print_.size(); ++i) append_item(event, i);
    if (event.duration() > 0)
      fmt::format_to(std::back_inserter(out_), " took={:.3f}us", static_cast<double>(event.duration()) / 1000);
    out_.push_back('\n');
    append_stack(event);
  }

  /// With --count: probes that were hit, most hits first.
  void summary(const Summary& summary) override {
    if (!count_only_) return;
    std::vector<std::size_t> hit;
    for (std::size_t i = 0; i < summary.probes.size(); ++i)
      if (summary.probes[i].hits > 0) hit.push_back(i);
    std::stable_sort(hit.begin(), hit.end(),
                     [&](std::size_t a, std::size_t b) { return summary.probes[a].hits > summary.probes[b].hits; });
    fmt::format_to(std::back_inserter(out_), "{:>12}  {}\n", "HITS", "PROBE");
    for (const std::size_t i : hit)
      fmt::format_to(std::back_inserter(out_), "{:>12}  {}\n", summary.probes[i].hits,
                     full_name(plan_, plan_.probes[i]));
  }

  bool flush() override {
    const bool written = write_out({out_.data(), out_.size()});
    out_.clear();
    return written;
  }

 private:
  void append_item(const usdt::Event& event, std::size_t i) {
    const PrintItem& item = print_[i];
    out_.push_back(' ');
    append(out_, item.label);
    out_.push_back('=');
    const auto position = columns_.position(event, i);
    if (!position)
      append_error("no such argument");
    else if (item.form == PrintItem::Form::text)
      append_text(event, *position);
    else
      append_value(event, *position, item.form == PrintItem::Form::hex);
  }

  void append_named(const usdt::Event& event, std::size_t n) {
    const usdt::Arg& arg = event.arg_info(n);
    if (arg.result)
      append(out_, " return=");
    else if (!arg.name.empty())
      fmt::format_to(std::back_inserter(out_), " {}=", arg.name);
    else
      fmt::format_to(std::back_inserter(out_), " arg{}=", n);
    if (arg.text && event.text(n))
      append_text(event, n);
    else
      append_value(event, n, false);
  }

  void append_time(std::uint64_t monotonic_ns) {
    const std::int64_t wall = static_cast<std::int64_t>(monotonic_ns) + wall_offset_ns_;
    const std::time_t second = wall / 1'000'000'000;
    if (second != clock_second_) {
      clock_second_ = second;
      std::tm local{};
      ::localtime_r(&second, &local);
      clock_ = fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
    }
    fmt::format_to(std::back_inserter(out_), "{}.{:06}", clock_, wall % 1'000'000'000 / 1000);
  }

  void append_error(std::string_view reason) {
    ++unreadable_;
    fmt::format_to(std::back_inserter(out_), "<{}>", reason);
  }

  void append_value(const usdt::Event& event, std::size_t n, bool hex) {
    const usdt::Value value = event.value(n);
    const auto back = std::back_inserter(out_);
    if (const auto* error = std::get_if<usdt::ArgError>(&value)) return append_error(error->reason);
    const usdt::Arg& arg = event.arg_info(n);
    if (!hex && append_word(arg, value)) return;
    if (const auto* number = std::get_if<double>(&value)) {
      // The shortest text that reads back as the same float.
      arg.size == sizeof(float) ? fmt::format_to(back, "{}", static_cast<float>(*number))
                                : fmt::format_to(back, "{}", *number);
    } else if (const auto* wide = std::get_if<std::uint64_t>(&value)) {
      hex || looks_like_address(arg, *wide) ? fmt::format_to(back, "{:#x}", *wide) : fmt::format_to(back, "{}", *wide);
    } else {
      const std::int64_t whole = std::get<std::int64_t>(value);
      const std::uint64_t bits = static_cast<std::uint64_t>(whole) << (64 - 8 * arg.size) >> (64 - 8 * arg.size);
      hex ? fmt::format_to(back, "{:#x}", bits) : fmt::format_to(back, "{}", whole);
    }
  }

  /// What a value is called, if it has a name.
  bool append_word(const usdt::Arg& arg, const usdt::Value& value) {
    if (std::holds_alternative<double>(value)) return false;
    const auto* whole = std::get_if<std::int64_t>(&value);
    const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
    std::string_view word;
    if (arg.boolean && bits <= 1)
      word = bits ? "true" : "false";
    else
      word = usdt::enumerator_name(arg, bits);
    append(out_, word);
    return !word.empty();
  }

  void append_text(const usdt::Event& event, std::size_t n) {
    auto text = event.text(n);
    text ? append_quoted(out_, *text) : append_error(text.error().message);
  }

  void append_stack(const usdt::Event& event) {
    const auto stack = event.kernel_stack();
    if (!stack) {
      append(out_, "    ");
      append_error(stack.error().message);
      out_.push_back('\n');
      return;
    }
    for (const std::uint64_t address : *stack)
      fmt::format_to(std::back_inserter(out_), "    {}\n", symbols_.name(address));
  }

  const usdt::AttachPlan& plan_;
  const PrintList& print_;
  bool count_only_;
  Columns columns_;
  std::vector<std::string> names_;
  usdt::KernelSymbols symbols_;
  Buffer out_;
  std::int64_t wall_offset_ns_ = 0;
  std::time_t clock_second_ = -1;
  std::string clock_;
};

}  // namespace

std::unique_ptr<Output> text_output(const usdt::AttachPlan& plan, const Flags& flags) {
  return std::make_unique<TextOutput>(plan, flags);
}

}  // namespace usdt_trace
