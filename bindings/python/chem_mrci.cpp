#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "chem/ci/mrci_kernel.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using chem::ci::MrciKernel;
using chem::ci::MrciSpace;
using chem::ci::MrciTask;
using chem::ci::Record;
template <class Element>
using Line = nb::ndarray<Element, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Element>
auto new_line(const std::vector<Element>& from) {
  auto data = std::make_unique<Element[]>(from.size());
  std::copy(from.begin(), from.end(), data.get());
  nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<Element*>(p); });
  return nb::ndarray<Element, nb::numpy, nb::ndim<1>>(data.release(), {from.size()}, owner);
}

void check_records(const MrciSpace& space, std::int64_t first, std::int64_t last, std::size_t elements) {
  const auto count = std::int64_t(space.records().size());
  if (first < 0 || last < first || last > count) throw nb::value_error("no such records");
  std::int64_t size = 0;
  for (std::int64_t i = first; i < last; ++i) size += space.record(i).size;
  if (std::size_t(size) != elements) throw nb::value_error("an array of another size than the records");
}

void make_kernel(MrciKernel* self, const std::shared_ptr<const MrciSpace>& space, const Matrix& one,
                 const Matrix& two, double spin_shift, double constant) {
  const auto n = std::size_t(space->orbitals());
  if (one.shape(0) != n || one.shape(1) != n) throw nb::value_error("one must be [n][n]");
  if (two.shape(0) != n * (n + 1) / 2 || two.shape(1) != n * (n + 1) / 2)
    throw nb::value_error("two must be [n (n + 1) / 2][n (n + 1) / 2]");
  const auto electrons = space->electrons();
  const chem::ci::MrciIntegrals integrals{int(n),   electrons[0], electrons[1], spin_shift,
                                          constant, one.data(),   two.data()};
  const auto blas = scipy_blas();
  nb::gil_scoped_release release;
  new (self) MrciKernel(space, integrals, blas);
}

void apply(const MrciKernel& self, const MrciTask& task, const Line<const double>& x, const Line<double>& t,
           const Line<const std::int64_t>& offsets, bool shared) {
  const auto& records = self.space().records();
  if (offsets.size() != records.size()) throw nb::value_error("one offset for each record");
  nb::gil_scoped_release release;
  self.apply(task, {x.data(), x.size()}, {t.data(), t.size()}, {offsets.data(), offsets.size()}, shared);
}

void bind_space(nb::module_& module) {
  nb::class_<MrciSpace>(
      module, "MRCISpace",
      "Records of a multireference CI: internal determinants, each with its block of external orbitals; see\n"
      "chem/ci/mrci_space.hpp.")
      .def(
          "__init__",
          [](MrciSpace* self, std::vector<int> externals, std::vector<int> internal_irreps,
             std::array<int, 2> electrons, int target, int parity, const Line<const std::uint8_t>& kinds,
             const Line<const std::uint64_t>& alpha, const Line<const std::uint64_t>& beta) {
            new (self) MrciSpace(chem::ci::Externals(std::move(externals)), std::move(internal_irreps),
                                 electrons, target, parity, {kinds.data(), kinds.size()},
                                 {alpha.data(), alpha.size()}, {beta.data(), beta.size()});
          },
          "externals"_a, "internal_irreps"_a, "electrons"_a, "target"_a, "parity"_a, "kinds"_a, "alpha"_a,
          "beta"_a,
          "externals: orbitals of each irrep. kinds (uint8: 0 none, 1 alpha, 2 beta, 3 one of each, 4 two "
          "alpha, 5 "
          "two\nbeta electrons are external), alpha, beta (uint64, internal strings): sorted in this order.")
      .def("__len__", [](const MrciSpace& self) { return self.records().size(); })
      .def_prop_ro("size", &MrciSpace::size, "Elements of a vector.")
      .def_prop_ro(
          "offsets",
          [](const MrciSpace& self) {
            std::vector<std::int64_t> found;
            for (const Record& each : self.records()) found.push_back(each.offset);
            found.push_back(self.size());
            return new_line(found);
          },
          nb::rv_policy::move, "int64[records + 1]: where records begin in a vector, and its end.")
      .def_prop_ro(
          "own",
          [](const MrciSpace& self) {
            std::vector<std::uint8_t> found;
            for (const Record& each : self.records()) found.push_back(each.own ? 1 : 0);
            return new_line(found);
          },
          nb::rv_policy::move,
          "uint8[records]: 1 of those that are their own partner under the exchange of spins.")
      .def(
          "fold",
          [](const MrciSpace& self, std::int64_t first, std::int64_t last, double scale,
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
          "Records that are their own partner become scale (R + parity R^T), in place.");
}

void bind_kernel(nb::module_& module) {
  nb::class_<MrciTask>(module, "MRCITask", "A piece of a product of the Hamiltonian with a vector.")
      .def_ro("cost", &MrciTask::cost, "About that many floating-point operations.");
  nb::class_<MrciKernel>(
      module, "MRCIKernel",
      "The Hamiltonian on vectors of a multireference CI, in tasks. Any thread, also several at a "
      "time; a BLAS of\none thread is expected.")
      .def("__init__", &make_kernel, "space"_a, "one"_a, "two"_a, "spin_shift"_a = 0.0, "constant"_a = 0.0,
           "one [n][n], two [pq][rs] with p >= q: internal orbitals, then external ones by irrep (float64). "
           "Adds\n"
           "constant + spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2 (Eh).")
      .def("tasks", &MrciKernel::tasks, "max_cost"_a, "max_elements"_a = 0,
           nb::call_guard<nb::gil_scoped_release>(),
           "All tasks; each at most of that cost, and of records of so many elements (0: any), if one hole "
           "is not "
           "more.")
      .def(
          "records_of",
          [](const MrciKernel& self, const MrciTask& task) { return new_line(self.records_of(task)); },
          "task"_a, nb::rv_policy::move, "Indices of the records that a task reads and adds to, ascending.")
      .def("apply", &apply, "task"_a, "x"_a, "t"_a.noconvert(), "offsets"_a, "shared"_a = false,
           "Adds to t. offsets: where each record that the task meets begins in x and in t. shared: other "
           "threads add "
           "to t\nas well.")
      .def(
          "diagonal",
          [](const MrciKernel& self, std::int64_t first, std::int64_t last, const Line<double>& elements) {
            check_records(self.space(), first, last, elements.size());
            nb::gil_scoped_release release;
            self.diagonal(first, last, elements.data());
          },
          "first"_a, "last"_a, "elements"_a.noconvert(), "Diagonal elements of records first to last.")
      .def_prop_ro("integral_bytes", &MrciKernel::integral_bytes);
}

}  // namespace

void bind_chem_mrci(nb::module_& module) {
  bind_space(module);
  bind_kernel(module);
}

}  // namespace outcore::python
