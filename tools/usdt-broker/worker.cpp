// SPDX-License-Identifier: BSD-2-Clause
#include "worker.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <system_error>

#include "common/guarded.hpp"
#include "common/report.hpp"
#include "confine.hpp"

namespace usdt_broker {
namespace {

/// A process that serves a connection may take so many times of what the kernel keeps for that.
constexpr std::uint64_t kTimesMemory = 3;

usdt::Result<void> failed(const char* what) {
  return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, fmt::format("give rights up: {}", what), errno));
}

/// Keeps CAP_BPF and CAP_PERFMON, which load and attach programs (uprobe_multi needs no more), as a user who owns
/// nothing.
usdt::Result<void> give_up_rights(const Nobody& nobody) {
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return failed("PR_SET_KEEPCAPS");
  if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody.gid, nobody.gid, nobody.gid) != 0 ||
      ::setresuid(nobody.uid, nobody.uid, nobody.uid) != 0)
    return failed("become another user");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  for (const unsigned kept : {CAP_BPF, CAP_PERFMON}) {
    sets[kept / 32].permitted |= 1U << kept % 32;
    sets[kept / 32].effective |= 1U << kept % 32;
  }
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return failed("capset(2)");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  return {};
}

/// Bounds what this process takes to plan and load: copies of programs and of what libbpf knows of them are several
/// megabytes each.
usdt::Result<void> limit_memory(std::uint64_t megabytes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> statm(std::fopen("/proc/self/statm", "re"), std::fclose);
  unsigned long pages = 0;  // of data, the sixth number (proc_pid_statm(5)): sanitizers have terabytes
  if (!statm || std::fscanf(statm.get(), "%*u %*u %*u %*u %*u %lu", &pages) != 1) return failed("read its memory");
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (megabytes << 20);
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  return ::setrlimit(RLIMIT_DATA, &limit) == 0 ? usdt::Result<void>() : failed("RLIMIT_DATA");
}

}  // namespace

usdt::Result<Nobody> find_user(const std::string& name) {
  uid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return Nobody{number, number};
  // It is one of /etc/passwd: getpwnam(3) loads libraries, which programs that are linked statically lack.
  const std::unique_ptr<FILE, int (*)(FILE*)> users(std::fopen("/etc/passwd", "re"), std::fclose);
  for (const passwd* user = users ? ::fgetpwent(users.get()) : nullptr; user != nullptr;
       user = ::fgetpwent(users.get()))
    if (name == user->pw_name) return Nobody{user->pw_uid, user->pw_gid};
  return usdt::fail(usdt::ErrorKind::not_found, fmt::format("there is no user '{}' in /etc/passwd", name));
}

int serve_in_worker(int socket, const usdt::BrokerClient& client, const Nobody& nobody, pid_t broker, Budget& budget,
                    const Options& options) {
  return usdt::tools::guarded([&] {
    auto ready = give_up_rights(nobody);
    if (ready) ready = limit_memory(kTimesMemory * options.megabytes);
    if (!ready) {
      usdt::tools::print_error(kTool, ready.error());
      return kRunTimeFailure;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // which another user would have undone
    if (::getppid() != broker) return 0;
    if (auto confined = allow_serving_alone(); !confined) {
      usdt::tools::print_error(kTool, confined.error());
      return kRunTimeFailure;
    }
    usdt::BrokerServiceOptions service{.most_map_bytes = options.megabytes << 20};
    service.may_attach = [&](std::uint64_t places) { return budget.places.take(places, options.places_of_user); };
    service.may_keep = [&](std::uint64_t bytes) {
      return budget.map_bytes.take(bytes, options.megabytes_of_user << 20);
    };
    if (!options.quiet) service.tell = [](const std::string& line) { usdt::tools::print_notice(kTool, line); };
    const auto served = usdt::serve_client(socket, client, service);
    if (served) return 0;
    usdt::tools::print_error(kTool, served.error().within(fmt::format("uid {} pid {}", client.uid, client.pid)));
    return 0;
  });
}

}  // namespace usdt_broker
