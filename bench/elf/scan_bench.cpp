// SPDX-License-Identifier: BSD-2-Clause
// Reading probes from files: a file of 10,000 probes, and one without any, as a walk over directories meets thousands.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "elf/symbols.hpp"
#include "sdt_assembly.hpp"
#include "usdt/elf_file.hpp"

namespace {

namespace fs = std::filesystem;

/// A shared object assembled from `text`, in a directory that goes with the process; empty where that fails.
fs::path assemble(const std::string& name, const std::string& text) {
  struct Dir {
    fs::path path;
    ~Dir() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Dir dir = [] {
    std::string pattern = fs::temp_directory_path() / "usdt-bench-XXXXXX";
    return Dir{::mkdtemp(pattern.data()) != nullptr ? pattern : "."};
  }();
  const fs::path source = dir.path / (name + ".S");
  const fs::path object = dir.path / (name + ".so");
  std::ofstream(source) << text;
  const auto command = fmt::format("cc -shared -nostdlib {} -o {}", source.string(), object.string());
  return std::system(command.c_str()) == 0 ? object : fs::path();
}

void scan_file(benchmark::State& state, const fs::path& path, std::size_t expected) {
  for (auto _ : state) {
    const auto file = usdt::ElfFile::open(path);
    if (!file || file->scan()->sites.size() != expected) return state.SkipWithError("not the sites expected");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * expected));
}

void ScanOf10000Probes(benchmark::State& state) {
  static const fs::path path = assemble("probes", usdt::test::many_probes(10'000));
  scan_file(state, path, 10'000);
}
BENCHMARK(ScanOf10000Probes)->Unit(benchmark::kMillisecond);

void ScanOfAFileWithoutProbes(benchmark::State& state) {
  static const fs::path path = assemble("none", ".text\nnop\n");
  scan_file(state, path, 0);
}
BENCHMARK(ScanOfAFileWithoutProbes)->Unit(benchmark::kMicrosecond);

/// First question to the symbol tables of a file with 50,000 symbols: building the index.
void SymbolIndexOf50000(benchmark::State& state) {
  static const fs::path path = assemble("symbols",
                                        ".altmacro\n.macro s n\nsymbol_\\n: nop\n.endm\n.set i, 0\n"
                                        ".rept 50000\ns %i\n.set i, i+1\n.endr\n");
  const auto file = usdt::ElfFile::open(path);
  if (!file) return state.SkipWithError("cannot be assembled");
  for (auto _ : state) {
    if (!usdt::elf::SymbolIndex(*file).address("symbol_49999")) return state.SkipWithError("symbol not found");
  }
}
BENCHMARK(SymbolIndexOf50000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
