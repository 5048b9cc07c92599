// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

namespace usdt {

/// A position in a Table<T>. It is no position in the table of anything else, and there is no value that means none:
/// where there may be none, it is std::optional<Index<T>>.
template <class T>
struct Index {
  std::uint32_t value = 0;

  constexpr Index() = default;
  /// Numbers known when the program is compiled: `table[0]`.
  consteval Index(int number) noexcept  // NOLINT(google-explicit-constructor): a literal says of what by where it is
      : value(static_cast<std::uint32_t>(number)) {}
  template <class Number>
  requires std::unsigned_integral<Number>
  constexpr explicit Index(Number number) noexcept : value(static_cast<std::uint32_t>(number)) {}
  friend constexpr auto operator<=>(const Index&, const Index&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A vector whose elements are found by Index<T>, and by no other number.
template <class T>
class Table {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  [[nodiscard]] T& operator[](Index<T> index) noexcept { return all_[index.value]; }
  [[nodiscard]] const T& operator[](Index<T> index) const noexcept { return all_[index.value]; }
  [[nodiscard]] bool contains(Index<T> index) const noexcept { return index.value < all_.size(); }
  /// Where the next element will be.
  [[nodiscard]] Index<T> next() const noexcept { return Index<T>(all_.size()); }
  /// Appends `element`; where it is.
  Index<T> add(T element) {
    const Index<T> index = next();
    all_.push_back(std::move(element));
    return index;
  }
  /// Every index, in order.
  [[nodiscard]] auto indices() const {
    return std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(all_.size())) |
           std::views::transform([](std::uint32_t number) { return Index<T>(number); });
  }
  /// Appends the elements of `more`, which move behind those that are there.
  void append(Table&& more) {
    all_.insert(all_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }

  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  void reserve(std::size_t count) { all_.reserve(count); }
  [[nodiscard]] T& front() noexcept { return all_.front(); }
  [[nodiscard]] const T& front() const noexcept { return all_.front(); }
  [[nodiscard]] T& back() noexcept { return all_.back(); }
  [[nodiscard]] const T& back() const noexcept { return all_.back(); }
  [[nodiscard]] iterator begin() noexcept { return all_.begin(); }
  [[nodiscard]] iterator end() noexcept { return all_.end(); }
  [[nodiscard]] const_iterator begin() const noexcept { return all_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return all_.end(); }

 private:
  std::vector<T> all_;
};

}  // namespace usdt
