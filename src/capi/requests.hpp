// Requests of the C interface: one kind of handle for all operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "outcore/request.hpp"

namespace outcore::capi {

/// A request with the facts that oc_wait needs.
struct Outstanding {
  Request request;
  std::shared_ptr<void> keeps;  ///< keeps the file or array alive as long as the request
  std::int64_t wanted_bytes =
      0;  ///< for a read that may be short: fewer bytes are OC_END_OF_FILE. 0: other operations
  std::string path = {};  ///< of such a read, for messages
};

/// Gives the request a number for C.
[[nodiscard]] std::int64_t number_of(Outstanding request);

/// Stores the number of bytes moved; if the place is NULL, fewer than wanted are OC_END_OF_FILE.
int report_moved(const std::string& path, std::int64_t moved, std::int64_t wanted, std::int64_t* place);

}  // namespace outcore::capi
