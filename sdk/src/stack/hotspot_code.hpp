// SPDX-License-Identifier: BSD-2-Clause
// The code that OpenJDK's compilers make in one process from now on, as its probes tell it: compiled__method__load and
// compiled__method__unload of the provider hotspot. A perf map, which jcmd writes when it is asked to, has what was
// made before. Private to stack/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stack/code_history.hpp"
#include "stack/perf_map.hpp"
#include "usdt/result.hpp"
#include "usdt/tracer.hpp"

namespace usdt::stack {

class HotspotCode {
 public:
  /// Attaches to the probes of the process. Errors: those of select(), plan_attach() and Tracer::start().
  [[nodiscard]] static Result<HotspotCode> follow(pid_t pid);

  /// Takes in what came until `time`, so that everything is known that was compiled before a hit.
  void read(std::uint64_t time);
  /// Returns the method that was compiled to the code at `address`, as far as that happened before `when`.
  [[nodiscard]] std::optional<PerfMap::Found> find(std::uint64_t address, Period when) const;
  /// Whether all that was compiled since `time` is known.
  [[nodiscard]] bool knows_all_since(std::uint64_t time) const noexcept { return complete_ && time >= since_; }
  /// Whether code of a method of this name was thrown away between the two times.
  [[nodiscard]] bool was_unloaded(std::string_view name, std::uint64_t from, std::uint64_t until) const;

 private:
  HotspotCode(Tracer tracer, std::uint64_t since) : tracer_(std::move(tracer)), since_(since) {}
  void take(const Event& event);
  void load(const Event& event, std::string name);
  void unload(std::uint64_t time, const std::string& name);

  Tracer tracer_;
  std::uint64_t since_;            ///< on event_clock()
  std::uint64_t read_until_ = 0;   ///< on event_clock()
  std::uint64_t taken_until_ = 0;  ///< when the last event was that was taken
  std::size_t loads_ = 0;
  bool complete_ = true;
  std::string text_;  ///< the names, one behind the other
  CodeHistory history_;
  /// Of each method, the code of it that was made and is not known to have been thrown away, in that order.
  std::map<std::string, std::vector<CodeRange>, std::less<>> loaded_;
  std::map<std::string, std::uint64_t, std::less<>> unloaded_;  ///< when that was last
};

}  // namespace usdt::stack
