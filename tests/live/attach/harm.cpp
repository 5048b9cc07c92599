// SPDX-License-Identifier: BSD-2-Clause
// One function in three forms (free, member, template), all of which are called with numbers and return 1000 more than
// their first argument. How they are left is the program's first argument; it prints the sum of what happened.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <coroutine>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

enum { kCalls = 30, kFibers = 3, kSteps = 4 };
const size_t kStack = 128 << 10;

std::string how;
long sum;
jmp_buf out;

// Fibers: each calls functions which give way to others while they run.
ucontext_t scheduler;
ucontext_t fibers[kFibers];
int current = -1;
char* stacks;
char* copies[kFibers];

void give_way() {
  if (current >= 0) swapcontext(&fibers[current], &scheduler);
}

volatile int in_handler;

__attribute__((noinline)) void behave(int id, const std::string& text) {
  if ((how == "throws" || how == "coroutines") && id % 10 == 9) throw std::runtime_error("left: " + text);
  if (how == "longjmp" && id % 10 == 9) longjmp(out, 1);
  if (how == "altstack" && !in_handler) raise(SIGUSR1);
  give_way();
}

}  // namespace

namespace app {

struct request {
  int id;
  const char* path;
};

// Each has something to destroy, and more code than a caller would have inlined.
__attribute__((noinline)) int work(int id, request& r) {
  std::string text = std::string(r.path) + std::to_string(id);
  behave(id, text);
  return 1000 + id + (text.size() > 1000 ? 1 : 0);
}

struct server {
  int base;
  __attribute__((noinline)) int handle(int id, request& r) const {
    std::string text = std::string(r.path) + std::to_string(id) + "/member";
    behave(id, text);
    return base + id;
  }
};

template <class T>
__attribute__((noinline)) int pick(int id, T& r) {
  std::string text = std::string(r.path) + std::to_string(id) + "/template";
  behave(id, text);
  return 1000 + id + (text.empty() ? 1 : 0);
}

}  // namespace app

namespace {

int call(int id) {
  app::request r{id, "/a/path/that/is/longer/than/what/fits/into/a/string/itself/"};
  const app::server server{1000};
  return app::work(id, r) + server.handle(id, r) + app::pick<app::request>(id, r);
}

void call_and_catch(int id) {
  try {
    sum += call(id);
  } catch (const std::exception& left) {
    sum += static_cast<long>(strlen(left.what()));
  }
}

void fiber(int number) {
  for (int step = 0; step < kSteps; ++step) sum += call(100 * (number + 1) + step);
  current = -2;
}

char* stack_of(int number) { return how == "copied" ? stacks : stacks + number * kStack; }

/// Lets one go on until it gives way; whether it has not ended.
bool resume(int number) {
  current = number;
  if (how == "copied") memcpy(stacks, copies[number], kStack);
  swapcontext(&scheduler, &fibers[number]);
  if (how == "copied") memcpy(copies[number], stacks, kStack);
  return current != -2;
}

void run_fibers() {
  // Above the stack of the thread that resumes them, or below it, and in either order.
  stacks =
      static_cast<char*>(mmap(nullptr, kFibers * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  bool going[kFibers];
  for (int i = 0; i < kFibers; ++i) {
    const int at = how == "reversed" ? kFibers - 1 - i : i;
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stack_of(at);
    fibers[i].uc_stack.ss_size = kStack;
    fibers[i].uc_link = &scheduler;
    makecontext(&fibers[i], reinterpret_cast<void (*)()>(fiber), 1, i);
    copies[i] = static_cast<char*>(malloc(kStack));
    memcpy(copies[i], stacks, kStack);
    going[i] = true;
  }
  for (bool any = true; any;) {
    any = false;
    for (int i = 0; i < kFibers; ++i) {
      if (!going[i]) continue;
      any = true;
      // A thread of its own for each step: calls go on on other threads than they began on.
      if (how == "moved")
        std::thread([&] { going[i] = resume(i); }).join();
      else
        going[i] = resume(i);
    }
  }
}

struct task {
  struct promise_type {
    task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { sum += 7; }
  };
  std::coroutine_handle<promise_type> handle;
};

}  // namespace

namespace app {

/// Gives way between its calls; the exception of one of them leaves it.
__attribute__((noinline)) task go_on(int id, request& r) {
  for (int step = 0; step < kSteps; ++step) {
    sum += call(id + step) + static_cast<long>(strlen(r.path));
    co_await std::suspend_always{};
  }
}

}  // namespace app

namespace {

/// They go on in turns, on threads of their own; one is destroyed where it waits.
void run_coroutines() {
  app::request r{0, "/path"};
  task all[] = {app::go_on(100, r), app::go_on(207, r), app::go_on(300, r)};
  for (int step = 0; step < 3; ++step)
    for (task& each : all)
      if (!each.handle.done()) std::thread([&] { each.handle.resume(); }).join();
  for (task& each : all) {
    if (&each == all && !each.handle.done()) each.handle.resume();
    each.handle.destroy();
  }
}

void handler(int) {
  in_handler = 1;
  sum += call(500);
  in_handler = 0;
}

/// A thread with the stack for signals above its own.
void* with_altstack(void* above) {
  stack_t alternate{};
  alternate.ss_sp = above;
  alternate.ss_size = kStack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 5; ++i) sum += call(i);
  alternate.ss_flags = SS_DISABLE;
  sigaltstack(&alternate, nullptr);
  return nullptr;
}

void run_with_altstack() {
  char* both =
      static_cast<char*>(mmap(nullptr, 3 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, both, 2 * kStack);
  pthread_t thread;
  pthread_create(&thread, &attributes, with_altstack, both + 2 * kStack);
  pthread_join(thread, nullptr);
}

}  // namespace

int main(int, char** argv) {
  how = argv[1];
  if (how == "altstack") {
    run_with_altstack();
  } else if (how == "coroutines") {
    run_coroutines();
  } else if (how == "returns" || how == "throws" || how == "longjmp") {
    volatile int i = 0;
    while ((i = i + 1) <= kCalls)
      if (setjmp(out) == 0) call_and_catch(i);
  } else {
    run_fibers();
  }
  printf("%s %ld\n", how.c_str(), sum);
  return static_cast<int>(sum % 100);
}
