#include <nanobind/ndarray.h>

#include "bindings.hpp"
#include "blas.hpp"
#include "chem/cc/open_triples.hpp"
#include "chem/cc/triples.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Block = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Blocks = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

/// The arrays of a block of virtual orbitals x.
struct Singles {
  Blocks amplitudes, turned, integrals, turned_integrals;
  Matrix t1, fock;
  Vector energies;
  std::size_t count;

  Singles(const nb::tuple& given, const chem::cc::TriplesSizes& sizes)
      : amplitudes(nb::cast<Blocks>(given[0])),
        turned(nb::cast<Blocks>(given[1])),
        integrals(nb::cast<Blocks>(given[2])),
        turned_integrals(nb::cast<Blocks>(given[3])),
        t1(nb::cast<Matrix>(given[4])),
        fock(nb::cast<Matrix>(given[5])),
        energies(nb::cast<Vector>(given[6])),
        count(energies.size()) {
    const auto o = sizes.occupied;
    const auto has = [&](const Blocks& block, std::size_t rows) {
      return block.shape(0) == count && block.shape(1) == o && block.shape(2) == rows &&
             block.shape(3) == sizes.padded;
    };
    if (!has(amplitudes, sizes.virtuals) || !has(turned, sizes.virtuals) || !has(integrals, o) ||
        !has(turned_integrals, o) || t1.shape(0) != count || t1.shape(1) != o || fock.shape(0) != count ||
        fock.shape(1) != o)
      throw nb::value_error("a block of orbitals does not have the shapes that it needs");
  }

  [[nodiscard]] chem::cc::Single of(std::size_t x) const {
    const auto o = t1.shape(1);
    return {at(amplitudes, x), at(turned, x),       at(integrals, x),  at(turned_integrals, x),
            t1.data() + x * o, fock.data() + x * o, energies.data()[x]};
  }

 private:
  [[nodiscard]] static const double* at(const Blocks& block, std::size_t x) {
    return block.data() + x * block.shape(1) * block.shape(2) * block.shape(3);
  }
};

/// The arrays of two blocks of virtual orbitals x, y.
struct Doubles {
  Blocks integrals, turned, amplitudes, turned_amplitudes, exchange;

  Doubles(const nb::tuple& given, const Singles& x, const Singles& y, const chem::cc::TriplesSizes& sizes)
      : integrals(nb::cast<Blocks>(given[0])),
        turned(nb::cast<Blocks>(given[1])),
        amplitudes(nb::cast<Blocks>(given[2])),
        turned_amplitudes(nb::cast<Blocks>(given[3])),
        exchange(nb::cast<Blocks>(given[4])) {
    const auto has = [&](const Blocks& block, std::size_t rows) {
      return block.shape(0) == x.count && block.shape(1) == y.count && block.shape(2) == rows &&
             block.shape(3) == sizes.padded;
    };
    const auto o = sizes.occupied;
    if (!has(integrals, sizes.virtuals) || !has(turned, sizes.virtuals) || !has(amplitudes, o) ||
        !has(turned_amplitudes, o) || !has(exchange, o))
      throw nb::value_error("two blocks of orbitals do not have the shapes that they need");
  }

  [[nodiscard]] chem::cc::Double of(std::size_t x, std::size_t y) const {
    const auto at = [&](const Blocks& block) {
      return block.data() + (x * block.shape(1) + y) * block.shape(2) * block.shape(3);
    };
    return {at(integrals), at(turned), at(amplitudes), at(turned_amplitudes), at(exchange)};
  }
};

chem::cc::TriplesSizes triples_sizes(const Vector& occupied, std::size_t virtuals, const nb::tuple& block) {
  const chem::cc::TriplesSizes sizes{occupied.size(), nb::cast<Blocks>(block[0]).shape(3), virtuals};
  if (sizes.padded < sizes.occupied || sizes.padded % chem::cc::triples_padding)
    throw nb::value_error("there is no room for the occupied orbitals, or not for a multiple of 4");
  return sizes;
}

