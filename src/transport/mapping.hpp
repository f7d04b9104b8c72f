// Memory from the system, in whole pages: initially zero, and physically present only once it is touched or
// populated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/sibling.hpp"

namespace outcore::transport {

inline constexpr std::size_t huge_page_bytes = 2 << 20;

/// The place of bytes in memory that processes of a host share, independent of the address at which each sees
/// it.
struct SharedLocation {
  std::uint64_t device, inode;  ///< of the file that is mapped
  std::int64_t offset;
};
inline constexpr SharedLocation nowhere{0, 0, -1};

/// A mapping. It begins at a huge page if it is large enough for one.
class Mapping {
 public:
  /// Memory of this process alone. Throws Error(ENOMEM).
  explicit Mapping(std::size_t size_bytes);
  /// Memory of a file, shared with all processes that map it.
  Mapping(int fd, std::size_t size_bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Zeros a range and gives its whole pages back to the system.
  void clear(std::byte* begin, std::size_t size_bytes) const noexcept;
  /// Allocates the memory of a range now, as huge pages if the system has them. Touched page by page, shared
  /// memory is allocated ten times as slowly, and a disk reads into it at half the rate. Any thread; existing
  /// contents stay.
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

/// Memory that another library has mapped, such as a window of MPI: if other processes share it, it is
/// registered as a Mapping is.
class OUTCORE_SIBLING ForeignMapping {
 public:
  /// All memory that was mapped together with this byte.
  explicit ForeignMapping(const std::byte* inside);
  /// Destroy it before the memory is unmapped: waits for its users.
  ~ForeignMapping();
  ForeignMapping(const ForeignMapping&) = delete;
  ForeignMapping& operator=(const ForeignMapping&) = delete;

 private:
  std::shared_ptr<Mapping::Pages> pages_;  // null: it is not shared
};

/// The place of bytes of this process; none if no known shared mapping holds all of them. Any thread.
[[nodiscard]] std::optional<SharedLocation> shared_location(std::span<const std::byte> bytes) noexcept;
/// The bytes at a place, as this process sees them; they stay mapped as long as the result is kept. Null if
/// no known mapping holds all of them. Any thread.
[[nodiscard]] std::shared_ptr<std::byte> see_shared(const SharedLocation& location,
                                                    std::size_t size_bytes) noexcept;

/// Whether the bytes belong to a ForeignMapping, whose destructor waits for their users. Any thread.
[[nodiscard]] bool is_foreign(const std::byte* seen) noexcept;

}  // namespace outcore::transport
