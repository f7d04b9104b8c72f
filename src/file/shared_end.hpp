// The end of a shared file: the largest of numbers that the nodes keep.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "outcore/world.hpp"

namespace outcore::file {

/// Each node, or each process whose memory others cannot load from, has a number in one-sided memory, which
/// its processes raise. So a write costs a comparison, and only who would go beyond the end it knows asks the
/// others. All methods but the constructor may be called by any thread.
class SharedEnd {
 public:
  explicit SharedEnd(World& world);  ///< collective

  void raise(std::int64_t end);      ///< to at least this
  [[nodiscard]] std::int64_t ask();  ///< what it is now, at all processes
  /// Whether it is at least this. Asks one node after another only until one says so, first the one that said
  /// so last.
  [[nodiscard]] bool reaches(std::int64_t end);
  [[nodiscard]] std::int64_t known() const noexcept {  ///< what it is at least
    return known_.load(std::memory_order_acquire);
  }

 private:
  std::int64_t ask(std::size_t holder);

  World::Region region_;
  std::int64_t* mine_ = nullptr;
  std::vector<int> holders_;              ///< processes that hold a number
  std::atomic<std::size_t> furthest_{0};  ///< of holders_, as far as was found
  std::atomic<std::int64_t> known_{0};
};

}  // namespace outcore::file
