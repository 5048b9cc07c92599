// SPDX-License-Identifier: BSD-2-Clause
// Instructions that make the row of a table: its keys, and its value. Private to expr/.
#pragma once

#include <cstdint>

#include "expr/value_compiler.hpp"

namespace usdt::expr {

/// Makes rows where programs have them (kRow).
class RowCompiler : protected ValueCompiler {
 protected:
  using ValueCompiler::ValueCompiler;

  void row(const Node& root);

 private:
  void value_of_row(const Node& node);
  void text_key(const Node& key, int at, std::uint32_t size);
  void fingerprint_key(const Node& text, int at);
  void add_to_fingerprint(int at);
  void read_key(const Node& key, int at, std::int32_t most);
};

}  // namespace usdt::expr
