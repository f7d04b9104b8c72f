#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "chem/mrci/kernel.hpp"
#include "chem/mrci/singlets.hpp"
#include "line.hpp"
#include "outcore/disk_array_access.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

namespace mrci = chem::mrci;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_records(const mrci::Space& space, std::int64_t first, std::int64_t last, std::size_t elements) {
  const auto count = std::int64_t(space.records().size());
  if (first < 0 || last < first || last > count) throw nb::value_error("no such records");
  std::int64_t size = 0;
  for (std::int64_t i = first; i < last; ++i) size += space.record(i).size;
  if (std::size_t(size) != elements) throw nb::value_error("an array of another size than the records");
}

using Units = std::optional<Line<const std::int64_t>>;

std::span<const std::int64_t> check_units(const mrci::Space& space, const Units& units) {
  if (!units) return {};
  const std::span found(units->data(), units->size());
  bool good = found.size() == space.records().size() && (found.empty() || found[0] == 0);
  for (std::size_t i = 1; good && i < found.size(); ++i)
    good = found[i] == found[i - 1] || found[i] == found[i - 1] + 1;
  if (!good) throw nb::value_error("units: one for each record, ascending from 0");
  return found;
}

void make_kernel(mrci::Kernel* self, const std::shared_ptr<const mrci::Space>& space, const Matrix& one,
                 const Matrix& rows, const Matrix& coulomb, const Matrix& exchange, double spin_shift,
                 double constant) {
  const auto n = std::size_t(space->orbitals()), u = std::size_t(space->internals());
  for (const auto* each : {&one, &coulomb, &exchange})
    if (each->shape(0) != n || each->shape(1) != n)
      throw nb::value_error("one, coulomb and exchange must be [n][n]");
  if (rows.shape(0) != u * (u + 1) / 2 + (n - u) * u || rows.shape(1) != n * (n + 1) / 2)
    throw nb::value_error("rows must be [u (u + 1) / 2 + (n - u) u][n (n + 1) / 2]");
  const auto electrons = space->electrons();
  const mrci::Integrals integrals{int(n),     int(u),   electrons[0], electrons[1],
                                  spin_shift, constant, one.data(),   rows.data()};
  const auto blas = scipy_blas();
  nb::gil_scoped_release release;
  new (self) mrci::Kernel(space, integrals, coulomb.data(), exchange.data(), blas);
}

void check_column(const mrci::Kernel& self, int c, const Matrix& column) {
  const auto v = std::size_t(self.space().externals().count());
  if (c < 0 || std::size_t(c) >= v) throw nb::value_error("no such external orbital");
  if (column.shape(0) != v || column.shape(1) != v * (v + 1) / 2)
    throw nb::value_error("a column must be [v][v (v + 1) / 2]");
}

nb::list external_rows(const mrci::Kernel& self, int c, const Matrix& column) {
  check_column(self, c, column);
  std::vector<mrci::ExternalTables::Part> parts;
  {
    const nb::gil_scoped_release release;
    parts = self.externals().rows(self.integrals(), c, column.data());
  }
  nb::list found;
  for (const auto& each : parts) found.append(nb::make_tuple(each.first, nb::cast(new_line(each.values))));
  return found;
}

void apply(const mrci::Kernel& self, const mrci::HoleTask& task, const Line<const double>& x,
           const Line<double>& t, const Line<const std::int64_t>& offsets, bool shared) {
  const auto& records = self.space().records();
  if (offsets.size() != records.size()) throw nb::value_error("one offset for each record");
  nb::gil_scoped_release release;
  self.apply(task, {x.data(), x.size()}, {t.data(), t.size()}, {offsets.data(), offsets.size()}, shared);
}

