// SPDX-License-Identifier: BSD-2-Clause
// Links in the BPF file system (bpf(2): BPF_OBJ_PIN, BPF_OBJ_GET; links since 5.7): one file each, called
// NUMBER-BACKEND-CARRIER, in a directory of their own.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "attach/link_impl.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;

/// 0, or a negative errno.
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

/// Sites of a kernel link: uprobe_multi tells since 6.8; nullopt where the kernel does not.
std::optional<std::size_t> sites_of(int fd, Backend backend) {
  if (backend == Backend::perf_uprobe) return 1;
  sys::LinkInfo info;
  if (sys::object_info(fd, info) < 0) return std::nullopt;
  if (info.type != sys::bpf_link_type_uprobe_multi || info.uprobe_count == 0) return std::nullopt;
  return info.uprobe_count;
}

/// What the file's name says.
struct PinName {
  unsigned number = 0;
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;

  [[nodiscard]] std::string text() const {
    return fmt::format("{}-{}-{}", number, to_string(backend), to_string(carrier));
  }
  static std::optional<PinName> parse(std::string_view text) {
    PinName name;
    const auto first = text.find('-'), second = text.find('-', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    const auto number = std::from_chars(text.data(), text.data() + first, name.number);
    if (number.ec != std::errc{} || number.ptr != text.data() + first) return std::nullopt;
    const std::string_view backend = text.substr(first + 1, second - first - 1);
    for (const Backend each : {Backend::uprobe_multi, Backend::perf_uprobe})
      if (to_string(each) == backend) name.backend = each;
    auto carrier = carrier_by_name(text.substr(second + 1));
    if (!carrier || name.backend == Backend::automatic) return std::nullopt;
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
    return fail(os_failure(ErrorKind::io, fmt::format("pin the links in {}", directory_.string()), os_error));
  }
  Result<void> add(int fd, const std::string& name) {
    const fs::path path = directory_ / name;
    const int error = pin_fd(fd, path);
    if (error == -EINVAL)
      return fail(os_failure(
          ErrorKind::invalid_argument,
          fmt::format("pin {}: is {} in a BPF file system (mount -t bpf)?", path.string(), directory_.string()),
          -error));
    if (error < 0) return fail(os_failure(ErrorKind::io, fmt::format("pin {}", path.string()), -error));
    made_.push_back(path);
    return {};
  }
  void keep() {
    made_.clear();
    created_ = false;
  }

 private:
  fs::path directory_;
  bool created_ = false;
  std::vector<fs::path> made_;
};

}  // namespace

Result<void> Link::pin(const fs::path& directory) const {
  if (impl_->fds.empty() && !impl_->events.empty())
    return fail(ErrorKind::not_supported, "pin: this kernel has no links on perf events (Linux 5.15)");
  if (impl_->fds.empty()) return fail(ErrorKind::invalid_argument, "pin: the link is detached");
  Pins pins(directory);
  if (auto created = pins.create_directory(); !created) return created;
  PinName name{0, impl_->backend, impl_->carrier};
  for (const sys::UniqueFd& fd : impl_->fds) {
    if (auto added = pins.add(fd.get(), name.text()); !added) return added;
    ++name.number;
  }
  pins.keep();
  return {};
}

Result<Link> Link::open(const fs::path& directory) {
  std::error_code error;
  auto impl = std::make_unique<Impl>();
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const auto name = PinName::parse(entry.path().filename().string());
    if (!name) return fail(ErrorKind::malformed, fmt::format("{}: not a pinned link of ours", entry.path().string()));
    sys::UniqueFd fd(open_pin(entry.path()));
    if (!fd) return fail(os_failure(ErrorKind::io, fmt::format("open {}", entry.path().string()), -fd.get()));
    impl->backend = name->backend;
    impl->carrier = name->carrier;
    impl->attached += sites_of(fd.get(), name->backend).value_or(0);
    impl->fds.push_back(std::move(fd));
  }
  if (error) return fail(os_failure(ErrorKind::io, fmt::format("open {}", directory.string()), error.value()));
  if (impl->fds.empty()) return fail(ErrorKind::not_found, fmt::format("{}: no pinned links", directory.string()));
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

}  // namespace usdt
