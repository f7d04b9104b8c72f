#include "dio/stripes/stripes.hpp"

#include <cerrno>
#include <string>

#include "outcore/error.hpp"

namespace outcore::dio {

Stripes::Stripes(std::int64_t stripe_bytes, int components)
    : stripe_bytes_(stripe_bytes), components_(components) {
  if (stripe_bytes <= 0 || stripe_bytes % unit_bytes != 0 || components < 1)
    throw Error(EINVAL, {.attempted = "stripe a file",
                         .detail = "stripes of " + std::to_string(stripe_bytes) + " bytes over " +
                                   std::to_string(components) + " components; a stripe is a multiple of " +
                                   std::to_string(unit_bytes) + " bytes"});
}

std::int64_t Stripes::suitable_bytes(std::int64_t typical_request_bytes) {
  if (typical_request_bytes == 0) return usual_bytes;
  if (typical_request_bytes < 0)
    throw Error(EINVAL,
                {.attempted = "stripe a file",
                 .detail = "typical requests of " + std::to_string(typical_request_bytes) + " bytes"});
  const std::int64_t typical = std::min(typical_request_bytes, max_bytes);
  if (typical % unit_bytes == 0) {  // whole requests: several in a stripe if they are small
    const std::int64_t several = (min_bytes + typical - 1) / typical;
    return typical * several;
  }
  return std::min((8 * typical + unit_bytes - 1) / unit_bytes * unit_bytes, max_bytes);
}

std::int64_t Stripes::component_bytes(int component, std::int64_t length) const noexcept {
  const std::int64_t whole = length / stripe_bytes_, rest = length % stripe_bytes_;
  const std::int64_t rows = whole / components_, last = whole % components_;
  const std::int64_t extra = component < last ? stripe_bytes_ : component == last ? rest : 0;
  return rows * stripe_bytes_ + extra;
}

}  // namespace outcore::dio
