// SPDX-License-Identifier: BSD-2-Clause
#include "program/map_source.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>

#include <cerrno>
#include <string_view>

#include "base/try.hpp"
#include "program/bpf_file_system.hpp"
#include "sys/syscalls.hpp"

namespace usdt::backends {
namespace {

/// The map of a descriptor against the object's definition. Of how many entries is the existing one's own affair: the
/// object takes them over.
Result<void> check_same(const std::string& name, const bpf_map* wanted, int fd) {
  bpf_map_info info{};
  if (const int error = sys::object_info(fd, info); error < 0)
    return fail(os_failure(ErrorKind::invalid_argument, fmt::format("descriptor for the map '{}'", name), -error));
  struct Property {
    const char* of;
    std::uint32_t wanted;
    std::uint32_t there;
  };
  for (const Property& each : {Property{"type", bpf_map__type(wanted), info.type},
                               Property{"bytes of a key", bpf_map__key_size(wanted), info.key_size},
                               Property{"bytes of a value", bpf_map__value_size(wanted), info.value_size},
                               Property{"flags", bpf_map__map_flags(wanted), info.map_flags}}) {
    if (each.wanted != each.there)
      return fail(ErrorKind::type_mismatch, fmt::format("map '{}': {}: {} in the BPF object, {} of the existing map",
                                                        name, each.of, each.wanted, each.there));
  }
  return {};
}

/// Whether it is a map of usdt.bpf.h, ours or libbpf's.
bool is_filled_by_load(std::string_view map) {
  return map == "usdt_specs" || map == "usdt_ips" || map.starts_with("__bpf_usdt");
}

/// The map that is to be taken: the descriptor given, or what is pinned; none: it is still to be made.
Result<std::shared_ptr<const sys::UniqueFd>> existing(const Recipe::MapSource& source) {
  if (source.fd) return source.fd;
  const int fd = bpf_obj_get(source.pin.c_str());
  if (fd >= 0) return std::make_shared<const sys::UniqueFd>(fd);
  const int error = errno;
  if (!is_bpf_file_system(source.pin.parent_path()))
    return fail(ErrorKind::invalid_argument, no_bpf_file_system(source.pin));
  if (error == ENOENT) return nullptr;
  return fail(os_failure(ErrorKind::io, fmt::format("map pinned at {}", source.pin.string()), error));
}

}  // namespace

Result<void> check_map_source(const ObjectCopy& object, const Recipe::MapSource& source) {
  const bpf_map* map = object.map(source.map.c_str());
  if (!map) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", source.map));
  if (is_filled_by_load(source.map))
    return fail(ErrorKind::invalid_argument,
                fmt::format("map '{}': it belongs to one plan, and is filled by load()", source.map));
  auto there = TRY(existing(source));
  return there ? check_same(source.map, map, there->get()) : Result<void>();
}

Result<void> set_map_source(const ObjectCopy& object, const Recipe::MapSource& source) {
  TRY(check_map_source(object, source));
  auto there = TRY(existing(source));
  bpf_map* map = object.map(source.map.c_str());
  // libbpf pins a map that has a pin path and was made by the load, and unpins it should the load fail.
  const int error = there ? bpf_map__reuse_fd(map, there->get()) : bpf_map__set_pin_path(map, source.pin.c_str());
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("take the map '{}'", source.map), -error));
  return {};
}

}  // namespace usdt::backends
