#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "bindings.hpp"
#include "blas.hpp"
#include "chem/ci/kernel.hpp"
#include "chem/ci/vector_tiles.hpp"
#include "line.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using chem::ci::Kernel;
using chem::ci::Panel;
using chem::ci::Space;
using chem::ci::Strings;
using Indices = Line<const std::int64_t>;
using One = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Two = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class Element>
using Tile = nb::ndarray<Element, nb::ndim<2>, nb::device::cpu>;

std::span<const std::int64_t> span_of(const Indices& indices) {
  return {indices.data(), indices.size()};
}

template <class Element>
chem::ci::View<Element> view_of(const Tile<Element>& tile, bool transpose) {
  const chem::ci::View<Element> view{tile.data(), std::int64_t(tile.shape(0)), std::int64_t(tile.shape(1)),
                                     tile.stride(0), tile.stride(1)};
  return transpose ? view.transposed() : view;
}

/// Whether an argument is a tuple; throws if it is one without `count` entries, one for each spin.
bool is_tuple(nb::handle argument, std::size_t count, const char* what) {
  if (!nb::isinstance<nb::tuple>(argument)) return false;
  if (nb::len(argument) == count) return true;
  throw nb::value_error(what);
}

void make_kernel(Kernel* self, std::vector<int> irreps, int groups, int alpha, int beta, int target,
                 int parity, const nb::object& one, const nb::object& two, double spin_shift) {
  if (parity < -1 || parity > 1) throw nb::value_error("parity must be 1, -1, or 0 (not folded)");
  const auto n = irreps.size();
  const bool of_spins = is_tuple(one, 2, "one of each spin: (alpha, beta)");
  if (of_spins != is_tuple(two, 3, "two of each pair of spins: (aa, ab, bb)"))
    throw nb::value_error("one and two are both tuples, or both arrays");
  if (of_spins && parity != 0)
    throw nb::value_error("vectors fold only if both spins have the same orbitals");
  if (of_spins && spin_shift != 0) throw nb::value_error("spin_shift needs the same orbitals for both spins");
  std::array<One, 2> ones;
  std::array<Two, 3> twos;
  for (std::size_t i = 0; i < 2; ++i) {
    ones[i] = nb::cast<One>(of_spins ? nb::object(one[i]) : one);
    if (ones[i].shape(0) != n || ones[i].shape(1) != n) throw nb::value_error("one must be [n][n]");
  }
  for (std::size_t i = 0; i < 3; ++i) {
    twos[i] = nb::cast<Two>(of_spins ? nb::object(two[i]) : two);
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (twos[i].shape(axis) != n) throw nb::value_error("two must be [n][n][n][n]");
  }
  const chem::ci::Integrals integrals{
      int(n),     alpha,          beta,           !of_spins,
      spin_shift, ones[0].data(), ones[1].data(), {twos[0].data(), twos[1].data(), twos[2].data()}};
  const auto blas = scipy_blas();
  nb::gil_scoped_release release;
  auto space = std::make_shared<const Space>(chem::ci::Orbitals(std::move(irreps), groups), alpha, beta,
                                             target, parity != 0);
  new (self) Kernel(std::move(space), integrals, blas);
}

bool is_single(const nb::object& dtype) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object type = numpy.attr("dtype")(dtype);
  if (type.equal(numpy.attr("dtype")("float32"))) return true;
  if (type.equal(numpy.attr("dtype")("float64"))) return false;
  throw nb::value_error("dtype must be float64 or float32");
}

void bind_strings(nb::module_& module) {
  nb::class_<Strings>(
      module, "CIStrings",
      "All strings of so many electrons of one spin, sorted by irrep, then by value (the highest "
      "orbital counts\nmost). Orbitals are sorted by irrep; irreps multiply by exclusive or.")
      .def(
          "__init__",
          [](Strings* self, std::vector<int> irreps, int groups, int electrons) {
            new (self) Strings(chem::ci::Orbitals(std::move(irreps), groups), electrons);
          },
          "orbital_irreps"_a, "groups"_a, "electrons"_a)
      .def_prop_ro("electrons", &Strings::electrons)
      .def("__len__", [](const Strings& self) { return self.count(); })
      .def_prop_ro(
          "strings", [](const Strings& self) { return new_line(self.masks()); }, nb::rv_policy::move,
          "uint64; bit q of a string is set if an electron is in orbital q.")
      .def_prop_ro(
          "offsets", [](const Strings& self) { return new_line(self.offsets()); }, nb::rv_policy::move,
          "int64[groups + 1]: strings of irrep g have the indices [offsets[g], offsets[g + 1]).")
      .def(
          "rank",
          [](const Strings& self, std::uint64_t mask) {
            if (!self.contains(mask)) throw nb::value_error("no string of this list");
            return self.rank(mask);
          },
          "mask"_a, "The index of a string.");
}

