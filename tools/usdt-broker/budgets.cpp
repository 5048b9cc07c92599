// SPDX-License-Identifier: BSD-2-Clause
#include "budgets.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <new>

namespace usdt_broker {

namespace {

constexpr std::int64_t kHour = 3600;

std::int64_t now_s() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

}  // namespace

void Allowance::give_back(std::uint64_t most) noexcept {
  const std::int64_t now = now_s();
  std::int64_t since = given_back_.load();
  const auto seconds = static_cast<std::uint64_t>(std::clamp<std::int64_t>(now - since, 0, kHour));
  const std::uint64_t back = most / kHour * seconds + most % kHour * seconds / kHour;
  if (back == 0 || !given_back_.compare_exchange_strong(since, now)) return;
  std::uint64_t used = used_.load();
  while (!used_.compare_exchange_weak(used, used - std::min(used, back))) {
  }
}

bool Allowance::take(std::uint64_t amount, std::uint64_t most) noexcept {
  give_back(most);
  if (amount > most) return false;
  if (used_.fetch_add(amount) + amount <= most) return true;
  used_.fetch_sub(amount);
  return false;
}

bool Allowance::is_whole() const noexcept { return used_.load() == 0 || now_s() - given_back_.load() >= kHour; }

void Allowance::reset() noexcept {
  used_ = 0;
  given_back_ = 0;
}

Budgets::Budgets() {
  void* const shared =
      ::mmap(nullptr, kMostUsers * sizeof(Budget), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  all_ = new (shared) Budget[kMostUsers];
}

Budgets::~Budgets() { ::munmap(all_, kMostUsers * sizeof(Budget)); }

Budget* Budgets::of(uid_t user, const std::function<bool(uid_t)>& is_served) {
  if (const auto known = number_of_.find(user); known != number_of_.end()) return &all_[known->second];
  std::size_t number = number_of_.size();
  if (number == kMostUsers) {
    const auto gone = std::ranges::find_if(
        number_of_, [&](const auto& each) { return all_[each.second].is_whole() && !is_served(each.first); });
    if (gone == number_of_.end()) return nullptr;
    number = gone->second;
    number_of_.erase(gone);
    all_[number].places.reset();
    all_[number].map_bytes.reset();
  }
  number_of_.emplace(user, number);
  return &all_[number];
}

}  // namespace usdt_broker
