// System calls that a signal of the program interrupts.
#pragma once

#include <cerrno>

namespace outcore {

/// The result of a system call that has done nothing if it fails with EINTR. The call is repeated, but not
/// for ever, in case signals come faster than calls.
template <class Call>
auto uninterrupted(const Call& call) noexcept {
  constexpr int max_attempts = 1000;
  auto result = call();
  for (int i = 1; i < max_attempts && result == -1 && errno == EINTR; ++i) result = call();
  return result;
}

}  // namespace outcore
