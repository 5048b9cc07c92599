// SPDX-License-Identifier: BSD-2-Clause
#include "serve/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "broker/limits.hpp"
#include "event/stock_objects.hpp"
#include "link/attach_table.hpp"
#include "link/missed.hpp"
#include "program/loaded_here.hpp"
#include "serve/allowed_places.hpp"
#include "serve/allowed_processes.hpp"
#include "serve/request_limits.hpp"

namespace usdt::serve {
namespace {

/// Names of a plan's probes, for people: the first few.
std::string names_of(const AttachPlan& plan) {
  constexpr std::size_t few = 3;
  std::string text;
  for (const Index<PlannedProbe> number : plan.probes.indices()) {
    if (number.value == few) {
      text += fmt::format(" and {} more", plan.probes.size() - few);
      break;
    }
    const PlannedProbe& probe = plan.probes[number];
    text +=
        fmt::format("{}{}:{}", number.value == 0 ? "" : ", ", probe.provider.substr(0, 64), probe.name.substr(0, 128));
  }
  return text;
}

/// The programs that sites run.
std::vector<std::string> names_of_programs(const broker::LoadRequest& request) {
  if (!request.plan.spans) return {request.program};
  return {request.plan.programs.begin(), request.plan.programs.end()};
}

/// The sizes that clients set, of maps that they have anyway. What there is no such map of, the object says.
Result<void> set_size(BpfObject& object, const broker::MapSize& size) {
  switch (size.what) {
    case broker::MapProperty::entries:
      return object.set_max_entries(size.map, size.value);
    case broker::MapProperty::key_size:
      return object.set_key_size(size.map, size.value);
    case broker::MapProperty::value_size:
      return object.set_value_size(size.map, size.value);
    case broker::MapProperty::type:
    case broker::MapProperty::flags:
      break;
  }
  return {};
}

/// Kinds of maps are set together with their flags, one behind the other: a hash that grows is the only other kind that
/// a stock map is made of.
Result<void> set_kinds(BpfObject& object, const std::vector<broker::MapSize>& sizes) {
  constexpr std::uint32_t hash = 1 /* BPF_MAP_TYPE_HASH */, grows = 1 /* BPF_F_NO_PREALLOC */;
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    if (sizes[n].what != broker::MapProperty::type) continue;
    const bool with_flags =
        n + 1 < sizes.size() && sizes[n + 1].what == broker::MapProperty::flags && sizes[n + 1].map == sizes[n].map;
    if (!with_flags || sizes[n].map != "usdt_open_calls" || sizes[n].value != hash || sizes[n + 1].value != grows)
      return fail(ErrorKind::not_supported, "usdt-broker makes maps of no other kinds than the stock programs have");
    TRY(object.set_map_type(sizes[n].map, hash, grows));
  }
  return {};
}

/// The places of a planned link without those that the client leaves out.
struct Places {
  std::vector<std::uint64_t> offsets, semaphores, cookies;

  [[nodiscard]] backends::SiteArrays view() const { return {offsets, semaphores, cookies}; }
};

Result<Places> places_of(const PlannedLink& link, const std::vector<std::uint32_t>& left_out) {
  std::vector<bool> wanted(link.offsets.size(), true);
  for (const std::uint32_t place : left_out) {
    if (place >= wanted.size()) return fail(ErrorKind::invalid_argument, "a place is left out that there is not");
    wanted[place] = false;
  }
  Places places;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    places.offsets.push_back(link.offsets[i]);
    places.semaphores.push_back(link.ref_ctr_offsets[i]);
    places.cookies.push_back(link.cookies[i]);
  }
  if (places.offsets.empty()) return fail(ErrorKind::invalid_argument, "no place of the link is left");
  return places;
}

/// The backend of a link, which is one whose links keep processes apart.
Result<Backend> backend_of(const AttachPlan& plan, const LoadedObject& object, const PlannedLink& link) {
  const Backend planned = plan.groups[link.group].backend;
  const ProgramKind& kind = object.carriers().programs[link.program].kind;
  const Moment moment = kind.returns == ReturnBy::probe ? kind.moment : Moment::entry;
  const Backend backend = backends::row_of(planned == Backend::automatic ? object.backend() : planned, moment).backend;
  if (backend == Backend::uprobe_multi || backend == Backend::uprobe_return || backend == Backend::uprobe_session)
    return backend;
  return fail(ErrorKind::not_supported,
              fmt::format("usdt-broker attaches by uprobe_multi, and not by {}", to_string(backend)));
}

}  // namespace

Result<int> Objects::Object::program_fd(Index<PlannedProgram> number) const {
  const auto named = loaded->carriers().programs[number].kind.program;
  return loaded->program_fd(named ? plan->programs[*named] : program, number.value);
}

