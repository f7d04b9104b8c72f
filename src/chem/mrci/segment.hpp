// Segments: parts of records that are gathered into lines and blocks of a panel, and added back from it.
#pragma once

#include <cstdint>

#include "chem/mrci/space.hpp"

namespace outcore::chem::mrci {

/// Some coefficients of a record, which lie in a panel, times a sign.
struct PanelSegment {
  enum class Shape : std::uint8_t {
    line,      ///< panel[i] = record[i], i < columns
    mirrored,  ///< the same for a whole record of `alpha_beta` with its axes exchanged
    straight,  ///< panel[r][c] = record[r][c]
    turned,    ///< panel[r][c] = record[c][r]
    triangle,  ///< -record[r, c] for r > c, record[c, r] for r < c, 0 for r = c
  };
  Shape shape;
  std::int64_t record;
  std::int64_t from;  ///< in the record
  std::int64_t at;    ///< in the panel
  int rows, columns;
  double sign;
};

/// panel = sign * record. `data` is the memory of the record.
void gather(const PanelSegment& segment, const Externals& externals, int irrep, const double* data,
            double* panel, std::int64_t row_length);
/// data += sign * panel: the adjoint.
void scatter(const PanelSegment& segment, const Externals& externals, int irrep, const double* panel,
             std::int64_t row_length, double* data);

}  // namespace outcore::chem::mrci
