// SPDX-License-Identifier: BSD-2-Clause
// Compiles one expression: the class whose subjects are in compile.cpp, compile_rows.cpp and compile_texts.cpp. Private
// to expr/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "expr/beginning.hpp"
#include "expr/compile.hpp"
#include "expr/glob.hpp"
#include "expr/instructions.hpp"
#include "expr/numbers.hpp"
#include "usdt/bpf/filter.h"

namespace usdt::expr {

// Offsets from the frame pointer, where the question is.
constexpr int kUnread = offsetof(usdt_question, unread);
constexpr int kSite = offsetof(usdt_question, site);
constexpr int kDuration = offsetof(usdt_question, duration);
constexpr int kScratch = offsetof(usdt_question, scratch);
// The scratch words: values that wait for others, and pieces of texts.
constexpr int kSpills = kScratch;
constexpr int kMostSpills = 5;
constexpr int kRoomForPattern = 2;  ///< where in the text, and the state
constexpr int kRoomForTexts = 4;    ///< where in the texts, how much there is of the first, and a piece of the second
constexpr int kBuffer = kSpills + kMostSpills * 8;
constexpr std::size_t kPiece = 16;
static_assert(kBuffer + static_cast<int>(kPiece) + 8 <= static_cast<int>(sizeof(usdt_question)),
              "a piece of a text, its NUL, and one character more");

/// Goes through the tree of an expression once. What nothing else is said of leaves its value in r0.
class Compiler : private Assembler {
 public:
  Compiler(const TypedExpression& expression, const Surroundings& surroundings)
      : expression_(expression), surroundings_(surroundings) {
    if (surroundings.of_span) of_beginning_ = beginning_facts(expression);
  }

  Result<Code> run();

 private:
  using Node = TypedExpression::Node;
  using Op = Operator;

  // --- values: compile.cpp ---
  static bool is_leaf(const Node& node);
  void leaf(const Node& node, std::uint8_t to);
  void read(std::uint64_t value, std::uint8_t to);
  void count(const ElementCount& counts, std::uint8_t to);
  void require(const AlternativeValues& values, std::uint8_t reg);
  void widen_half(std::uint8_t reg);
  void value(const Node& node);
  static bool is_truth(const Node& node);
  void truth(const Node& node);
  void choice(const Node& node);
  void both(const Node& node);
  static int room_for(const Node& node);
  void compute(const Node& node);
  void shift(const Node& node);
  void divide(const Node& node);
  void negate_if_negative(std::uint8_t sign, std::uint8_t number);

  // --- what is known of every hit: compile.cpp ---
  bool read_of_beginning(std::uint8_t fact, std::uint8_t to);
  void comm_to(int at);
  void field(HitField field);
  void low_half();
  void task(bool group);
  void frame_address(std::uint8_t to, int offset);
  void buffer_address(std::uint8_t to) { frame_address(to, kBuffer); }

  // --- conditions: compile.cpp ---
  void branch(const Node& node, Label yes, Label no);
  void comparison(const Node& node, Label yes, Label no);
  void reals(const Node& node, Label yes, Label no);
  void make_order_key(std::uint8_t reg, ExpressionType type, Label odd);

  // --- rows: compile_rows.cpp ---
  void row(const Node& root);
  void value_of_row(const Node& node);
  void text_key(const Node& key, int at, std::uint32_t size);
  void fingerprint_key(const Node& text, int at);
  void add_to_fingerprint(int at);
  void read_key(const Node& key, int at, std::int32_t most);
  void bucket(const Node& node);
  void key_of_real(ExpressionType type);
  void bucket_of_real(const Node& node);
  void linear_bucket(const Node& node);
  void search(const Node& node, std::size_t first, std::size_t last, Label end);

