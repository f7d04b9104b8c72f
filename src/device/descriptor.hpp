// Facts that the system reports about descriptors and memory.
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
  /// Releases the descriptor to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes; 0 or an errno value (some file systems report failed writes only here).
  int reset() noexcept;

 private:
  int fd_ = -1;
};

/// As openat(2), or as open(2) with `AT_FDCWD`; repeats the call if a signal interrupts it. Empty, with
/// errno, if it fails.
[[nodiscard]] Descriptor open_at(int directory, const std::string& name, int flags,
                                 unsigned mode = 0) noexcept;

struct DirectAlign {
  std::uint32_t memory = 0, offset = 0;  ///< 0: no direct I/O
};

/// Alignment that direct I/O on an open file needs: as the file system reports it, else 4096. None for files
/// in RAM.
[[nodiscard]] DirectAlign direct_align(int fd) noexcept;

}  // namespace outcore::device
