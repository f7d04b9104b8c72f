// Aligned memory for I/O, reused between requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sibling.hpp"

namespace outcore::device {

/// A buffer whose address and size suit direct I/O (4096). Comes from a process-wide pool and returns to it.
/// Above 1 MiB it has huge pages if the system offers them: a device then gets one piece of memory instead of
/// hundreds, which makes direct I/O up to twice as fast. So take one large buffer and divide it. Throws
/// Error(ENOMEM). Measured: [M1].
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size_bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  ///< as requested; capacity is rounded up
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

/// Bytes in the pool that no buffer uses, and a way to give them back to the system.
[[nodiscard]] std::int64_t pooled_bytes() noexcept;
OUTCORE_SIBLING void trim_pool() noexcept;

/// From now on the pool keeps at most a 64th of this budget, and at most 128 MiB; no budget accounts for this
/// memory.
void limit_pool(std::int64_t budget_bytes) noexcept;

}  // namespace outcore::device