void Objects::tell(std::string_view what, const AttachPlan& plan, const std::vector<AllowedFile>& files,
                   std::string_view result) const {
  if (!options_.tell) return;
  constexpr std::size_t long_path = 256;
  std::string path = files.empty() ? "no file" : files.front().path.substr(0, long_path);
  if (files.size() > 1) path += fmt::format(" and {} more", files.size() - 1);
  options_.tell(
      fmt::format("uid {} pid {}: {} {} of {}: {}", client_.uid, client_.pid, what, names_of(plan), path, result));
}

Result<std::vector<AllowedFile>> Objects::check_files(const AttachPlan& plan, std::vector<sys::UniqueFd> files) {
  if (files.size() != plan.files.size()) return fail(ErrorKind::malformed, "not as many files as the plan has");
  std::vector<AllowedFile> allowed;
  for (sys::UniqueFd& each : files) {
    auto file = check_file(std::move(each), client_);
    if (!file) {
      tell("refused", plan, allowed, file.error().message);
      return fail(std::move(file.error()));
    }
    allowed.push_back(std::move(*file));
    if (allowed.back().own) continue;
    const Index<PlannedFile> number(allowed.size() - 1);
    if (auto places = check_places(plan, number, allowed.back()); !places) {
      tell("refused", plan, allowed, places.error().message);
      return fail(std::move(places.error()));
    }
  }
  return allowed;
}

Result<BpfObject> Objects::open(const broker::LoadRequest& request) const {
  const std::span<const std::byte> programs = event::stock_programs();
  if (request.programs != broker::digest(programs))
    return fail(ErrorKind::not_supported,
                fmt::format("usdt-broker {} has other programs than you: after an upgrade it is to be restarted",
                            USDT_VERSION));
  auto object = TRY(BpfObject::open(programs, "usdt"));
  const usdt_stock_constants constants = TRY(make_constants(request, client_));
  TRY(object.set_constant("usdt_stock_constants", constants));
  for (const broker::MapSize& size : request.sizes) TRY(set_size(object, size));
  TRY(set_kinds(object, request.sizes));
  TRY(share_maps(object, request));
  const std::vector<ObjectProgram> all = object.programs();
  for (const std::string& name : names_of_programs(request))
    if (std::ranges::find(all, name, &ObjectProgram::name) == all.end())
      return fail(ErrorKind::not_found, "usdt-broker has no such program");
  return object;
}

/// Those that a trace has once, whatever is added to it. The kernel's verifier sees to it that programs and maps go
/// together.
Result<void> Objects::share_maps(BpfObject& object, const broker::LoadRequest& request) const {
  if (request.shares == 0) return {};
  const auto with = objects_.find(request.shares);
  if (with == objects_.end()) return fail(ErrorKind::not_found, "usdt-broker has no such object to share maps with");
  constexpr std::array<std::string_view, 8> shared = {"usdt_events", "usdt_descendants", ".bss",
                                                      "usdt_rows",   "usdt_row_keys",    "usdt_blank_row",
                                                      "usdt_stacks", "usdt_more_stacks"};
  for (const std::string& map : request.shared_maps) {
    if (std::ranges::find(shared, map) == shared.end())
      return fail(ErrorKind::not_supported, "usdt-broker: that map is not shared");
    const auto fd = TRY(with->second.loaded->map_fd(map));
    TRY(object.reuse_map(map, fd));
  }
  return {};
}

Result<std::uint64_t> Objects::take_map_bytes(const BpfObject& object, const broker::LoadRequest& request,
                                              const AttachPlan& plan) const {
  std::uint64_t bytes = broker::LoadedHere::map_bytes(object, request.shared_maps);
  bytes += plan.specs.size() * (sizeof(usdt_spec) + std::uint64_t{plan.max_entries} * sizeof(usdt_arg_spec));
  std::uint64_t all = bytes;
  for (const auto& [number, each] : objects_) all += each.map_bytes;
  if (options_.may_keep && all <= options_.most_map_bytes && !options_.may_keep(bytes))
    return fail(
        ErrorKind::limit,
        fmt::format("maps of {} MiB: usdt-broker has made as much for user {} within the last hour as it does; it "
                    "comes back little by little: wait some minutes, or ask for a smaller ring (--ring-size), or "
                    "the administrator for more (--memory-of-user of usdt-broker)",
                    bytes >> 20, client_.uid));
  if (all <= options_.most_map_bytes) return bytes;
  return fail(ErrorKind::limit,
              fmt::format("maps of {} MiB: usdt-broker gives a connection {}; a smaller ring (--ring-size), or fewer "
                          "questions at once, take less",
                          all >> 20, options_.most_map_bytes >> 20));
}

