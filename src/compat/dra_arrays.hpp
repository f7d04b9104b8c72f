// The table of open disk arrays, for the code that makes them and the code that moves sections.
#pragma once

#include <cstdint>

#include "compat/dra.hpp"
#include "compat/processes.hpp"
#include "compat/shared.hpp"
#include "outcore/compat/dra.h"

namespace outcore::compat {

struct Array {
  DiskArrayFacts facts;
  int mode = DRA_RW, element = 0, world = 0;
  Members members;  ///< the processes that have made or opened it
};

[[nodiscard]] Numbered<Array>& open_arrays();
[[nodiscard]] bool dra_started() noexcept;
/// The type of elements, of OC_*; 0 if there is none.
[[nodiscard]] int element_type(int ma);
/// A list for C: axes in reverse order.
void turn(const Axes& from, int axes, std::int64_t* to);
/// The error for a number of no open array. Returns its code.
int closed(int d_a);

}  // namespace outcore::compat
