// The directory of a generation of a checkpoint: made, held while somebody reads it, removed.
#pragma once

#include <cstdint>
#include <string>

#include "device/held_lock.hpp"

namespace outcore::keep {

/// "arrays.<generation>".
[[nodiscard]] std::string place_name(std::int64_t generation);

/// An empty directory in `root`, in place of what is there.
void make_place(const std::string& root, std::int64_t generation);
/// Whoever saves the next checkpoint leaves the generation be while this is held; nothing if it is not on
/// this node. Error: ESTALE (it is gone, or goes: another one has been saved), EINVAL (no directory).
[[nodiscard]] device::HeldLock hold_place(const std::string& root, std::int64_t generation);
/// What can be removed of a generation. Throws nothing: what stays goes with the next one.
void remove_place(const std::string& root, std::int64_t generation) noexcept;
/// Removes all generations but one, and but those that somebody holds.
void remove_other_places(const std::string& root, std::int64_t present) noexcept;

}  // namespace outcore::keep
