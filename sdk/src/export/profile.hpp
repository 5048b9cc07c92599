// SPDX-License-Identifier: BSD-2-Clause
// Profiles of pprof: stacks with numbers, in which each text, function and place is once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "export/pprof_fields.hpp"
#include "io/escape.hpp"
#include "usdt/stack.hpp"

namespace usdt::exports::pprof {

/// What a sample has besides its stack.
struct SampleLabel {
  std::string name;
  std::variant<std::string, std::int64_t> value;
  friend auto operator<=>(const SampleLabel&, const SampleLabel&) = default;
};

/// The name and unit of a number that samples have.
struct NumberType {
  std::string type, unit;
};

/// A profile that is being put together.
class ProfileBuilder {
 public:
  /// Hits of a stack, and the sum of their values.
  struct Numbers {
    double hits = 0;
    double sum = 0;
  };

  /// Takes new stacks while all of them take at most `most_bytes`.
  explicit ProfileBuilder(std::size_t most_bytes) : room_(most_bytes) {}

  /// Begins another stack.
  void begin_stack() {
    stack_.clear();
    found_no_room_ = false;
  }
  /// Adds the frames of a part of the stack, the innermost part first.
  void add_frames(const Stack& stack);
  /// Adds, in the place of frames, why there are none.
  void add_reason(std::string_view reason);
  /// Adds hits with the stack that was put together since begin_stack(). False: it is a new one that there is no room
  /// for.
  [[nodiscard]] bool add_sample(const std::vector<SampleLabel>& labels, const Numbers& numbers);

  /// What is said of all samples.
  struct About {
    std::vector<NumberType> types = {};  ///< of Numbers::hits, and maybe of the sum
    std::uint64_t period = 1;            ///< hits that one sample stands for
    std::int64_t began = 0;              ///< time of day, ns; 0: not known
    std::int64_t took = 0;               ///< ns
    std::vector<std::string> comments = {};
  };
  /// Returns the profile, encoded.
  [[nodiscard]] std::string encode(const About& about);

 private:
  using Id = std::uint64_t;
  struct MappedFile {
    Id id;
    std::uint64_t first;  ///< the lowest address of it that stacks have
    std::uint64_t limit = 0;
    bool has_functions = true, has_filenames = true, has_lines = true, has_inlined = false;
  };
  /// A file where a process has it. Programs come before what they load: readers take the first mapping for the
  /// program (`mapping` in proto/profile.proto).
  struct MappingKey {
    bool is_loaded;  ///< a library, or of the kernel
    std::string name, build_id;
    std::uint64_t start;  ///< the address of the file's beginning; 0: not known
    friend auto operator<=>(const MappingKey&, const MappingKey&) = default;
  };
  using LineKey = std::pair<Id, std::uint32_t>;  ///< function, line
  using LocationKey = std::tuple<Id, std::uint64_t, std::vector<LineKey>>;
  using SampleKey = std::pair<std::vector<Id>, std::vector<SampleLabel>>;

  /// That of a string; the first one is empty and has no entry.
  [[nodiscard]] std::int64_t number_of(std::string_view text, io::Escapes escapes = io::Escapes::all);
  [[nodiscard]] Id function_of(const Frame& frame);
  [[nodiscard]] MappedFile* mapping_of(const Frame& frame);  ///< null: there is no room for it
  [[nodiscard]] Id location_of(const Frame& frame, const std::vector<LineKey>& lines);
  void add_sample_to(protozero::pbf_builder<Profile>& profile, const SampleKey& key, const Numbers& numbers,
                     std::size_t types);
  void add_mapping_to(protozero::pbf_builder<Profile>& profile, const MappingKey& key, const MappedFile& mapping);
  void add_strings_to(protozero::pbf_builder<Profile>& profile) const;
  /// Returns the number that `map` has for `key`, which may be a new one. 0: it is new, and there is no room for it.
  template <class Map, class Key>
  [[nodiscard]] typename Map::mapped_type number_in(Map& map, const Key& key, std::size_t bytes) {
    if (const auto known = map.find(key); known != map.end()) return known->second;
    if (!take_room(bytes)) return 0;
    return map.emplace(key, map.size() + 1).first->second;
  }
  [[nodiscard]] bool take_room(std::size_t bytes) {
    if (bytes > room_) found_no_room_ = true;
    if (found_no_room_) return false;
    room_ -= bytes;
    return true;
  }

  std::size_t room_;
  std::vector<Id> stack_;
  bool found_no_room_ = false;  ///< for something of the stack
  std::map<std::string, std::int64_t, std::less<>> strings_;
  /// By name, file and the line that the file defines them in.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Id> functions_;
  std::map<MappingKey, MappedFile> mappings_;
  std::map<LocationKey, Id> locations_;
  std::map<SampleKey, Numbers> samples_;
};

}  // namespace usdt::exports::pprof
