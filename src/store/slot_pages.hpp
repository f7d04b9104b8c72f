// Memory of a table of slots, allocated where slots are written.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "store/geometry.hpp"

namespace outcore::store {

/// A tree whose leaves are pages, each for some neighbouring slots. A page exists once `make` was called for
/// one of its slots, so a table takes memory for the slots that are written, not for all. Any thread may look
/// for pages while others make them.
class SlotPages {
 public:
  struct Page {
    std::vector<std::uint32_t> stored, room, checksums;  ///< room: with a codec only
    std::vector<std::uint16_t> state;
  };
  /// Called before memory is taken (it may throw, and then there is none), and with a negative number when it
  /// is given back.
  using Account = std::function<void(std::int64_t bytes)>;

  explicit SlotPages(const Geometry& geometry);
  ~SlotPages();
  SlotPages(const SlotPages&) = delete;
  SlotPages& operator=(const SlotPages&) = delete;

  /// Also counts the existing memory. Throws the errors of `account`.
  void account_to(Account account);

  /// Index of a slot within its page.
  [[nodiscard]] std::size_t index_in_page(std::int64_t slot) const noexcept {
    return static_cast<std::size_t>(slot & (page_slots_ - 1));
  }
  [[nodiscard]] Page* find(std::int64_t slot) const noexcept;  ///< null: there is none
  [[nodiscard]] Page& make(std::int64_t slot);  ///< throws Error(ENOMEM), and the errors of `account`

  /// Calls `visit(first slot, page)` for all pages, by rising slots. No other thread may use the table.
  template <class Visit>
  void for_each(Visit visit) const {
    const auto all = [&](std::int64_t first, Page& page) {
      visit(first, page);
      return true;
    };
    (void)walk(root_.load(std::memory_order_acquire), levels_, 0, 0, all);
  }
  /// From the page of a slot on, until `visit` returns false.
  template <class Visit>
  void for_each_from(std::int64_t slot, Visit visit) const {
    (void)walk(root_.load(std::memory_order_acquire), levels_, 0, slot / page_slots_, visit);
  }

 private:
  static constexpr int node_bits = 9;
  struct Node {
    std::array<std::atomic<void*>, std::size_t{1} << node_bits> below{};
  };

  /// `number`: of the node or page at `at`; `first`: of the first page that is wanted.
  template <class Visit>
  bool walk(void* at, int level, std::int64_t number, std::int64_t from, const Visit& visit) const {
    if (at == nullptr) return true;
    if (level == 0) return visit(number * page_slots_, *static_cast<Page*>(at));
    auto& below = static_cast<Node*>(at)->below;
    const std::int64_t first = number << node_bits, wanted = from >> ((level - 1) * node_bits);
    for (std::int64_t i = std::max<std::int64_t>(wanted - first, 0); i < std::int64_t{1} << node_bits; ++i)
      if (!walk(below[static_cast<std::size_t>(i)].load(std::memory_order_acquire), level - 1, first + i,
                from, visit))
        return false;
    return true;
  }
  template <class Made>
  Made* take(std::int64_t bytes, const std::function<Made*()>& made);
  static void free(void* at, int level) noexcept;

  std::int64_t slots_, page_slots_, blocks_, page_bytes_;
  bool rooms_;
  int levels_ = 0;  ///< of nodes above the pages
  std::atomic<void*> root_{nullptr};
  std::mutex mutex_;  ///< held while pages are made
  Account account_;
  std::int64_t taken_bytes_ = 0;
};

}  // namespace outcore::store
