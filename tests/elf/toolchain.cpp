// SPDX-License-Identifier: BSD-2-Clause
#include "toolchain.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace usdt::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string name = fs::temp_directory_path() / "usdt-elf-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TempDir::write(std::string_view name, std::string_view text) const {
  const fs::path path = path_ / name;
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  return path;
}

CommandResult run_in(const TempDir& dir, const std::string& command) {
  CommandResult result;
  FILE* pipe = ::popen(fmt::format("cd {} && {{ {} ; }} 2>&1", dir.path().string(), command).c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

bool can_compile(const std::string& flags) {
  const TempDir dir;
  dir.write("t.c", "#include <sys/sdt.h>\n#include <stdio.h>\nint main(void) { DTRACE_PROBE(a, b); return 0; }\n");
  return run_in(dir, fmt::format("{} {} t.c -o t", kCc, flags)).status == 0;
}

bool can_run(const std::string& flags) {
  const TempDir dir;
  dir.write("t.c", "int main(void) { return 0; }\n");
  return run_in(dir, fmt::format("{} {} t.c -o t && ./t", kCc, flags)).status == 0;
}

ScanResult scan_file(const fs::path& path, const OpenOptions& options) {
  const auto file = ElfFile::open(path, options);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  auto result = file->scan();
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return std::move(*result);
}

Error open_error(const fs::path& path) {
  const auto file = ElfFile::open(path);
  if (!file) return file.error();
  ADD_FAILURE() << path << " opened, an error was expected";
  return {};
}

std::string read_file(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(bytes).str();
}

}  // namespace usdt::test
