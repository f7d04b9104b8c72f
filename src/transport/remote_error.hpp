// Errors that travel from one process to another.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "outcore/error.hpp"

namespace outcore::transport {

/// An error as bytes, and the reverse, with the rank of its process. Bytes that are no error give Error(EIO).
[[nodiscard]] std::vector<std::byte> to_bytes(const Error& error);
[[nodiscard]] Error error_from(std::span<const std::byte> bytes);

/// The current exception as an Error. Call it in a catch block.
[[nodiscard]] Error current_error(std::string_view what);

}  // namespace outcore::transport
