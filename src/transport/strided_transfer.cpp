#include "transport/strided_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "outcore/error.hpp"

namespace outcore::transport {
namespace {

void check_process(int process, int processes, const char* attempted) {
  if (process < 0 || process >= processes)
    throw Error(EINVAL,
                {.attempted = attempted,
                 .detail = "process " + std::to_string(process) + " of " + std::to_string(processes)});
}

/// One axis of an accumulate, the stride in the target made positive.
struct Axis {
  std::int64_t count, to, from;
};

template <class Element>
void add_row(std::byte* to, const std::byte* from, const Axis& axis, std::int64_t count, Element alpha) {
  for (std::int64_t i = 0; i < count; ++i) {
    Element target, source;
    std::memcpy(&target, to + i * axis.to, sizeof(Element));
    std::memcpy(&source, from + i * axis.from, sizeof(Element));
    target += alpha * source;
    std::memcpy(to + i * axis.to, &target, sizeof(Element));
  }
}

template <class Element>
void add_contiguous(std::byte* to, const std::byte* from, std::int64_t count, Element alpha) {
  constexpr std::int64_t size = sizeof(Element);
  add_row<Element>(to, from, Axis{count, size, size}, count, alpha);
}

/// Holds the lock of one block at a time, and keeps it while the next elements lie in the same block.
class BlockGuard {
 public:
  BlockGuard(StripedLocks& locks, int process) : locks_(locks), process_(process) {}
  ~BlockGuard() {
    if (held_) held_->unlock();
  }
  BlockGuard(const BlockGuard&) = delete;
  BlockGuard& operator=(const BlockGuard&) = delete;
  void enter(std::int64_t block) {
    SharedLock& wanted = locks_.of(process_, block);
    if (&wanted == held_) return;
    if (held_) held_->unlock();
    held_ = &wanted;
    held_->lock();
  }

 private:
  StripedLocks& locks_;
  SharedLock* held_ = nullptr;
  int process_;
};

template <class Element>
class Accumulation {
 public:
  Accumulation(std::byte* part, const StridedTransfer& transfer, const void* alpha, StripedLocks& locks)
      : part_(part), to_(part + transfer.offset), from_(transfer.memory), guard_(locks, transfer.process) {
    std::memcpy(&alpha_, alpha, sizeof(Element));
    for (int i = 0; i < transfer.count.rank(); ++i) {
      Axis axis{transfer.count[i], transfer.stride_bytes[i], transfer.memory_stride_bytes[i]};
      if (axis.count == 1) continue;
      if (axis.to < 0) {
        to_ += (axis.count - 1) * axis.to;
        from_ += (axis.count - 1) * axis.from;
        axis.to = -axis.to;
        axis.from = -axis.from;
      }
      axes_[static_cast<std::size_t>(rank_++)] = axis;
    }
    std::sort(axes_.begin(), axes_.begin() + rank_, [](const Axis& a, const Axis& b) { return a.to > b.to; });
    if (rank_ == 0) axes_[static_cast<std::size_t>(rank_++)] = {1, sizeof(Element), sizeof(Element)};
  }
  void run() { add(to_, from_, 0); }

 private:
  void add(std::byte* to, const std::byte* from, int first) {
    const Axis& axis = axes_[static_cast<std::size_t>(first)];
    if (first == rank_ - 1) return add_in_blocks(to, from, axis);
    for (std::int64_t i = 0; i < axis.count; ++i) add(to + i * axis.to, from + i * axis.from, first + 1);
  }

  void add_in_blocks(std::byte* to, const std::byte* from, const Axis& axis) {
    constexpr std::int64_t size = sizeof(Element);
    for (std::int64_t done = 0; done < axis.count;) {
      const std::int64_t at = to + done * axis.to - part_;
      const std::int64_t block = at / StripedLocks::block_bytes;
      const std::int64_t left_bytes = (block + 1) * StripedLocks::block_bytes - at;
      const std::int64_t count =
          axis.to == 0 ? axis.count : std::min(axis.count - done, (left_bytes + axis.to - 1) / axis.to);
      guard_.enter(block);
      if (axis.to == size && axis.from == size)
        add_contiguous<Element>(to + done * size, from + done * size, count, alpha_);
      else
        add_row<Element>(to + done * axis.to, from + done * axis.from, axis, count, alpha_);
      done += count;
    }
  }

  std::byte *part_, *to_;
  const std::byte* from_;
  Element alpha_;
  BlockGuard guard_;
  std::array<Axis, max_rank> axes_;
  int rank_ = 0;
};

}  // namespace

void check_transfer(const StridedTransfer& transfer, int processes, std::size_t part_bytes,
                    const char* attempted) {
  check_process(transfer.process, processes, attempted);
  const int rank = transfer.count.rank();
  if (transfer.stride_bytes.rank() != rank || transfer.memory_stride_bytes.rank() != rank)
    throw Error(EINVAL, {.attempted = attempted, .detail = "counts and strides differ in number"});
  if (is_empty(transfer)) return;
  std::int64_t first = transfer.offset;
  std::int64_t last = transfer.offset + static_cast<std::int64_t>(outcore::size_bytes(transfer.type));
  for (int i = 0; i < rank; ++i) {
    const std::int64_t reach = (transfer.count[i] - 1) * transfer.stride_bytes[i];
    (reach < 0 ? first : last) += reach;
  }
  if (first < 0 || last > static_cast<std::int64_t>(part_bytes))
    throw Error(EINVAL, {.attempted = attempted,
                         .detail = "bytes " + std::to_string(first) + " to " + std::to_string(last) +
                                   " of a part of " + std::to_string(part_bytes)});
}

void check_number(int process, std::int64_t offset, int processes, std::size_t part_bytes) {
  check_process(process, processes, "atomic operation");
  if (offset < 0 || offset + 8 > static_cast<std::int64_t>(part_bytes) || offset % 8 != 0)
    throw Error(EINVAL, {.attempted = "atomic operation",
                         .detail = "offset " + std::to_string(offset) + " in a part of " +
                                   std::to_string(part_bytes) + " bytes: it must be a multiple of 8 inside"});
}

void check_accumulated(ElementType type) {
  if (type == ElementType::int8 || type == ElementType::int16 || type == ElementType::uint8)
    throw Error(EINVAL, {.attempted = "accumulate",
                         .detail = "elements of type " + std::string(name(type)) +
                                   ": only int32, int64, float and complex types can be accumulated"});
}

bool is_empty(const StridedTransfer& transfer) noexcept {
  for (const std::int64_t count : transfer.count.values())
    if (count <= 0) return true;
  return false;
}

bool is_contiguous(const StridedTransfer& transfer) noexcept {
  auto step = static_cast<std::int64_t>(outcore::size_bytes(transfer.type));
  for (int i = transfer.count.rank() - 1; i >= 0; --i) {
    if (transfer.count[i] != 1 &&
        (transfer.stride_bytes[i] != step || transfer.memory_stride_bytes[i] != step))
      return false;
    step *= transfer.count[i];
  }
  return true;
}

void accumulate(std::byte* part, const StridedTransfer& transfer, const void* alpha, StripedLocks& locks) {
  visit(transfer.type, [&](auto element) {
    using Element = decltype(element);
    if constexpr (sizeof(Element) >= 4) Accumulation<Element>(part, transfer, alpha, locks).run();
  });
}

}  // namespace outcore::transport
