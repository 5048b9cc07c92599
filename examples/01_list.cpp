// SPDX-License-Identifier: BSD-2-Clause
// Lists every probe of a file with the types of its arguments. Reads the file and nothing else: no privilege, no
// kernel.
//
//   example_01_list /usr/bin/python3.11
#include <cstdio>
#include <string>
#include <usdt/usdt.hpp>

usdt::Result<void> list(const char* path) {
  auto file = usdt::ElfFile::open(path);
  if (!file) return usdt::fail(file.error());
  auto scan = file->scan();
  if (!scan) return usdt::fail(scan.error());

  const usdt::ArgDecoder decoder(*file);
  for (const usdt::Site& site : scan->sites) {
    std::string signature;
    for (const usdt::Arg& arg : decoder.decode(site)) {
      if (!signature.empty()) signature += ", ";
      signature += arg.readable() ? usdt::type_name(arg.type) : "unreadable: " + std::string(arg.why_unreadable());
    }
    std::printf("%s:%s(%s)%s\n", site.provider.c_str(), site.name.c_str(), signature.c_str(),
                site.has_semaphore ? " [semaphore]" : "");
  }
  return {};
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  if (auto done = list(argv[1]); !done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
  }
}
