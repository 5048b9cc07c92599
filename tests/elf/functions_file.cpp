// SPDX-License-Identifier: BSD-2-Clause
// functions_file NAME FILE...: the functions of each file that NAME means, as "address symbol" lines, and what else is
// said of them. What a test of hostile files watches from outside: time, memory, exit code; and what is compared with
// nm.
#include <cstdio>
#include <vector>

#include "elf/functions.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::vector names = {usdt::elf::FunctionName(argv[1])};
  for (int i = 2; i < argc; ++i) {
    const auto file = usdt::ElfFile::open(argv[i]);
    if (!file) {
      std::printf("%s\n", file.error().message.c_str());
      continue;
    }
    const auto functions = usdt::elf::find_functions(*file, names);
    if (!functions) {
      std::printf("%s\n", functions.error().message.c_str());
    } else if (functions->empty()) {
      const auto hints = usdt::elf::hints_for_function(*file, names[0]);
      for (const auto& name : hints.near) std::printf("near: %s\n", name.c_str());
      std::printf("%s\n", hints.stripped.c_str());
    } else {
      for (const usdt::Function& function : *functions) {
        std::printf("%016llx %s\n", static_cast<unsigned long long>(function.address.value), function.name.c_str());
      }
    }
  }
  return 0;
}
