// A descriptor whose lock (flock) is held by this process alone.
#pragma once

#include <cstdint>

#include "device/descriptor.hpp"
#include "outcore/origin.hpp"

namespace outcore::device {

enum class Locked : std::uint8_t { yes, by_others, cannot };  ///< cannot: a file system without locks

/// flock that does not wait: `how` is LOCK_SH or LOCK_EX.
[[nodiscard]] Locked try_lock(const Descriptor& file, int how) noexcept;

/// A lock belongs to the open file, which a forked child shares, so the lock would also last until the child
/// ends. Therefore a child closes the descriptors of all locks as it begins.
class HeldLock {
 public:
  HeldLock() = default;
  explicit HeldLock(Descriptor file);
  ~HeldLock() { reset(); }
  HeldLock(HeldLock&& other) noexcept = default;
  HeldLock& operator=(HeldLock&& other) noexcept;

  [[nodiscard]] const Descriptor& file() const noexcept { return file_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  void reset() noexcept;

 private:
  Origin origin_;
  Descriptor file_;
};

}  // namespace outcore::device
