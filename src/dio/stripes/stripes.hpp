// Stripes: the bytes of a file dealt out, round robin, to component files. Closed forms, no table.
#pragma once

#include <algorithm>
#include <cstdint>

namespace outcore::dio {

/// Stripe number k of the file is stripe number k / components of component k % components.
class Stripes {
 public:
  static constexpr std::int64_t unit_bytes = 4096;
  static constexpr std::int64_t min_bytes = 16 << 10, max_bytes = 4 << 20, usual_bytes = 64 << 10;

  Stripes() = default;
  /// Throws Error(EINVAL) unless the stripe is a positive multiple of `unit_bytes` and there is a component.
  Stripes(std::int64_t stripe_bytes, int components);

  /// The stripe that suits requests of this size (0: unknown). If consecutive requests have the length of a
  /// stripe, a multiple of `unit_bytes`, no stripe boundary cuts them; of other requests, at most one in
  /// eight is cut.
  [[nodiscard]] static std::int64_t suitable_bytes(std::int64_t typical_request_bytes);

  [[nodiscard]] std::int64_t stripe_bytes() const noexcept { return stripe_bytes_; }
  [[nodiscard]] int components() const noexcept { return components_; }

  struct Location {
    int component = 0;
    std::int64_t offset = 0;  ///< in the component
  };
  [[nodiscard]] Location locate(std::int64_t offset) const noexcept {
    const std::int64_t stripe = offset / stripe_bytes_;
    return {static_cast<int>(stripe % components_),
            stripe / components_ * stripe_bytes_ + offset % stripe_bytes_};
  }

  /// Length of a component of a file of `length` bytes without gaps.
  [[nodiscard]] std::int64_t component_bytes(int component, std::int64_t length) const noexcept;

  /// Calls visit(component, offset in it, offset from `offset`, size) for every part of the range that is
  /// contiguous in a component, in the order of the file.
  template <class Visit>
  void for_each_part(std::int64_t offset, std::int64_t size_bytes, Visit visit) const {
    if (components_ == 1) {
      if (size_bytes > 0) visit(0, offset, std::int64_t{0}, size_bytes);
      return;
    }
    for (std::int64_t done = 0; done < size_bytes;) {
      const Location at = locate(offset + done);
      const std::int64_t part = std::min(size_bytes - done, stripe_bytes_ - at.offset % stripe_bytes_);
      visit(at.component, at.offset, done, part);
      done += part;
    }
  }

 private:
  std::int64_t stripe_bytes_ = usual_bytes;
  int components_ = 1;
};

}  // namespace outcore::dio
