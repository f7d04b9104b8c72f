// An error in a helper thread of src/chem is thrown by the call that started the thread. It never ends the
// process nor lets it wait for ever, and the next call works again.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <vector>

#include "base/thread_team.hpp"
#include "chem/hf/two_electron.hpp"
#include "chem/ri/three_center.hpp"
#include "device/fault.hpp"
#include "failing_memory.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;
using failing_memory::Where;

namespace {

constexpr int threads = 3;
const std::vector<int> shells{0, 1, 2, 0, 3, 1, 0, 2};

/// Lets one allocation after another fail, in growing steps, until `work` makes fewer allocations. Its result
/// must then be right. Helpers that come too late to get work may need no memory.
void with_failing_memory(Where where, const std::function<void()>& work) {
  work();  // what is made once
  long failures = 0;
  for (long count = 0;; count += 1 + count / 8) {
    bool failed = false;
    try {
      const failing_memory::After after(count, where);
      work();
      failed = failing_memory::After::failed();
    } catch (const std::bad_alloc&) {
      failed = true;
    } catch (const outcore::Error&) {
      failed = true;
    }
    if (!failed) break;
    ++failures;
  }
  check::is_true(failures > 0 || where == Where::helpers, "nothing was allocated where it was to fail");
  work();
}

IntegralFileOptions options(std::int64_t disk_bytes = std::int64_t{1} << 40) {
  IntegralFileOptions result;
  result.record_bytes = 1 << 16;
  result.file.scratch = std::filesystem::temp_directory_path();
  result.disk_bytes = disk_bytes;
  result.may_overflow = true;
  return result;
}

struct Problem {
  std::shared_ptr<const Basis> basis = model::basis(shells);
  std::shared_ptr<const Screening> screening = std::make_shared<Screening>(*basis, 1e-10, 1);
  std::size_t n = std::size_t(basis->functions());
  std::vector<double> density = model::density(n, 1);
  model::Matrices expected = model::reference(density, n);

  TwoElectron stored(const IntegralFileOptions& with, bool all = true) const {
    TwoElectron integrals(basis, screening, std::make_shared<KeepRule>(all), threads);
    if (!all) return integrals;
    integrals.open_store(with);
    integrals.store(0, 0, screening->tasks().size());
    integrals.close_store();
    return integrals;
  }

  void contract(TwoElectron& integrals, const Tickets& tickets = {}) const {
    model::Matrices found{std::vector<double>(n * n), std::vector<double>(n * n)};
    integrals.begin(density.data(), std::vector<int>{1}, 0);
    integrals.contract_kept(tickets);
    integrals.end(found.coulomb.data(), found.exchange.data());
    check::is_true(model::distance(found.coulomb, expected.coulomb) < 1e-6, "J differs");
    check::is_true(model::distance(found.exchange, expected.exchange) < 1e-6, "K differs");
  }
};

// Auxiliary shells of one function for all of these; every integral is 1.
int ones(double* out, int*, int*, int*, int, int*, int, double*, void*, double*) {
  if (out) out[0] = 1.0;
  return 1;
}

ThreeCenter three_center(int orbital_shells, int auxiliary_shells) {
  std::vector<int> bas;
  for (int shell = 0; shell < orbital_shells + auxiliary_shells; ++shell)
    bas.insert(bas.end(), {0, 0, 1, 1, 0, 0, 0, 0});
  return ThreeCenter(std::vector<int>(6), bas, std::vector<double>(20), orbital_shells, true,
                     {ones, ones, [](void**, int*, int, int*, int, double*) {}, [](void**) {}});
}

}  // namespace

TEST("a team throws what one of its threads has thrown, whichever") {
  for (int failing = 0; failing < threads; ++failing) {
    std::atomic<int> ended{0};
    const auto error = check::throws<std::runtime_error>([&] {
      outcore::in_team(threads, [&](int thread) {
        ++ended;
        if (thread == failing) throw std::runtime_error(std::to_string(thread));
      });
    });
    check::equal(std::string(error.what()), std::to_string(failing));
    check::equal(ended.load(), threads);
  }
}

TEST("helpers take no signals, and the caller takes what it took") {
  const auto takes = [](int number) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return sigismember(&blocked, number) == 0;
  };
  std::atomic<int> taking{0};
  outcore::in_team(threads, [&](int) { taking += takes(SIGINT) || takes(SIGTERM); });
  check::equal(taking.load(), 1);
  check::is_true(takes(SIGINT) && takes(SIGTERM));
}

