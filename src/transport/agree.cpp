#include "transport/agree.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "outcore/error.hpp"
#include "transport/remote_error.hpp"

namespace outcore::transport {

void agree(Transport& transport, const std::function<void()>& step) {
  struct Outcome {
    int errno_value = 0, rank = 0;
    std::int64_t size_bytes = -1;
    char attempted[96] = {}, path[128] = {}, detail[512] = {};
  };
  Outcome mine;
  try {
    step();
  } catch (...) {
    const Error error = current_error("take part in a collective call");
    const ErrorContext& context = error.context();
    mine.errno_value = std::max(error.errno_value(), 1);
    mine.rank = error.rank();
    mine.size_bytes = context.size_bytes;
    context.attempted.copy(mine.attempted, sizeof mine.attempted - 1);
    context.path.copy(mine.path, sizeof mine.path - 1);
    context.detail.copy(mine.detail, sizeof mine.detail - 1);
  }
  std::vector<Outcome> all(static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (const Outcome& each : all)
    if (each.errno_value != 0)
      throw Error(each.errno_value,
                  {.attempted = each.attempted,
                   .path = each.path,
                   .size_bytes = each.size_bytes,
                   .detail = each.detail},
                  each.rank);
}

}  // namespace outcore::transport