/// The arrays that triples of three blocks of virtual orbitals need.
struct ThreeBlocks {
  chem::cc::TriplesSizes sizes;
  Singles x, y, z;
  Doubles xy, xz, yz;

  ThreeBlocks(const Vector& occupied, std::size_t virtuals, const nb::tuple& of_a, const nb::tuple& of_b,
              const nb::tuple& of_c, const nb::tuple& of_ab, const nb::tuple& of_ac, const nb::tuple& of_bc)
      : sizes(triples_sizes(occupied, virtuals, of_a)),
        x(of_a, sizes),
        y(of_b, sizes),
        z(of_c, sizes),
        xy(of_ab, x, y, sizes),
        xz(of_ac, x, z, sizes),
        yz(of_bc, y, z, sizes) {}

  [[nodiscard]] chem::cc::ThreeVirtuals orbitals(std::size_t a, std::size_t b, std::size_t c) const {
    return {x.of(a), y.of(b), z.of(c), xy.of(a, b), xz.of(a, c), yz.of(b, c)};
  }
};

/// The weight of a triple a >= b >= c in a sum over all triples.
double triples_weight(bool equal_ab, bool equal_bc) {
  return equal_ab ? (equal_bc ? 1.0 / 6 : 0.5) : (equal_bc ? 0.5 : 1.0);
}

double triples(const Vector& occupied, std::size_t virtuals, std::size_t a, std::size_t b,
               const nb::tuple& of_a, const nb::tuple& of_b, const nb::tuple& of_c, const nb::tuple& of_ab,
               const nb::tuple& of_ac, const nb::tuple& of_bc, bool same_ab, bool same_bc) {
  const ThreeBlocks of(occupied, virtuals, of_a, of_b, of_c, of_ab, of_ac, of_bc);
  const auto& [sizes, x, y, z, xy, xz, yz] = of;
  if (a >= x.count || b >= y.count || (same_ab && b > a)) throw nb::value_error("no such orbitals a >= b");
  nb::gil_scoped_release release;
  chem::cc::TriplesWork work;
  double sum = 0;
  const bool equal = same_ab && a == b;
  const auto end = same_bc ? b + 1 : z.count;
  for (std::size_t c = 0; c < end; ++c) {
    const double weight = triples_weight(equal, same_bc && c == b);
    sum += weight * chem::cc::triples_energy(sizes, occupied.data(), of.orbitals(a, b, c), work);
  }
  return sum;
}

using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Orders = nb::ndarray<double, nb::ndim<6>, nb::c_contig, nb::device::cpu>;

/// Derivatives by the arrays of a block of virtual orbitals.
struct BlockSums {
  Rows t1, fock;  // [x][i]
  Sums density;   // [x]

  BlockSums(const nb::tuple& given, const Singles& x)
      : t1(nb::cast<Rows>(given[0])), fock(nb::cast<Rows>(given[1])), density(nb::cast<Sums>(given[2])) {
    const auto o = x.t1.shape(1);
    if (t1.shape(0) != x.count || t1.shape(1) != o || fock.shape(0) != x.count || fock.shape(1) != o ||
        density.shape(0) != x.count)
      throw nb::value_error("sums of a block do not have the shapes that they need");
  }

  [[nodiscard]] chem::cc::SingleSums of(std::size_t x) const {
    return {t1.data() + x * t1.shape(1), fock.data() + x * t1.shape(1), density.data() + x};
  }
};

/// Derivatives for two blocks, [x][y][i][j].
double* pair_sums(const Pairs& sums, std::size_t x, std::size_t y, const chem::cc::TriplesSizes& sizes) {
  if (x >= sums.shape(0) || y >= sums.shape(1) || sums.shape(2) != sizes.occupied ||
      sums.shape(3) != sizes.padded)
    throw nb::value_error("sums of two blocks do not have the shapes that they need");
  return sums.data() + (x * sums.shape(1) + y) * sizes.occupied * sizes.padded;
}

