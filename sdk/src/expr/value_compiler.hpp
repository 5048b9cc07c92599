// SPDX-License-Identifier: BSD-2-Clause
// Instructions for the nodes of an expression: their values, and conditions. Private to expr/.
#pragma once

#include "expr/text_comparer.hpp"

namespace usdt::expr {

/// Goes through the tree of an expression once.
class ValueCompiler : protected TextComparer {
 protected:
  using TextComparer::TextComparer;

  /// Leaves the value of `node` in r0.
  void value(const Node& node);
  /// Goes to `yes` or to `no`.
  void branch(const Node& node, Label yes, Label no);

 private:
  static bool is_truth(const Node& node);
  static int room_for(const Node& node);
  void truth(const Node& node);
  void choice(const Node& node);
  void both(const Node& node);
  void comparison(const Node& node, Label yes, Label no);
  void reals(const Node& node, Label yes, Label no);
};

}  // namespace usdt::expr
