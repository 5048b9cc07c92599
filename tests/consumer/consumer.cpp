// SPDX-License-Identifier: BSD-2-Clause
// What a user's first program does: lists the probes of a file.
#include <iostream>
#include <usdt/usdt.hpp>

int main(int argc, char** argv) {
  const auto file = usdt::ElfFile::open(argc > 1 ? argv[1] : "");
  if (!file) {
    std::cerr << file.error().message << '\n';
    return 1;
  }
  const auto scan = file->scan();
  if (!scan) {
    std::cerr << scan.error().message << '\n';
    return 1;
  }
  const usdt::ArgDecoder decoder(*file);
  for (const usdt::Site& site : scan->sites) {
    std::cout << site.provider << ':' << site.name << '(';
    const char* separator = "";
    for (const usdt::Arg& arg : decoder.decode(site)) {
      std::cout << separator << usdt::type_name(arg.type);
      separator = ", ";
    }
    std::cout << ")\n";
  }
}
