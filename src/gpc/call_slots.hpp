// Call slots: room for payloads and replies in memory that the processes of a host share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "outcore/extend/messages.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::gpc {

/// Memory for calls: 64 units; a slot is a run of units and is used again. Any thread.
class CallSlots : public std::enable_shared_from_this<CallSlots> {
 public:
  static constexpr std::size_t unit_bytes = transport::Messages::common_bytes / 64;
  static constexpr std::size_t max_bytes = 4 * unit_bytes;

  explicit CallSlots(std::span<std::byte> memory) noexcept : memory_(memory) {}

  /// A run of units; its destructor frees it.
  class Slot {
   public:
    Slot() noexcept = default;
    ~Slot() { clear(); }
    Slot(Slot&& other) noexcept { *this = std::move(other); }
    Slot& operator=(Slot&& other) noexcept;

    explicit operator bool() const noexcept { return units_ != 0; }
    [[nodiscard]] std::byte* data() const noexcept { return all_->memory_.data() + offset(); }
    [[nodiscard]] std::int32_t offset() const noexcept;  ///< in the memory of all
    /// Copies to the begin of the slot, past the caches: the cache of its last user (the host of a disk
    /// perhaps) would have to give up each line before a write (20 us for 32 kB). Measured: [M28].
    void fill(std::span<const std::byte> from) const noexcept;
    void clear() noexcept;
    /// Gives the slot up: another process may still write there, so it is not used again.
    void forfeit() noexcept { units_ = 0; }

   private:
    friend class CallSlots;
    std::shared_ptr<CallSlots> all_;
    std::uint64_t units_ = 0;
  };

  /// Empty if there is no slot: for sizes that are too large, or while too many are in use.
  [[nodiscard]] Slot try_take(std::size_t size_bytes) noexcept;

 private:
  std::span<std::byte> memory_;
  std::atomic<std::uint64_t> taken_{0};  // a bit for each unit
};

}  // namespace outcore::gpc
