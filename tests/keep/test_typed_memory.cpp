// Typed memory in checkpoints.
#include <cerrno>
#include <complex>
#include <vector>

#include "array/arrays.hpp"
#include "outcore/checkpoint.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "support/mdspan.hpp"

using namespace outcore;
using namespace outcore::test;

TEST("values are saved and read as elements, of any shape") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    const std::string path = directory.path() + "/state";
    double energy[1] = {-76.25};
    std::vector<std::complex<double>> values(6);
    for (int k = 0; k < 6; ++k) values[std::size_t(k)] = {double(k), 1};
    CheckpointSaving saving(world, {.path = path});
    saving.add("energy", energy, {});
    saving.add("matrix", MdSpan<const std::complex<double>, 2>(values.data(), 2, 3));
    saving.add("vector", values);
    saving.commit("cycle 7");

    Checkpoint saved = Checkpoint::open(world, [&] { return path; });
    check::is_true(saved.find("matrix").shape == std::vector<std::int64_t>{2, 3});
    check::is_true(saved.find("energy").shape.empty() && saved.find("vector").shape.size() == 1);
    double found[1] = {};
    saved.read("energy", found);
    check::equal(found[0], -76.25);
    std::vector<std::complex<double>> turned(6);
    saved.read("matrix", MdSpan<std::complex<double>, 2, Kokkos::layout_left>(turned.data(), 2, 3));
    for (std::size_t k = 0; k < 6; ++k) check::equal(turned[k], values[k % 2 * 3 + k / 2]);
    saved.read("vector", turned);
    check::is_true(turned == values);
  });
}

TEST("memory of another type at one process is the error of all") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    const std::string path = directory.path() + "/state";
    std::vector<double> values(6), good(6);
    std::vector<float> bad(6);
    CheckpointSaving saving(world, {.path = path});
    saving.add("values", values);
    saving.commit("");
    Checkpoint saved = Checkpoint::open(world, [&] { return path; });
    const auto memory = [&]() -> Elements {
      if (world.rank() == 1) return bad;
      return good;
    }();
    const Error error = check::throws<Error>([&] { saved.read("values", memory); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(),
                    "kept array of float64: Invalid argument (the memory has elements of float32)");
    saved.read("values", good);
  });
}

TEST("memory that is not in C order is an error of commit, at all processes") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    std::vector<double> values(6);
    CheckpointSaving saving(world, {.path = directory.path() + "/state"});
    if (world.rank() == 0)
      saving.add("values", MdSpan<double, 2>(values.data(), 2, 3));
    else
      (void)check::throws<Error>(
          [&] { saving.add("values", MdSpan<double, 2, Kokkos::layout_left>(values.data(), 2, 3)); });
    check::contains(check::throws<Error>([&] { saving.commit(""); }).what(), "C order without gaps");
  });
}

TEST_MAIN
