// System calls that a signal of the program interrupts.
#pragma once

#include <cerrno>

namespace outcore {

/// The result of a system call that does nothing where it fails with EINTR: the call is repeated, which ends
/// where signals come faster than it can be made.
template <class Call>
auto uninterrupted(const Call& call) noexcept {
  constexpr int max_attempts = 1000;
  auto result = call();
  for (int i = 1; i < max_attempts && result == -1 && errno == EINTR; ++i) result = call();
  return result;
}

}  // namespace outcore
