// The limit of the size of a file (ulimit -f), which the system enforces by a signal that ends the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outcore {

/// From now on a write beyond the limit is an error and does not end the process, unless the program handles
/// the signal itself. Does nothing if there is no limit.
void outlive_file_size_limit() noexcept;
/// For errors of writes: the cause of EFBIG, if there is a limit; else empty.
[[nodiscard]] std::string file_size_limit(int errno_value);
/// Throws Error(EFBIG) if the limit forbids a file of this size. `attempted`: the operation on the file.
void check_file_size(std::string_view attempted, const std::string& path, std::int64_t size_bytes);

}  // namespace outcore
