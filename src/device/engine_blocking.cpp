#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "device/blocking.hpp"
#include "device/worker.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;

constexpr std::int64_t buffer_bytes = 8 << 10, page_bytes = 4 << 10;

class Blocking final : public Engine {
 public:
  Blocking(std::unique_ptr<Engine> inner, bool fortran) : inner_(std::move(inner)), fortran_(fortran) {}

  const char* name() const noexcept override { return inner_->name(); }
  void submit(std::shared_ptr<Task> task) override { run_to_end(*this, *task); }
  void stop() noexcept override { inner_->stop(); }

  std::int64_t run(const Operation& operation) noexcept override {
    const bool moves = operation.kind == Kind::read || operation.kind == Kind::write;
    const bool divided =
        fortran_ && moves && !operation.cached_only && operation.size_bytes > buffer_bytes / 2;
    return divided ? run_divided(operation) : inner_->run(operation);
  }

 private:
  std::int64_t run_divided(const Operation& operation) noexcept;

  std::unique_ptr<Engine> inner_;
  const bool fortran_;
};

/// The sizes of the pieces; those that are zero are left out.
std::array<std::int64_t, 3> pieces_of(const Operation& o) {
  if (o.kind == Kind::read) return {std::min(buffer_bytes, o.size_bytes), o.size_bytes - buffer_bytes, 0};
  const std::int64_t head = o.copies ? 4 : page_bytes, tail = o.copies ? 8 : page_bytes;
  return {head, o.size_bytes - head - tail, tail};
}

/// `size` bytes of a list, from `skip` on.
std::vector<iovec> part_of(std::span<const iovec> list, std::int64_t skip, std::int64_t size) {
  std::vector<iovec> part;
  auto from = static_cast<std::size_t>(skip), left = static_cast<std::size_t>(size);
  for (const iovec& entry : list) {
    const std::size_t length = std::min(entry.iov_len - std::min(from, entry.iov_len), left);
    if (length > 0) part.push_back({static_cast<char*>(entry.iov_base) + from, length});
    from -= std::min(from, entry.iov_len);
    left -= length;
  }
  return part;
}

/// Bytes moved before a piece failed count as the result; the task continues there and gets the error.
std::int64_t Blocking::run_divided(const Operation& operation) noexcept try {
  std::int64_t moved = 0;
  for (const std::int64_t size : pieces_of(operation)) {
    if (size <= 0) continue;
    const auto list = part_of({operation.list, operation.list_count}, moved, size);
    Operation piece = operation;
    piece.offset += moved;
    piece.size_bytes = size;
    piece.list = list.data();
    piece.list_count = static_cast<unsigned>(list.size());
    const std::int64_t value = inner_->run(piece);
    if (value < 0) return moved > 0 ? moved : value;
    moved += value;
    if (value < size) break;
  }
  return moved;
} catch (const std::bad_alloc&) {
  return -ENOMEM;
}

}  // namespace

std::unique_ptr<Engine> make_blocking_engine(std::unique_ptr<Engine> inner, Requests requests) {
  if (requests == Requests::asynchronous)
    throw Error(EINVAL, {.attempted = "blocking engine", .detail = "asynchronous requests need none"});
  return std::make_unique<Blocking>(std::move(inner), requests == Requests::fortran);
}

}  // namespace outcore::device
