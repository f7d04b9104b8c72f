#include <nanobind/ndarray.h>

#include "bindings.hpp"
#include "blas.hpp"
#include "chem/cc/triples.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Block = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Blocks = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

/// Of a block of virtual orbitals x.
struct Singles {
  Blocks amplitudes, integrals;
  Matrix t1, fock;
  Vector energies;
  std::size_t count;

  Singles(const nb::tuple& given, std::size_t o, std::size_t v)
      : amplitudes(nb::cast<Blocks>(given[0])),
        integrals(nb::cast<Blocks>(given[1])),
        t1(nb::cast<Matrix>(given[2])),
        fock(nb::cast<Matrix>(given[3])),
        energies(nb::cast<Vector>(given[4])),
        count(energies.size()) {
    const bool fits = amplitudes.shape(0) == count && amplitudes.shape(1) == v && amplitudes.shape(2) == o &&
                      amplitudes.shape(3) == o && integrals.shape(0) == count && integrals.shape(1) == o &&
                      integrals.shape(2) == o && integrals.shape(3) == o && t1.shape(0) == count &&
                      t1.shape(1) == o && fock.shape(0) == count && fock.shape(1) == o;
    if (!fits) throw nb::value_error("a block of orbitals does not have the shapes that it needs");
  }

  [[nodiscard]] chem::cc::Single of(std::size_t x) const {
    const auto o = t1.shape(1), v = amplitudes.shape(1);
    return {amplitudes.data() + x * v * o * o, integrals.data() + x * o * o * o, t1.data() + x * o,
            fock.data() + x * o, energies.data()[x]};
  }
};

/// Of two blocks of virtual orbitals x, y.
struct Doubles {
  Blocks integrals, turned, amplitudes, exchange;

  Doubles(const nb::tuple& given, const Singles& x, const Singles& y, std::size_t o, std::size_t v)
      : integrals(nb::cast<Blocks>(given[0])),
        turned(nb::cast<Blocks>(given[1])),
        amplitudes(nb::cast<Blocks>(given[2])),
        exchange(nb::cast<Blocks>(given[3])) {
    const auto has = [&](const Blocks& block, std::size_t columns) {
      return block.shape(0) == x.count && block.shape(1) == y.count && block.shape(2) == o &&
             block.shape(3) == columns;
    };
    if (!has(integrals, v) || !has(turned, v) || !has(amplitudes, o) || !has(exchange, o))
      throw nb::value_error("two blocks of orbitals do not have the shapes that they need");
  }

  [[nodiscard]] chem::cc::Double of(std::size_t x, std::size_t y) const {
    const auto at = x * integrals.shape(1) + y;
    const auto rows = integrals.shape(2), columns = integrals.shape(3);
    return {integrals.data() + at * rows * columns, turned.data() + at * rows * columns,
            amplitudes.data() + at * rows * rows, exchange.data() + at * rows * rows};
  }
};

double triples(const Vector& occupied, std::size_t virtuals, std::size_t a, std::size_t b,
               const nb::tuple& of_a, const nb::tuple& of_b, const nb::tuple& of_c, const nb::tuple& of_ab,
               const nb::tuple& of_ac, const nb::tuple& of_bc, bool same_ab, bool same_bc) {
  const auto o = occupied.size();
  const Singles x(of_a, o, virtuals), y(of_b, o, virtuals), z(of_c, o, virtuals);
  const Doubles xy(of_ab, x, y, o, virtuals), xz(of_ac, x, z, o, virtuals), yz(of_bc, y, z, o, virtuals);
  if (a >= x.count || b >= y.count || (same_ab && b > a)) throw nb::value_error("no such orbitals a >= b");
  const auto gemm = scipy_blas().dgemm;
  nb::gil_scoped_release release;
  chem::cc::TriplesWork work;
  double sum = 0;
  const bool equal = same_ab && a == b;
  const auto end = same_bc ? b + 1 : z.count;
  for (std::size_t c = 0; c < end; ++c) {
    const bool last = same_bc && c == b;
    const double weight = equal ? (last ? 1.0 / 6 : 0.5) : (last ? 0.5 : 1.0);
    sum += weight * chem::cc::triples_energy(gemm, int(o), int(virtuals), occupied.data(), x.of(a), y.of(b),
                                             z.of(c), xy.of(a, b), xz.of(a, c), yz.of(b, c), work);
  }
  return sum;
}

}  // namespace

void bind_chem_cc(nb::module_& module) {
  module.def(
      "triples_energy", &triples, "occupied"_a, "virtuals"_a, "a"_a, "b"_a, "of_a"_a, "of_b"_a, "of_c"_a,
      "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_ab"_a, "same_bc"_a,
      "Energy of connected triples of closed shells: of virtual orbitals a and b of two blocks and all c of "
      "a\n"
      "third one; a >= b >= c where blocks are the same. Of a block x (amplitudes [x][d][j][k] of t_jk^dx,\n"
      "integrals [x][i][j][l] of -(ix|jl), t1 [x][i], Fock elements [x][i], energies [x]); of two\n"
      "([x][y][i][d] of (ix|yd), the same of (iy|xd), [x][y][i][j] of t_ij^xy, of (ix|jy)). Any thread.");
}

}  // namespace outcore::python
