// SPDX-License-Identifier: BSD-2-Clause
// What a BpfObject owns. Private to attach/.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attach/object_copy.hpp"
#include "usdt/bpf_object.hpp"

namespace usdt {

using backends::ObjectCopy;

struct BpfObject::Impl {
  Impl(std::vector<std::byte> object_bytes, std::string object_name, ObjectCopy opened)
      : bytes(std::move(object_bytes)), name(std::move(object_name)) {
    copies.push_back(std::move(opened));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  [[nodiscard]] const ObjectCopy& first() const { return copies.front(); }

  /// The running program's copy of a section of globals, mapped on first use. (libbpf 1.1 maps it for skeletons only.)
  std::byte* mapped(bpf_map* map);

  /// Opens copy `number`, with the application's constants, and the first one's maps where it is not that itself.
  Result<void> open_copy(std::size_t number, const PlannedProgram& program);
  /// The object's code, rewritten where `program` wants it; empty: as it is.
  [[nodiscard]] Result<std::vector<std::byte>> code_for(const PlannedProgram& program) const;
  Result<void> size_maps() const;
  /// An object with the application's constants.
  [[nodiscard]] Result<ObjectCopy> open_object(std::span<const std::byte> code) const;
  Result<void> unload();
  /// Loads a copy for each program, and fills the maps they share.
  Result<void> load_copies(const AttachPlan& plan, const CarrierPlan& carried, Backend chosen,
                           std::span<const std::string> programs);

  struct Mapping {
    bpf_map* map;
    std::byte* start;
    std::size_t length;
  };
  /// What the application wants of a map's size: entries, or bytes of a value.
  struct MapSize {
    std::string map;
    std::uint32_t value;
    int (*set)(bpf_map*, std::uint32_t);
  };
  Result<void> set_map_size(const MapSize& size);
  [[nodiscard]] Result<void> apply(const MapSize& size) const;

  struct Constant {
    std::string name;
    std::vector<std::byte> value;
  };
  std::vector<std::byte> bytes;
  std::string name;
  std::vector<ObjectCopy> copies;   ///< one for each program of the carrier plan; they share the first one's maps
  std::vector<Constant> constants;  ///< set by the application, for the copies to come
  std::vector<MapSize> map_sizes;   ///< the same of its maps
  std::vector<Mapping> mappings;
  CarrierPlan carriers;
  Backend backend = Backend::automatic;
  std::atomic<bool> loaded = false;
  std::mutex mutex;  ///< of loading, and of `mappings`
};

}  // namespace usdt