/// A tile through Panel::load or Panel::unload.
template <auto member, class Self, class Element>
void move(Self& self, std::int64_t row, std::int64_t column, const Tile<Element>& tile, bool transpose,
          double scale) {
  const auto view = view_of(tile, transpose);
  nb::gil_scoped_release release;
  (self.*member)(row, column, view, scale);
}

template <class Class, class Element>
void def_moves(Class& cls) {
  const auto def = [&](const char* name, auto function, const char* doc) {
    cls.def(name, function, "row"_a, "column"_a, "tile"_a.noconvert(), "transpose"_a = false, "scale"_a = 1.0,
            doc);
  };
  def("load", &move<&Panel::load<Element>, Panel, const Element>,
      "panel[row + i, column + j] = scale * tile[i, j] (tile[j, i] with `transpose`), for the indices\n"
      "that the panel has. A tile lies in one sector of rows and in one sector of columns. Several\n"
      "threads may load different tiles.");
  def("unload", &move<&Panel::unload<Element>, const Panel, Element>,
      "tile[i, j] (tile[j, i] with `transpose`) += scale * panel[row + i, column + j], for the indices that "
      "the panel\nhas.");
}

using Places = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Element>
using Whole = nb::ndarray<Element, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const chem::ci::TilePlace> places_of(const Places& tiles) {
  static_assert(sizeof(chem::ci::TilePlace) == 5 * sizeof(std::int64_t));
  if (tiles.shape(1) != 5) throw nb::value_error("tiles must be [tiles][5]");
  return {reinterpret_cast<const chem::ci::TilePlace*>(tiles.data()), tiles.shape(0)};
}

template <class Class, class Element>
void def_tiles(Class& cls) {
  cls.def(
      "load_tiles",
      [](Panel& self, const Whole<const Element>& vector, const Places& tiles, int parity, int threads) {
        const auto places = places_of(tiles);
        const std::span<const Element> values{vector.data(), vector.size()};
        nb::gil_scoped_release release;
        chem::ci::load_tiles(self, values, places, parity, threads);
      },
      "vector"_a.noconvert(), "tiles"_a, "parity"_a, "threads"_a = 1,
      "Loads the elements that the panel has from tiles of a vector, which lie one after another.\n"
      "tiles: int64 [tiles][5], elements before the tile, indices of its first strings, shape. parity:\n"
      "1 or -1 for a folded vector, else 0.");
  cls.def(
      "add_to_tiles",
      [](const Panel& self, const Whole<Element>& vector, const Places& tiles, int parity, int threads) {
        const auto places = places_of(tiles);
        const std::span<Element> values{vector.data(), vector.size()};
        nb::gil_scoped_release release;
        chem::ci::add_to_tiles(self, values, places, parity, threads);
      },
      "vector"_a.noconvert(), "tiles"_a, "parity"_a, "threads"_a = 1,
      "vector += T in these tiles, T being the panel; for a folded vector T + parity T^T. Else as\n"
      "load_tiles.");
}

/// (place in a file, memory) of the parts of rows that a panel has.
nb::list ranges_of(const nb::object& panel, const Indices& bases, const Indices& pitches, std::int64_t first,
                   std::int64_t last) {
  const Panel& self = nb::cast<const Panel&>(panel);
  const auto groups = std::size_t(self.space().orbitals.groups());
  if (bases.size() != groups || pitches.size() != groups)
    throw nb::value_error("bases and pitches: one for each irrep");
  if (first < 0 || last < first || last > std::int64_t(self.rows().size()))
    throw nb::value_error("not the places of rows of this panel");
  nb::list found;
  for (std::int64_t place = first; place < last; ++place) {
    const std::int64_t row = self.rows()[std::size_t(place)];
    const auto irrep = self.row_strings().irrep(row);
    const auto strip = self.strip(place);
    const std::int64_t offset = bases.data()[irrep] +
                                (row - self.row_strings().offset(irrep)) * pitches.data()[irrep] +
                                strip.first_byte;
    const auto memory = [&]<class Real>(Real) {
      return nb::cast(nb::ndarray<Real, nb::numpy, nb::ndim<1>>(
          reinterpret_cast<Real*>(strip.data), {std::size_t(strip.bytes) / sizeof(Real)}, panel));
    };
    found.append(nb::make_tuple(offset, self.single() ? memory(float{}) : memory(double{})));
  }
  return found;
}

