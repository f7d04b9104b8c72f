// Ranges of one component file and the memory that they go to or come from, joined into as few requests as
// pay.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_range.hpp"

namespace outcore::dio {

/// Bytes of a file, and memory of their size.
struct TransferRange : ByteRange {
  std::byte* memory = nullptr;
};

/// Requests for a list of ranges. Neighbours become one request. A read also passes over gaps that are
/// cheaper to read than another request is (data sieving, as PASSION has it): what lies in them goes to
/// memory that nobody looks at. It must stay until the requests are complete.
class JoinedRanges {
 public:
  /// Bytes that move from the page cache in the time that a request costs, about 3 us.
  /// Measured: [M20].
  static constexpr std::int64_t max_gap_bytes = 16 << 10;

  struct Joined : ByteRange {          ///< one request
    std::size_t first = 0, count = 0;  ///< of its entries
  };

  /// Sorts the ranges, which must not overlap if they are written.
  JoinedRanges(std::span<TransferRange> ranges, bool write);

  [[nodiscard]] const std::vector<Joined>& all() const noexcept { return joined_; }
  [[nodiscard]] std::span<const iovec> list(const Joined& one) const noexcept {
    return std::span(entries_).subspan(one.first, one.count);
  }
  /// A gap goes to memory of this object.
  [[nodiscard]] bool sieves() const noexcept { return !sink_.empty(); }
  /// What a read did not find because the file is shorter: zeros.
  void zero_beyond(const Joined& one, std::int64_t moved_bytes) const noexcept;

 private:
  void append(const TransferRange& range, std::int64_t gap_bytes);

  std::vector<Joined> joined_;
  std::vector<iovec> entries_;
  std::vector<std::byte> sink_;  ///< as long as the longest gap
};

}  // namespace outcore::dio
