#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

#include "bindings.hpp"
#include "chem/ri/pair_energy.hpp"
#include "chem/ri/three_center.hpp"
#include "chem/ri/three_center_gradient.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Ints = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<const std::int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Images = nb::ndarray<const std::int32_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Signs = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;
using ConstRows = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Matrices = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Forces = nb::ndarray<double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using ConstBlocks = nb::ndarray<const double, nb::ndim<3>, nb::device::cpu>;

std::span<const chem::PairColumns> as_pairs(const Pairs& pairs) {
  static_assert(sizeof(chem::PairColumns) == 3 * sizeof(std::int32_t));
  return {reinterpret_cast<const chem::PairColumns*>(pairs.data()), pairs.shape(0)};
}

std::span<const chem::ImageColumns> as_pairs(const Images& images) {
  static_assert(sizeof(chem::ImageColumns) == 4 * sizeof(std::int32_t));
  return {reinterpret_cast<const chem::ImageColumns*>(images.data()), images.shape(0)};
}

/// Doubles from one row to the next. Throws unless the elements of a row are neighbours and all pairs lie in
/// it.
template <typename Array, typename Table, typename Integrals>
std::size_t stride_of(const Array& rows, const Table& pairs, const Integrals& integrals) {
  if (rows.shape(0) > 0 && rows.shape(1) > 1 && rows.stride(1) != 1)
    throw nb::value_error("the elements of a row must be neighbours");
  for (const auto& pair : as_pairs(pairs))
    if (pair.i < 0 || pair.j < 0 || pair.i >= integrals.orbital_shells() ||
        pair.j >= integrals.orbital_shells() || pair.column < 0 ||
        std::size_t(pair.column) + std::size_t(integrals.size(pair.i)) * std::size_t(integrals.size(pair.j)) >
            rows.shape(1))
      throw nb::value_error("a pair of shells has no place in the rows");
  return std::size_t(rows.stride(0));
}

void bind_three_center(nb::module_& module) {
  using chem::ThreeCenter;
  nb::class_<ThreeCenter>(
      module, "ThreeCenter",
      "Three-centre integrals (mn|P). A pair is a row (i, j, column) of int32: shells i >= j; the\n"
      "product of their functions a, b is in column + b * size(i) + a. Any thread.")
      .def(
          "__init__",
          [](ThreeCenter* self, const Ints& atm, const Ints& bas, const Doubles& env, int orbital_shells,
             bool cartesian, std::uintptr_t int3c2e, std::uintptr_t int2e, std::uintptr_t make_optimizer,
             std::uintptr_t delete_optimizer) {
            const ThreeCenter::Functions functions{
                reinterpret_cast<chem::Libcint::Integral>(int3c2e),
                reinterpret_cast<chem::Libcint::Integral>(int2e),
                reinterpret_cast<chem::Libcint::MakeOptimizer>(make_optimizer),
                reinterpret_cast<chem::Libcint::DeleteOptimizer>(delete_optimizer)};
            new (self) ThreeCenter({atm.data(), atm.size()}, {bas.data(), bas.size()},
                                   {env.data(), env.size()}, orbital_shells, cartesian, functions);
          },
          "atm"_a, "bas"_a, "env"_a, "orbital_shells"_a, "cartesian"_a, "int3c2e"_a, "int2e"_a,
          "make_optimizer"_a, "delete_optimizer"_a,
          "libcint's tables of both bases, flattened, the orbital basis first; the addresses of int3c2e_*\n"
          "and int2e_* (sph or cart), int3c2e_optimizer and CINTdel_optimizer.")
      .def_prop_ro("orbital_shells", &ThreeCenter::orbital_shells)
      .def_prop_ro("auxiliary_shells", &ThreeCenter::auxiliary_shells)
      .def("bounds", &ThreeCenter::bounds, "threads"_a, nb::call_guard<nb::gil_scoped_release>(),
           "sqrt(max (ij|ij)) of the shell pairs i >= j, at i (i + 1) / 2 + j.")
      .def(
          "integrals",
          [](const ThreeCenter& self, const Pairs& pairs, int first, int last, const Rows& out, int threads) {
            const auto stride = stride_of(out, pairs, self);
            if (first < 0 || last < first || last > self.auxiliary_shells() ||
                out.shape(0) != std::size_t(self.first_auxiliary(last) - self.first_auxiliary(first)))
              throw nb::value_error("one row for each auxiliary function of the shells is needed");
            nb::gil_scoped_release release;
            self.integrals(as_pairs(pairs), first, last, out.data(), stride, threads);
          },
          "pairs"_a, "first"_a, "last"_a, "out"_a, "threads"_a,
          "Computes (mn|P) for auxiliary shells [first, last), into the rows of `out`, one for each\n"
          "function P.")
      .def(
          "expand",
          [](const ThreeCenter& self, const Pairs& pairs, const ConstRows& rows, const Matrices& out,
             int threads) {
            const auto stride = stride_of(rows, pairs, self);
            const auto n = std::size_t(self.first(self.orbital_shells()));
            if (out.shape(0) < rows.shape(0) || out.shape(1) != n || out.shape(2) != n)
              throw nb::value_error("a matrix [n][n] for each row is needed");
            nb::gil_scoped_release release;
            self.expand(as_pairs(pairs), rows.data(), stride, rows.shape(0), out.data(), threads);
          },
          "pairs"_a, "rows"_a, "out"_a, "threads"_a,
          "Expands rows to symmetric matrices out[row][m][n]. Elements that belong to no pair do not\n"
          "change.")
      .def(
          "expand_images",
          [](const ThreeCenter& self, const Images& images, const ConstRows& rows, const Signs& signs,
             const Doubles& characters, const Places& places, const Matrices& out, int threads) {
            const auto stride = stride_of(rows, images, self);
            const auto n = std::size_t(self.first(self.orbital_shells()));
            if (out.shape(0) < rows.shape(0) || out.shape(1) != n)
              throw nb::value_error("a matrix [n][any] for each row is needed");
            nb::gil_scoped_release release;
            self.expand_images(as_pairs(images), rows.data(), stride, rows.shape(0),
                               {signs.data(), signs.size()}, {characters.data(), characters.size()},
                               {places.data(), places.size()}, out.shape(2), out.data(), threads);
          },
          "images"_a, "rows"_a, "signs"_a, "characters"_a, "places"_a, "out"_a, "threads"_a,
          "As `expand`, for images of pairs, which are rows (i, j, column, operation) of int32: shells in\n"
          "either order, whose products are those of a pair after an operation. out[row][m][n] is\n"
          "characters[operation] signs[operation][m] signs[operation][n] times the element of the row. The\n"
          "functions n of a shell begin at places[shell]; if that is negative, they are left out.");
}

