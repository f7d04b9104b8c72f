#pragma once

#include <cstdint>
#include <memory>

#include "outcore/world.hpp"

namespace outcore::world {

/// The budget of one of `processes` on this node: what was asked for (0: half of its share of the memory),
/// but not more than its share of what is given to them. Its origin names the limit that has decided.
[[nodiscard]] std::shared_ptr<Budget> make_budget(std::int64_t asked_bytes, int processes);

}  // namespace outcore::world
