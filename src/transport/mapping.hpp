// Memory from the system, by whole pages: zero at first, there only once it is touched.
#pragma once

#include <cstddef>

namespace outcore::transport {

class Mapping {
 public:
  /// Of this process alone. Throws Error(ENOMEM).
  explicit Mapping(std::size_t size_bytes);
  /// Of a file, shared with all that map it.
  Mapping(int fd, std::size_t size_bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Zeros a range and gives its whole pages back to the system.
  void clear(std::byte* begin, std::size_t size_bytes) const noexcept;

 private:
  Mapping(int fd, std::size_t size_bytes, int flags);
  std::byte* data_ = nullptr;
  std::size_t size_bytes_;
  bool shared_;
};

}  // namespace outcore::transport