/// Stores [i][j][k] of orbitals a, b, c for each order of a, b, c that the blocks have. Each order has a row
/// of `at`: the place of the orbitals, and which of i, j, k comes first, second, third.
void put_orders(const double* from, std::size_t o, const std::size_t (&orbitals)[3], bool same_ab,
                bool same_bc, const Orders& to) {
  static constexpr int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  for (int n = 0; n < 6; ++n) {
    const bool whole = same_ab && same_bc;
    if (!(n == 0 || whole || (n == 1 && same_ab) || (n == 2 && same_bc))) continue;
    const auto& p = orders[n];
    double* const at =
        to.data() +
        ((orbitals[p[0]] * to.shape(1) + orbitals[p[1]]) * to.shape(2) + orbitals[p[2]]) * o * o * o;
    std::size_t strides[3];
    for (int axis = 0; axis < 3; ++axis) strides[p[axis]] = axis == 0 ? o * o : axis == 1 ? o : 1;
    for (std::size_t i = 0; i < o; ++i)
      for (std::size_t j = 0; j < o; ++j) {
        const double* const row = from + (i * o + j) * o;
        double* const put = at + i * strides[0] + j * strides[1];
        for (std::size_t k = 0; k < o; ++k) put[k * strides[2]] = row[k];
      }
  }
}

double triples_derivatives(const Vector& occupied, std::size_t virtuals, std::size_t a, std::size_t b,
                           const nb::tuple& of_a, const nb::tuple& of_b, const nb::tuple& of_c,
                           const nb::tuple& of_ab, const nb::tuple& of_ac, const nb::tuple& of_bc,
                           bool same_ab, bool same_bc, const Orders& by_w, const nb::tuple& sums) {
  const ThreeBlocks of(occupied, virtuals, of_a, of_b, of_c, of_ab, of_ac, of_bc);
  const auto& [sizes, x, y, z, xy, xz, yz] = of;
  if (a >= x.count || b >= y.count || (same_ab && b > a)) throw nb::value_error("no such orbitals a >= b");
  const auto oo = nb::cast<Rows>(sums[0]);
  const BlockSums sum_x(nb::cast<nb::tuple>(sums[1]), x), sum_y(nb::cast<nb::tuple>(sums[2]), y),
      sum_z(nb::cast<nb::tuple>(sums[3]), z);
  const auto sum_xy = nb::cast<Pairs>(sums[4]), sum_xz = nb::cast<Pairs>(sums[5]),
             sum_yz = nb::cast<Pairs>(sums[6]);
  const auto o = sizes.occupied;
  bool fits = oo.shape(0) == o && oo.shape(1) == sizes.padded && by_w.shape(0) == x.count &&
              by_w.shape(1) == y.count && by_w.shape(2) == z.count;
  for (int axis = 3; axis < 6; ++axis) fits = fits && by_w.shape(axis) == o;
  if (!fits) throw nb::value_error("sums do not have the shapes that they need");
  for (std::size_t c = 0; c < z.count; ++c)
    (void)pair_sums(sum_xz, a, c, sizes), (void)pair_sums(sum_yz, b, c, sizes);
  double* const to_xy = pair_sums(sum_xy, a, b, sizes);
  nb::gil_scoped_release release;
  chem::cc::TriplesWork work;
  double sum = 0;
  const bool equal = same_ab && a == b;
  const auto end = same_bc ? b + 1 : z.count;
  for (std::size_t c = 0; c < end; ++c) {
    const double weight = triples_weight(equal, same_bc && c == b);
    sum += weight *
           chem::cc::triples_derivatives(sizes, occupied.data(), of.orbitals(a, b, c), weight, work,
                                         {oo.data(), sum_x.of(a), sum_y.of(b), sum_z.of(c), to_xy,
                                          pair_sums(sum_xz, a, c, sizes), pair_sums(sum_yz, b, c, sizes)});
    put_orders(work.by_w.data(), o, {a, b, c}, same_ab, same_bc, by_w);
  }
  return sum;
}

