// Errors that travel from one process to another.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "outcore/error.hpp"

namespace outcore::transport {

/// An error as bytes, and back with the rank it came from. Reading bytes that are no error gives Error(EIO).
[[nodiscard]] std::vector<std::byte> to_bytes(const Error& error);
[[nodiscard]] Error error_from(std::span<const std::byte> bytes);

/// The exception being handled as an Error. Call it in a catch block.
[[nodiscard]] Error current_error(std::string_view what);

}  // namespace outcore::transport