void bind_space(nb::module_& module) {
  nb::class_<mrci::Space>(
      module, "MRCISpace",
      "Records of a multireference CI: internal determinants, each with its block of external orbitals; see\n"
      "chem/mrci/space.hpp.")
      .def(
          "__init__",
          [](mrci::Space* self, std::vector<int> externals, std::vector<int> internal_irreps,
             std::array<int, 2> electrons, int target, int parity, const Line<const std::uint8_t>& kinds,
             const Line<const std::uint64_t>& alpha, const Line<const std::uint64_t>& beta) {
            new (self) mrci::Space(mrci::Externals(std::move(externals)), std::move(internal_irreps),
                                   electrons, target, parity, {kinds.data(), kinds.size()},
                                   {alpha.data(), alpha.size()}, {beta.data(), beta.size()});
          },
          "externals"_a, "internal_irreps"_a, "electrons"_a, "target"_a, "parity"_a, "kinds"_a, "alpha"_a,
          "beta"_a,
          "externals: number of external orbitals of each irrep. kinds (uint8; external electrons: 0 none,\n"
          "1 alpha, 2 beta, 3 one of each, 4 two alpha, 5 two beta), alpha, beta (uint64, internal strings)\n"
          "of each record, sorted in this order.")
      .def("__len__", [](const mrci::Space& self) { return self.records().size(); })
      .def_prop_ro("size", &mrci::Space::size, "Elements of a vector.")
      .def_prop_ro(
          "offsets",
          [](const mrci::Space& self) {
            std::vector<std::int64_t> found;
            for (const mrci::Record& each : self.records()) found.push_back(each.offset);
            found.push_back(self.size());
            return new_line(found);
          },
          nb::rv_policy::move, "int64[records + 1]: where records begin in a vector, and its end.")
      .def_prop_ro(
          "own",
          [](const mrci::Space& self) {
            std::vector<std::uint8_t> found;
            for (const mrci::Record& each : self.records()) found.push_back(each.own ? 1 : 0);
            return new_line(found);
          },
          nb::rv_policy::move,
          "uint8[records]: 1 for records that are their own partner under the exchange of spins.")
      .def(
          "fold",
          [](const mrci::Space& self, std::int64_t first, std::int64_t last, double scale,
             const Line<double>& data) {
            check_records(self, first, last, data.size());
            nb::gil_scoped_release release;
            double* at = data.data();
            for (std::int64_t i = first; i < last; ++i) {
              self.fold(i, scale, at);
              at += self.record(i).size;
            }
          },
          "first"_a, "last"_a, "scale"_a, "data"_a.noconvert(),
          "Replaces records that are their own partner by scale (R + parity R^T), in place.")
      .def(
          "fold_records",
          [](const mrci::Space& self, const Line<const std::int64_t>& records, double scale,
             const Line<double>& data) {
            double* at = data.data();
            for (std::size_t i = 0; i < records.size(); ++i) {
              const std::int64_t each = records.data()[i];
              check_records(self, each, each + 1,
                            std::size_t(each < 0 ? 0 : self.records().at(std::size_t(each)).size));
              if (at + self.record(each).size > data.data() + data.size())
                throw nb::value_error("an array of another size than the records");
              self.fold(each, scale, at);
              at += self.record(each).size;
            }
          },
          "records"_a, "scale"_a, "data"_a.noconvert(),
          "As fold, for some records, which lie one after another in data.");
}

void bind_singlets(nb::module_& module) {
  nb::class_<mrci::Singlets>(
      module, "MRCISinglets",
      "Groups of records with two holes in the first orbitals and two external electrons. The spins of\n"
      "these four electrons must couple to a singlet; see chem/mrci/singlets.hpp.")
      .def(nb::init<std::shared_ptr<const mrci::Space>, int>(), "space"_a, "inactive"_a)
      .def("__len__", &mrci::Singlets::groups)
      .def(
          "records_of",
          [](const mrci::Singlets& self, std::int64_t first, std::int64_t last) {
            return new_line(self.records_of(first, last));
          },
          "first"_a, "last"_a, nb::rv_policy::move, "Records of groups [first, last), ascending.")
      .def(
          "project",
          [](const mrci::Singlets& self, std::int64_t first, std::int64_t last, const Line<double>& data,
             const Line<const std::int64_t>& offsets) {
            if (offsets.size() != self.space().records().size())
              throw nb::value_error("one offset for each record");
            nb::gil_scoped_release release;
            self.project(first, last, {data.data(), data.size()}, {offsets.data(), offsets.size()});
          },
          "first"_a, "last"_a, "data"_a.noconvert(), "offsets"_a,
          "Projects groups [first, last) onto singlets. offsets: where each of their records begins in\n"
          "data.");
}

