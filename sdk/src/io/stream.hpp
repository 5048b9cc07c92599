// SPDX-License-Identifier: BSD-2-Clause
// The one way out of a tool: standard output, standard error and files. Its output cannot carry another program's
// escape sequences, does not end the tool when nobody reads, and is known to be written or not.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "io/escape.hpp"
#include "io/terminal.hpp"
#include "io/width.hpp"
#include "usdt/result.hpp"

namespace usdt::io {

/// Any text as a part of a line.
struct Foreign {
  std::string_view text;
  Escapes escapes = Escapes::controls;
};
/// A value as a part of a line, which is shown as no other one is.
[[nodiscard]] inline Foreign unambiguous(std::string_view text) noexcept { return {text, Escapes::all}; }
/// The same in a style; widths in the format count only the text.
struct Styled {
  std::string_view text;
  Style style = Style::plain;
};

}  // namespace usdt::io

template <>
struct fmt::formatter<usdt::io::Foreign> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const usdt::io::Foreign& part, Context& context) const -> decltype(context.out()) {
    if (!usdt::io::needs_escapes(part.text, part.escapes)) return show(part.text, context);
    return show(usdt::io::with_escapes(part.text, part.escapes), context);
  }

 private:
  using Base = fmt::formatter<fmt::string_view>;

  /// Pads as fmt does, by the columns of the text: fmt counts combining characters. It pads as many letters as there
  /// are columns, and the text takes their place.
  template <class Context>
  auto show(std::string_view text, Context& context) const -> decltype(context.out()) {
    const std::size_t columns = usdt::io::width_of(text);
    // cppcheck-suppress danglingTemporaryLifetime  // what the caller has made lives until this returns
    if (columns == text.size()) return Base::format({text.data(), text.size()}, context);
    const auto out = context.out();
    fmt::memory_buffer letters;
    context.advance_to(fmt::appender(letters));
    Base::format(std::string(columns, 'x'), context);
    const std::string_view around(letters.data(), letters.size());
    const std::size_t before = std::min(around.find('x'), around.size());
    return fmt::format_to(out, "{:{}}{}{:{}}", "", before, text, "", around.size() - before - columns);
  }
};

template <>
struct fmt::formatter<usdt::io::Styled> : fmt::formatter<usdt::io::Foreign> {
  template <class Context>
  auto format(const usdt::io::Styled& part, Context& context) const -> decltype(context.out()) {
    const std::string_view code = usdt::io::code_of(part.style);
    if (!code.empty()) context.advance_to(fmt::format_to(context.out(), "\x1b[{}m", code));
    context.advance_to(fmt::formatter<usdt::io::Foreign>::format({part.text}, context));
    return code.empty() ? context.out() : fmt::format_to(context.out(), "\x1b[0m");
  }
};

namespace usdt::io {

/// Buffered output to a descriptor that may be a file, a pipe nobody reads, a terminal, or closed.
class Stream {
 public:
  /// Asked again and again while the reader takes nothing, with the time since it last did. False: the wait is over.
  using Patience = std::function<bool(std::chrono::milliseconds)>;
  enum class Flushed : std::uint8_t {
    all,      ///< everything is with the kernel
    waiting,  ///< patience ended; the rest is kept
    failed,   ///< error(); the rest will never be written
  };

  /// Writes to a descriptor of somebody else. Nothing about it is changed: other processes share it.
  explicit Stream(int fd);
  /// Hands what is written to a function, whole lines of it wherever there are any. False: it takes nothing any more.
  /// Nor does one that throws: thrown().
  using Take = std::function<bool(std::string_view)>;
  explicit Stream(Take take) : take_(std::move(take)), may_wait_(false), kind_(Kind::call) {}
  /// Writes to a new file, or to an old one, which keeps what it has until make_empty().
  [[nodiscard]] static Result<Stream> create(const std::string& path);
  /// Drops what the file had before it was opened, at the first call: from now on there is something better to write.
  /// Does nothing to a file that create() has not opened.
  void make_empty();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  /// Drops what was not flushed.
  ~Stream();

  [[nodiscard]] const Terminal& terminal() const noexcept { return terminal_; }
  /// Returns the file that it writes to, by device and inode; nothing: it is no regular one.
  [[nodiscard]] std::optional<std::pair<dev_t, ino_t>> file() const;

