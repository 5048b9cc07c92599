// SPDX-License-Identifier: BSD-2-Clause
// Stacks with common beginnings put together, as the pages that draw flame graphs have them (flame_graph.js).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.hpp"

namespace usdt::exports {

/// A tree of frames: each node is behind its parent, and has the number of what ends there.
class StackTree {
 public:
  /// Adds a stack, with ';' between its frames, and its number, a whole one in decimal.
  void add(std::string_view stack, std::string number);
  /// Leaves about `most` frames, those with the largest numbers. The others' hits are on frames "[folded]" in
  /// their place. Returns how many frames were folded.
  std::size_t fold(std::size_t most);
  /// Writes members of an object: "names", each with at most so many bytes, and by node "names_of", "parents",
  /// "counts".
  void write(io::JsonWriter& json, std::size_t most_bytes = std::string_view::npos) const;

 private:
  struct Node {
    std::uint32_t name, parent;
    std::string number = "0";
  };

  std::uint32_t child_of(std::uint32_t parent, std::string_view name);
  /// Returns the number of each node with all that is on top of it.
  [[nodiscard]] std::vector<double> totals() const;

  std::map<std::string, std::size_t> numbers_ = {{"all", 0}};
  std::vector<std::string_view> names_ = {"all"};  ///< keys of numbers_
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> children_;
  std::vector<Node> nodes_ = {{0, 0}};
};

}  // namespace usdt::exports
