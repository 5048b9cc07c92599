// SPDX-License-Identifier: BSD-2-Clause
// A kernel made of a few files: its lists of functions, its types.
#pragma once

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/attachable.hpp"
#include "kernel/catalogue.hpp"
#include "kernel/match.hpp"
#include "kernel/selection.hpp"

namespace usdt::kernel::test {

struct FreeBtf {
  void operator()(struct btf* types) const { btf__free(types); }
};
using Btf = std::unique_ptr<struct btf, FreeBtf>;

/// Types with a function `int NAME(int x)` for each name, and a raw tracepoint for each of `tracepoints`.
inline Btf types_of(const std::vector<std::string>& functions, const std::vector<std::string>& tracepoints,
                    struct btf* base = nullptr) {
  Btf types(base ? btf__new_empty_split(base) : btf__new_empty());
  const int integer = btf__add_int(types.get(), "int", 4, BTF_INT_SIGNED);
  const int proto = btf__add_func_proto(types.get(), integer);
  btf__add_func_param(types.get(), "x", integer);
  for (const std::string& name : functions) btf__add_func(types.get(), name.c_str(), BTF_FUNC_STATIC, proto);
  const int pointer = btf__add_ptr(types.get(), proto);
  for (const std::string& name : tracepoints) btf__add_typedef(types.get(), ("btf_trace_" + name).c_str(), pointer);
  return types;
}

class FakeKernel {
 public:
  FakeKernel() {
    std::string name = (std::filesystem::temp_directory_path() / "usdt-kernel-XXXXXX").string();
    path_ = std::filesystem::canonical(::mkdtemp(name.data()));
  }
  ~FakeKernel() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  FakeKernel& kallsyms(std::string_view text) { return write("kallsyms", text); }
  FakeKernel& traceable(std::string_view text) { return write("tracing/available_filter_functions", text); }
  FakeKernel& traceable_addresses(std::string_view text) {
    return write("tracing/available_filter_functions_addrs", text);
  }
  FakeKernel& events(std::string_view text) { return write("tracing/available_events", text); }
  FakeKernel& blacklist(std::string_view text) { return write("blacklist", text); }
  FakeKernel& types(const std::vector<std::string>& functions, const std::vector<std::string>& tracepoints = {}) {
    core_ = types_of(functions, tracepoints);
    return write_types("vmlinux", core_.get());
  }
  FakeKernel& module_types(const std::string& module, const std::vector<std::string>& functions,
                           const std::vector<std::string>& tracepoints = {}) {
    const Btf split = types_of(functions, tracepoints, core_.get());
    return write_types(module, split.get());
  }
  FakeKernel& write(const std::filesystem::path& name, std::string_view bytes) {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this;
  }

  [[nodiscard]] Sources sources() const {
    const std::string base = path_.string();
    return {base + "/kallsyms", {base + "/nowhere", base + "/tracing"}, base + "/blacklist", base + "/btf"};
  }
  [[nodiscard]] std::shared_ptr<const Catalogue> load(std::span<const KernelPattern> patterns = {}) const {
    auto loaded = Catalogue::load(sources(), patterns);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded.value_or(nullptr);
  }

 private:
  FakeKernel& write_types(const std::string& module, const struct btf* types) {
    std::uint32_t size = 0;
    const void* bytes = btf__raw_data(types, &size);
    return write("btf/" + module, {static_cast<const char*>(bytes), size});
  }

  std::filesystem::path path_;
  Btf core_;
};

inline KernelPattern pattern(std::string_view text) {
  auto parsed = KernelPattern::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
  return parsed.value_or(KernelPattern{});
}

/// The first function of that name; a test that asks for one that is not there fails.
inline KernelFunction function(const Catalogue& catalogue, std::string_view name, std::string_view module = "") {
  for (const KernelFunction& found : catalogue.functions()) {
    if (found.name == name && found.module == module) return found;
  }
  ADD_FAILURE() << "no function " << name;
  return {};
}

inline std::vector<std::string> names(std::span<const KernelFunction* const> functions) {
  std::vector<std::string> out;
  for (const KernelFunction* found : functions) out.emplace_back(found->name);
  return out;
}

/// "NAME: REASON" of each.
inline std::vector<std::string> reasons(const std::vector<RefusedFunction>& refused) {
  std::vector<std::string> out;
  for (const RefusedFunction& found : refused) out.push_back(found.name + ": " + found.reason);
  return out;
}

}  // namespace usdt::kernel::test
