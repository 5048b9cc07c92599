// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/bpf_object.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "plan/fewer_values.hpp"
#include "program/bpf_object_impl.hpp"
#include "program/libbpf_log.hpp"
#include "program/map_source.hpp"
#include "program/spec_maps.hpp"
#include "program/specialise.hpp"
#include "sys/regular_file.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {

// --- opened ----------------------------------------------------------------------------------------------------------
BpfObject::BpfObject(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
BpfObject::BpfObject(BpfObject&&) noexcept = default;
BpfObject& BpfObject::operator=(BpfObject&&) noexcept = default;
BpfObject::~BpfObject() = default;

namespace {

std::vector<ObjectProgram> programs_of(const ObjectCopy& object) {
  std::vector<ObjectProgram> all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (!backends::is_site_program(program)) continue;
    const std::string section = bpf_program__section_name(program);
    const std::size_t slash = section.find('/');
    all.push_back({.name = bpf_program__name(program),
                   .section = section,
                   .points = slash == std::string::npos ? "" : section.substr(slash + 1)});
  }
  return all;
}

}  // namespace

Result<ObjectCopy> BpfObject::Impl::take() {
  {
    const std::lock_guard lock(mutex_);
    if (auto taken = std::exchange(opened_, std::nullopt)) return std::move(*taken);
  }
  auto again = recipe.open(recipe.bytes());
  if (!again) return again;
  TRY(recipe.set_maps(*again));
  return again;
}

void BpfObject::Impl::give_back(std::optional<ObjectCopy> unused) {
  const std::lock_guard lock(mutex_);
  if (unused) opened_ = std::move(unused);
}

Result<ObjectCopy*> BpfObject::Impl::opened() {
  auto taken = TRY(take());
  opened_ = std::move(taken);
  return &*opened_;
}

Result<BpfObject> BpfObject::open(std::span<const std::byte> bytes, std::string_view name) try {
  std::string owned_name(name);
  auto object = TRY(ObjectCopy::open(bytes, owned_name));
  backends::Recipe recipe(std::vector(bytes.begin(), bytes.end()), std::move(owned_name));
  auto programs = programs_of(object);
  return BpfObject(std::make_unique<Impl>(std::move(recipe), std::move(object), std::move(programs)));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<BpfObject> BpfObject::open(const std::filesystem::path& path) try {
  constexpr std::size_t kMostBytes = 256U << 20;
  auto bytes = sys::read_regular(path.string(), kMostBytes);
  if (!bytes) return fail(Error(bytes.error()).within("BPF object"));
  return open(*bytes, path.stem().stem().string());
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

std::vector<ObjectProgram> BpfObject::programs() const { return impl_->programs; }

Result<void> BpfObject::set_constant(std::string_view name, std::span<const std::byte> value) {
  auto opened = TRY(impl_->opened());
  auto set = opened->set_constant(name, value);
  if (set) impl_->recipe.add(backends::Recipe::Constant{std::string(name), {value.begin(), value.end()}});
  return set;
}

Result<void> BpfObject::set_global(std::string_view name, std::span<const std::byte> value) {
  auto opened = TRY(impl_->opened());
  auto set = opened->set_variable(name, value);
  if (set) impl_->recipe.add_variable({std::string(name), {value.begin(), value.end()}});
  return set;
}

namespace {

template <class Impl>
Result<void> add_map_source(Impl& object, backends::Recipe::MapSource source) {
  auto opened = TRY(object.opened());
  TRY(backends::check_map_source(*opened, source));
  object.recipe.add(std::move(source));
  return {};
}

template <class Impl>
Result<void> add_map_size(Impl& object, backends::Recipe::MapSize size) {
  auto opened = TRY(object.opened());
  TRY(backends::set_map_size(*opened, size));
  object.recipe.add(std::move(size));
  return {};
}

}  // namespace

Result<void> BpfObject::reuse_map(std::string_view map, int fd) {
  const auto own = std::make_shared<const sys::UniqueFd>(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!*own) return fail(os_failure(ErrorKind::invalid_argument, fmt::format("descriptor of map '{}'", map), errno));
  backends::Recipe::MapSource source{std::string(map), own, {}};
  return add_map_source(*impl_, std::move(source));
}

Result<void> BpfObject::pin_map(std::string_view map, const std::filesystem::path& path) {
  backends::Recipe::MapSource source{std::string(map), nullptr, path};
  return add_map_source(*impl_, std::move(source));
}

Result<void> BpfObject::set_max_entries(std::string_view map, std::uint32_t entries) {
  return add_map_size(*impl_, {std::string(map), broker::MapProperty::entries, entries});
}

Result<void> BpfObject::set_map_type(std::string_view map, std::uint32_t type, std::uint32_t flags) {
  TRY(add_map_size(*impl_, {std::string(map), broker::MapProperty::type, type}));
  return add_map_size(*impl_, {std::string(map), broker::MapProperty::flags, flags});
}

Result<void> BpfObject::set_key_size(std::string_view map, std::uint32_t bytes) {
  return add_map_size(*impl_, {std::string(map), broker::MapProperty::key_size, bytes});
}

Result<void> BpfObject::set_value_size(std::string_view map, std::uint32_t bytes) {
  return add_map_size(*impl_, {std::string(map), broker::MapProperty::value_size, bytes});
}

}  // namespace v1
}  // namespace usdt