nb::class_<Panel> panel_class(nb::module_& module) {
  return nb::class_<Panel>(
      module, "CIPanel",
      "Some rows of a vector C[alpha, beta] in memory. Each row has the columns that symmetry allows,\n"
      "from its first column to the end of their sector. Home rows have all columns of the sector; the\n"
      "same-spin part works on these. Transposed: rows are beta strings, columns are alpha strings.\n"
      "Elements are undefined until cleared or loaded.");
}

void bind_panel(nb::class_<Panel>& cls) {
  cls.def(
         "__init__",
         [](Panel* self, const Kernel& kernel, const Indices& home, const Indices& others,
            const Indices& begins, const nb::object& dtype, bool transposed, std::int64_t unit) {
           new (self) Panel(kernel.space(), span_of(home), span_of(others), span_of(begins), is_single(dtype),
                            transposed, unit);
         },
         "kernel"_a, "home"_a, "others"_a, "begins"_a, "dtype"_a, "transposed"_a = false, "unit"_a = 64,
         "home, others: indices of rows, int64, ascending. begins: the first column of each of the others.\n"
         "dtype: float64 or float32. In memory, rows begin and end at multiples of `unit` bytes from the\n"
         "beginning of their sector.")
      .def(
          "assign",
          [](Panel& self, const Indices& home, const Indices& others, const Indices& begins) {
            self.assign(span_of(home), span_of(others), span_of(begins));
          },
          "home"_a, "others"_a, "begins"_a,
          "Assigns other rows to the panel; its memory is used again if it is enough. Elements are\n"
          "undefined.")
      .def_prop_ro(
          "rows", [](const Panel& self) { return new_line(self.rows()); }, nb::rv_policy::move,
          "int64: all rows, ascending.")
      .def(
          "ranges",
          [](const nb::object& self, const Indices& bases, const Indices& pitches, std::int64_t first,
             std::int64_t last) { return ranges_of(self, bases, pitches, first, last); },
          "bases"_a, "pitches"_a, "first"_a, "last"_a,
          "For each of rows[first:last] a pair (offset in bytes, array): the memory that the panel has of\n"
          "the row, extended to whole units, and its place in a file of rows. bases, pitches: int64, for\n"
          "each irrep of rows the offset of its first row and the distance of two rows, in bytes. The\n"
          "arrays are valid until the panel is assigned again.")
      .def_prop_ro("nbytes", &Panel::nbytes)
      .def("clear", &Panel::clear, "threads"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
           "Sets all elements to 0.");
  def_moves<nb::class_<Panel>, double>(cls);
  def_moves<nb::class_<Panel>, float>(cls);
  def_tiles<nb::class_<Panel>, double>(cls);
  def_tiles<nb::class_<Panel>, float>(cls);
}

double* checked(const Sums& sums, const Kernel& kernel) {
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (std::int64_t(sums.shape(axis)) != kernel.space()->orbitals.count())
      throw nb::value_error("sums must be [n][n][n][n]");
  return sums.data();
}

template <class Class, class Element>
void def_diagonal(Class& cls) {
  cls.def(
      "diagonal",
      [](const Kernel& self, std::int64_t alpha, std::int64_t beta, const Tile<Element>& tile) {
        const auto view = view_of(tile, false);
        nb::gil_scoped_release release;
        self.diagonal(alpha, beta, view);
      },
      "alpha"_a, "beta"_a, "tile"_a.noconvert(), "tile[i, j] = <I J|H|I J>, I = alpha + i and J = beta + j.");
}

nb::class_<Kernel> kernel_class(nb::module_& module) {
  return nb::class_<Kernel>(
      module, "CIKernel",
      "Products of a Hamiltonian with parts of vectors C[alpha, beta].\n\n"
      "A hole is an N-1 electron string of one spin. parity 0: H C = opposite_spin (over all holes) +\n"
      "same_spin (of beta) + same_spin on transposed panels (of alpha). parity 1 or -1, C = parity C^T:\n"
      "H C = T + parity T^T with T = opposite_spin + same_spin (of beta). Any thread, also several at a\n"
      "time; BLAS should use one thread. Calls at the same time need different panels.");
}

