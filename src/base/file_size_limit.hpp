// The limit of the size of a file (ulimit -f), which the system enforces by a signal that ends the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outcore {

/// From now on a write beyond the limit is an error in place of the end of the process, unless the program
/// handles the signal itself. Nothing where there is no limit.
void outlive_file_size_limit() noexcept;
/// For errors of writes: what EFBIG comes from, if there is a limit; else empty.
[[nodiscard]] std::string file_size_limit(int errno_value);
/// Throws Error(EFBIG) if a file that is to have so many bytes must not. `attempted`: what is done with it.
void check_file_size(std::string_view attempted, const std::string& path, std::int64_t size_bytes);

}  // namespace outcore
