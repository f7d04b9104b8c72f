#pragma once

#include <cstdint>
#include <memory>

#include "outcore/world.hpp"

namespace outcore::world {

/// The budget of one of `processes` on this node: `asked_bytes` (0: half of its share of the memory), but not
/// more than its share of the memory that the processes may use. Its origin names the limit that applied.
[[nodiscard]] std::shared_ptr<Budget> make_budget(std::int64_t asked_bytes, int processes);

}  // namespace outcore::world
