// DRA: disk resident arrays of the classic names, in the order of Fortran: indices from 1, the first axis
// fastest.
#pragma once

#include <array>
#include <string>

#include "compat/shared.hpp"

namespace outcore::compat {

inline constexpr int max_axes = 7;  // of Global Arrays
using Axes = std::array<std::int64_t, max_axes>;

/// What a disk array is. `type` is a number of MA for C.
struct DiskArrayFacts {
  int type = 0, axes = 0;
  Axes shape{};
  std::string name, filename;
};

/// A section of an array, both ends included.
struct Patch {
  Axes lo{}, hi{};
};

// All return 0 or an errno value, whose text is kept; collective but for facts and probe.

int dra_start();
int dra_stop();
/// `typical`: numbers below 1 are not known.
int dra_make(const DiskArrayFacts& facts, int mode, const Axes& typical, int* d_a);
int dra_open(const std::string& filename, int mode, int* d_a);
int dra_facts(int d_a, DiskArrayFacts* facts);
int dra_end(int d_a, bool deletes);
/// Begins to move a section; null: all of the array. `transposes`: the axes of one run backwards along the
/// other.
int dra_move(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
             int* request);
int dra_wait_for(int request);
int dra_look(int request, bool* done);

/// Type numbers of MA: those of C to those of Fortran, and back; others stay.
[[nodiscard]] int fortran_type(int type);
[[nodiscard]] int c_type(int type);

}  // namespace outcore::compat
