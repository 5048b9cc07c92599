// SPDX-License-Identifier: BSD-2-Clause
// The belongings of a BpfObject and of a LoadedObject. Private to attach/program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "broker/client.hpp"
#include "program/family.hpp"
#include "program/object_copy.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/bpf_object.hpp"

namespace usdt::backends {

/// How an object is opened: its code, and what the application wants of its constants and maps.
class Recipe {
 public:
  Recipe(std::vector<std::byte> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  struct Constant {
    std::string name;
    std::vector<std::byte> value;
  };
  using MapSize = broker::MapSize;
  /// A map that is there already, or is to be pinned.
  struct MapSource {
    std::string map;
    std::shared_ptr<const sys::UniqueFd>
        fd;  ///< null: what is pinned at `pin`, or else a new one, which is pinned there
    std::filesystem::path pin;
  };
  void add(Constant constant) { constants_.push_back(std::move(constant)); }
  void add_variable(Constant variable) { variables_.push_back(std::move(variable)); }
  void add(MapSize size) { map_sizes_.push_back(std::move(size)); }
  void add(MapSource source) { map_sources_.push_back(std::move(source)); }

  /// An object of `code` with the constants set.
  [[nodiscard]] Result<ObjectCopy> open(std::span<const std::byte> code) const;
  /// Initial values of variables, and sizes of maps.
  [[nodiscard]] Result<void> set_maps(const ObjectCopy& first) const;
  /// Makes maps and variables as the application wants them. They are the first copy's for all.
  [[nodiscard]] Result<void> prepare_maps(const ObjectCopy& first) const;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// For whoever has it loaded in another process.
  ///@{
  [[nodiscard]] const std::vector<Constant>& constants() const noexcept { return constants_; }
  [[nodiscard]] const std::vector<MapSize>& map_sizes() const noexcept { return map_sizes_; }
  [[nodiscard]] const std::vector<MapSource>& map_sources() const noexcept { return map_sources_; }
  [[nodiscard]] bool has_variables() const noexcept { return !variables_.empty(); }
  ///@}

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
  std::vector<Constant> constants_;
  std::vector<Constant> variables_;
  std::vector<MapSize> map_sizes_;
  std::vector<MapSource> map_sources_;
};
[[nodiscard]] Result<void> set_map_size(const ObjectCopy& object, const Recipe::MapSize& size);

/// Programs that sit on sites. An object may have others.
[[nodiscard]] bool is_site_program(const bpf_program* program);

/// Why not all programs were loaded, and which one was not.
struct LoadFailure {
  Error error;
  Index<PlannedProgram> program = {};
};

/// Loads a copy of the object for each program of `carriers`, and fills the maps they share. `opened`, which is of
/// `recipe`, becomes the first one, unless that needs other code. The copies are closed, and with them all that was
/// loaded, where one cannot be loaded.
[[nodiscard]] tl::expected<std::vector<ObjectCopy>, LoadFailure> load_copies(
    const Recipe& recipe, std::optional<ObjectCopy>& opened, const AttachPlan& plan, const CarrierPlan& carriers,
    Backend files, const LoadOptions& options, VerifierLog log);

/// Programs that usdt-broker has loaded for this process, which has their maps and no program.
class ProgramsThere {
 public:
  ProgramsThere(std::shared_ptr<Broker> broker, std::uint32_t object) : broker_(std::move(broker)), object_(object) {}
  ProgramsThere(const ProgramsThere&) = delete;
  ProgramsThere& operator=(const ProgramsThere&) = delete;
  ~ProgramsThere() { broker::Inside::forget(*broker_, object_); }

  [[nodiscard]] std::uint32_t object() const noexcept { return object_; }
  [[nodiscard]] Result<broker::AttachedThere> attach(std::uint32_t link, pid_t pid,
                                                     std::vector<std::uint32_t> left_out) const {
    return broker::Inside::attach(*broker_, {object_, link, pid, std::move(left_out)});
  }
  [[nodiscard]] std::optional<std::uint64_t> missed() const { return broker::Inside::missed(*broker_, object_); }

 private:
  std::shared_ptr<Broker> broker_;
  std::uint32_t object_;
};

}  // namespace usdt::backends

namespace usdt {
inline namespace v1 {

using backends::ObjectCopy;

struct BpfObject::Impl {
  Impl(backends::Recipe made, ObjectCopy first, std::vector<ObjectProgram> all)
      : recipe(std::move(made)), programs(std::move(all)), opened_(std::move(first)) {}

  /// An object that is not loaded, in which is looked up what there is to be set. Not beside a load.
  [[nodiscard]] Result<ObjectCopy*> opened();
  /// Opens a copy for one of several loads at once, which may keep it, or give it back.
  [[nodiscard]] Result<ObjectCopy> take();
  void give_back(std::optional<ObjectCopy> unused);
  /// `opened`: what take() gave.
  [[nodiscard]] Result<LoadedObject> load(std::optional<ObjectCopy>& opened, std::shared_ptr<const AttachPlan> shared,
                                          Backend backend, const LoadOptions& options) const;
  /// Has it loaded by LoadOptions::broker: `opened` becomes the place of the maps.
  [[nodiscard]] Result<LoadedObject> load_there(std::optional<ObjectCopy>& opened,
                                                std::shared_ptr<const AttachPlan> shared, Backend backend,
                                                const LoadOptions& options) const;

  backends::Recipe recipe;
  std::vector<ObjectProgram> programs;

 private:
  std::mutex mutex_;                  ///< of `opened_`
  std::optional<ObjectCopy> opened_;  ///< to open one takes time: most objects are opened once and loaded once
};

struct LoadedObject::Impl {
  struct Mapping {
    bpf_map* map;
    std::byte* start;
    std::size_t length;
  };

  Impl(std::shared_ptr<const AttachPlan> attach_plan, CarrierPlan carrier_plan, std::vector<ObjectCopy> loaded,
       Backend of_files, backends::Family of_family, std::string license_text, const LoadOptions& options)
      : plan(std::move(attach_plan)),
        carriers(std::move(carrier_plan)),
        copies(std::move(loaded)),
        backend(of_files),
        family(std::move(of_family)),
        license(std::move(license_text)),
        leave_out_changed(options.leave_out_changed),
        stop(options.stop) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  [[nodiscard]] const ObjectCopy& first() const { return copies.front(); }
  /// The running programs' copy of a section of globals, mapped on first use. (libbpf 1.1 maps it for skeletons only.)
  std::byte* mapped(bpf_map* map);

  std::shared_ptr<const AttachPlan> plan;
  CarrierPlan carriers;
  std::vector<ObjectCopy> copies;  ///< one for each program of the carrier plan; they share the first one's maps
  Backend backend;
  backends::Family family;  ///< with Backend::uprobe_family
  std::string license;
  bool leave_out_changed;                               ///< LoadOptions::leave_out_changed
  StopToken stop;                                       ///< LoadOptions::stop
  std::shared_ptr<backends::ProgramsThere> there = {};  ///< null: the programs are in `copies`
  std::mutex mutex;                                     ///< of `mappings`
  std::vector<Mapping> mappings;
};

}  // namespace v1
}  // namespace usdt
