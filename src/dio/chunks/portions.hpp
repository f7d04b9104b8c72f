// Boxes in parts of limited size.
#pragma once

#include <cstdint>

#include "outcore/box.hpp"

namespace outcore::dio {

/// The parts in which a block passes through memory of limited size. They end where chunks end, if they can.
/// Numbered from 0; closed forms, so that every process knows those of the others.
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
