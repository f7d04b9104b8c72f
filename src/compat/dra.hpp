// DRA: disk resident arrays with classic names, in the order of Fortran: indices from 1, the first axis
// fastest.
#pragma once

#include <array>
#include <string>

#include "compat/shared.hpp"

namespace outcore::compat {

inline constexpr int max_axes = 7;  // of Global Arrays
using Axes = std::array<std::int64_t, max_axes>;

/// The facts of a disk array. `type` is a number of MA for C.
struct DiskArrayFacts {
  int type = 0, axes = 0;
  Axes shape{};
  std::string name, filename;
};

/// A section of an array, both ends included.
struct Patch {
  Axes lo{}, hi{};
};

// All return 0 or an errno value, whose text is kept. All but facts and probe are collective.

int dra_start();
int dra_stop();
/// `typical`: a number below 1 means unknown.
int dra_make(const DiskArrayFacts& facts, int mode, const Axes& typical, int* d_a);
int dra_open(const std::string& filename, int mode, int* d_a);
int dra_facts(int d_a, DiskArrayFacts* facts);
int dra_end(int d_a, bool deletes);
/// Begins to move a section; null: the whole array. `transposes`: the axes of the two arrays have reverse
/// order.
int dra_move(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
             int* request);
int dra_wait_for(int request);
int dra_look(int request, bool* done);

/// Converts type numbers of MA between C and Fortran; other numbers do not change.
[[nodiscard]] int fortran_type(int type);
[[nodiscard]] int c_type(int type);

}  // namespace outcore::compat
