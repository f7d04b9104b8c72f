#include "transport/memory_segment.hpp"

#include <atomic>
#include <cstring>
#include <new>

#include "base/request_state.hpp"
#include "transport/strided_transfer.hpp"

namespace outcore::transport {
namespace {

/// If parts are large, the first begins at a huge page. Untouched pages of the header cost nothing.
constexpr std::size_t header_bytes(std::size_t part_bytes) {
  static_assert(sizeof(StripedLocks) <= huge_page_bytes);
  return part_bytes >= huge_page_bytes ? huge_page_bytes : (sizeof(StripedLocks) + 4095) / 4096 * 4096;
}

void get_now(const SharedParts& parts, const StridedTransfer& transfer) {
  copy_strided(transfer.memory, transfer.memory_stride_bytes, parts.part(transfer.process) + transfer.offset,
               transfer.stride_bytes, transfer.count, size_bytes(transfer.type));
}

/// A get that has not begun.
class LateGet final : public FinishedByWaiter {
 public:
  LateGet(std::shared_ptr<const SharedParts> parts, const StridedTransfer& transfer)
      : parts_(std::move(parts)), transfer_(transfer) {}
  ~LateGet() override { finish_quietly(); }
  [[nodiscard]] bool done() const noexcept override { return finished() || asked_; }
  bool help() noexcept override {
    asked_ = true;
    return true;
  }

 private:
  void end() override { get_now(*parts_, transfer_); }

  std::shared_ptr<const SharedParts> parts_;
  StridedTransfer transfer_;
  std::atomic<bool> asked_{false};
};

class MemorySegment final : public Segment {
 public:
  MemorySegment(std::shared_ptr<const SharedParts> parts, int rank, PartReach reach)
      : parts_(std::move(parts)), rank_(rank), reach_(reach) {
    local_ = parts_->part(rank);
    size_bytes_ = parts_->part_bytes();
  }

  std::byte* direct(int process) const noexcept override {
    return reach_ == PartReach::direct || process == rank_ ? parts_->part(process) : nullptr;
  }

  Request get(const StridedTransfer& transfer) override {
    check(transfer, "get");
    if (is_empty(transfer)) return {};
    if (reach_ == PartReach::hidden) return Request(std::make_shared<LateGet>(parts_, transfer));
    get_now(*parts_, transfer);
    return {};
  }

  Request put(const StridedTransfer& transfer) override {
    check(transfer, "put");
    if (is_empty(transfer)) return {};
    copy_strided(parts_->part(transfer.process) + transfer.offset, transfer.stride_bytes, transfer.memory,
                 transfer.memory_stride_bytes, transfer.count, outcore::size_bytes(transfer.type));
    return {};
  }

  Request accumulate(const StridedTransfer& transfer, const void* alpha) override {
    check(transfer, "accumulate");
    check_accumulated(transfer.type);
    if (!is_empty(transfer))
      transport::accumulate(parts_->part(transfer.process), transfer, alpha, parts_->locks());
    return {};
  }

  std::int64_t fetch_add(int process, std::int64_t offset, std::int64_t value) override {
    return number(process, offset).fetch_add(value);
  }

  std::int64_t compare_swap(int process, std::int64_t offset, std::int64_t expected,
                            std::int64_t value) override {
    number(process, offset).compare_exchange_strong(expected, value);
    return expected;
  }

  void flush() override { std::atomic_thread_fence(std::memory_order_seq_cst); }

  void clear(std::int64_t offset, std::int64_t size) override {
    parts_->mapping().clear(local_ + offset, static_cast<std::size_t>(size));
  }

  void populate(std::int64_t offset, std::int64_t size) override {
    parts_->mapping().populate(local_ + offset, static_cast<std::size_t>(size));
  }

 private:
  void check(const StridedTransfer& transfer, const char* attempted) const {
    check_transfer(transfer, parts_->processes(), size_bytes_, attempted);
  }

  std::atomic_ref<std::int64_t> number(int process, std::int64_t offset) const {
    check_number(process, offset, parts_->processes(), size_bytes_);
    return std::atomic_ref(*reinterpret_cast<std::int64_t*>(parts_->part(process) + offset));
  }

  std::shared_ptr<const SharedParts> parts_;
  int rank_;
  PartReach reach_;
};

}  // namespace

std::size_t SharedParts::file_bytes(int processes, std::size_t part_bytes) {
  return header_bytes(part_bytes) + static_cast<std::size_t>(processes) * part_bytes;
}

SharedParts::SharedParts(int processes, std::size_t part_bytes)
    : mapping_(file_bytes(processes, part_bytes)), processes_(processes), part_bytes_(part_bytes) {}

SharedParts::SharedParts(int fd, int processes, std::size_t part_bytes)
    : mapping_(fd, file_bytes(processes, part_bytes)), processes_(processes), part_bytes_(part_bytes) {}

StripedLocks& SharedParts::locks() const noexcept {
  return *std::launder(reinterpret_cast<StripedLocks*>(mapping_.data()));  // locks in zeroed memory are open
}

std::byte* SharedParts::part(int process) const noexcept {
  return mapping_.data() + header_bytes(part_bytes_) + static_cast<std::size_t>(process) * part_bytes_;
}

std::unique_ptr<Segment> memory_segment(std::shared_ptr<const SharedParts> parts, int rank, PartReach reach) {
  return std::make_unique<MemorySegment>(std::move(parts), rank, reach);
}

}  // namespace outcore::transport
