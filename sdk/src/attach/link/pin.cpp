// SPDX-License-Identifier: BSD-2-Clause
#include "link/pin.hpp"

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
#include "program/bpf_file_system.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::backends {
namespace {

namespace fs = std::filesystem;

/// Returns 0, or a negative errno.
int pin_fd(int fd, const fs::path& path) {
  sys::ObjectPath attr;
  attr.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  attr.bpf_fd = static_cast<std::uint32_t>(fd);
  return sys::syscalls().bpf(sys::kBpfObjPinCmd, &attr, sizeof(attr));
}

int open_pin(const fs::path& path) {
  sys::ObjectPath attr;
  attr.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  return sys::syscalls().bpf(sys::kBpfObjGetCmd, &attr, sizeof(attr));
}

/// Takes a decimal number and the '-' behind it off `text`.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

/// The facts about a pinned link that the name of its file has.
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

Result<void> pin_links(KernelLinks& all, Carrier carrier, const fs::path& directory) {
  std::vector<LinkFd>& links = all.fds();
  const auto on_events =
      std::ranges::count_if(links, [](const LinkFd& link) { return row_of(link.backend).on_perf_event; });
  if (static_cast<std::size_t>(on_events) < all.events())
    return fail(ErrorKind::not_supported, "pin: this kernel has no links on perf events (Linux 5.15)");
  if (links.empty()) return fail(ErrorKind::invalid_argument, "pin: the link is detached");
  Pins pins(directory);
  TRY(pins.create_directory());
  unsigned number = 0;
  std::vector<fs::path> names;
  for (const LinkFd& link : links) {
    const PinName name{number++, link.backend, link.sites, carrier};
    TRY(pins.add(link.get(), name.text()));
    names.push_back(directory / name.text());
  }
  pins.keep();
  for (std::size_t i = 0; i < names.size(); ++i) links[i].pin = std::move(names[i]);
  return {};
}

Result<PinnedLinks> open_pins(const fs::path& directory) {
  std::error_code error;
  PinnedLinks pinned;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const auto name = PinName::parse(entry.path().filename().string());
    if (!name) return fail(ErrorKind::malformed, fmt::format("{}: not a pinned link of ours", entry.path().string()));
    const int fd = open_pin(entry.path());
    if (fd < 0) return fail(os_failure(ErrorKind::io, fmt::format("open {}", entry.path().string()), -fd));
    LinkFd link(fd, name->sites);
    link.backend = name->backend;
    pinned.links.add_pinned(std::move(link));
    pinned.carrier = name->carrier;
  }
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("open {}", directory.string()), error.value()));
  if (pinned.links.none()) return fail(ErrorKind::not_found, fmt::format("{}: no pinned links", directory.string()));
  return pinned;
}

Result<void> remove_pins(const fs::path& directory) {
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

}  // namespace usdt::backends