void triples_density(const Vector& occupied, std::size_t virtuals, std::size_t b, const nb::tuple& of_a,
                     const nb::tuple& of_b, const nb::tuple& of_c, const nb::tuple& of_ab,
                     const nb::tuple& of_ac, const nb::tuple& of_bc, bool same_bc, const Rows& density) {
  const ThreeBlocks of(occupied, virtuals, of_a, of_b, of_c, of_ab, of_ac, of_bc);
  const auto& [sizes, x, y, z, xy, xz, yz] = of;
  if (b >= y.count || density.shape(0) != x.count || density.shape(1) != x.count)
    throw nb::value_error("no such orbitals, or a density of others");
  nb::gil_scoped_release release;
  std::vector<chem::cc::TriplesWork> work(x.count);
  std::vector<chem::cc::ThreeVirtuals> orbitals(x.count);
  const auto end = same_bc ? b + 1 : z.count;
  for (std::size_t c = 0; c < end; ++c) {
    for (std::size_t a = 0; a < x.count; ++a) orbitals[a] = of.orbitals(a, b, c);
    chem::cc::triples_density(sizes, occupied.data(), same_bc && c == b, orbitals, work, density.data());
  }
}

// ---- open shells ----

/// The arrays of a block of virtual orbitals x of one of two spins.
struct OpenSingles {
  Block same;    // [x][v+o][pairs]; empty: none
  Blocks other;  // [x][w+p or v+o][o][p]; empty: none
  Matrix t1, fock;
  Vector energies;
  std::size_t count;

  explicit OpenSingles(const nb::tuple& given)
      : same(nb::cast<Block>(given[0])),
        other(nb::cast<Blocks>(given[1])),
        t1(nb::cast<Matrix>(given[2])),
        fock(nb::cast<Matrix>(given[3])),
        energies(nb::cast<Vector>(given[4])),
        count(energies.size()) {}

  /// Whether a block has this number of occupied orbitals and rows of these sizes; size 0: not used.
  [[nodiscard]] bool fits(std::size_t occupied, std::size_t rows, std::size_t pairs, std::size_t others,
                          std::size_t o, std::size_t p) const {
    return t1.shape(0) == count && t1.shape(1) == occupied && fock.shape(0) == count &&
           fock.shape(1) == occupied &&
           (!rows || (same.shape(0) == count && same.shape(1) == rows && same.shape(2) == pairs)) &&
           (!others || (other.shape(0) == count && other.shape(1) == others && other.shape(2) == o &&
                        other.shape(3) == p));
  }

  [[nodiscard]] chem::cc::OpenSingle of(std::size_t x) const {
    return {same.data() + x * same.shape(1) * same.shape(2),
            other.data() + x * other.shape(1) * other.shape(2) * other.shape(3), t1.data() + x * t1.shape(1),
            fock.data() + x * fock.shape(1), energies.data()[x]};
  }
};

/// The arrays of two blocks of virtual orbitals x, y of one spin.
struct SameDoubles {
  Blocks integrals;            // [x][y][i][v+o]
  Block exchange, amplitudes;  // [x][y][pairs]

  SameDoubles(const nb::tuple& given, const OpenSingles& x, const OpenSingles& y, std::size_t o,
              std::size_t v)
      : integrals(nb::cast<Blocks>(given[0])),
        exchange(nb::cast<Block>(given[1])),
        amplitudes(nb::cast<Block>(given[2])) {
    const auto has = [&](const auto& block, std::size_t rows) {
      return block.shape(0) == x.count && block.shape(1) == y.count && block.shape(2) == rows;
    };
    const auto pairs = o * (o - 1) / 2;
    if (!has(integrals, o) || integrals.shape(3) != v + o || !has(exchange, pairs) || !has(amplitudes, pairs))
      throw nb::value_error("two blocks of orbitals do not have the shapes that they need");
  }

  [[nodiscard]] chem::cc::SameDouble of(std::size_t x, std::size_t y) const {
    const auto at = x * integrals.shape(1) + y, pairs = exchange.shape(2);
    return {integrals.data() + at * integrals.shape(2) * integrals.shape(3), exchange.data() + at * pairs,
            amplitudes.data() + at * pairs};
  }
};

