// Portions: parts of limited size of a box.
#pragma once

#include <cstdint>

#include "outcore/box.hpp"

namespace outcore::dio {

/// The parts in which a block passes through memory of limited size. If possible, they end where chunks end.
/// Numbered from 0, by closed forms, so that every process knows the portions of the others.
class Portions {
 public:
  Portions(const Box& box, const Extents& chunk, std::int64_t max_elements);
  [[nodiscard]] std::int64_t count() const noexcept { return counts_.product(); }
  [[nodiscard]] Box operator[](std::int64_t i) const;

 private:
  Box box_;
  Extents step_, first_, counts_;  // all portions but the first of an axis begin at multiples of the step
};

}  // namespace outcore::dio
