#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "check.hpp"
#include "model.hpp"
#include "outcore/chem/two_electron.hpp"
#include "outcore/error.hpp"

using namespace outcore::chem;

namespace {

const std::vector<int> shells{0, 1, 2, 0, 3, 1, 0, 2, 1, 4, 0, 1};

IntegralFileOptions options() {
  IntegralFileOptions result;
  result.record_bytes = 1 << 20;
  result.step = 1e-10;
  result.file.scratch = std::filesystem::temp_directory_path();
  return result;
}

struct Problem {
  explicit Problem(const std::vector<int>& of_shells = shells) : basis(model::basis(of_shells)) {}
  std::shared_ptr<const Basis> basis;
  std::shared_ptr<const Screening> screening = std::make_shared<Screening>(*basis, 1e-10, 1);
  std::size_t n = std::size_t(basis->functions());
  std::vector<double> density = model::density(n, 1);
  model::Matrices expected = model::reference(density, n);
  model::Matrices found{std::vector<double>(n * n), std::vector<double>(n * n)};

  void check_result(double tolerance) const {
    check::is_true(model::distance(found.coulomb, expected.coulomb) < tolerance, "J differs");
    check::is_true(model::distance(found.exchange, expected.exchange) < tolerance, "K differs");
  }
};

/// Enough slabs for many records, each named by its first value.
struct Filled {
  std::shared_ptr<const Basis> basis = model::basis({4, 4, 4, 4, 4, 4});
  IntegralFile file;
  explicit Filled(int slabs, const IntegralFileOptions& with = options()) : file(*basis, with) {
    IntegralFile::Writer writer(file);
    for (int s = 1; s <= slabs; ++s) {
      Slab slab;
      slab.label(*basis, 5, 4, s % 6);
      slab.shells = {0};
      slab.set_shells(*basis);
      for (std::size_t r = 0; r < slab.rows(); ++r)
        for (std::size_t c = 0; c < slab.columns.size(); ++c) slab.row(r)[c] = s * with.step;
      writer.add(slab);
    }
    writer.finish();
  }
};

}  // namespace

TEST("stored integrals give J and K, again and again") {
  Problem p;
  TwoElectron integrals(p.basis, p.screening, 2);
  integrals.open_store(options());
  integrals.store(0, 0, 10);
  integrals.store(1, 10, p.screening->tasks().size());
  integrals.close_store();
  for (int pass = 0; pass < 3; ++pass) {
    integrals.contract_stored(p.density.data(), std::vector<int>{1}, p.found.coulomb.data(),
                              p.found.exchange.data());
    p.check_result(1e-6);
  }
  check::equal(integrals.counts().computed, p.screening->integrals());
  check::is_true(integrals.counts().records >= 2);
}

TEST("small records hold several slabs each") {
  const std::vector<int> three{0, 1, 2};
  std::vector<int> many;
  for (int atom = 0; atom < 5; ++atom) many.insert(many.end(), three.begin(), three.end());
  Problem p(many);
  TwoElectron integrals(p.basis, p.screening, 1);
  auto small = options();
  small.record_bytes = 64 << 10;
  integrals.open_store(small);
  integrals.store(0, 0, p.screening->tasks().size());
  integrals.close_store();
  integrals.contract_stored(p.density.data(), std::vector<int>{1}, p.found.coulomb.data(),
                            p.found.exchange.data());
  p.check_result(1e-6);
  const auto counts = integrals.counts();
  check::is_true(counts.bytes / counts.records > small.record_bytes * 3 / 4, "records are nearly full");
}

TEST("recomputed integrals give J and K") {
  Problem p;
  TwoElectron integrals(p.basis, p.screening, 2);
  integrals.begin_direct(p.density.data(), std::vector<int>{1});
  integrals.contract_direct(0, 0, 7);
  integrals.contract_direct(1, 7, p.screening->tasks().size());
  integrals.end_direct(p.found.coulomb.data(), p.found.exchange.data());
  p.check_result(1e-6);
}

TEST("shares of several processes add up") {
  Problem p;
  std::vector<double> j(p.n * p.n), k(p.n * p.n);
  for (std::size_t share = 0; share < 3; ++share) {
    TwoElectron integrals(p.basis, p.screening, 1);
    integrals.open_store(options());
    for (std::size_t task = share; task < p.screening->tasks().size(); task += 3)
      integrals.store(0, task, task + 1);
    integrals.close_store();
    integrals.contract_stored(p.density.data(), std::vector<int>{1}, j.data(), k.data());
    for (std::size_t at = 0; at < j.size(); ++at) p.found.coulomb[at] += j[at], p.found.exchange[at] += k[at];
  }
  p.check_result(1e-6);
}

TEST("contracting before storing is refused") {
  Problem p;
  TwoElectron integrals(p.basis, p.screening, 1);
  check::throws<outcore::Error>([&] {
    integrals.contract_stored(p.density.data(), std::vector<int>{1}, p.found.coulomb.data(),
                              p.found.exchange.data());
  });
}

TEST("every slab is read once in a pass, with any number of threads and any prefetch") {
  for (const auto& [threads, prefetch] : {std::pair{1, 2}, {3, 2}, {2, 16}}) {
    auto with = options();
    with.prefetch = prefetch;
    Filled filled(1500, with);
    check::is_true(filled.file.records() > 5);
    std::vector<int> seen(1501);
    std::mutex mutex;
    filled.file.for_each(threads, [&](int, const Slab& slab) {
      const std::lock_guard lock(mutex);
      ++seen[std::size_t(slab.row(0)[0])];
    });
    check::equal(std::accumulate(seen.begin() + 1, seen.end(), 0), 1500);
    check::equal(*std::max_element(seen.begin(), seen.end()), 1);
  }
}

TEST("an error of the consumer ends the pass of all threads and is thrown") {
  Filled filled(1500);
  const auto error = check::throws<std::runtime_error>([&] {
    filled.file.for_each(3, [](int, const Slab& slab) {
      if (slab.row(0)[0] == 700) throw std::runtime_error("enough");
    });
  });
  check::equal(std::string(error.what()), "enough");
}

TEST("a slab that no record can hold is refused with its size") {
  const auto basis = model::basis({9, 9, 9, 9});
  IntegralFile file(*basis, options());
  IntegralFile::Writer writer(file);
  Slab slab;
  slab.label(*basis, 0, 1, 2);
  slab.shells = {3};
  slab.set_shells(*basis);
  const auto error = check::throws<outcore::Error>([&] { writer.add(slab); });
  check::equal(error.errno_value(), EMSGSIZE);
  check::contains(error.what(), "1048576");
}

TEST("records that are too small, and prefetch below two, are refused") {
  const auto basis = model::basis({0});
  auto small = options();
  small.record_bytes = 4096;
  check::throws<outcore::Error>([&] { IntegralFile(*basis, small); });
  auto blind = options();
  blind.prefetch = 1;
  check::throws<outcore::Error>([&] { IntegralFile(*basis, blind); });
}

TEST_MAIN
