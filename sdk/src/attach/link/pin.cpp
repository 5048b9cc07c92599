// SPDX-License-Identifier: BSD-2-Clause
// Links in the BPF file system (bpf(2): BPF_OBJ_PIN, BPF_OBJ_GET; links since 5.7): one file each, called
// NUMBER-BACKEND-SITES-CARRIER, in a directory of their own. The kernel could tell the sites of few kinds of links, and
// not which of two links ends the calls the other one begins.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "link/link_impl.hpp"
#include "program/bpf_file_system.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt {
inline namespace v1 {
namespace {

namespace fs = std::filesystem;
using backends::is_bpf_file_system;
using backends::no_bpf_file_system;

/// Returns 0, or a negative errno.
int pin_fd(int fd, const fs::path& path) {
  sys::ObjectPath attr;
  attr.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  attr.bpf_fd = static_cast<std::uint32_t>(fd);
  return sys::syscalls().bpf(sys::bpf_obj_pin_cmd, &attr, sizeof(attr));
}

int open_pin(const fs::path& path) {
  sys::ObjectPath attr;
  attr.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  return sys::syscalls().bpf(sys::bpf_obj_get_cmd, &attr, sizeof(attr));
}

/// Takes a decimal number and the '-' behind it off `text`.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

/// What the name of a pinned link's file says of it.
struct PinName {
  unsigned number = 0;
  Backend backend = Backend::automatic;
  std::size_t sites = 0;
  Carrier carrier = Carrier::automatic;

  [[nodiscard]] std::string text() const {
    return fmt::format("{}-{}-{}-{}", number, to_string(backend), sites, to_string(carrier));
  }
  static std::optional<PinName> parse(std::string_view text) {
    PinName name;
    if (!take_number(text, name.number)) return std::nullopt;
    const auto backend = backend_by_name(text.substr(0, text.find('-')));
    if (!backend || *backend == Backend::automatic) return std::nullopt;
    name.backend = *backend;
    text.remove_prefix(std::min(to_string(*backend).size() + 1, text.size()));
    if (!take_number(text, name.sites)) return std::nullopt;
    const auto carrier = carrier_by_name(text);
    if (!carrier) return std::nullopt;
    name.carrier = *carrier;
    return name;
  }
};

/// Removes the pins made so far, unless all went well.
class Pins {
 public:
  explicit Pins(fs::path directory) : directory_(std::move(directory)) {}
  ~Pins() {
    std::error_code ignored;
    for (const fs::path& path : made_) fs::remove(path, ignored);
    if (!made_.empty() || created_) fs::remove(directory_, ignored);
  }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  Result<void> create_directory() {
    std::error_code error;
    created_ = fs::create_directory(directory_, error);
    if (created_) return {};
    const int os_error = error ? error.value() : EEXIST;
    const std::string what = fmt::format("pin the links in {}", directory_.string());
    if (const auto below = directory_that_exists(); !is_bpf_file_system(below))
      return fail(Error{ErrorKind::invalid_argument, fmt::format("{}: {}", what, no_bpf_file_system(below)), os_error});
    return fail(os_failure(ErrorKind::io, what, os_error));
  }
  Result<void> add(int fd, const std::string& name) {
    const fs::path path = directory_ / name;
    const int error = pin_fd(fd, path);
    if (error < 0 && !is_bpf_file_system(directory_))
      return fail(Error{ErrorKind::invalid_argument,
                        fmt::format("pin {}: {}", path.string(), no_bpf_file_system(directory_)), -error});
    if (error < 0) return fail(os_failure(ErrorKind::io, fmt::format("pin {}", path.string()), -error));
    made_.push_back(path);
    return {};
  }
  void keep() {
    made_.clear();
    created_ = false;
  }

 private:
  /// The directory itself, or the nearest one above it.
  [[nodiscard]] fs::path directory_that_exists() const {
    std::error_code error;
    fs::path path = fs::absolute(directory_, error);
    while (path.has_relative_path() && !fs::exists(path, error)) path = path.parent_path();
    return path;
  }

  fs::path directory_;
  bool created_ = false;
  std::vector<fs::path> made_;
};

}  // namespace

Result<void> Link::pin(const fs::path& directory) const {
  const std::lock_guard lock(impl_->mutex);
  const auto on_events = std::count_if(impl_->fds.begin(), impl_->fds.end(), [](const backends::LinkFd& link) {
    return backends::row_of(link.backend).on_perf_event;
  });
  if (static_cast<std::size_t>(on_events) < impl_->events.size())
    return fail(ErrorKind::not_supported, "pin: this kernel has no links on perf events (Linux 5.15)");
  if (impl_->fds.empty()) return fail(ErrorKind::invalid_argument, "pin: the link is detached");
  Pins pins(directory);
  TRY(pins.create_directory());
  unsigned number = 0;
  std::vector<fs::path> names;
  for (const backends::LinkFd& link : impl_->fds) {
    const PinName name{number++, link.backend, link.sites, impl_->carrier};
    TRY(pins.add(link.get(), name.text()));
    names.push_back(directory / name.text());
  }
  pins.keep();
  for (std::size_t i = 0; i < names.size(); ++i) impl_->fds[i].pin = std::move(names[i]);
  return {};
}

Result<Link> Link::open(const fs::path& directory) {
  std::error_code error;
  auto impl = std::make_unique<Impl>();
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const auto name = PinName::parse(entry.path().filename().string());
    if (!name) return fail(ErrorKind::malformed, fmt::format("{}: not a pinned link of ours", entry.path().string()));
    const int fd = open_pin(entry.path());
    if (fd < 0) return fail(os_failure(ErrorKind::io, fmt::format("open {}", entry.path().string()), -fd));
    impl->fds.emplace_back(fd, name->sites).backend = name->backend;
    impl->carrier = name->carrier;
    impl->attached += name->sites;
    impl->by_backend[name->backend] += name->sites;
  }
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("open {}", directory.string()), error.value()));
  if (impl->fds.empty()) return fail(ErrorKind::not_found, fmt::format("{}: no pinned links", directory.string()));
  impl->backend = impl->by_backend.begin()->first;  // those of files come first
  impl->carrier_text = to_string(impl->carrier);
  return Link(std::move(impl));
}

Result<void> Link::unpin(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> links;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (PinName::parse(entry.path().filename().string())) links.push_back(entry.path());
  }
  for (const fs::path& link : links) {
    if (!error) fs::remove(link, error);
  }
  if (!error) fs::remove(directory, error);
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("unpin {}", directory.string()), error.value()));
  return {};
}

}  // namespace v1
}  // namespace usdt
