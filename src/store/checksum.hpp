// CRC-32C (Castagnoli), the checksum of everything Outcore keeps on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace outcore::store {

/// Checksum of `bytes`. If `before` is the checksum of preceding bytes, the result is that of both together.
/// Detects every change of up to 32 bits in a row, and of up to three bits anywhere in blocks of 128 KiB. As
/// fast as memory where the processor has instructions for it (x86-64), about 1 GB/s elsewhere.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Checksum of a piece followed by another of `second_bytes` bytes, from the checksums of both.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second,
                                           std::uint64_t second_bytes) noexcept;

/// The implementations that this processor can run, the best last, and the checksum by one of them. For
/// tests.
[[nodiscard]] std::vector<std::string> crc32c_implementations();
[[nodiscard]] std::uint32_t crc32c_by(const std::string& implementation, std::span<const std::byte> bytes,
                                      std::uint32_t before = 0);

}  // namespace outcore::store
