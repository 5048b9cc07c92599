// SPDX-License-Identifier: BSD-2-Clause
// An object whose programs usdt-broker loads. This process opens the same object, which takes no privilege, and puts
// the maps that it is handed in the places of its own.
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/try.hpp"
#include "broker/expressions.hpp"
#include "program/bpf_object_impl.hpp"
#include "program/libbpf_log.hpp"
#include "program/loaded_here.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using backends::Recipe;

/// What the service has no form for, so that nobody has to find out from a refusal what it means.
Result<void> check(const AttachPlan& plan, const Recipe& recipe, const LoadOptions& options) {
  const auto refuse = [](std::string_view what) {
    return fail(ErrorKind::not_supported, fmt::format("through usdt-broker: {}", what));
  };
  if (has_kernel_points(plan)) return refuse("no functions and tracepoints of the kernel: they are everybody's");
  if (options.sleepable) return refuse("no waiting for pages that are not in memory: it could hold up everybody");
  for (const TypedExpression& filter : plan.filters)
    if (const std::string why = broker::why_too_large(filter); !why.empty()) return refuse(why);
  const bool pinned = std::ranges::any_of(recipe.map_sources(), [](const auto& source) { return !source.fd; });
  const bool foreign = !recipe.map_sources().empty() && options.shares == nullptr;
  const bool stock = plan.spans ? options.programs.empty() : options.programs.size() == 1 && plan.programs.empty();
  if (!stock || recipe.has_variables() || pinned || foreign || recipe.constants().size() != 1 ||
      recipe.constants().front().name != "usdt_stock_constants")
    return refuse("the stock programs alone");
  return {};
}

/// `shared`: the object whose maps it has; 0: its own.
broker::LoadRequest make_request(const AttachPlan& plan, const Recipe& recipe, const LoadOptions& options,
                                 std::uint32_t shared) {
  const std::vector<std::byte>& constants = recipe.constants().front().value;
  broker::LoadRequest request{.programs = broker::digest(recipe.bytes()),
                              .constants = std::vector<std::uint8_t>(constants.size()),
                              .sizes = recipe.map_sizes(),
                              .shares = shared,
                              .shared_maps = {},
                              .program = plan.spans ? std::string() : options.programs.front(),
                              .carrier = options.carrier,
                              .arguments = options.arguments,
                              .max_programs = options.max_programs,
                              .plan = plan};
  std::memcpy(request.constants.data(), constants.data(), constants.size());
  if (shared != 0)
    for (const Recipe::MapSource& source : recipe.map_sources()) request.shared_maps.push_back(source.map);
  return request;
}

/// A plan as the service has it: places alone, of one with spans.
AttachPlan places_of(const AttachPlan& plan) {
  AttachPlan places = plan;
  if (!plan.spans) return places;
  places.sites = {};
  places.specs = {};
  for (const Index<PlannedSite> site : Indices<PlannedSite>(Index<PlannedSite>(plan.places())))
    places.sites.add(plan.sites[site]);
  for (const Index<EncodedSpec> spec : Indices<EncodedSpec>(Index<EncodedSpec>(plan.read_specs())))
    places.specs.add(plan.specs[spec]);
  return places;
}

/// The carriers that the service has chosen: planning is a pure function, but it may have learnt from the verifier that
/// a program for all specs is too large.
Result<CarrierPlan> plan_carriers_of(const broker::LoadReply& reply, const AttachPlan& plan,
                                     const LoadOptions& options) {
  constexpr std::uint32_t many = 4096;
  for (const auto& [carrier, most] :
       {std::pair(options.carrier, options.max_programs), {Carrier::per_link, std::max(options.max_programs, many)}}) {
    auto carriers = plan_carriers(plan, {.carrier = carrier, .arguments = options.arguments, .max_programs = most});
    if (carriers && carriers->describe() == reply.carriers && carriers->programs.size() == reply.programs)
      return carriers;
  }
  return fail(ErrorKind::not_supported, "usdt-broker carries specs in another way: it is of another version");
}

