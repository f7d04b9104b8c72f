// The place of each record: one word for each, in one-sided memory, which any process reads and swaps.
#pragma once

#include <cstdint>

#include "file/record_space.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"

namespace outcore::file {

/// The allocation of a version of a record, in 64 bits: stamp, class and granule. Zero: no record. Two
/// versions in the same place differ by their stamps.
class RecordEntry {
 public:
  RecordEntry() = default;
  explicit RecordEntry(std::int64_t word) noexcept : word_(static_cast<std::uint64_t>(word)) {}
  RecordEntry(const RecordSpace::Allocation& allocation, std::uint16_t stamp) noexcept
      : word_(static_cast<std::uint64_t>(stamp) << 48 |
              static_cast<std::uint64_t>(allocation.size_class) << 40 |
              static_cast<std::uint64_t>(allocation.granule)) {}

  static constexpr std::int64_t max_granules = std::int64_t{1} << 40;

  [[nodiscard]] std::int64_t word() const noexcept { return static_cast<std::int64_t>(word_); }
  [[nodiscard]] bool empty() const noexcept { return word_ == 0; }
  [[nodiscard]] std::uint16_t stamp() const noexcept { return static_cast<std::uint16_t>(word_ >> 48); }
  [[nodiscard]] RecordSpace::Allocation allocation() const noexcept {
    return {static_cast<std::int64_t>(word_ & (max_granules - 1)), static_cast<int>(word_ >> 40 & 0xFF)};
  }
  bool operator==(const RecordEntry&) const = default;

 private:
  std::uint64_t word_ = 0;
};

class RecordDirectory {
 public:
  RecordDirectory(World& world, std::int64_t records)  ///< collective
      : processes_(world.size()),
        region_(
            world.allocate((records + processes_ - 1) / processes_ * entry_bytes, "directory of records")) {}

  [[nodiscard]] RecordEntry entry(std::int64_t record) const {
    return RecordEntry(region_.use()->fetch_add(process(record), offset(record), 0));
  }

  /// Replaces an entry, and returns the old one.
  RecordEntry exchange(std::int64_t record, RecordEntry next) const {
    for (RecordEntry seen = entry(record);;) {
      const RecordEntry found(
          region_.use()->compare_swap(process(record), offset(record), seen.word(), next.word()));
      if (found == seen) return seen;
      seen = found;
    }
  }

 private:
  static constexpr std::int64_t entry_bytes = 8;
  [[nodiscard]] int process(std::int64_t record) const noexcept {
    return static_cast<int>(record % processes_);
  }
  [[nodiscard]] std::int64_t offset(std::int64_t record) const noexcept {
    return region_.offset() + record / processes_ * entry_bytes;
  }

  std::int64_t processes_;
  World::Region region_;
};

}  // namespace outcore::file
