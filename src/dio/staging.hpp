// Memory for bytes on their way between processes and disks, accounted to the budget; chunks and stripes use
// it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "device/buffer.hpp"
#include "outcore/budget.hpp"

namespace outcore::dio {

/// A buffer that is accounted while it lives. The budget must outlive it.
class BudgetedBuffer {
 public:
  /// Throws Error(ENOMEM) as Budget::reserve does, with `what` in the message, or if the system has no
  /// memory.
  BudgetedBuffer(Budget& budget, std::int64_t size_bytes, std::string_view what)
      : reserved_(budget, size_bytes, what), buffer_(static_cast<std::size_t>(size_bytes)) {}
  [[nodiscard]] std::span<std::byte> span() const noexcept { return buffer_.span(); }

 private:
  Reservation reserved_;
  device::Buffer buffer_;
};

/// Memory for requests of a process to others: at most a limit at once. Any thread.
class Staging {
 public:
  explicit Staging(Budget& budget);
  void acquire(std::int64_t bytes);  ///< waits for others; Error(ENOMEM) if the budget has not even this left
  [[nodiscard]] bool try_acquire(std::int64_t bytes);
  void release(std::int64_t bytes) noexcept;

 private:
  Budget& budget_;
  const std::int64_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::int64_t used_bytes_ = 0;
};

/// An acquired buffer.
class Staged {
 public:
  Staged(std::shared_ptr<Staging> staging, std::int64_t bytes);
  ~Staged();
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  [[nodiscard]] std::span<std::byte> span() const noexcept { return buffer_.span(); }

 private:
  std::shared_ptr<Staging> staging_;
  std::int64_t bytes_;
  device::Buffer buffer_;
};

/// Memory for the replies of an owner: a fixed number of small and large slots. So an owner needs the same
/// memory whatever the number of clients. Any thread.
class ReplySlots : public std::enable_shared_from_this<ReplySlots> {
 public:
  static constexpr std::int64_t small_bytes = 64 << 10, large_bytes = 1 << 20;

  /// Throws Error(ENOMEM) as a BudgetedBuffer does.
  explicit ReplySlots(Budget& budget);
  /// Null if no slot is free now. A released slot is used again.
  [[nodiscard]] std::shared_ptr<std::byte> try_take(std::int64_t wanted_bytes);
  [[nodiscard]] std::shared_ptr<std::byte> take(std::int64_t wanted_bytes);  ///< waits until a slot is free

 private:
  static constexpr std::int64_t small_count = 64, large_count = 8;

  [[nodiscard]] std::vector<std::byte*>& slots_for(std::int64_t wanted_bytes) noexcept {
    return wanted_bytes <= small_bytes ? small_ : large_;
  }
  [[nodiscard]] static std::byte* take_last(std::vector<std::byte*>& free) noexcept;
  [[nodiscard]] std::shared_ptr<std::byte> owned(std::byte* slot, std::vector<std::byte*>& free);

  BudgetedBuffer memory_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::byte*> small_, large_;
};

}  // namespace outcore::dio
