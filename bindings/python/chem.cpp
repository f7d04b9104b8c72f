#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>

#include "bindings.hpp"
#include "cache_arg.hpp"
#include "chem/hf/record_index.hpp"
#include "chem/hf/survey.hpp"
#include "chem/hf/two_electron.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Ints = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrices = nb::ndarray<double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using ConstMatrices = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

Matrices new_matrices(std::size_t count, std::size_t n) {
  auto data = std::make_unique<double[]>(count * n * n);
  nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return Matrices(data.release(), {count, n, n}, owner);
}

void check_densities(const ConstMatrices& densities, const std::vector<int>& symmetry,
                     const chem::Basis& basis) {
  const auto n = std::size_t(basis.functions());
  if (densities.shape(0) != symmetry.size() || densities.shape(1) != n || densities.shape(2) != n)
    throw nb::value_error("densities must be [len(symmetry)][functions][functions]");
}

nb::bytes as_bytes(const std::vector<std::byte>& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

std::vector<std::byte> from_bytes(const nb::bytes& bytes) {
  const auto* from = static_cast<const std::byte*>(bytes.data());
  return {from, from + bytes.size()};
}

chem::Tickets tickets_of(Counter* counter) {
  if (!counter) return {};
  return [counter] { return std::uint64_t(counter->next()); };
}

void bind_basis(nb::module_& module) {
  nb::class_<chem::Basis>(module, "Basis", "Shells and functions of a molecule's basis, in libcint's tables.")
      .def(
          "__init__",
          [](chem::Basis* self, const Ints& atm, const Ints& bas, const Doubles& env, bool cartesian,
             std::uintptr_t int2e, std::uintptr_t make_optimizer, std::uintptr_t delete_optimizer) {
            const chem::Libcint libcint{reinterpret_cast<chem::Libcint::Integral>(int2e),
                                        reinterpret_cast<chem::Libcint::MakeOptimizer>(make_optimizer),
                                        reinterpret_cast<chem::Libcint::DeleteOptimizer>(delete_optimizer)};
            new (self) chem::Basis({atm.data(), atm.size()}, {bas.data(), bas.size()},
                                   {env.data(), env.size()}, cartesian, libcint);
          },
          "atm"_a, "bas"_a, "env"_a, "cartesian"_a, "int2e"_a, "make_optimizer"_a, "delete_optimizer"_a,
          "Flattened atm [atoms*6], bas [shells*8] and env; the addresses of int2e_cart or int2e_sph,\n"
          "int2e_optimizer and CINTdel_optimizer.")
      .def_prop_ro("shells", &chem::Basis::shells)
      .def_prop_ro("functions", &chem::Basis::functions)
      .def_prop_ro("kinds", &chem::Basis::kinds,
                   "Kinds of shells: integrals over shells of one kind take equally long.");
}

void bind_accuracy(nb::module_& module) {
  nb::class_<chem::Accuracy>(
      module, "Accuracy",
      "The largest step to which integrals are rounded. It is the same for all integrals, or at most\n"
      "largest_step and in inverse proportion to their weights in the energy, which crude densities\n"
      "[count][n][n] estimate.")
      .def(nb::init<double>(), "step"_a)
      .def(
          "__init__",
          [](chem::Accuracy* self, const chem::Basis& basis, const ConstMatrices& densities, double step,
             double largest_step) {
            check_densities(densities, std::vector<int>(densities.shape(0), 1), basis);
            new (self) chem::Accuracy(basis, densities.data(), densities.shape(0), step, largest_step);
          },
          "basis"_a, "densities"_a, "step"_a, "largest_step"_a)
      .def_prop_ro("share", &chem::Accuracy::share,
                   "The limit below which quartets are left out at random, as a fraction of a step.")
      .def_prop_ro("least", &chem::Accuracy::least, "No step is smaller.")
      .def_prop_ro("largest", &chem::Accuracy::largest, "No step is larger.");
}

void bind_screening(nb::module_& module) {
  nb::class_<chem::ShellGroup>(module, "ShellGroup", "Permutations of shells by operations of a point group.")
      .def(
          "__init__",
          [](chem::ShellGroup* self, const chem::Basis& basis, const Ints& images) {
            new (self) chem::ShellGroup(basis, {images.data(), images.size()});
          },
          "basis"_a, "images"_a,
          "Flattened images [operations*shells] of libcint's shells, without the identity. With a screening\n"
          "by this group, J and K are sums over quartets that stand for their copies.")
      .def_prop_ro("order", &chem::ShellGroup::order, "Number of operations, the identity included.");
  nb::class_<chem::Screening>(module, "Screening", "Schwarz bounds and the tasks that pass the screening.")
      .def(nb::init<const chem::Basis&, double, int, std::shared_ptr<const chem::Accuracy>,
                    std::shared_ptr<const chem::ShellGroup>>(),
           "basis"_a, "cutoff"_a, "threads"_a, "accuracy"_a = nb::none(), "group"_a = nb::none(),
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("integrals", &chem::Screening::integrals, "Number of integrals in the quartets that pass.")
      .def_prop_ro("tasks", [](const chem::Screening& self) { return self.tasks().size(); })
      .def(
          "task_integrals",
          [](const chem::Screening& self) {
            std::vector<std::uint64_t> sizes;
            for (const auto& task : self.tasks()) sizes.push_back(task.integrals);
            return sizes;
          },
          "Number of integrals of each task.")
      .def("stored_bytes_bound", &chem::Screening::stored_bytes_bound, "accuracy"_a,
           nb::call_guard<nb::gil_scoped_release>(), "Upper bound of the bytes on disk.");
}

void bind_keep_rule(nb::module_& module) {
  nb::class_<chem::KeepRule>(module, "KeepRule",
                             "Which quartets of shells are kept, and which are recomputed.")
      .def(nb::init<bool>(), "everything"_a)
      .def(nb::init<const chem::Basis&, std::vector<double>, std::vector<double>, int, double>(), "basis"_a,
           "pair_factors"_a, "worth"_a, "first_exponent"_a, "least"_a,
           "A quartet with Schwarz bound Q is kept if factor(ij) factor(kl) worth(Q) >= least.\n"
           "`pair_factors`: one for each pair of kinds a >= b of shells, at a (a + 1) / 2 + b. `worth`: one\n"
           "for each power of two of the bound, from 2**first_exponent on.")
      .def_prop_ro("keeps_all", &chem::KeepRule::keeps_all)
      .def_prop_ro("keeps_none", &chem::KeepRule::keeps_none);

  nb::class_<chem::Survey>(module, "Survey", "A measured sample of the work on two-electron integrals.")
      .def_ro("draws", &chem::Survey::draws)
      .def_ro("pack_seconds", &chem::Survey::pack_seconds)
      .def_ro("contract_seconds", &chem::Survey::contract_seconds)
      .def_ro("unpack_seconds", &chem::Survey::unpack_seconds)
      .def_ro("byte_seconds", &chem::Survey::byte_seconds)
      .def_ro("looked", &chem::Survey::looked)
      .def_ro("look_seconds", &chem::Survey::look_seconds)
      .def_ro("look_squares", &chem::Survey::look_squares)
      .def(
          "quartets",
          [](const chem::Survey& self) {
            constexpr std::size_t columns = 10;
            auto data = std::make_unique<double[]>(self.quartets.size() * columns);
            double* to = data.get();
            for (const auto& q : self.quartets)
              for (double value : {double(q.bra_kinds), double(q.ket_kinds), q.bound, q.density, q.values,
                                   q.seconds, q.bytes, q.weight, q.header, double(q.draw)})
                *to++ = value;
            nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<double*>(p); });
            return nb::ndarray<double, nb::numpy, nb::ndim<2>>(data.release(),
                                                               {self.quartets.size(), columns}, owner);
          },
          "[n][10]: pair of kinds of the bra, of the ket, Schwarz bound, density, values, seconds, bytes,\n"
          "weight, share of the bytes of the slab's header, draw. The sum of weight times a quantity, "
          "divided\n"
          "by the draws, estimates its sum over all quartets.");
  module.def(
      "survey",
      [](const chem::Basis& basis, const chem::Screening& screening, const chem::Accuracy& accuracy,
         const ConstMatrices& density, double seconds, std::uint64_t most, std::uint64_t first,
         std::uint64_t stride) {
        check_densities(density, {1}, basis);
        const chem::Densities densities(basis, density.data(), std::vector<int>{1});
        const nb::gil_scoped_release release;
        return chem::Surveyor(basis, screening, accuracy, densities).run(seconds, most, first, stride);
      },
      "basis"_a, "screening"_a, "accuracy"_a, "density"_a, "seconds"_a, "most"_a, "first"_a, "stride"_a,
      "Makes draws first, first + stride, ... for `seconds`, at most `most` of them. density [1][n][n]:\n"
      "an estimate of the molecule's. Any number of threads at a time.");
}

