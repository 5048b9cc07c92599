// SPDX-License-Identifier: BSD-2-Clause
// Programs with a thread-local variable in each form that compilers and linkers give it say where their threads have
// it: what is found is there, for each thread.
#include "find/thread_variable.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "elf/toolchain.hpp"
#include "proc/process_memory.hpp"

namespace usdt::find {
namespace {

constexpr std::string_view kVariable = R"(
#ifdef LARGE
__thread char filling[20000];
#endif
#ifdef HIDDEN
__attribute__((visibility("hidden")))
#endif
__thread void *tested_variable;
#ifdef LARGE
void *fill(void) { return filling; }
#endif
void *tested_place(void) { return &tested_variable; }
)";
constexpr std::string_view kOther = R"(
static __thread char other[24000];
void *other_place(void) { return other; }
)";

/// Each thread says its thread pointer and where it has the variable: the first thread, one that uses the variable, and
/// one that was there before the library and does not.
constexpr std::string_view kProgram = R"(
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *pointer(void) {
#ifdef __x86_64__
  void *p; __asm__("mov %%fs:0, %0" : "=r"(p)); return p;
#elif defined(__i386__)
  void *p; __asm__("mov %%gs:0, %0" : "=r"(p)); return p;
#else
  return __builtin_thread_pointer();
#endif
}
static pthread_barrier_t barrier;
static void *(*place)(void);
static void *idle(void *unused) {
  printf("%p 0\n", pointer()); fflush(stdout);
  pthread_barrier_wait(&barrier);
  pause(); return unused;
}
static void *use(void *unused) {
  printf("%p %p\n", pointer(), place()); fflush(stdout);
  pthread_barrier_wait(&barrier);
  pause(); return unused;
}
#ifdef REUSED
/* Uses a library that is closed, so that the next one has its number. */
static void *used(void *unused) {
  void *(*other)(void) = (void *(*)(void))dlsym(unused, "other_place");
  printf("%p 0 %p\n", pointer(), other()); fflush(stdout);
  pthread_barrier_wait(&barrier);
  pause(); return unused;
}
#endif
#ifndef LIBRARY
void *tested_place(void);
#endif
int main(void) {
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
#ifdef REUSED
  void *other = dlopen("./other.so", RTLD_NOW);
  pthread_create(&thread, NULL, used, other);
  pthread_barrier_wait(&barrier);
  dlclose(other);
#else
  pthread_create(&thread, NULL, idle, NULL);
  pthread_barrier_wait(&barrier);
#endif
#ifdef LIBRARY
  void *library = dlopen(LIBRARY, RTLD_NOW);
  if (!library) { puts(dlerror()); return 1; }
  place = (void *(*)(void))dlsym(library, "tested_place");
#else
  place = tested_place;
#endif
  pthread_create(&thread, NULL, use, NULL);
  pthread_barrier_wait(&barrier);
  printf("%p %p\n", pointer(), place());
  puts("ready");
  fflush(stdout);
  pause();
}
)";

struct Form {
  std::string name;
  std::string library;  ///< flags of the library with the variable; "": the program has it
  std::string program;  ///< flags of the program
  bool opened = false;  ///< the library is opened by the running program
  std::string machine = "";

  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};

