// SPDX-License-Identifier: BSD-2-Clause
// files_of_program: what a program will have mapped once it runs, from its files alone.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "elf/dynamic.hpp"
#include "proc/file_head.hpp"
#include "proc/library_search.hpp"
#include "proc/script.hpp"
#include "usdt/discover.hpp"

namespace usdt {
inline namespace v1 {
namespace fs = std::filesystem;
namespace {

// A program with more files than this is no program; keeps a directory of hostile libraries from running away.
constexpr std::size_t kMaxFiles = 4096;
// Limit of the places in which its libraries are looked for: names times directories, of which a hostile program can
// have many in a few kilobytes.
constexpr std::size_t kMaxPlaces = 1 << 17;

/// Returns the value of "$LIB", a constant of the loader: a multiarch directory on Debian, lib64 or lib elsewhere.
std::string lib_directory(const elf::DynamicInfo& info) {
  const std::string debian = fmt::format("lib/{}", arch::for_machine(info.machine).loader.multiarch);
  std::error_code ec;
  if (fs::is_directory("/" + debian, ec)) return debian;
  return info.is64 ? "lib64" : "lib";
}

void replace_token(std::string& text, std::string_view name, std::string_view value) {
  for (const std::string& token : {fmt::format("${{{}}}", name), fmt::format("${}", name)}) {
    for (auto at = text.find(token); at != text.npos; at = text.find(token, at + value.size())) {
      text.replace(at, token.size(), value);
    }
  }
}

/// One file of the closure. `parent` is who first asked for it: DT_RPATH is inherited along that chain.
struct Loaded {
  fs::path path;
  proc::ElfIdent ident;
  elf::DynamicInfo info;
  std::size_t parent = 0;
};

/// Follows DT_NEEDED breadth first, as the loader does.
class Closure {
 public:
  Closure() : search_(proc::LibrarySearch::host_places()) {}

  Result<std::vector<TargetFile>> of(const fs::path& program) {
    TRY(add(program, 0));
    add_preloaded();
    for (std::size_t i = 0; i < files_.size() && files_.size() < kMaxFiles; ++i) {
      add_needed(i);
      add_virtual_machine(i);
    }
    if (places_ > kMaxPlaces) {
      return fail(ErrorKind::limit, fmt::format("{}: its libraries would have to be looked for in more than {} places",
                                                program.string(), kMaxPlaces));
    }
    std::vector<TargetFile> out;
    for (const Loaded& file : files_) out.push_back({file.path, file.path});
    return out;
  }

 private:
  Result<void> add(const fs::path& path, std::size_t parent) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return fail(os_failure(ErrorKind::io, path.string(), errno));
    if (!inodes_.emplace(st.st_dev, st.st_ino).second) return {};
    auto info = TRY(elf::read_dynamic(path));
    const auto head = proc::read_head(path.c_str());
    files_.push_back({path, head ? head->ident : proc::ElfIdent{}, std::move(info), parent});
    return {};
  }

  /// Adds what the environment has the loader open before all others (ld.so(8): names with blanks or colons between
  /// them). Static programs have no loader.
  void add_preloaded() {
    const char* names = std::getenv("LD_PRELOAD");
    if (names == nullptr || files_[0].info.interpreter.empty()) return;
    std::string with_colons = names;
    std::ranges::replace(with_colons, ' ', ':');
    for (const std::string& name : proc::split_path(with_colons))
      if (const auto path = locate(name, 0); !name.empty() && path) (void)add(*path, 0);
  }

  void add_needed(std::size_t index) {
    // They are copied, since add() may move the elements of files_.
    const std::vector<std::string> needed = files_[index].info.needed;
    const std::string interpreter = files_[index].info.interpreter;
    // A file that is missing or odd is left out; the loader would say so, listing what is there goes on.
    if (!interpreter.empty()) (void)add(interpreter, index);
    for (const std::string& name : needed) {
      if (places_ > kMaxPlaces) return;
      if (!names_.insert(name).second) continue;
      if (const auto path = locate(name, index)) (void)add(*path, index);
    }
  }

  /// Java's launcher opens its virtual machine itself, by the place of its own library: lib/libjli.so and
  /// lib/server/libjvm.so, in JDK 8 lib/ARCH/jli/libjli.so and lib/ARCH/server/libjvm.so.
  void add_virtual_machine(std::size_t index) {
    const fs::path launcher = files_[index].path;
    if (launcher.filename() != "libjli.so") return;
    std::error_code ec;
    const fs::path real = fs::canonical(launcher, ec).parent_path();
    for (const char* place : {"server/libjvm.so", "../server/libjvm.so"})
      if (!ec && fs::exists(real / place, ec)) (void)add((real / place).lexically_normal(), index);
  }

  std::optional<fs::path> locate(const std::string& name, std::size_t index) {
    const Loaded& file = files_[index];
    if (name.find('/') != name.npos) return fs::path(expand(name, file));
    std::vector<std::string> rpath;
    // ld.so(8): DT_RPATH of the file and of those that led to it, but none of it where the file has DT_RUNPATH.
    if (file.info.runpath.empty()) rpath = inherited_rpath(index);
    const std::vector<std::string> runpath = directories(file.info.runpath, file);
    places_ += 1 + rpath.size() + runpath.size();
    return search_.find(name, files_[0].ident, rpath, runpath);
  }

  std::vector<std::string> inherited_rpath(std::size_t index) const {
    std::vector<std::string> out;
    while (true) {
      const Loaded& file = files_[index];
      if (file.info.runpath.empty()) std::ranges::copy(directories(file.info.rpath, file), std::back_inserter(out));
      if (index == 0) return out;
      index = file.parent;
    }
  }

  static std::vector<std::string> directories(const std::string& list, const Loaded& file) {
    std::vector<std::string> out = proc::split_path(list);
    for (std::string& directory : out) directory = expand(directory, file);
    return out;
  }

  static std::string expand(std::string text, const Loaded& file) {
    if (text.find('$') == text.npos) return text;
    // The loader knows a file by its real place: $ORIGIN of a symbolic link is where it points.
    std::error_code ec;
    const fs::path real = fs::canonical(file.path, ec);
    replace_token(text, "ORIGIN", (ec ? file.path : real).parent_path().native());
    replace_token(text, "LIB", lib_directory(file.info));
    replace_token(text, "PLATFORM", arch::for_machine(host_machine()).loader.platform);
    return text;
  }

  proc::LibrarySearch search_;
  std::vector<Loaded> files_;
  std::set<std::string> names_;
  std::size_t places_ = 0;  ///< looked at so far
  std::set<std::pair<dev_t, ino_t>> inodes_;
};

}  // namespace

Result<std::vector<TargetFile>> files_of_program(const fs::path& path) {
  const auto program = TRY(proc::interpreter_of(path));
  return Closure().of(program);
}

}  // namespace v1
}  // namespace usdt