void bind_kept_records(nb::module_& module) {
  module.def(
      "damaged_integral_records",
      [](const nb::bytes& index, std::size_t record_bytes, const std::string& path) {
        const auto bytes = from_bytes(index);
        const nb::gil_scoped_release released;
        return chem::damaged_records(bytes, record_bytes, path);
      },
      "index"_a, "record_bytes"_a, "path"_a,
      "Reads all records of a kept file; returns one line for each damage.");
}

void bind_two_electron(nb::module_& module) {
  nb::class_<chem::IntegralCounts>(module, "IntegralCounts")
      .def_ro("quartets", &chem::IntegralCounts::quartets)
      .def_ro("computed", &chem::IntegralCounts::computed)
      .def_ro("stored", &chem::IntegralCounts::stored)
      .def_ro("memory_bytes", &chem::IntegralCounts::memory_bytes)
      .def_ro("disk_bytes", &chem::IntegralCounts::disk_bytes)
      .def_ro("records", &chem::IntegralCounts::records)
      .def_ro("damaged", &chem::IntegralCounts::damaged)
      .def_ro("lost_tasks", &chem::IntegralCounts::lost_tasks);

  nb::class_<chem::IntegralFileOptions>(module, "IntegralFileOptions", "See outcore/chem/integral_file.hpp.")
      .def(
          "__init__",
          [](chem::IntegralFileOptions* self, const std::string& scratch, std::size_t record_bytes,
             int prefetch, std::shared_ptr<const chem::Accuracy> accuracy, const std::string& cache,
             std::int64_t expected_bytes, std::int64_t memory_bytes, std::int64_t disk_bytes,
             double small_below, bool may_overflow, const std::string& kept_name, World* world,
             Counter* disk_used) {
            chem::IntegralFileOptions options;
            options.record_bytes = record_bytes;
            options.prefetch = prefetch;
            options.accuracy = std::move(accuracy);
            options.memory_bytes = memory_bytes;
            options.disk_bytes = disk_bytes;
            options.small_below = small_below;
            options.may_overflow = may_overflow;
            options.kept_name = kept_name;
            options.world = world;
            options.disk_used = disk_used;
            options.file.scratch = scratch;
            options.file.expected_bytes = expected_bytes;
            options.file.page_cache = parse_cache(cache);
            new (self) chem::IntegralFileOptions(options);
          },
          "scratch"_a, "record_bytes"_a, "prefetch"_a, "accuracy"_a, "page_cache"_a, "expected_bytes"_a,
          "memory_bytes"_a, "disk_bytes"_a, "small_below"_a, "may_overflow"_a, "kept_name"_a,
          "world"_a.none() = nb::none(), "disk_used"_a.none() = nb::none(), nb::keep_alive<1, 13>(),
          nb::keep_alive<1, 14>());

  using chem::TwoElectron;
  nb::class_<TwoElectron>(module, "TwoElectron",
                          "This process's share of the two-electron integrals, kept or recomputed.")
      .def(nb::init<std::shared_ptr<const chem::Basis>, std::shared_ptr<const chem::Screening>,
                    std::shared_ptr<const chem::KeepRule>, int>(),
           "basis"_a, "screening"_a, "rule"_a, "threads"_a)
      .def("open_store", &TwoElectron::open_store, "options"_a, nb::keep_alive<1, 2>(),
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "open_kept",
          [](TwoElectron& self, const chem::IntegralFileOptions& options,
             const std::vector<std::pair<std::string, nb::bytes>>& files, int part, int parts) {
            std::vector<chem::KeptFile> kept;
            for (const auto& [name, index] : files) kept.push_back({name, from_bytes(index)});
            nb::gil_scoped_release release;
            self.open_kept(options, kept, part, parts);
          },
          "options"_a, "files"_a, "part"_a, "parts"_a, nb::keep_alive<1, 2>(),
          "Opens part `part` of `parts` of the records of kept files; files: (name, index) of each, as\n"
          "commit returned them.")
      .def(
          "commit",
          [](TwoElectron& self) {
            chem::KeptFile kept;
            {
              nb::gil_scoped_release release;
              kept = self.commit();
            }
            return std::pair(kept.name, as_bytes(kept.index));
          },
          "Puts the records on stable storage; returns name and index of the file, which stays.")
      .def(
          "index", [](const TwoElectron& self) { return as_bytes(self.index()); },
          "Where this process's records on disk are; pass it to share at all processes.")
      .def(
          "share",
          [](TwoElectron& self, const std::vector<nb::bytes>& indices) {
            std::vector<std::vector<std::byte>> all;
            for (const auto& each : indices) all.push_back(from_bytes(each));
            self.share(all);
          },
          "indices"_a,
          "indices: the results of index of all processes, by rank. From now on any process can contract\n"
          "any record.")
      .def("drop", &TwoElectron::drop, nb::call_guard<nb::gil_scoped_release>(),
           "Drops all records. Collective with a world.")
      .def("store", &TwoElectron::store, "thread"_a, "first_task"_a, "last_task"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Computes, packs and stores the kept quartets of tasks [first, last).")
      .def("close_store", &TwoElectron::close_store, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "begin",
          [](TwoElectron& self, const ConstMatrices& densities, const std::vector<int>& symmetry,
             double threshold) {
            check_densities(densities, symmetry, self.basis());
            self.begin(densities.data(), symmetry, threshold);
          },
          "densities"_a, "symmetry"_a, "cutoff"_a)
      .def(
          "contract_kept",
          [](TwoElectron& self, Counter* tickets) { self.contract_kept(tickets_of(tickets)); },
          "tickets"_a.none() = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
          "Contracts the records of this process; with tickets, its share of the records of all processes.")
      .def("contract_rest", &TwoElectron::contract_rest, "thread"_a, "first_task"_a, "last_task"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "end",
          [](TwoElectron& self, std::size_t count) {
            const auto n = std::size_t(self.basis().functions());
            auto j = new_matrices(count, n);
            auto k = new_matrices(count, n);
            self.end(j.data(), k.data());
            return std::pair(j, k);
          },
          "count"_a, "Partial J and K, [count][n][n] each.")
      .def(
          "energy_error",
          [](TwoElectron& self, const ConstMatrices& densities, Counter& tasks, Counter* tickets) {
            check_densities(densities, std::vector<int>(densities.shape(0), 1), self.basis());
            const nb::gil_scoped_release release;
            const auto error = self.energy_error(densities.data(), densities.shape(0), tickets_of(&tasks),
                                                 tickets_of(tickets));
            return std::tuple(error.variance(), error.worst(), error.largest());
          },
          "densities"_a, "tasks"_a, "tickets"_a.none() = nb::none(),
          "Returns the variance (Hartree^2) of the energy's error from rounding and leaving out integrals,\n"
          "the bound of that error (Hartree), and the largest term of a left-out quartet in the variance.\n"
          "`tasks` hands out the tasks whose quartets are not kept.")
      .def("counts", &TwoElectron::counts);
}

}  // namespace

void bind_chem(nb::module_& module) {
  bind_basis(module);
  bind_accuracy(module);
  bind_screening(module);
  bind_keep_rule(module);
  bind_kept_records(module);
  bind_two_electron(module);
  module.def(
      "integral_memory_bytes",
      [](const chem::Basis& basis, int threads, std::size_t densities, std::size_t record_bytes, int prefetch,
         double small_below) {
        chem::IntegralFileOptions options;
        options.small_below = small_below;
        options.record_bytes = record_bytes;
        options.prefetch = prefetch;
        // The values of one quartet of shells: from libcint, as a slab, and in parts.
        const std::size_t quartet = 3 * sizeof(double) * std::size_t(std::pow(basis.largest_shell(), 4));
        return std::size_t(threads) * (chem::CoulombExchange::bytes(basis, densities) + quartet) +
               chem::IntegralFile::work_bytes(options, threads);
      },
      "basis"_a, "threads"_a, "densities"_a, "record_bytes"_a, "prefetch"_a, "small_below"_a,
      "Bytes of memory that a contraction of `densities` matrices on `threads` threads takes;\n"
      "record_bytes 0: no records are stored.");
}

}  // namespace outcore::python
