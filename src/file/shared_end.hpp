// The end of a shared file: the largest of the numbers that the nodes keep.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "outcore/world.hpp"

namespace outcore::file {

/// Each node (or each process whose memory others cannot load) has a number in one-sided memory, which its
/// processes raise. So a write costs a comparison, and only a reader beyond the end it knows asks the others.
/// Any thread may call all methods except the constructor.
class SharedEnd {
 public:
  explicit SharedEnd(World& world);  ///< collective

  void raise(std::int64_t end);      ///< raises the end to at least this
  [[nodiscard]] std::int64_t ask();  ///< the present end, over all processes
  /// Whether the end is at least this. Asks one node after another until one confirms it, first the one that
  /// did so last.
  [[nodiscard]] bool reaches(std::int64_t end);
  [[nodiscard]] std::int64_t known() const noexcept {  ///< a lower bound of the end
    return known_.load(std::memory_order_acquire);
  }

 private:
  std::int64_t ask(std::size_t holder);

  World::Region region_;
  std::int64_t* mine_ = nullptr;
  std::vector<int> holders_;              ///< processes that hold a number
  std::atomic<std::size_t> furthest_{0};  ///< index of the holder that last confirmed an end
  std::atomic<std::int64_t> known_{0};
};

}  // namespace outcore::file