void bind_kernel(nb::module_& module) {
  nb::class_<mrci::HoleTask>(module, "MRCITask", "A piece of a product of the Hamiltonian with a vector.")
      .def_ro("cost", &mrci::HoleTask::cost, "Estimated floating-point operations.");
  nb::class_<mrci::Kernel>(
      module, "MRCIKernel",
      "The Hamiltonian on vectors of a multireference CI, in tasks. Any thread, also several at a time;\n"
      "BLAS should use one thread.")
      .def("__init__", &make_kernel, "space"_a, "one"_a, "rows"_a, "coulomb"_a, "exchange"_a,
           "spin_shift"_a = 0.0, "constant"_a = 0.0,
           "one [n][n]: internal orbitals, then external ones by irrep (float64). rows: (pq|rs) [pq][rs], r\n"
           ">= s, for pairs pq with an internal orbital: first p >= q of internal ones, then for each\n"
           "external p all internal q. coulomb, exchange: (pp|qq), (pq|pq) [n][n]. Adds constant +\n"
           "spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2 (Eh). Integrals between pairs of external\n"
           "orbitals come by `reserve_external` and `take_external`, or by `read_external`.")
      .def_prop_ro(
          "external_size", [](const mrci::Kernel& self) { return self.externals().size(); },
          "Number of integrals between pairs of external orbitals.")
      .def("external_rows", &external_rows, "c"_a, "column"_a,
           "Integrals of external pairs (c, d), d <= c, from column [a][bd] = (ac|bd), b >= d: (first\n"
           "element, values) of each part of the line.")
      .def(
          "reserve_external", [](mrci::Kernel& self) { self.externals().reserve(); },
          "Allocates memory for all integrals between external pairs.")
      .def(
          "take_external",
          [](mrci::Kernel& self, int c, const Matrix& column) {
            check_column(self, c, column);
            nb::gil_scoped_release release;
            self.externals().take(self.integrals(), c, column.data());
          },
          "c"_a, "column"_a, "Keeps the integrals of `external_rows` in memory. Any thread, each c once.")
      .def(
          "read_external",
          [](mrci::Kernel& self, const DiskArrayAccess& array, std::int64_t slab_elements) {
            self.externals().read_from(array, slab_elements);
          },
          "array"_a, "slab_elements"_a, nb::keep_alive<1, 2>(),
          "Products read the integrals between external pairs from this array, a line of float64 that holds\n"
          "the parts of `external_rows`, in slabs.")
      .def(
          "tasks",
          [](const mrci::Kernel& self, double max_cost, std::int64_t max_elements, const Units& units) {
            const auto chosen = check_units(self.space(), units);
            nb::gil_scoped_release release;
            return self.tasks(max_cost, max_elements, chosen);
          },
          "max_cost"_a, "max_elements"_a = 0, "units"_a = nb::none(),
          "All tasks. Each has at most max_cost, and its units at most max_elements elements (0: any\n"
          "number), unless a single hole has more. units: for each record the number of the unit in which\n"
          "it is moved, ascending from 0; None: each record is a unit.")
      .def(
          "units_of",
          [](const mrci::Kernel& self, const mrci::HoleTask& task, const Units& units) {
            return new_line(self.units_of(task, check_units(self.space(), units)));
          },
          "task"_a, "units"_a = nb::none(), nb::rv_policy::move,
          "The units (None: the records) that a task reads and adds to, ascending.")
      .def(
          "apply", &apply, "task"_a, "x"_a, "t"_a.noconvert(), "offsets"_a, "shared"_a = false,
          "Adds the part of H x that the task computes to t. offsets: where each record that the task meets\n"
          "begins in x and in t. shared: other threads add to t at the same time.")
      .def(
          "density",
          [](const mrci::Kernel& self, const mrci::HoleTask& task, const Line<const double>& x,
             const Line<const std::int64_t>& offsets, const Square& alpha, const Square& beta) {
            const auto n = std::size_t(self.space().orbitals());
            if (offsets.size() != self.space().records().size())
              throw nb::value_error("one offset for each record");
            for (const auto* each : {&alpha, &beta})
              if (each->shape(0) != n || each->shape(1) != n) throw nb::value_error("sums must be [n][n]");
            nb::gil_scoped_release release;
            self.density(task, {x.data(), x.size()}, {offsets.data(), offsets.size()}, alpha.data(),
                         beta.data());
          },
          "task"_a, "x"_a, "offsets"_a, "alpha"_a.noconvert(), "beta"_a.noconvert(),
          "Adds to sums [n][n]. Over all tasks, alpha and beta receive the density of their spin times the\n"
          "number of electrons of the other spin; folded, alpha receives that of either spin.")
      .def(
          "exchange",
          [](const mrci::Kernel& self, const mrci::HoleTask& task, const Line<const double>& x,
             const Line<const std::int64_t>& offsets) {
            if (offsets.size() != self.space().records().size())
              throw nb::value_error("one offset for each record");
            nb::gil_scoped_release release;
            return self.exchange(task, {x.data(), x.size()}, {offsets.data(), offsets.size()});
          },
          "task"_a, "x"_a, "offsets"_a, "The contribution of the task to sum_pq <a+_p b+_q b_p a_q>.")
      .def(
          "diagonal",
          [](const mrci::Kernel& self, std::int64_t first, std::int64_t last, const Line<double>& elements) {
            check_records(self.space(), first, last, elements.size());
            nb::gil_scoped_release release;
            self.diagonal(first, last, elements.data());
          },
          "first"_a, "last"_a, "elements"_a.noconvert(), "Diagonal elements of records [first, last).")
      .def_prop_ro(
          "on_disk", [](const mrci::Kernel& self) { return self.externals().on_disk(); },
          "Whether products read integrals between external pairs from an array.")
      .def_prop_ro("integral_bytes", &mrci::Kernel::integral_bytes, "Bytes of integrals in memory.")
      .def_prop_ro("work_bytes", &mrci::Kernel::work_bytes,
                   "Bytes of memory that `apply` uses in each thread.");
}

}  // namespace

void bind_chem_mrci(nb::module_& module) {
  bind_space(module);
  bind_kernel(module);
  bind_singlets(module);
}

}  // namespace outcore::python
