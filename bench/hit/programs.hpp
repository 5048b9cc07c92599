// SPDX-License-Identifier: BSD-2-Clause
// Programs that read arguments, each with its own way of loading and attaching.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "usdt/bpf_object.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::bench {

/// What a program is to read at each hit.
struct Reading {
  std::string probe;
  std::uint32_t args = 0;
  std::uint32_t times = 1;
};

/// A loaded program that can be put on a probe and taken off again.
class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual Result<void> attach() = 0;
  virtual void detach() = 0;
  [[nodiscard]] virtual int fd() const = 0;
  /// Of all values read so far.
  [[nodiscard]] virtual std::uint64_t sum() = 0;
};

/// Loaded and attached by the library.
class SdkProgram : public Program {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Program>> load(std::span<const std::byte> object, std::string name,
                                                             const Reading& reading, Carrier carrier);
  Result<void> attach() override;
  void detach() override { link_.reset(); }
  int fd() const override { return object_.program_fd(name_).value_or(-1); }
  std::uint64_t sum() override;

 private:
  SdkProgram(LoadedObject object, std::string name);

  LoadedObject object_;
  std::string name_;
  std::optional<Link> link_;
};

/// Loaded and attached by the system's libbpf.
class LibbpfProgram : public Program {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Program>> load(std::span<const std::byte> object, const std::string& name,
                                                             const Reading& reading);
  ~LibbpfProgram() override;
  LibbpfProgram(const LibbpfProgram&) = delete;
  LibbpfProgram& operator=(const LibbpfProgram&) = delete;

  Result<void> attach() override;
  void detach() override;
  int fd() const override { return bpf_program__fd(program_); }
  std::uint64_t sum() override;

 private:
  LibbpfProgram(bpf_object* object, std::string probe) : object_(object), probe_(std::move(probe)) {}

  bpf_object* object_;
  bpf_program* program_ = nullptr;
  bpf_link* link_ = nullptr;
  std::string probe_;
};

}  // namespace usdt::bench
