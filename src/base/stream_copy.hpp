// Copies past the caches of the processor, for data that would not stay in them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore {

/// As memcpy, but lines that are written in full are neither read first nor kept in the cache, which makes
/// writes to memory twice as fast. Other threads see the bytes after the next `end_streams` of this thread.
/// Measured: [M23].
void stream_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept;
void end_streams() noexcept;

/// While it lives, copy_strided in this thread streams long runs, if the given total number of bytes is too
/// large for the caches. May be nested; ends its streams.
class StreamedCopies {
 public:
  explicit StreamedCopies(std::int64_t all_bytes) noexcept;
  ~StreamedCopies();
  StreamedCopies(const StreamedCopies&) = delete;
  StreamedCopies& operator=(const StreamedCopies&) = delete;
  [[nodiscard]] static bool wanted() noexcept;

 private:
  bool before_;
};

}  // namespace outcore
