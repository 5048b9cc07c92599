// SPDX-License-Identifier: BSD-2-Clause
// Numbers of the protobuf fields of pprof's profiles (proto/profile.proto of its sources, July 2026).
#pragma once

#include <protozero/pbf_builder.hpp>

namespace usdt::exports::pprof {

using protozero::pbf_tag_type;

enum class Profile : pbf_tag_type {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string = 6,  ///< the first one is empty
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};

/// Texts are numbers of strings, here and below.
enum class ValueType : pbf_tag_type { type = 1, unit = 2 };
enum class Sample : pbf_tag_type { location_ids = 1, values = 2, label = 3 };  ///< the innermost location first
enum class Label : pbf_tag_type { key = 1, text = 2, number = 3 };
enum class Mapping : pbf_tag_type {
  id = 1,
  start = 2,
  limit = 3,
  offset = 4,
  filename = 5,
  build_id = 6,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
  has_inline_frames = 10,
};
enum class Location : pbf_tag_type { id = 1, mapping_id = 2, address = 3, line = 4 };  ///< innermost line first
enum class Line : pbf_tag_type { function_id = 1, line = 2 };
enum class Function : pbf_tag_type { id = 1, name = 2, system_name = 3, filename = 4, start_line = 5 };

}  // namespace usdt::exports::pprof
