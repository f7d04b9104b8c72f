// The space of one process for records, in a file or in memory, in granules.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/gaps.hpp"

namespace outcore::file {

/// Capacities of allocations come in classes, eight for each factor of two. So one byte encodes a capacity,
/// and at most a ninth of it is unused.
namespace record_class {
[[nodiscard]] int of(std::int64_t granules) noexcept;  ///< the smallest class with this capacity
[[nodiscard]] std::int64_t granules(int size_class) noexcept;
inline constexpr int largest = 255;
}  // namespace record_class

/// Allocates parts of extents, which the process takes one after another. Freed space is joined with its
/// neighbours and used again: the smallest gap that is large enough comes first. Thread-safe. Only a new
/// extent needs other processes.
class RecordSpace {
 public:
  struct Extent {
    std::int64_t first = 0, granules = 0;
  };
  /// Takes a run of granules that no process has: `wanted`, or fewer if fewer are left, but at least `least`.
  /// Null: not enough are left.
  using TakeExtent = std::function<std::optional<Extent>(std::int64_t least, std::int64_t wanted)>;
  /// Size of an extent in granules; a larger allocation gets its own extent.
  RecordSpace(std::int64_t granule_bytes, std::int64_t extent_granules, TakeExtent take_extent);

  struct Allocation {
    std::int64_t granule = 0;
    int size_class = 0;
  };
  /// Null if no extent can be taken; throws the errors of taking one.
  [[nodiscard]] std::optional<Allocation> take(std::int64_t size_bytes);
  void give(const Allocation& allocation);  ///< also an allocation of another process

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
