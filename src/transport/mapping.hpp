// Memory from the system, by whole pages: zero at first, there only once it is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

/// Where bytes lie in memory that processes of a host share, whatever address each of them sees it at.
struct SharedPlace {
  std::uint64_t device, inode;  ///< of the file that is mapped
  std::int64_t offset;
};

/// Of bytes of this process; nothing if no shared Mapping holds all of them. Any thread.
[[nodiscard]] std::optional<SharedPlace> shared_place(std::span<const std::byte> bytes) noexcept;
/// Copies from there; false if this process has no Mapping of it. Any thread.
[[nodiscard]] bool copy_shared(const SharedPlace& from, std::span<std::byte> into) noexcept;

}  // namespace outcore::transport
