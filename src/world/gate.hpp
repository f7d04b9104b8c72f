// The gate of collective calls of a world: at the beginning it checks that all processes make the same call,
// at the end whether all have succeeded.
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
/// If a process comes with a failure, fingerprints are not compared: all throw that of the lowest rank.
void enter(transport::Transport& transport, std::string_view what, std::uint64_t fingerprint,
           const std::optional<Error>& failure = {});

/// The same for a process that must compute its arguments first: `bring` does so here and returns their
/// fingerprint. If it throws at any process, all throw the error of the lowest rank.
void enter(transport::Transport& transport, std::string_view what,
           const std::function<std::uint64_t()>& bring);

/// For a process that is about to close, while others may still make a call: true once all close, false if
/// another process has made a different call, which fails there.
[[nodiscard]] bool enter_to_close(transport::Transport& transport);

/// If any process comes with an error, all throw that of the lowest rank. An error that all have thrown
/// already, in an inner gate, does not change. This is a gate like all others: if a signal has ended the step
/// of one process between its gates, that process closes the world while the others are here, and both must
/// learn of it.
void leave(transport::Transport& transport, const std::optional<Error>& failure);

/// Runs `step` at this process and leaves with its error: if it threw at any process, all throw.
void agree(transport::Transport& transport, std::string_view what, const std::function<void()>& step);

}  // namespace outcore::world
