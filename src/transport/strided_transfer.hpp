// Common functions of back-ends for strided transfers.
#pragma once

#include <cstdint>

#include "base/sibling.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/striped_locks.hpp"

namespace outcore::transport {

/// Throws Error(EINVAL) unless the process exists and the transfer lies inside its part.
OUTCORE_SIBLING void check_transfer(const StridedTransfer& transfer, int processes, std::size_t part_bytes,
                                    const char* attempted);
/// The same for an int64 of fetch_add and compare_swap, which must be aligned.
OUTCORE_SIBLING void check_number(int process, std::int64_t offset, int processes, std::size_t part_bytes);
/// Throws Error(EINVAL) for a type that cannot be accumulated.
OUTCORE_SIBLING void check_accumulated(ElementType type);

/// Whether a transfer has no elements.
[[nodiscard]] OUTCORE_SIBLING bool is_empty(const StridedTransfer& transfer) noexcept;
/// Whether both sides are contiguous, in row-major order.
[[nodiscard]] OUTCORE_SIBLING bool is_contiguous(const StridedTransfer& transfer) noexcept;

/// target += alpha * memory, each block of the target under its lock. `part` is the address of offset 0 of
/// the transfer.
void accumulate(std::byte* part, const StridedTransfer& transfer, const void* alpha, StripedLocks& locks);

}  // namespace outcore::transport