/// A running program and what its threads said.
class Running {
 public:
  Running(const test::TempDir& dir, const std::string& command) {
    stream_ = ::popen(fmt::format("cd {} && exec {} 2>&1", dir.path().string(), command).c_str(), "r");
    char line[256];
    while (std::fgets(line, sizeof(line), stream_) != nullptr) {
      said += line;
      unsigned long long pointer = 0, place = 0;
      if (std::sscanf(line, "%llx %llx", &pointer, &place) == 2) threads.push_back({pointer, place});
      int number = 0;
      if (std::sscanf(line, "pid %d", &number) == 1) pid = number;
      if (std::string_view(line) == "ready\n") return;
    }
  }
  ~Running() {
    if (pid > 0) ::kill(pid, SIGKILL);
    ::pclose(stream_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  struct Thread {
    std::uint64_t pointer;
    std::uint64_t place;
  };
  pid_t pid = 0;
  std::vector<Thread> threads;
  std::string said;

 private:
  FILE* stream_ = nullptr;
};

/// What usdt_find_thread_variable() of usdt/bpf/thread_variable.h does for a thread.
std::optional<std::uint64_t> follow(const usdt_thread_variable& variable, pid_t pid, std::uint64_t pointer) {
  if (variable.module == 0) {
    const std::uint64_t sum = pointer + variable.offset;
    return variable.word_size == 4 ? static_cast<std::uint32_t>(sum) : sum;
  }
  const auto memory = proc::ProcessMemory::open(pid);
  const std::size_t size = variable.word_size;
  const auto vector = memory->word_at(ProcessAddr(pointer + static_cast<std::uint64_t>(variable.vector_at)), size);
  const auto generation = memory->word_at(ProcessAddr(*vector), size);
  if (*generation < variable.generation) return std::nullopt;
  const auto block = memory->word_at(ProcessAddr(*vector + std::uint64_t{variable.module} * variable.entry_size), size);
  if (*block == (size == 8 ? UINT64_MAX : UINT32_MAX)) return std::nullopt;
  return *block + variable.offset;
}

class ThreadVariables : public testing::TestWithParam<Form> {
 protected:
  /// Builds the program of a form, which says its number first.
  [[nodiscard]] std::string build(const Form& form, const std::string& more = "") {
    static_cast<void>(dir.write("variable.c", kVariable));
    static_cast<void>(dir.write("other.c", kOther));
    static_cast<void>(dir.write("program.c", kProgram));
    std::string command = fmt::format("gcc {} -shared -fPIC -o other.so other.c && ", form.machine);
    if (form.library.empty()) {
      command += fmt::format("gcc {} {} -pthread -o program program.c variable.c", form.machine, form.program);
    } else {
      command += fmt::format(
          "gcc {0} -shared -fPIC {1} -o libtested.so variable.c && gcc {0} {2} -pthread {3} -o program program.c {4}",
          form.machine, form.library, form.program, more,
          form.opened ? "-DLIBRARY='\"./libtested.so\"' -ldl" : "-L. -ltested -Wl,-rpath,.");
    }
    const auto built = test::run_in(dir, command);
    EXPECT_EQ(built.status, 0) << built.output;
    return "sh -c 'echo pid $$; exec ./program'";
  }
  test::TempDir dir;
};

TEST_P(ThreadVariables, are_found_for_each_thread) {
  const Form& form = GetParam();
  if (!form.machine.empty() && !(test::can_compile(form.machine) && test::can_run(form.machine)))
    GTEST_SKIP() << "no programs for " << form.machine;
  const Running running(dir, build(form));
  ASSERT_EQ(running.threads.size(), 3U) << running.said;
  ThreadVariableFinder finder("tested_variable");
  const auto variable = finder.find(running.pid);
  ASSERT_TRUE(variable) << variable.error().message;
  const auto& [idle, user, first] = std::tie(running.threads[0], running.threads[1], running.threads[2]);
  EXPECT_EQ(follow(*variable, running.pid, first.pointer), first.place);
  EXPECT_EQ(follow(*variable, running.pid, user.pointer), user.place);
  const bool near = first.place - first.pointer == user.place - user.pointer;
  EXPECT_EQ(near, variable->module == 0);
  EXPECT_EQ(follow(*variable, running.pid, idle.pointer),
            near ? std::optional(idle.pointer + first.place - first.pointer) : std::nullopt);
}

std::vector<Form> forms() {
  std::vector<Form> all;
  // lld puts segments into one page of the file.
  for (const auto& [machine, in] :
       {std::pair<std::string, std::string>("", ""), {"-m32", "of i386, "}, {"-fuse-ld=lld", "by lld, "}}) {
    const std::string gnu2 = "-O2 -mtls-dialect=gnu2";
    for (const auto& [name, flags] :
         {std::pair<std::string, std::string>("a program at fixed addresses", "-O2 -no-pie -fno-pie"),
          {"a program", "-O2 -pie -fPIE"},
          {"a static program", "-O2 -static"},
          {"a static program that is moved", "-O2 -static-pie -fPIE"},
          {"a program with large variables", "-O2 -DLARGE"},
          {"a program that exports it", "-O2 -rdynamic"}})
      all.push_back({in + name, "", flags, false, machine});
    for (const auto& [name, flags] :
         {std::pair<std::string, std::string>("general dynamic", "-O2 -ftls-model=global-dynamic"),
          {"local dynamic", "-O2 -ftls-model=local-dynamic"},
          {"descriptors", gnu2},
          {"initial exec", "-O2 -ftls-model=initial-exec"},
          {"general dynamic, large", "-O2 -DLARGE"},
          {"descriptors, large", gnu2 + " -DLARGE"}})
      for (const bool opened : {false, true})
        all.push_back({fmt::format("{}a library{}, {}", in, opened ? " that is opened" : "", name), flags, "-O2",
                       opened, machine});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Forms, ThreadVariables, testing::ValuesIn(forms()));

TEST_F(ThreadVariables, of_a_library_that_has_the_number_of_a_closed_one_are_not_those_of_that) {
  const Running running(dir, build({"", "-O2 -DLARGE", "-O2", true}, "-DREUSED"));
  ASSERT_EQ(running.threads.size(), 3U) << running.said;
  ThreadVariableFinder finder("tested_variable");
  const auto variable = finder.find(running.pid);
  ASSERT_TRUE(variable) << variable.error().message;
  EXPECT_NE(variable->module, 0U);
  EXPECT_EQ(follow(*variable, running.pid, running.threads[2].pointer), running.threads[2].place);
  EXPECT_EQ(follow(*variable, running.pid, running.threads[0].pointer), std::nullopt);
}

TEST_F(ThreadVariables, of_a_library_that_does_not_name_them_are_in_the_block_that_is_found) {
  for (const bool opened : {false, true}) {
    SCOPED_TRACE(opened);
    const Running running(dir, build({"", "-O2 -DHIDDEN -s", "-O2", opened}));
    ASSERT_EQ(running.threads.size(), 3U) << running.said;
    EXPECT_FALSE(ThreadVariableFinder("tested_variable").find(running.pid));
    EXPECT_FALSE(ThreadVariableFinder("tested_variable", "main").find(running.pid)) << "that of a program";
    ThreadVariableFinder finder("tested_variable", "tested_place");
    const auto variable = finder.find(running.pid);
    ASSERT_TRUE(variable) << variable.error().message;
    EXPECT_EQ(follow(*variable, running.pid, running.threads[2].pointer), running.threads[2].place);
  }
}

TEST_F(ThreadVariables, that_no_file_has_are_not_found) {
  const Running running(dir, build({"", "", "-O2", false}));
  ThreadVariableFinder finder("another_variable");
  const auto variable = finder.find(running.pid);
  ASSERT_FALSE(variable);
  EXPECT_EQ(variable.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(finder.find(0));
}

}  // namespace
}  // namespace usdt::find
