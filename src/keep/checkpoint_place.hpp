// The directory of a generation of a checkpoint: functions to make, hold (while it is read) and remove it.
#pragma once

#include <cstdint>
#include <string>

#include "device/held_lock.hpp"

namespace outcore::keep {

/// "arrays.<generation>".
[[nodiscard]] std::string place_name(std::int64_t generation);

/// Makes an empty directory in `root`, in place of an existing entry.
void make_place(const std::string& root, std::int64_t generation);
/// Holds a generation: a process that saves the next checkpoint does not remove it. Returns nothing if the
/// generation is not on this node. Error: ESTALE (it is gone, or being removed: another one was saved),
/// EINVAL (no directory).
[[nodiscard]] device::HeldLock hold_place(const std::string& root, std::int64_t generation);
/// Removes a generation, as far as possible. Throws nothing: the next saving removes the rest.
void remove_place(const std::string& root, std::int64_t generation) noexcept;
/// Removes all generations except one, and except those that a process holds.
void remove_other_places(const std::string& root, std::int64_t present) noexcept;

}  // namespace outcore::keep
