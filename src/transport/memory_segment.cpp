#include "transport/memory_segment.hpp"

#include <atomic>
#include <cstring>
#include <new>

#include "base/request_state.hpp"
#include "transport/piece.hpp"

namespace outcore::transport {
namespace {

/// Of large parts the first begins at a huge page. What is not touched of the header costs nothing.
constexpr std::size_t header_bytes(std::size_t part_bytes) {
  static_assert(sizeof(StripedLocks) <= huge_page_bytes);
  return part_bytes >= huge_page_bytes ? huge_page_bytes : (sizeof(StripedLocks) + 4095) / 4096 * 4096;
}

void get_now(const SharedParts& parts, const Piece& piece) {
  copy_strided(piece.memory, piece.memory_stride_bytes, parts.part(piece.process) + piece.offset,
               piece.stride_bytes, piece.count, size_bytes(piece.type));
}

/// A get that has not begun.
class LateGet final : public FinishedByWaiter {
 public:
  LateGet(std::shared_ptr<const SharedParts> parts, const Piece& piece)
      : parts_(std::move(parts)), piece_(piece) {}
  ~LateGet() override { finish_quietly(); }
  [[nodiscard]] bool done() const noexcept override { return finished() || asked_; }
  bool help() noexcept override {
    asked_ = true;
    return true;
  }

 private:
  void end() override { get_now(*parts_, piece_); }

  std::shared_ptr<const SharedParts> parts_;
  Piece piece_;
  std::atomic<bool> asked_{false};
};

class MemorySegment final : public Segment {
 public:
  MemorySegment(std::shared_ptr<const SharedParts> parts, int rank, Reach reach)
      : parts_(std::move(parts)), rank_(rank), reach_(reach) {
    local_ = parts_->part(rank);
    size_bytes_ = parts_->part_bytes();
  }

  std::byte* direct(int process) const noexcept override {
    return reach_ == Reach::direct || process == rank_ ? parts_->part(process) : nullptr;
  }

  Request get(const Piece& piece) override {
    check(piece, "get");
    if (is_empty(piece)) return {};
    if (reach_ == Reach::hidden) return Request(std::make_shared<LateGet>(parts_, piece));
    get_now(*parts_, piece);
    return {};
  }

  Request put(const Piece& piece) override {
    check(piece, "put");
    if (is_empty(piece)) return {};
    copy_strided(parts_->part(piece.process) + piece.offset, piece.stride_bytes, piece.memory,
                 piece.memory_stride_bytes, piece.count, outcore::size_bytes(piece.type));
    return {};
  }

  Request accumulate(const Piece& piece, const void* alpha) override {
    check(piece, "accumulate");
    check_accumulated(piece.type);
    if (!is_empty(piece)) transport::accumulate(parts_->part(piece.process), piece, alpha, parts_->locks());
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
  void check(const Piece& piece, const char* attempted) const {
    check_piece(piece, parts_->processes(), size_bytes_, attempted);
  }

  std::atomic_ref<std::int64_t> number(int process, std::int64_t offset) const {
    check_number(process, offset, parts_->processes(), size_bytes_);
    return std::atomic_ref(*reinterpret_cast<std::int64_t*>(parts_->part(process) + offset));
  }

  std::shared_ptr<const SharedParts> parts_;
  int rank_;
  Reach reach_;
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
  return *std::launder(reinterpret_cast<StripedLocks*>(mapping_.data()));  // zeroed memory is open locks
}

std::byte* SharedParts::part(int process) const noexcept {
  return mapping_.data() + header_bytes(part_bytes_) + static_cast<std::size_t>(process) * part_bytes_;
}

std::unique_ptr<Segment> memory_segment(std::shared_ptr<const SharedParts> parts, int rank, Reach reach) {
  return std::make_unique<MemorySegment>(std::move(parts), rank, reach);
}

}  // namespace outcore::transport
