#include "chem/mrci/segment.hpp"

namespace outcore::chem::mrci {
namespace {

/// Calls move(at in panel, from in record, sign) for each element.
template <class Move>
void each_element(const PanelSegment& of, const Externals& externals, int irrep, std::int64_t length,
                  const Move& move) {
  switch (of.shape) {
    case PanelSegment::Shape::line:
      for (std::int64_t i = 0; i < of.columns; ++i) move(of.at + i, of.from + i, of.sign);
      return;
    case PanelSegment::Shape::straight:
      for (std::int64_t r = 0; r < of.rows; ++r)
        for (std::int64_t c = 0; c < of.columns; ++c)
          move(of.at + r * length + c, of.from + r * of.columns + c, of.sign);
      return;
    case PanelSegment::Shape::turned:
      for (std::int64_t r = 0; r < of.rows; ++r)
        for (std::int64_t c = 0; c < of.columns; ++c)
          move(of.at + r * length + c, of.from + c * of.rows + r, of.sign);
      return;
    case PanelSegment::Shape::triangle:
      for (std::int64_t r = 0; r < of.rows; ++r) {
        for (std::int64_t c = 0; c < r; ++c)
          move(of.at + r * length + c, of.from + r * (r - 1) / 2 + c, -of.sign);
        for (std::int64_t c = r + 1; c < of.columns; ++c)
          move(of.at + r * length + c, of.from + c * (c - 1) / 2 + r, of.sign);
      }
      return;
    case PanelSegment::Shape::mirrored:
      for (int g = 0; g < externals.groups(); ++g) {
        const std::int64_t rows = externals.count(g), columns = externals.count(g ^ irrep);
        const std::int64_t here = of.at + externals.mixed(irrep, g),
                           there = externals.mixed(irrep, g ^ irrep);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            move(here + r * columns + c, there + c * rows + r, of.sign);
      }
      return;
  }
}

}  // namespace

void gather(const PanelSegment& segment, const Externals& externals, int irrep, const double* data,
            double* panel, std::int64_t row_length) {
  if (segment.shape == PanelSegment::Shape::triangle)
    for (std::int64_t r = 0; r < segment.rows; ++r) panel[segment.at + r * row_length + r] = 0;
  each_element(segment, externals, irrep, row_length,
               [&](std::int64_t at, std::int64_t from, double sign) { panel[at] = sign * data[from]; });
}

void scatter(const PanelSegment& segment, const Externals& externals, int irrep, const double* panel,
             std::int64_t row_length, double* data) {
  each_element(segment, externals, irrep, row_length,
               [&](std::int64_t at, std::int64_t from, double sign) { data[from] += sign * panel[at]; });
}

}  // namespace outcore::chem::mrci