namespace usdt::backends {
namespace {

int set_property(bpf_map* map, broker::MapProperty what, std::uint32_t value) {
  switch (what) {
    case broker::MapProperty::entries:
      return bpf_map__set_max_entries(map, value);
    case broker::MapProperty::type:
      return bpf_map__set_type(map, static_cast<bpf_map_type>(value));
    case broker::MapProperty::flags:
      return bpf_map__set_map_flags(map, value);
    case broker::MapProperty::key_size:
      return bpf_map__set_key_size(map, value);
    case broker::MapProperty::value_size:
      return bpf_map__set_value_size(map, value);
  }
  return -EINVAL;
}

}  // namespace

Result<void> set_map_size(const ObjectCopy& object, const Recipe::MapSize& size) {
  const LibbpfLog quiet;
  bpf_map* found = object.map(size.map.c_str());
  if (!found) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", size.map));
  if (const int error = set_property(found, size.what, size.value))
    return fail(
        os_failure(ErrorKind::invalid_argument, fmt::format("size {} for the map '{}'", size.value, size.map), -error));
  return {};
}

Result<ObjectCopy> Recipe::open(std::span<const std::byte> code) const {
  auto object = ObjectCopy::open(code, name_);
  if (!object) return object;
  for (const Constant& each : constants_) {
    TRY(object->set_constant(each.name, std::span<const std::byte>(each.value)));
  }
  return object;
}

Result<void> Recipe::set_maps(const ObjectCopy& first) const {
  for (const Constant& each : variables_) {
    TRY(first.set_variable(each.name, each.value));
  }
  for (const MapSize& size : map_sizes_) {
    TRY(set_map_size(first, size));
  }
  return {};
}

Result<void> Recipe::prepare_maps(const ObjectCopy& first) const {
  TRY(set_maps(first));
  for (const MapSource& source : map_sources_) {
    TRY(set_map_source(first, source));
  }
  return {};
}

}  // namespace usdt::backends