/// The arrays of a block of virtual orbitals x of the first spin and a block z of the other spin.
struct MixedDoubles {
  Blocks integrals, turned, exchange, amplitudes;  // [x][z][k][v+o], [i][w+p], [i][k], [i][k]

  MixedDoubles(const nb::tuple& given, const OpenSingles& x, const OpenSingles& z,
               const chem::cc::OpenSizes& sizes)
      : integrals(nb::cast<Blocks>(given[0])),
        turned(nb::cast<Blocks>(given[1])),
        exchange(nb::cast<Blocks>(given[2])),
        amplitudes(nb::cast<Blocks>(given[3])) {
    const auto has = [&](const Blocks& block, int rows, int columns) {
      return block.shape(0) == x.count && block.shape(1) == z.count && block.shape(2) == std::size_t(rows) &&
             block.shape(3) == std::size_t(columns);
    };
    if (!has(integrals, sizes.p, sizes.v + sizes.o) || !has(turned, sizes.o, sizes.w + sizes.p) ||
        !has(exchange, sizes.o, sizes.p) || !has(amplitudes, sizes.o, sizes.p))
      throw nb::value_error("blocks of orbitals of two spins do not have the shapes that they need");
  }

  [[nodiscard]] chem::cc::MixedDouble of(std::size_t x, std::size_t z) const {
    const auto at = x * integrals.shape(1) + z, square = exchange.shape(2) * exchange.shape(3);
    return {integrals.data() + at * integrals.shape(2) * integrals.shape(3),
            turned.data() + at * turned.shape(2) * turned.shape(3), exchange.data() + at * square,
            amplitudes.data() + at * square};
  }
};

double same_spin(const Vector& occupied, std::size_t virtuals, std::size_t a, std::size_t b,
                 const nb::tuple& of_a, const nb::tuple& of_b, const nb::tuple& of_c, const nb::tuple& of_ab,
                 const nb::tuple& of_ac, const nb::tuple& of_bc, bool same_ab, bool same_bc) {
  const auto o = occupied.size(), pairs = o * (o - 1) / 2;
  const OpenSingles x(of_a), y(of_b), z(of_c);
  for (const auto* block : {&x, &y, &z})
    if (!block->fits(o, virtuals + o, pairs, 0, 0, 0))
      throw nb::value_error("a block of orbitals does not have the shapes that it needs");
  const SameDoubles xy(of_ab, x, y, o, virtuals), xz(of_ac, x, z, o, virtuals), yz(of_bc, y, z, o, virtuals);
  if (o < 3 || a >= x.count || b >= y.count || (same_ab && b >= a))
    throw nb::value_error("no such orbitals a > b");
  const Blas& blas = scipy_blas();
  nb::gil_scoped_release release;
  chem::cc::OpenTriplesWork work;
  const chem::cc::OpenSizes sizes{int(o), int(virtuals), 0, 0};
  double sum = 0;
  const auto end = same_bc ? b : z.count;
  for (std::size_t c = 0; c < end; ++c)
    sum += chem::cc::same_spin_triples(blas, sizes, occupied.data(), x.of(a), y.of(b), z.of(c), xy.of(a, b),
                                       xz.of(a, c), yz.of(b, c), work);
  return sum;
}

double mixed_spin(const Vector& occupied, std::size_t virtuals, const Vector& other_occupied,
                  std::size_t other_virtuals, std::size_t a, std::size_t b, const nb::tuple& of_a,
                  const nb::tuple& of_b, const nb::tuple& of_c, const nb::tuple& of_ab,
                  const nb::tuple& of_ac, const nb::tuple& of_bc, bool same_ab) {
  const auto o = occupied.size(), p = other_occupied.size(), v = virtuals, w = other_virtuals;
  const chem::cc::OpenSizes sizes{int(o), int(v), int(p), int(w)};
  const OpenSingles x(of_a), y(of_b), z(of_c);
  bool fits = z.fits(p, 0, 0, v + o, o, p);
  for (const auto* block : {&x, &y}) fits = fits && block->fits(o, v + o, o * (o - 1) / 2, w + p, o, p);
  if (!fits) throw nb::value_error("a block of orbitals does not have the shapes that it needs");
  const SameDoubles xy(of_ab, x, y, o, v);
  const MixedDoubles xz(of_ac, x, z, sizes), yz(of_bc, y, z, sizes);
  if (o < 2 || !p || a >= x.count || b >= y.count || (same_ab && b >= a))
    throw nb::value_error("no such orbitals a > b");
  const Blas& blas = scipy_blas();
  nb::gil_scoped_release release;
  chem::cc::OpenTriplesWork work;
  double sum = 0;
  for (std::size_t c = 0; c < z.count; ++c)
    sum += chem::cc::mixed_spin_triples(blas, sizes, occupied.data(), other_occupied.data(), x.of(a), y.of(b),
                                        z.of(c), xy.of(a, b), xz.of(a, c), yz.of(b, c), work);
  return sum;
}

}  // namespace

