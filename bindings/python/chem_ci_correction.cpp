// Passes over tiles of vectors of an eigenvalue search.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "chem/ci/correction.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Tile = nb::ndarray<nb::c_contig, nb::device::cpu>;
using ConstTile = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Tiles = std::vector<Tile>;
using ConstTiles = std::vector<ConstTile>;
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Pointers to tiles of elements T, all of one size.
template <class T, class Array>
std::vector<T*> pointers(const std::vector<Array>& tiles, std::size_t elements) {
  std::vector<T*> found;
  for (const Array& each : tiles) {
    if (each.dtype() != nb::dtype<std::remove_const_t<T>>())
      throw nb::type_error("tiles of one kind must have one type");
    if (each.size() != elements) throw nb::value_error("tiles of different sizes");
    found.push_back(static_cast<T*>(const_cast<void*>(static_cast<const void*>(each.data()))));
  }
  return found;
}

template <class Array>
bool of_doubles(const std::vector<Array>& tiles) {
  return tiles.empty() || tiles[0].dtype() == nb::dtype<double>();
}

struct Arguments {
  const Tiles &states, &h_states, &vectors, &h_vectors, &corrections;
  const Doubles &diagonal, &to_states, &to_vectors;
  bool collapses;
  const Doubles& energies;
  const std::vector<int>& active;
  double smallest;
  int parity;
  const Sums& sums;
};

template <class X, class W>
void correct(const Arguments& a) {
  const std::size_t k = a.states.size(), q = a.vectors.size(), elements = a.diagonal.size();
  const std::size_t kept = a.collapses ? (q == 0 ? 0 : a.to_vectors.size() / q) : q;
  const chem::ci::CorrectionTile<X, W> tile{.elements = elements,
                                            .states = pointers<X>(a.states, elements),
                                            .h_states = pointers<X>(a.h_states, elements),
                                            .vectors = pointers<W>(a.vectors, elements),
                                            .h_vectors = pointers<W>(a.h_vectors, elements),
                                            .corrections = pointers<W>(a.corrections, elements),
                                            .diagonal = a.diagonal.data(),
                                            .to_states = a.to_states.data(),
                                            .to_vectors = a.to_vectors.data(),
                                            .collapses = a.collapses,
                                            .kept = kept,
                                            .energies = a.energies.data(),
                                            .active = a.active,
                                            .smallest = a.smallest,
                                            .parity = a.parity};
  const std::size_t basis = k + kept + a.active.size();
  if (a.h_states.size() != k || a.h_vectors.size() != q || a.corrections.size() != a.active.size() ||
      a.to_states.size() != k * (k + q) || kept > q || (a.collapses && a.to_vectors.size() != kept * q) ||
      a.energies.size() != k || a.sums.size() != basis * (basis + k + kept) + 2 * k)
    throw nb::value_error("numbers of vectors that do not fit");
  for (std::size_t i = 0; i < a.active.size(); ++i)
    if (a.active[i] < (i == 0 ? 0 : a.active[i - 1] + 1) || a.active[i] >= int(k))
      throw nb::value_error("active states must be states, in order");
  if (a.parity < -1 || a.parity > 1) throw nb::value_error("parity must be 1, -1, or 0 (not folded)");
  if (a.parity != 0 && !chem::ci::side_of_square(elements))
    throw nb::value_error("a tile that is folded must be a square");
  const nb::gil_scoped_release release;
  chem::ci::correct(tile, a.sums.data());
}

template <class A, class B>
void dots(const ConstTiles& a, const ConstTiles& b, const Sums& sums) {
  const std::size_t elements = a.empty() ? 0 : a[0].size();
  const auto left = pointers<const A>(a, elements);
  const auto right = pointers<const B>(b, elements);
  if (sums.size() != a.size() * b.size()) throw nb::value_error("one sum for each pair is needed");
  const nb::gil_scoped_release release;
  chem::ci::add_dots<A, B>(left, right, elements, sums.data());
}

}  // namespace

void bind_chem_ci_correction(nb::module_& module) {
  module.def(
      "ci_correct",
      [](const Tiles& states, const Tiles& h_states, const Tiles& vectors, const Tiles& h_vectors,
         const Tiles& corrections, const Doubles& diagonal, const Doubles& to_states,
         const Doubles& to_vectors, bool collapses, const Doubles& energies, const std::vector<int>& active,
         double smallest, int parity, const Sums& sums) {
        const Arguments arguments{states,   h_states,  vectors,    h_vectors, corrections,
                                  diagonal, to_states, to_vectors, collapses, energies,
                                  active,   smallest,  parity,     sums};
        const bool x = of_doubles(states), w = of_doubles(vectors) && of_doubles(corrections);
        if (x && w)
          correct<double, double>(arguments);
        else if (x)
          correct<double, float>(arguments);
        else
          correct<float, float>(arguments);
      },
      // What is changed is never converted: the changes would be those of a copy.
      "states"_a.noconvert(), "h_states"_a.noconvert(), "vectors"_a.noconvert(), "h_vectors"_a.noconvert(),
      "corrections"_a.noconvert(), "diagonal"_a, "to_states"_a, "to_vectors"_a, "collapses"_a, "energies"_a,
      "active"_a, "smallest"_a, "parity"_a, "sums"_a.noconvert(),
      "Updates one tile of all vectors, as chem/ci/correction.hpp defines; adds dot products to `sums`.\n"
      "Any thread.");
  module.def(
      "ci_dots",
      [](const ConstTiles& a, const ConstTiles& b, const Sums& sums) {
        if (of_doubles(a))
          of_doubles(b) ? dots<double, double>(a, b, sums) : dots<double, float>(a, b, sums);
        else
          of_doubles(b) ? dots<float, double>(a, b, sums) : dots<float, float>(a, b, sums);
      },
      "a"_a, "b"_a, "sums"_a.noconvert(), "Adds the dot products [a][b] of tiles to `sums`. Any thread.");
  module.def(
      "ci_round",
      [](const Values& values, double step, const std::optional<Values>& added) {
        if (added && added->size() != values.size()) throw nb::value_error("tiles of different sizes");
        const nb::gil_scoped_release release;
        return chem::ci::round_to(values.data(), added ? added->data() : nullptr, step, values.size());
      },
      "values"_a.noconvert(), "step"_a, "added"_a.noconvert() = nb::none(),
      "Rounds values to whole multiples of step, a power of two, in place. `added` receives the\n"
      "changes. Returns the sum of their squares. Any thread.");
}

}  // namespace outcore::python
