// The state machine of one request: operations out, results in. No threads, no system calls.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/request_state.hpp"
#include "device/buffer.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {

/// The facts of a file that a transfer needs.
struct Target {
  int buffered_fd = -1;
  int direct_fd = -1;  ///< -1: no direct I/O
  std::uint32_t memory_align = 0;
  /// At least a page, whatever the device allows: a page that is written directly by one request and through
  /// the page cache by another, at the same time, loses one of them.
  std::uint32_t offset_align = 0;
};

/// How a transfer moves its bytes.
enum class IoPath : std::uint8_t {
  buffered,   ///< through the page cache
  direct,     ///< aligned middle past the page cache, through a bounce buffer if the memory is not aligned
  scattered,  ///< small reads: through the page cache, and notes when they wait for the disk
  either      ///< reads: from the page cache if most is there; writes: if any is there; else directly.
              ///< Directly from and to the caller's memory if it is aligned, but for blocking reads: into
              ///< memory of ours made of huge pages, which is faster by more than the copy costs
};

/// A transfer; also the request of a nonblocking one.
class Transfer final : public Task, public Request::State, public std::enable_shared_from_this<Transfer> {
 public:
  /// Gets completions, and makes the errors. Must outlive its transfers.
  struct Owner {
    virtual void completed(Transfer& transfer) noexcept = 0;
    /// Marks the request of a nonblocking transfer as complete.
    virtual void ended() noexcept {}
    [[nodiscard]] virtual Error error_of(const Transfer& transfer) const = 0;
    virtual void waited(const Transfer& transfer, std::uint64_t nanoseconds) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  /// Requests below this size go through the page cache: there, a plain call is the fastest.
  static constexpr std::int64_t direct_above_bytes = 64 << 10;

  /// `list` is copied unless it has one entry or `blocking` says that it outlives the transfer.
  Transfer(Operation::Kind kind, IoPath io_path, const Target& target, std::span<const iovec> list,
           std::int64_t offset, Owner& owner, bool blocking);
  const Operation* next() noexcept override;
  void result(std::int64_t value) noexcept override;

  /// Begins by reserving space on the disk; goes on if that fails. Before submission.
  void reserve(std::int64_t offset, std::int64_t size_bytes) noexcept;

  /// Keeps the owner alive as long as the request; set before submission.
  void keep(std::shared_ptr<Owner> owner) { kept_ = std::move(owner); }

  [[nodiscard]] bool done() const noexcept override { return done_.load(std::memory_order_acquire) != 0; }
  void finish() override;
  void begin_wait() override;
  void end_wait(std::uint64_t waited_ns) noexcept override;  ///< books the time to the file

  // The following is final once the transfer is complete.
  [[nodiscard]] std::exception_ptr error() const override;
  [[nodiscard]] std::int64_t value() const noexcept override { return moved_; }
  [[nodiscard]] int errno_value() const noexcept { return error_; }
  [[nodiscard]] std::int64_t moved_bytes() const noexcept { return moved_; }
  [[nodiscard]] std::int64_t direct_bytes() const noexcept { return direct_; }   ///< past the page cache
  [[nodiscard]] bool missed() const noexcept { return missed_ || direct_ > 0; }  ///< waited for the disk
  [[nodiscard]] std::int64_t size_bytes() const noexcept { return size_; }
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  [[nodiscard]] bool is_write() const noexcept { return kind_ == Operation::Kind::write; }
  [[nodiscard]] bool blocking() const noexcept { return blocking_; }
  [[nodiscard]] Owner& owner() const noexcept { return owner_; }

  std::uint64_t start_ns = 0;   ///< for the owner's trace
  std::uint8_t stands_for = 1;  ///< the same: as trace::Event::stands_for
  bool sequential = false;      ///< the same: starts where the last request of its kind ended
  trace::Asker asker;           ///< the same
  std::function<void(Transfer&)>
      then;                      ///< called when a nonblocking transfer is complete, if set before it begins
  std::int64_t new_from = 0;     ///< of a write: where its new space begins
  std::int64_t free_bytes = -1;  ///< set by the owner when the device was full

 private:
  enum class Step : std::uint8_t { reserve, look, ask, try_cache, buffered, direct };

  const Operation* complete() noexcept;
  const Operation* buffered(std::int64_t limit, bool cached_only) noexcept;
  const Operation* direct(std::int64_t limit) noexcept;
  const Operation* bounced(std::int64_t limit) noexcept;
  const Operation* read_around(std::int64_t limit) noexcept;
  const Operation* hand_out(int fd, const iovec* list, unsigned count, std::int64_t size) noexcept;
  void note_resident(std::int64_t bytes) noexcept;
  void note_missed() noexcept;
  bool note_error(int errno_value) noexcept;
  void advance(std::int64_t bytes) noexcept;
  void copy_bounced(std::int64_t bytes, bool to_user) noexcept;
  [[nodiscard]] bool memory_suits(std::int64_t limit) const noexcept;
  unsigned fill_window(std::int64_t& limit) noexcept;

  const Operation::Kind kind_;
  const IoPath io_path_;
  Step step_ = Step::buffered, after_reserve_ = Step::buffered;
  const bool blocking_;
  bool ended_ = false;                             ///< end of the file, or failed
  bool missed_ = false;                            ///< a scattered read that had to wait for the disk
  bool bouncing_ = false;                          ///< the operation under way uses bounce_
  std::int64_t bounce_skip_ = 0, bounce_max_ = 0;  ///< the part of it that is wanted
  int error_ = 0;
  int retries_ = 0;  ///< in succession, without progress
  std::atomic<std::uint32_t> done_{0};

  const Target target_;
  const std::int64_t offset_;
  std::int64_t size_ = 0, moved_ = 0, direct_ = 0;

  iovec single_{};             ///< the list, when it has one entry
  std::vector<iovec> copied_;  ///< the list, when it is longer and may not outlive the call
  std::span<const iovec> list_;
  std::size_t entry_ = 0, skip_ = 0;  ///< position: entry of the list, bytes into it
  iovec window_single_{};
  std::vector<iovec> window_;  ///< list of the operation under way
  Buffer bounce_;
  Operation operation_;

  Owner& owner_;
  std::shared_ptr<Owner> kept_;
};

}  // namespace outcore::device
