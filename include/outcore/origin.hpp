// The process in which an object was made. A forked child has the memory of its parent, but none of its
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "outcore/api.h"

namespace outcore {

/// The process that made an object. Each object has one that needs threads, files or memory of that process.
/// In a forked child, calls on the object throw Error(EBADF) at once, and its destructor touches nothing: its
/// resources are the parent's.
class OUTCORE_API Origin {
 public:
  Origin() noexcept : generation_(present.load(std::memory_order_relaxed)) {}  ///< this process
  /// Whether the object was made in this process. Costs about a nanosecond.
  [[nodiscard]] bool here() const noexcept { return generation_ == present.load(std::memory_order_relaxed); }
  /// Throws Error(EBADF) in a child; the message names the parent. `attempted` as in ErrorContext.
  void check(std::string_view attempted) const {
    if (!here()) [[unlikely]]
      refuse(attempted);
  }
  static void count() noexcept { present.fetch_add(1, std::memory_order_relaxed); }  ///< a child has begun

 private:
  [[noreturn]] void refuse(std::string_view attempted) const;
  static std::atomic<std::uint32_t> present;  ///< counts the forks that led to this process

  std::uint32_t generation_;
};

/// The smart pointer inside a handle, which belongs to the process that made it. In a forked child `->` and
/// `*` throw Error(EBADF), and the destructor leaves everything as it is.
template <class Pointer>
class Owned {
 public:
  using element_type = typename Pointer::element_type;

  Owned() = default;
  /// `attempted` is what the error names, such as "use a disk array".
  Owned(Pointer held, const char* attempted) noexcept : held_(std::move(held)), attempted_(attempted) {}
  Owned(Owned&&) noexcept = default;
  Owned(const Owned&) = default;
  Owned& operator=(Owned other) noexcept {
    std::swap(held_, other.held_);
    std::swap(attempted_, other.attempted_);
    std::swap(origin_, other.origin_);
    return *this;
  }
  ~Owned() {
    if (held_ && !origin_.here()) [[unlikely]]
      static_cast<void>(new (std::nothrow) Pointer(std::move(held_)));  // never ended
  }

  element_type* operator->() const {
    check();
    return held_.get();
  }
  element_type& operator*() const {
    check();
    return *held_;
  }
  void check() const { origin_.check(attempted_); }
  [[nodiscard]] bool here() const noexcept { return origin_.here(); }
  /// Works in a child, too: to read what held at the fork.
  [[nodiscard]] element_type* get() const noexcept { return held_.get(); }
  [[nodiscard]] const Pointer& pointer() const {
    check();
    return held_;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(held_); }

 private:
  Pointer held_{};
  const char* attempted_ = "use";
  Origin origin_;
};

}  // namespace outcore
