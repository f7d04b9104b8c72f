// A descriptor whose lock (flock) is held by this process alone.
#pragma once

#include "device/descriptor.hpp"
#include "outcore/origin.hpp"

namespace outcore::device {

/// A lock belongs to the open file, which a forked child shares: it would last until the child ends, too. So
/// a child closes the descriptors of all locks as it begins.
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