namespace usdt {
inline namespace v1 {

namespace {

/// Refuses what cannot be attached to a family alone.
Result<void> check_family(const AttachPlan& plan, const LoadOptions& options) {
  if (options.family.empty()) return {};
  if (!pids_of(plan.scope).empty())
    return fail(ErrorKind::invalid_argument, "a family, and a plan for some processes: one of them");
  for (const AttachGroup& group : plan.groups)
    if (group.backend != Backend::automatic && !is_kernel(group.backend))
      return fail(ErrorKind::not_supported,
                  fmt::format("{} is for everybody, or one process", to_string(group.backend)));
  return {};
}

}  // namespace

Result<LoadedObject> BpfObject::load(AttachPlan plan, const LoadOptions& options) const {
  return load(std::make_shared<const AttachPlan>(std::move(plan)), options);
}

Result<LoadedObject> BpfObject::load(std::shared_ptr<const AttachPlan> shared, const LoadOptions& options) const try {
  if (!shared) return fail(ErrorKind::invalid_argument, "no plan to load for");
  const AttachPlan& plan = *shared;
  const bool any_backend =
      std::ranges::any_of(plan.groups, [](const AttachGroup& group) { return group.backend == Backend::automatic; });
  TRY(check_family(plan, options));
  const bool of_family = !options.family.empty() && !options.broker;
  const Backend wanted = of_family ? Backend::uprobe_family : options.backend;
  auto backend = TRY(any_backend ? choose_backend(wanted) : Result<Backend>(Backend::automatic));
  for (const AttachGroup& group : plan.groups) {
    if (group.backend == Backend::automatic || is_kernel(group.backend)) continue;
    TRY(choose_backend(group.backend));
  }
  if (!plan.programs.empty() && !options.programs.empty())
    return fail(ErrorKind::invalid_argument, "LoadOptions::programs: the plan names its programs itself");
  auto taken = TRY(impl_->take());
  std::optional<ObjectCopy> opened(std::move(taken));
  auto loaded = options.broker ? impl_->load_there(opened, std::move(shared), backend, options)
                               : impl_->load(opened, std::move(shared), backend, options);
  impl_->give_back(std::move(opened));
  return loaded;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

namespace {

constexpr std::uint32_t kMostPrograms = 4096;

/// Whether a program is more than the verifier goes through, which is a million instructions.
bool is_too_much(const Error& error) { return error.kind == ErrorKind::verifier && error.os_error == E2BIG; }

/// Whether the verifier may have more to say, or the kernel is too old to be asked for its complaint alone.
bool is_worth_a_log(const Error& error) { return error.kind == ErrorKind::verifier || error.os_error == EINVAL; }

/// Whether it has to be ready for the specs of all its sites. One that knows its only spec is a small part of it.
bool has_many_specs(const CarrierPlan& carriers) { return carriers.in_cookie + carriers.in_table > 0; }

/// Returns the specs that a program reads.
std::set<Index<EncodedSpec>> specs_of(const AttachPlan& plan, const CarrierPlan& carriers,
                                      Index<PlannedProgram> program) {
  std::set<Index<EncodedSpec>> specs;
  for (const PlannedLink& link : carriers.links) {
    if (link.program != program) continue;
    for (const Index<PlannedSite> site : link.sites) specs.insert(plan.sites[site].spec);
  }
  return specs;
}

}  // namespace

Result<LoadedObject> BpfObject::Impl::load(std::optional<ObjectCopy>& opened, std::shared_ptr<const AttachPlan> shared,
                                           Backend backend, const LoadOptions& options) const {
  TRY(backends::check_sources(*opened, *shared));
  const bool cookies = probe_feature(Feature::attach_cookie).answer != Answer::no;
  const auto carrier = TRY(backends::carrier_for(*opened, options.carrier, cookies));
  CarrierOptions wanted{.carrier = carrier,
                        .attach_cookies = cookies,
                        .site_numbers = options.site_numbers,
                        .arguments = options.arguments,
                        .max_programs = options.max_programs};
  auto carriers = plan_carriers(*shared, wanted);
  if (!carriers) return fail(carriers.error());
  using backends::VerifierLog;
  const auto load_with = [&](VerifierLog log) {
    return backends::load_copies(recipe, opened, *shared, *carriers, backend, options, log);
  };
  // libbpf makes room of 16 MiB for what it asks for. There is none of it, until it fails, where all is asked for.
  const auto load_copies = [&] {
    auto loaded = load_with(VerifierLog::complaint);
    return !loaded && loaded.error().error.os_error == ENOMEM ? load_with(VerifierLog::all) : std::move(loaded);
  };
  auto copies = load_copies();
  while (!copies && carrier == Carrier::automatic && is_too_much(copies.error().error)) {
    if (has_many_specs(*carriers) && wanted.carrier != Carrier::per_link) {
      wanted.carrier = Carrier::per_link;
      wanted.max_programs = std::max(wanted.max_programs, kMostPrograms);
    } else {
      auto fewer = plan::with_fewer_values(*shared, specs_of(*shared, *carriers, copies.error().program));
      if (!fewer) break;
      shared = std::make_shared<const AttachPlan>(std::move(*fewer));
    }
    auto again = plan_carriers(*shared, wanted);
    if (!again) break;
    carriers = std::move(again);
    copies = load_copies();
  }
  if (!copies && is_worth_a_log(copies.error().error)) copies = load_with(VerifierLog::all);
  if (!copies) return fail(std::move(copies.error().error));
  return LoadedObject(std::make_unique<LoadedObject::Impl>(
      std::move(shared), std::move(*carriers), std::move(*copies), backend,
      backends::Family{options.family, options.family_held, options.leave_out_self},
      backends::license_of(recipe.bytes()), options));
}

// --- loaded ----------------------------------------------------------------------------------------------------------
LoadedObject::LoadedObject(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LoadedObject::LoadedObject(LoadedObject&&) noexcept = default;
LoadedObject& LoadedObject::operator=(LoadedObject&&) noexcept = default;
LoadedObject::~LoadedObject() = default;

LoadedObject::Impl::~Impl() {
  for (const Mapping& m : mappings) ::munmap(m.start, m.length);
}

std::byte* LoadedObject::Impl::mapped(bpf_map* map) {
  const std::lock_guard lock(mutex);
  for (const Mapping& m : mappings)
    if (m.map == map) return m.start;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = (bpf_map__value_size(map) + page - 1) / page * page;
  void* start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
  if (start == MAP_FAILED) return nullptr;
  mappings.push_back({map, static_cast<std::byte*>(start), length});
  return mappings.back().start;
}

std::span<std::byte> LoadedObject::global_bytes(std::string_view name) const noexcept {
  for (const char* section : {".bss", ".data"}) {
    const auto variable = impl_->first().variable(section, name);
    if (!variable) continue;
    std::byte* start = impl_->mapped(variable->map);
    if (start) return {start + variable->offset, variable->size};
  }
  return {};
}

void* LoadedObject::global(std::string_view name) const noexcept { return global_bytes(name).data(); }

Result<void*> LoadedObject::global(std::string_view name, std::size_t size) const {
  const std::span<std::byte> bytes = global_bytes(name);
  if (bytes.empty()) return fail(ErrorKind::not_found, fmt::format("the BPF object has no variable '{}'", name));
  if (bytes.size() != size)
    return fail(ErrorKind::type_mismatch, fmt::format("variable '{}' has {} bytes, not {}", name, bytes.size(), size));
  return bytes.data();
}

const AttachPlan& LoadedObject::plan() const noexcept { return *impl_->plan; }
Backend LoadedObject::backend() const noexcept { return impl_->backend; }
const CarrierPlan& LoadedObject::carriers() const noexcept { return impl_->carriers; }

Result<int> LoadedObject::program_fd(std::string_view name, std::size_t copy) const {
  if (copy >= impl_->copies.size()) return fail(ErrorKind::invalid_argument, fmt::format("no program copy {}", copy));
  const bpf_program* program = bpf_object__find_program_by_name(impl_->copies[copy].get(), std::string(name).c_str());
  if (!program) return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}'", name));
  const int fd = bpf_program__fd(program);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("program '{}' is not loaded", name));
  return fd;
}

Result<int> LoadedObject::program_fd(std::string_view name) const {
  for (std::size_t copy = 1; copy < impl_->copies.size(); ++copy) {
    if (auto fd = program_fd(name, copy)) return fd;
  }
  return program_fd(name, 0);
}

Result<int> LoadedObject::map_fd(std::string_view name) const {
  const bpf_map* map = impl_->first().map(std::string(name).c_str());
  if (!map) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", name));
  const int fd = bpf_map__fd(map);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("map '{}' is not loaded", name));
  return fd;
}

}  // namespace v1
}  // namespace usdt
