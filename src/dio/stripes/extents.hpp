// Extents: pieces of one component file and the memory they go to or come from, joined into as few requests
// as pay.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outcore::store {

struct Extent {
  std::int64_t offset = 0;
  std::byte* memory = nullptr;
  std::int64_t size_bytes = 0;
};

/// Requests for a list of extents. Neighbours become one request. A read also passes over gaps that are
/// cheaper to read than another request is (data sieving, as PASSION has it): what lies in them goes to
/// memory that nobody looks at. It must stay until the requests are complete.
class Runs {
 public:
  /// Bytes that move from the page cache in the time that a request costs, about 3 us.
  static constexpr std::int64_t max_gap_bytes = 16 << 10;

  struct Run {
    std::int64_t offset = 0, size_bytes = 0;
    std::size_t first = 0, count = 0;  ///< of its entries
  };

  /// Sorts the extents, which must not overlap if they are written.
  Runs(std::span<Extent> extents, bool write);

  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  [[nodiscard]] std::span<const iovec> list(const Run& run) const noexcept {
    return std::span(entries_).subspan(run.first, run.count);
  }
  /// A gap goes to memory of this object.
  [[nodiscard]] bool sieves() const noexcept { return !sink_.empty(); }
  /// What a read did not find because the file is shorter: zeros.
  void zero_beyond(const Run& run, std::int64_t moved_bytes) const noexcept;

 private:
  void append(const Extent& extent, std::int64_t gap_bytes);

  std::vector<Run> runs_;
  std::vector<iovec> entries_;
  std::vector<std::byte> sink_;  ///< as long as the longest gap
};

}  // namespace outcore::store
