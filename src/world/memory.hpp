#pragma once

#include <cstdint>

namespace outcore::world {

/// Memory given to this process: the machine's, or the smallest limit of a control group around it.
[[nodiscard]] std::int64_t total_memory_bytes();

}  // namespace outcore::world
