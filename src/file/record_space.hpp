// Where records lie in their file: space of one process, in granules.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

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
  static constexpr std::int64_t granule_bytes = 64;

  /// Takes a run of granules that no process has, and returns its first.
  using TakeExtent = std::function<std::int64_t(std::int64_t granules)>;
  RecordSpace(std::int64_t extent_granules, TakeExtent take_extent);

  struct Allocation {
    std::int64_t granule = 0;
    int size_class = 0;
    [[nodiscard]] std::int64_t offset() const noexcept { return granule * granule_bytes; }
    [[nodiscard]] std::int64_t capacity_bytes() const noexcept {
      return record_class::granules(size_class) * granule_bytes;
    }
  };
  [[nodiscard]] Allocation take(std::int64_t size_bytes);  ///< throws what taking an extent throws
  void give(const Allocation& allocation);                 ///< also one that another process took
  [[nodiscard]] std::int64_t free_bytes() const;

 private:
  void insert(std::int64_t granule, std::int64_t count);
  void erase(std::map<std::int64_t, std::int64_t>::iterator gap);

  const std::int64_t extent_granules_;
  const TakeExtent take_extent_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> gaps_;                     ///< first granule: count
  std::set<std::pair<std::int64_t, std::int64_t>> gaps_by_size_;  ///< count, first granule
};

}  // namespace outcore::file
