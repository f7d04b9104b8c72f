#include "device/cache_warm_up.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

constexpr std::size_t step_bytes = 1 << 20;

}  // namespace

CacheWarmUp::CacheWarmUp(int fd, std::uint32_t trace_file)
    : file_(open_at(AT_FDCWD, "/proc/self/fd/" + std::to_string(fd), O_RDONLY | O_CLOEXEC)),
      trace_file_(trace_file),
      buffer_(step_bytes),
      entry_{buffer_.data(), step_bytes} {
  if (!file_) throw Error(errno, {.attempted = "open for reading ahead"});
  operation_ = {.kind = Operation::Kind::read,
                .fd = file_.get(),
                .size_bytes = step_bytes,
                .list = &entry_,
                .list_count = 1};
  operation_.copies = true;
}

const Operation* CacheWarmUp::next() noexcept {
  if (over()) {
    buffer_ = {};
    return nullptr;
  }
  start_ns_ = trace::transfer_begins(false);
  return &operation_;
}

void CacheWarmUp::result(std::int64_t value) noexcept {
  const std::uint64_t now = trace::transfer_ends(false);
  if (value <= 0) return stop();  // the end of the file, or an error
  trace::record({.start_ns = start_ns_,
                 .end_ns = now,
                 .offset = operation_.offset,
                 .bytes = value,
                 .file = trace_file_,
                 .op = trace::Op::read_async,
                 .layer = trace::Layer::device,
                 .sequential = true});
  operation_.offset += value;
}

}  // namespace outcore::device