  // --- texts: compile_texts.cpp ---
  static bool is_prefix(const Node& node) { return static_cast<TextMatch>(node.bits) == TextMatch::prefix; }
  void matches(const Node& node, Label yes, Label no);
  void matches_literal(const Node& node, Label yes, Label no);
  void matches_with_length(const Node& node, Label yes, Label no);
  void matches_array(const Node& node, Label yes, Label no);
  int spill(int number);
  static bool is_array(const Node& text) { return !text.of.empty() && ends_at_nul(text); }
  /// The name of a thread, which ends within one piece.
  static bool is_short(const Node& text) { return text.op == Op::field; }
  /// Does `body` for each piece, at `from` in the text, until it has left, or as much was looked at as there is to look
  /// at: then there is no answer.
  template <class Body>
  void for_each_piece(int from, bool once, const Body& body) {
    const Label again = label();
    set(0, 0);
    store(kFrame, from, 0);
    place(again);
    body();
    if (once) return jump(undecided_);
    load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, from);
    alu_by(BPF_ADD, 0, kPiece);
    store(kFrame, from, 0);
    jump_if_is(kJumpLess, 0, static_cast<std::int32_t>(kLongestLook), again);
    jump(undecided_);
  }
  void read_piece(const Node& text, int from, int to, Label ended);
  void rest_of(const Node& text, int from, std::uint8_t to);
  void matches_glob(const Node& node, Label yes, Label no);
  void last_piece(const Node& text, int from, int state, std::size_t table, Label ended);
  void take_character(int i);
  void jump_if_has(std::uint8_t reg, std::uint64_t bits, Label to);
  void texts_equal(const Node& node, Label yes, Label no);
  void count_piece(const Node& text, int from, int at);
  void clear_behind_nul(int at);
  void compare_bytes(const Node& subject, std::string_view bytes, Label no);
  void length_of(const Node& text, std::uint8_t to);
  void read_text(const Node& pointer, std::size_t from, std::size_t size, int to = kBuffer);

  // --- memory of the process, and of the kernel ---
  /// Helpers that read memory of the process, and of the kernel.
  struct Readers {
    std::int32_t of_process;
    std::int32_t of_kernel;
  };
  static constexpr Readers kStrings{BPF_FUNC_probe_read_user_str, BPF_FUNC_probe_read_kernel_str};
  static constexpr Readers kBytes{BPF_FUNC_probe_read_user, BPF_FUNC_probe_read_kernel};

  /// Whether it is a text that a record has, which is the kernel's.
  [[nodiscard]] bool is_kept(const Node& text) const {
    const std::vector<TypedExpression::KeptText>& kept = expression_.kept_texts();
    return std::ranges::find(kept, text.bits, &TypedExpression::KeptText::value) != kept.end();
  }

  /// Names a place in a text: behind so many bytes, and as many as a word of the frame says.
  struct At {
    std::size_t byte = 0;
    std::optional<int> word = {};
  };

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
      return jump_if_is(kJumpSignedLess, 0, 0, undecided_);
    }
    if (surroundings_.kernel_half != 0) {
      const Label of_process = label();
      text_address(pointer, from);
      set(2, surroundings_.kernel_half);
      jump_if(kJumpLess, 3, 2, of_process);
      read(readers.of_kernel);
      jump_if_is(kJumpSignedLess, 0, 0, undecided_);
      jump(done);
      place(of_process);
    }
    read(readers.of_process);
    if (surroundings_.kernel_half == 0) wait_for_page(pointer, from, to, [&] { read(readers.of_process); });
    jump_if_is(kJumpSignedLess, 0, 0, undecided_);
    place(done);
  }

  /// Once more, where the page is not in memory and the program may wait for it.
  template <class Read>
  void wait_for_page(const Node& pointer, const At& from, int to, const Read& read) {
    if (!surroundings_.may_wait) return;
    const Label there = label();
    jump_if_is(kJumpSignedGreaterEqual, 0, 0, there);
    frame_address(1, to);
    set(2, 1);
    text_address(pointer, from);
    call(BPF_FUNC_copy_from_user);
    read();
    place(there);
  }

  void text_address(const Node& pointer, const At& from);
  void compare_buffer(std::string_view text, std::size_t size, Label no);

  const TypedExpression& expression_;
  const Surroundings& surroundings_;
  std::vector<std::uint8_t> of_beginning_;
  std::vector<std::uint64_t> table_;
  Label undecided_ = label();
  int spilled_ = 0;
  bool nested_ = false;
};

}  // namespace usdt::expr
