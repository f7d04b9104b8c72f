// Ranges of one component file and their memory, joined into fewer requests where that pays.
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

/// Requests for a list of ranges. Neighbours become one request. A read also includes gaps that are cheaper
/// to read than another request is (data sieving, as in PASSION): their bytes go to unused memory. This
/// object must live until the requests are complete.
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
  /// Fills the bytes that a read did not find, because the file is shorter, with zeros.
  void zero_beyond(const Joined& one, std::int64_t moved_bytes) const noexcept;

 private:
  void append(const TransferRange& range, std::int64_t gap_bytes);

  std::vector<Joined> joined_;
  std::vector<iovec> entries_;
  std::vector<std::byte> sink_;  ///< as long as the longest gap
};

}  // namespace outcore::dio
