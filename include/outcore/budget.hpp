// Budgets of memory, and reservations in them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "outcore/api.h"

namespace outcore {

/// Accounts memory against a limit. Thread-safe.
class OUTCORE_API Budget {
 public:
  /// `origin`: where the limit comes from, for messages; empty if the user has set it.
  explicit Budget(std::int64_t limit_bytes, std::string origin = {})
      : limit_bytes_(limit_bytes), origin_(std::move(origin)) {}

  /// Throws Error(ENOMEM) if the budget has no room; the message has the sizes and names `what`.
  void reserve(std::int64_t size_bytes, std::string_view what);
  void release(std::int64_t size_bytes) noexcept;
  [[nodiscard]] std::int64_t limit_bytes() const noexcept { return limit_bytes_; }
  [[nodiscard]] const std::string& origin() const noexcept { return origin_; }
  [[nodiscard]] std::int64_t used_bytes() const noexcept;
  [[nodiscard]] std::int64_t peak_bytes() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::int64_t limit_bytes_, used_bytes_ = 0, peak_bytes_ = 0;
  std::string origin_;
};

/// Memory that is reserved in a budget as long as this object lives. The budget must outlive it.
class Reservation {
 public:
  Reservation() = default;
  /// Throws Error(ENOMEM) as Budget::reserve does.
  Reservation(Budget& budget, std::int64_t size_bytes, std::string_view what)
      : budget_(&budget), size_bytes_(size_bytes) {
    budget.reserve(size_bytes, what);
  }
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), size_bytes_(other.size_bytes_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Reservation() {
    if (budget_) budget_->release(size_bytes_);
  }

 private:
  Budget* budget_ = nullptr;
  std::int64_t size_bytes_ = 0;
};

}  // namespace outcore
