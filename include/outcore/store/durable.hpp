// Small files that are there in full or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "outcore/device/engine.hpp"

namespace outcore::store {

/// When this returns the file holds `bytes`, on stable storage; if it throws, or the machine stops meanwhile,
/// it holds those or what it held before. Written to a file beside it (`path` + ".new", which a crash may
/// leave and the next call overwrites), which then takes its name. One writer at a time.
void write_durably(const std::string& path, std::span<const std::byte> bytes,
                   device::Engine* engine = nullptr);

/// All of a file. Throws Error: EFBIG if it is larger than `most_bytes`, before memory is taken for it, and
/// what opening and reading throw.
[[nodiscard]] std::vector<std::byte> read_whole(const std::string& path, std::int64_t most_bytes,
                                                device::Engine* engine = nullptr);

/// Names made in, and removed from, a directory are on stable storage.
void sync_directory(const std::string& path);

}  // namespace outcore::store