void bind_chem_cc(nb::module_& module) {
  module.def(
      "triples_energy", &triples, "occupied"_a, "virtuals"_a, "a"_a, "b"_a, "of_a"_a, "of_b"_a, "of_c"_a,
      "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_ab"_a, "same_bc"_a,
      "Energy of connected triples of closed shells, for one virtual orbital a of a block, one b of a\n"
      "second block and all c of a third block; a >= b >= c where blocks are the same. of_a, of_b,\n"
      "of_c, for a block x: (t_jk^dx as [x][j][d][k] and as [x][k][d][j], -(ix|lk) as [x][i][l][k] and\n"
      "as [x][l][k][i], t1 [x][i], Fock elements [x][i], energies [x]). of_ab, of_ac, of_bc, for two\n"
      "blocks x, y: ((ix|yd) as [x][y][d][i], (iy|xd) likewise, t_ij^xy as [x][y][i][j] and as\n"
      "[x][y][j][i], (ix|jy) as [x][y][i][j]). In arrays with four indices the last one has room for a\n"
      "multiple of 4. Any thread.");
  module.def(
      "triples_derivatives", &triples_derivatives, "occupied"_a, "virtuals"_a, "a"_a, "b"_a, "of_a"_a,
      "of_b"_a, "of_c"_a, "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_ab"_a, "same_bc"_a, "by_w"_a, "sums"_a,
      "As triples_energy, and adds derivatives of the energy. by_w[a][b][c][i][j][k] receives those\n"
      "with respect to the connected amplitudes, also for the other orders of a, b and c that by_w has\n"
      "if blocks are the same. sums: [i][j] of occupied orbitals; for each block (by t1 [x][i], by Fock\n"
      "elements [x][i], density [x]); for ab, ac, bc [x][y][i][j], by (ix|jy). No other thread may use\n"
      "by_w and sums meanwhile.");
  module.def("triples_density", &triples_density, "occupied"_a, "virtuals"_a, "b"_a, "of_a"_a, "of_b"_a,
             "of_c"_a, "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_bc"_a, "density"_a,
             "Adds to the density [x][y] of all orbitals of the first block the contributions of b of the\n"
             "second block and all c of the third, c <= b if these blocks are the same. No other thread may\n"
             "use density meanwhile.");
  module.def(
      "same_spin_triples", &same_spin, "occupied"_a, "virtuals"_a, "a"_a, "b"_a, "of_a"_a, "of_b"_a, "of_c"_a,
      "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_ab"_a, "same_bc"_a,
      "Energy of connected triples of three virtual orbitals of one spin: one a of a block, one b of a\n"
      "second block and all c of a third block; a > b > c where blocks are the same.\n"
      "chem/cc/open_triples.hpp describes the blocks. Any thread.");
  module.def(
      "mixed_spin_triples", &mixed_spin, "occupied"_a, "virtuals"_a, "other_occupied"_a, "other_virtuals"_a,
      "a"_a, "b"_a, "of_a"_a, "of_b"_a, "of_c"_a, "of_ab"_a, "of_ac"_a, "of_bc"_a, "same_ab"_a,
      "As same_spin_triples, for two orbitals a > b of one spin and all c of a block of the other spin.\n"
      "Any thread.");
}

}  // namespace outcore::python
