// Where records lie, in a file or in memory: space of one process, in granules.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/gaps.hpp"

namespace outcore::file {

/// Capacities of allocations come in classes, eight to a factor of two, so that a byte says how large one is,
/// and at most a ninth of it is not used.
namespace record_class {
[[nodiscard]] int of(std::int64_t granules) noexcept;  ///< the smallest that holds so many
[[nodiscard]] std::int64_t granules(int size_class) noexcept;
inline constexpr int largest = 255;
}  // namespace record_class

/// Gives out parts of extents that the process takes one after another; what is given back is joined with
/// its neighbours and used again, the smallest gap that is large enough first. Thread-safe; no other process
/// is asked but for a new extent.
class RecordSpace {
 public:
  struct Extent {
    std::int64_t first = 0, granules = 0;
  };
  /// Takes a run of granules that no process has: `wanted`, or fewer if there are not so many any more, but
  /// not fewer than `least`. Null: there are none.
  using TakeExtent = std::function<std::optional<Extent>(std::int64_t least, std::int64_t wanted)>;
  /// An extent is so many granules, or of one allocation that is larger.
  RecordSpace(std::int64_t granule_bytes, std::int64_t extent_granules, TakeExtent take_extent);

  struct Allocation {
    std::int64_t granule = 0;
    int size_class = 0;
  };
  /// Null where no extent can be taken; throws what taking one throws.
  [[nodiscard]] std::optional<Allocation> take(std::int64_t size_bytes);
  void give(const Allocation& allocation);  ///< also one that another process took

  [[nodiscard]] std::int64_t offset(const Allocation& allocation) const noexcept {
    return allocation.granule * granule_bytes_;
  }
  [[nodiscard]] std::int64_t capacity_bytes(const Allocation& allocation) const noexcept {
    return record_class::granules(allocation.size_class) * granule_bytes_;
  }
  [[nodiscard]] std::int64_t free_bytes() const;  ///< of the extents that were taken

 private:
  const std::int64_t granule_bytes_, extent_granules_;
  const TakeExtent take_extent_;
  mutable std::mutex mutex_;
  Gaps gaps_;
};

}  // namespace outcore::file
