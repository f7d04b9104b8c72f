// CRC-32C (Castagnoli), the checksum of everything Outcore keeps on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outcore::store {

/// Checksum of `bytes`; with `before`, the checksum of what came before them, that of both together.
/// Detects every change of up to 32 bits in a row, and of up to three bits anywhere in blocks of 128 KiB.
/// As fast as memory where the processor has the instruction (x86-64 with SSE 4.2), about 1 GB/s elsewhere.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Checksum of a piece followed by another of `second_bytes` bytes, from the checksums of both.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second,
                                           std::uint64_t second_bytes) noexcept;

/// The same by tables, as where the instruction is missing. For tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0) noexcept;
[[nodiscard]] bool crc32c_has_instruction() noexcept;

}  // namespace outcore::store
