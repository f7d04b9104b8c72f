// Requests of the C interface: one kind of handle for all operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "outcore/request.hpp"

namespace outcore::capi {

/// What oc_wait needs of a request.
struct Outstanding {
  Request request;
  std::shared_ptr<void> keeps;  ///< the file or array, as long as the request is there
  std::int64_t wanted_bytes =
      0;                  ///< of a read that may be short: fewer is OC_END_OF_FILE. 0: of any other operation
  std::string path = {};  ///< of that read, for messages
};

/// The number by which C knows it from now on.
[[nodiscard]] std::int64_t number_of(Outstanding request);

/// Hands out the bytes moved; without a place for them, fewer than wanted are OC_END_OF_FILE.
int report_moved(const std::string& path, std::int64_t moved, std::int64_t wanted, std::int64_t* place);

}  // namespace outcore::capi