Result<void> put_maps(const ObjectCopy& object, const broker::LoadedThere& loaded) {
  const backends::LibbpfLog quiet;
  for (std::size_t n = 0; n < loaded.maps.size(); ++n) {
    bpf_map* map = object.map(loaded.reply.maps[n].c_str());
    if (!map) return fail(ErrorKind::malformed, fmt::format("usdt-broker: there is no map '{}'", loaded.reply.maps[n]));
    if (const int error = bpf_map__reuse_fd(map, loaded.maps[n].get()))
      return fail(os_failure(ErrorKind::io, fmt::format("take the map '{}' over", loaded.reply.maps[n]), -error));
  }
  return {};
}

}  // namespace

Result<LoadedObject> BpfObject::Impl::load_there(std::optional<ObjectCopy>& opened,
                                                 std::shared_ptr<const AttachPlan> shared, Backend backend,
                                                 const LoadOptions& options) const {
  TRY(check(*shared, recipe, options));
  const LoadedObject::Impl* const with = options.shares ? options.shares->impl_.get() : nullptr;
  if (with && !with->there)
    return fail(ErrorKind::invalid_argument, "LoadOptions::shares: that object was not loaded by usdt-broker");
  const std::uint32_t object = with ? with->there->object() : 0;
  const AttachPlan places = places_of(*shared);
  auto loaded = TRY(broker::Inside::load(*options.broker, make_request(places, recipe, options, object)));
  auto there = std::make_shared<backends::ProgramsThere>(options.broker, loaded.reply.object);
  auto carriers = TRY(plan_carriers_of(loaded.reply, places, options));
  TRY(put_maps(*opened, loaded));
  std::vector<ObjectCopy> copies;
  copies.push_back(*std::exchange(opened, std::nullopt));
  auto impl = std::make_unique<LoadedObject::Impl>(std::move(shared), std::move(carriers), std::move(copies), backend,
                                                   backends::Family{options.family, false, options.leave_out_self},
                                                   std::string(), options);
  impl->there = std::move(there);
  return LoadedObject(std::move(impl));
}

}  // namespace v1

namespace {

/// What the kernel keeps for an entry of a map, of which the key and the value may be the smaller part: where it is no
/// array, a head of 48 bytes and up to two buckets of 16 bytes (kernel/bpf/hashtab.c, stackmap.c).
std::uint64_t bytes_of_entry(const bpf_map* map) {
  if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF) return 1;
  constexpr std::uint64_t head = 48 + 2 * 16, word = sizeof(std::uint64_t);
  const auto in_words = [](std::uint64_t bytes) { return (bytes + word - 1) / word * word; };
  const std::uint64_t value = std::max(in_words(bpf_map__value_size(map)), word);
  return bpf_map__type(map) == BPF_MAP_TYPE_ARRAY ? value : head + in_words(bpf_map__key_size(map)) + value;
}

}  // namespace

std::vector<broker::LoadedHere::Map> broker::LoadedHere::maps(const LoadedObject& object) {
  std::vector<Map> all;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.impl_->first().get()) {
    const std::string_view name = bpf_map__name(map);
    if (!name.ends_with(".rodata") && bpf_map__fd(map) >= 0) all.push_back({std::string(name), bpf_map__fd(map)});
  }
  return all;
}

std::uint64_t broker::LoadedHere::map_bytes(const BpfObject& object, const std::vector<std::string>& without) {
  constexpr std::uint64_t too_many = std::uint64_t{1} << 50;
  const auto opened = object.impl_->opened();
  if (!opened) return too_many;
  std::uint64_t all = 0;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, (*opened)->get()) {
    if (std::ranges::find(without, bpf_map__name(map)) != without.end()) continue;
    const std::uint64_t entries = bpf_map__max_entries(map);
    const std::uint64_t entry = bytes_of_entry(map);
    if (entries > too_many / entry) return too_many;
    all += entries * entry;
  }
  return all;
}

}  // namespace usdt
