// Memory from the system, by whole pages: zero at first, there only once it is touched, or populated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/sibling.hpp"

namespace outcore::transport {

inline constexpr std::size_t huge_page_bytes = 2 << 20;

/// Where bytes lie in memory that processes of a host share, whatever address each of them sees it at.
struct SharedLocation {
  std::uint64_t device, inode;  ///< of the file that is mapped
  std::int64_t offset;
};
inline constexpr SharedLocation nowhere{0, 0, -1};

/// Begins at a huge page if it has the size of one.
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
  /// Has the system give the memory of a range now, as huge pages where it has them: touched page by page,
  /// shared memory comes ten times as slowly, and a disk reads into it at half the rate. Any thread; what is
  /// there stays.
  void populate(std::byte* begin, std::size_t size_bytes) const noexcept;

 private:
  friend std::optional<SharedLocation> shared_location(std::span<const std::byte>) noexcept;
  friend std::shared_ptr<std::byte> see_shared(const SharedLocation&, std::size_t) noexcept;
  friend bool is_foreign(const std::byte*) noexcept;
  friend class ForeignMapping;
  struct Pages;
  Mapping(int fd, std::size_t size_bytes, int flags);
  std::shared_ptr<Pages> pages_;
  std::byte* data_ = nullptr;
  bool shared_;
};

/// What somebody else has mapped, as an MPI library has its windows: if other processes share it, it is known
/// as a Mapping is.
class OUTCORE_SIBLING ForeignMapping {
 public:
  /// All that was mapped together with this byte.
  explicit ForeignMapping(const std::byte* inside);
  /// To be destroyed before it is unmapped: waits for who uses it.
  ~ForeignMapping();
  ForeignMapping(const ForeignMapping&) = delete;
  ForeignMapping& operator=(const ForeignMapping&) = delete;

 private:
  std::shared_ptr<Mapping::Pages> pages_;  // null: it is not shared
};

/// Of bytes of this process; nothing if no shared mapping that is known holds all of them. Any thread.
[[nodiscard]] std::optional<SharedLocation> shared_location(std::span<const std::byte> bytes) noexcept;
/// That many bytes there, as this process sees them, mapped as long as this is kept; null if it knows of no
/// mapping of all of them. Any thread.
[[nodiscard]] std::shared_ptr<std::byte> see_shared(const SharedLocation& location,
                                                    std::size_t size_bytes) noexcept;

/// Whether that is of a ForeignMapping, which waits for who sees it. Any thread.
[[nodiscard]] bool is_foreign(const std::byte* seen) noexcept;

}  // namespace outcore::transport