void bind_kernel(nb::class_<Kernel>& cls) {
  cls.def("__init__", &make_kernel, "orbital_irreps"_a, "groups"_a, "alpha"_a, "beta"_a, "target"_a,
          "parity"_a, "one"_a, "two"_a, "spin_shift"_a = 0.0,
          "Orbitals are sorted by irrep. one [n][n] and two [n][n][n][n], (pq|rs), float64. If the spins\n"
          "have different orbitals: tuples (alpha, beta) and (aa, ab, bb), and parity 0. spin_shift (Eh):\n"
          "adds spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2.")
      .def_prop_ro(
          "alpha_strings", [](const Kernel& self) { return &self.space()->alpha; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "beta_strings", [](const Kernel& self) { return &self.space()->beta; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "determinants", [](const Kernel& self) { return self.space()->determinants(); },
          "Number of pairs of strings of the right symmetry; with folding, (I, J) and (J, I) both count.")
      .def_prop_ro(
          "holes",
          [](const Kernel& self) {
            return new_line(std::span<const std::uint64_t>(self.space()->alpha_holes));
          },
          nb::rv_policy::move,
          "uint64: the holes of alpha electrons (N-1 electron strings), by value. Work is divided into\n"
          "ranges of them.")
      .def(
          "rows_of",
          [](const Kernel& self, std::int64_t first, std::int64_t last) {
            return new_line(std::span<const std::int64_t>(self.rows_of(first, last)));
          },
          "first"_a, "last"_a, "Indices of the alpha strings that holes [first, last) reach, ascending.")
      .def(
          "begins_of",
          [](const Kernel& self, std::int64_t first, std::int64_t last) {
            return new_line(std::span<const std::int64_t>(self.begins_of(first, last)));
          },
          "first"_a, "last"_a,
          "For each row of rows_of the first beta string that the holes meet there, or the end of the\n"
          "sector: the holes meet all strings from it on. Without folding it is the first of the sector.")
      .def("opposite_spin", &Kernel::opposite_spin, "x"_a, "t"_a, "first"_a, "last"_a, "threads"_a = 1,
           nb::call_guard<nb::gil_scoped_release>(),
           "Adds to t the part of H x that acts on an alpha and a beta electron, of holes [first, last);\n"
           "with folding, half of it. Both panels must have the rows_of this range, each from begins_of on.")
      .def("same_spin", &Kernel::same_spin, "x"_a, "t"_a, "threads"_a = 1,
           nb::call_guard<nb::gil_scoped_release>(),
           "Adds to t the part of H x that acts on two electrons of the columns' spin, for home rows, which\n"
           "must be the same in both panels.")
      .def(
          "opposite_spin_density",
          [](const Kernel& self, const Panel& bra, const Panel& ket, const Sums& sums, std::int64_t first,
             std::int64_t last, int threads) {
            double* data = checked(sums, self);
            nb::gil_scoped_release release;
            self.opposite_spin_density(bra, ket, data, first, last, threads);
          },
          "bra"_a, "ket"_a, "sums"_a.noconvert(), "first"_a, "last"_a, "threads"_a = 1,
          "sums[p,q,r,s] += <bra|a+_p b+_r b_s a_q|ket>, a of alpha and b of beta electrons, of holes\n"
          "[first, last); with folding the density is sums[p,q,r,s] + sums[r,s,p,q]. Panels as for\n"
          "opposite_spin; bra and ket may be the same.")
      .def(
          "same_spin_density",
          [](const Kernel& self, const Panel& bra, const Panel& ket, const Sums& sums, int threads) {
            double* data = checked(sums, self);
            nb::gil_scoped_release release;
            self.same_spin_density(bra, ket, data, threads);
          },
          "bra"_a, "ket"_a, "sums"_a.noconvert(), "threads"_a = 1,
          "sums[p,q,r,s] += <bra|a+_p a+_r a_s a_q|ket> of the columns' spin. Panels as for same_spin; bra\n"
          "and ket may be the same. Needs two or more electrons in all.")
      .def("flops", &Kernel::opposite_spin_flops, "first"_a, "last"_a,
           "Floating-point operations of the products of matrices in opposite_spin.")
      .def("same_spin_flops", &Kernel::same_spin_flops, "panel"_a,
           "Floating-point operations of the products of matrices in same_spin.");
  def_diagonal<nb::class_<Kernel>, double>(cls);
  def_diagonal<nb::class_<Kernel>, float>(cls);
}

}  // namespace

void bind_chem_ci(nb::module_& module) {
  bind_strings(module);
  auto panel = panel_class(module);
  auto kernel = kernel_class(module);  // both names are known before signatures have them
  bind_panel(panel);
  bind_kernel(kernel);
}

}  // namespace outcore::python
