// SPDX-License-Identifier: BSD-2-Clause
// Indices that cannot be mixed up: a Table<T> is a vector whose elements only an Index<T> reaches. Plans are made of
// them: plan.sites[index] takes an Index<PlannedSite> and no other number.
//     for (const usdt::Index<usdt::PlannedSite> n : plan.sites.indices()) use(plan.probes[plan.sites[n].probe]);
// Threads: as std::vector.
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

/// Holds a position in a Table<T>, and in no table of anything else. No value means "none": a position that may be
/// absent is std::optional<Index<T>>.
template <class T>
struct Index {
  std::uint32_t value = 0;

  constexpr Index() = default;
  /// Takes numbers that are known when the program is compiled: `table[0]`.
  consteval Index(int number) noexcept  // NOLINT(google-explicit-constructor): a literal says of what by where it is
      : value(static_cast<std::uint32_t>(number)) {}
  /// Makes the index of element `number`, counted from 0.
  template <class Number>
  requires std::unsigned_integral<Number>
  constexpr explicit Index(Number number) noexcept : value(static_cast<std::uint32_t>(number)) {}
  friend constexpr auto operator<=>(const Index&, const Index&) = default;  // NOLINT(modernize-use-nullptr)
};

/// Goes through every index below one, for range-based loops.
template <class T>
class Indices {
 public:
  /// Points at an index.
  class iterator {
   public:
    /// Points at `at`.
    constexpr explicit iterator(Index<T> at) noexcept : at_(at) {}
    /// Returns the index it points at.
    constexpr Index<T> operator*() const noexcept { return at_; }
    /// Moves on to the next index.
    constexpr iterator& operator++() noexcept {
      ++at_.value;
      return *this;
    }
    friend constexpr bool operator==(iterator, iterator) = default;

   private:
    Index<T> at_;
  };

  /// Covers the indices from 0 to below `end`.
  constexpr explicit Indices(Index<T> end) noexcept : end_(end) {}
  /// Points at the first index.
  [[nodiscard]] constexpr iterator begin() const noexcept { return iterator(Index<T>()); }
  /// Points behind the last index.
  [[nodiscard]] constexpr iterator end() const noexcept { return iterator(end_); }

 private:
  Index<T> end_;
};

/// Holds a vector whose elements are found by Index<T>, and by no other number.
template <class T>
class Table {
 public:
  /// Types that a standard container has.
  ///@{
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;
  ///@}

  /// Returns the element at `index`, which has to be an index of this table.
  ///@{
  [[nodiscard]] T& operator[](Index<T> index) noexcept { return all_[index.value]; }
  [[nodiscard]] const T& operator[](Index<T> index) const noexcept { return all_[index.value]; }
  ///@}
  /// Returns whether there is an element at `index`.
  [[nodiscard]] bool contains(Index<T> index) const noexcept { return index.value < all_.size(); }
  /// Returns the index that the next element will have.
  [[nodiscard]] Index<T> next() const noexcept { return Index<T>(all_.size()); }
  /// Appends `element` and returns its index.
  Index<T> add(T element) {
    const Index<T> index = next();
    all_.push_back(std::move(element));
    return index;
  }
  /// Appends a default element and returns its index.
  Index<T> add() {
    const Index<T> index = next();
    all_.emplace_back();
    return index;
  }
  /// Returns every index, in order.
  [[nodiscard]] Indices<T> indices() const noexcept { return Indices<T>(next()); }
  /// Moves the elements of `more` behind those that are there.
  void append(Table&& more) {
    all_.insert(all_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }

  /// Does what the function of std::vector does.
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