  /// Prints a line or a part of one. The format is ours and goes out as it is, line feeds included; all text among
  /// `parts` is foreign.
  template <class... T>
  void print(
      fmt::format_string<std::conditional_t<std::is_convertible_v<const T&, std::string_view>, Foreign, T>...> format,
      const T&... parts) {
    fmt::format_to(fmt::appender(buffer_), format, part(parts)...);
  }
  /// Prints others' text as valid_utf8() from now on, for formats that programs read. A terminal goes on to be shown
  /// escapes.
  void be_exact() noexcept { exact_ = !terminal_.interactive; }
  /// Prints several lines of ours, such as a help text.
  void lines(std::string_view text);
  /// Prints one finished JSON object, as a line.
  void json(std::string_view object);
  /// Writes bytes that are no text, for a file.
  void bytes(std::span<const std::byte> bytes);
  /// Takes the terminal's current line away.
  void erase_line();
  /// Takes its last `count` lines away.
  void erase_lines(std::size_t count);
  /// Goes `count` lines up, to write over them: what is there stays until then, so that nothing flickers.
  void rise_lines(std::size_t count);
  /// Ends a line that is written over another one, of which nothing is left behind it.
  void end_risen_line();
  /// Takes away what is below.
  void erase_below();
  [[nodiscard]] Styled styled(std::string_view text, Style style) const {
    return {text, terminal_.colour ? style : Style::plain};
  }

  /// Columns to the right of column `taken`, or `at_least`; no limit where this is no terminal.
  [[nodiscard]] std::size_t room(std::size_t taken, std::size_t at_least) const noexcept {
    if (!terminal_.interactive) return std::string_view::npos;
    return terminal_.width > taken + at_least ? terminal_.width - taken : at_least;
  }
  /// Begins a new line before what was printed from `at` on, a value of printed().
  void break_line(std::uint64_t at);

  /// Columns of what was printed from `at` on, text of one line without styles.
  [[nodiscard]] std::size_t width(std::uint64_t at) const { return width_of(printed_from(at)); }
  /// Makes it at least `least` columns wide, by spaces before it or (`left`) behind it, and leaves at most `most` of
  /// it.
  void fit(std::uint64_t at, std::size_t least, std::size_t most, bool left);

  /// Makes it a cell of comma-separated values: in double quotes, which are doubled within, where it has to be.
  void make_cell(std::uint64_t at);

  /// Leaves of what was printed from `at` on, whole lines, at most `lines` of them, each shortened() to `columns`;
  /// returns how many lines are left.
  std::size_t cut(std::uint64_t at, std::size_t lines, std::size_t columns);

  /// Writes what is buffered. Without patience it waits as long as it takes. Later prints are for a terminal of the
  /// width it has then.
  [[nodiscard]] Flushed flush(const Patience& patience = nullptr);
  /// Flushes once 64 KiB are buffered: more in one write is no faster, and takes memory. Called for output of unknown
  /// length.
  void flush_if_full() {
    constexpr std::size_t kEnough = 64 << 10;
    if (buffer_.size() - done_ >= kEnough) static_cast<void>(flush());
  }
  /// errno of the write that failed, 0 if none did. Later ones are not tried.
  [[nodiscard]] int error() const noexcept { return error_; }
  /// Says in words what `take` threw; empty: it threw nothing.
  [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }
  /// Bytes printed so far, and how many of them are with the kernel.
  [[nodiscard]] std::uint64_t printed() const noexcept { return before_ + buffer_.size(); }
  [[nodiscard]] std::uint64_t written() const noexcept { return before_ + done_; }

 private:
  enum class Kind : std::uint8_t { file, socket, pipe, terminal, call };

  template <class T>
  auto part(const T& value) const {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      return Foreign{value, exact_ ? Escapes::only_what_is_odd : Escapes::controls};
    } else if constexpr (std::is_same_v<T, Foreign>) {
      return exact_ ? Foreign{value.text, Escapes::only_what_is_odd} : value;
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, Styled>,
                    "text reaches a stream as text, so that it can be made safe");
      return value;
    }
  }
  /// Returns the bytes for the next system call to write.
  [[nodiscard]] std::string_view piece() const;
  /// As write(2), but never waits: EAGAIN.
  [[nodiscard]] std::int64_t put(std::string_view data);
  /// Gives it to `take`.
  [[nodiscard]] std::int64_t hand_over(std::string_view data);
  [[nodiscard]] bool writable(int wait_ms) const;
  void forget_written();
  [[nodiscard]] std::string_view printed_from(std::uint64_t at) const {
    const auto from = static_cast<std::size_t>(at - before_);
    return {buffer_.data() + from, buffer_.size() - from};
  }

  int fd_ = -1;
  Take take_;             ///< of Kind::call,
  std::string thrown_;    ///< and what it threw
  bool ours_ = false;     ///< fd_ is closed at the end
  bool has_old_ = false;  ///< the file may have what was there before
  bool exact_ = false;    ///< be_exact()
  bool may_wait_ = true;  ///< a write may wait for the reader, whatever poll() said before
  Kind kind_ = Kind::file;
  Terminal terminal_;
  fmt::memory_buffer buffer_;
  std::size_t done_ = 0;      ///< bytes of buffer_ that are written
  std::uint64_t before_ = 0;  ///< bytes written that buffer_ no longer has
  int error_ = 0;
};

/// Makes sure that descriptors 0 to 2 are taken: what a tool opens must not become its standard output. A descriptor
/// that was closed cannot be written to, and is closed again in programs the tool starts.
void reserve_standard_streams();

}  // namespace usdt::io