Result<Granted<broker::LoadReply>> Objects::load(broker::LoadRequest request, std::vector<sys::UniqueFd> files) {
  if (objects_.size() >= broker::kMostObjects)
    return fail(ErrorKind::limit, fmt::format("{} traces of one connection: no more", objects_.size()));
  const BpfObject opened = TRY(open(request));
  Object object{
      .plan = std::make_shared<const AttachPlan>(std::move(request.plan)), .files = {}, .program = request.program};
  object.files = TRY(check_files(*object.plan, std::move(files)));
  object.map_bytes = TRY(take_map_bytes(opened, request, *object.plan));
  // A plan of spans names them itself.
  const std::vector<std::string> programs =
      object.plan->spans ? std::vector<std::string>() : std::vector{request.program};
  auto loaded = opened.load(object.plan, {.backend = Backend::uprobe_multi,
                                          .carrier = request.carrier,
                                          .arguments = request.arguments,
                                          .max_programs = request.max_programs,
                                          .programs = programs});
  if (!loaded) {
    tell("refused", *object.plan, object.files, loaded.error().message);
    return fail(std::move(loaded.error()));
  }
  if (&loaded->plan() != object.plan.get())
    return fail(ErrorKind::not_supported, "usdt-broker: more values than one program can read: ask for fewer");
  object.loaded.emplace(std::move(*loaded));
  Granted<broker::LoadReply> granted;
  granted.answer = {.object = next_++,
                    .carriers = object.loaded->carriers().describe(),
                    .programs = static_cast<std::uint32_t>(object.loaded->carriers().programs.size()),
                    .maps = {}};
  for (const broker::LoadedHere::Map& map : broker::LoadedHere::maps(*object.loaded)) {
    granted.answer.maps.push_back(map.name);
    granted.lent.push_back(map.fd);
  }
  objects_.emplace(granted.answer.object, std::move(object));
  return granted;
}

Result<Granted<broker::AttachReply>> Objects::attach(const broker::AttachRequest& request) {
  const auto known = objects_.find(request.object);
  if (known == objects_.end()) return fail(ErrorKind::not_found, "usdt-broker has no such object");
  const Object& object = known->second;
  const Table<PlannedLink>& links = object.loaded->carriers().links;
  const Index<PlannedLink> number(request.link);
  if (!links.contains(number)) return fail(ErrorKind::not_found, "usdt-broker has no such link");
  const PlannedLink& link = links[number];
  const Places places = TRY(places_of(link, request.left_out));
  if (links_ >= options_.most_links || places_ + places.offsets.size() > options_.most_places)
    return fail(ErrorKind::limit,
                fmt::format("{} links to {} places were made for this connection: no more", links_, places_));
  if (options_.may_attach && !options_.may_attach(places.offsets.size()))
    return fail(
        ErrorKind::limit,
        fmt::format("usdt-broker has attached as much for user {} within the last hour as it does; it comes back "
                    "little by little: wait some minutes, or ask the administrator for more (--places-of-user "
                    "of usdt-broker)",
                    client_.uid));
  const Backend backend = TRY(backend_of(*object.plan, *object.loaded, link));
  const auto program_fd = TRY(object.program_fd(link.program));
  auto process = AllowedProcess::check(request.pid, client_);
  if (!process) {
    tell("refused", *object.plan, object.files, process.error().message);
    return fail(std::move(process.error()));
  }
  const auto& file = object.files[std::get<Index<PlannedFile>>(object.plan->groups[link.group].of).value];
  auto made =
      TRY(backends::attach_row(backend).to_file({program_fd, file.access(), process->pid(), nullptr}, places.view()));
  // A number is given again only when its process is gone: what ended meanwhile may have lent it to anybody.
  if (!process->lives()) return fail(ErrorKind::not_found, fmt::format("no process {}", process->pid()));
  Granted<broker::AttachReply> granted;
  for (backends::LinkFd& each : made.fds) {
    granted.answer.places += static_cast<std::uint32_t>(each.sites);
    granted.given.emplace_back(each.release());
  }
  for (const backends::Refusal& each : made.refused)
    granted.answer.refused.emplace_back(static_cast<std::uint32_t>(each.index), each.os_error);
  ++links_;
  places_ += granted.answer.places;
  tell("attached", *object.plan, object.files,
       fmt::format("link {} to process {}, {} place{}", request.link, process->pid(), granted.answer.places,
                   granted.answer.places == 1 ? "" : "s"));
  return granted;
}

std::optional<std::uint64_t> Objects::missed(std::uint32_t object) const {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return std::nullopt;
  std::uint64_t sum = 0;
  const LoadedObject& loaded = *known->second.loaded;
  for (const Index<PlannedProgram> number : loaded.carriers().programs.indices()) {
    const auto fd = known->second.program_fd(number);
    const auto misses = fd ? backends::recursion_misses(*fd) : std::nullopt;
    if (!misses) return std::nullopt;
    sum += *misses;
  }
  return sum;
}

}  // namespace usdt::serve
