#pragma once

#include <string>

namespace outcore::transport {

/// Name of the machine this process runs on, made unique: machines may be called the same.
[[nodiscard]] std::string host_name();

}  // namespace outcore::transport
