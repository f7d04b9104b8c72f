// What the system says about descriptors and memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace outcore::device {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  /// It is the caller's from now on.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes; 0 or an errno value (some file systems report failed writes only here).
  int reset() noexcept;

 private:
  int fd_ = -1;
};

/// As openat(2), and `AT_FDCWD` as open(2): also where a signal has interrupted it. None if it fails, with
/// errno.
[[nodiscard]] Descriptor open_at(int directory, const std::string& name, int flags,
                                 unsigned mode = 0) noexcept;

struct DirectAlign {
  std::uint32_t memory = 0, offset = 0;  ///< 0: no direct I/O
};

/// Alignment that direct I/O on an open file needs: asked from the file system, else 4096. None in RAM.
[[nodiscard]] DirectAlign direct_align(int fd) noexcept;

}  // namespace outcore::device
