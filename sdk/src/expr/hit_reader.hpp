// SPDX-License-Identifier: BSD-2-Clause
// Instructions that read what is known of a hit: values of its site, and its fields. Private to expr/.
#pragma once

#include <cstdint>
#include <vector>

#include "expr/arithmetic.hpp"
#include "expr/compile.hpp"
#include "expr/question_frame.hpp"

namespace usdt::expr {

/// Reads into registers, or into the frame.
class HitReader : protected Arithmetic {
 protected:
  /// Both live as long.
  HitReader(const TypedExpression& expression, const Surroundings& surroundings);

  [[nodiscard]] const TypedExpression& expression() const noexcept { return expression_; }
  [[nodiscard]] const Surroundings& surroundings() const noexcept { return surroundings_; }
  [[nodiscard]] static bool is_leaf(const Node& node);
  /// A literal or a value; with r4 and r5, where the value is of a list.
  void leaf(const Node& node, std::uint8_t to);
  /// r0 becomes the field, unless it is a text.
  void field(HitField field);
  /// A field that is a text, and is the thread's, 16 bytes to the frame: its name, with zeros behind; or the bytes that
  /// a number in hexadecimal digits stands for.
  void text_field_to(HitField field, int at);
  void frame_address(std::uint8_t to, int offset);

  ScratchWords scratch_;

 private:
  void read(std::uint64_t value, std::uint8_t to);
  void count(const ElementCount& counts, std::uint8_t to);
  bool read_of_beginning(std::uint8_t fact, std::uint8_t to);
  void comm_to(int at);
  void read_context(std::uint8_t fact, std::uint8_t to);
  void low_half();
  void task(bool group);
  void parent();

  const TypedExpression& expression_;
  const Surroundings& surroundings_;
  std::vector<std::uint8_t> of_beginning_;  ///< values behind those that are arguments
};

}  // namespace usdt::expr
