#include "outcore/node_array.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <span>
#include <string>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "world/gate.hpp"

namespace outcore {
namespace {

constexpr const char* making = "create a node array";

std::string describe(ElementType type, const Extents& shape) {
  return "node array " + shape.text() + " of " + std::string(name(type));
}

/// Bytes of the part of each process: parts lie back to back, so together they are the array.
std::int64_t bytes_of_part(ElementType type, const Extents& shape, int processes) {
  auto bytes = static_cast<std::int64_t>(size_bytes(type));
  bool fits = shape.rank() > 0;
  for (const std::int64_t extent : shape.values())
    fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits || bytes > std::int64_t{1} << 62)
    throw Error(EINVAL,
                {.attempted = std::string(making) + " of shape " + shape.text(),
                 .detail = "a shape has 1 to 8 dimensions, none negative, and 64 bits count its bytes"});
  const std::int64_t step = std::int64_t{64} * processes;  // parts of whole cache lines
  return std::max<std::int64_t>((bytes + step - 1) / step, 1) * 64;
}

/// Of memory that processes share, hence not FUTEX_PRIVATE.
void futex(std::int32_t* word, int operation, std::int32_t value, const timespec* timeout) {
  syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

}  // namespace

NodeArray::NodeArray(World& world, const Extents& shape, ElementType type)
    : NodeArray(world, [&](ElementType& its_type) {
        its_type = type;
        return shape;
      }) {}

NodeArray::NodeArray(World& world, const Make& make) : world_(world) {
  transport::Transport& node = world.node_transport();
  std::int64_t part_bytes = 0;
  world::enter(node, making, [&] {
    shape_ = make(type_);
    part_bytes = bytes_of_part(type_, shape_, node.size());
    const std::int64_t rank = shape_.rank();
    const auto print = fingerprint(std::as_bytes(std::span(&rank, 1)), static_cast<std::uint64_t>(type_));
    return fingerprint(std::as_bytes(shape_.values()), print);
  });
  try {
    world::agree(node, making, [&] {
      world.budget().reserve(part_bytes, describe(type_, shape_));
      part_bytes_ = part_bytes;
    });
    segment_ = {node.allocate(static_cast<std::size_t>(part_bytes), true), "use a node array"};
    segment_->populate(0, part_bytes);
  } catch (...) {
    release();
    throw;
  }
}

NodeArray::~NodeArray() {
  release();
}

void NodeArray::release() noexcept {
  if (!segment_.here()) return;
  segment_ = {};
  world_.budget().release(std::exchange(part_bytes_, 0));
}

Strided NodeArray::view() const {
  if (closed())
    throw Error(EBADF, {.attempted = "use of the " + describe(type_, shape_), .detail = "it is closed"});
  return {segment_->direct(0), row_major(shape_, size_bytes(type_))};
}

void NodeArray::barrier() {
  (void)view();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  world::enter(world_.node_transport(), "barrier of a node array", 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::atomic_ref<std::int32_t> NodeArray::word(std::int64_t element) const {
  const Strided all = view();
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape_.values()) elements *= extent;
  if (type_ != ElementType::int32 || element < 0 || element >= elements)
    throw Error(EINVAL, {.attempted = "signal element " + std::to_string(element) + " of the " +
                                      describe(type_, shape_),
                         .detail = "signals are elements of int32 that are there"});
  return std::atomic_ref(reinterpret_cast<std::int32_t*>(all.data)[element]);
}

void NodeArray::post(std::int64_t element, std::int32_t value) {
  const auto signal = word(element);
  signal.store(value, std::memory_order_seq_cst);
  futex(reinterpret_cast<std::int32_t*>(view().data) + element, FUTEX_WAKE, INT_MAX, nullptr);
}

bool NodeArray::wait_for(std::int64_t element, std::int32_t least, std::chrono::microseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto signal = word(element);
  std::int32_t* const place = reinterpret_cast<std::int32_t*>(view().data) + element;
  const Clock::time_point until = Clock::now() + timeout;
  for (;;) {
    const std::int32_t found = signal.load(std::memory_order_seq_cst);
    if (found >= least) return true;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
    if (left <= 0) {
      if (timeout.count() > 0) watch();
      return false;
    }
    const timespec time{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    futex(place, FUTEX_WAIT, found, &time);  // reads once more: sees a value that was posted before
  }
}

/// A process that waits in intervals learns here that another process, which would post, has died.
void NodeArray::watch() {
  constexpr std::int64_t between_looks_s = 1;
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  std::int64_t before = watched_s_.load();
  if (now - before >= between_looks_s && watched_s_.compare_exchange_strong(before, now))
    world_.node_transport().watch();
}

void NodeArray::close() {
  if (closed() || !segment_.here()) return;
  world::enter(world_.node_transport(), "close a node array", 0);
  release();
}

}  // namespace outcore
