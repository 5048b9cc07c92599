// SPDX-License-Identifier: BSD-2-Clause
// Instructions that read texts, of the process or of the kernel: whole beginnings, or piece by piece. Private to expr/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "expr/hit_reader.hpp"
#include "expr/numbers.hpp"

namespace usdt::expr {

/// Reads texts into the frame. A text that cannot be read has no answer.
class TextReader : protected HitReader {
 protected:
  using HitReader::HitReader;

  /// Helpers that read memory of the process, and of the kernel.
  struct Readers {
    std::int32_t of_process;
    std::int32_t of_kernel;
  };
  static constexpr Readers kStrings{BPF_FUNC_probe_read_user_str, BPF_FUNC_probe_read_kernel_str};
  static constexpr Readers kBytes{BPF_FUNC_probe_read_user, BPF_FUNC_probe_read_kernel};

  /// Names a place in a text: behind so many bytes, and as many as a word of the frame says.
  struct At {
    std::size_t byte = 0;
    std::optional<int> word = {};
  };

  /// An array of characters.
  [[nodiscard]] static bool is_array(const Node& text) { return !text.of.empty() && ends_at_nul(text); }

  /// Reads at most kPiece characters of the piece at word `from` of the frame to the frame, and a NUL where the length
  /// of the text is not known. Goes to `ended` where the text has none there. Before Linux 5.12 the place must have
  /// been written where how much is read is not a constant.
  void read_piece(const Node& text, int from, int to, Label ended);
  /// Computes how much of a text with a length, or of an array, is in a piece; with r4.
  void rest_of(const Node& text, int from, std::uint8_t to);
  /// Makes NULs of what is behind the first one in a piece; r0, r1 and r2 are lost.
  void clear_behind_nul(int at);
  /// Reads the length of a text; as in capture_bytes() of bpf/trace.bpf.c one below 0 is none.
  void length_of(const Node& text, std::uint8_t to);
  /// Reads at most `size` bytes with the closing NUL of what `pointer` points to, less `from`, to the frame; r0: how
  /// many.
  void read_text(const Node& pointer, std::size_t from, std::size_t size, int to = kBuffer);

  /// Reads what `pointer` points to, from there on, into the frame. `set_size` puts into r2 how much, and changes
  /// nothing else; r0 is then what the helper returns.
  template <class SetSize>
  void read_memory(const Node& pointer, const At& from, int to, const Readers& readers, const SetSize& set_size) {
    const Label done = label();
    const auto read = [&](std::int32_t helper) {
      frame_address(1, to);
      set_size();
      text_address(pointer, from);
      call(helper);
    };
    if (is_kept(pointer)) {
      read(readers.of_kernel);
      return jump_if_is(kJumpSignedLess, 0, 0, undecided());
    }
    if (surroundings().kernel_half != 0) {
      const Label of_process = label();
      text_address(pointer, from);
      set(2, surroundings().kernel_half);
      jump_if(kJumpLess, 3, 2, of_process);
      read(readers.of_kernel);
      jump_if_is(kJumpSignedLess, 0, 0, undecided());
      jump(done);
      place(of_process);
    }
    read(readers.of_process);
    if (surroundings().kernel_half == 0) wait_for_page(pointer, from, to, [&] { read(readers.of_process); });
    jump_if_is(kJumpSignedLess, 0, 0, undecided());
    place(done);
  }

 private:
  /// Whether it is a text that a record has, which is the kernel's.
  [[nodiscard]] bool is_kept(const Node& text) const {
    const std::vector<TypedExpression::KeptText>& kept = expression().kept_texts();
    return std::ranges::find(kept, text.bits, &TypedExpression::KeptText::value) != kept.end();
  }

  /// Once more, where the page is not in memory and the program may wait for it.
  template <class Read>
  void wait_for_page(const Node& pointer, const At& from, int to, const Read& read) {
    if (!surroundings().may_wait) return;
    const Label there = label();
    jump_if_is(kJumpSignedGreaterEqual, 0, 0, there);
    frame_address(1, to);
    set(2, 1);
    text_address(pointer, from);
    call(BPF_FUNC_copy_from_user);
    read();
    place(there);
  }

  /// Leaves in r3 the address of the text, with r4.
  void text_address(const Node& pointer, const At& from);
};

}  // namespace usdt::expr