void bind_three_center_gradient(nb::module_& module) {
  using chem::ThreeCenterGradient;
  nb::class_<ThreeCenterGradient>(
      module, "ThreeCenterGradient",
      "Derivatives of three-centre integrals (mn|P) with respect to the positions of atoms. Pairs are\n"
      "those of ThreeCenter. Any thread.")
      .def(
          "__init__",
          [](ThreeCenterGradient* self, const Ints& atm, const Ints& bas, const Doubles& env,
             int orbital_shells, bool cartesian, std::uintptr_t int3c2e_ip1, std::uintptr_t make_optimizer,
             std::uintptr_t delete_optimizer) {
            const ThreeCenterGradient::Functions functions{
                reinterpret_cast<chem::Libcint::Integral>(int3c2e_ip1),
                reinterpret_cast<chem::Libcint::MakeOptimizer>(make_optimizer),
                reinterpret_cast<chem::Libcint::DeleteOptimizer>(delete_optimizer)};
            new (self) ThreeCenterGradient({atm.data(), atm.size()}, {bas.data(), bas.size()},
                                           {env.data(), env.size()}, orbital_shells, cartesian, functions);
          },
          "atm"_a, "bas"_a, "env"_a, "orbital_shells"_a, "cartesian"_a, "int3c2e_ip1"_a, "make_optimizer"_a,
          "delete_optimizer"_a,
          "libcint's tables of both bases, flattened, the orbital basis first; the addresses of\n"
          "int3c2e_ip1_* (sph or cart), int3c2e_ip1_optimizer and CINTdel_optimizer.")
      .def(
          "add",
          [](const ThreeCenterGradient& self, const Pairs& pairs, int first, int last, const ConstRows& z,
             const Forces& gradient, int threads) {
            const auto stride = stride_of(z, pairs, self);
            if (first < 0 || last < first || last > self.auxiliary_shells() ||
                z.shape(0) != std::size_t(self.first_auxiliary(last) - self.first_auxiliary(first)))
              throw nb::value_error("one row for each auxiliary function of the shells is needed");
            if (gradient.shape(0) != std::size_t(self.atoms()))
              throw nb::value_error("a row of the gradient for each atom is needed");
            nb::gil_scoped_release release;
            self.add(as_pairs(pairs), first, last, z.data(), stride, gradient.data(), threads);
          },
          "pairs"_a, "first"_a, "last"_a, "z"_a, "gradient"_a, "threads"_a,
          "gradient[atom][x] += sum of z[P][mn] d(mn|P)/dx, over P of auxiliary shells [first, last) and\n"
          "over m and n of pairs in both orders. The column mn of z has the element of a symmetric matrix.\n"
          "Atoms are those of the tables: first of the orbital basis, then of the auxiliary basis.");
}

}  // namespace

void bind_chem_ri(nb::module_& module) {
  bind_three_center(module);
  bind_three_center_gradient(module);
  module.def(
      "pair_sums",
      [](const ConstBlocks& v, const Doubles& gaps, const Doubles& a, const Doubles& b, bool square) {
        if (v.shape(0) != a.size() || v.shape(1) != gaps.size() || v.shape(2) != b.size())
          throw nb::value_error("v must be [len(a)][len(gaps)][len(b)]");
        if (v.shape(2) > 1 && v.stride(2) != 1)
          throw nb::value_error("the elements of a row must be neighbours");
        if (square && a.size() != b.size()) throw nb::value_error("square needs as many rows as columns");
        std::vector<std::pair<double, double>> result;
        nb::gil_scoped_release release;
        for (std::size_t j = 0; j < gaps.size(); ++j) {
          const auto sums =
              chem::pair_sums(v.data() + std::ptrdiff_t(j) * v.stride(1), std::size_t(v.stride(0)),
                              gaps.data()[j], a.data(), a.size(), b.data(), b.size(), square);
          result.emplace_back(sums.direct, sums.exchange);
        }
        return result;
      },
      "v"_a, "gaps"_a, "a"_a, "b"_a, "square"_a,
      "Returns for each j the sums over a and b of v[a,j,b]^2 / d and of v[a,j,b] v[b,j,a] / d (0\n"
      "unless `square`), with d = gaps[j] - a[a] - b[b].");
}

}  // namespace outcore::python
