// A count of completions in this process. Threads that wait for any of several requests watch it.
#pragma once

#include <cstdint>

namespace outcore {

/// Call it after a request has become done.
void announce_completion() noexcept;
[[nodiscard]] std::uint32_t completion_count() noexcept;
/// Returns when the count differs from `seen`.
void await_completion(std::uint32_t seen) noexcept;

}  // namespace outcore
