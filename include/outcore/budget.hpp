// Memory that is accounted to a budget while something lives.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "outcore/world.hpp"

namespace outcore {

/// Gives back what it has reserved. The budget outlives it.
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
