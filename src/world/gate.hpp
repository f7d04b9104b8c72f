// What collective calls of a world begin and end with: finding out that all processes are here, and how it
// went.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::world {

/// Returns when all processes have come with the same fingerprint; if they have not, all throw Error(EINVAL).
/// With a failure, what a process came with is not even worth comparing: all throw that of the lowest rank.
void enter(transport::Transport& transport, std::string_view what, std::uint64_t fingerprint,
           const std::optional<Error>& failure = {});

/// The same for a process that first has to make what it comes with: `bring` does so, here, and says its
/// fingerprint. If it throws anywhere, all throw that of the lowest rank.
void enter(transport::Transport& transport, std::string_view what,
           const std::function<std::uint64_t()>& bring);

/// What a process says that is about to leave for good, while the others may still call something: true once
/// they all say so, false if another has called something else, which is an error there.
[[nodiscard]] bool enter_to_close(transport::Transport& transport);

/// All throw the error of the lowest rank that comes with one, if any does. An error that all have thrown
/// already, in a gate within, stays what it is. A gate like all others: where a signal has ended the step of
/// one process between its gates, that process closes the world while the rest are here, and both must learn
/// of it.
void leave(transport::Transport& transport, const std::optional<Error>& failure);

/// Runs `step` at this process and leaves with what it threw: all throw if it threw anywhere.
void agree(transport::Transport& transport, std::string_view what, const std::function<void()>& step);

}  // namespace outcore::world
