// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace usdt {
inline namespace v1 {

/// A position in a Table<T>. It is no position in the table of anything else, and there is no value that means none:
/// where there may be none, it is std::optional<Index<T>>.
template <class T>
struct Index {
  std::uint32_t value = 0;

  constexpr Index() = default;
  /// Numbers known when the program is compiled: `table[0]`.
  consteval Index(int number) noexcept  // NOLINT(google-explicit-constructor): a literal says of what by where it is
      : value(static_cast<std::uint32_t>(number)) {}
  /// The `number`-th element.
  template <class Number>
  requires std::unsigned_integral<Number>
  constexpr explicit Index(Number number) noexcept : value(static_cast<std::uint32_t>(number)) {}
  friend constexpr auto operator<=>(const Index&, const Index&) = default;  // NOLINT(modernize-use-nullptr)
};

/// Every index below one, for range-based loops.
template <class T>
class Indices {
 public:
  /// Points at an index.
  class iterator {
   public:
    /// At `at`.
    constexpr explicit iterator(Index<T> at) noexcept : at_(at) {}
    /// The index itself.
    constexpr Index<T> operator*() const noexcept { return at_; }
    /// To the next one.
    constexpr iterator& operator++() noexcept {
      ++at_.value;
      return *this;
    }
    friend constexpr bool operator==(iterator, iterator) = default;

   private:
    Index<T> at_;
  };

  /// Those below `end`.
  constexpr explicit Indices(Index<T> end) noexcept : end_(end) {}
  /// The first.
  [[nodiscard]] constexpr iterator begin() const noexcept { return iterator(Index<T>()); }
  /// Behind the last.
  [[nodiscard]] constexpr iterator end() const noexcept { return iterator(end_); }

 private:
  Index<T> end_;
};

/// A vector whose elements are found by Index<T>, and by no other number.
template <class T>
class Table {
 public:
  /// As in a standard container.
  ///@{
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;
  ///@}

  /// The element at `index`, which has to be one of this table.
  ///@{
  [[nodiscard]] T& operator[](Index<T> index) noexcept { return all_[index.value]; }
  [[nodiscard]] const T& operator[](Index<T> index) const noexcept { return all_[index.value]; }
  ///@}
  /// Whether there is an element at `index`.
  [[nodiscard]] bool contains(Index<T> index) const noexcept { return index.value < all_.size(); }
  /// Where the next element will be.
  [[nodiscard]] Index<T> next() const noexcept { return Index<T>(all_.size()); }
  /// Appends `element`; where it is.
  Index<T> add(T element) {
    const Index<T> index = next();
    all_.push_back(std::move(element));
    return index;
  }
  /// Appends one as it is by default; where it is.
  Index<T> add() {
    const Index<T> index = next();
    all_.emplace_back();
    return index;
  }
  /// Every index, in order.
  [[nodiscard]] Indices<T> indices() const noexcept { return Indices<T>(next()); }
  /// Appends the elements of `more`, which move behind those that are there.
  void append(Table&& more) {
    all_.insert(all_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }

  /// As those of std::vector.
  ///@{
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
  ///@}

 private:
  std::vector<T> all_;
};

}  // namespace v1
}  // namespace usdt