TEST("a team has no memory: the calls that could begin are ended, and the error is thrown") {
  with_failing_memory(Where::anywhere, [] {
    std::atomic<int> sum{0};
    outcore::in_team(threads, [&](int thread) { sum += thread; });
    check::equal(sum.load(), threads * (threads - 1) / 2);
  });
}

TEST("screening: bounds of shells") {
  const auto basis = model::basis(shells);
  const Screening expected(*basis, 1e-10, 1);
  for (const auto where : {Where::helpers, Where::anywhere})
    with_failing_memory(where, [&] {
      const Screening found(*basis, 1e-10, threads);
      check::equal(found.integrals(), expected.integrals());
    });
}

TEST("three-centre integrals: bounds, integrals, and their expansion") {
  const ThreeCenter integrals = three_center(4, 6);
  std::vector<PairColumns> pairs;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j <= i; ++j) pairs.push_back({i, j, std::int32_t(pairs.size())});
  std::vector<double> rows(6 * pairs.size()), matrices(6 * 16);
  for (const auto where : {Where::helpers, Where::anywhere}) {
    with_failing_memory(where, [&] {
      for (const double bound : integrals.bounds(threads)) check::equal(bound, 1.0);
    });
    with_failing_memory(where, [&] {
      integrals.integrals(pairs, 0, 6, rows.data(), pairs.size(), threads);
      for (const double value : rows) check::equal(value, 1.0);
    });
  }
  with_failing_memory(Where::anywhere, [&] {
    integrals.expand(pairs, rows.data(), pairs.size(), 6, matrices.data(), threads);
    for (const double value : matrices) check::equal(value, 1.0);
  });
}

TEST("a pass over records in memory and on disk") {
  const Problem p;
  for (const std::int64_t memory : {0, 1 << 20}) {
    auto with = options();
    with.memory_bytes = memory;
    auto integrals = p.stored(with);
    for (const auto where : {Where::helpers, Where::anywhere})
      with_failing_memory(where, [&] { p.contract(integrals); });
  }
}

TEST("what found no place is made again") {
  const Problem p;
  auto integrals = p.stored(options(1 << 16));
  check::is_true(integrals.counts().lost_tasks > 0);
  for (const auto where : {Where::helpers, Where::anywhere})
    with_failing_memory(where, [&] { p.contract(integrals); });
}

TEST("integrals are stored") {
  const Problem p;
  with_failing_memory(Where::anywhere, [&] { p.stored(options()); });
}

TEST("the error of the energy") {
  const Problem p;
  for (const bool all : {true, false}) {
    auto integrals = p.stored(options(), all);
    for (const auto where : {Where::helpers, Where::anywhere})
      with_failing_memory(where, [&] {
        std::atomic<std::uint64_t> next{0};
        const auto error = integrals.energy_error(p.density.data(), 1, [&] { return next.fetch_add(1); }, {});
        check::is_true(std::isfinite(error.variance()));
      });
  }
}

TEST("tickets that cannot be had: of records, and of tasks") {
  const Problem p;
  auto integrals = p.stored(options());
  for (const std::uint64_t good : {0, 1, 7}) {
    std::atomic<std::uint64_t> next{0};
    const Tickets tickets = [&]() -> std::uint64_t {
      const auto ticket = next.fetch_add(1);
      if (ticket >= good) throw std::runtime_error("no ticket");
      return ticket;
    };
    check::throws<std::runtime_error>([&] { p.contract(integrals, tickets); });
    p.contract(integrals);
  }
  auto direct = p.stored(options(), false);
  check::throws<std::runtime_error>([&] {
    (void)direct.energy_error(p.density.data(), 1,
                              []() -> std::uint64_t { throw std::runtime_error("no task"); }, {});
  });
}

TEST("a disk that cannot be read at all makes records damaged, and they are made again") {
  const Problem p;
  std::atomic<bool> broken{false};
  const auto engine = outcore::device::make_fault_engine(
      outcore::device::make_thread_engine(1),
      {.script = [&](std::uint64_t, const outcore::device::Operation& operation) {
        return broken && operation.kind == outcore::device::Operation::Kind::read
                   ? outcore::device::Fault::io_error
                   : outcore::device::Fault::none;
      }});
  auto with = options();
  with.file.engine = engine.get();
  auto integrals = p.stored(with);
  broken = true;
  p.contract(integrals);
  check::is_true(integrals.counts().damaged > 0);
  for (const auto where : {Where::helpers, Where::anywhere})
    with_failing_memory(where, [&] { p.contract(integrals); });
}

TEST_MAIN
